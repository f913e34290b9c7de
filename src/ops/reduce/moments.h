/* SPDX-License-Identifier: Apache-2.0
 *
 * Appends the normalisation of channels by their mean and variance over the whole batch to a
 * candidate: for MeanVarianceNormalization, and for BatchNormalization in training mode.
 */
#ifndef CLG_OPS_MOMENTS_H
#define CLG_OPS_MOMENTS_H

#include "ops/core/op.h"

/* P_KIND of cl/reduce/moments.cl: MeanVarianceNormalization, BatchNormalization. */
typedef enum moments_kind { MOMENTS_PLAIN, MOMENTS_BATCH } moments_kind;

/* A normalisation of x to y, both dense [outer, channels, inner] with the dtype of input 0.
 * MOMENTS_BATCH also reads inputs 1 to 4 of BatchNormalization, and writes its outputs 1 to 4 as
 * far as the node has them. is_sample: the new running variance is of the sample, with n - 1 in
 * place of n. */
typedef struct moments_job {
    moments_kind kind;
    operand x, y;
    int64_t outer, channels, inner;
    bool is_sample;
} moments_job;

/* Appends the steps of the normalisation to a candidate. */
void moments_append(lower_context *c, candidate *impl, const moments_job *j);

/* Returns whether a BatchNormalization has outputs that only training has. */
bool norm_asks_for_statistics(const node *n);
/* Returns whether a BatchNormalization is in training mode: by training_mode from opset 14 on;
 * before that, by its outputs. clgraph.BatchNormTrain always is. */
bool norm_batch_trains(const node *n);
/* Returns whether the stash_type of a GroupNormalization is narrower than its input, of this dtype
 * (NONE: unknown): such a node is decomposed (passes/decompose/pass_stash.c). */
bool norm_stash_rounds(const node *n, clg_dtype dtype);

#endif
