// SPDX-License-Identifier: Apache-2.0
//
// Computes Range, EyeLike, Trilu and OneHot, whose elements depend on their positions.
//
// Parameters
//   P_T      range: dtype of the elements by its ONNX number (1, 5, 6, 7, 10, 11, 16); 16-bit
//            floats are computed in float. Other kernels: 0
//   P_SIZE   bytes of an element: 1, 2, 4 or 8
//   P_FP64   1 where P_T or P_VALUE is 11
//   P_VALUE  trilu: 1 if the diagonal comes from a buffer, else 0.
//            onehot: dtype of the indices by its ONNX number (1 to 7, 11, 12, 13).
//            Other kernels: 0
//   P_INDEX  32 or 64: width of element counts; P_VEC is 1
//
// range: y[i] = start[0] + i * delta[0], i < n
// eye: y[i, j] = one where j - i == k, else 0
//   rows, columns
//   k         diagonal
//   one       the bits of 1 in y's dtype
// trilu: y[b, i, j] = x[b, i, j] where j - i >= k (upper 1) or j - i <= k (upper 0); else 0
//   n         elements of y; rows, columns: of a matrix
//   upper     1 or 0
//   diagonal  one long, k, if P_VALUE is 1; else k is 0, without an argument
// onehot: y[o, d, i] = values[1] where index[o, i] is d or d - depth, else values[0]
//   outer, depth, inner
// Arguments of all kernels:
//   chunk     adjacent elements that a work-item computes per iteration; dimension 0 of the NDRange
//             strides over chunks
//
// @variant P_T=1 P_SIZE=4 P_FP64=0 P_VALUE=0 P_INDEX=32 P_VEC=1
// @variant P_T=7 P_SIZE=8 P_FP64=0 P_VALUE=0 P_INDEX=64 P_VEC=1
// @variant P_T=11 P_SIZE=8 P_FP64=1 P_VALUE=11 P_INDEX=32 P_VEC=1
// @variant P_T=10 P_SIZE=2 P_FP64=0 P_VALUE=0 P_INDEX=32 P_VEC=1
// @variant P_T=16 P_SIZE=2 P_FP64=0 P_VALUE=0 P_INDEX=32 P_VEC=1
// @variant P_T=0 P_SIZE=2 P_FP64=0 P_VALUE=1 P_INDEX=32 P_VEC=1
// @variant P_T=0 P_SIZE=1 P_FP64=0 P_VALUE=7 P_INDEX=32 P_VEC=1
#include "common/untyped.clh"

#define EACH_ELEMENT(n)                                                                            \
    for (idx begin = (idx)get_global_id(0) * chunk; begin < (n);                                   \
         begin += (idx)get_global_size(0) * chunk)                                                 \
        for (idx at = begin; at < min(begin + chunk, (n)); ++at)

#if P_T
typedef CAT(ELEM_, P_T) elem;
typedef CAT(NUM_, P_T) num;
#define RANGE_GET CAT(GET_, CAT(ACCESS_, P_T))
#define RANGE_PUT CAT(PUT_, CAT(ACCESS_, P_T))

__kernel void range(const idx n, const int chunk, __global const elem *start, const long start_off,
                    __global const elem *delta, const long delta_off, __global elem *y,
                    const long y_off)
{
    const num first = RANGE_GET(start + start_off), by = RANGE_GET(delta + delta_off);
    EACH_ELEMENT(n)
    RANGE_PUT(y + y_off + at, (num)(first + (num)at * by));
}
#endif

__kernel void eye(const idx rows, const idx columns, const int chunk, const long k, const long one,
                  __global word *y, const long y_off)
{
    EACH_ELEMENT(rows * columns)
    {
        const idx i = at / columns, j = at - i * columns;
        y[y_off + at] = (long)j - i == k ? (word)one : (word)0;
    }
}

#if P_VALUE == 1
#define DIAGONAL_PARAMS __global const long *diagonal, const long diagonal_off,
#define DIAGONAL diagonal[diagonal_off]
#else
#define DIAGONAL_PARAMS
#define DIAGONAL 0
#endif

__kernel void trilu(const idx n, const idx rows, const idx columns, const int chunk,
                    const int upper, DIAGONAL_PARAMS __global const word *x, const long x_off,
                    __global word *y, const long y_off)
{
    const long k = DIAGONAL;
    EACH_ELEMENT(n)
    {
        const idx row = at / columns, i = row % rows, j = at - row * columns;
        const long d = (long)j - i;
        y[y_off + at] = (upper ? d >= k : d <= k) ? x[x_off + at] : (word)0;
    }
}

// onehot: `number` is the type of an index in memory, `compared` the one in which it is compared.
// It is as narrow as possible, since Mesa 22.3 compares an int that was widened to long wrongly.
#if P_VALUE >= 2 && P_VALUE <= 6
typedef int compared;
#elif P_VALUE == 12 || P_VALUE == 13
typedef ulong compared;
#else
typedef long compared;
#endif
#if P_VALUE
typedef CAT(ELEM_, P_VALUE) number;
#else
typedef long number;
#endif

__kernel void onehot(const idx outer, const idx depth, const idx inner, const int chunk,
                     __global const number *index, const long index_off,
                     __global const word *values, const long values_off, __global word *y,
                     const long y_off)
{
    const word off = values[values_off], on = values[values_off + 1];
    const idx block = depth * inner;
    EACH_ELEMENT(outer * block)
    {
        const idx o = at / block, rest = at - o * block, d = rest / inner, i = rest - d * inner;
        const compared v = (compared)index[index_off + o * inner + i];
        y[y_off + at] = v == (compared)d || v == (compared)(d - depth) ? on : off;
    }
}
