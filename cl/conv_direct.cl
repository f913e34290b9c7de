// SPDX-License-Identifier: Apache-2.0
//
// Convolution straight from its formula (ONNX Conv), for what the tiled kernels do not do: depthwise convolutions,
// and dtypes without a tiled kernel. x: [batch, groups*ic, D, H, W], w: [groups*oc, ic, KD, KH, KW],
// y: [batch, groups*oc, OD, OH, OW], W fastest; one or two axes are done with the missing sizes 1.
//
//   y = act(alpha * sum w * x + beta * bias[channel] + residual)
//
// Parameters
//   P_FORM  0 items: one work-item an output. NDRange: OD*OH*OW, batch * groups * oc
//           1 rows: ic = 1; one work-item a row of OW, P_VEC outputs at once. NDRange: OD*OH, batch * groups * oc
//   P_T, P_VEC  see common/number.clh; P_T is a float type; P_VEC is 1 in P_FORM 0 and at most OW in P_FORM 1
//   P_BIAS, P_RESIDUAL, P_ACT  see common/epilogue.clh; P_BIAS is 0 or 2
// Arguments
//   batch, groups, ic, oc   ic and oc of one group
//   for each of D, H, W     size, output size, kernel, stride, dilation, padding at the beginning
//   x, w, y                 dense
//   EPILOGUE_ARGS           bias_rs to bias_b1 are unused; the residual is laid out as y
// Every dimension of the NDRange may be smaller than its work.
//
// @variant P_FORM=0 P_T=1 P_VEC=1 P_BIAS=2 P_RESIDUAL=0 P_ACT=1
// @variant P_FORM=0 P_T=11 P_VEC=1 P_BIAS=2 P_RESIDUAL=0 P_ACT=0
// @variant P_FORM=0 P_T=10 P_VEC=1 P_BIAS=0 P_RESIDUAL=1 P_ACT=9
// @variant P_FORM=1 P_T=1 P_VEC=16 P_BIAS=2 P_RESIDUAL=0 P_ACT=3
// @variant P_FORM=1 P_T=10 P_VEC=8 P_BIAS=0 P_RESIDUAL=1 P_ACT=7
// @variant P_FORM=1 P_T=11 P_VEC=4 P_BIAS=2 P_RESIDUAL=0 P_ACT=0

#include "common/number.clh"
#include "common/epilogue.clh"

#define CONV_ARGS                                                                                  \
    const int batch, const int groups, const int ic, const int oc, const int d, const int od,     \
        const int kd, const int sd, const int dd, const int pd, const int h, const int oh,         \
        const int kh, const int sh, const int dh, const int ph, const int w, const int ow,         \
        const int kw, const int sw, const int dw, const int pw, __global const elem *x,            \
        const long x_off, __global const elem *weights, const long weights_off, __global elem *y,  \
        const long y_off, EPILOGUE_ARGS

// The taps of an axis that lie inside x: from x to below y. start: where tap 0 lies.
static inline int2 taps_inside(const int start, const int size, const int kernel_size, const int dilation)
{
    const int first = start < 0 ? (-start + dilation - 1) / dilation : 0;
    const int last = start < size ? min(kernel_size, (size - start + dilation - 1) / dilation) : 0;
    return (int2)(min(first, last), last);
}

#if P_FORM == 0

__kernel void conv_items(CONV_ARGS)
{
    const int outputs = od * oh * ow, channels = groups * oc;
    for (int plane = get_global_id(1); plane < batch * channels; plane += get_global_size(1))
    for (int at = get_global_id(0); at < outputs; at += get_global_size(0)) {
        const int image = plane / channels, channel = plane % channels;
        const int z = at / (oh * ow) * sd - pd, r = at / ow % oh * sh - ph, s = at % ow * sw - pw;
        const int2 tz = taps_inside(z, d, kd, dd), ty = taps_inside(r, h, kh, dh);
        const int2 tx = taps_inside(s, w, kw, dw);
        __global const elem *from = x + x_off + ((long)image * groups + channel / oc) * ic * d * h * w;
        __global const elem *filter = weights + weights_off + (long)channel * ic * kd * kh * kw;
        num total = 0;
        for (int c = 0; c < ic; ++c)
        for (int kz = tz.x; kz < tz.y; ++kz)
        for (int ky = ty.x; ky < ty.y; ++ky) {
            __global const elem *line = from + (((long)c * d + z + kz * dd) * h + r + ky * dh) * w + s;
            __global const elem *row = filter + ((c * kd + kz) * kh + ky) * kw;
            for (int kx = tx.x; kx < tx.y; ++kx)
                total += LOAD1(row + kx) * LOAD1(line + (long)kx * dw);
        }
        const long to = (long)plane * outputs + at;
        total *= alpha;
#if P_BIAS
        total += beta * LOAD1(bias + bias_off + channel);
#endif
#if P_RESIDUAL
        total += LOAD1(residual + residual_off + to);
#endif
        STORE1(epilogue_act(total, act_a, act_b), y + y_off + to);
    }
}

#else

// P_VEC elements `stride` apart from column ix of a line of w; columns outside of it give 0.
static inline vec load_columns(__global const elem *line, const int ix, const int stride, const int w)
{
    vec v;
    num *t = (num *)&v;
    if (ix >= 0 && ix + (P_VEC - 1) * stride < w) {
        if (stride == 1)
            return VLOAD(line + ix);
#if P_VEC > 1
        if (stride == 2 && ix + 2 * P_VEC <= w) {
            const vec low = VLOAD(line + ix), high = VLOAD(line + ix + P_VEC);
            return (vec)(low.even, high.even);
        }
#endif
        for (int i = 0; i < P_VEC; ++i)
            t[i] = LOAD1(line + ix + i * stride);
        return v;
    }
    for (int i = 0; i < P_VEC; ++i) {
        const int at = ix + i * stride;
        t[i] = at >= 0 && at < w ? LOAD1(line + at) : 0;
    }
    return v;
}

__kernel void conv_rows(CONV_ARGS)
{
    const int rows = od * oh, channels = groups * oc;
    for (int plane = get_global_id(1); plane < batch * channels; plane += get_global_size(1))
    for (int row = get_global_id(0); row < rows; row += get_global_size(0)) {
        const int image = plane / channels, channel = plane % channels;
        const int z = row / oh * sd - pd, r = row % oh * sh - ph;
        const int2 tz = taps_inside(z, d, kd, dd), ty = taps_inside(r, h, kh, dh);
        __global const elem *from = x + x_off + ((long)image * groups + channel / oc) * d * h * w;
        __global const elem *filter = weights + weights_off + (long)channel * kd * kh * kw;
        for (int ox = 0; ox < ow; ox += P_VEC) {
            // The last vector moves back to end with the row: some outputs are computed twice, alike.
            const int at = min(ox, ow - P_VEC);
            vec total = (vec)(num)0;
            for (int kz = tz.x; kz < tz.y; ++kz)
            for (int ky = ty.x; ky < ty.y; ++ky) {
                __global const elem *line = from + ((long)(z + kz * dd) * h + r + ky * dh) * w;
                __global const elem *taps = filter + (kz * kh + ky) * kw;
                for (int kx = 0; kx < kw; ++kx)
                    total += load_columns(line, at * sw - pw + kx * dw, sw, w) * (num)LOAD1(taps + kx);
            }
            const long to = ((long)plane * rows + row) * ow + at;
            total *= alpha;
#if P_BIAS
            total += (vec)(beta * (num)LOAD1(bias + bias_off + channel));
#endif
#if P_RESIDUAL
            total += VLOAD(residual + residual_off + to);
#endif
            VSTORE(epilogue_act(total, act_a, act_b), y + y_off + to);
        }
    }
}

#endif
