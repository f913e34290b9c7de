/* SPDX-License-Identifier: Apache-2.0
 *
 * Divides the sums of a tiled matrix product or convolution on a GPU into parts (split-K), where
 * the results alone make too few work-groups to occupy the device. Each part is computed by other
 * work-groups into scratch memory; a second kernel, cl/matmul/sum_parts.cl, adds the parts in a
 * fixed order and applies the epilogue. See decision 88.
 */
#ifndef CLG_OPS_SIMT_SPLIT_H
#define CLG_OPS_SIMT_SPLIT_H

#include "ops/lowering/epilogue.h"
#include "ops/lowering/simt_tile.h"

/* Returns in how many parts to divide sums of k terms, for n_groups work-groups of tile t; 1 where
 * that does not pay. With `evenly`, the number divides k. */
int64_t simt_split_parts(const lower_context *c, const simt_tile *t, int64_t n_groups, int64_t k,
                         bool evenly);

/* The results of a product in parts: [batch][m, n], batch number z = z0 * batch_in + z1. */
typedef struct simt_split_result {
    int64_t m, n, batch, batch_in;
    operand at;
    int64_t rs, cs, b0, b1; /* strides in elements */
    epilogue_ops epilogue;
} simt_split_result;

/* Allocates scratch memory for the parts of the result, float32 [n_parts][batch][m, n], and returns
 * it. */
operand simt_split_scratch(lower_context *c, candidate *impl, const simt_split_result *r,
                           int64_t n_parts);
/* Appends the step that adds the parts and applies the epilogue. */
void simt_split_sum(lower_context *c, candidate *impl, const simt_split_result *r, operand parts,
                    int64_t n_parts);

#endif
