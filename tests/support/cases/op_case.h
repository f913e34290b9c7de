/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers and lowers one node from facts of its inputs, to test operators' rows without a device.
 *
 *     op_case k;
 *     op_case_start(&k, "Flatten", 13, 1, 1);
 *     assert_ok(node_set_int(k.graph, 0, "axis", 0));
 *     op_case_dims(&k, 0, CLG_FLOAT32, LIST(2, 3, 4));
 *     assert_ok(op_case_infer(&k));
 *     op_case_expect_dims(&k, LIST(1, 24));
 *     op_case_end(&k);
 */
#ifndef CLG_TESTS_OP_CASE_H
#define CLG_TESTS_OP_CASE_H

#include "support/unit.h"

#include "ops/core/op.h"

#define OP_CASE_INPUTS 8
#define OP_CASE_OUTPUTS 4

typedef struct op_case {
    graph *graph; /* its node 0 is the case */
    node *node;
    value_fact inputs[OP_CASE_INPUTS], outputs[OP_CASE_OUTPUTS];
    uint32_t needs;
    lower_operand lowered[OP_CASE_OUTPUTS]; /* of the last op_case_lower */
} op_case;

/* Expands to a count and a pointer to that many int64_t. U: an unknown dimension. */
#define LIST(...)                                                                                  \
    (int)(sizeof((int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t) - 1),                              \
        &((int64_t[]){0, __VA_ARGS__})[1]
#define U DIM_UNKNOWN

/* Creates a node named "n" of the default domain. */
void op_case_start(op_case *k, const char *op_type, int64_t version, size_t n_inputs,
                   size_t n_outputs);
void op_case_end(op_case *k);
/* Makes input i a tensor of unknown content. */
void op_case_dims(op_case *k, size_t i, clg_dtype dtype, int rank, const int64_t *dims);
/* Makes input i a list of known numbers. */
void op_case_content(op_case *k, size_t i, clg_dtype dtype, int n, const int64_t *numbers);
/* Runs ops_resolve and ops_infer_node. */
clg_status op_case_infer(op_case *k);
/* Check the inferred output 0; a difference fails the test. */
void op_case_expect_dims(const op_case *k, int rank, const int64_t *dims);
void op_case_expect_content(const op_case *k, int n, const int64_t *numbers);

lower_operand op_case_operand(const value_fact *f); /* dense */
/* Lowers for simt, with the inferred outputs. */
void op_case_lower(op_case *k, const lower_operand *inputs, arena *memory, lower_context *out);

#endif
