// SPDX-License-Identifier: Apache-2.0
//
// Appends new keys or values to the past ones of an attention cache.
//
//   present[b, h, j] = fresh[b, h, j - start]  for start <= j < start + count
//                      past[b, h, j]           for other j < past_len; without P_KEEP j < start
//                      0                       otherwise
//
//   P_START  0: start is start_or_add; 1: lengths[b] + start_or_add - count, clamped to
//            0 .. total - count; a value that is clamped is reported to `fault`
//   P_KEEP   1: also keeps past elements after the new ones
//   P_SIZE, P_VEC, P_INDEX  see common/untyped.clh; P_FP64 0
// Arguments, in elements: rows (batch * heads), heads, total, past_len, count, d; past, present
// dense; fresh with strides of batch, head and position; start_or_add
// NDRange: d / P_VEC, rows * total
//
// @variant P_SIZE=4 P_VEC=16 P_FP64=0 P_INDEX=32 P_START=0 P_KEEP=0
// @variant P_SIZE=2 P_VEC=1 P_FP64=0 P_INDEX=32 P_START=1 P_KEEP=1
#include "common/untyped.clh"

__kernel void kv_append(const int rows, const int heads, const int total, const int past_len,
                        const int count, const int d, __global const word *past,
                        const long past_off, __global const word *fresh, const long fresh_off,
                        const long fb, const long fh, const long fj, __global word *present,
                        const long present_off, __global const int *lengths, const long lengths_off,
                        const int start_or_add, __global int *fault, const int code)
{
    for (int position = get_global_id(1); position < rows * total; position += get_global_size(1)) {
        const int row = position / total, j = position % total, b = row / heads;
#if P_START
        const int requested_start = lengths[lengths_off + b] + start_or_add - count,
                  start = clamp(requested_start, 0, max(total - count, 0));
        if (requested_start != start) {
            fault[0] = code;
            fault[1] = lengths[lengths_off + b];
        }
#else
        const int start = start_or_add;
#endif
        const bool is_new = j >= start && j < start + count;
        const bool is_past = !is_new && j < past_len && j < (P_KEEP ? past_len : start);
        __global const word *from =
            is_new ? fresh + fresh_off + b * fb + row % heads * fh + (j - start) * fj
                   : past + past_off + ((long)row * past_len + j) * d;
        for (int i = (int)get_global_id(0) * P_VEC; i < d; i += (int)get_global_size(0) * P_VEC) {
            const int n = min(P_VEC, d - i);
            vword x = (vword)0;
            if (is_new || is_past) x = load_word(from + i, n);
            store_word(present + present_off + (long)position * d + i, x, n);
        }
    }
}
