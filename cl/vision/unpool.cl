// SPDX-License-Identifier: Apache-2.0
//
// Computes MaxUnpool (ONNX 9, 11, 22): scatters x to y, which holds zeros before. index[i] is the
// linear position of x[i] in a tensor of planes [d, h, w]; y has planes [od, oh, ow], which may be
// larger.
//
// Parameters: P_SIZE, P_INDEX: see common/untyped.clh; P_VEC is 1, P_FP64 is 0
// Arguments
//   n           number of elements of x and index
//   d, h, w     sizes of the planes that the indices refer to
//   od, oh, ow  sizes of the planes of y, none smaller
//   total       elements of all planes that the indices refer to
//   chunk       adjacent elements that a work-item scatters per iteration
//   x, index    [n]. Elements with equal indices must be equal, as those of MaxPool are
//   y           [total / (d * h * w), od, oh, ow]
//   fault, code report an index that is out of range; its element is not written
// NDRange: n / chunk; it may be smaller.
//
// @variant P_SIZE=4 P_VEC=1 P_FP64=0 P_INDEX=32
// @variant P_SIZE=2 P_VEC=1 P_FP64=0 P_INDEX=64
#include "common/untyped.clh"

__kernel void unpool(const idx n, const idx d, const idx h, const idx w, const idx od, const idx oh,
                     const idx ow, const idx total, const int chunk, __global const word *x,
                     const long x_off, __global const long *index, const long index_off,
                     __global word *y, const long y_off, __global int *fault, const int code)
{
    for (idx begin = (idx)get_global_id(0) * chunk; begin < n;
         begin += (idx)get_global_size(0) * chunk)
        for (idx i = begin; i < min(begin + chunk, n); ++i) {
            const long given = index[index_off + i];
            if (given < 0 || given >= total) {
                fault[0] = code;
                fault[1] = (int)given;
                continue;
            }
            const idx at = (idx)given, row = at / w, plane = row / h;
            const idx to = ((plane / d * od + plane % d) * oh + row % h) * ow + at % w;
            y[y_off + to] = x[x_off + i];
        }
}
