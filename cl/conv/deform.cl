// SPDX-License-Identifier: Apache-2.0
//
// Computes the columns of DeformConv (ONNX 19, 22), as im2col does for Conv: for each kernel
// element (tap) and output pixel, x at the tap's position moved by the offset, by bilinear
// interpolation with zeros around the image, times the mask. A GEMM with the weights follows.
//
// Parameters
//   P_MASK   1: there is a mask; 0: none
//   P_BLOCK  output pixels of a work-item, for one tap and all channels of an offset group: 16 on
//            CPUs, 1 on GPUs
//   P_T, P_VEC  see common/number.clh; P_VEC is 1
// Arguments. All tensors are dense, offsets in elements.
//   x                        [batch, channels, h, w]
//   offset                   [batch, groups, kh * kw, 2, oh * ow]: of the row, then of the column
//   mask                     [batch, groups, kh * kw, oh * ow]; any buffer with P_MASK 0
//   cols                     [batch, channels, kh * kw, oh * ow]
//   batch, channels, groups  groups: offset groups, each of channels / groups channels
//   h, w, oh, ow, kh, kw     sizes of x, the output and the kernel
//   sh, sw, dh, dw           strides and dilations
//   top, left                padding before
// NDRange: ceil(oh * ow / P_BLOCK), batch * groups * kh * kw. Each may be smaller: the kernel loops
// over the rest.
//
// @split
// @variant P_MASK=1 P_BLOCK=16 P_T=1 P_VEC=1
// @variant P_MASK=0 P_BLOCK=1 P_T=10 P_VEC=1
// @variant P_MASK=1 P_BLOCK=1 P_T=11 P_VEC=1
#include "common/number.clh"

__kernel void deform_columns(__global const elem *x, const long x_off, __global const elem *offset,
                             const long offset_off, __global const elem *mask, const long mask_off,
                             __global elem *cols, const long cols_off, const int batch,
                             const int channels, const int groups, const int h, const int w,
                             const int oh, const int ow, const int kh, const int kw, const int sh,
                             const int sw, const int dh, const int dw, const int top,
                             const int left)
{
    const int taps = kh * kw, pixels = oh * ow, per_group = channels / groups;
    for (int row = get_global_id(1); row < batch * groups * taps; row += get_global_size(1))
        for (int start = (int)get_global_id(0) * P_BLOCK; start < pixels;
             start += (int)get_global_size(0) * P_BLOCK) {
            const int tap = row % taps, group = row / taps % groups, image = row / taps / groups;
            const int count = min(P_BLOCK, pixels - start);
            __global const elem *moves = offset + offset_off + (long)row * 2 * pixels;
            // Indices in the image of the four pixels around each position; -1 for one outside.
            int at[4 * P_BLOCK];
            num weight[4 * P_BLOCK];
            for (int i = 0; i < P_BLOCK; ++i) {
                const int p = min(start + i, pixels - 1);
                num y = (num)(p / ow * sh - top + tap / kw * dh) + LOAD1(moves + p);
                num z = (num)(p % ow * sw - left + tap % kw * dw) + LOAD1(moves + pixels + p);
                // Replaces coordinates outside, and NaN, by -2: it is outside and fits in an int.
                y = y >= -1 && y <= (num)h ? y : -2;
                z = z >= -1 && z <= (num)w ? z : -2;
                const int y0 = (int)floor(y), z0 = (int)floor(z);
                const num fy = y - (num)y0, fz = z - (num)z0;
#if P_MASK
                const num by = LOAD1(mask + mask_off + (long)row * pixels + p);
#else
                const num by = 1;
#endif
                for (int k = 0; k < 4; ++k) {
                    const int iy = y0 + k / 2, iz = z0 + k % 2;
                    const bool inside = iy >= 0 && iy < h && iz >= 0 && iz < w;
                    at[k * P_BLOCK + i] = inside ? iy * w + iz : -1;
                    weight[k * P_BLOCK + i] = by * (k / 2 ? fy : 1 - fy) * (k % 2 ? fz : 1 - fz);
                }
            }
            for (int c = group * per_group; c < (group + 1) * per_group; ++c) {
                __global const elem *from = x + x_off + ((long)image * channels + c) * h * w;
                __global elem *to =
                    cols + cols_off + (((long)image * channels + c) * taps + tap) * pixels + start;
                num sum[P_BLOCK];
                for (int i = 0; i < P_BLOCK; ++i) sum[i] = 0;
                for (int k = 0; k < 4; ++k)
                    for (int i = 0; i < P_BLOCK; ++i) {
                        const int a = at[k * P_BLOCK + i];
                        const num v = LOAD1(from + max(a, 0));
                        sum[i] += a < 0 ? (num)0 : weight[k * P_BLOCK + i] * v;
                    }
                for (int i = 0; i < count; ++i) STORE1(sum[i], to + i);
            }
        }
}
