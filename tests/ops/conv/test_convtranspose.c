/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares ConvTranspose and Col2Im with the plain definition in double: each input pixel adds its
 * window to the output.
 *
 * Tolerance: float32 5e-6 of the square root of the number of terms, for sums of at most a few
 * hundred terms of magnitude 1; float16 4e-3, since it also rounds the products' sums before they
 * are added up.
 */
#include "support/cases/run_node.h"

#include <math.h>
#include <string.h>

/* Describes a spatial axis.
 * n, out     sizes of input and output
 * k, s, d    kernel size, stride, dilation
 * pb, pe     padding before and after
 * extra      output padding */
typedef struct axis {
    int64_t n, k, s, d, pb, pe, extra, out;
} axis;

typedef struct deconv {
    int n_axes;
    axis axes[3];
    int64_t batch, groups, ic, oc; /* ic, oc: channels per group */
    bool bias;
} deconv;

static int64_t whole(const axis *a) { return a->s * (a->n - 1) + a->extra + (a->k - 1) * a->d + 1; }

static int64_t product(const deconv *t, int what)
{
    int64_t n = 1;
    for (int i = 0; i < t->n_axes; i++)
        n *= what == 0 ? t->axes[i].n : what == 1 ? t->axes[i].k : t->axes[i].out;
    return n;
}

/* Returns the output pixel to which tap `tap` of input pixel `in` contributes, or -1. */
static int64_t falls_on(const deconv *t, int64_t in, int64_t tap)
{
    int64_t at = 0, stride = 1;
    for (int i = t->n_axes - 1; i >= 0; i--) {
        const axis *a = &t->axes[i];
        const int64_t o = in % a->n * a->s + tap % a->k * a->d - a->pb;
        if (o < 0 || o >= a->out) return -1;
        at += o * stride;
        stride *= a->out;
        in /= a->n;
        tap /= a->k;
    }
    return at;
}

static void spread(const deconv *t, const double *x, const double *w, const double *bias, double *y)
{
    const int64_t n_in = product(t, 0), taps = product(t, 1), n_out = product(t, 2);
    for (int64_t plane = 0; plane < t->batch * t->groups * t->oc; plane++)
        for (int64_t p = 0; p < n_out; p++)
            y[plane * n_out + p] = bias ? bias[plane % (t->groups * t->oc)] : 0;
    for (int64_t b = 0; b < t->batch; b++)
        for (int64_t g = 0; g < t->groups; g++)
            for (int64_t c = 0; c < t->ic; c++)
                for (int64_t o = 0; o < t->oc; o++)
                    for (int64_t in = 0; in < n_in; in++)
                        for (int64_t tap = 0; tap < taps; tap++) {
                            const int64_t to = falls_on(t, in, tap);
                            if (to < 0) continue;
                            y[((b * t->groups + g) * t->oc + o) * n_out + to] +=
                                x[((b * t->groups + g) * t->ic + c) * n_in + in] *
                                w[((g * t->ic + c) * t->oc + o) * taps + tap];
                        }
}

static void ints(run_node *r, const char *name, const deconv *t, const int64_t *values)
{
    run_node_ints(r, name, (size_t)t->n_axes, values);
}

static void check(deconv t, clg_dtype dtype, const char *auto_pad, bool by_output_shape)
{
    int64_t x_dims[5] = {t.batch, t.groups * t.ic}, w_dims[5] = {t.groups * t.ic, t.oc},
            y_dims[5] = {t.batch, t.groups * t.oc};
    int64_t strides[3], dilations[3], extra[3], pads[6], sizes[3];
    for (int i = 0; i < t.n_axes; i++) {
        axis *a = &t.axes[i];
        if (a->out == 0) a->out = whole(a) - a->pb - a->pe;
        x_dims[2 + i] = a->n;
        w_dims[2 + i] = a->k;
        y_dims[2 + i] = sizes[i] = a->out;
        strides[i] = a->s;
        dilations[i] = a->d;
        extra[i] = a->extra;
        pads[i] = a->pb;
        pads[t.n_axes + i] = a->pe;
    }
    const int64_t n_x = t.batch * t.groups * t.ic * product(&t, 0),
                  n_y = t.batch * t.groups * t.oc * product(&t, 2);
    const int64_t outputs = t.groups * t.oc;
    const double *x = run_node_random(n_x),
                 *w = run_node_random(t.groups * t.ic * t.oc * product(&t, 1));
    const double *bias = t.bias ? run_node_random(outputs) : NULL;
    double *y = run_node_zeros(n_y);
    spread(&t, x, w, bias, y);
    for (int constant = 0; constant < 2; constant++) {
        run_node r;
        run_node_start(&r, NULL, "ConvTranspose", 11);
        ints(&r, "strides", &t, strides);
        ints(&r, "dilations", &t, dilations);
        run_node_int(&r, "group", t.groups);
        if (auto_pad)
            run_node_string(&r, "auto_pad", auto_pad);
        else if (!by_output_shape)
            run_node_ints(&r, "pads", (size_t)(2 * t.n_axes), pads);
        if (by_output_shape) ints(&r, "output_shape", &t, sizes);
        ints(&r, "output_padding", &t, extra);
        run_node_input(&r, dtype, 2 + t.n_axes, x_dims, x);
        (constant ? run_node_constant : run_node_input)(&r, dtype, 2 + t.n_axes, w_dims, w);
        if (bias) run_node_constant(&r, dtype, 1, &outputs, bias);
        run_node_expect(&r, dtype, 2 + t.n_axes, y_dims, y);
        run_node_check_scaled(&r, dtype == CLG_FLOAT16 ? 4e-3 : 5e-6,
                              sqrt((double)(t.ic * product(&t, 1))));
    }
}

TEST(convtranspose__shapes)
{
    check((deconv){1, {{1, 1, 1, 1, 0, 0, 0, 0}}, 1, 1, 1, 1, false}, CLG_FLOAT32, NULL, false);
    check((deconv){1, {{17, 5, 3, 2, 1, 2, 1, 0}}, 2, 1, 3, 5, true}, CLG_FLOAT32, NULL, false);
    check((deconv){2, {{5, 3, 2, 1, 1, 1, 1, 0}, {7, 4, 2, 1, 1, 0, 0, 0}}, 2, 1, 16, 7, true},
          CLG_FLOAT32, NULL, false);
    check((deconv){2, {{4, 2, 2, 1, 0, 0, 0, 0}, {300, 2, 2, 1, 0, 0, 0, 0}}, 1, 1, 2, 2, true},
          CLG_FLOAT32, NULL, false);
    check((deconv){2, {{3, 3, 1, 2, 2, 1, 0, 0}, {5, 3, 3, 1, 0, 4, 2, 0}}, 2, 3, 2, 4, false},
          CLG_FLOAT32, NULL, false);
    check((deconv){3,
                   {{2, 3, 2, 1, 1, 0, 0, 0}, {3, 2, 1, 1, 0, 0, 0, 0}, {4, 3, 2, 2, 1, 1, 1, 0}},
                   2,
                   2,
                   2,
                   3,
                   true},
          CLG_FLOAT32, NULL, false);
    check((deconv){2, {{5, 3, 2, 1, 1, 1, 0, 0}, {6, 3, 2, 1, 1, 1, 0, 0}}, 1, 8, 1, 1, true},
          CLG_FLOAT32, NULL, false);
    check((deconv){2, {{5, 3, 2, 1, 1, 1, 0, 0}, {6, 3, 2, 1, 1, 1, 0, 0}}, 0, 1, 2, 2, true},
          CLG_FLOAT32, NULL, false);
}

TEST(convtranspose__half)
{
    check((deconv){2, {{5, 3, 2, 1, 1, 1, 1, 0}, {7, 4, 2, 1, 1, 0, 0, 0}}, 1, 1, 8, 3, true},
          CLG_FLOAT16, NULL, false);
}

/* Paddings computed by the operator: half of the excess on each side; if it is odd, the additional
 * pixel is before or after. */
TEST(convtranspose__requested_sizes)
{
    check((deconv){2, {{3, 4, 2, 1, 1, 1, 0, 6}, {4, 3, 2, 1, 0, 1, 0, 8}}, 1, 1, 2, 2, false},
          CLG_FLOAT32, "SAME_UPPER", false);
    check((deconv){2, {{3, 4, 2, 1, 1, 1, 0, 6}, {4, 3, 2, 1, 1, 0, 0, 8}}, 1, 1, 2, 2, false},
          CLG_FLOAT32, "SAME_LOWER", false);
    check((deconv){2, {{3, 4, 2, 1, 0, 0, 0, 0}, {4, 3, 2, 1, 0, 0, 0, 0}}, 1, 1, 2, 2, false},
          CLG_FLOAT32, "VALID", false);
    check((deconv){2, {{3, 3, 3, 1, 0, 0, 0, 10}, {3, 3, 2, 1, 1, 0, 0, 6}}, 1, 1, 2, 2, false},
          CLG_FLOAT32, NULL, true);
}

/* The pass `one_pixel` makes a Gemm of these, but not of the last three. */
TEST(convtranspose__one_pixel)
{
    const clg_dtype dtypes[] = {CLG_FLOAT32, CLG_FLOAT16};
    for (int i = 0; i < 2; i++) {
        check((deconv){1, {{1, 5, 1, 1, 0, 0, 0, 0}}, 3, 1, 7, 5, true}, dtypes[i], NULL, false);
        check((deconv){2, {{1, 4, 1, 1, 0, 0, 0, 0}, {1, 3, 2, 1, 0, 0, 0, 0}}, 5, 1, 13, 11, true},
              dtypes[i], NULL, false);
        check((deconv){2, {{1, 4, 2, 1, 0, 0, 0, 0}, {1, 3, 2, 1, 0, 0, 0, 0}}, 0, 1, 3, 2, false},
              dtypes[i], NULL, false);
        check((deconv){2, {{1, 4, 3, 1, 0, 0, 0, 0}, {1, 3, 2, 1, 0, 0, 1, 0}}, 2, 1, 5, 3, true},
              dtypes[i], NULL, false);
        check((deconv){2, {{1, 4, 1, 1, 1, 0, 0, 0}, {1, 3, 1, 1, 0, 0, 0, 0}}, 2, 1, 5, 3, false},
              dtypes[i], NULL, false);
        check((deconv){2, {{1, 2, 1, 2, 0, 0, 0, 0}, {1, 3, 1, 1, 0, 0, 0, 0}}, 2, 2, 5, 3, true},
              dtypes[i], NULL, false);
    }
}

TEST(convtranspose__refuses)
{
    const double x[24] = {0};
    run_node r;
    run_node_start(&r, NULL, "ConvTranspose", 11);
    run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){1, 2, 4}, x);
    run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){3, 2, 4}, x);
    run_node_expect(&r, CLG_FLOAT32, 3, (int64_t[]){1, 2, 7}, x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "channels");
}

TEST(convtranspose__col2im)
{
    enum {
        BATCH = 2,
        CHANNELS = 3,
        H = 5,
        W = 7,
        KH = 2,
        KW = 3,
        SW = 2,
        DH = 2,
        OH = H - (KH - 1) * DH + 2,
        OW = (W - KW) / SW + 1
    };
    const int64_t x_dims[] = {BATCH, CHANNELS * KH * KW, OH * OW};
    const double image[] = {H, W}, block[] = {KH, KW};
    const double *x = run_node_random(BATCH * CHANNELS * KH * KW * OH * OW);
    double *y = run_node_zeros(BATCH * CHANNELS * H * W);
    for (int p = 0; p < BATCH * CHANNELS; p++)
        for (int kh = 0; kh < KH; kh++)
            for (int kw = 0; kw < KW; kw++)
                for (int oh = 0; oh < OH; oh++)
                    for (int ow = 0; ow < OW; ow++) {
                        const int h = oh - 1 + kh * DH, w = ow * SW + kw;
                        if (h < 0 || h >= H) continue;
                        y[(p * H + h) * W + w] +=
                            x[(((p * KH + kh) * KW + kw) * OH + oh) * OW + ow];
                    }
    run_node r;
    run_node_start(&r, NULL, "Col2Im", 18);
    run_node_ints(&r, "strides", 2, (int64_t[]){1, SW});
    run_node_ints(&r, "dilations", 2, (int64_t[]){DH, 1});
    run_node_ints(&r, "pads", 4, (int64_t[]){1, 0, 1, 0});
    run_node_input(&r, CLG_FLOAT32, 3, x_dims, x);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){2}, image);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){2}, block);
    run_node_expect(&r, CLG_FLOAT32, 4, (int64_t[]){BATCH, CHANNELS, H, W}, y);
    run_node_check(&r, 2e-6);
}

TEST_GROUP(run_node_open, run_node_close)
