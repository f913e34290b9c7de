// SPDX-License-Identifier: Apache-2.0
//
// Copies the windows of a convolution to the rows of a matrix, for the gradient of its weights. A
// tap is an element of a window.
//
//   cols[(c, tap), n, o] = x[n, c, o * stride - pad + tap * dilation], in each dimension; 0 outside
//
// Parameters
//   P_FORM  0: a work-item copies a plane: all windows of one channel, tap and image; for CPUs.
//           1: a work-item copies an element
//   P_SIZE, P_VEC, P_FP64, P_INDEX  see common/untyped.clh; 1, 0 and 32 but for P_SIZE
// Arguments. All tensors are dense, offsets in elements.
//   images, channels   of x
//   CONV_SIZES_PARAMS  see common/conv.clh
//   x                  [images, channels, id, ih, iw]
//   cols               [channels, kd, kh, kw, images, od, oh, ow]
// NDRange. Each dimension may be smaller: work-items loop over the rest.
//   P_FORM 0  1, channels * kd * kh * kw * images
//   P_FORM 1  od * oh * ow, channels * kd * kh * kw * images
//
// @split
// @variant P_FORM=0 P_SIZE=4 P_VEC=1 P_FP64=0 P_INDEX=32
// @variant P_FORM=0 P_SIZE=8 P_VEC=1 P_FP64=0 P_INDEX=32
// @variant P_FORM=1 P_SIZE=4 P_VEC=1 P_FP64=0 P_INDEX=32
// @variant P_FORM=1 P_SIZE=2 P_VEC=1 P_FP64=0 P_INDEX=32
#include "common/conv.clh"
#include "common/untyped.clh"

// Returns a / b rounded up, of any sign.
static inline int ceil_div(const int a, const int b) { return a > 0 ? (a - 1) / b + 1 : -(-a / b); }

__kernel void im2col(const int images, const int channels, CONV_SIZES_PARAMS,
                     __global const word *x, const long x_off, __global word *cols,
                     const long cols_off)
{
    const int planes = channels * kd * kh * kw * images;
    for (int plane = get_global_id(1); plane < planes; plane += get_global_size(1)) {
        const int image = plane % images, row = plane / images, kx = row % kw, ky = row / kw % kh,
                  kz = row / (kw * kh) % kd, c = row / (kw * kh * kd);
        const int left = kx * dw - pw, up = ky * dh - ph, front = kz * dd - pd;
        __global const word *from = x + x_off + ((long)image * channels + c) * id * ih * iw;
        __global word *to = cols + cols_off + (long)plane * od * oh * ow;
#if P_FORM == 0
        // the columns whose pixels are inside of a row
        const int first = clamp(ceil_div(-left, sw), 0, ow),
                  end = clamp(ceil_div(iw - left, sw), first, ow);
        for (int line = 0; line < od * oh; ++line, to += ow) {
            const int z = line / oh * sd + front, y = line % oh * sh + up;
            const bool inside = z >= 0 && z < id && y >= 0 && y < ih;
            const int begin = inside ? first : ow, stop = inside ? end : ow;
            __global const word *at = from + ((long)z * ih + y) * iw + left;
            for (int i = 0; i < begin; ++i) to[i] = 0;
            if (sw == 1)
                for (int i = begin; i < stop; ++i) to[i] = at[i];
            else
                for (int i = begin; i < stop; ++i) to[i] = at[(long)i * sw];
            for (int i = stop; i < ow; ++i) to[i] = 0;
        }
#else
        for (int o = get_global_id(0); o < od * oh * ow; o += get_global_size(0)) {
            const int s = o % ow * sw + left, y = o / ow % oh * sh + up,
                      z = o / (ow * oh) * sd + front;
            if (s >= 0 && s < iw && y >= 0 && y < ih && z >= 0 && z < id)
                to[o] = from[((long)z * ih + y) * iw + s];
            else
                to[o] = 0;
        }
#endif
    }
}
