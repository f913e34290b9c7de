// SPDX-License-Identifier: Apache-2.0
//
// Computes MaxPool, AveragePool and LpPool (ONNX 19) over x: [planes, D, H, W] to y: [planes, OD,
// OH, OW], W fastest. planes = N * C; pooling over one or two axes is done with the missing sizes
// 1. A NaN in the window makes the maximum NaN. Padding is excluded from maxima and Lp sums.
//
// Parameters
//   P_OP       0 maximum
//              1 average over the elements of the window inside x
//              2 average over the elements of the window inside x and its padding
//              3 Lp: (sum of |x|^p)^(1/p)
//   P_P        P_OP 3: 1 or 2 if p is 1 or 2, else 0; 0 for other P_OP
//   P_INDICES  P_OP 0: 1 also writes `indices`: where in x the first largest element is; else 0
//   P_FORM     0 items: one work-item per output. NDRange: OD*OH*OW, planes
//              1 rows: one work-item for `rows` rows of OW outputs each, P_VEC outputs at a time;
//                local size 1. The KD * KH lines of x in the window of a row are first reduced to
//                one line of (OW-1) * stride + (KW-1) * dilation + 1 elements, plus P_VEC of
//                padding; `rows` such lines must fit in P_LINE. NDRange: ceil(OD*OH / rows), planes
//              2 is pool_blocked.cl
//   P_LINE     P_FORM 1: elements of private memory for lines: 4096; else 0
//   P_T        element type, see common/number.clh; integers only with P_OP 0
//   P_VEC      lanes of a vector, see common/number.clh; 1 in P_FORM 0, at most OW in P_FORM 1
// Arguments
//   x, y     buffers of elements
//   indices  int64; NULL if P_INDICES is 0
//   for each of D, H, W: size, output size, kernel size, stride, dilation, padding at the
//   beginning, padding at the end
//   column_major  1: indices count D as the fastest dimension of a plane (MaxPool's storage_order)
//   p        exponent of Lp
//   rows     P_FORM 1: see there; at least 1
// Any dimension of the NDRange may be smaller: work-items loop.
//
// @split
// @variant P_OP=0 P_P=0 P_INDICES=0 P_FORM=0 P_LINE=0 P_T=1 P_VEC=1
// @variant P_OP=0 P_P=0 P_INDICES=1 P_FORM=0 P_LINE=0 P_T=2 P_VEC=1
// @variant P_OP=0 P_P=0 P_INDICES=0 P_FORM=1 P_LINE=4096 P_T=3 P_VEC=8
// @variant P_OP=0 P_P=0 P_INDICES=0 P_FORM=1 P_LINE=4096 P_T=1 P_VEC=16
// @variant P_OP=1 P_P=0 P_INDICES=0 P_FORM=1 P_LINE=4096 P_T=10 P_VEC=8
// @variant P_OP=2 P_P=0 P_INDICES=0 P_FORM=0 P_LINE=0 P_T=11 P_VEC=1
// @variant P_OP=2 P_P=0 P_INDICES=0 P_FORM=1 P_LINE=4096 P_T=1 P_VEC=4
// @variant P_OP=3 P_P=0 P_INDICES=0 P_FORM=1 P_LINE=4096 P_T=1 P_VEC=16
// @variant P_OP=3 P_P=1 P_INDICES=0 P_FORM=0 P_LINE=0 P_T=10 P_VEC=1
// @variant P_OP=3 P_P=2 P_INDICES=0 P_FORM=0 P_LINE=0 P_T=11 P_VEC=1

#include "common/body.clh"
#include "common/number.clh"
#include "vision/window_axis.clh"
#include "vision/pool.clh"

#if P_FORM == 0

__kernel void pool_items(POOL_PARAMS)
{
    const int outputs = od * oh * ow;
    for (int plane = get_global_id(1); plane < planes; plane += get_global_size(1))
        for (int at = get_global_id(0); at < outputs; at += get_global_size(0)) {
            const int oz = at / (oh * ow), oy = at / ow % oh, ox = at % ow;
            const window_axis az = axis_at(oz, d, kd, sd, dd, pd, pd_end);
            const window_axis ay = axis_at(oy, h, kh, sh, dh, ph, ph_end);
            const window_axis ax = axis_at(ox, w, kw, sw, dw, pw, pw_end);
            __global const elem *from = x + x_off + (long)plane * d * h * w;
            num best = START;
#if P_INDICES
            long found = -1;
#endif
            for (int kz = az.first; kz < az.last; ++kz)
                for (int ky = ay.first; ky < ay.last; ++ky) {
                    const int iz = az.start + kz * dd, iy = ay.start + ky * dh;
                    __global const elem *line = from + ((long)iz * h + iy) * w;
                    for (int kx = ax.first; kx < ax.last; ++kx) {
                        const int ix = ax.start + kx * dw;
                        const num v = LOAD1(line + ix);
#if P_OP == 0
                        int takes = TAKES(v, best);
#if P_INDICES
                        // The first element counts even when it is the lowest value of the dtype.
                        takes |= found < 0;
                        found = takes ? ((long)iz * h + iy) * w + ix : found;
#endif
                        best = takes ? v : best;
#else
                        best = fold(best, v, p);
#endif
                    }
                }
            const long to = (long)plane * outputs + at;
#if P_OP == 1 || P_OP == 2
            best /= (num)az.counted * (num)ay.counted * (num)ax.counted;
#elif P_OP == 3
            best = root(best, p);
#endif
            STORE1(best, y + y_off + to);
#if P_INDICES
            const long within =
                column_major ? (found % w * h + found / w % h) * d + found / w / h : found;
            indices[indices_off + to] = found < 0 ? -1 : (long)plane * d * h * w + within;
#endif
        }
}

#else

#define LINE_ROOM (P_LINE + 2 * P_VEC) // whole vectors may extend beyond the last line

typedef struct __attribute__((packed)) {
    vec v;
} line_vec;

// Loads the n < P_VEC elements of a line; the other lanes are START.
static inline vec load_few(__global const elem *x, const int n)
{
    vec v = START;
    num *t = (num *)&v;
    for (int i = 0; i < n; ++i) t[i] = LOAD1(x + i);
    return v;
}

// Reduces the window along D and H: line[i], i < length, becomes the result for column i - pad of
// x, or START if x has no such column.
static inline void fold_lines(num *line, __global const elem *x, const window_axis az,
                              const window_axis ay, const int dd, const int dh, const int h,
                              const int w, const int pad, const int length, const float p)
{
    const int there = clamp(length - pad, 0, w), last = max(there - P_VEC, 0);
    for (int i = 0; i < pad && i < length; i += P_VEC) ((line_vec *)(line + i))->v = START;
    for (int i = 0; i < there; i += P_VEC) {
        const int at = min(i, last); // the last vector moves back to end with the line
        vec best = START;
        for (int kz = az.first; kz < az.last; ++kz)
            for (int ky = ay.first; ky < ay.last; ++ky) {
                __global const elem *from =
                    x + ((long)(az.start + kz * dd) * h + ay.start + ky * dh) * w + at;
                best = fold(best, there < P_VEC ? load_few(from, there) : VLOAD(from), p);
            }
        ((line_vec *)(line + pad + at))->v = best;
    }
    for (int i = pad + there; i < length; i += P_VEC) ((line_vec *)(line + i))->v = START;
}

// Loads P_VEC elements `stride` apart.
static inline vec line_columns(const num *line, const int stride)
{
    if (stride == 1) return ((const line_vec *)line)->v;
    vec v;
#if P_VEC > 1
    if (stride == 2) {
        const vec low = ((const line_vec *)line)->v, high = ((const line_vec *)(line + P_VEC))->v;
        v.lo = low.even;
        v.hi = high.even;
        return v;
    }
#endif
    num *t = (num *)&v;
    for (int i = 0; i < P_VEC; ++i) t[i] = line[i * stride];
    return v;
}

// Returns, for each of P_VEC outputs from ox on, the number of elements along W that the average
// counts.
static inline vec count_columns(const int ox, const int w, const int kw, const int sw, const int dw,
                                const int pw, const int pw_end)
{
    const int start = ox * sw - pw;
    if (start >= 0 && start + (P_VEC - 1) * sw + (kw - 1) * dw < w) return (vec)(num)kw;
    vec v = (vec)(num)0;
    num *t = (num *)&v;
#if P_OP == 2
    const int low = -pw, high = w + pw_end;
#else
    const int low = 0, high = w;
#endif
    for (int kx = 0; kx < kw; ++kx) {
        for (int i = 0; i < P_VEC; ++i) {
            const int at = start + i * sw + kx * dw;
            t[i] += at >= low && at < high ? 1 : 0;
        }
    }
    return v;
}

// Reduces a line along W and stores OW outputs at y. `counted`: the number of elements along D and
// H that the average counts.
static inline void store_outputs(const num *line, __global elem *y, const num counted, const int w,
                                 const int ow, const int kw, const int sw, const int dw,
                                 const int pw, const int pw_end, const float p)
{
    for (int ox = 0; ox < ow; ox += P_VEC) {
        // The last vector is moved back to end with the row: some outputs are computed twice, with
        // the same result.
        const int at = min(ox, ow - P_VEC);
        vec best = START;
        for (int kx = 0; kx < kw; ++kx)
            best = join(best, line_columns(line + at * sw + kx * dw, sw));
#if P_OP == 1 || P_OP == 2
        best /= (vec)counted * count_columns(at, w, kw, sw, dw, pw, pw_end);
#elif P_OP == 3
        best = root(best, p);
#endif
        VSTORE(best, y + at);
    }
}

// Pools `rows` rows at a time. All lines are written before the first is read, since loading data
// just after a store of another alignment is slow.
BODY void pool_lines(BODY_PARAMS, POOL_PARAMS)
{
    num lines[LINE_ROOM];
    const int length = (ow - 1) * sw + (kw - 1) * dw + 1, pitch = length + P_VEC, all = od * oh;
    for (int plane = group0.y; plane < planes; plane += group_step.y)
        for (long first = (long)group0.x * rows; first < all; first += (long)group_step.x * rows) {
            const int row0 = (int)first, n = min(rows, all - row0);
            __global const elem *from = x + x_off + (long)plane * d * h * w;
            __global elem *to = y + y_off + ((long)plane * all + row0) * ow;
            for (int i = 0; i < n; ++i)
                fold_lines(lines + i * pitch, from,
                           axis_at((row0 + i) / oh, d, kd, sd, dd, pd, pd_end),
                           axis_at((row0 + i) % oh, h, kh, sh, dh, ph, ph_end), dd, dh, h, w, pw,
                           length, p);
            for (int i = 0; i < n; ++i) {
                num counted = 1;
#if P_OP == 1 || P_OP == 2
                counted = (num)axis_at((row0 + i) / oh, d, kd, sd, dd, pd, pd_end).counted *
                          (num)axis_at((row0 + i) % oh, h, kh, sh, dh, ph, ph_end).counted;
#endif
                store_outputs(lines + i * pitch, to + (long)i * ow, counted, w, ow, kw, sw, dw, pw,
                              pw_end, p);
            }
        }
}

WORK_GROUP_SIZE(1, 1, 1)
__kernel void pool_rows(POOL_PARAMS) { pool_lines(BODY_GROUPS, POOL_ARGS); }

#endif
