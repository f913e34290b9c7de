// SPDX-License-Identifier: Apache-2.0
//
// Writes the key or value cache of an attention operator: the past keys or values, with new ones
// stored from position `start` on.
//
//   present[b, h, j] = fresh[b, h, j - start]  for start <= j < start + count
//                      past[b, h, j]           for other j < past_len (P_KEEP 0: and j < start)
//                      0                       otherwise
//
// Parameters
//   P_START  0: start is start_or_add, for all batches; 1: start is lengths[b] + start_or_add -
//            count, clamped to 0 .. total - count. If that changes it, the kernel sets fault[0] to
//            `code` and fault[1] to lengths[b]
//   P_KEEP   1: also copies past elements at positions after the new ones; 0: they become 0
//   P_SIZE, P_VEC, P_INDEX, P_FP64  see common/untyped.clh; P_FP64 is 0
// Arguments. Offsets and strides are in elements.
//   rows, heads   rows: batch * heads
//   total         positions of `present`
//   past_len      positions of `past`
//   count         positions of `fresh`
//   d             head size
//   in_place      1: `present` is the memory of `past`, which is not read: only fresh positions are
//                 written, and none for a batch whose start was changed
//   past          dense, [batch, heads, past_len, d]
//   fresh         with strides fb, fh, fj of batch, head and position
//   present       dense, [batch, heads, total, d]; does not overlap `fresh`, nor, unless in_place,
//                 `past`
//   lengths       [batch], read with P_START 1
//   start_or_add, fault, code   see P_START
// NDRange: ceil(d / P_VEC), rows * (in_place ? count : total). Each may be smaller: the
// kernel loops over the rest.
//
// @variant P_SIZE=4 P_VEC=16 P_FP64=0 P_INDEX=32 P_START=0 P_KEEP=0
// @variant P_SIZE=2 P_VEC=1 P_FP64=0 P_INDEX=32 P_START=1 P_KEEP=1
#include "common/untyped.clh"

__kernel void kv_append(const int rows, const int heads, const int total, const int past_len,
                        const int count, const int d, const int in_place, __global const word *past,
                        const long past_off, __global const word *fresh, const long fresh_off,
                        const long fb, const long fh, const long fj, __global word *present,
                        const long present_off, __global const int *lengths, const long lengths_off,
                        const int start_or_add, __global int *fault, const int code)
{
    const int written = in_place ? count : total; // positions of a row
    for (int k = get_global_id(1); k < rows * written; k += get_global_size(1)) {
        const int row = k / written, b = row / heads;
#if P_START
        const int requested_start = lengths[lengths_off + b] + start_or_add - count,
                  start = clamp(requested_start, 0, max(total - count, 0));
        if (requested_start != start) {
            fault[0] = code;
            fault[1] = lengths[lengths_off + b];
            if (in_place) continue;
        }
#else
        const int start = start_or_add;
#endif
        const int j = k % written + (in_place ? start : 0);
        const bool is_new = j >= start && j < start + count;
        const bool is_past = !is_new && j < past_len && j < (P_KEEP ? past_len : start);
        __global const word *from =
            is_new ? fresh + fresh_off + b * fb + row % heads * fh + (j - start) * fj
                   : past + past_off + ((long)row * past_len + j) * d;
        for (int i = (int)get_global_id(0) * P_VEC; i < d; i += (int)get_global_size(0) * P_VEC) {
            const int n = min(P_VEC, d - i);
            vword x = (vword)0;
            if (is_new || is_past) x = load_word(from + i, n);
            store_word(present + present_off + ((long)row * total + j) * d + i, x, n);
        }
    }
}
