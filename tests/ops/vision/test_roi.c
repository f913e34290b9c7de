/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares RoiAlign with samples that are interpolated individually, and MaxRoiPool with a loop
 * over every element of an image.
 *
 * Tolerance: float32 1e-4, since positions have an error of 1e-6 of the image's size, which becomes
 * an error of the weights; float16 4e-3.
 */
#include "support/cases/run_node.h"

#include <math.h>
#include <string.h>

typedef struct align_case {
    bool max, half_pixel;
    int64_t ratio, height, width;
    double scale;
} align_case;

/* Computes the four weighted elements around a position; elements outside of the image are 0. */
static void around(const double *image, int64_t h, int64_t w, double y, double x, double v[4])
{
    memset(v, 0, 4 * sizeof *v);
    if (y < -1 || y > (double)h || x < -1 || x > (double)w) return;
    y = fmin(fmax(y, 0), (double)(h - 1));
    x = fmin(fmax(x, 0), (double)(w - 1));
    for (int64_t i = 0; i < 4; i++) {
        const double at_y = floor(y) + (double)(i / 2), at_x = floor(x) + (double)(i % 2);
        if (at_y < (double)h && at_x < (double)w)
            v[i] = (1 - fabs(y - at_y)) * (1 - fabs(x - at_x)) *
                   image[(int64_t)at_y * w + (int64_t)at_x];
    }
}

static double one_bin(const align_case *k, const double *image, int64_t h, int64_t w,
                      const double *roi, int64_t ph, int64_t pw)
{
    const double shift = k->half_pixel ? 0.5 : 0;
    const double x1 = roi[0] * k->scale - shift, y1 = roi[1] * k->scale - shift;
    double width = roi[2] * k->scale - shift - x1, height = roi[3] * k->scale - shift - y1;
    if (!k->half_pixel) {
        width = fmax(width, 1);
        height = fmax(height, 1);
    }
    const double bin_h = height / (double)k->height, bin_w = width / (double)k->width;
    const int n_y = k->ratio ? (int)k->ratio : (int)ceil(bin_h),
              n_x = k->ratio ? (int)k->ratio : (int)ceil(bin_w);
    double sum = 0, best = -INFINITY;
    for (int iy = 0; iy < n_y; iy++)
        for (int ix = 0; ix < n_x; ix++) {
            double v[4];
            around(image, h, w, y1 + ((double)ph + (iy + 0.5) / n_y) * bin_h,
                   x1 + ((double)pw + (ix + 0.5) / n_x) * bin_w, v);
            sum += v[0] + v[1] + v[2] + v[3];
            best = fmax(best, fmax(fmax(v[0], v[1]), fmax(v[2], v[3])));
        }
    if (n_y < 1 || n_x < 1) return 0;
    return k->max ? best : sum / (n_y * n_x);
}

static void align(align_case k, clg_dtype dtype, const int64_t *x, int64_t n, const double *rois,
                  double tolerance)
{
    const int64_t plane = x[2] * x[3], bins = k.height * k.width;
    const double *data = run_node_random(x[0] * x[1] * plane);
    double *index = run_node_zeros(n), *y = run_node_zeros(n * x[1] * bins);
    for (int64_t r = 0; r < n; r++) {
        index[r] = (double)(r * 7 % x[0]);
        for (int64_t i = 0; i < x[1] * bins; i++)
            y[r * x[1] * bins + i] =
                one_bin(&k, data + ((int64_t)index[r] * x[1] + i / bins) * plane, x[2], x[3],
                        rois + r * 4, i % bins / k.width, i % k.width);
    }
    run_node r;
    run_node_start(&r, NULL, "RoiAlign", k.half_pixel ? 22 : 10);
    run_node_string(&r, "mode", k.max ? "max" : "avg");
    run_node_int(&r, "output_height", k.height);
    run_node_int(&r, "output_width", k.width);
    run_node_int(&r, "sampling_ratio", k.ratio);
    run_node_float(&r, "spatial_scale", k.scale);
    run_node_input(&r, dtype, 4, x, data);
    run_node_input(&r, dtype, DIMS(n, 4), rois);
    run_node_input(&r, CLG_INT64, DIMS(n), index);
    run_node_expect(&r, dtype, DIMS(n, x[1], k.height, k.width), y);
    run_node_check(&r, tolerance);
}

/* Regions within the image, across an edge, outside, with start and end exchanged, empty, and huge.
 */
static const double regions[] = {1, 2,  9, 11.5, -4, -3, 5, 6, 40, 40, 50, 60,
                                 9, 11, 2, 3,    4,  4,  4, 4, 0,  0,  13, 17};

TEST(roi__align)
{
    for (int i = 0; i < 8; i++) {
        const align_case k = {.max = i & 1,
                              .half_pixel = (i & 2) != 0,
                              .ratio = i & 4 ? 2 : 0,
                              .height = 3,
                              .width = 4,
                              .scale = 0.75};
        align(k, CLG_FLOAT32, (int64_t[]){2, 5, 13, 11}, 6, regions, 1e-4);
    }
    const align_case k = {.half_pixel = true, .height = 7, .width = 7, .scale = 0.5};
    align(k, CLG_FLOAT32, (int64_t[]){3, 35, 9, 8}, 6, regions, 1e-4);
    align(k, CLG_FLOAT64, (int64_t[]){1, 2, 9, 8}, 2, regions, 1e-9);
    align(k, CLG_FLOAT16, (int64_t[]){1, 2, 9, 8}, 1, regions, 4e-3);
    align(k, CLG_FLOAT32, (int64_t[]){1, 2, 9, 8}, 0, regions, 0);
}

/* The number of samples is proportional to the size of the region, which is huge: samples outside
 * of the image must take no time. */
TEST(roi__align_of_a_boundless_region)
{
    const double x[] = {3}, rois[] = {0, 0, 1e20, 1e20}, index[] = {0}, y[] = {0};
    run_node r;
    run_node_start(&r, NULL, "RoiAlign", 16);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 1, 1, 1), x);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 4), rois);
    run_node_input(&r, CLG_INT64, DIMS(1), index);
    run_node_expect(&r, CLG_FLOAT32, DIMS(1, 1, 1, 1), y);
    run_node_check(&r, 1e-5);
}

static void pool(clg_dtype dtype, const int64_t *x, int64_t ph, int64_t pw, double scale,
                 double tolerance)
{
    const int64_t n = 4, plane = x[2] * x[3];
    const double rois[] = {0, 0, 0, 6, 6, 1, 3, 2, 11, 7, 0, -5, -5, 3, 20, 1, 9, 9, 2, 2};
    const double *data = run_node_random(x[0] * x[1] * plane);
    double *y = run_node_zeros(n * x[1] * ph * pw);
    for (int64_t i = 0; i < n * x[1] * ph * pw; i++) {
        const double *roi = rois + i / (x[1] * ph * pw) * 5;
        const double *from = data + ((int64_t)roi[0] * x[1] + i / (ph * pw) % x[1]) * plane;
        const double x1 = round(roi[1] * scale), y1 = round(roi[2] * scale);
        const double w = fmax(round(roi[3] * scale) - x1 + 1, 1) / (double)pw,
                     h = fmax(round(roi[4] * scale) - y1 + 1, 1) / (double)ph;
        const double px = (double)(i % pw), py = (double)(i / pw % ph);
        double best = -INFINITY;
        for (int64_t e = 0; e < plane; e++) {
            const double ex = (double)(e % x[3]) - x1, ey = (double)(e / x[3]) - y1;
            if (ex >= floor(px * w) && ex < ceil((px + 1) * w) && ey >= floor(py * h) &&
                ey < ceil((py + 1) * h))
                best = fmax(best, from[e]);
        }
        y[i] = isinf(best) ? 0 : best;
    }
    run_node r;
    run_node_start(&r, NULL, "MaxRoiPool", 22);
    run_node_ints(&r, "pooled_shape", 2, (int64_t[]){ph, pw});
    run_node_float(&r, "spatial_scale", scale);
    run_node_input(&r, dtype, 4, x, data);
    run_node_input(&r, dtype, DIMS(n, 5), rois);
    run_node_expect(&r, dtype, DIMS(n, x[1], ph, pw), y);
    run_node_check(&r, tolerance);
}

TEST(roi__max_pool)
{
    pool(CLG_FLOAT32, (int64_t[]){2, 3, 11, 13}, 2, 4, 1, 0);
    pool(CLG_FLOAT32, (int64_t[]){2, 33, 7, 6}, 3, 3, 0.5, 0);
    pool(CLG_FLOAT16, (int64_t[]){2, 1, 7, 6}, 1, 2, 0.5, 0);
    pool(CLG_FLOAT64, (int64_t[]){2, 1, 7, 6}, 5, 1, 0.25, 0);
}

TEST(roi__refuses)
{
    const double zeros[32] = {0}, index[] = {1}, rois[] = {3, 0, 0, 1, 1};
    run_node r;
    run_node_start(&r, NULL, "RoiAlign", 16);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 1, 2, 2), zeros);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 4), zeros);
    run_node_input(&r, CLG_INT64, DIMS(1), index);
    run_node_expect(&r, CLG_FLOAT32, DIMS(1, 1, 1, 1), zeros);
    run_node_refused(&r, CLG_ERROR_DATA, "out of range");
    run_node_start(&r, NULL, "MaxRoiPool", 1);
    run_node_ints(&r, "pooled_shape", 2, (int64_t[]){1, 1});
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 1, 2, 2), zeros);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 5), rois);
    run_node_expect(&r, CLG_FLOAT32, DIMS(1, 1, 1, 1), zeros);
    run_node_refused(&r, CLG_ERROR_DATA, "out of range");
    run_node_start(&r, NULL, "RoiAlign", 16);
    run_node_string(&r, "mode", "sum");
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 1, 2, 2), zeros);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 4), zeros);
    run_node_input(&r, CLG_INT64, DIMS(1), zeros);
    run_node_expect(&r, CLG_FLOAT32, DIMS(1, 1, 1, 1), zeros);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "sum");
}

TEST_GROUP(run_node_open, run_node_close)
