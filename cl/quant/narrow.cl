// SPDX-License-Identifier: Apache-2.0
//
// Computes Cast (ONNX 25) from and to the dtypes of a byte and less of quant/narrow.clh ("narrow"):
// float8, float4, float8e8m0, (u)int4 and (u)int2.
//
// Parameters
//   P_IN, P_OUT  dtypes of x and y by ONNX number; at least one is narrow, 17 to 26
//   P_SATURATE   treatment of values out of range of a narrow float: 0, 1 or 2, see encode_<dtype>
//                in quant/narrow.clh
//   P_MODE       rounding to float8e8m0: 0 up, 1 down, 2 to nearest
//   P_FP64       1 if P_IN or P_OUT is float64
// Arguments of cast_narrow
//   n            elements
//   x, y         [n], contiguous, from the start of a byte
// NDRange: ceil(n / 8), may be smaller: a work-item converts eight elements at a time, which are
// whole bytes in every dtype. Unused bits of the last byte are written as zeros.
//
// @variant P_IN=1 P_OUT=17 P_SATURATE=1 P_MODE=0 P_FP64=0
// @variant P_IN=10 P_OUT=18 P_SATURATE=0 P_MODE=0 P_FP64=0
// @variant P_IN=16 P_OUT=19 P_SATURATE=2 P_MODE=0 P_FP64=0
// @variant P_IN=7 P_OUT=20 P_SATURATE=1 P_MODE=0 P_FP64=0
// @variant P_IN=13 P_OUT=24 P_SATURATE=1 P_MODE=2 P_FP64=0
// @variant P_IN=11 P_OUT=23 P_SATURATE=1 P_MODE=0 P_FP64=1
// @variant P_IN=1 P_OUT=22 P_SATURATE=1 P_MODE=0 P_FP64=0
// @variant P_IN=5 P_OUT=25 P_SATURATE=1 P_MODE=0 P_FP64=0
// @variant P_IN=9 P_OUT=21 P_SATURATE=1 P_MODE=0 P_FP64=0
// @variant P_IN=22 P_OUT=3 P_SATURATE=1 P_MODE=0 P_FP64=0
// @variant P_IN=25 P_OUT=10 P_SATURATE=1 P_MODE=0 P_FP64=0
// @variant P_IN=23 P_OUT=1 P_SATURATE=1 P_MODE=0 P_FP64=0
// @variant P_IN=24 P_OUT=11 P_SATURATE=1 P_MODE=0 P_FP64=1
// @variant P_IN=17 P_OUT=26 P_SATURATE=1 P_MODE=0 P_FP64=0
// @variant P_IN=19 P_OUT=9 P_SATURATE=1 P_MODE=0 P_FP64=0
// @variant P_IN=20 P_OUT=7 P_SATURATE=1 P_MODE=0 P_FP64=0

#define P_VEC 1
#define P_INDEX 64
#include "common/elements.clh"
#include "quant/narrow.clh"

ELEMENTS_float32 ELEMENTS_uint8 ELEMENTS_int8 ELEMENTS_uint16 ELEMENTS_int16 ELEMENTS_int32
    ELEMENTS_int64 ELEMENTS_bool ELEMENTS_float16 ELEMENTS_uint32 ELEMENTS_uint64 ELEMENTS_bfloat16
#if P_FP64
        ELEMENTS_float64
#endif

#define IS_FLOAT(t)                                                                                \
    ((t) == 1 || (t) == 10 || (t) == 11 || (t) == 16 || ((t) >= 17 && (t) <= 20) || (t) == 23 ||   \
     (t) == 24)
#define BITS_PUT CAT(BITS_, P_OUT)

    typedef CAT(ELEM_, P_IN) in_elem;
typedef CAT(ELEM_, P_OUT) out_elem;

// Integers of at most 32 bits are not widened: Mesa 22.3 compares an int widened to long wrongly.
#if IS_FLOAT(P_IN)
typedef float number;
#elif P_IN == 7
typedef long number;
#elif P_IN == 12
typedef uint number;
#elif P_IN == 13
typedef ulong number;
#else
typedef int number;
#endif
#if P_IN == 7 || P_IN == 13
typedef ulong magnitude;
#else
typedef uint magnitude;
#endif

// float_of_double and float_of_size convert a double and an unsigned integer to a float with
// rounding to odd: the last bit of the mantissa is set where the result is inexact. Rounding that
// float to a narrow type then gives the same as rounding the original value (no double rounding).
#if P_FP64
static inline float float_of_double(const double x)
{
    const float nearest = convert_float(x);
#if P_OUT == 24
    if (fabs(x) >= 0x1p128)
        return x < 0 ? -INFINITY : INFINITY; // rounding down must not make it 2^127
#endif
    if (x != x || convert_double(nearest) == x) return nearest;
    const uint bits = as_uint(nearest) - (fabs(convert_double(nearest)) > fabs(x) ? 1 : 0);
    return as_float(bits | 1);
}
#endif

static inline float float_of_size(const magnitude size)
{
    const magnitude one = 1;
    const int dropped_bits = size >> 24 == 0 ? 0 : (int)sizeof(size) * 8 - 24 - (int)clz(size);
    const uint kept =
        (uint)(size >> dropped_bits) | ((size & ((one << dropped_bits) - one)) != 0 ? 1 : 0);
    return convert_float(kept) * as_float((uint)(127 + dropped_bits) << 23);
}

// Returns element i of x as a float (float dtypes) or an integer.
static inline number number_at(__global const in_elem *x, const long i)
{
#if !IS_NARROW(P_IN) && P_IN == 11
    return float_of_double(load_float64(x + i, 1));
#elif !IS_NARROW(P_IN)
    return CAT(load_, CAT(NAME_, P_IN))(x + i, 1);
#else
    return CAT(decode_, CAT(NAME_, P_IN))(CAT(codes_, CAT(BITS_, P_IN))(x, i, 1));
#endif
}

// Returns v as a float, integers rounded to odd.
static inline float float_of(const number v)
{
#if IS_FLOAT(P_IN)
    return v;
#elif P_IN == 12 || P_IN == 13
    return float_of_size(v);
#else
    return v < 0 ? -float_of_size((magnitude)0 - (magnitude)v) : float_of_size((magnitude)v);
#endif
}

// converted() returns v as P_OUT: the code of a narrow dtype, else a value for store_<dtype>.
#if P_OUT == 24
typedef uint result;
static inline result converted(const number v)
{
    return encode_float8e8m0(float_of(v), P_SATURATE, P_MODE);
}
#elif IS_NARROW(P_OUT) && IS_FLOAT(P_OUT)
typedef uint result;
static inline result converted(const number v)
{
    return CAT(encode_, CAT(NAME_, P_OUT))(float_of(v), P_SATURATE);
}
#elif IS_NARROW(P_OUT)
// Narrow integers: values out of range wrap, to the low bits.
typedef uint result;
static inline result converted(const number v)
{
#if IS_FLOAT(P_IN)
    const uint whole = (uint)convert_int_sat_rtz(v == v ? v : 0.0f);
#else
    const uint whole = (uint)v;
#endif
    return whole & ((1u << BITS_PUT) - 1);
}
#elif P_OUT == 9
typedef uchar result;
static inline result converted(const number v) { return v != 0; }
#elif P_OUT == 11
typedef double result;
static inline result converted(const number v) { return convert_double(v); }
#elif IS_FLOAT(P_OUT)
typedef float result;
static inline result converted(const number v) { return convert_float(v); }
#else
#define CONVERT_SATURATED CAT(CAT(convert_, CAT(ELEM_, P_OUT)), _sat_rtz)
typedef out_elem result;
static inline result converted(const number v)
{
#if IS_FLOAT(P_IN)
    return CONVERT_SATURATED(v == v ? v : 0.0f); // not every driver saturates NaN to 0
#else
    return (result)v;
#endif
}
#endif

__kernel void cast_narrow(const long n, __global const in_elem *x, const long x_off,
                          __global out_elem *y, const long y_off)
{
    x += x_off;
    y += y_off;
    for (long first = (long)get_global_id(0) * 8; first < n;
         first += (long)get_global_size(0) * 8) {
        const int count = (int)min(n - first, 8L);
#if IS_PACKED(P_OUT)
        uint word = 0;
        for (int k = 0; k < count; ++k)
            word |= converted(number_at(x, first + k)) << (k * BITS_PUT);
        for (int k = 0; k * 8 < count * BITS_PUT; ++k)
            y[first / 8 * BITS_PUT + k] = (uchar)(word >> (8 * k));
#elif IS_NARROW(P_OUT)
        for (int k = 0; k < count; ++k) y[first + k] = (uchar)converted(number_at(x, first + k));
#else
        for (int k = 0; k < count; ++k)
            CAT(store_, CAT(NAME_, P_OUT))(y + first + k, converted(number_at(x, first + k)), 1);
#endif
    }
}
