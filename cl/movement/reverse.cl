// SPDX-License-Identifier: Apache-2.0
//
// Computes ReverseSequence (ONNX 10): reverses the first lengths[b] steps of sequence b of a batch,
// and copies the other steps.
//
// Parameters
//   P_SIZE, P_VEC, P_INDEX  see common/untyped.clh; P_FP64 is 0
//
// Arguments
//   x, y            [outer, time, inner]; `time` is the reversed axis. The batch axis is among the
//                   axes that are merged in outer or in inner
//   outer, time, inner
//   batch_step      elements o (or i) of outer (or inner) for each step along the batch axis
//   batches         length of the batch axis: b = (batch_in_outer ? o : i) / batch_step % batches
//   batch_in_outer  1: the batch axis is in outer, 0: in inner
//   lengths         long [batches]
//   fault, code     for a length below 0 or above `time`, fault[0] = code and fault[1] = the
//                   length; the sequence is copied
// NDRange: ceil(inner / P_VEC) (batch_in_outer 0: inner), outer * time; each may be smaller.
//
// @variant P_SIZE=4 P_VEC=16 P_FP64=0 P_INDEX=32
// @variant P_SIZE=1 P_VEC=1 P_FP64=0 P_INDEX=64
#include "common/untyped.clh"

// Returns the time step of x that step t of y copies, for a sequence of the given length.
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
