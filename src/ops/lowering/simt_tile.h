/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles of GEMMs for GPUs: parameters of gemm_simt, conv_simt, qgemm_simt and qconv_simt.
 */
#ifndef CLG_OPS_SIMT_TILE_H
#define CLG_OPS_SIMT_TILE_H

#include "ops/core/op.h"

/* P_WG_M, P_WG_N, P_TM, P_TN, P_TK: work-items of a group along rows and columns, results of a
 * work-item along rows and columns, depth. */
typedef struct simt_tile {
    int wg_m, wg_n, tm, tn, tk;
} simt_tile;

/* Returns whether the device allows groups of that many work-items. */
bool simt_tile_fits(const lower_context *c, const simt_tile *t);

/* Chooses the tile for m rows and n columns of results. */
simt_tile simt_tile_choose(const lower_context *c, int64_t m, int64_t n);

/* Returns whether the device allows groups of 64 work-items; otherwise the tile is one result of a
 * group of one. */
bool simt_tile_has_groups(const lower_context *c);

/* Returns smaller tiles than the chosen one, in decreasing order, for drivers that reject it. The
 * last has groups of one work-item. False where i is beyond the last. */
bool simt_tile_smaller(const lower_context *c, size_t i, simt_tile *out);

#endif
