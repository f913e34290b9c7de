/* SPDX-License-Identifier: Apache-2.0
 *
 * Divides convolutions of the SIMD class into work-groups, for kernels that copy the input pixels
 * of a tile into a patch in private memory (cl/common/patch_simd.clh).
 */
#ifndef CLG_OPS_CONV_TILING_H
#define CLG_OPS_CONV_TILING_H

#include "ops/lowering/window.h"

/* The constants of an implementation's cost model: cycles of one core, added up for a work-group.
 * A vector has the lanes of the device, each of another pixel. */
typedef struct conv_tiling_costs {
    double row_cycles;           /* of a row of a register tile, two vectors, per slice and tap */
    double register_tile_cycles; /* of a register tile: clear and store accumulators */
    double fill_vector_cycles;   /* of a vector copied into the patch */
    double fill_line_cycles;     /* of a line of the patch */
    double store_vector_cycles;  /* of a vector of results: epilogue and store */
    double store_line_cycles;    /* of a line of results of one channel */
    double group_cycles;         /* of a work-group: start, and end of its loops */
} conv_tiling_costs;

typedef struct conv_tiling_job {
    const window_axis *axes; /* three axes */
    int64_t oc;              /* output channels of a group */
    int64_t slices;          /* planes of the patch that a pixel sees */
    int64_t planes;          /* images times groups */
    int64_t patch, sums;     /* elements in private memory */
    int64_t spare_rows;      /* rows of accumulators needed besides those of channels */
    int lanes, rows;         /* of the register tile, which is two vectors across */
    const conv_tiling_costs *costs;
} conv_tiling_job;

typedef struct conv_tiling {
    int64_t tile_m, tiles;  /* channels of a register tile, and the number of such tiles */
    int64_t group_tiles;    /* register tiles of a group; of a depthwise convolution, channels */
    int64_t tile_h, tile_w; /* pixels of a group */
    double cost;            /* estimated cycles */
} conv_tiling;

/* Returns the number of pixel tiles in an image. */
int64_t conv_tiling_count(const window_axis axes[WINDOW_MAX_AXES], int64_t tile_h, int64_t tile_w);
/* Finds the cheapest tiling among those that divide evenly; false when none fits. */
bool conv_tiling_find(const lower_context *c, const conv_tiling_job *j, conv_tiling *out);
/* Finds the tiling of a depthwise convolution with oc outputs for each of n_channels: as many lines
 * as L1 holds, then as many channels; false when not even one pixel fits. */
bool conv_tiling_depthwise(const lower_context *c, const conv_tiling_job *j, int64_t n_channels,
                           conv_tiling *out);

#endif
