// SPDX-License-Identifier: Apache-2.0
//
// Computes MaxPool, AveragePool and LpPool (ONNX 19) where elements of a vector are never in the
// same window: the window has one element along W, stride 1 and no padding there, and W has P_VEC
// elements. So are feature maps in blocks of P_VEC channels, [planes, height, width, P_VEC], which
// are pooled along D and H.
//
// A row of outputs (OH vectors) is computed in strips. The KD lines of x that a strip sees are
// first reduced to one line in private memory, and then the KH vectors of each output in that line.
// With windows of 3 x 3 that is 7 accesses for each output, not 10.
//
// Maxima are first computed by comparisons that may lose a NaN, together with the sum of all
// elements. If that is NaN, they are computed again by comparisons that keep it.
//
// Parameters
//   P_OP, P_P, P_T, P_VEC    as in pool.cl
//   P_FORM, P_INDICES        2 and 0
//   P_LINE  elements of private memory for a line: 4096; at least ((KH-1) * dilation + 1) * P_VEC
// Arguments: as in pool.cl; `indices` and column_major are not used
// NDRange: ceil(OD / rows), planes; local size 1. Each dimension may be smaller: kernels loop over
// the rest.
//
// @split
// @cpu
// @variant P_OP=0 P_P=0 P_INDICES=0 P_FORM=2 P_LINE=4096 P_T=1 P_VEC=16
// @variant P_OP=0 P_P=0 P_INDICES=0 P_FORM=2 P_LINE=4096 P_T=3 P_VEC=8
// @variant P_OP=1 P_P=0 P_INDICES=0 P_FORM=2 P_LINE=4096 P_T=10 P_VEC=8
// @variant P_OP=2 P_P=0 P_INDICES=0 P_FORM=2 P_LINE=4096 P_T=1 P_VEC=4
// @variant P_OP=3 P_P=2 P_INDICES=0 P_FORM=2 P_LINE=4096 P_T=1 P_VEC=16

#include "common/body.clh"
#include "common/number.clh"
#include "vision/window_axis.clh"
#include "vision/pool.clh"

#define MAY_LOSE_NAN (P_OP == 0 && NUM_FLOAT)

// Returns best joined with v. keeps_nan: 0 lets a maximum lose a NaN, for one instruction.
static inline vec join_element(const vec best, const vec v, const int keeps_nan)
{
#if MAY_LOSE_NAN
    if (!keeps_nan) return v > best ? v : best;
#endif
    return join(best, v);
}

// Reduces the window along D: line[i], i < n, becomes the result for column i of x, of which lines
// are `pitch` elements apart. Returns whether x may have a NaN there, unless keeps_nan.
static inline __attribute__((always_inline)) int
reduce_lines(vec *line, __global const elem *x, const long pitch, const window_axis az,
             const int dd, const int n, const float p, const int keeps_nan)
{
    vec sum = (vec)(num)0;
    x += (az.start + az.first * dd) * pitch;
    for (int i = 0; i < n; ++i, x += P_VEC) {
        __global const elem *from = x;
        vec best = START;
        for (int k = az.first; k < az.last; ++k, from += dd * pitch) {
            const vec v = VLOAD(from);
            best = join_element(best, power(v, p), keeps_nan);
#if MAY_LOSE_NAN
            if (!keeps_nan) sum += v;
#endif
        }
        line[i] = best;
    }
    int has_nan = 0;
#if MAY_LOSE_NAN
    const num *t = (const num *)&sum;
    for (int i = 0; i < P_VEC; ++i) has_nan |= t[i] != t[i];
#endif
    return has_nan;
}

// Reduces the line along H, whose first vector is column `first` of x, and stores n outputs from
// output o on at y. counted: the number of elements along D that the average counts.
static inline __attribute__((always_inline)) void
store_outputs(const vec *line, const int first, __global elem *y, const int o, const int n,
              const int counted, const int h, const int kh, const int sh, const int dh,
              const int ph, const int ph_end, const float p, const int keeps_nan)
{
    for (int i = 0; i < n; ++i) {
        const window_axis ay = axis_at(o + i, h, kh, sh, dh, ph, ph_end);
        const vec *from = line + (ay.start + ay.first * dh - first);
        vec best = START;
        for (int k = ay.first; k < ay.last; ++k, from += dh)
            best = join_element(best, *from, keeps_nan);
#if P_OP == 1 || P_OP == 2
        best /= (vec)((num)counted * (num)ay.counted);
#elif P_OP == 3
        best = root(best, p);
#endif
        VSTORE(best, y + (long)i * P_VEC);
    }
}

BODY void pool_strips(BODY_PARAMS, POOL_PARAMS)
{
    vec line[P_LINE / P_VEC];
    // the outputs of a strip, whose windows fit in the line
    const int strip = (P_LINE / P_VEC - (kh - 1) * dh - 1) / sh + 1;
    const long pitch = (long)h * P_VEC;
    for (int plane = group0.y; plane < planes; plane += group_step.y)
        for (long part = (long)group0.x * rows; part < od; part += (long)group_step.x * rows)
            for (int row = (int)part; row < min(part + rows, (long)od); ++row) {
                const window_axis az = axis_at(row, d, kd, sd, dd, pd, pd_end);
                __global const elem *from = x + x_off + (long)plane * d * pitch;
                __global elem *to = y + y_off + ((long)plane * od + row) * oh * P_VEC;
                for (int o = 0; o < oh; o += strip) {
                    const int n = min(strip, oh - o);
                    const int first = max(o * sh - ph, 0);
                    const int last = min((o + n - 1) * sh - ph + (kh - 1) * dh + 1, h);
                    __global const elem *strip_x = from + (long)first * P_VEC;
                    __global elem *strip_y = to + (long)o * P_VEC;
                    if (reduce_lines(line, strip_x, pitch, az, dd, last - first, p, 0)) {
                        reduce_lines(line, strip_x, pitch, az, dd, last - first, p, 1);
                        store_outputs(line, first, strip_y, o, n, az.counted, h, kh, sh, dh, ph,
                                      ph_end, p, 1);
                    } else {
                        store_outputs(line, first, strip_y, o, n, az.counted, h, kh, sh, dh, ph,
                                      ph_end, p, 0);
                    }
                }
            }
}

WORK_GROUP_SIZE(1, 1, 1)
__kernel void pool_blocked(POOL_PARAMS) { pool_strips(BODY_GROUPS, POOL_ARGS); }
