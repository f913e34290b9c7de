// SPDX-License-Identifier: Apache-2.0
//
// Computes 2-D depthwise convolution on CPUs, over channel-blocked feature maps:
// [batch][blocks][height][width][P_VEC], blocks = ceil(channels / P_VEC). Each channel has its own
// weights, so that the weights of a kernel element (tap) are one vector per block of channels.
//
//   y[n, c, ...] = act(alpha * sum w[c, tap] * x[n, c, ...] + beta * bias[c] + residual), for any
//                  kernel size, stride, dilation and padding
//
// AT_ONCE adjacent output pixels of a line are computed together if their windows do not extend
// beyond the sides of the feature map, other pixels one by one.
//
// Parameters (also those of common/types.clh and common/epilogue.clh; P_BIAS is 0 or 1: per output
// channel)
//   P_STRIDE     stride along lines
//
// Arguments of conv_depthwise_blocked. Lengths and offsets are in elements; all sizes are >= 1.
//   batch, channels      channels: of x and of y
//   ih, iw, oh, ow       sizes of input and output
//   kh, kw, dh, dw       kernel size and dilations
//   sh                   stride from line to line
//   ph, pw               padding before, >= 0; the padding after follows from the output size
//   x, x_off             dense
//   packed_w, packed_w_off   [blocks][kh*kw][P_VEC], with zeros for channels that do not exist
//                        (pack_panels)
//   y, y_off             dense, does not overlap x
//   tile_h               output lines of a work-group
//   EPILOGUE_PARAMS      bias_rs .. bias_b1 unused; the residual has y's layout and may be y
//
// NDRange: one work-item per work-group. Dimension 0 covers ceil(oh / tile_h), 1 blocks, 2 batch.
// Each may be any number >= 1, best below 65536: kernels loop over the rest. Local memory: none.
//
// @split
// @cpu
// @variant P_T=1 P_FMA=1 P_VEC=16 P_STRIDE=1 P_BIAS=1 P_RESIDUAL=1 P_ACT=1
// @variant P_T=1 P_FMA=1 P_VEC=8 P_STRIDE=2 P_BIAS=1 P_RESIDUAL=0 P_ACT=8
// @variant P_T=1 P_FMA=0 P_VEC=4 P_STRIDE=1 P_BIAS=0 P_RESIDUAL=0 P_ACT=0

#include "common/types.clh"
#include "common/body.clh"
#include "common/epilogue.clh"
#include "common/lanes_simd.clh"
#include "conv/finish_blocked.clh"

#define PIXELS __global const elem *
#define PIXEL P_VEC
#define PIXEL_AT(p) VLOAD(p)
#include "conv/depthwise_blocked.clh"

// Returns the sum of one output pixel over the taps in `rows` and `columns`. x: position of its
// first tap, which may be outside of the feature map. Steps are in elements.
static __attribute__((noinline)) vec sum_one(__global const elem *x, __global const elem *packed_w,
                                             const struct taps rows, const struct taps columns,
                                             const int kw, const long row_step, const int tap_step)
{
    vec s = (vec)0.0f;
    for (int r = rows.low; r < rows.high; ++r)
        for (int c = columns.low; c < columns.high; ++c)
            s = MAD(VLOAD(packed_w + ((long)r * kw + c) * P_VEC),
                    VLOAD(x + r * row_step + (long)c * tap_step), s);
    return s;
}

#define DEPTHWISE_PARAMS                                                                           \
    const int batch, const int channels, const int ih, const int iw, const int oh, const int ow,   \
        const int kh, const int kw, const int dh, const int dw, const int sh, const int ph,        \
        const int pw, __global const elem *x, const long x_off, __global const elem *packed_w,     \
        const long packed_w_off, __global elem *y, const long y_off, const int tile_h,             \
        EPILOGUE_PARAMS
#define DEPTHWISE_ARGS                                                                             \
    batch, channels, ih, iw, oh, ow, kh, kw, dh, dw, sh, ph, pw, x, x_off, packed_w, packed_w_off, \
        y, y_off, tile_h, EPILOGUE_ARGS

// The body of conv_depthwise_blocked (common/body.clh).
BODY void convolve(BODY_PARAMS, DEPTHWISE_PARAMS)
{
    const int blocks = (channels + P_VEC - 1) / P_VEC, tap_step = dw * P_VEC;
    const long row_step = (long)dh * iw * P_VEC;
    const int extent = (kw - 1) * dw; // distance of the last tap of a line from the first
    // The windows of output columns [inner0, inner1) contain no padding at the sides.
    const int inner0 = min((pw + P_STRIDE - 1) / P_STRIDE, ow);
    const int fits = iw - 1 - extent + pw,
              inner1 = clamp(fits >= 0 ? fits / P_STRIDE + 1 : 0, inner0, ow);

    for (int image = group0.z; image < batch; image += group_step.z)
        for (int block = group0.y; block < blocks; block += group_step.y)
            for (int h = group0.x * tile_h; h < oh; h += group_step.x * tile_h)
                for (int i = h; i < min(h + tile_h, oh); ++i) {
                    const long plane = (long)image * blocks + block,
                               at_y = (plane * oh + i) * ow * P_VEC;
                    const int y0 = i * sh - ph;
                    const struct taps rows = taps_within(y0, kh, dh, ih);
                    // May point outside of the feature map; nothing is read there.
                    __global const elem *line = x + x_off + (plane * ih + y0) * iw * P_VEC;
                    __global const elem *w =
                        packed_w + packed_w_off + (long)block * kh * kw * P_VEC;
                    for (int j = 0; j < ow;) {
                        vec t[AT_ONCE];
                        const int x0 = j * P_STRIDE - pw,
                                  run = j >= inner0 && j + AT_ONCE <= inner1;
                        const int count = run ? AT_ONCE : 1;
                        if (run)
                            sum_run(t, line + (long)x0 * P_VEC, w, rows, kw, row_step, tap_step);
                        else
                            t[0] = sum_one(line + (long)x0 * P_VEC, w, rows,
                                           taps_within(x0, kw, dw, iw), kw, row_step, tap_step);
                        const long at = at_y + (long)j * P_VEC;
                        finish_pixels(t, 1, count, y + y_off + at, bias + bias_off + block * P_VEC,
                                      channels - block * P_VEC, residual + residual_off + at, alpha,
                                      beta, act_a, act_b);
                        j += count;
                    }
                }
}

WORK_GROUP_SIZE(1, 1, 1)
__kernel void conv_depthwise_blocked(DEPTHWISE_PARAMS) { convolve(BODY_GROUPS, DEPTHWISE_ARGS); }
