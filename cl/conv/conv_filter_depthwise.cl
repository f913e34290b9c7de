// SPDX-License-Identifier: Apache-2.0
//
// Computes the gradient of the weights of a depthwise convolution, directly: its matrix products
// would have one row. A tap is an element of a window.
//
//   y[r, tap] = sum over n and windows o of small[n, r, o] large[n, r / multiplier, p] with
//                p = o * stride - pad + tap * dilation, in each dimension, where p is inside
//
// Parameters
//   P_FORM      0: a work-item computes the taps of one row of a window, with vectors; for CPUs.
//               1: a work-group computes one tap
//   P_LOCAL     work-items of a work-group: 1 with P_FORM 0, else a power of two
//   P_T, P_VEC  see common/number.clh; P_VEC is 1 with P_FORM 1
// Arguments. All tensors are dense, offsets in elements.
//   images, rows, multiplier   rows: channels of `small`, `multiplier` for each channel of `large`
//   CONV_SIZES_PARAMS          see common/conv.clh. id, ih, iw are those of `large`, od, oh, ow
//                              those of `small`
//   small                      [images, rows, od, oh, ow]
//   large                      [images, rows / multiplier, id, ih, iw]
//   y                          [rows, kd, kh, kw]
// NDRange: any number of work-groups of P_LOCAL, which loop over
//   P_FORM 0  rows * kd * kh
//   P_FORM 1  rows * kd * kh * kw
//
// @split
// @variant P_FORM=0 P_LOCAL=1 P_T=1 P_VEC=16
// @variant P_FORM=0 P_LOCAL=1 P_T=10 P_VEC=4
// @variant P_FORM=0 P_LOCAL=1 P_T=11 P_VEC=8
// @variant P_FORM=1 P_LOCAL=64 P_T=1 P_VEC=1
// @variant P_FORM=1 P_LOCAL=256 P_T=10 P_VEC=1
#include "common/conv.clh"
#include "common/number.clh"
#include "common/reductions.clh"

// Returns a / b rounded up, of any sign.
static inline int ceil_div(const int a, const int b) { return a > 0 ? (a - 1) / b + 1 : -(-a / b); }

#if P_FORM == 0

#define TAPS 8 // of a row, whose sums are kept together

LANES_SUM(sum_of, num)

// Returns sum + a[i] * b[i * stride], i < n, in lanes. numbers: 0, 1, 2, ...
static inline vec add_products(vec sum, __global const elem *a, __global const elem *b,
                               const int stride, const int n, const vec numbers)
{
    int i = 0;
    if (stride == 1) {
        for (; i + P_VEC <= n; i += P_VEC) sum += VLOAD(a + i) * VLOAD(b + i);
        if (i == n) return sum;
        if (n >= P_VEC) { // a last vector, in which the first lanes were added before
            const vec product = VLOAD(a + n - P_VEC) * VLOAD(b + n - P_VEC);
            return sum + (numbers >= (vec)(P_VEC - (n - i)) ? product : (vec)0);
        }
    }
    for (; i < n; i += P_VEC) {
        vec x = 0, y = 0;
        for (int l = 0; l < P_VEC && i + l < n; ++l) {
            ((num *)&x)[l] = LOAD1(a + i + l);
            ((num *)&y)[l] = LOAD1(b + (long)(i + l) * stride);
        }
        sum += x * y;
    }
    return sum;
}

__kernel void conv_filter_depthwise(const int images, const int rows, const int multiplier,
                                    CONV_SIZES_PARAMS, __global const elem *small,
                                    const long small_off, __global const elem *large,
                                    const long large_off, __global elem *y, const long y_off)
{
    vec numbers = 0;
    for (int l = 0; l < P_VEC; ++l) ((num *)&numbers)[l] = l;
    for (int item = get_global_id(0); item < rows * kd * kh; item += get_global_size(0)) {
        const int ky = item % kh, kz = item / kh % kd, r = item / (kh * kd);
        const int up = ky * dh - ph, front = kz * dd - pd;
        for (int tap0 = 0; tap0 < kw; tap0 += TAPS) {
            const int taps = min(TAPS, kw - tap0);
            vec sums[TAPS];
            int first[TAPS], count[TAPS]; // windows of a row of which the tap is inside
            for (int t = 0; t < TAPS; ++t) {
                const int left = (tap0 + t) * dw - pw;
                sums[t] = 0;
                first[t] = clamp(ceil_div(-left, sw), 0, ow);
                count[t] = clamp(ceil_div(iw - left, sw), first[t], ow) - first[t];
            }
            for (int n = 0; n < images; ++n) {
                __global const elem *windows =
                    small + small_off + ((long)n * rows + r) * od * oh * ow;
                __global const elem *pixels =
                    large + large_off +
                    ((long)n * (rows / multiplier) + r / multiplier) * id * ih * iw;
                for (int line = 0; line < od * oh; ++line) {
                    const int z = line / oh * sd + front, q = line % oh * sh + up;
                    if (z < 0 || z >= id || q < 0 || q >= ih) continue;
                    __global const elem *row = pixels + ((long)z * ih + q) * iw;
                    for (int t = 0; t < taps; ++t)
                        sums[t] = add_products(sums[t], windows + (long)line * ow + first[t],
                                               row + first[t] * sw + (tap0 + t) * dw - pw, sw,
                                               count[t], numbers);
                }
            }
            for (int t = 0; t < taps; ++t)
                STORE1(sum_of(sums[t]), y + y_off + (long)item * kw + tap0 + t);
        }
    }
}

#else

GROUP_FOLD(group_sum, num, P_LOCAL, FOLD_SUM)

WORK_GROUP_SIZE(P_LOCAL, 1, 1)
__kernel void conv_filter_depthwise(const int images, const int rows, const int multiplier,
                                    CONV_SIZES_PARAMS, __global const elem *small,
                                    const long small_off, __global const elem *large,
                                    const long large_off, __global elem *y, const long y_off)
{
    __local num shared[P_LOCAL];
    const int me = get_local_id(0), pixels = od * oh * ow;
    for (int item = get_group_id(0); item < rows * kd * kh * kw; item += get_num_groups(0)) {
        const int kx = item % kw, ky = item / kw % kh, kz = item / (kw * kh) % kd,
                  r = item / (kw * kh * kd);
        const int left = kx * dw - pw, up = ky * dh - ph, front = kz * dd - pd;
        num sum = 0;
        for (int n = 0; n < images; ++n) {
            __global const elem *a = small + small_off + ((long)n * rows + r) * pixels;
            __global const elem *b =
                large + large_off + ((long)n * (rows / multiplier) + r / multiplier) * id * ih * iw;
            for (int o = me; o < pixels; o += P_LOCAL) {
                const int s = o % ow * sw + left, q = o / ow % oh * sh + up,
                          z = o / (ow * oh) * sd + front;
                if (s >= 0 && s < iw && q >= 0 && q < ih && z >= 0 && z < id)
                    sum += LOAD1(a + o) * LOAD1(b + ((long)z * ih + q) * iw + s);
            }
        }
        const num total = group_sum(sum, shared);
        if (me == 0) STORE1(total, y + y_off + item);
    }
}

#endif
