/* SPDX-License-Identifier: Apache-2.0
 *
 * Counting elements that are not zero and writing down where they are, as steps of a larger
 * operator. See cl/lowering/compact.cl.
 */
#ifndef CLG_OPS_COMPACT_H
#define CLG_OPS_COMPACT_H

#include "ops/core/op.h"

typedef enum compact_form { COMPACT_COORDINATES, COMPACT_LIST, COMPACT_RANKS } compact_form;

typedef struct compaction {
    operand x; /* n elements of dtype, dense; a NaN is not zero, -0 is */
    clg_dtype dtype;
    int64_t n;
    operand offsets; /* int32, compact_blocks(n) of them */
} compaction;

/* How many blocks n elements are divided into; at least one. */
int64_t compact_blocks(int64_t n);
/* Counts to where each begins, and their sum: int32 in place, int64. */
void compact_append_offsets(lower_context *c, candidate *impl, int64_t n, operand counts,
                            operand total);
/* Fills offsets, and total: int64, one element. */
void compact_append_count(lower_context *c, candidate *impl, const compaction *what, operand total);
/* After that: writes y, as the kernel's head says of the form. dims, found: of
 * COMPACT_COORDINATES, else NULL, 0. */
void compact_append_write(lower_context *c, candidate *impl, const compaction *what,
                          compact_form form, const shape *dims, int64_t found, operand y);

#endif
