// SPDX-License-Identifier: Apache-2.0
//
// Computes convolution (ONNX Conv) directly, one work-item per output element, for dtypes and sizes
// that the tiled kernels do not support:
//
//   y[n, o, ...] = act(alpha * sum w[o, c, tap] * x[n, c, ...] + beta * bias[o] + residual)
//
// Parameters
//   P_T, P_VEC  see common/number.clh; P_T is a floating-point type; P_VEC is 1
//   P_BIAS, P_RESIDUAL, P_ACT  see common/epilogue.clh; P_BIAS is 0 or 1: per output channel
// Arguments. All tensors are dense; lengths and offsets are in elements.
//   batch, groups, ic, oc   ic and oc of one group; may be 0
//   CONV_SIZES_PARAMS       see common/conv.clh
//   x                       [batch, groups * ic, id, ih, iw]
//   weights                 [groups * oc, ic, kd, kh, kw]
//   y                       [batch, groups * oc, od, oh, ow], does not overlap x
//   EPILOGUE_PARAMS         bias_rs .. bias_b1 unused; the residual has y's layout
// NDRange: od * oh * ow, batch * groups * oc. Each may be smaller: the kernel loops over the rest.
//
// @split
// @hot conv_direct
// @variant P_T=1 P_VEC=1 P_BIAS=1 P_RESIDUAL=0 P_ACT=1
// @variant P_T=11 P_VEC=1 P_BIAS=1 P_RESIDUAL=0 P_ACT=0
// @variant P_T=10 P_VEC=1 P_BIAS=0 P_RESIDUAL=1 P_ACT=9

#include "common/number.clh"
#include "common/conv.clh"
#include "common/epilogue.clh"

// Returns the range [.x, .y) of taps (kernel elements) that are inside x, in one dimension. start:
// the coordinate of tap 0; size: that of x.
static inline int2 taps_inside(const int start, const int size, const int kernel_size,
                               const int dilation)
{
    const int first = start < 0 ? (-start + dilation - 1) / dilation : 0;
    const int last = start < size ? min(kernel_size, (size - start + dilation - 1) / dilation) : 0;
    return (int2)(min(first, last), last);
}

__kernel void conv_direct(const int batch, const int groups, const int ic, const int oc,
                          CONV_SIZES_PARAMS, __global const elem *x, const long x_off,
                          __global const elem *weights, const long weights_off, __global elem *y,
                          const long y_off, EPILOGUE_PARAMS)
{
    const int outputs = od * oh * ow, channels = groups * oc;
    for (int plane = get_global_id(1); plane < batch * channels; plane += get_global_size(1))
        for (int at = get_global_id(0); at < outputs; at += get_global_size(0)) {
            const int image = plane / channels, channel = plane % channels;
            const int z = at / (oh * ow) * sd - pd, r = at / ow % oh * sh - ph,
                      s = at % ow * sw - pw;
            const int2 tz = taps_inside(z, id, kd, dd), ty = taps_inside(r, ih, kh, dh);
            const int2 tx = taps_inside(s, iw, kw, dw);
            __global const elem *from =
                x + x_off + ((long)image * groups + channel / oc) * ic * id * ih * iw;
            __global const elem *filter = weights + weights_off + (long)channel * ic * kd * kh * kw;
            num total = 0;
            for (int c = 0; c < ic; ++c)
                for (int kz = tz.x; kz < tz.y; ++kz)
                    for (int ky = ty.x; ky < ty.y; ++ky) {
                        __global const elem *line =
                            from + (((long)c * id + z + kz * dd) * ih + r + ky * dh) * iw + s;
                        __global const elem *row = filter + ((c * kd + kz) * kh + ky) * kw;
                        for (int kx = tx.x; kx < tx.y; ++kx)
                            total += LOAD1(row + kx) * LOAD1(line + (long)kx * dw);
                    }
            const long to = (long)plane * outputs + at;
            STORE1(epilogue_finish(total, bias + bias_off + channel, residual + residual_off + to,
                                   alpha, beta, act_a, act_b),
                   y + y_off + to);
        }
}
