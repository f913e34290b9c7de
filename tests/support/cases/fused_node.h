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
    tensor *outputs[POINTWISE_MAX_OUTPUTS]; /* what is right */
    double tolerance;                       /* relative, of floats */
} fused;

/* A list of n elements. */
tensor *fused_tensor(clg_dtype dtype, int64_t n);
/* The next input, a list of n elements to be filled in. */
tensor *fused_input(fused *f, clg_dtype dtype, int64_t n, pointwise_register *out);
/* The register as the next output; a list as long as input 0 to be filled in. */
tensor *fused_output(fused *f, pointwise_register r);
/* Runs everywhere and compares: integers and bool exactly, floats within the tolerance. Places
 * without double must refuse what computes in float64. Frees the tensors. */
void fused_check(fused *f);

#endif
