/* SPDX-License-Identifier: Apache-2.0
 *
 * Appends the gathering of slices of a tensor by indices to the candidates of other operators.
 * Kernel: cl/movement/gather.cl.
 */
#ifndef CLG_OPS_GATHER_H
#define CLG_OPS_GATHER_H

#include "ops/core/op.h"

/* y[o, k, i] = x[o, index[k], i] with o < outer, k < picks, i < inner; all tensors are dense.
 * Indices are int32 or int64. */
typedef struct gather_rows {
    operand x, index, y;
    clg_dtype dtype, index_dtype;
    int64_t outer, axis, picks, inner; /* x is [outer, axis, inner] */
} gather_rows;

void gather_append(lower_context *c, candidate *impl, const gather_rows *r);

#endif
