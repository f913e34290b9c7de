/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a clgraph.Pointwise node, which computes several pointwise operators in one kernel, on every
 * test target of run_node.h, and compares its outputs with the test's expected results.
 */
#ifndef CLG_TESTS_FUSED_NODE_H
#define CLG_TESTS_FUSED_NODE_H

#include "support/cases/run_node.h"

#include "ops/pointwise/pointwise.h"
#include "tensor/tensor.h"

typedef struct fused {
    pointwise_group group;
    tensor *inputs[POINTWISE_MAX_INPUTS];   /* of the dtypes of the group's inputs */
    tensor *outputs[POINTWISE_MAX_OUTPUTS]; /* expected results */
    double tolerance;                       /* relative tolerance of floats */
} fused;

/* Creates a tensor of shape [n]. */
tensor *fused_tensor(clg_dtype dtype, int64_t n);
/* Adds an input of shape [n] to the group. Returns its tensor, for the caller to fill in, and its
 * register. */
tensor *fused_input(fused *f, clg_dtype dtype, int64_t n, pointwise_register *out);
/* Makes register r the next output of the group. Returns a tensor with the length of input 0, for
 * the caller to fill in with the expected result. */
tensor *fused_output(fused *f, pointwise_register r);
/* Runs the node on every target and compares: integers and bool exactly, floats within the
 * tolerance. Targets without fp64 must reject float64. Frees the tensors. */
void fused_check(fused *f);

#endif
