// SPDX-License-Identifier: Apache-2.0
//
// Computes the columns (im2col) of DeformConv (ONNX 19, 22): for each kernel element (tap) and
// output pixel, the input at its offset position, by bilinear interpolation with zeros around the
// image, times its mask. A GEMM with the weight follows.
//
// Parameters
//   P_MASK   1: there is a mask
//   P_BLOCK  pixels whose positions a work-item computes together, for all channels of an offset
//            group: simd 16, simt 1
//   P_T, P_VEC  see common/number.clh; P_VEC is 1
// Arguments
//   x [batch, channels, h, w]; offset [batch, groups, kh * kw, 2, oh * ow], y before x;
//   mask [batch, groups, kh * kw, oh * ow]; cols [batch, channels, kh * kw, oh * ow]; batch,
//   channels, groups (of offsets), h, w, oh, ow, kh, kw; sh, sw strides; dh, dw dilations; top,
//   left padding
// NDRange: oh * ow / P_BLOCK, batch * groups * kh * kw; each may be smaller.
//
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
            // Indices of the four pixels around each position, -1 for one outside.
            int at[4 * P_BLOCK];
            num weight[4 * P_BLOCK];
            for (int i = 0; i < P_BLOCK; ++i) {
                const int p = min(start + i, pixels - 1);
                num y = (num)(p / ow * sh - top + tap / kw * dh) + LOAD1(moves + p);
                num z = (num)(p % ow * sw - left + tap % kw * dw) + LOAD1(moves + pixels + p);
                // Replaces positions outside, and NaN, by one that is outside and fits in an int.
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
