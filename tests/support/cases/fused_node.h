/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one clgraph.Pointwise node, several pointwise rows in one kernel, on every test target of
 * run_node.h, and compares it with the test's expected result.
 */
#ifndef CLG_TESTS_FUSED_NODE_H
#define CLG_TESTS_FUSED_NODE_H

#include "support/cases/run_node.h"

#include "ops/pointwise/pointwise.h"
#include "tensor/tensor.h"

typedef struct fused {
    pointwise_group group;
    tensor *inputs[POINTWISE_MAX_INPUTS];   /* of the group's dtypes */
    tensor *outputs[POINTWISE_MAX_OUTPUTS]; /* expected results */
    double tolerance;                       /* relative, of floats */
} fused;

/* Creates a tensor [n]. */
tensor *fused_tensor(clg_dtype dtype, int64_t n);
/* Adds an input, a tensor [n] for the caller to fill in. */
tensor *fused_input(fused *f, clg_dtype dtype, int64_t n, pointwise_register *out);
/* Makes the register the next output; returns a tensor as long as input 0 for the expected
 * result. */
tensor *fused_output(fused *f, pointwise_register r);
/* Runs on every target and compares: integers and bool exactly, floats within the tolerance.
 * Targets without double must reject float64. Frees the tensors. */
void fused_check(fused *f);

#endif
