/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles of GEMMs for GPUs: what gemm_simt, conv_simt, qgemm_simt and qconv_simt are built with.
 */
#ifndef CLG_OPS_SIMT_TILE_H
#define CLG_OPS_SIMT_TILE_H

#include "ops/core/op.h"

/* P_WG_M, P_WG_N, P_TM, P_TN, P_TK: work-items of a group along rows and columns, results of a
 * work-item, depth. */
typedef struct simt_tile {
    int wg_m, wg_n, tm, tn, tk;
} simt_tile;

/* Whether the device takes groups of so many work-items. */
bool simt_tile_fits(const lower_context *c, const simt_tile *t);

/* The tile for m rows and n columns of results. */
simt_tile simt_tile_choose(const lower_context *c, int64_t m, int64_t n);

/* Whether it takes 64 of them: without, that tile is one result of a group of one. */
bool simt_tile_has_groups(const lower_context *c);

/* Smaller tiles than that one, in decreasing order: for drivers that refuse it. The last has
 * groups of one work-item. False where i is beyond the last. */
bool simt_tile_smaller(const lower_context *c, size_t i, simt_tile *out);

#endif
