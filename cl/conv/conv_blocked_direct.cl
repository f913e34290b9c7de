// SPDX-License-Identifier: Apache-2.0
//
// Computes 2-D convolution over channel-blocked feature maps, [batch][ceil(channels / P_LANES)]
// [height][width][P_LANES], one work-item per element, for devices whose compiler fails on the
// tiled kernels (conv_blocked.cl and others):
//
//   y[n, o, ...] = act(alpha * sum w[o, c, tap] * x[n, c, ...] + beta * bias[o] + residual)
//
// A prologue replaces x by x * in_scale[c] + in_shift[c], perhaps followed by Relu. Channels of y
// beyond the last one get the results for zero weights and bias.
//
// Parameters
//   P_T, P_VEC   see common/number.clh; P_T is 1, P_VEC is 1
//   P_LANES      channels of a block of y
//   P_IN         channels of a block of x: P_LANES, or 1 if x is in NCHW order
//   P_PROLOGUE   0: none; 1: scale and shift; 2: also Relu
//   P_BIAS, P_RESIDUAL, P_ACT   see common/epilogue.clh; P_BIAS is 0 or 1: per output channel
// Arguments. Lengths and offsets are in elements; all sizes are >= 1.
//   batch, groups, ic, oc    ic and oc of one group
//   ih, iw .. ph, pw, sw     as for conv_blocked; sw: stride along lines
//   x, weights, y            as for conv_blocked, but the weights are not packed: element
//                            w_output * o + w_input * c + w_line * ky + w_column * kx, o among all
//                            channels of y and c among those of a group of x
//   y_line, y_plane, y_step  from one output line, block of channels and pixel of a line to the
//                            next, in y, in pixels: ow, oh * ow and 1 where y is dense
//   in_scale, in_shift       one per channel of x; unused without a prologue
//   EPILOGUE_PARAMS          bias_rs .. bias_b1 unused; the residual has y's layout and may be y
// NDRange: oh * ow, batch * ceil(groups * oc / P_LANES) * P_LANES. Each may be smaller: the kernel
// loops over the rest.
//
// @split
// @cpu
// @variant P_T=1 P_VEC=1 P_LANES=16 P_IN=16 P_PROLOGUE=0 P_BIAS=1 P_RESIDUAL=1 P_ACT=1
// @variant P_T=1 P_VEC=1 P_LANES=8 P_IN=1 P_PROLOGUE=0 P_BIAS=0 P_RESIDUAL=0 P_ACT=0
// @variant P_T=1 P_VEC=1 P_LANES=4 P_IN=4 P_PROLOGUE=2 P_BIAS=1 P_RESIDUAL=0 P_ACT=8

#include "common/number.clh"
#include "common/epilogue.clh"

// Returns element `channel` of pixel `at` (line * iw + column) of an image of x.
#define PIXEL(image, channel, at)                                                                  \
    image[((long)((channel) / P_IN) * ih * iw + (at)) * P_IN + (channel) % P_IN]

#define SIZES_PARAMS                                                                               \
    const int batch, const int groups, const int ic, const int oc, const int ih, const int iw,     \
        const int oh, const int ow, const int kh, const int kw, const int dh, const int dw,        \
        const int sh, const int ph, const int pw, const int sw

__kernel void conv_blocked_direct(SIZES_PARAMS, __global const elem *x, const long x_off,
                                  __global const elem *weights, const long weights_off,
                                  __global elem *y, const long y_off, const int y_line,
                                  const int y_plane, const int y_step, const long w_output,
                                  const long w_input, const long w_line, const long w_column,
                                  __global const elem *in_scale, const long in_scale_off,
                                  __global const elem *in_shift, const long in_shift_off,
                                  EPILOGUE_PARAMS)
{
    const int channels = groups * oc, lanes = (channels + P_LANES - 1) / P_LANES * P_LANES;
    const int slices = (groups * ic + P_IN - 1) / P_IN;
    for (int plane = get_global_id(1); plane < batch * lanes; plane += get_global_size(1))
        for (int at = get_global_id(0); at < oh * ow; at += get_global_size(0)) {
            const int image = plane / lanes, channel = plane % lanes, r = at / ow, s = at % ow;
            const long to = (((long)image * (lanes / P_LANES) + channel / P_LANES) * y_plane +
                             (long)r * y_line + (long)s * y_step) *
                                P_LANES +
                            channel % P_LANES;
            if (channel >= channels) { // a lane without a channel
                num rest = 0;
#if P_RESIDUAL
                rest = WITH_RESIDUAL(rest, LOAD1(residual + residual_off + to));
#endif
                STORE1(epilogue_act(rest, act_a, act_b), y + y_off + to);
                continue;
            }
            __global const elem *from = x + x_off + (long)image * slices * ih * iw * P_IN;
            __global const elem *filter = weights + weights_off + channel * w_output;
            num total = 0;
            for (int c = 0; c < ic; ++c) {
                const int in = channel / oc * ic + c;
                for (int ky = 0; ky < kh; ++ky) {
                    const int line = r * sh - ph + ky * dh;
                    for (int kx = 0; kx < kw; ++kx) {
                        const int column = s * sw - pw + kx * dw;
                        if (line < 0 || line >= ih || column < 0 || column >= iw) continue;
                        num v = PIXEL(from, in, (long)line * iw + column);
#if P_PROLOGUE
                        v = v * in_scale[in_scale_off + in] + in_shift[in_shift_off + in];
#endif
#if P_PROLOGUE == 2
                        v = v < 0 ? 0 : v;
#endif
                        total += v * filter[c * w_input + ky * w_line + kx * w_column];
                    }
                }
            }
            STORE1(epilogue_finish(total, bias + bias_off + channel, residual + residual_off + to,
                                   alpha, beta, act_a, act_b),
                   y + y_off + to);
        }
}
