// SPDX-License-Identifier: Apache-2.0
//
// Computes QuantizeLinear, DequantizeLinear (ONNX 21), and scale and zero point of
// DynamicQuantizeLinear (ONNX 11).
//
// Parameters
//   P_IN, P_OUT  dtypes of x and y by ONNX number. One of them is a float: 1 float, 10 half,
//                16 bfloat16; x of quantize may also be 6 int. The other is the quantized one:
//                2 uchar, 3 char, 4 ushort, 5 short, 17 to 23, 25, 26 (quant/narrow.clh), or, for
//                dequantize only, 6 int
//   P_S          dtype of scales: 1, 10, 16 or 24 (float8e8m0)
//   P_ZERO       1: there are zero points, of the quantized dtype; 0: they are 0
//   P_QUOTIENT   quantize: 10, 16: x / scale is rounded to half, bfloat16; else 1
//   P_SATURATE   quantize to float8: treatment of values out of range, see encode_<dtype> in
//                quant/narrow.clh
//   P_STEP       0: one scale for a row of inner elements; 1: one for each element of the row
//   P_LOCAL      range_parts: work-items of a group, a power of two; other kernels: 1
//   P_VEC        lanes: 1, 4, 8 or 16
//
// quantize: y = saturate(round_half_even(x / scale) + zero), where NaN gives the lowest value; for
//   quantized floats y = round(x / scale + zero). NDRange: ceil(inner / P_VEC), rows
// quantize_packed: the same for quantized dtypes of 4 and 2 bits; a work-item writes whole bytes,
//   and P_VEC is 1. The last argument, total, is the number of elements. NDRange: ceil(total / 8)
// dequantize: y = (x - zero) * scale. NDRange: ceil(inner / P_VEC), rows
// Arguments of these
//   x, y        [outer, n, inner]
//   scale, zero the scale and zero point of row (o, a) are at index o * s_outer + a / block * s_n
//               (with P_STEP 1, those of its first element); zero is not read if P_ZERO is 0
//   rows        outer * n
//   n, inner, s_outer, s_n, block
// range_parts: parts[2 * group] and the next one are the min and max of 0 and the elements of x
//   that the group reads. NDRange: groups of P_LOCAL. Local memory: P_LOCAL float2
//   n           elements
//   x           float [n]
//   parts       float [groups, 2]
// range_last: scale and zero point of DynamicQuantizeLinear (uint8) from parts. NDRange: 1
//   n_parts     groups of range_parts
//   parts       from range_parts
//   scale, zero one element each
// Every dimension of an NDRange may be smaller.
//
// @variant P_IN=1 P_OUT=2 P_S=1 P_ZERO=1 P_QUOTIENT=1 P_SATURATE=1 P_STEP=0 P_LOCAL=1 P_VEC=16
// @variant P_IN=10 P_OUT=3 P_S=10 P_ZERO=0 P_QUOTIENT=1 P_SATURATE=1 P_STEP=1 P_LOCAL=1 P_VEC=8
// @variant P_IN=6 P_OUT=5 P_S=1 P_ZERO=1 P_QUOTIENT=1 P_SATURATE=1 P_STEP=0 P_LOCAL=1 P_VEC=1
// @variant P_IN=3 P_OUT=1 P_S=1 P_ZERO=1 P_QUOTIENT=1 P_SATURATE=1 P_STEP=1 P_LOCAL=1 P_VEC=4
// @variant P_IN=4 P_OUT=10 P_S=10 P_ZERO=1 P_QUOTIENT=1 P_SATURATE=1 P_STEP=0 P_LOCAL=1 P_VEC=1
// @variant P_IN=6 P_OUT=1 P_S=1 P_ZERO=0 P_QUOTIENT=1 P_SATURATE=1 P_STEP=0 P_LOCAL=1 P_VEC=16
// @variant P_IN=1 P_OUT=2 P_S=1 P_ZERO=1 P_QUOTIENT=1 P_SATURATE=1 P_STEP=0 P_LOCAL=128 P_VEC=1
// @variant P_IN=16 P_OUT=3 P_S=16 P_ZERO=0 P_QUOTIENT=16 P_SATURATE=1 P_STEP=1 P_LOCAL=1 P_VEC=8
// @variant P_IN=10 P_OUT=3 P_S=10 P_ZERO=0 P_QUOTIENT=10 P_SATURATE=1 P_STEP=0 P_LOCAL=1 P_VEC=1
// @variant P_IN=1 P_OUT=17 P_S=1 P_ZERO=1 P_QUOTIENT=1 P_SATURATE=0 P_STEP=0 P_LOCAL=1 P_VEC=16
// @variant P_IN=1 P_OUT=20 P_S=24 P_ZERO=1 P_QUOTIENT=1 P_SATURATE=1 P_STEP=1 P_LOCAL=1 P_VEC=4
// @variant P_IN=1 P_OUT=22 P_S=1 P_ZERO=1 P_QUOTIENT=1 P_SATURATE=1 P_STEP=0 P_LOCAL=1 P_VEC=1
// @variant P_IN=10 P_OUT=23 P_S=10 P_ZERO=1 P_QUOTIENT=10 P_SATURATE=1 P_STEP=1 P_LOCAL=1 P_VEC=1
// @variant P_IN=6 P_OUT=25 P_S=1 P_ZERO=0 P_QUOTIENT=1 P_SATURATE=1 P_STEP=0 P_LOCAL=1 P_VEC=1
// @variant P_IN=22 P_OUT=1 P_S=1 P_ZERO=1 P_QUOTIENT=1 P_SATURATE=1 P_STEP=1 P_LOCAL=1 P_VEC=16
// @variant P_IN=21 P_OUT=10 P_S=10 P_ZERO=1 P_QUOTIENT=1 P_SATURATE=1 P_STEP=0 P_LOCAL=1 P_VEC=8
// @variant P_IN=26 P_OUT=1 P_S=1 P_ZERO=1 P_QUOTIENT=1 P_SATURATE=1 P_STEP=1 P_LOCAL=1 P_VEC=1
// @variant P_IN=23 P_OUT=16 P_S=24 P_ZERO=0 P_QUOTIENT=1 P_SATURATE=1 P_STEP=0 P_LOCAL=1 P_VEC=16
// @variant P_IN=19 P_OUT=1 P_S=1 P_ZERO=1 P_QUOTIENT=1 P_SATURATE=1 P_STEP=1 P_LOCAL=1 P_VEC=8

#define P_FP64 0
#define P_INDEX 32
#include "common/elements.clh"
#include "common/reductions.clh"
#include "quant/narrow.clh"

ELEMENTS_float32 ELEMENTS_float16 ELEMENTS_bfloat16 ELEMENTS_uint8 ELEMENTS_int8 ELEMENTS_uint16
    ELEMENTS_int16 ELEMENTS_int32

#define WHOLE_2 to_vuchar
#define WHOLE_3 to_vchar
#define WHOLE_4 to_vushort
#define WHOLE_5 to_vshort
#define WHOLE_OUT2(t) WHOLE_##t
#define WHOLE_OUT(t) WHOLE_OUT2(t) // CAT does not nest, and these names contain it

#define DOWN (P_OUT == 1 || P_OUT == 10 || P_OUT == 16)
#if DOWN
#define QUANTIZED P_IN
#else
#define QUANTIZED P_OUT
#endif
#define IS_SMALL_FLOAT(t) ((t) >= 17 && (t) <= 23 && (t) != 21 && (t) != 22)
#define CODE_BITS CAT(BITS_, QUANTIZED)
#define CODES_AT CAT(codes_, CODE_BITS)

    typedef CAT(ELEM_, P_IN) in_elem;
typedef CAT(ELEM_, P_OUT) out_elem;
typedef CAT(ELEM_, P_S) scale_elem;
typedef CAT(ELEM_, QUANTIZED) zero_elem;
#define LOAD_IN CAT(load_, CAT(NAME_, P_IN))
#define STORE_OUT CAT(store_, CAT(NAME_, P_OUT))
#define LOAD_SCALE CAT(load_, CAT(NAME_, P_S))
#define SPLAT_SCALE CAT(splat_, CAT(NAME_, P_S))
#define LOAD_ZERO CAT(load_, CAT(NAME_, QUANTIZED))
#define SPLAT_ZERO CAT(splat_, CAT(NAME_, QUANTIZED))
#define DECODE CAT(decode_, CAT(NAME_, QUANTIZED))
#define ENCODE CAT(encode_, CAT(NAME_, QUANTIZED))

// Type of quantized values and zero points in arithmetic.
#if IS_SMALL_FLOAT(QUANTIZED)
typedef vfloat vwhole;
#else
typedef vint vwhole;
#endif

// scale_of and zero_of return the scales and zero points of elements i .. i + count - 1 of the row
// whose (first) scale and zero point have index `at`.
static inline vfloat scale_of(__global const scale_elem *s, const long at, const int i,
                              const int count)
{
#if P_S == 24 && P_STEP
    return decode_float8e8m0(codes_8(s, at + i, count));
#elif P_S == 24
    return decode_float8e8m0((vuint)(uint)s[at]);
#elif P_STEP
    return LOAD_SCALE(s + at + i, count);
#else
    return SPLAT_SCALE(s + at);
#endif
}

static inline vwhole zero_of(__global const zero_elem *z, const long at, const int i,
                             const int count)
{
#if !P_ZERO
    return (vwhole)0;
#elif IS_NARROW(QUANTIZED) && P_STEP
    return DECODE(CODES_AT(z, at + i, count));
#elif IS_NARROW(QUANTIZED)
    return DECODE((vuint)(uint)CODE_AT(z, at, CODE_BITS));
#elif P_STEP
    return to_vint(LOAD_ZERO(z + at + i, count));
#else
    return to_vint(SPLAT_ZERO(z + at));
#endif
}

#define QUANTIZE_PARAMS                                                                            \
    __global const in_elem *x, const long x_off, __global out_elem *y, const long y_off,           \
        __global const scale_elem *scale, const long scale_off, __global const zero_elem *zero,    \
        const long zero_off, const int rows, const int n, const int inner, const long s_outer,     \
        const long s_n, const int block

#if DOWN

__kernel void dequantize(QUANTIZE_PARAMS)
{
    for (int row = get_global_id(1); row < rows; row += get_global_size(1)) {
        const long at = row / n * s_outer + row % n / block * s_n, first = (long)row * inner;
        __global out_elem *to = y + y_off + first;
        for (int i = (int)get_global_id(0) * P_VEC; i < inner;
             i += (int)get_global_size(0) * P_VEC) {
            const int count = min(P_VEC, inner - i);
#if IS_NARROW(P_IN)
            const vwhole number = DECODE(CODES_AT(x + x_off, first + i, count));
#else
            const vwhole number = to_vint(LOAD_IN(x + x_off + first + i, count));
#endif
            const vfloat v = to_vfloat(number - zero_of(zero + zero_off, at, i, count));
            STORE_OUT(to + i, v * scale_of(scale + scale_off, at, i, count), count);
        }
    }
}

#else

// Type of quantized elements, or of the codes of narrow dtypes.
#if IS_NARROW(P_OUT)
typedef vuint vresult;
#else
typedef CAT(v, CAT(ELEM_, P_OUT)) vresult;
#endif

// Returns x / scale + zero, rounded and saturated to P_OUT; see the head of this file.
static inline vresult quantized(const vfloat x, const vfloat scale, const vwhole zero)
{
#if P_QUOTIENT == 10
    const vfloat v = round_float16(x / scale);
#elif P_QUOTIENT == 16
    const vfloat v = round_bfloat16(x / scale);
#else
    const vfloat v = x / scale;
#endif
#if IS_SMALL_FLOAT(P_OUT)
    return ENCODE(v + zero, P_SATURATE);
#else
    const vfloat moved = rint(v) + to_vfloat(zero);
    const vint whole =
        to_vint(fmin(fmax(moved, (vfloat)(CAT(LOWEST_, P_OUT))), (vfloat)(CAT(LARGEST_, P_OUT))));
#if IS_NARROW(P_OUT)
    return to_vuint(whole) & (vuint)((1 << CODE_BITS) - 1);
#else
    return WHOLE_OUT(P_OUT)(whole);
#endif
#endif
}

#if IS_PACKED(P_OUT)

__kernel void quantize_packed(QUANTIZE_PARAMS, const long total)
{
    for (long first = (long)get_global_id(0) * 8; first < total;
         first += (long)get_global_size(0) * 8) {
        const int count = (int)min(total - first, 8L);
        uint word = 0;
        for (int k = 0; k < count; ++k) {
            const int row = (int)((first + k) / inner), i = (int)((first + k) % inner);
            const long at = row / n * s_outer + row % n / block * s_n;
            word |=
                quantized(to_vfloat(LOAD_IN(x + x_off + first + k, 1)),
                          scale_of(scale + scale_off, at, i, 1), zero_of(zero + zero_off, at, i, 1))
                << (k * CODE_BITS);
        }
        for (int k = 0; k * 8 < count * CODE_BITS; ++k)
            y[y_off + first / 8 * CODE_BITS + k] = (uchar)(word >> (8 * k));
    }
}

#else

__kernel void quantize(QUANTIZE_PARAMS)
{
    for (int row = get_global_id(1); row < rows; row += get_global_size(1)) {
        const long at = row / n * s_outer + row % n / block * s_n, first = (long)row * inner;
        __global out_elem *to = y + y_off + first;
        for (int i = (int)get_global_id(0) * P_VEC; i < inner;
             i += (int)get_global_size(0) * P_VEC) {
            const int count = min(P_VEC, inner - i);
            const vresult v = quantized(to_vfloat(LOAD_IN(x + x_off + first + i, count)),
                                        scale_of(scale + scale_off, at, i, count),
                                        zero_of(zero + zero_off, at, i, count));
#if IS_NARROW(P_OUT)
            store_uint8(to + i, to_vuchar(v), count);
#else
            STORE_OUT(to + i, v, count);
#endif
        }
    }
}

#endif
#endif

#if P_OUT == 2 && P_IN == 1 && P_S == 1 && P_STEP == 0

#define WIDER(a, b) ((float2)(min((a).x, (b).x), max((a).y, (b).y)))
GROUP_FOLD(group_range, float2, P_LOCAL, WIDER)

WORK_GROUP_SIZE(P_LOCAL, 1, 1)
__kernel void range_parts(const int n, __global const float *x, const long x_off,
                          __global float *parts, const long parts_off)
{
    __local float2 shared[P_LOCAL];
    vfloat low = (vfloat)0.0f, high = (vfloat)0.0f;
    for (int i = (int)get_global_id(0) * P_VEC; i < n; i += (int)get_global_size(0) * P_VEC) {
        const vfloat v = load_float32(x + x_off + i, min(P_VEC, n - i));
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    float smallest = 0.0f, largest = 0.0f;
    for (int l = 0; l < P_VEC; ++l) {
        smallest = min(smallest, LANE(low, const float, l));
        largest = max(largest, LANE(high, const float, l));
    }
    const float2 range = group_range((float2)(smallest, largest), shared);
    if (get_local_id(0) == 0) {
        parts[parts_off + 2 * get_group_id(0)] = range.x;
        parts[parts_off + 2 * get_group_id(0) + 1] = range.y;
    }
}

__kernel void range_last(const int n_parts, __global const float *parts, const long parts_off,
                         __global float *scale, const long scale_off, __global uchar *zero,
                         const long zero_off)
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
