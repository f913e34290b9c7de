// SPDX-License-Identifier: Apache-2.0
//
// Computes Pad. An element of y is an element of x or, in constant mode, the padding value.
// Negative padding crops.
//
// Parameters
//   P_SIZE, P_VEC, P_INDEX  see common/untyped.clh; P_FP64 is 0
//   P_RANK   dimensions before the last one, 0..7
//   P_MODE   0 constant, 1 edge, 2 reflect, 3 wrap
//   P_VALUE  constant mode: the padding value is 0 the bits of `value`, 1 element 0 of `fill`
//
// Arguments; lengths and strides in elements
//   m<i>, n<i>, b<i>, s<i>   dimension i: length in y, length in x, padding before, stride in x
//   m, n, b      the last dimension: length in y, length in x, padding before; dense in both
//   chunk        elements of the last dimension that a work-item computes per iteration
//   block        rows that a work-item computes per iteration
//   value, fill  see P_VALUE; fill is any buffer if P_VALUE is 0
//   x, y
//
// Dimension 0 of the NDRange strides over chunks, dimension 1 over blocks of rows.
//
// @variant P_SIZE=4 P_VEC=16 P_FP64=0 P_INDEX=32 P_RANK=0 P_MODE=0 P_VALUE=0
// @variant P_SIZE=1 P_VEC=8 P_FP64=0 P_INDEX=32 P_RANK=3 P_MODE=1 P_VALUE=0
// @variant P_SIZE=8 P_VEC=1 P_FP64=0 P_INDEX=64 P_RANK=7 P_MODE=2 P_VALUE=0
// @variant P_SIZE=2 P_VEC=1 P_FP64=0 P_INDEX=32 P_RANK=1 P_MODE=3 P_VALUE=0
// @variant P_SIZE=2 P_VEC=4 P_FP64=0 P_INDEX=32 P_RANK=2 P_MODE=0 P_VALUE=1
#include "common/for_each_dim.clh"
#include "common/untyped.clh"

// Returns the index in x, in a dimension of length n, for index i of y minus the padding before. It
// is outside of 0..n-1 only in constant mode.
static inline idx place(idx i, const idx n)
{
#if P_MODE == 1
    i = i < 0 ? 0 : (i < n ? i : n - 1);
#elif P_MODE == 2
    if (n == 1) return 0;
    const idx period = 2 * n - 2;
    i %= period;
    i += i < 0 ? period : 0;
    i = i < n ? i : period - i;
#elif P_MODE == 3
    i %= n;
    i += i < 0 ? n : 0;
#endif
    return i;
}

#define DIM_PARAMS(i) const idx m##i, const idx n##i, const idx b##i, const idx s##i,
#define DIM_COUNT(i) *m##i
#define DIM_PLACE(i)                                                                               \
    const idx p##i = place(rest % m##i - b##i, n##i);                                              \
    rest /= m##i;                                                                                  \
    exists = exists && p##i >= 0 && p##i < n##i;                                                   \
    from += p##i * s##i;

__kernel void pad(RANK_UP(DIM_PARAMS) const idx m, const idx n, const idx b, const int chunk,
                  const int block, const long value, __global const word *fill, const long fill_off,
                  __global const word *x, const long x_off, __global word *y, const long y_off)
{
    const idx rows = 1 RANK_UP(DIM_COUNT);
#if P_VALUE
    const word made_up = fill[fill_off];
#else
    const word made_up = (word)value;
#endif
    x += x_off;
    y += y_off;
    for (idx first = (idx)get_global_id(1) * block; first < rows;
         first += (idx)get_global_size(1) * block)
        for (idx row = first; row < min(first + block, rows); ++row) {
            idx rest = row, from = 0;
            bool exists = true;
            RANK_DOWN(DIM_PLACE)
            for (idx begin = (idx)get_global_id(0) * chunk; begin < m;
                 begin += (idx)get_global_size(0) * chunk)
                for (idx i = begin; i < min(begin + chunk, m); i += P_VEC) {
                    const int count = (int)min((idx)P_VEC, m - i);
                    vword v = (vword)made_up;
                    if (exists && i >= b && i - b + count <= n) {
                        v = load_word(x + (from + i - b), count);
                    } else if (exists) {
                        for (int l = 0; l < count; ++l) {
                            const idx at = place(i + l - b, n);
                            if (at >= 0 && at < n) LANE(v, word, l) = x[from + at];
                        }
                    }
                    store_word(y + (row * m + i), v, count);
                }
        }
}
