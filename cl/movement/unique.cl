// SPDX-License-Identifier: Apache-2.0
//
// Computes Unique (ONNX 11). x is [outer, n, inner], and row j is x[o, j, i] for all o and i. The
// rows are sorted by a stable merge sort, and equal rows, which are then adjacent, form a group.
// Rows compare lexicographically; a NaN is equal to a NaN and larger than all numbers.
//
// Parameters
//   P_T, P_VEC  see common/number.clh; P_VEC is 1
//   P_FORM      the kernel that is compiled:
//               0 unique_sort: sorts each block of `width` rows, at most 64, by insertion. NDRange:
//                 blocks
//               1 unique_merge: merges pairs of sorted blocks of `width` rows. NDRange: n
//               2 unique_flags: finds the first row of each group. NDRange: n
//               3 unique_write: writes the outputs. NDRange: n
//               Each NDRange may be smaller
//   P_SORTED    unique_write: 1: groups are written in sorted order, 0: in the order of their first
//               rows in x
//   P_OUTPUTS   unique_write: optional outputs that are written, a sum of 1 indices, 2 inverse,
//               4 counts
// Arguments
//   x, outer, n, inner
//   width       see P_FORM
//   order       int [n]: row numbers in sorted order. The result of unique_sort; unique_merge reads
//               it and writes `to`
//   to          int [n]
//   flags       uchar [n]: 1 where sorted position p begins a group
//   first       uchar [n]: 1 where row j is the first row of a group
//   group       int [n]: the group of each sorted position, counted from 0
//   rank        int [n]: P_SORTED 0: if row j is the first row of a group, the number of such rows
//               before it
// Outputs, with the groups in the order that P_SORTED determines
//   list        int, one per group: its first row
//   indices     long, one per group: its first row, too
//   inverse     long [n]: the index of the group of each row
//   counts      long, one per group: its number of rows
//
// @variant P_T=1 P_VEC=1 P_FORM=0 P_SORTED=1 P_OUTPUTS=7
// @variant P_T=7 P_VEC=1 P_FORM=1 P_SORTED=1 P_OUTPUTS=7
// @variant P_T=10 P_VEC=1 P_FORM=2 P_SORTED=1 P_OUTPUTS=7
// @variant P_T=11 P_VEC=1 P_FORM=1 P_SORTED=0 P_OUTPUTS=0
// @variant P_T=2 P_VEC=1 P_FORM=3 P_SORTED=0 P_OUTPUTS=7
// @variant P_T=1 P_VEC=1 P_FORM=3 P_SORTED=1 P_OUTPUTS=0
#include "common/number.clh"
#include "common/topk_keys.clh"

#define ROWS                                                                                       \
    __global const elem *x, const long x_off, const long outer, const int n, const long inner

// Returns -1, 0 or 1: row a is less than, equal to or larger than row b.
static inline int compare(__global const elem *x, const long outer, const int n, const long inner,
                          const int a, const int b)
{
    for (long o = 0; o < outer; ++o) {
        __global const elem *first = x + (o * n + a) * inner, *second = x + (o * n + b) * inner;
        for (long i = 0; i < inner; ++i) {
            const key u = order_key(first + i), v = order_key(second + i);
            if (u != v) return u < v ? -1 : 1;
        }
    }
    return 0;
}

#if P_FORM == 0

__kernel void unique_sort(ROWS, const int width, __global int *order, const long order_off)
{
    int piece[64];
    x += x_off;
    order += order_off;
    for (long from = get_global_id(0) * (long)width; from < n;
         from += get_global_size(0) * (long)width) {
        const int count = (int)min((long)width, n - from);
        for (int p = 0; p < count; ++p) {
            int at = p;
            const int row = (int)from + p;
            for (; at > 0 && compare(x, outer, n, inner, piece[at - 1], row) > 0; --at)
                piece[at] = piece[at - 1];
            piece[at] = row;
        }
        for (int p = 0; p < count; ++p) order[from + p] = piece[p];
    }
}

#elif P_FORM == 1

__kernel void unique_merge(ROWS, const long width, __global const int *order, const long order_off,
                           __global int *to, const long to_off)
{
    x += x_off;
    order += order_off;
    to += to_off;
    for (long p = get_global_id(0); p < n; p += get_global_size(0)) {
        const long start = p / (2 * width) * (2 * width), middle = min(start + width, (long)n);
        const bool left = p < middle;
        const int row = order[p];
        // Binary search for the number of rows of the other block that precede this row.
        const long from = left ? middle : start;
        long low = from, high = left ? min(start + 2 * width, (long)n) : middle;
        while (low < high) {
            const long at = (low + high) / 2;
            const int c = compare(x, outer, n, inner, order[at], row);
            if (c < 0 || (c == 0 && !left))
                low = at + 1;
            else
                high = at;
        }
        to[start + (p - (left ? start : middle)) + (low - from)] = row;
    }
}

#elif P_FORM == 2

__kernel void unique_flags(ROWS, __global const int *order, const long order_off,
                           __global uchar *flags, const long flags_off, __global uchar *first,
                           const long first_off)
{
    x += x_off;
    order += order_off;
    for (long p = get_global_id(0); p < n; p += get_global_size(0)) {
        const uchar is = p == 0 || compare(x, outer, n, inner, order[p - 1], order[p]) != 0;
        flags[flags_off + p] = is;
        first[first_off + order[p]] = is;
    }
}

#else

// Returns the first position in low..n-1 whose group is not less than `wanted`; n if there is none.
static inline int lower_bound(__global const int *group, int low, const int n, const int wanted)
{
    int high = n;
    while (low < high) {
        const int at = low + (high - low) / 2;
        if (group[at] < wanted)
            low = at + 1;
        else
            high = at;
    }
    return low;
}

__kernel void unique_write(const int n, __global const int *order, const long order_off,
                           __global const int *group, const long group_off,
                           __global const int *rank, const long rank_off, __global int *list,
                           const long list_off, __global long *indices, const long indices_off,
                           __global long *inverse, const long inverse_off, __global long *counts,
                           const long counts_off)
{
    order += order_off;
    group += group_off;
    for (int p = get_global_id(0); p < n; p += get_global_size(0)) {
        const int g = group[p];
        const bool is_first = p == 0 || group[p - 1] != g;
        int to = g;
#if !P_SORTED
        to = rank[rank_off + order[is_first ? p : lower_bound(group, 0, p, g)]];
#endif
#if P_OUTPUTS & 2
        inverse[inverse_off + order[p]] = to;
#endif
        if (!is_first) continue;
        list[list_off + to] = order[p];
#if P_OUTPUTS & 1
        indices[indices_off + to] = order[p];
#endif
#if P_OUTPUTS & 4
        counts[counts_off + to] = lower_bound(group, p, n, g + 1) - p;
#endif
    }
}

#endif
