// SPDX-License-Identifier: Apache-2.0
//
// Computes ArgMax and ArgMin (kernel arg): y[o, i] = index of the largest or smallest x[o, :, i],
// where a NaN counts as the extreme, as in NumPy. Computes CumSum, y[o, k, i] = x[o, 0, i] + .. +
// x[o, k, i], and CumProd, with products in place of sums (kernel scan); and the linear recurrence
// y[o, k, i] = a[o, k, i] * y[o, k - 1, i] + x[o, k, i], which begins with x (kernel linear_scan).
//
// Parameters
//   P_T      dtype by its ONNX number; 16-bit floats are compared and summed in float
//   P_FP64   1 when P_T is 11
//   P_MAX    arg: 1 finds the largest element, 0 the smallest
//   P_LAST   arg: which of several equal elements: 0 the first, 1 the last
//   P_GROUP  arg: work-items per result: 1, or 128 (inner is 1), reduced in local memory
//   P_LANES  adjacent elements along `inner` that a work-item computes: 1 or 16
//   P_EXCLUSIVE  scan: 1 excludes element k itself from result k
//   P_REVERSE    scan and linear_scan: 1 goes from the end of the axis, where k - 1 is k + 1
//   P_PRODUCT    scan: 1 products, 0 sums
//   P_INDEX  width of index arithmetic: 32 or 64 bits
//   P_VEC    1
//
// Arguments: x is dense, [outer, n, inner] elements, and a likewise. y: [outer, inner] of int64
// (arg), or as x (scans).
// NDRange: one dimension. P_GROUP 1 and scans: outer * ceil(inner / P_LANES) work-items, or fewer;
// P_GROUP 128: one work-group for each of outer, or fewer.
//
// @variant P_T=1 P_FP64=0 P_MAX=1 P_LAST=0 P_GROUP=1 P_LANES=16 P_EXCLUSIVE=0 P_REVERSE=0
//          P_PRODUCT=0 P_INDEX=32 P_VEC=1
// @variant P_T=10 P_FP64=0 P_MAX=0 P_LAST=1 P_GROUP=128 P_LANES=1 P_EXCLUSIVE=1 P_REVERSE=1
//          P_PRODUCT=1 P_INDEX=32 P_VEC=1
// @variant P_T=11 P_FP64=1 P_MAX=0 P_LAST=0 P_GROUP=1 P_LANES=1 P_EXCLUSIVE=1 P_REVERSE=0
//          P_PRODUCT=0 P_INDEX=64 P_VEC=1
// @variant P_T=2 P_FP64=0 P_MAX=1 P_LAST=1 P_GROUP=1 P_LANES=1 P_EXCLUSIVE=0 P_REVERSE=1
//          P_PRODUCT=1 P_INDEX=32 P_VEC=1
#include "common/elements.clh"

typedef CAT(ELEM_, P_T) mem_t;
typedef CAT(NUM_, P_T) reg_t;
ELEMENTS_OF(element, P_T)

#if P_MAX
#define BEYOND(a, b) ((a) > (b))
#else
#define BEYOND(a, b) ((a) < (b))
#endif
#define IS_NAN(a) ((a) != (a))
// Returns whether element a, of index at_a, is the result rather than b, of index at_b.
static inline bool is_better(const reg_t a, const idx at_a, const reg_t b, const idx at_b)
{
    if (BEYOND(a, b) || (IS_NAN(a) && !IS_NAN(b))) return true;
    if (BEYOND(b, a) || (IS_NAN(b) && !IS_NAN(a))) return false;
    return P_LAST ? at_a > at_b : at_a < at_b;
}

#if P_GROUP == 1

__kernel void arg(const idx outer, const idx n, const idx inner, __global const mem_t *x,
                  const long x_off, __global long *y, const long y_off)
{
    const idx blocks = (inner + P_LANES - 1) / P_LANES;
    x += x_off;
    y += y_off;
    for (idx block = get_global_id(0); block < outer * blocks; block += get_global_size(0)) {
        const idx o = block / blocks, i = (block - o * blocks) * P_LANES;
        const int lanes = (int)min((idx)P_LANES, inner - i);
        __global const mem_t *column = x + (o * n * inner + i);
        reg_t best[P_LANES];
        idx best_at[P_LANES];
        for (int l = 0; l < lanes; ++l) {
            best[l] = load_element(column + l, 1);
            best_at[l] = 0;
        }
        for (idx k = 1; k < n; ++k)
            for (int l = 0; l < lanes; ++l) {
                const reg_t v = load_element(column + (k * inner + l), 1);
                const bool better = is_better(v, k, best[l], best_at[l]);
                best[l] = better ? v : best[l];
                best_at[l] = better ? k : best_at[l];
            }
        for (int l = 0; l < lanes; ++l) y[o * inner + i + l] = best_at[l];
    }
}

#else

WORK_GROUP_SIZE(P_GROUP, 1, 1)
__kernel void arg(const idx outer, const idx n, const idx inner, __global const mem_t *x,
                  const long x_off, __global long *y, const long y_off)
{
    __local reg_t values[P_GROUP];
    __local idx places[P_GROUP];
    const int item = get_local_id(0);
    x += x_off;
    y += y_off;
    for (idx o = get_group_id(0); o < outer; o += get_num_groups(0)) {
        // Work-items beyond the row's length use element 0, which does not change the result.
        idx best_at = item < n ? item : 0;
        reg_t best = load_element(x + (o * n + best_at), 1);
        for (idx k = item + P_GROUP; k < n; k += P_GROUP) {
            const reg_t v = load_element(x + (o * n + k), 1);
            const bool better = is_better(v, k, best, best_at);
            best = better ? v : best;
            best_at = better ? k : best_at;
        }
        values[item] = best;
        places[item] = best_at;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int half_of = P_GROUP / 2; half_of > 0; half_of /= 2) {
            if (item < half_of && is_better(values[item + half_of], places[item + half_of],
                                            values[item], places[item])) {
                values[item] = values[item + half_of];
                places[item] = places[item + half_of];
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (item == 0) y[o * inner] = places[0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif

// Signed products are computed as unsigned ones, which wrap on overflow.
#if !P_PRODUCT
#define JOIN(a, b) ((a) + (b))
#elif P_T == 6
#define JOIN(a, b) ((int)((uint)(a) * (uint)(b)))
#elif P_T == 7
#define JOIN(a, b) ((long)((ulong)(a) * (ulong)(b)))
#else
#define JOIN(a, b) ((a) * (b))
#endif

__kernel void scan(const idx outer, const idx n, const idx inner, __global const mem_t *x,
                   const long x_off, __global mem_t *y, const long y_off)
{
    const idx blocks = (inner + P_LANES - 1) / P_LANES;
    x += x_off;
    y += y_off;
    for (idx block = get_global_id(0); block < outer * blocks; block += get_global_size(0)) {
        const idx o = block / blocks, i = (block - o * blocks) * P_LANES;
        const int lanes = (int)min((idx)P_LANES, inner - i);
        const idx column = o * n * inner + i;
        reg_t sums[P_LANES];
        for (int l = 0; l < lanes; ++l) sums[l] = P_PRODUCT;
        for (idx k = 0; k < n; ++k) {
            const idx at = column + (P_REVERSE ? n - 1 - k : k) * inner;
            for (int l = 0; l < lanes; ++l) {
                const reg_t v = load_element(x + (at + l), 1);
                const reg_t sum = JOIN(sums[l], v);
                store_element(y + (at + l), P_EXCLUSIVE ? sums[l] : sum, 1);
                sums[l] = sum;
            }
        }
    }
}

__kernel void linear_scan(const idx outer, const idx n, const idx inner, __global const mem_t *a,
                          const long a_off, __global const mem_t *x, const long x_off,
                          __global mem_t *y, const long y_off)
{
    const idx blocks = (inner + P_LANES - 1) / P_LANES;
    a += a_off;
    x += x_off;
    y += y_off;
    for (idx block = get_global_id(0); block < outer * blocks; block += get_global_size(0)) {
        const idx o = block / blocks, i = (block - o * blocks) * P_LANES;
        const int lanes = (int)min((idx)P_LANES, inner - i);
        const idx column = o * n * inner + i;
        reg_t before[P_LANES];
        for (idx k = 0; k < n; ++k) {
            const idx at = column + (P_REVERSE ? n - 1 - k : k) * inner;
            for (int l = 0; l < lanes; ++l) {
                const reg_t v = load_element(x + (at + l), 1);
                // a of the first element is not used, so that a NaN in it does not count
                before[l] = k == 0 ? v : load_element(a + (at + l), 1) * before[l] + v;
                store_element(y + (at + l), before[l], 1);
            }
        }
    }
}
