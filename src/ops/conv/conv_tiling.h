/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the tiling of convolutions for CPUs (SIMD class): how the output is divided among
 * work-groups. Serves kernels that copy the input pixels of an output tile into a patch, a buffer
 * in private memory (cl/common/patch_simd.clh).
 */
#ifndef CLG_OPS_CONV_TILING_H
#define CLG_OPS_CONV_TILING_H

#include "ops/lowering/window.h"

/* Constants of an implementation's cost model, in cycles of one core, summed over a work-group. A
 * vector has as many lanes (elements) as the device's vectors, each lane a different output
 * pixel. */
typedef struct conv_tiling_costs {
    /* per row (two vectors) of a register tile, per slice and kernel element (tap) */
    double row_cycles;
    double register_tile_cycles; /* per register tile: clear and store its accumulators */
    double fill_vector_cycles;   /* per vector copied into the patch */
    double fill_line_cycles;     /* per line of the patch */
    double store_vector_cycles;  /* per vector of results: epilogue and store */
    double store_line_cycles;    /* per line of results of one channel */
    double group_cycles;         /* per work-group: start, and ends of its loops */
} conv_tiling_costs;

/* The sizes of a convolution and of its kernel on which the choice of a tiling depends. */
typedef struct conv_tiling_job {
    const window_axis *axes; /* three axes */
    int64_t oc;              /* output channels per group of the convolution */
    /* input planes that contribute to an output: kernel depth * input channels of a group */
    int64_t slices;
    int64_t planes; /* images * groups of the convolution */
    /* capacity of the patch and of the accumulators, in elements of private memory */
    int64_t patch, sums;
    /* rows of accumulators that the kernel needs besides one per output channel of the tile */
    int64_t spare_rows;
    /* register tile: `rows` output channels by two vectors of `lanes` pixels */
    int lanes, rows;
    const conv_tiling_costs *costs;
} conv_tiling_job;

/* A tiling: the part of the output that a work-group computes. */
typedef struct conv_tiling {
    int64_t tile_m, tiles; /* output channels of a register tile, and the number of such tiles */
    /* register tiles of a work-group; for a depthwise convolution, its channels */
    int64_t group_tiles;
    int64_t tile_h, tile_w; /* output pixels of a work-group */
    double cost;            /* estimated cycles */
} conv_tiling;

/* Returns the number of output tiles of tile_h x tile_w pixels in an image, over its whole
 * depth. */
int64_t conv_tiling_count(const window_axis axes[WINDOW_MAX_AXES], int64_t tile_h, int64_t tile_w);
/* Finds the tiling with the lowest estimated cost among those that divide the output into tiles of
 * nearly equal size. Returns false when none fits in private memory. */
bool conv_tiling_find(const lower_context *c, const conv_tiling_job *j, conv_tiling *out);
/* Finds the tiling of a depthwise convolution with oc outputs for each of n_channels input
 * channels: the largest tile whose patch fits in the L1 cache, then as many channels as fit beside
 * it and still give every compute unit several work-groups. Returns false when not even one pixel
 * fits. */
bool conv_tiling_depthwise(const lower_context *c, const conv_tiling_job *j, int64_t n_channels,
                           conv_tiling *out);

#endif
