// SPDX-License-Identifier: Apache-2.0
//
// Counts the non-zero elements of a tensor and writes their indices (stream compaction). The
// elements are divided into blocks; three kernels are run in this order:
//
//   compact_count    counts the non-zero elements of each block
//   compact_offsets  replaces the counts by their exclusive prefix sum, which is the index of each
//                    block's first result, and writes the total
//   compact_write    reads the elements again and writes the results
//
// Parameters
//   P_SIZE, P_VEC, P_FP64, P_INDEX  see common/untyped.clh; the last three are 1, 0, 32
//   P_LOCAL  work-items of a work-group, a power of two
//   P_FORM   what compact_write writes. Let element i be the r-th that is not zero, from 0 on:
//            0: coordinates: y[d, r] = coordinate of i in dimension d; y: long [rank, total]
//            1: list: y[r] = i; y: int [total]
//            2: ranks: y[i] = r; if element i is zero, r of the last non-zero element before it, or
//               -1 if there is none; y: int [n]
// Arguments. Offsets are in elements.
//   n, block, n_blocks  elements, elements of a block, blocks
//   mask                an element is zero if none of these bits is set in it
//   x                   [n]
//   counts, offsets     the same buffer, int [n_blocks]: counts, which compact_offsets overwrites
//                       with offsets
//   total               of compact_offsets: output, one long; of compact_write: its value
//   rank, d0 .. d7      dimensions of x, 1 from d<rank> on; for P_FORM 0
// NDRange: any number of work-groups of P_LOCAL, which loop over the blocks; for compact_offsets
// one work-group. Local memory: 4 * P_LOCAL bytes.
//
// @variant P_SIZE=4 P_VEC=1 P_FP64=0 P_INDEX=32 P_LOCAL=1 P_FORM=0
// @variant P_SIZE=1 P_VEC=1 P_FP64=0 P_INDEX=32 P_LOCAL=256 P_FORM=1
// @variant P_SIZE=8 P_VEC=1 P_FP64=0 P_INDEX=32 P_LOCAL=64 P_FORM=2
// @variant P_SIZE=2 P_VEC=1 P_FP64=0 P_INDEX=32 P_LOCAL=64 P_FORM=0
#include "common/group_scan.clh"
#include "common/untyped.clh"

WORK_GROUP_SIZE(P_LOCAL, 1, 1)
__kernel void compact_count(const int n, const int block, const int n_blocks, const long mask,
                            __global const word *x, const long x_off, __global int *counts,
                            const long counts_off)
{
    __local int sums[P_LOCAL];
    const int me = get_local_id(0);
    for (int b = get_group_id(0); b < n_blocks; b += get_num_groups(0)) {
        const long end = min((long)n, ((long)b + 1) * block);
        int count = 0, total;
        for (long i = (long)b * block + me; i < end; i += P_LOCAL)
            count += (x[x_off + i] & (word)mask) != 0;
        group_scan(count, sums, &total);
        if (me == 0) counts[counts_off + b] = total;
    }
}

WORK_GROUP_SIZE(P_LOCAL, 1, 1)
__kernel void compact_offsets(const int n_blocks, __global int *counts, const long counts_off,
                              __global long *total, const long total_off)
{
    __local int sums[P_LOCAL];
    const int me = get_local_id(0), each = (n_blocks + P_LOCAL - 1) / P_LOCAL;
    const int first = min(me * each, n_blocks), end = min(first + each, n_blocks);
    int mine = 0, all;
    for (int b = first; b < end; ++b) mine += counts[counts_off + b];
    int at = group_scan(mine, sums, &all);
    for (int b = first; b < end; ++b) {
        const int count = counts[counts_off + b];
        counts[counts_off + b] = at;
        at += count;
    }
    if (me == 0) total[total_off] = all;
}

// Type of the results.
#if P_FORM == 0
typedef long place;
#else
typedef int place;
#endif

WORK_GROUP_SIZE(P_LOCAL, 1, 1)
__kernel void compact_write(const int n, const int block, const int n_blocks, const long mask,
                            __global const word *x, const long x_off, __global const int *offsets,
                            const long offsets_off, const int total, const int rank, const int d0,
                            const int d1, const int d2, const int d3, const int d4, const int d5,
                            const int d6, const int d7, __global place *y, const long y_off)
{
    __local int sums[P_LOCAL];
    const int me = get_local_id(0);
    const int dims[8] = {d0, d1, d2, d3, d4, d5, d6, d7};
    for (int b = get_group_id(0); b < n_blocks; b += get_num_groups(0)) {
        const long end = min((long)n, ((long)b + 1) * block);
        int at = offsets[offsets_off + b];
        for (long first = (long)b * block; first < end; first += P_LOCAL) {
            const long i = first + me;
            const int is = i < end && (x[x_off + i] & (word)mask) != 0;
            int sum;
            const int r = at + group_scan(is, sums, &sum);
#if P_FORM == 0
            int rest = (int)i;
            for (int d = rank - 1; is && d >= 0; --d) {
                y[y_off + (long)d * total + r] = rest % dims[d];
                rest /= dims[d];
            }
#elif P_FORM == 1
            if (is) y[y_off + r] = (int)i;
#else
            if (i < end) y[y_off + i] = r + is - 1;
#endif
            at += sum;
        }
    }
}
