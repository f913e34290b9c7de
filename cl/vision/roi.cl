// SPDX-License-Identifier: Apache-2.0
//
// Computes RoiAlign (ONNX 10, 16, 22) and MaxRoiPool (ONNX 1): pools regions of images to a fixed
// size.
//
// Parameters
//   P_MAX    roi_align: 0: a bin is the mean of its samples, each bilinearly interpolated; 1: the
//            maximum of its samples, each the largest of its four weighted elements
//   P_BLOCK  roi_align: channels per work-item: SIMD class 16, SIMT class 4
//   P_T      element type of x, rois and y, see common/number.clh
//   P_VEC    1
// roi_align  pools regions of image index[r] into ph x pw bins. Region r is rois[r] = x1, y1, x2,
//   y2, each times `scale` minus `shift`; its width and height are at least min_size. A bin has
//   ratio x ratio samples; with ratio 0, ceil(bin's height) x ceil(bin's width). An index out of
//   range is reported to `fault`, and its region is zeros.
//   Arguments: x [batch, channels, h, w], rois [n_rois, 4], index [n_rois], y [n_rois, channels,
//   ph, pw], fault, code; n_rois, batch, channels, h, w, ph, pw, ratio, scale, shift, min_size.
//   NDRange: ph * pw, n_rois * ceil(channels / P_BLOCK)
// max_roi_pool  y[r, c, i, j] = the largest element of a bin, 0 for an empty bin. Region r is
//   rois[r] = image, x1, y1, x2, y2; coordinates are multiplied by `scale` and rounded.
//   Arguments: x, rois [n_rois, 5], y, fault, code; n_rois, batch, channels, h, w, ph, pw, scale.
//   NDRange: ph * pw, n_rois * channels
// Any dimension of the NDRange may be smaller: work-items loop.
//
// @split
// @variant P_MAX=0 P_BLOCK=16 P_T=1 P_VEC=1
// @variant P_MAX=1 P_BLOCK=4 P_T=10 P_VEC=1
// @variant P_MAX=0 P_BLOCK=4 P_T=11 P_VEC=1
#pragma OPENCL FP_CONTRACT OFF
#include "common/number.clh"

// The n samples of a bin along an axis: sample i is at first + (i + 0.5) * space; all samples that
// are inside the image are among begin .. end - 1.
typedef struct {
    num first, space, n;
    int begin, end;
} samples;

static inline samples samples_of(const num start, const num size, const int at, const int n_bins,
                                 const int ratio, const int length)
{
    samples s;
    const num bin = size / (num)n_bins;
    s.n = ratio > 0 ? (num)ratio : fmax(ceil(bin), (num)0);
    s.space = bin / s.n;
    s.first = start + (num)at * bin;
    // Wider by one sample at either end, against rounding: roi_align checks each sample.
    num from = (-1 - s.first) / s.space - 2, to = ((num)length - s.first) / s.space + 2;
    if (!(s.space > 0)) {
        from = 0;
        to = ratio;
    }
    s.begin = (int)clamp(from, (num)0, fmin(s.n, (num)1e9f));
    s.end = (int)clamp(to, (num)0, fmin(s.n, (num)1e9f));
    return s;
}

// Finds the two adjacent elements of an axis of length n around position x, and the weight of the
// second for linear interpolation. Returns 0 if x is outside of -1 .. n, else 1.
static inline int around(num x, const int n, int *low, int *high, num *part)
{
    if (!(x >= -1 && x <= (num)n)) return 0;
    x = fmax(x, (num)0);
    *low = min((int)x, n - 1);
    *high = min(*low + 1, n - 1);
    *part = *low == *high ? (num)0 : x - (num)*low;
    return 1;
}

__kernel void roi_align(__global const elem *x, const long x_off, __global const elem *rois,
                        const long rois_off, __global const long *index, const long index_off,
                        __global elem *y, const long y_off, __global int *fault, const int code,
                        const int n_rois, const int batch, const int channels, const int h,
                        const int w, const int ph, const int pw, const int ratio, const float scale,
                        const float shift, const float min_size)
{
    const int blocks = (channels + P_BLOCK - 1) / P_BLOCK;
    const long plane = (long)h * w;
    for (int row = get_global_id(1); row < n_rois * blocks; row += get_global_size(1))
        for (int bin = get_global_id(0); bin < ph * pw; bin += get_global_size(0)) {
            const int r = row / blocks, c = row % blocks * P_BLOCK,
                      count = min(P_BLOCK, channels - c);
            const long image = index[index_off + r];
            const bool exists = image >= 0 && image < batch;
            if (!exists) {
                fault[0] = code;
                fault[1] = (int)image;
            }
            __global const elem *roi = rois + rois_off + (long)r * 4;
            const num x1 = LOAD1(roi) * (num)scale - (num)shift,
                      y1 = LOAD1(roi + 1) * (num)scale - (num)shift;
            const num x2 = LOAD1(roi + 2) * (num)scale - (num)shift,
                      y2 = LOAD1(roi + 3) * (num)scale - (num)shift;
            const samples across =
                samples_of(x1, fmax(x2 - x1, (num)min_size), bin % pw, pw, ratio, w);
            const samples down =
                samples_of(y1, fmax(y2 - y1, (num)min_size), bin / pw, ph, ratio, h);
            __global const elem *from = x + x_off + ((exists ? image : 0) * channels + c) * plane;
            num total[P_BLOCK];
            num seen = 0;
            for (int i = 0; i < P_BLOCK; ++i) total[i] = 0;
            for (int iy = down.begin; exists && iy < down.end; ++iy)
                for (int ix = across.begin; ix < across.end; ++ix) {
                    int top, bottom, left, right;
                    num fy, fx;
                    if (!around(down.first + ((num)iy + (num)0.5f) * down.space, h, &top, &bottom,
                                &fy) ||
                        !around(across.first + ((num)ix + (num)0.5f) * across.space, w, &left,
                                &right, &fx))
                        continue;
                    const num w1 = (1 - fy) * (1 - fx), w2 = (1 - fy) * fx, w3 = fy * (1 - fx),
                              w4 = fy * fx;
                    const long p1 = (long)top * w + left, p2 = (long)top * w + right,
                               p3 = (long)bottom * w + left, p4 = (long)bottom * w + right;
                    for (int i = 0; i < P_BLOCK; ++i) {
                        __global const elem *at = from + min(i, count - 1) * plane;
                        const num v1 = w1 * LOAD1(at + p1), v2 = w2 * LOAD1(at + p2),
                                  v3 = w3 * LOAD1(at + p3), v4 = w4 * LOAD1(at + p4);
#if P_MAX
                        const num v = fmax(fmax(v1, v2), fmax(v3, v4));
                        total[i] = seen > 0 ? fmax(total[i], v) : v;
#else
                        total[i] += v1 + v2 + v3 + v4;
#endif
                    }
                    seen += 1;
                }
            const num all = down.n * across.n;
            __global elem *to = y + y_off + ((long)r * channels + c) * ph * pw + bin;
            for (int i = 0; i < count; ++i) {
#if P_MAX
                // Samples outside of the image count as 0.
                const num v = seen < all ? fmax(total[i], (num)0) : total[i];
#else
                const num v = total[i] / fmax(all, (num)1);
#endif
                STORE1(v, to + (long)i * ph * pw);
            }
        }
}

// Returns start + at_bin, an edge of a bin, clamped to 0 .. length.
static inline int edge(const num start, const num at_bin, const int length)
{
    return (int)clamp(at_bin + start, (num)0, (num)length);
}

__kernel void max_roi_pool(__global const elem *x, const long x_off, __global const elem *rois,
                           const long rois_off, __global elem *y, const long y_off,
                           __global int *fault, const int code, const int n_rois, const int batch,
                           const int channels, const int h, const int w, const int ph, const int pw,
                           const float scale)
{
    for (int row = get_global_id(1); row < n_rois * channels; row += get_global_size(1))
        for (int bin = get_global_id(0); bin < ph * pw; bin += get_global_size(0)) {
            const int r = row / channels, c = row % channels;
            __global const elem *roi = rois + rois_off + (long)r * 5;
            const num given = LOAD1(roi);
            const bool exists = given >= 0 && given < (num)batch;
            if (!exists) {
                fault[0] = code;
                fault[1] = (int)clamp(given, (num)-1e9f, (num)1e9f);
            }
            const num x1 = round(LOAD1(roi + 1) * (num)scale),
                      y1 = round(LOAD1(roi + 2) * (num)scale);
            const num x2 = round(LOAD1(roi + 3) * (num)scale),
                      y2 = round(LOAD1(roi + 4) * (num)scale);
            const num wide = fmax(x2 - x1 + 1, (num)1) / (num)pw,
                      high = fmax(y2 - y1 + 1, (num)1) / (num)ph;
            const num bx = (num)(bin % pw), by = (num)(bin / pw);
            const int left = edge(x1, floor(bx * wide), w),
                      right = edge(x1, ceil((bx + 1) * wide), w);
            const int top = edge(y1, floor(by * high), h),
                      bottom = edge(y1, ceil((by + 1) * high), h);
            const bool some = exists && left < right && top < bottom;
            __global const elem *from =
                x + x_off + ((long)(exists ? (int)given : 0) * channels + c) * h * w;
            num best = some ? NUM_LOWEST : (num)0;
            for (int iy = top; some && iy < bottom; ++iy)
                for (int ix = left; ix < right; ++ix) {
                    const num v = LOAD1(from + (long)iy * w + ix);
                    best = v > best || v != v ? v : best;
                }
            STORE1(best, y + y_off + (long)row * ph * pw + bin);
        }
}
