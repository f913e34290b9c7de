/* SPDX-License-Identifier: Apache-2.0
 *
 * Appends the steps of stream compaction, for NonZero, Compress and others: they count the non-zero
 * elements and write their positions. Kernels: cl/lowering/compact.cl.
 */
#ifndef CLG_OPS_COMPACT_H
#define CLG_OPS_COMPACT_H

#include "ops/core/op.h"

/* What compact_append_write writes. COMPACT_COORDINATES: the coordinates of each non-zero element.
 * COMPACT_LIST: the index of each. COMPACT_RANKS: for every element, the number of non-zero
 * elements up to and including it, minus 1. */
typedef enum compact_form { COMPACT_COORDINATES, COMPACT_LIST, COMPACT_RANKS } compact_form;

/* The input and the intermediate result of a compaction. */
typedef struct compaction {
    operand x; /* n elements of dtype, dense; NaN counts as non-zero, -0 as zero */
    clg_dtype dtype;
    int64_t n;
    /* int32 [compact_blocks(n)]: the number of non-zero elements before each block */
    operand offsets;
} compaction;

/* Returns the number of blocks into which n elements are divided, one work-group each; at least
 * one. */
int64_t compact_blocks(int64_t n);
/* Appends an exclusive prefix sum of n counts (int32) in place, and writes their total (int64, one
 * element). */
void compact_append_offsets(lower_context *c, candidate *impl, int64_t n, operand counts,
                            operand total);
/* Appends the steps that count: they fill what->offsets and write the number of non-zero elements
 * to total (int64, one element). */
void compact_append_count(lower_context *c, candidate *impl, const compaction *what, operand total);
/* Appends the step that writes the positions to y, in a layout described in the head of compact.cl;
 * to be called after compact_append_count. For COMPACT_COORDINATES, dims is the shape of x and
 * found the number of non-zero elements; otherwise they are NULL and 0. */
void compact_append_write(lower_context *c, candidate *impl, const compaction *what,
                          compact_form form, const shape *dims, int64_t found, operand y);

#endif
