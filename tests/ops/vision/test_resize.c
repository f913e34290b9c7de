/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares Resize and Upsample with the sum over all input elements of the product of the weights
 * of each axis, with positions and weights in double as ONNX defines them; and with literal results
 * of ONNX's tests.
 *
 * Tolerance: float32 1e-5, for weights and sums of up to 64 terms; float16 1e-3. Mode nearest
 * copies exactly; sizes are such that double computes each position without rounding.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include "tensor/dtype.h"

#include <math.h>
#include <string.h>

#define FLOAT_TOLERANCE 1e-5

typedef struct resize_case {
    const char *mode, *coordinates, *nearest; /* NULL: not given */
    int rank;
    int64_t in[4], out[4];
    double scales[4]; /* 0: sizes are given instead */
    double roi[8];
    double cubic_a, extrapolation;
    bool exclude_outside, antialias;
    clg_dtype dtype;
} resize_case;

static bool is(const char *a, const char *b) { return a && strcmp(a, b) == 0; }

/* Returns the input coordinate of output o along an axis. */
static double place_of(const resize_case *t, int axis, double scale, int64_t o)
{
    const double in = (double)t->in[axis], out = (double)t->out[axis], x = (double)o,
                 length = in * scale;
    const double start = t->roi[axis], end = t->roi[t->rank + axis];
    if (is(t->coordinates, "asymmetric")) return x / scale;
    if (is(t->coordinates, "align_corners")) return length == 1 ? 0 : x * (in - 1) / (length - 1);
    if (is(t->coordinates, "pytorch_half_pixel")) return length > 1 ? (x + 0.5) / scale - 0.5 : 0;
    if (is(t->coordinates, "tf_half_pixel_for_nn")) return (x + 0.5) / scale;
    if (is(t->coordinates, "half_pixel_symmetric"))
        return in / 2 * (1 - out / length) + (x + 0.5) / scale - 0.5;
    if (is(t->coordinates, "tf_crop_and_resize"))
        return length > 1 ? start * (in - 1) + x * (end - start) * (in - 1) / (length - 1)
                          : 0.5 * (start + end) * (in - 1);
    return (x + 0.5) / scale - 0.5;
}

static double tap(const resize_case *t, double distance)
{
    const double d = fabs(distance), a = t->cubic_a;
    if (!is(t->mode, "cubic")) return d < 1 ? 1 - d : 0;
    if (d <= 1) return (a + 2) * pow(d, 3) - (a + 3) * pow(d, 2) + 1;
    return d < 2 ? a * pow(d, 3) - 5 * a * pow(d, 2) + 8 * a * d - 4 * a : 0;
}

static int64_t nearest_of(const resize_case *t, double place)
{
    const double below = floor(place), part = place - below;
    if (is(t->nearest, "floor")) return (int64_t)below;
    if (is(t->nearest, "ceil")) return (int64_t)ceil(place);
    return (int64_t)below + (is(t->nearest, "round_prefer_ceil") ? part >= 0.5 : part > 0.5);
}

/* Computes the weight weights[i] of each input element i for output o of an axis. Returns false
 * where the extrapolation value is used instead. */
static bool weight_of(const resize_case *t, int axis, int64_t o, double *weights)
{
    const int64_t in = t->in[axis];
    const double scale =
        t->scales[axis] != 0 ? (double)(float)t->scales[axis] : (double)t->out[axis] / (double)in;
    const double place = place_of(t, axis, scale, o),
                 shrink = t->antialias && scale < 1 ? scale : 1;
    for (int64_t i = 0; i < in; i++) weights[i] = 0;
    if (is(t->coordinates, "tf_crop_and_resize") && (place < 0 || place > (double)(in - 1)))
        return false;
    if (is(t->mode, "nearest")) {
        const int64_t at = nearest_of(t, place);
        weights[at < 0 ? 0 : at >= in ? in - 1 : at] = 1;
        return true;
    }
    double total = 0;
    for (int64_t j = -4 * in - 8; j < 5 * in + 8;
         j++) { /* beyond the edges are copies of the last element */
        const double w = tap(t, ((double)j - place) * shrink);
        if (t->exclude_outside && (j < 0 || j >= in)) continue;
        weights[j < 0 ? 0 : j >= in ? in - 1 : j] += w;
        total += w;
    }
    for (int64_t i = 0; i < in && (t->exclude_outside || t->antialias); i++) weights[i] /= total;
    return true;
}

static double value_at(const resize_case *t, const double *x, int64_t output)
{
    double weights[4][64], sum = 0;
    for (int axis = t->rank - 1; axis >= 0; axis--) {
        if (!weight_of(t, axis, output % t->out[axis], weights[axis])) return t->extrapolation;
        output /= t->out[axis];
    }
    for (int64_t i = 0; i < run_node_count(t->rank, t->in); i++) {
        double w = 1;
        int64_t rest = i;
        for (int axis = t->rank - 1; axis >= 0; axis--) {
            w *= weights[axis][rest % t->in[axis]];
            rest /= t->in[axis];
        }
        if (w != 0) sum += w * x[i];
    }
    return sum;
}

static void describe(run_node *r, const resize_case *t)
{
    run_node_string(r, "mode", t->mode);
    if (t->coordinates) run_node_string(r, "coordinate_transformation_mode", t->coordinates);
    if (t->nearest) run_node_string(r, "nearest_mode", t->nearest);
    if (t->exclude_outside) run_node_int(r, "exclude_outside", 1);
    if (t->antialias) run_node_int(r, "antialias", 1);
    if (is(t->mode, "cubic")) run_node_float(r, "cubic_coeff_a", t->cubic_a);
    if (t->extrapolation != 0) run_node_float(r, "extrapolation_value", t->extrapolation);
}

static void add_sizes(run_node *r, const resize_case *t, double *sizes)
{
    for (int i = 0; i < t->rank; i++)
        sizes[i] = t->scales[0] != 0 ? t->scales[i] : (double)t->out[i];
    if (is(t->coordinates, "tf_crop_and_resize"))
        run_node_constant(r, CLG_FLOAT32, 1, (int64_t[]){2 * t->rank}, t->roi);
    else
        run_node_absent(r);
    if (t->scales[0] == 0) run_node_absent(r);
    run_node_constant(r, t->scales[0] != 0 ? CLG_FLOAT32 : CLG_INT64, 1, (int64_t[]){t->rank},
                      sizes);
}

static void resize_with(const resize_case *t, int64_t opset, double *x, const double *y)
{
    run_node r;
    double sizes[4];
    const clg_dtype dtype = t->dtype ? t->dtype : CLG_FLOAT32;
    run_node_start(&r, NULL, "Resize", opset);
    run_node_input(&r, dtype, t->rank, t->in, x);
    add_sizes(&r, t, sizes);
    describe(&r, t);
    run_node_expect(&r, dtype, t->rank, t->out, y);
    run_node_check(&r, is(t->mode, "nearest") ? 0 : dtype == CLG_FLOAT16 ? 1e-3 : FLOAT_TOLERANCE);
}

static void resize(const resize_case *t)
{
    const int64_t n = run_node_count(t->rank, t->out);
    double *x = run_node_random(run_node_count(t->rank, t->in)), *y = run_node_zeros(n);
    for (int64_t i = 0; i < run_node_count(t->rank, t->in) && t->dtype && !dtype_is_float(t->dtype);
         i++)
        x[i] = floor(100 + 100 * x[i]);
    for (int64_t i = 0; i < n; i++) {
        y[i] = value_at(t, x, i);
        if (t->dtype && !dtype_is_float(t->dtype)) y[i] = trunc(y[i]);
    }
    const bool nn = is(t->coordinates, "tf_half_pixel_for_nn");
    resize_with(t, nn ? 11 : 19, x, y);
}

static void each(const resize_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) resize(&cases[i]);
}
#define EACH(cases) each(cases, sizeof cases / sizeof *cases)

TEST(resize__nearest)
{
    static const char *const coordinates[] = {"half_pixel",           "asymmetric",
                                              "align_corners",        "pytorch_half_pixel",
                                              "half_pixel_symmetric", "tf_half_pixel_for_nn"};
    static const char *const rules[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    for (size_t c = 0; c < 6; c++)
        for (size_t k = 0; k < 4; k++) {
            resize_case t = {.mode = "nearest",
                             .coordinates = coordinates[c],
                             .nearest = rules[k],
                             .rank = 4,
                             .in = {1, 2, 5, 6},
                             .out = {1, 2, 10, 24}};
            resize(&t);
            t.in[3] = 17;
            t.out[3] = 4;
            if (is(t.coordinates, "align_corners")) continue; /* 16 / 3 is not exact in double */
            t.in[3] = 16;
            resize(&t);
        }
}

TEST(resize__linear)
{
    static const char *const coordinates[] = {"half_pixel", "asymmetric", "align_corners",
                                              "pytorch_half_pixel", "half_pixel_symmetric"};
    for (size_t c = 0; c < 5; c++) {
        resize_case t = {.mode = "linear",
                         .coordinates = coordinates[c],
                         .rank = 4,
                         .in = {2, 3, 5, 7},
                         .out = {2, 3, 11, 13}};
        resize(&t);
        t.out[2] = 1;
        t.out[3] = 3;
        resize(&t);
        const resize_case by_scales = {.mode = "linear",
                                       .coordinates = coordinates[c],
                                       .rank = 3,
                                       .in = {2, 5, 7},
                                       .out = {2, 11, 4},
                                       .scales = {1, 2.3, 0.6}};
        resize(&by_scales);
    }
}

TEST(resize__cubic)
{
    static const resize_case cases[] = {
        {.mode = "cubic", .rank = 4, .in = {1, 2, 5, 6}, .out = {1, 2, 9, 4}, .cubic_a = -0.75},
        {.mode = "cubic",
         .rank = 4,
         .in = {1, 2, 5, 6},
         .out = {1, 2, 3, 13},
         .cubic_a = -0.5,
         .exclude_outside = true},
        {.mode = "cubic",
         .coordinates = "align_corners",
         .rank = 2,
         .in = {7, 4},
         .out = {5, 9},
         .cubic_a = -0.75},
        {.mode = "cubic",
         .coordinates = "asymmetric",
         .rank = 2,
         .in = {3, 4},
         .out = {6, 3},
         .scales = {2, 0.8},
         .cubic_a = -0.75},
    };
    EACH(cases);
}

TEST(resize__antialias)
{
    static const resize_case cases[] = {
        {.mode = "linear", .rank = 4, .in = {1, 2, 11, 13}, .out = {1, 2, 4, 5}, .antialias = true},
        {.mode = "linear", .rank = 2, .in = {9, 7}, .out = {4, 14}, .antialias = true},
        {.mode = "cubic",
         .rank = 2,
         .in = {12, 10},
         .out = {3, 7},
         .cubic_a = -0.75,
         .antialias = true},
        {.mode = "cubic",
         .rank = 2,
         .in = {12, 10},
         .out = {5, 5},
         .cubic_a = -0.5,
         .antialias = true,
         .exclude_outside = true},
        {.mode = "linear",
         .rank = 2,
         .in = {10, 9},
         .out = {6, 5},
         .scales = {0.6, 0.6},
         .antialias = true},
    };
    EACH(cases);
}

TEST(resize__crop)
{
    static const resize_case cases[] = {
        {.mode = "linear",
         .coordinates = "tf_crop_and_resize",
         .rank = 4,
         .in = {1, 1, 4, 4},
         .out = {1, 1, 3, 3},
         .roi = {0, 0, 0.25, 0.5, 1, 1, 0.5, 0.75}},
        {.mode = "linear",
         .coordinates = "tf_crop_and_resize",
         .rank = 2,
         .in = {5, 6},
         .out = {4, 5},
         .roi = {-0.25, 0.5, 0.75, 1.5},
         .extrapolation = 10},
        {.mode = "nearest",
         .coordinates = "tf_crop_and_resize",
         .nearest = "floor",
         .rank = 2,
         .in = {5, 5},
         .out = {4, 5},
         .roi = {0.25, 0.5, 1, 1.5},
         .extrapolation = -3},
        {.mode = "linear",
         .coordinates = "tf_crop_and_resize",
         .rank = 2,
         .in = {5, 5},
         .out = {1, 1},
         .roi = {0, 0.25, 1, 0.5}},
    };
    EACH(cases);
}

/* Resized axes that are not adjacent, and more of them than one pass supports. */
TEST(resize__many_axes)
{
    static const resize_case cases[] = {
        {.mode = "linear", .rank = 4, .in = {3, 4, 2, 5}, .out = {5, 4, 3, 2}},
        {.mode = "linear", .rank = 4, .in = {3, 4, 2, 5}, .out = {2, 3, 5, 7}},
        {.mode = "nearest",
         .nearest = "floor",
         .coordinates = "asymmetric",
         .rank = 4,
         .in = {2, 4, 2, 4},
         .out = {4, 8, 4, 2}},
        {.mode = "cubic", .rank = 3, .in = {4, 3, 5}, .out = {6, 5, 4}, .cubic_a = -0.75},
        {.mode = "linear", .rank = 3, .in = {4, 3, 5}, .out = {6, 5, 5}},
        {.mode = "linear", .rank = 2, .in = {3, 4}, .out = {3, 4}},
        {.mode = "linear", .rank = 3, .in = {2, 1, 1}, .out = {2, 4, 5}},
        {.mode = "linear", .rank = 2, .in = {3, 4}, .out = {3, 0}},
    };
    EACH(cases);
}

TEST(resize__dtypes)
{
    static const clg_dtype dtypes[] = {CLG_UINT8, CLG_INT16, CLG_INT64, CLG_FLOAT16, CLG_FLOAT64};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        const resize_case t = {.mode = "nearest",
                               .coordinates = "asymmetric",
                               .nearest = "floor",
                               .rank = 2,
                               .in = {3, 5},
                               .out = {6, 10},
                               .dtype = dtypes[i]};
        resize(&t);
    }
    const resize_case half = {
        .mode = "linear", .rank = 2, .in = {3, 5}, .out = {6, 10}, .dtype = CLG_FLOAT16};
    resize(&half);
    const resize_case bytes = {
        .mode = "linear", .rank = 2, .in = {4, 8}, .out = {7, 16}, .dtype = CLG_UINT8};
    resize(&bytes);
    const resize_case real = {.mode = "cubic",
                              .rank = 2,
                              .in = {4, 8},
                              .out = {7, 16},
                              .cubic_a = -0.75,
                              .dtype = CLG_FLOAT64};
    resize(&real);
}

/* Literal results of ONNX's tests, opsets 18 and 19. */
TEST(resize__known_answers)
{
    double x[16], line[] = {1, 2, 3, 4};
    for (int i = 0; i < 16; i++) x[i] = i + 1;
    const double shrunk[] = {2.875, 4.5, 9.375, 11},
                 cubic[] = {2.5180721, 4.2858863, 9.589329, 11.357142};
    const double symmetric[] = {1.6666667, 3.3333333}, aligned[] = {1, 3.142857};
    const resize_case linear = {.mode = "linear",
                                .rank = 4,
                                .in = {1, 1, 4, 4},
                                .out = {1, 1, 2, 2},
                                .scales = {1, 1, 0.6, 0.6},
                                .antialias = true};
    resize_with(&linear, 18, x, shrunk);
    resize_case t = linear;
    t.mode = "cubic";
    t.cubic_a = -0.75;
    resize_with(&t, 18, x, cubic);
    const resize_case half = {.mode = "linear",
                              .coordinates = "half_pixel_symmetric",
                              .rank = 4,
                              .in = {1, 1, 1, 4},
                              .out = {1, 1, 1, 2},
                              .scales = {1, 1, 1, 0.6}};
    resize_with(&half, 19, line, symmetric);
    const resize_case corners = {.mode = "linear",
                                 .coordinates = "align_corners",
                                 .rank = 4,
                                 .in = {1, 1, 1, 4},
                                 .out = {1, 1, 1, 2},
                                 .scales = {1, 1, 1, 0.6}};
    resize_with(&corners, 11, line, aligned);
}

TEST(resize__axes_and_policies)
{
    const double x[] = {1, 2, 3, 4, 5, 6, 7, 8}, y[] = {1, 2, 4, 5, 6, 8}, small[] = {1, 3};
    run_node r;
    run_node_start(&r, NULL, "Resize", 18);
    run_node_input(&r, CLG_FLOAT32, 4, (int64_t[]){1, 1, 2, 4}, x);
    run_node_absent(&r);
    run_node_absent(&r);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){2}, (double[]){3, 1});
    run_node_string(&r, "mode", "nearest");
    run_node_ints(&r, "axes", 2, (int64_t[]){3, 2});
    run_node_string(&r, "keep_aspect_ratio_policy", "not_smaller");
    run_node_expect(&r, CLG_FLOAT32, 4, (int64_t[]){1, 1, 2, 3}, y);
    run_node_check(&r, 0);
    run_node_start(&r, NULL, "Resize", 18);
    run_node_input(&r, CLG_FLOAT32, 4, (int64_t[]){1, 1, 2, 4}, x);
    run_node_absent(&r);
    run_node_absent(&r);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){2}, (double[]){1, 3});
    run_node_string(&r, "mode", "nearest");
    run_node_ints(&r, "axes", 2, (int64_t[]){-2, -1});
    run_node_string(&r, "keep_aspect_ratio_policy", "not_larger");
    run_node_expect(&r, CLG_FLOAT32, 4, (int64_t[]){1, 1, 1, 2}, small);
    run_node_check(&r, 0);
}

TEST(resize__old_versions)
{
    const double x[] = {1, 2, 3, 4}, scales[] = {1, 1, 2, 3};
    const double nearest[] = {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2,
                              3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4};
    const double t = 1.0 / 3.0;
    const double row0[] = {1, 1 + t, 1 + 2 * t, 2, 2, 2};
    double linear[24];
    for (int i = 0; i < 24; i++) linear[i] = row0[i % 6] + (i / 6 == 0 ? 0 : i / 6 == 1 ? 1 : 2);
    run_node r;
    for (int mode = 0; mode < 2; mode++) {
        const double *y = mode ? linear : nearest;
        run_node_start(&r, NULL, "Upsample", 7);
        run_node_input(&r, CLG_FLOAT32, 4, (int64_t[]){1, 1, 2, 2}, x);
        run_node_floats(&r, "scales", 4, scales);
        run_node_string(&r, "mode", mode ? "linear" : "nearest");
        run_node_expect(&r, CLG_FLOAT32, 4, (int64_t[]){1, 1, 4, 6}, y);
        run_node_check(&r, FLOAT_TOLERANCE);
        run_node_start(&r, NULL, mode ? "Resize" : "Upsample", mode ? 10 : 9);
        run_node_input(&r, CLG_FLOAT32, 4, (int64_t[]){1, 1, 2, 2}, x);
        run_node_constant(&r, CLG_FLOAT32, 1, (int64_t[]){4}, scales);
        run_node_string(&r, "mode", mode ? "linear" : "nearest");
        run_node_expect(&r, CLG_FLOAT32, 4, (int64_t[]){1, 1, 4, 6}, y);
        run_node_check(&r, FLOAT_TOLERANCE);
    }
}

TEST_GROUP(run_node_open, run_node_close)
