// SPDX-License-Identifier: Apache-2.0
//
// QuantizeLinear, DequantizeLinear (ONNX 21) and the range of DynamicQuantizeLinear (ONNX 11).
//
// Parameters
//   P_IN, P_OUT  element types in buffers, by their ONNX numbers: 1 float, 2 uchar, 3 char, 4 ushort, 5 short, 6 int,
//                10 half
//   P_S       type of scales: 1 or 10
//   P_ZERO    1: there are zero points, of the quantised type; 0: they are 0
//   P_STEP    0: one scale for a row of inner; 1: one for each element of it
//   P_LOCAL   work-items of a group of range_parts, a power of two; else 1
//   P_VEC     lanes: 1, 4, 8 or 16
// quantize    y = saturate(round_half_even(x / scale) + zero), a NaN gives the lowest number
// dequantize  y = (x - zero) * scale
//   x, y: [outer, n, inner]; the scale of row (o, a) stands at o * s_outer + a / block * s_n.
//   Arguments: x, y, scale, zero (NULL without P_ZERO), rows (outer * n), n, inner, s_outer, s_n, block.
//   NDRange: inner / P_VEC, rows
// range_parts least and largest of a share of x[n] and 0: to parts[2 * group]. NDRange: groups of P_LOCAL
// range_last  scale and zero point for uint8 from n_parts parts. NDRange: 1
//
// @variant P_IN=1 P_OUT=2 P_S=1 P_ZERO=1 P_STEP=0 P_LOCAL=1 P_VEC=16
// @variant P_IN=10 P_OUT=3 P_S=10 P_ZERO=0 P_STEP=1 P_LOCAL=1 P_VEC=8
// @variant P_IN=6 P_OUT=5 P_S=1 P_ZERO=1 P_STEP=0 P_LOCAL=1 P_VEC=1
// @variant P_IN=3 P_OUT=1 P_S=1 P_ZERO=1 P_STEP=1 P_LOCAL=1 P_VEC=4
// @variant P_IN=4 P_OUT=10 P_S=10 P_ZERO=1 P_STEP=0 P_LOCAL=1 P_VEC=1
// @variant P_IN=6 P_OUT=1 P_S=1 P_ZERO=0 P_STEP=0 P_LOCAL=1 P_VEC=16
// @variant P_IN=1 P_OUT=2 P_S=1 P_ZERO=1 P_STEP=0 P_LOCAL=128 P_VEC=1

#define P_FP64 0
#define P_INDEX 32
#include "common/elements.clh"

ELEMENTS_float32
ELEMENTS_float16
ELEMENTS_uint8
ELEMENTS_int8
ELEMENTS_uint16
ELEMENTS_int16
ELEMENTS_int32

#define TYPE_1 float
#define TYPE_2 uchar
#define TYPE_3 char
#define TYPE_4 ushort
#define TYPE_5 short
#define TYPE_6 int
#define TYPE_10 half
#define NAME_1 float32
#define NAME_2 uint8
#define NAME_3 int8
#define NAME_4 uint16
#define NAME_5 int16
#define NAME_6 int32
#define NAME_10 float16
#define WHOLE_2 to_vuchar
#define WHOLE_3 to_vchar
#define WHOLE_4 to_vushort
#define WHOLE_5 to_vshort
#define WHOLE_OUT2(t) WHOLE_##t
#define WHOLE_OUT(t) WHOLE_OUT2(t) // CAT does not nest: these names hold it already
#define LOWEST_2 0
#define LOWEST_3 -128
#define LOWEST_4 0
#define LOWEST_5 -32768
#define LARGEST_2 255
#define LARGEST_3 127
#define LARGEST_4 65535
#define LARGEST_5 32767

typedef CAT(TYPE_, P_IN) in_elem;
typedef CAT(TYPE_, P_OUT) out_elem;
typedef CAT(TYPE_, P_S) scale_elem;
#define LOAD_IN CAT(load_, CAT(NAME_, P_IN))
#define STORE_OUT CAT(store_, CAT(NAME_, P_OUT))
#define LOAD_SCALE CAT(load_, CAT(NAME_, P_S))
#define SPLAT_SCALE CAT(splat_, CAT(NAME_, P_S))

#if P_OUT == 1 || P_OUT == 10
#define QUANTIZED P_IN
#else
#define QUANTIZED P_OUT
#endif
typedef CAT(TYPE_, QUANTIZED) zero_elem;
#define LOAD_ZERO CAT(load_, CAT(NAME_, QUANTIZED))
#define SPLAT_ZERO CAT(splat_, CAT(NAME_, QUANTIZED))

// Scale and zero point of `count` elements from i on, in the row whose first are at s and z.
static inline vfloat scale_of(__global const scale_elem *s, const int i, const int count)
{
#if P_STEP
    return LOAD_SCALE(s + i, count);
#else
    return SPLAT_SCALE(s);
#endif
}

static inline vint zero_of(__global const zero_elem *z, const int i, const int count)
{
#if !P_ZERO
    return (vint)0;
#elif P_STEP
    return to_vint(LOAD_ZERO(z + i, count));
#else
    return to_vint(SPLAT_ZERO(z));
#endif
}

__kernel void
#if P_OUT == 1 || P_OUT == 10
dequantize(
#else
quantize(
#endif
    __global const in_elem *x, const long x_off, __global out_elem *y, const long y_off, __global const scale_elem *scale,
    const long scale_off, __global const zero_elem *zero, const long zero_off, const int rows, const int n, const int inner,
    const long s_outer, const long s_n, const int block)
{
    for (int row = get_global_id(1); row < rows; row += get_global_size(1)) {
        const long at = row / n * s_outer + row % n / block * s_n;
        __global const in_elem *from = x + x_off + (long)row * inner;
        __global out_elem *to = y + y_off + (long)row * inner;
        __global const scale_elem *s = scale + scale_off + at;
        __global const zero_elem *z = zero + zero_off + at;
        for (int i = (int)get_global_id(0) * P_VEC; i < inner; i += (int)get_global_size(0) * P_VEC) {
            const int count = min(P_VEC, inner - i);
#if P_OUT == 1 || P_OUT == 10
            const vint v = to_vint(LOAD_IN(from + i, count)) - zero_of(z, i, count);
            STORE_OUT(to + i, to_vfloat(v) * scale_of(s, i, count), count);
#else
            const vfloat v = rint(to_vfloat(LOAD_IN(from + i, count)) / scale_of(s, i, count)) +
                             to_vfloat(zero_of(z, i, count));
            const vint whole = to_vint(fmin(fmax(v, (vfloat)(CAT(LOWEST_, P_OUT))), (vfloat)(CAT(LARGEST_, P_OUT))));
            STORE_OUT(to + i, WHOLE_OUT(P_OUT)(whole), count);
#endif
        }
    }
}

#if P_OUT == 2 && P_IN == 1 && P_S == 1 && P_STEP == 0

__kernel void range_parts(const int n, __global const float *x, const long x_off, __global float *parts,
                          const long parts_off)
{
    vfloat low = (vfloat)0.0f, high = (vfloat)0.0f;
    for (int i = (int)get_global_id(0) * P_VEC; i < n; i += (int)get_global_size(0) * P_VEC) {
        const vfloat v = load_float32(x + x_off + i, min(P_VEC, n - i));
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    float least = 0.0f, largest = 0.0f;
    for (int l = 0; l < P_VEC; ++l) {
        least = min(least, LANE(low, const float, l));
        largest = max(largest, LANE(high, const float, l));
    }
    __local float lows[P_LOCAL], highs[P_LOCAL];
    const int me = get_local_id(0);
    lows[me] = least;
    highs[me] = largest;
    for (int half_way = P_LOCAL / 2; half_way > 0; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me < half_way) {
            lows[me] = min(lows[me], lows[me + half_way]);
            highs[me] = max(highs[me], highs[me + half_way]);
        }
    }
    if (me == 0) {
        parts[parts_off + 2 * get_group_id(0)] = lows[0];
        parts[parts_off + 2 * get_group_id(0) + 1] = highs[0];
    }
}

__kernel void range_last(const int n_parts, __global const float *parts, const long parts_off, __global float *scale,
                         const long scale_off, __global uchar *zero, const long zero_off)
{
    float low = 0.0f, high = 0.0f;
    parts += parts_off;
    for (int i = 0; i < n_parts; ++i) {
        low = min(low, parts[2 * i]);
        high = max(high, parts[2 * i + 1]);
    }
    const float s = high == low ? 1.0f : (high - low) / 255.0f;
    scale[scale_off] = s;
    zero[zero_off] = convert_uchar_sat(rint(fmin(fmax(-low / s, 0.0f), 255.0f)));
}

#endif
