// SPDX-License-Identifier: Apache-2.0
//
// Computes TopK (ONNX 11) along the middle axis of x: [outer, n, inner]: y and index: [outer, k,
// inner], best first; of equal elements the lower index comes first. A NaN is larger than every
// number.
//
// Parameters
//   P_LARGEST  1: the largest elements are the best, 0: the smallest
//   P_FORM     0 rows: one work-item per row keeps the k best in a heap, stored in y and index.
//              NDRange: outer * inner
//              1 groups: one work-group of P_LOCAL work-items per row finds the k-th best key by
//              radix selection (8 bits per pass), writes the indices of the k best elements to
//              `scratch`, and places each by its rank. NDRange: (outer * inner) x P_LOCAL
//   P_LOCAL    P_FORM 1: work-items of a group, a power of two, at most 256; else 1
//   P_T        element type, see common/number.clh
//   P_VEC      1
// Arguments: buffers with their offsets in elements; outer, n, inner, k (1 .. n). scratch: int
// [outer * inner, k], unused in P_FORM 0. Local memory: P_FORM 1: 4 * (258 + P_LOCAL) bytes.
//
// @variant P_LARGEST=1 P_FORM=0 P_LOCAL=1 P_T=1 P_VEC=1
// @variant P_LARGEST=0 P_FORM=0 P_LOCAL=1 P_T=7 P_VEC=1
// @variant P_LARGEST=0 P_FORM=0 P_LOCAL=1 P_T=10 P_VEC=1
// @variant P_LARGEST=1 P_FORM=1 P_LOCAL=256 P_T=1 P_VEC=1
// @variant P_LARGEST=0 P_FORM=1 P_LOCAL=4 P_T=11 P_VEC=1
// @variant P_LARGEST=1 P_FORM=1 P_LOCAL=64 P_T=2 P_VEC=1
// @variant P_LARGEST=1 P_FORM=1 P_LOCAL=64 P_T=13 P_VEC=1
#include "common/number.clh"
#include "common/group_scan.clh"
#include "common/topk_keys.clh"

// Returns the key of an element, an unsigned integer that is larger for better elements.
static inline key key_of(__global const elem *p)
{
    const key u = order_key(p);
    return P_LARGEST ? u : ~u;
}

#define TOPK_PARAMS                                                                                \
    __global const elem *x, const long x_off, __global elem *y, const long y_off,                  \
        __global long *index, const long index_off, const int outer, const int n, const int inner, \
        const int k, __global int *scratch, const long scratch_off

#if P_FORM == 0

// Returns whether entry a of the heap is worse than entry b. The root of the heap, entry 0, is the
// worst.
static inline int is_worse(__global const elem *y, __global const long *index, const long step,
                           const int a, const int b)
{
    const key u = key_of(y + a * step), v = key_of(y + b * step);
    return u < v || (u == v && index[a * step] > index[b * step]);
}

static inline void swap(__global elem *y, __global long *index, const long step, const int a,
                        const int b)
{
    const num value = LOAD1(y + a * step);
    const long at = index[a * step];
    STORE1(LOAD1(y + b * step), y + a * step);
    index[a * step] = index[b * step];
    STORE1(value, y + b * step);
    index[b * step] = at;
}

static inline void sift(__global elem *y, __global long *index, const long step, int at,
                        const int count)
{
    for (;;) {
        int worst = at;
        for (int child = 2 * at + 1; child <= 2 * at + 2; ++child)
            if (child < count && is_worse(y, index, step, child, worst)) worst = child;
        if (worst == at) return;
        swap(y, index, step, at, worst);
        at = worst;
    }
}

__kernel void topk_rows(TOPK_PARAMS)
{
    for (int row = get_global_id(0); row < outer * inner; row += get_global_size(0)) {
        const long step = inner, o = row / inner, i = row % inner;
        __global const elem *from = x + x_off + o * n * step + i;
        __global elem *to = y + y_off + o * k * step + i;
        __global long *at = index + index_off + o * k * step + i;
        for (int j = 0; j < k; ++j) {
            STORE1(LOAD1(from + j * step), to + j * step);
            at[j * step] = j;
        }
        for (int j = k / 2; j-- > 0;) sift(to, at, step, j, k);
        key limit = key_of(to);
        for (int j = k; j < n; ++j) {
            if (key_of(from + j * step) <= limit) continue;
            STORE1(LOAD1(from + j * step), to);
            at[0] = j;
            sift(to, at, step, 0, k);
            limit = key_of(to);
        }
        for (int count = k - 1; count > 0; --count) {
            swap(to, at, step, 0, count);
            sift(to, at, step, 0, count);
        }
    }
}

#else

// Returns the k-th best key of the row; sets *out_better to the number of better elements.
static inline key find_limit(__global const elem *x, const long step, const int n, const int k,
                             __local int *counts, __local int *found, int *out_better)
{
    const int me = get_local_id(0);
    key prefix = 0, known = 0; // the digits found so far; a mask of their bits
    int better = 0;
    for (int shift = KEY_BITS - 8; shift >= 0; shift -= 8) {
        for (int i = me; i < 256; i += P_LOCAL) counts[i] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = me; i < n; i += P_LOCAL) {
            const key u = key_of(x + i * step);
            if ((u & known) == prefix) atomic_inc(&counts[(u >> shift) & 255]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me == 0) {
            int digit = 255, above = better;
            for (; digit > 0 && above + counts[digit] < k; --digit) above += counts[digit];
            found[0] = digit;
            found[1] = above;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        prefix |= (key)found[0] << shift;
        known |= (key)255 << shift;
        better = found[1];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    *out_better = better;
    return prefix;
}

WORK_GROUP_SIZE(P_LOCAL, 1, 1)
__kernel void topk_groups(TOPK_PARAMS)
{
    __local int counts[256], found[2], sums[P_LOCAL];
    const int me = get_local_id(0);
    // The row is uniform across the group, so that all items reach the barriers.
    for (int row = get_group_id(0); row < outer * inner; row += get_num_groups(0)) {
        const long step = inner, o = row / inner, i = row % inner;
        __global const elem *from = x + x_off + o * n * step + i;
        __global elem *to = y + y_off + o * k * step + i;
        __global long *at = index + index_off + o * k * step + i;
        __global int *list = scratch + scratch_off + (long)row * k;
        int better, n_better = 0, n_equal = 0, total;
        const key limit = find_limit(from, step, n, k, counts, found, &better);
        for (int first = 0; first < n; first += P_LOCAL) {
            const int j = first + me;
            const key u = j < n ? key_of(from + j * step) : 0;
            const int is_better = j < n && u > limit, is_equal = j < n && u == limit;
            // Bits 0..15 count better elements, bits 16..31 equal ones; both are at most 256.
            const int before = group_scan(is_better + (is_equal << 16), sums, &total);
            if (is_better) list[n_better + (before & 0xffff)] = j;
            if (is_equal && better + n_equal + (before >> 16) < k)
                list[better + n_equal + (before >> 16)] = j;
            n_better += total & 0xffff;
            n_equal += total >> 16;
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
        for (int c = me; c < k; c += P_LOCAL) {
            const int j = list[c];
            const key u = key_of(from + j * step);
            int rank = 0;
            for (int other = 0; other < k; ++other) {
                // The clamp is for Mesa 26's llvmpipe, which loads list[k], past the loop's end,
                // and then the element at that index.
                const int at_other = clamp(list[other], 0, n - 1);
                const key v = key_of(from + at_other * step);
                rank += v > u || (v == u && at_other < j);
            }
            STORE1(LOAD1(from + j * step), to + rank * step);
            at[rank * step] = j;
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
}

#endif
