// SPDX-License-Identifier: Apache-2.0
//
// Computes GridSample (ONNX 16, 20, 22), which samples images at the positions that a tensor gives,
// and AffineGrid (ONNX 20), which computes such positions.
//
// Parameters
//   P_AXES   spatial axes: 1, 2, 3
//   P_MODE   0 nearest (half to even), 1 linear, 2 cubic (a = -0.75)
//   P_PAD    values outside of the image (padding_mode): 0 zeros, 1 the nearest border element,
//            2 reflection
//   P_BLOCK  points per work-item, whose positions it computes once for all its channels: SIMD
//            class 16, SIMT class 1
//   P_G      dtype of the grid, by its ONNX number: 1, 10 or 11
//   P_T      dtype of x and y, see common/number.clh. Arithmetic is in double if P_T or P_G is 11,
//            else in float
//   P_VEC    1
// grid_sample  y[b, c, p] = x[b, c] sampled at grid[b, p], whose coordinates are in the order x, y,
//   z. A NaN in the grid counts as -1.
//   Arguments: x [batch, channels, d, h, w], grid [batch, points, P_AXES], y [batch, channels,
//   points]; batch, channels, points; parts: number of parts that the channels are divided into;
//   per_part: channels of a part; d, h, w: sizes of the image, the leading ones 1 if P_AXES is less
//   than 3; align: ONNX's align_corners.
//   NDRange: points / P_BLOCK, batch * parts.
// affine_grid  y[b, z, y, x, :] = theta[b] * (x, y, z, 1)^T, with coordinates from -1 to 1. P_AXES
//   is 2 (without z) or 3.
//   Arguments: theta [batch, P_AXES, P_AXES + 1], y; batch, d, h, w, align.
//   NDRange: d * h * w, batch.
// Any dimension of the NDRange may be smaller: work-items loop.
//
// @variant P_AXES=2 P_MODE=1 P_PAD=0 P_BLOCK=16 P_G=1 P_T=1 P_VEC=1
// @variant P_AXES=3 P_MODE=2 P_PAD=2 P_BLOCK=16 P_G=1 P_T=10 P_VEC=1
// @variant P_AXES=1 P_MODE=0 P_PAD=1 P_BLOCK=1 P_G=10 P_T=7 P_VEC=1
// @variant P_AXES=2 P_MODE=2 P_PAD=1 P_BLOCK=1 P_G=11 P_T=1 P_VEC=1
// @variant P_AXES=3 P_MODE=1 P_PAD=2 P_BLOCK=1 P_G=1 P_T=11 P_VEC=1
#pragma OPENCL FP_CONTRACT OFF
#include "common/number.clh"

#if P_T == 11 || P_G == 11
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double real;
#else
typedef float real;
#endif

#if P_G == 11
typedef double grid_elem;
#define LOAD_GRID(p) (*(p))
#elif P_G == 10
typedef half grid_elem;
#define LOAD_GRID(p) HALF_LOAD(p)
#else
typedef float grid_elem;
#define LOAD_GRID(p) (*(p))
#endif

#if P_MODE == 0
#define TAPS 1
#elif P_MODE == 1
#define TAPS 2
#else
#define TAPS 4
#endif
#if P_AXES == 1
#define COMBINATIONS TAPS
#elif P_AXES == 2
#define COMBINATIONS (TAPS * TAPS)
#else
#define COMBINATIONS (TAPS * TAPS * TAPS)
#endif

// Returns x reflected at low and high as often as needed to be between them.
static inline real reflect(const real x, const real low, const real high)
{
    const real span = high - low;
    if (!(span > 0)) return low;
    real t = x - low;
    t -= floor(t / (2 * span)) * (2 * span);
    t = t > span ? 2 * span - t : t;
    return low + clamp(t, (real)0, span);
}

// Maps index i to 0 .. n - 1, for an axis of length n, by P_PAD; -1 if the element counts as zero.
static inline int element(const int i, const int n, const int align)
{
    if (i >= 0 && i < n) return i;
#if P_PAD == 0
    return -1;
#elif P_PAD == 1
    return clamp(i, 0, n - 1);
#else
    const int period = align ? 2 * (n - 1) : 2 * n;
    if (period == 0) return 0;
    const int rest = i % period, m = rest < 0 ? rest + period : rest;
    return m < n ? m : align ? period - m : period - 1 - m;
#endif
}

#define PLACE(a, t, i) (((a)*TAPS + (t)) * P_BLOCK + (i))

// Computes the input elements (taps) for grid coordinate `given` on an axis of length n: tap t has
// offset at[to + t * P_BLOCK] (index * stride, or -1 for a zero) and weight[to + t * P_BLOCK].
static inline void place(const real given, const int n, const int stride, const int align, int *at,
                         real *weight, const int to)
{
    const real g = given == given ? given : -1;
    real x = align ? (g + 1) / 2 * (real)(n - 1) : ((g + 1) * (real)n - 1) / 2;
#if P_MODE == 0
    x = rint(x);
#endif
    const real low = align ? (real)0 : (real)-0.5f, high = (real)(n - 1) - low;
    if (x < low || x > high) {
#if P_PAD == 1
        x = clamp(x, (real)0, (real)(n - 1));
#elif P_PAD == 2
        x = reflect(x, low, high);
#endif
    }
    // Clamped to fit an int; positions outside of the image stay outside.
    x = clamp(x, (real)-1e9f, (real)1e9f);
#if P_MODE == 0
    const int first = (int)rint(x);
    weight[to] = 1;
#else
    const real below = floor(x), f = x - below;
#if P_MODE == 1
    const int first = (int)below;
    weight[to] = 1 - f;
    weight[to + P_BLOCK] = f;
#else
    const int first = (int)below - 1;
    const real a = (real)-0.75f, e = 1 - f;
    weight[to] = ((a * (f + 1) - 5 * a) * (f + 1) + 8 * a) * (f + 1) - 4 * a;
    weight[to + P_BLOCK] = ((a + 2) * f - (a + 3)) * f * f + 1;
    weight[to + 2 * P_BLOCK] = ((a + 2) * e - (a + 3)) * e * e + 1;
    weight[to + 3 * P_BLOCK] = ((a * (e + 1) - 5 * a) * (e + 1) + 8 * a) * (e + 1) - 4 * a;
#endif
#endif
    for (int t = 0; t < TAPS; ++t) {
        const int i = element(first + t, n, align);
        at[to + t * P_BLOCK] = i < 0 ? -1 : i * stride;
    }
}

__kernel void grid_sample(__global const elem *x, const long x_off, __global const grid_elem *grid,
                          const long grid_off, __global elem *y, const long y_off, const int batch,
                          const int channels, const int points, const int parts, const int per_part,
                          const int d, const int h, const int w, const int align)
{
    const int sizes[3] = {d, h, w}, strides[3] = {h * w, w, 1};
    const long plane = (long)d * h * w;
    for (int row = get_global_id(1); row < batch * parts; row += get_global_size(1))
        for (int start = (int)get_global_id(0) * P_BLOCK; start < points;
             start += (int)get_global_size(0) * P_BLOCK) {
            const int b = row / parts, begin = row % parts * per_part,
                      end = min(begin + per_part, channels);
            const int count = min(P_BLOCK, points - start);
            // Axis a, tap t of point i has index PLACE(a, t, i).
            int at[P_AXES * TAPS * P_BLOCK];
            real weight[P_AXES * TAPS * P_BLOCK];
            for (int i = 0; i < P_BLOCK; ++i) {
                const long p = (long)b * points + min(start + i, points - 1);
                for (int a = 0; a < P_AXES; ++a) {
                    const real g = LOAD_GRID(grid + grid_off + p * P_AXES + (P_AXES - 1 - a));
                    const int axis = a + 3 - P_AXES;
                    place(g, sizes[axis], strides[axis], align, at, weight, PLACE(a, 0, i));
                }
            }
            for (int c = begin; c < end; ++c) {
                __global const elem *from = x + x_off + ((long)b * channels + c) * plane;
                __global elem *to = y + y_off + ((long)b * channels + c) * points + start;
#if P_MODE == 0
                num sum[P_BLOCK];
#else
                real sum[P_BLOCK];
#endif
                for (int i = 0; i < P_BLOCK; ++i) sum[i] = 0;
                for (int k = 0; k < COMBINATIONS; ++k)
                    for (int i = 0; i < P_BLOCK; ++i) {
                        int sign = at[PLACE(0, k % TAPS, i)], offset = sign;
                        real by = weight[PLACE(0, k % TAPS, i)];
#if P_AXES > 1
                        offset += at[PLACE(1, k / TAPS % TAPS, i)];
                        sign |= at[PLACE(1, k / TAPS % TAPS, i)];
                        by *= weight[PLACE(1, k / TAPS % TAPS, i)];
#endif
#if P_AXES > 2
                        offset += at[PLACE(2, k / (TAPS * TAPS), i)];
                        sign |= at[PLACE(2, k / (TAPS * TAPS), i)];
                        by *= weight[PLACE(2, k / (TAPS * TAPS), i)];
#endif
                        const num v = LOAD1(from + (sign < 0 ? 0 : offset));
#if P_MODE == 0
                        sum[i] = sign < 0 ? (num)0 : v;
#else
                        sum[i] += sign < 0 ? (real)0 : by * (real)v;
#endif
                    }
                for (int i = 0; i < count; ++i) STORE1((num)sum[i], to + i);
            }
        }
}

#if NUM_FLOAT && P_AXES > 1

static inline num normalised(const int i, const int n, const int align)
{
    if (align) return n > 1 ? (num)-1 + (num)i * ((num)2 / (num)(n - 1)) : (num)-1;
    return (num)(2 * i + 1 - n) / (num)n;
}

__kernel void affine_grid(__global const elem *theta, const long theta_off, __global elem *y,
                          const long y_off, const int batch, const int d, const int h, const int w,
                          const int align)
{
    const int places = d * h * w;
    for (int b = get_global_id(1); b < batch; b += get_global_size(1))
        for (int i = get_global_id(0); i < places; i += get_global_size(0)) {
            const num at[3] = {normalised(i % w, w, align), normalised(i / w % h, h, align),
                               normalised(i / (h * w), d, align)};
            for (int r = 0; r < P_AXES; ++r) {
                __global const elem *row =
                    theta + theta_off + ((long)b * P_AXES + r) * (P_AXES + 1);
                num sum = LOAD1(row + P_AXES);
                for (int k = 0; k < P_AXES; ++k) sum += LOAD1(row + k) * at[k];
                STORE1(sum, y + y_off + ((long)b * places + i) * P_AXES + r);
            }
        }
}

#endif
