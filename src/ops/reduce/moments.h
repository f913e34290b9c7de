/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalises channels by their mean and variance over a whole batch: MeanVarianceNormalization, and
 * BatchNormalization in training mode.
 */
#ifndef CLG_OPS_MOMENTS_H
#define CLG_OPS_MOMENTS_H

#include "ops/core/op.h"

/* P_KIND of cl/reduce/moments.cl. */
typedef enum moments_kind { MOMENTS_PLAIN, MOMENTS_BATCH } moments_kind;

/* A normalisation of x to y, both [outer, channels, inner] of input 0's dtype. MOMENTS_BATCH reads
 * inputs 1 to 4 and writes those of the outputs 1 to 4 that the node has. */
typedef struct moments_job {
    moments_kind kind;
    operand x, y;
    int64_t outer, channels, inner;
} moments_job;

/* Appends the steps of the normalisation to a candidate. */
void moments_append(lower_context *c, candidate *impl, const moments_job *j);

#endif
