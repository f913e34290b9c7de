/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts non-zero elements and writes their positions, as steps of a larger operator. See
 * cl/lowering/compact.cl.
 */
#ifndef CLG_OPS_COMPACT_H
#define CLG_OPS_COMPACT_H

#include "ops/core/op.h"

typedef enum compact_form { COMPACT_COORDINATES, COMPACT_LIST, COMPACT_RANKS } compact_form;

typedef struct compaction {
    operand x; /* n elements of dtype, dense; a NaN is not zero, -0 is */
    clg_dtype dtype;
    int64_t n;
    operand offsets; /* int32 [compact_blocks(n)] */
} compaction;

/* Returns the number of blocks into which n elements are divided; at least one. */
int64_t compact_blocks(int64_t n);
/* Appends a prefix sum: replaces counts (int32) by the start of each, and writes their sum to total
 * (int64). */
void compact_append_offsets(lower_context *c, candidate *impl, int64_t n, operand counts,
                            operand total);
/* Appends the steps that fill offsets, and total: int64, one element. */
void compact_append_count(lower_context *c, candidate *impl, const compaction *what, operand total);
/* Appends the step that writes y, in the form described in the kernel's head; after
 * compact_append_count. dims, found: for COMPACT_COORDINATES, else NULL, 0. */
void compact_append_write(lower_context *c, candidate *impl, const compaction *what,
                          compact_form form, const shape *dims, int64_t found, operand y);

#endif
