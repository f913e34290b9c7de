// SPDX-License-Identifier: Apache-2.0
//
// Computes ConvInteger (ONNX 10) and QLinearConv (ONNX 10) by direct convolution: exact int32 sums
// of (x - x_zero) * (w - w_zero); padding contributes 0.
//
// Parameters
//   P_A, P_B, P_Y, P_VEC  see quant/requantize.clh; A is x, B is w; P_VEC 1, P_FP64 0, P_INDEX 32
//   P_ZERO_A, P_ZERO_B, P_BIAS  see quant/qconv.clh
//   P_FORM    0: a group is one work-item, which computes up to P_LINE adjacent pixels of a row of
//             y, by a loop over them for each kernel element (tap). NDRange: ceil(ow / P_LINE),
//             batch * groups * oc * od * oh.
//             1: a work-item computes one pixel. NDRange: od * oh * ow, batch * groups * oc.
//             Each dimension may be smaller: work-items loop over the rest
//   P_LINE    P_FORM 0: pixels whose sums are in private memory; else 1
// Arguments, in elements
//   batch, groups
//   ic, oc    channels of one group
//   CONV_SIZES_PARAMS   see common/conv.clh
//   x         [batch, groups * ic, id, ih, iw]
//   weights   [groups * oc, ic, kd, kh, kw]
//   y         [batch, groups * oc, od, oh, ow]
//   QCONV_ARGS_LAST     see quant/qconv.clh
//
// @split
// @hot qconv P_FORM=1
// @variant P_A=2 P_B=3 P_Y=6 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=0 P_BIAS=0 P_FORM=0
//          P_LINE=256
// @variant P_A=2 P_B=2 P_Y=2 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_BIAS=1 P_FORM=0
//          P_LINE=256
// @variant P_A=3 P_B=3 P_Y=3 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=1 P_ZERO_B=1 P_BIAS=0 P_FORM=1
//          P_LINE=1
// @variant P_A=2 P_B=2 P_Y=6 P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=0 P_ZERO_B=0 P_BIAS=0 P_FORM=1
//          P_LINE=1
#include "common/conv.clh"
#include "quant/requantize.clh"
#include "quant/qconv.clh"

#define QCONV_PARAMS                                                                               \
    const int batch, const int groups, const int ic, const int oc, CONV_SIZES_PARAMS,              \
        __global const a_elem *x, const long x_off, __global const b_elem *weights,                \
        const long weights_off, __global y_elem *y, const long y_off, QCONV_ARGS_LAST

#if P_FORM == 0

WORK_GROUP_SIZE(1, 1, 1)
__kernel void qconv(QCONV_PARAMS)
{
    const int channels = groups * oc;
    for (int row = get_group_id(1); row < batch * channels * od * oh; row += get_num_groups(1)) {
        const int plane = row / (od * oh), z = row / oh % od * sd - pd, r = row % oh * sh - ph;
        const int image = plane / channels, channel = plane % channels, x0 = X_ZERO,
                  w0 = W_ZERO(channel);
        __global const a_elem *from =
            x + x_off + ((long)image * groups + channel / oc) * ic * id * ih * iw;
        __global const b_elem *filter = weights + weights_off + (long)channel * ic * kd * kh * kw;
        for (int begin = (int)get_group_id(0) * P_LINE; begin < ow;
             begin += (int)get_num_groups(0) * P_LINE) {
            const int count = min(P_LINE, ow - begin);
            int line[P_LINE];
            for (int i = 0; i < count; ++i) line[i] = START(channel);
            for (int c = 0; c < ic; ++c)
                for (int kz = 0; kz < kd; ++kz)
                    for (int ky = 0; ky < kh; ++ky) {
                        const int iz = z + kz * dd, iy = r + ky * dh;
                        if (iz < 0 || iz >= id || iy < 0 || iy >= ih) continue;
                        __global const a_elem *in = from + (((long)c * id + iz) * ih + iy) * iw;
                        for (int kx = 0; kx < kw; ++kx) {
                            const int weight =
                                (int)filter[((c * kd + kz) * kh + ky) * kw + kx] - w0;
                            // Pixel i reads column i * sw + shift.
                            const int shift = begin * sw + kx * dw - pw;
                            const int first = shift < 0 ? (-shift + sw - 1) / sw : 0;
                            const int last =
                                shift < iw ? min(count, (iw - shift + sw - 1) / sw) : 0;
                            for (int i = first; i < last; ++i)
                                line[i] += weight * ((int)in[i * sw + shift] - x0);
                        }
                    }
            const float factor = FACTOR(channel);
            for (int i = 0; i < count; ++i)
                y[y_off + (long)row * ow + begin + i] = FINISHED(line[i], factor);
        }
    }
}

#else

__kernel void qconv(QCONV_PARAMS)
{
    const int channels = groups * oc, pixels = od * oh * ow;
    for (int plane = get_global_id(1); plane < batch * channels; plane += get_global_size(1))
        for (int at = get_global_id(0); at < pixels; at += get_global_size(0)) {
            const int image = plane / channels, channel = plane % channels, x0 = X_ZERO,
                      w0 = W_ZERO(channel);
            const int z = at / (oh * ow) * sd - pd, r = at / ow % oh * sh - ph,
                      s = at % ow * sw - pw;
            __global const a_elem *from =
                x + x_off + ((long)image * groups + channel / oc) * ic * id * ih * iw;
            __global const b_elem *filter =
                weights + weights_off + (long)channel * ic * kd * kh * kw;
            int sum = START(channel);
            for (int c = 0; c < ic; ++c)
                for (int kz = 0; kz < kd; ++kz)
                    for (int ky = 0; ky < kh; ++ky) {
                        const int iz = z + kz * dd, iy = r + ky * dh;
                        if (iz < 0 || iz >= id || iy < 0 || iy >= ih) continue;
                        for (int kx = 0; kx < kw; ++kx) {
                            const int ix = s + kx * dw;
                            if (ix >= 0 && ix < iw)
                                sum += ((int)filter[((c * kd + kz) * kh + ky) * kw + kx] - w0) *
                                       ((int)from[(((long)c * id + iz) * ih + iy) * iw + ix] - x0);
                        }
                    }
            y[y_off + (long)plane * pixels + at] = FINISHED(sum, FACTOR(channel));
        }
}

#endif
