// SPDX-License-Identifier: Apache-2.0
//
// Computes ReverseSequence (ONNX 10): reverses the first length[b] steps of each sequence of a
// batch.
//
//   P_SIZE, P_VEC, P_INDEX  see common/untyped.clh; P_FP64 0
//
// x, y: [outer, time, inner], where time is the reversed axis, and the batch is one of the
// coordinates of outer or of inner: batch = (batch_in_outer ? o : i) / batch_step % batches.
// Arguments, in elements: outer, time, inner, batch_step, batches, batch_in_outer, x, lengths, y,
// fault: a length that is less than 0 or more than time is reported to it, and the sequence copied.
// NDRange: inner (P_VEC elements where the batch is in outer), outer * time
//
// @variant P_SIZE=4 P_VEC=16 P_FP64=0 P_INDEX=32
// @variant P_SIZE=1 P_VEC=1 P_FP64=0 P_INDEX=64
#include "common/untyped.clh"

static inline idx source(const idx t, const idx time, const long length, __global int *fault,
                         const int code)
{
    if (length < 0 || length > time) {
        fault[0] = code;
        fault[1] = (int)length;
        return t;
    }
    return t < length ? (idx)length - 1 - t : t;
}

__kernel void reverse_sequence(const idx outer, const idx time, const idx inner,
                               const idx batch_step, const idx batches, const int batch_in_outer,
                               __global const word *x, const long x_off,
                               __global const long *lengths, const long lengths_off,
                               __global word *y, const long y_off, __global int *fault,
                               const int code)
{
    lengths += lengths_off;
    for (idx row = get_global_id(1); row < outer * time; row += get_global_size(1)) {
        const idx o = row / time, t = row - o * time;
        __global const word *from = x + x_off + o * time * inner;
        __global word *to = y + y_off + row * inner;
        if (batch_in_outer) {
            const idx s = source(t, time, lengths[o / batch_step % batches], fault, code);
            for (idx i = (idx)get_global_id(0) * P_VEC; i < inner;
                 i += (idx)get_global_size(0) * P_VEC) {
                const int count = (int)min((idx)P_VEC, inner - i);
                store_word(to + i, load_word(from + s * inner + i, count), count);
            }
        } else {
            for (idx i = get_global_id(0); i < inner; i += get_global_size(0))
                to[i] =
                    from[source(t, time, lengths[i / batch_step % batches], fault, code) * inner +
                         i];
        }
    }
}
