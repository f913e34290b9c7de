/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers for lowering: sizes of NDRanges and work-groups, vector lanes, register tiles, and
 * optional outputs.
 */
#ifndef CLG_OPS_WORK_H
#define CLG_OPS_WORK_H

#include "ops/core/op.h"

/* The largest NDRange dimension in work-items where kernels are limited: PoCL recompiles a kernel
 * for dimensions of 65,536 work-items and more. Kernels loop over the remaining work. */
#define WORK_MAX_ITEMS 65535
/* The most work-groups along the second and third dimension: what NVIDIA's GPUs accept. */
#define WORK_MAX_GROUPS 65535

/* Returns an error if the device lacks the dtype; only float64 can be missing. */
static inline clg_status work_check_dtype(const lower_context *c, clg_dtype dtype)
{
    if (dtype != CLG_FLOAT64 || c->caps->fp64) return CLG_OK;
    return lower_error(c, CLG_ERROR_UNSUPPORTED_DTYPE, "the device has no float64 arithmetic");
}

/* Returns whether the node has output i and does not omit it. */
static inline bool work_has_output(const lower_context *c, size_t i)
{
    return i < c->n_outputs && c->node->outputs[i] != VALUE_NONE;
}

/* Returns output i, or new scratch memory if the node omits this output. */
static inline operand work_output_or_scratch(lower_context *c, candidate *impl, uint32_t i,
                                             size_t size_bytes)
{
    return work_has_output(c, i) ? operand_output(i) : step_scratch(&c->build, impl, size_bytes);
}

/* Returns the number of work-items for n pieces of work in work-groups of `local`: a multiple of
 * local, 0 for no work. Limited to WORK_MAX_ITEMS in the SIMD class and on drivers with
 * QUIRK_GLOBAL_SIZE_RECOMPILES, else to 4 Mi: GPUs need many threads. */
static inline uint64_t work_items(const lower_context *c, int64_t n, uint64_t local)
{
    const bool small = c->kernel_class == CLG_KERNELS_SIMD ||
                       (c->caps->quirks & QUIRK_GLOBAL_SIZE_RECOMPILES) != 0;
    if (n <= 0) return 0;
    uint64_t max = (small ? WORK_MAX_ITEMS : (uint64_t)1 << 22) / local,
             groups = ((uint64_t)n - 1) / local + 1;
    return (groups < max ? groups : max) * local;
}

static inline int64_t work_min(int64_t a, int64_t b) { return a < b ? a : b; }

/* Returns a / b rounded up, for a >= 0 and b > 0; never overflows. */
static inline int64_t work_ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/* Returns the smallest power of two >= n, at most `max` (itself a power of two). */
static inline uint64_t work_power_of_two(int64_t n, uint64_t max)
{
    uint64_t p = 1;
    while (p < max && (int64_t)p < n) p *= 2;
    return p;
}

/* Like work_power_of_two, limited to the device's largest work-group; for kernels whose work-group
 * size is fixed at build time. */
static inline uint64_t work_local(const lower_context *c, int64_t n, uint64_t max)
{
    const uint64_t limit = c->caps->max_work_group_size;
    while (max > 1 && limit > 0 && max > limit) max /= 2;
    return work_power_of_two(n, max);
}

/* Returns the size of a work-group that processes one row of n elements together: a power of two
 * from 32 to 256, as the device allows. Smaller ones would not be faster, and each size is a
 * separate kernel. */
static inline uint64_t work_group_local(const lower_context *c, int64_t n)
{
    return work_local(c, n > 32 ? n : 32, 256);
}

/* Sets an error (SHAPE) if n exceeds INT32_MAX, the maximum of the kernels' counters. */
static inline void work_check_work(lower_context *c, const step *s, int64_t n)
{
    if (n > INT32_MAX && c->build.status == CLG_OK)
        c->build.status =
            error_set(CLG_ERROR_SHAPE, "%s counts in 32 bits, and %lld is more than that",
                      s->kernel.entry ? s->kernel.entry : "", (long long)n);
}

/* Sets an NDRange: pieces[i] pieces of work along dimension i, in work-groups of local[i] (NULL:
 * 1). Work-items are limited by work_items, and work-groups beyond the first dimension by
 * WORK_MAX_GROUPS. Kernels loop over the remaining pieces. */
static inline void work_range(lower_context *c, step *s, uint32_t n_dims, const int64_t *pieces,
                              const uint64_t *local)
{
    const uint64_t ones[3] = {1, 1, 1};
    uint64_t global[3];
    if (!local) local = ones;
    for (uint32_t i = 0; i < n_dims && i < 3; i++) {
        const uint64_t unit = local[i] ? local[i] : 1, max = WORK_MAX_GROUPS * unit;
        global[i] = work_items(c, pieces[i], unit);
        if (i > 0 && global[i] > max) global[i] = max;
    }
    step_range(&c->build, s, n_dims, global, local);
}

/* Sets a two-dimensional NDRange: n0 x n1 pieces of work in work-groups of local0 x local1. */
static inline void work_range_2d(lower_context *c, step *s, int64_t n0, uint64_t local0, int64_t n1,
                                 uint64_t local1)
{
    work_check_work(c, s, n0);
    work_check_work(c, s, n1);
    work_range(c, s, 2, (int64_t[]){n0, n1}, (uint64_t[]){local0, local1});
}

/* Sets a one-dimensional NDRange: n pieces of work in work-groups of `local`. */
static inline void work_range_1d(lower_context *c, step *s, int64_t n, uint64_t local)
{
    work_check_work(c, s, n);
    work_range(c, s, 1, &n, &local);
}

/* Sets the NDRange for n_rows rows of n pieces of work, in work-groups of 64 work-items: a power of
 * two along a row, no more than it needs, and the rest across rows. */
static inline void work_range_rows(lower_context *c, step *s, int64_t n, int64_t n_rows)
{
    const uint64_t across = work_power_of_two(n, 64);
    work_range_2d(c, s, n, across, n_rows, 64 / across);
}

/* Like work_range_2d, in three dimensions; work-groups have one work-item along the last. */
static inline void work_range_3d(lower_context *c, step *s, int64_t n0, uint64_t local0, int64_t n1,
                                 uint64_t local1, int64_t n2)
{
    work_range(c, s, 3, (int64_t[]){n0, n1, n2}, (uint64_t[]){local0, local1, 1});
}

/* Sets an NDRange of x * y * z work-groups of one work-item. */
static inline void work_groups(lower_context *c, step *s, int64_t x, int64_t y, int64_t z)
{
    work_range_3d(c, s, x, 1, y, 1, z);
}

/* Sets the NDRange of n_groups work-groups of `local` work-items; fewer where the device's limits
 * require it, and then each group processes several pieces in turn. */
static inline void work_range_groups(lower_context *c, step *s, int64_t n_groups, uint64_t local)
{
    const int64_t max = INT64_MAX / (int64_t)local, n = work_min(n_groups, max) * (int64_t)local;
    work_range(c, s, 1, &n, &local);
}

/* Returns the number of compute units of the device, at least 1: how many work-groups run
 * concurrently. */
static inline int64_t work_units(const lower_context *c)
{
    return c->caps->compute_units > 0 ? (int64_t)c->caps->compute_units : 1;
}

/* Returns P_FMA: whether fma() is an instruction. Only software renderers lack it. */
static inline int work_fma(const lower_context *c) { return !c->caps->is_software; }

/* Return the sizes of the register tile of GEMMs in the SIMD class: the number of lanes (elements)
 * of a vector, and the number of rows. The tile is two vectors wide. */
static inline int work_simd_lanes(const lower_context *c) { return caps_simd_lanes(c->caps); }
static inline int work_simd_rows(const lower_context *c)
{
    return work_simd_lanes(c) == 16 ? 12 : 6;
}

/* Returns the number of lanes (elements) of float vectors for rows of n elements: the device's
 * preferred width, or a smaller power of two that is at most n. */
static inline int work_lanes(const lower_context *c, int64_t n)
{
    int lanes = c->caps->vector_width ? (int)c->caps->vector_width : 4;
    while (lanes > 1 && lanes > n) lanes /= 2;
    return lanes;
}

#endif
