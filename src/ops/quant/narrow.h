/* SPDX-License-Identifier: Apache-2.0
 *
 * Casts from and to dtypes of one byte or less (DTYPES_NARROW), which are for storage only:
 * elements are converted by look-up tables, and are not computed with. Kernels: cl/quant/narrow.cl.
 * See docs/decisions/0022-narrow-types-are-packed.md.
 */
#ifndef CLG_OPS_NARROW_H
#define CLG_OPS_NARROW_H

#include "ops/core/op.h"

static inline bool narrow_is(clg_dtype dtype)
{
    return dtype > CLG_DTYPE_NONE && dtype < 32 && (DTYPE_BIT(dtype) & DTYPES_NARROW) != 0;
}

/* Returns whether several elements share a byte. */
static inline bool narrow_is_packed(clg_dtype dtype)
{
    return narrow_is(dtype) && dtype_find(dtype)->bits < 8;
}

/* Returns P_SATURATE of quant/narrow.clh for a node with the attribute `saturate`. */
int narrow_saturation(const node *n);
/* The words of attribute round_mode, by P_MODE of quant/narrow.clh; ends with NULL. */
extern const char *const narrow_round_modes[];

/* Lowers Cast or CastLike of input 0 to output 0, one of which is narrow. */
clg_status narrow_lower_cast(lower_context *c);

#endif
