/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares DeformConv with sums over all elements of the image, each with its bilinear weight,
 * which depends on its distance from the displaced kernel tap.
 *
 * Tolerance: float32 1e-4, for sums of at most 200 values of magnitude 1; float16 2e-2, since the
 * im2col matrix is rounded to float16.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>

typedef struct deform_case {
    int64_t batch, channels, h, w, outputs, kh, kw;
    int64_t group, fields, stride, dilation, pad;
    bool mask, bias;
} deform_case;

typedef struct deform_data {
    const double *x, *w, *offset, *mask, *bias;
    int64_t oh, ow;
} deform_data;

static double tent(double distance) { return fabs(distance) < 1 ? 1 - fabs(distance) : 0; }

static double one_output(const deform_case *k, const deform_data *d, int64_t n, int64_t m,
                         int64_t p)
{
    const int64_t taps = k->kh * k->kw, pixels = d->oh * d->ow, per = k->channels / k->group;
    double sum = k->bias ? d->bias[m] : 0;
    for (int64_t c = 0; c < per; c++)
        for (int64_t t = 0; t < taps; t++) {
            const int64_t channel = m / (k->outputs / k->group) * per + c;
            const int64_t field = (n * k->fields + channel / (k->channels / k->fields)) * taps + t;
            const double y = (double)(p / d->ow * k->stride - k->pad + t / k->kw * k->dilation) +
                             d->offset[field * 2 * pixels + p];
            const double z = (double)(p % d->ow * k->stride - k->pad + t % k->kw * k->dilation) +
                             d->offset[(field * 2 + 1) * pixels + p];
            double v = 0;
            for (int64_t e = 0; e < k->h * k->w; e++)
                v += tent(y - (double)(e / k->w)) * tent(z - (double)(e % k->w)) *
                     d->x[(n * k->channels + channel) * k->h * k->w + e];
            sum += v * d->w[(m * per + c) * taps + t] * (k->mask ? d->mask[field * pixels + p] : 1);
        }
    return sum;
}

static void deform(deform_case k, clg_dtype dtype, double tolerance)
{
    const int64_t oh = (k.h + 2 * k.pad - (k.kh - 1) * k.dilation - 1) / k.stride + 1,
                  ow = (k.w + 2 * k.pad - (k.kw - 1) * k.dilation - 1) / k.stride + 1;
    const int64_t taps = k.kh * k.kw, pixels = oh * ow, n_fields = k.batch * k.fields * taps;
    double *offset = run_node_random(n_fields * 2 * pixels);
    for (int64_t i = 0; i < n_fields * 2 * pixels; i++) offset[i] *= 3;
    const deform_data d = {run_node_random(k.batch * k.channels * k.h * k.w),
                           run_node_random(k.outputs * k.channels / k.group * taps),
                           offset,
                           run_node_random(n_fields * pixels),
                           run_node_random(k.outputs),
                           oh,
                           ow};
    double *y = run_node_zeros(k.batch * k.outputs * pixels);
    for (int64_t i = 0; i < k.batch * k.outputs * pixels; i++)
        y[i] = one_output(&k, &d, i / pixels / k.outputs, i / pixels % k.outputs, i % pixels);
    run_node r;
    run_node_start(&r, NULL, "DeformConv", 19);
    run_node_int(&r, "group", k.group);
    run_node_int(&r, "offset_group", k.fields);
    run_node_ints(&r, "strides", 2, (int64_t[]){k.stride, k.stride});
    run_node_ints(&r, "dilations", 2, (int64_t[]){k.dilation, k.dilation});
    run_node_ints(&r, "pads", 4, (int64_t[]){k.pad, k.pad, k.pad, k.pad});
    run_node_input(&r, dtype, DIMS(k.batch, k.channels, k.h, k.w), d.x);
    run_node_constant(&r, dtype, DIMS(k.outputs, k.channels / k.group, k.kh, k.kw), d.w);
    run_node_input(&r, dtype, DIMS(k.batch, k.fields * taps * 2, oh, ow), d.offset);
    if (k.bias)
        run_node_constant(&r, dtype, DIMS(k.outputs), d.bias);
    else
        run_node_absent(&r);
    if (k.mask) run_node_input(&r, dtype, DIMS(k.batch, k.fields * taps, oh, ow), d.mask);
    run_node_expect(&r, dtype, DIMS(k.batch, k.outputs, oh, ow), y);
    run_node_check(&r, tolerance);
}

TEST(deform__convolutions)
{
    deform((deform_case){2, 4, 7, 9, 5, 3, 3, 1, 1, 1, 1, 1, true, true}, CLG_FLOAT32, 1e-4);
    deform((deform_case){1, 6, 8, 8, 4, 3, 2, 2, 3, 2, 1, 0, true, false}, CLG_FLOAT32, 1e-4);
    deform((deform_case){2, 4, 9, 7, 6, 2, 3, 2, 2, 1, 2, 2, false, true}, CLG_FLOAT32, 1e-4);
    deform((deform_case){1, 3, 5, 5, 2, 1, 1, 1, 1, 1, 1, 0, false, false}, CLG_FLOAT32, 1e-4);
    deform((deform_case){1, 2, 5, 6, 3, 3, 3, 1, 2, 1, 1, 1, true, true}, CLG_FLOAT16, 2e-2);
    deform((deform_case){1, 2, 5, 6, 3, 3, 3, 1, 2, 1, 1, 1, true, true}, CLG_FLOAT64, 1e-10);
    deform((deform_case){0, 2, 5, 6, 3, 3, 3, 1, 1, 1, 1, 1, true, true}, CLG_FLOAT32, 0);
}

TEST(deform__refuses)
{
    const double zeros[64] = {0};
    run_node r;
    run_node_start(&r, NULL, "DeformConv", 22);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 1, 3, 3), zeros);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 1, 2, 2), zeros);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 4, 2, 2), zeros);
    run_node_expect(&r, CLG_FLOAT32, DIMS(1, 1, 2, 2), zeros);
    run_node_refused(&r, CLG_ERROR_SHAPE, "8 numbers for each pixel");
}

TEST_GROUP(run_node_open, run_node_close)
