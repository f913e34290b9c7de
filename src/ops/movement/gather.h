/* SPDX-License-Identifier: Apache-2.0
 *
 * Gathers rows by indices, as a step of a larger operator. See cl/movement/gather.cl.
 */
#ifndef CLG_OPS_GATHER_H
#define CLG_OPS_GATHER_H

#include "ops/core/op.h"

/* y[o, k, i] = x[o, index[k], i], all dense; indices are int32 or int64. */
typedef struct gather_rows {
    operand x, index, y;
    clg_dtype dtype, index_dtype;
    int64_t outer, axis, picks, inner; /* axis: length of the dimension that is picked from */
} gather_rows;

void gather_append(lower_context *c, candidate *impl, const gather_rows *r);

#endif
