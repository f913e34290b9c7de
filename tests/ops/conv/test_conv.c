/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares Conv with nested loops over outputs and kernel taps in double, with paddings computed
 * from ONNX's definition.
 *
 * Tolerance, as for GEMMs: float32 2e-6 of the larger of the result and sqrt(number of terms);
 * float16 1e-3 of it, since it stores 11 significant bits.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>
#include <string.h>

#define FLOAT_TOLERANCE 2e-6
#define HALF_TOLERANCE 1e-3

/* Describes a convolution with one to three spatial axes. A stride or dilation of 0 stands for 1.
 */
typedef struct conv_case {
    int axes;
    int64_t n, c, m, group; /* images, channels in and out; group 0 stands for 1 */
    int64_t in[3], kernel[3], strides[3], dilations[3], begin[3], end[3];
    const char *auto_pad;
    bool bias, weight_is_input;
    clg_dtype dtype;
} conv_case;

/* A case with three axes, of which missing ones come first and have size 1, and with its final
 * paddings and output sizes. */
typedef struct conv_whole {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], begin[3];
} conv_whole;

static conv_whole complete(const conv_case *t)
{
    conv_whole w = {.in = {1, 1, 1},
                    .out = {1, 1, 1},
                    .kernel = {1, 1, 1},
                    .stride = {1, 1, 1},
                    .dilation = {1, 1, 1}};
    for (int i = 0; i < t->axes; i++) {
        const int at = 3 - t->axes + i;
        w.in[at] = t->in[i];
        w.kernel[at] = t->kernel[i];
        w.stride[at] = t->strides[i] ? t->strides[i] : 1;
        w.dilation[at] = t->dilations[i] ? t->dilations[i] : 1;
        const int64_t reach = (w.kernel[at] - 1) * w.dilation[at] + 1;
        int64_t begin = t->begin[i], end = t->end[i];
        if (t->auto_pad && strncmp(t->auto_pad, "SAME", 4) == 0) {
            const int64_t outputs = (int64_t)ceil((double)w.in[at] / (double)w.stride[at]);
            int64_t total = (outputs - 1) * w.stride[at] + reach - w.in[at];
            if (total < 0) total = 0;
            begin = strcmp(t->auto_pad, "SAME_UPPER") == 0 ? total / 2 : (total + 1) / 2;
            end = total - begin;
        }
        w.begin[at] = begin;
        w.out[at] =
            (int64_t)floor((double)(w.in[at] + begin + end - reach) / (double)w.stride[at]) + 1;
    }
    return w;
}

static double sum_at(const conv_case *t, const conv_whole *w, const double *x, const double *weight,
                     int64_t image, int64_t channel, const int64_t *place)
{
    const int64_t group = t->group ? t->group : 1, ic = t->c / group,
                  first = channel / (t->m / group) * ic;
    double sum = 0;
    for (int64_t c = 0; c < ic; c++)
        for (int64_t kz = 0; kz < w->kernel[0]; kz++)
            for (int64_t ky = 0; ky < w->kernel[1]; ky++)
                for (int64_t kx = 0; kx < w->kernel[2]; kx++) {
                    const int64_t z = place[0] * w->stride[0] - w->begin[0] + kz * w->dilation[0];
                    const int64_t y = place[1] * w->stride[1] - w->begin[1] + ky * w->dilation[1];
                    const int64_t s = place[2] * w->stride[2] - w->begin[2] + kx * w->dilation[2];
                    if (z < 0 || z >= w->in[0] || y < 0 || y >= w->in[1] || s < 0 || s >= w->in[2])
                        continue;
                    const int64_t from =
                        (((image * t->c + first + c) * w->in[0] + z) * w->in[1] + y) * w->in[2] + s;
                    const int64_t tap =
                        (((channel * ic + c) * w->kernel[0] + kz) * w->kernel[1] + ky) *
                            w->kernel[2] +
                        kx;
                    sum += x[from] * weight[tap];
                }
    return sum;
}

static void describe(run_node *r, const conv_case *t)
{
    if (t->group) run_node_int(r, "group", t->group);
    if (t->strides[0]) run_node_ints(r, "strides", (size_t)t->axes, t->strides);
    if (t->dilations[0]) run_node_ints(r, "dilations", (size_t)t->axes, t->dilations);
    if (t->auto_pad) {
        run_node_string(r, "auto_pad", t->auto_pad);
        return;
    }
    run_node_pads(r, t->axes, t->begin, t->end);
}

static void conv(const conv_case *t)
{
    const conv_whole w = complete(t);
    const int64_t group = t->group ? t->group : 1,
                  terms = t->c / group * w.kernel[0] * w.kernel[1] * w.kernel[2];
    const int64_t outputs = w.out[0] * w.out[1] * w.out[2];
    const double *x = run_node_random(t->n * t->c * w.in[0] * w.in[1] * w.in[2]);
    const double *weight = run_node_random(t->m * terms), *bias = run_node_random(t->m);
    double *y = run_node_zeros(t->n * t->m * outputs);
    for (int64_t i = 0; i < t->n * t->m * outputs; i++) {
        const int64_t at = i % outputs, channel = i / outputs % t->m;
        const int64_t place[3] = {at / (w.out[1] * w.out[2]), at / w.out[2] % w.out[1],
                                  at % w.out[2]};
        y[i] = sum_at(t, &w, x, weight, i / outputs / t->m, channel, place) +
               (t->bias ? bias[channel] : 0);
    }
    const clg_dtype dtype = t->dtype ? t->dtype : CLG_FLOAT32;
    int64_t x_dims[5] = {t->n, t->c}, w_dims[5] = {t->m, t->c / group}, y_dims[5] = {t->n, t->m};
    for (int i = 0; i < t->axes; i++) {
        x_dims[2 + i] = t->in[i];
        w_dims[2 + i] = t->kernel[i];
        y_dims[2 + i] = w.out[3 - t->axes + i];
    }
    run_node r;
    run_node_start(&r, NULL, "Conv", 11);
    run_node_input(&r, dtype, t->axes + 2, x_dims, x);
    (t->weight_is_input ? run_node_input : run_node_constant)(&r, dtype, t->axes + 2, w_dims,
                                                              weight);
    if (t->bias) run_node_constant(&r, dtype, 1, &t->m, bias);
    describe(&r, t);
    run_node_expect(&r, dtype, t->axes + 2, y_dims, y);
    r.heavy = t->n * t->m * outputs * terms > 20000;
    run_node_check_scaled(&r,
                          dtype == CLG_FLOAT16   ? HALF_TOLERANCE
                          : dtype == CLG_FLOAT64 ? 1e-12
                                                 : FLOAT_TOLERANCE,
                          sqrt((double)terms));
}

static void each(const conv_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) conv(&cases[i]);
}
#define EACH(cases) each(cases, sizeof cases / sizeof *cases)

TEST(conv__two_axes)
{
    static const conv_case cases[] = {
        {.axes = 2, .n = 1, .c = 1, .m = 1, .in = {1, 1}, .kernel = {1, 1}},
        {.axes = 2, .n = 2, .c = 3, .m = 5, .in = {7, 9}, .kernel = {3, 3}, .bias = true},
        {.axes = 2,
         .n = 1,
         .c = 4,
         .m = 13,
         .in = {11, 33},
         .kernel = {3, 3},
         .begin = {1, 1},
         .end = {1, 1}},
        {.axes = 2,
         .n = 1,
         .c = 3,
         .m = 12,
         .in = {17, 16},
         .kernel = {7, 5},
         .strides = {2, 2},
         .begin = {3, 2},
         .end = {3, 2},
         .bias = true},
        {.axes = 2,
         .n = 1,
         .c = 2,
         .m = 3,
         .in = {13, 15},
         .kernel = {3, 2},
         .strides = {3, 2},
         .begin = {2, 0},
         .end = {0, 1}},
        {.axes = 2,
         .n = 1,
         .c = 2,
         .m = 3,
         .in = {12, 14},
         .kernel = {3, 3},
         .strides = {1, 3},
         .dilations = {2, 3},
         .begin = {2, 3},
         .end = {1, 3},
         .bias = true},
        {.axes = 2,
         .n = 1,
         .c = 65,
         .m = 25,
         .in = {5, 5},
         .kernel = {3, 3},
         .begin = {1, 1},
         .end = {1, 1}},
        {.axes = 2, .n = 1, .c = 3, .m = 4, .in = {6, 6}, .kernel = {6, 6}},
        {.axes = 2, .n = 0, .c = 3, .m = 4, .in = {6, 6}, .kernel = {3, 3}},
    };
    EACH(cases);
}

TEST(conv__one_by_one)
{
    static const conv_case cases[] = {
        {.axes = 2, .n = 1, .c = 19, .m = 37, .in = {5, 7}, .kernel = {1, 1}, .bias = true},
        {.axes = 2, .n = 3, .c = 8, .m = 4, .in = {8, 8}, .kernel = {1, 1}, .bias = true},
        {.axes = 2,
         .n = 2,
         .c = 12,
         .m = 6,
         .group = 3,
         .in = {4, 5},
         .kernel = {1, 1},
         .bias = true},
        {.axes = 2, .n = 1, .c = 6, .m = 4, .in = {9, 8}, .kernel = {1, 1}, .strides = {2, 2}},
        {.axes = 2,
         .n = 1,
         .c = 3,
         .m = 2,
         .in = {3, 3},
         .kernel = {1, 1},
         .begin = {1, 0},
         .end = {0, 1}},
        {.axes = 2,
         .n = 2,
         .c = 7,
         .m = 5,
         .in = {3, 4},
         .kernel = {1, 1},
         .weight_is_input = true},
        /* Small feature maps of many channels: the kernels of the SIMD class process several rows
         * of pixels together. */
        {.axes = 2, .n = 2, .c = 260, .m = 67, .in = {7, 7}, .kernel = {1, 1}, .bias = true},
        {.axes = 2, .n = 1, .c = 530, .m = 33, .in = {14, 14}, .kernel = {1, 1}},
        {.axes = 2,
         .n = 1,
         .c = 520,
         .m = 32,
         .in = {9, 4},
         .kernel = {1, 1},
         .dtype = CLG_FLOAT16},
    };
    EACH(cases);
}

/* Few results with long sums, which GPUs divide into parts: one work-group of results, so that
 * every device does. */
TEST(conv__sums_in_parts)
{
    static const conv_case cases[] = {
        {.axes = 2, .n = 1, .c = 61, .m = 37, .in = {9, 8}, .kernel = {3, 3}, .bias = true},
        {.axes = 2,
         .n = 3,
         .c = 190,
         .m = 5,
         .in = {4, 5},
         .kernel = {3, 2},
         .strides = {2, 1},
         .begin = {1, 0},
         .end = {0, 1}},
        {.axes = 1, .n = 1, .c = 257, .m = 64, .in = {40}, .kernel = {5}, .dilations = {3}},
        {.axes = 3, .n = 2, .c = 71, .m = 9, .in = {3, 3, 4}, .kernel = {2, 2, 2}, .bias = true},
    };
    run_node_by(CLG_KERNELS_SIMT, "conv_simt_split");
    EACH(cases);
    run_node_by(CLG_KERNELS_AUTO, NULL);
    static const conv_case grouped[] = {
        {.axes = 2, .n = 1, .c = 122, .m = 6, .group = 2, .in = {7, 6}, .kernel = {3, 3}},
    };
    EACH(grouped); /* divided where the device has enough compute units */
}

/* Tiles for GPUs that only measurements choose. */
TEST(conv__other_tiles)
{
    static const conv_case cases[] = {
        {.axes = 2, .n = 2, .c = 5, .m = 67, .in = {9, 8}, .kernel = {3, 3}, .bias = true},
        {.axes = 2,
         .n = 3,
         .c = 6,
         .m = 140,
         .group = 2,
         .in = {7, 9},
         .kernel = {3, 2},
         .strides = {1, 2},
         .begin = {1, 1},
         .end = {0, 2}},
        {.axes = 1, .n = 2, .c = 3, .m = 70, .in = {77}, .kernel = {5}, .dtype = CLG_FLOAT16},
    };
    static const char *const impls[] = {"conv_simt_quads", "conv_simt_large"};
    for (size_t i = 0; i < COUNT(impls); i++) {
        run_node_by(CLG_KERNELS_SIMT, impls[i]);
        EACH(cases);
        run_node_by(CLG_KERNELS_AUTO, NULL);
    }
}

TEST(conv__groups)
{
    static const conv_case cases[] = {
        {.axes = 2,
         .n = 2,
         .c = 6,
         .m = 9,
         .group = 3,
         .in = {7, 8},
         .kernel = {3, 3},
         .bias = true},
        {.axes = 2,
         .n = 2,
         .c = 5,
         .m = 5,
         .group = 5,
         .in = {9, 35},
         .kernel = {3, 3},
         .begin = {1, 1},
         .end = {1, 1},
         .bias = true},
        {.axes = 2,
         .n = 1,
         .c = 7,
         .m = 7,
         .group = 7,
         .in = {8, 7},
         .kernel = {5, 5},
         .strides = {2, 2},
         .begin = {2, 2},
         .end = {2, 2}},
        {.axes = 2,
         .n = 1,
         .c = 4,
         .m = 8,
         .group = 4,
         .in = {6, 6},
         .kernel = {3, 3},
         .dilations = {2, 2}},
        {.axes = 2, .n = 1, .c = 2, .m = 20, .group = 2, .in = {5, 5}, .kernel = {3, 3}},
        {.axes = 1, .n = 1, .c = 3, .m = 3, .group = 3, .in = {20}, .kernel = {4}, .begin = {3}},
        {.axes = 3,
         .n = 1,
         .c = 2,
         .m = 2,
         .group = 2,
         .in = {4, 5, 6},
         .kernel = {2, 3, 3},
         .begin = {1, 1, 1},
         .end = {0, 1, 1}},
    };
    EACH(cases);
}

TEST(conv__one_and_three_axes)
{
    static const conv_case cases[] = {
        {.axes = 1,
         .n = 2,
         .c = 4,
         .m = 6,
         .in = {31},
         .kernel = {3},
         .begin = {1},
         .end = {1},
         .bias = true},
        {.axes = 1,
         .n = 1,
         .c = 3,
         .m = 2,
         .in = {50},
         .kernel = {5},
         .strides = {3},
         .dilations = {2}},
        {.axes = 1, .n = 1, .c = 5, .m = 7, .in = {11}, .kernel = {1}},
        {.axes = 3,
         .n = 1,
         .c = 3,
         .m = 4,
         .in = {5, 6, 7},
         .kernel = {3, 2, 3},
         .begin = {1, 0, 1},
         .end = {1, 1, 0},
         .bias = true},
        {.axes = 3,
         .n = 2,
         .c = 2,
         .m = 3,
         .in = {6, 5, 6},
         .kernel = {2, 2, 2},
         .strides = {2, 2, 1},
         .dilations = {2, 1, 2}},
    };
    EACH(cases);
}

TEST(conv__auto_pad)
{
    static const char *const words[] = {"SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"};
    for (size_t i = 0; i < 4; i++) {
        conv_case t = {
            .axes = 2, .n = 1, .c = 2, .m = 3, .in = {8, 9}, .kernel = {3, 4}, .strides = {2, 3}};
        t.auto_pad = words[i];
        conv(&t);
        t.kernel[0] = 2;
        t.strides[0] = 3;
        conv(&t);
    }
}

TEST(conv__dtypes)
{
    static const conv_case cases[] = {
        /* The weights that a kernel keeps are some taps of all channels, or one tap of some. */
        {.axes = 2,
         .n = 1,
         .c = 400,
         .m = 13,
         .in = {5, 6},
         .kernel = {3, 2},
         .begin = {1, 1},
         .bias = true,
         .dtype = CLG_FLOAT16},
        {.axes = 2,
         .n = 1,
         .c = 2500,
         .m = 13,
         .in = {4, 3},
         .kernel = {2, 2},
         .dtype = CLG_FLOAT16},
        {.axes = 2,
         .n = 1,
         .c = 3,
         .m = 5,
         .in = {7, 9},
         .kernel = {3, 3},
         .bias = true,
         .dtype = CLG_FLOAT16},
        {.axes = 2,
         .n = 1,
         .c = 3,
         .m = 3,
         .group = 3,
         .in = {7, 9},
         .kernel = {3, 3},
         .dtype = CLG_FLOAT16},
        {.axes = 2,
         .n = 1,
         .c = 6,
         .m = 5,
         .in = {3, 9},
         .kernel = {1, 1},
         .bias = true,
         .dtype = CLG_FLOAT16},
        {.axes = 2,
         .n = 2,
         .c = 4,
         .m = 6,
         .group = 2,
         .in = {7, 9},
         .kernel = {3, 2},
         .strides = {2, 1},
         .begin = {1, 1},
         .bias = true,
         .dtype = CLG_FLOAT64},
    };
    EACH(cases);
}

TEST(conv__computed_weights)
{
    static const conv_case cases[] = {
        {.axes = 2,
         .n = 1,
         .c = 3,
         .m = 14,
         .in = {7, 9},
         .kernel = {3, 3},
         .bias = true,
         .weight_is_input = true},
        {.axes = 2,
         .n = 1,
         .c = 4,
         .m = 4,
         .group = 4,
         .in = {7, 9},
         .kernel = {3, 3},
         .weight_is_input = true},
    };
    EACH(cases);
}

/* Checks relu(conv + residual), which the pass fuses into one kernel. */
static void followed(const conv_case *t)
{
    const conv_whole w = complete(t);
    const int64_t outputs = w.out[1] * w.out[2], n = t->n * t->m * outputs,
                  terms = t->c * w.kernel[1] * w.kernel[2];
    const int64_t x_dims[] = {t->n, t->c, w.in[1], w.in[2]},
                  y_dims[] = {t->n, t->m, w.out[1], w.out[2]};
    const double *x = run_node_random(t->n * t->c * w.in[1] * w.in[2]),
                 *weight = run_node_random(t->m * terms);
    const double *bias = run_node_random(t->m), *residual = run_node_random(n);
    double *y = run_node_zeros(n);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = i % outputs, channel = i / outputs % t->m,
                      place[3] = {0, at / w.out[2], at % w.out[2]};
        y[i] = sum_at(t, &w, x, weight, i / outputs / t->m, channel, place) + bias[channel] +
               residual[i];
        y[i] = fmax(y[i], 0);
    }
    run_node r;
    run_node_start(&r, NULL, "Conv", 13);
    run_node_input(&r, CLG_FLOAT32, 4, x_dims, x);
    run_node_constant(&r, CLG_FLOAT32, 4, (int64_t[]){t->m, t->c, w.kernel[1], w.kernel[2]},
                      weight);
    run_node_constant(&r, CLG_FLOAT32, 1, &t->m, bias);
    describe(&r, t);
    run_node_then(&r, "Add");
    run_node_input(&r, CLG_FLOAT32, 4, y_dims, residual);
    run_node_then(&r, "Relu");
    run_node_expect(&r, CLG_FLOAT32, 4, y_dims, y);
    r.heavy = true;
    run_node_check_scaled(&r, FLOAT_TOLERANCE, sqrt((double)terms));
}

TEST(conv__followers)
{
    followed(&(conv_case){.axes = 2,
                          .n = 2,
                          .c = 3,
                          .m = 13,
                          .in = {6, 35},
                          .kernel = {3, 3},
                          .begin = {1, 1},
                          .end = {1, 1},
                          .bias = true});
    followed(&(conv_case){.axes = 2, .n = 2, .c = 300, .m = 45, .in = {7, 7}, .kernel = {1, 1}});
}

TEST(conv__nan_stays_where_it_is_seen)
{
    const double x[] = {1, 2, NAN, 4, 5, 6, INFINITY, 8}, w[] = {1, 1},
                 y[] = {3, NAN, NAN, 9, 11, INFINITY, INFINITY};
    run_node r;
    run_node_start(&r, NULL, "Conv", 11);
    run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){1, 1, 8}, x);
    run_node_constant(&r, CLG_FLOAT32, 3, (int64_t[]){1, 1, 2}, w);
    run_node_expect(&r, CLG_FLOAT32, 3, (int64_t[]){1, 1, 7}, y);
    run_node_check(&r, FLOAT_TOLERANCE);
}

TEST_GROUP(run_node_open, run_node_close)
