/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares GridSample with sums over all elements of an image, each with the weight that depends on
 * its distance, and AffineGrid with its formula.
 *
 * Tolerance: float32 1e-4, since coordinates have an error of 1e-6 of the image's size, which
 * becomes an error of the weights; float16 4e-3.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>
#include <string.h>

typedef struct sampling {
    const char *mode, *padding;
    int align;
} sampling;

/* Reflects x at the borders, one at a time, until it is between them. */
static double mirror(double x, double low, double high)
{
    if (high <= low) return low;
    while (x < low || x > high) x = x < low ? 2 * low - x : 2 * high - x;
    return x;
}

static double kernel(const char *mode, double distance)
{
    const double a = -0.75, t = fabs(distance);
    if (strcmp(mode, "nearest") == 0) return t < 0.5 ? 1 : 0;
    if (strcmp(mode, "linear") == 0 || strcmp(mode, "bilinear") == 0) return t < 1 ? 1 - t : 0;
    if (t <= 1) return (a + 2) * t * t * t - (a + 3) * t * t + 1;
    return t < 2 ? a * t * t * t - 5 * a * t * t + 8 * a * t - 4 * a : 0;
}

/* Computes weights[i] of the n elements of an axis for grid coordinate g. */
static void axis_weights(const sampling *s, double g, int64_t n, double *weights)
{
    const double low = s->align ? 0 : -0.5, high = (double)(n - 1) - low;
    double x = s->align ? (g + 1) / 2 * (double)(n - 1) : ((g + 1) * (double)n - 1) / 2;
    if (strcmp(s->mode, "nearest") == 0) x = nearbyint(x);
    const bool border = strcmp(s->padding, "border") == 0,
               reflects = strcmp(s->padding, "reflection") == 0;
    if (x < low || x > high) {
        if (border) x = fmin(fmax(x, 0), (double)(n - 1));
        if (reflects) x = mirror(x, low, high);
    }
    for (int64_t i = 0; i < n; i++) weights[i] = 0;
    for (int64_t i = (int64_t)floor(x) - 3; i < (int64_t)floor(x) + 4; i++) {
        double at = (double)i;
        if (border) at = fmin(fmax(at, 0), (double)(n - 1));
        if (reflects) at = mirror(at, low, high);
        if (at >= 0 && at < (double)n) weights[(int64_t)at] += kernel(s->mode, x - (double)i);
    }
}

/* Checks GridSample of x: [batch, channels, axes...]; out: sizes of the grid. */
static void sample(sampling s, clg_dtype dtype, clg_dtype grid_dtype, int rank, const int64_t *x,
                   const int64_t *out, double tolerance)
{
    const int axes = rank - 2;
    const int64_t batch = x[0], channels = x[1], points = run_node_count(axes, out),
                  plane = run_node_count(axes, x + 2);
    int64_t grid_dims[CLG_MAX_RANK] = {batch}, y_dims[CLG_MAX_RANK] = {batch, channels};
    for (int i = 0; i < axes; i++) grid_dims[1 + i] = y_dims[2 + i] = out[i];
    grid_dims[rank - 1] = axes;
    double *data = run_node_random(batch * channels * plane);
    double *grid = run_node_random(batch * points * axes);
    double *y = run_node_zeros(batch * channels * points);
    for (int64_t i = 0; i < batch * points * axes; i++) grid[i] *= 1.5;
    for (int64_t p = 0; p < batch * points; p++) {
        double weights[3][64];
        for (int a = 0; a < axes; a++)
            axis_weights(&s, grid[p * axes + axes - 1 - a], x[2 + a], weights[a]);
        for (int64_t c = 0; c < channels; c++) {
            const int64_t image = p / points * channels + c;
            for (int64_t i = 0; i < plane; i++) {
                double w = 1;
                int64_t rest = i;
                for (int a = axes - 1; a >= 0; rest /= x[2 + a--]) w *= weights[a][rest % x[2 + a]];
                y[image * points + p % points] += w * data[image * plane + i];
            }
        }
    }
    run_node r;
    run_node_start(&r, NULL, "GridSample", axes == 2 ? 16 : 20);
    run_node_string(&r, "mode", s.mode);
    run_node_string(&r, "padding_mode", s.padding);
    run_node_int(&r, "align_corners", s.align);
    run_node_input(&r, dtype, rank, x, data);
    run_node_input(&r, grid_dtype, rank, grid_dims, grid);
    run_node_expect(&r, dtype, rank, y_dims, y);
    run_node_check(&r, tolerance);
}

TEST(sample__modes_and_paddings)
{
    static const char *const modes[] = {"nearest", "bilinear", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    for (int m = 0; m < 3; m++)
        for (int p = 0; p < 3; p++)
            for (int align = 0; align < 2; align++) {
                const sampling s = {modes[m], paddings[p], align};
                sample(s, CLG_FLOAT32, CLG_FLOAT32, DIMS(2, 3, 7, 9), (int64_t[]){5, 11}, 1e-4);
            }
}

TEST(sample__ranks_and_types)
{
    const sampling cubic = {"cubic", "reflection", 0}, linear = {"linear", "zeros", 1},
                   nearest = {"nearest", "border", 0};
    sample(linear, CLG_FLOAT32, CLG_FLOAT32, DIMS(2, 2, 4, 5, 6), (int64_t[]){3, 4, 5}, 1e-4);
    sample(cubic, CLG_FLOAT32, CLG_FLOAT32, DIMS(1, 3, 3, 5, 4), (int64_t[]){2, 3, 7}, 1e-4);
    sample(nearest, CLG_FLOAT32, CLG_FLOAT32, DIMS(1, 2, 4, 5, 6), (int64_t[]){3, 4, 5}, 0);
    sample(linear, CLG_FLOAT32, CLG_FLOAT32, DIMS(2, 40, 13), (int64_t[]){33}, 1e-4);
    sample(linear, CLG_FLOAT16, CLG_FLOAT16, DIMS(1, 2, 5, 6), (int64_t[]){4, 4}, 4e-3);
    sample(cubic, CLG_FLOAT64, CLG_FLOAT64, DIMS(1, 2, 5, 6), (int64_t[]){4, 4}, 1e-9);
    sample(linear, CLG_FLOAT32, CLG_FLOAT64, DIMS(1, 2, 5, 6), (int64_t[]){4, 4}, 1e-6);
    sample(cubic, CLG_FLOAT32, CLG_FLOAT32, DIMS(1, 1, 1, 1), (int64_t[]){3, 3}, 1e-4);
    sample(linear, CLG_FLOAT32, CLG_FLOAT32, DIMS(0, 3, 4, 4), (int64_t[]){2, 2}, 0);
    sample(linear, CLG_FLOAT32, CLG_FLOAT32, DIMS(2, 0, 4, 4), (int64_t[]){2, 2}, 0);
}

TEST(sample__integers_with_nearest)
{
    const double x[] = {1, 2, 3, 4}, grid[] = {-1, -1, 1, 1, 3, 0, NAN, NAN, -0.4, 0.4};
    const double y[] = {1, 4, 0, 1, 3};
    run_node r;
    run_node_start(&r, NULL, "GridSample", 20);
    run_node_string(&r, "mode", "nearest");
    run_node_int(&r, "align_corners", 1);
    run_node_input(&r, CLG_INT64, DIMS(1, 1, 2, 2), x);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 1, 5, 2), grid);
    run_node_expect(&r, CLG_INT64, DIMS(1, 1, 1, 5), y);
    run_node_check(&r, 0);
}

/* An infinite element outside of the interpolation window must not affect results, and positions
 * far outside of the image do not select elements. */
TEST(sample__infinities)
{
    const double x[] = {INFINITY, 2, 3}, grid[] = {1, 1e30, -1e30, INFINITY};
    const double y[] = {3, 0, 0, 0};
    run_node r;
    run_node_start(&r, NULL, "GridSample", 20);
    run_node_int(&r, "align_corners", 1);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 1, 3), x);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 4, 1), grid);
    run_node_expect(&r, CLG_FLOAT32, DIMS(1, 1, 4), y);
    run_node_check(&r, 0);
}

static void affine(clg_dtype dtype, int axes, int64_t batch, const int64_t *sizes, int align,
                   double tolerance)
{
    const int64_t places = run_node_count(axes, sizes);
    double size[5] = {(double)batch, 3};
    int64_t y_dims[5] = {batch};
    for (int i = 0; i < axes; i++) {
        size[2 + i] = (double)sizes[i];
        y_dims[1 + i] = sizes[i];
    }
    y_dims[1 + axes] = axes;
    const double *theta = run_node_random(batch * axes * (axes + 1));
    double *y = run_node_zeros(batch * places * axes);
    for (int64_t i = 0; i < batch * places; i++) {
        int64_t rest = i % places;
        double at[4];
        at[axes] = 1;
        for (int a = 0; a < axes; rest /= sizes[axes - 1 - a++]) {
            const double n = (double)sizes[axes - 1 - a], k = (double)(rest % sizes[axes - 1 - a]);
            at[a] = align ? 2 * k / (n - 1) - 1 : (2 * k + 1) / n - 1;
        }
        for (int row = 0; row < axes; row++)
            for (int k = 0; k <= axes; k++)
                y[i * axes + row] += theta[(i / places * axes + row) * (axes + 1) + k] * at[k];
    }
    run_node r;
    run_node_start(&r, NULL, "AffineGrid", 20);
    run_node_int(&r, "align_corners", align);
    run_node_input(&r, dtype, 3, (int64_t[]){batch, axes, axes + 1}, theta);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){axes + 2}, size);
    run_node_expect(&r, dtype, axes + 2, y_dims, y);
    run_node_check(&r, tolerance);
}

TEST(sample__affine_grids)
{
    affine(CLG_FLOAT32, 2, 3, (int64_t[]){5, 7}, 0, 1e-5);
    affine(CLG_FLOAT32, 2, 1, (int64_t[]){5, 7}, 1, 1e-5);
    affine(CLG_FLOAT32, 3, 2, (int64_t[]){3, 4, 5}, 1, 1e-5);
    affine(CLG_FLOAT64, 3, 2, (int64_t[]){3, 4, 5}, 0, 1e-12);
    affine(CLG_FLOAT16, 2, 1, (int64_t[]){3, 3}, 0, 2e-3);
    affine(CLG_FLOAT32, 2, 0, (int64_t[]){3, 3}, 0, 0);
}

TEST(sample__refuses)
{
    const double zeros[32] = {0};
    run_node r;
    run_node_start(&r, NULL, "GridSample", 20);
    run_node_string(&r, "mode", "lanczos");
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 1, 2, 2), zeros);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 2, 2, 2), zeros);
    run_node_expect(&r, CLG_FLOAT32, DIMS(1, 1, 2, 2), zeros);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "lanczos");
    run_node_start(&r, NULL, "GridSample", 20);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 1, 2, 2), zeros);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 2, 2, 3), zeros);
    run_node_expect(&r, CLG_FLOAT32, DIMS(1, 1, 2, 2), zeros);
    run_node_refused(&r, CLG_ERROR_SHAPE, "2 numbers a place");
    run_node_start(&r, NULL, "GridSample", 20);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 1, 0, 2), zeros);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 2, 2, 2), zeros);
    run_node_expect(&r, CLG_FLOAT32, DIMS(1, 1, 2, 2), zeros);
    run_node_refused(&r, CLG_ERROR_SHAPE, "nothing to sample");
}

TEST_GROUP(run_node_open, run_node_close)
