/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds small graphs and runs passes on them.
 *
 *     pass_case m = pass_case_start();
 *     value_id x = pass_case_input(&m, "x", 1, (int64_t[]){3});
 *     graph *g = pass_case_run(&m, pass_case_node(&m, "Relu", 1, &x, "y"), NULL, 0);
 *     assert_int_equal(pass_case_count(g, "Relu"), 1);
 *     graph_free(g);
 */
#ifndef CLG_TESTS_PASS_CASE_H
#define CLG_TESTS_PASS_CASE_H

#include "support/unit.h"

#include "ops/core/op.h"
#include "passes/passes.h"

typedef struct pass_case {
    graph *graph; /* of opset 13 */
} pass_case;

pass_case pass_case_start(void);
/* Adds a float32 input; a dimension of -1 is unknown. */
value_id pass_case_input(pass_case *m, const char *name, size_t rank, const int64_t *dims);
/* Adds a float32 constant of 1, 2, 3... */
value_id pass_case_constant(pass_case *m, const char *name, size_t rank, const int64_t *dims);
/* Adds an int64 constant of shape [n]. */
value_id pass_case_ints(pass_case *m, const char *name, size_t n, const int64_t *numbers);
/* Adds a node of ONNX's default domain, named after its operator, with one output named `out`. */
value_id pass_case_node(pass_case *m, const char *op, size_t n, const value_id *inputs,
                        const char *out);
/* Returns the node that was added last. */
node_id pass_case_last(const pass_case *m);
/* Runs all passes except those in `disabled`, for SIMD kernels, with `output` as an additional
 * graph output. Returns the graph, which the caller frees; the case must not be used any more. */
graph *pass_case_run(pass_case *m, value_id output, const char *const *disabled, size_t n_disabled);
/* As pass_case_run, but runs only the passes `only` and `dead`. */
graph *pass_case_run_only(pass_case *m, value_id output, const char *only);
/* As pass_case_run, but runs only the passes `blocked` and `dead`, with blocks of `lanes` channels.
 */
graph *pass_case_run_blocked(pass_case *m, value_id output, int lanes);
/* As pass_case_run_blocked, but also runs the pass `after`, which follows `blocked`. */
graph *pass_case_run_after_blocked(pass_case *m, value_id output, const char *after, int lanes);
/* As pass_case_run, but runs only the passes `fp16` and `dead`, with precision fp16 except for
 * nodes named keep_fp32 (NULL: none). */
graph *pass_case_run_fp16(pass_case *m, value_id output, const char *keep_fp32);

/* Returns the number of nodes with this operator. */
size_t pass_case_count(const graph *g, const char *op);
/* Returns the first node with this operator, or NULL. */
const node *pass_case_find(const graph *g, const char *op);

#endif
