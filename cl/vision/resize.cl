// SPDX-License-Identifier: Apache-2.0
//
// Computes Resize (ONNX 19) along one to three adjacent axes of x: [outer, A0, A1, A2, inner], in
// two steps. `resize_table` computes, for one axis, the first input element (tap) of each output
// and the weights of its taps; `resize_gather` applies the tables of all axes. Axes that are not
// adjacent are resized in separate passes.
//
// The input position of output `o` of an axis is (o * step + shift) / unit, a fraction of integers.
// It is exact if the scale is a ratio of sizes or a simple fraction, so that no rounding error
// selects the wrong pixel.
//
// Parameters
//   P_MODE    0 nearest, 1 linear, 2 cubic
//   P_AXES    resized axes: 1: A2, 2: A1 and A2, 3: A0, A1 and A2; the other ones have size 1
//   P_NEAREST nearest: 0 round_prefer_floor, 1 round_prefer_ceil, 2 floor, 3 ceil; else 0
//   P_EXCLUDE 1: taps outside of the input have weight 0 (exclude_outside)
//   P_BORDER  1: outputs whose position is outside of the input get the extrapolation value
//   P_T       element type, see common/number.clh; weights are double for double, else float
//   P_VEC     1
// resize_table NDRange: outputs. resize_gather NDRange: A2' * inner, outer * A0' * A1', where A'
// are the sizes of y. Any dimension may be smaller: work-items loop.
//
// @split
// @variant P_MODE=0 P_AXES=1 P_NEAREST=0 P_EXCLUDE=0 P_BORDER=0 P_T=1 P_VEC=1
// @variant P_MODE=0 P_AXES=2 P_NEAREST=1 P_EXCLUDE=0 P_BORDER=1 P_T=2 P_VEC=1
// @variant P_MODE=0 P_AXES=3 P_NEAREST=2 P_EXCLUDE=0 P_BORDER=0 P_T=7 P_VEC=1
// @variant P_MODE=0 P_AXES=2 P_NEAREST=3 P_EXCLUDE=0 P_BORDER=0 P_T=10 P_VEC=1
// @variant P_MODE=1 P_AXES=1 P_NEAREST=0 P_EXCLUDE=0 P_BORDER=1 P_T=1 P_VEC=1
// @variant P_MODE=1 P_AXES=2 P_NEAREST=0 P_EXCLUDE=1 P_BORDER=0 P_T=2 P_VEC=1
// @variant P_MODE=1 P_AXES=3 P_NEAREST=0 P_EXCLUDE=0 P_BORDER=0 P_T=10 P_VEC=1
// @variant P_MODE=2 P_AXES=2 P_NEAREST=0 P_EXCLUDE=1 P_BORDER=1 P_T=11 P_VEC=1

#include "common/number.clh"

#if P_T == 11
typedef double weight;
#else
typedef float weight;
#endif

#define OUTSIDE INT_MIN

// Returns the weight of a tap at distance t from the sampling position; cubic_a: ONNX's
// cubic_coeff_a.
static inline weight tap_weight(weight t, const weight cubic_a)
{
    t = fabs(t);
#if P_MODE == 2
    if (t < 1) return ((cubic_a + 2) * t - (cubic_a + 3)) * t * t + 1;
    if (t < 2) return ((t - 5) * t + 8) * t * cubic_a - 4 * cubic_a;
    return 0;
#else
    return t < 1 ? 1 - t : 0;
#endif
}

// firsts: [outputs], the index of each output's first tap; it may be outside of the input; OUTSIDE
//   means that the output gets the extrapolation value
// weights: [outputs, taps]; NULL for nearest
// size: elements of the input axis
// before: number of taps before floor(position)
// step, shift, unit: see the head
// shrink: factor of distances: the scale when antialiasing, else 1
// renormalise: 1 scales the weights of an output to sum 1
__kernel void resize_table(__global int *firsts, const long firsts_off, __global weight *weights,
                           const long weights_off, const int size, const int outputs,
                           const int taps, const int before, const long step, const long shift,
                           const long unit, const float shrink, const float cubic_a,
                           const int renormalise)
{
    for (int o = get_global_id(0); o < outputs; o += get_global_size(0)) {
        const long place = o * step + shift;
        long below = place / unit, rest = place % unit;
        if (rest < 0) {
            below -= 1;
            rest += unit;
        }
        const int base = (int)clamp(below, (long)-size - taps - 2, (long)size * 2 + taps + 2);
#if P_BORDER
        const int outside = place < 0 || below >= size || (below == size - 1 && rest > 0);
#else
        const int outside = 0;
#endif
#if P_MODE == 0
#if P_NEAREST == 0
        const int up = rest > unit - rest;
#elif P_NEAREST == 1
        const int up = rest >= unit - rest;
#elif P_NEAREST == 2
        const int up = 0;
#else
        const int up = rest > 0;
#endif
        firsts[firsts_off + o] = outside ? OUTSIDE : clamp(base + up, 0, size - 1);
#else
        const int first = base - before;
        const weight fraction = (weight)rest / (weight)unit;
        __global weight *to = weights + weights_off + (long)o * taps;
        weight total = 0;
        for (int i = 0; i < taps; ++i) {
            weight w = tap_weight(((weight)(i - before) - fraction) * (weight)shrink, cubic_a);
#if P_EXCLUDE
            w = first + i >= 0 && first + i < size ? w : 0;
#endif
            to[i] = w;
            total += w;
        }
        if (renormalise)
            for (int i = 0; i < taps; ++i) to[i] /= total;
        firsts[firsts_off + o] = outside ? OUTSIDE : first;
#endif
    }
}

// Weighted sums of integers are computed in float, then truncated with saturation.
#if P_MODE == 0 || NUM_FLOAT
typedef num result;
#define STORE_RESULT(v, to) STORE1(v, to)
#else
typedef float result;
#define STORE_RESULT(v, to) STORE1(CAT(CAT(convert_, ELEM), _sat_rtz)(v), to)
#endif

// Returns the index of tap i, clamped to the axis.
#define TAP(first, i, size) clamp(first + i, 0, size - 1)

// Returns the sum of the taps of A2, times their weights w, in the line at `from`.
static inline result gather_line(__global const elem *from, const int first,
                                 __global const weight *w, const int taps, const int size,
                                 const int inner)
{
    result total = 0;
    for (int i = 0; i < taps; ++i) {
        const result v = LOAD1(from + (long)TAP(first, i, size) * inner);
        // Skips weights of 0, since 0 * inf would be NaN.
        total += w[i] == 0 ? 0 : w[i] * v;
    }
    return total;
}

// firsts, weights: the tables of the resized axes, one after the other: of A0 if P_AXES is 3, of A1
//   if it is 2 or 3, of A2
// a0..a2: sizes in x; o0..o2: sizes in y; t0..t2: numbers of taps
__kernel void resize_gather(__global const elem *x, const long x_off, __global elem *y,
                            const long y_off, __global const int *firsts, const long firsts_off,
                            __global const weight *weights, const long weights_off, const int outer,
                            const int a0, const int a1, const int a2, const int o0, const int o1,
                            const int o2, const int t0, const int t1, const int t2, const int inner,
                            const float extrapolation)
{
    firsts += firsts_off;
    weights += weights_off;
#if P_AXES == 3
    __global const int *firsts1 = firsts + o0, *firsts2 = firsts1 + o1;
    __global const weight *weights1 = weights + o0 * t0, *weights2 = weights1 + o1 * t1;
#elif P_AXES == 2
    __global const int *firsts1 = firsts, *firsts2 = firsts + o1;
    __global const weight *weights1 = weights, *weights2 = weights + o1 * t1;
#else
    __global const int *firsts2 = firsts;
    __global const weight *weights2 = weights;
#endif
    const long lines = (long)outer * o0 * o1;
    for (long line = get_global_id(1); line < lines; line += get_global_size(1)) {
        const int y1 = line % o1, y0 = line / o1 % o0;
        __global const elem *from = x + x_off + line / o1 / o0 * a0 * a1 * a2 * inner;
        __global elem *to = y + y_off + line * o2 * inner;
        const long stride1 = (long)a2 * inner, stride0 = stride1 * a1;
#if P_AXES == 3
        const int first0 = firsts[y0];
#endif
#if P_AXES >= 2
        const int first1 = firsts1[y1];
#endif
        for (int at = get_global_id(0); at < o2 * inner; at += get_global_size(0)) {
            const int y2 = at / inner, i = at % inner, first2 = firsts2[y2];
            result v = 0;
#if P_MODE == 0
            long place = (long)first2 * inner + i;
#if P_AXES >= 2
            place += first1 * stride1;
#endif
#if P_AXES == 3
            place += first0 * stride0;
#endif
#endif
#if P_BORDER
            int outside = first2 == OUTSIDE;
#if P_AXES >= 2
            outside |= first1 == OUTSIDE;
#endif
#if P_AXES == 3
            outside |= first0 == OUTSIDE;
#endif
            if (outside)
                v = (result)extrapolation;
            else
#endif
#if P_MODE == 0
                v = LOAD1(from + place);
#elif P_AXES == 1
            v = gather_line(from + i, first2, weights2 + y2 * t2, t2, a2, inner);
#elif P_AXES == 2
            for (int j = 0; j < t1; ++j) {
                const weight w = weights1[y1 * t1 + j];
                if (w != 0)
                    v += w * gather_line(from + i + TAP(first1, j, a1) * stride1, first2,
                                         weights2 + y2 * t2, t2, a2, inner);
            }
#else
            for (int k = 0; k < t0; ++k)
                for (int j = 0; j < t1; ++j) {
                    const weight w = weights[y0 * t0 + k] * weights1[y1 * t1 + j];
                    if (w != 0)
                        v += w * gather_line(from + i + TAP(first0, k, a0) * stride0 +
                                                 TAP(first1, j, a1) * stride1,
                                             first2, weights2 + y2 * t2, t2, a2, inner);
                }
#endif
            STORE_RESULT(v, to + at);
        }
    }
}
