/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers and lowers one node from facts (dtype, shape and, if known, elements) of its inputs, to
 * test entries of the operator table without a device.
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
    graph *graph; /* node 0 is the node under test */
    node *node;
    value_fact inputs[OP_CASE_INPUTS], outputs[OP_CASE_OUTPUTS];
    /* Bit set of the inputs whose elements op_case_infer needs. */
    uint32_t needs;
    lower_operand lowered[OP_CASE_OUTPUTS]; /* outputs of the last op_case_lower */
} op_case;

/* Expands to a count and a pointer to that many int64_t; U stands for an unknown dimension. */
#define LIST(...)                                                                                  \
    (int)(sizeof((int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t) - 1),                              \
        &((int64_t[]){0, __VA_ARGS__})[1]
#define U DIM_UNKNOWN

/* Creates a node named "n" in ONNX's default domain, in opset `version`. */
void op_case_start(op_case *k, const char *op_type, int64_t version, size_t n_inputs,
                   size_t n_outputs);
void op_case_end(op_case *k);
/* Makes input i a tensor of this shape whose elements are unknown. */
void op_case_dims(op_case *k, size_t i, clg_dtype dtype, int rank, const int64_t *dims);
/* Makes input i a list [n] whose elements are known. */
void op_case_content(op_case *k, size_t i, clg_dtype dtype, int n, const int64_t *numbers);
/* Resolves the node's operator (ops_resolve) and infers its outputs (ops_infer_node). */
clg_status op_case_infer(op_case *k);
/* Check the inferred shape, and the inferred elements, of output 0; a difference fails the test. */
void op_case_expect_dims(const op_case *k, int rank, const int64_t *dims);
void op_case_expect_content(const op_case *k, int n, const int64_t *numbers);

/* Returns a dense operand with the dtype and shape of f. */
lower_operand op_case_operand(const value_fact *f);
/* Lowers the node for kernels of the SIMT class, with the inferred outputs. */
void op_case_lower(op_case *k, const lower_operand *inputs, arena *memory, lower_context *out);

#endif
