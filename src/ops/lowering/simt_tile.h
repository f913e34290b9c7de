/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the tile sizes of tiled matrix-product kernels for GPUs: gemm_simt, conv_simt, qgemm_simt
 * and qconv_simt.
 */
#ifndef CLG_OPS_SIMT_TILE_H
#define CLG_OPS_SIMT_TILE_H

#include "ops/core/op.h"

/* P_WG_M, P_WG_N: work-items of a work-group along rows and columns; P_TM, P_TN: results of a
 * work-item along rows and columns; P_TK: depth (k) of a tile in local memory. P_QUADS: four
 * adjacent elements of local memory are read at a time (floats; kernels of bytes always do). */
typedef struct simt_tile {
    int wg_m, wg_n, tm, tn, tk;
    bool quads;
} simt_tile;

/* Returns whether the device allows work-groups of wg_m * wg_n work-items, and has local memory for
 * tiles of floats. */
bool simt_tile_fits(const lower_context *c, const simt_tile *t);

/* Chooses the tile for m rows and n columns of results. */
simt_tile simt_tile_choose(const lower_context *c, int64_t m, int64_t n);

/* Other tiles than the chosen one, for candidates that only measurements choose (cltool tune): with
 * reads of four elements; of 64 results a work-item, for more than 64 rows and columns. Return
 * false where there is none or the device does not allow it. */
bool simt_tile_quads(const lower_context *c, const simt_tile *chosen, simt_tile *out);
bool simt_tile_large(const lower_context *c, const simt_tile *chosen, int64_t m, int64_t n,
                     simt_tile *out);

/* Returns whether the device allows work-groups of 64 work-items with their tiles; otherwise
 * simt_tile_choose returns a tile of one result, computed by a work-group of one. */
bool simt_tile_has_groups(const lower_context *c);

/* Sets the i-th fallback tile, smaller than the chosen one, for drivers that reject it. Tiles
 * decrease; the last has work-groups of one work-item. Returns false where i is beyond the last. */
bool simt_tile_smaller(const lower_context *c, size_t i, simt_tile *out);

#endif
