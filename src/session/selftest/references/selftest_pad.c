/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-test references of Pad, CenterCropPad, ConvTranspose and its channel-blocked form, which
 * scatter each input element to the outputs that it contributes to.
 */
#include "ops/conv/conv_blocked.h"
#include "session/selftest/references/selftest_math.h"
#include "session/selftest/selftest.h"

#include <math.h>
#include <string.h>

/* ---- Pad ------------------------------------------------------------------------------------- */

/* Elements added before and after each axis; negative: removed. */
typedef struct padding {
    int64_t before[CLG_MAX_RANK], after[CLG_MAX_RANK];
} padding;

/* Sets the padding of one axis, which may be negative: counted from the end. */
static void set_axis(padding *p, int rank, int64_t axis, int64_t before, int64_t after)
{
    const int64_t at = axis < 0 ? axis + rank : axis;
    p->before[at] = before;
    p->after[at] = after;
}

/* Reads attribute pads (opset 2), or inputs 1 (pads) and 3 (axes). */
static padding read_padding(const lower_context *lc, const double *const *in)
{
    padding p = {{0}, {0}};
    size_t n = 0;
    const int rank = lc->inputs[0].dims.rank;
    const int64_t *pads = node_ints(lc->node, "pads", &n);
    if (!pads) n = (size_t)selftest_count(&lc->inputs[1].dims);
    const bool has_axes = lower_has_input(lc, 3);
    for (size_t i = 0; i < n / 2; i++)
        set_axis(&p, rank, has_axes ? (int64_t)in[3][i] : (int64_t)i,
                 pads ? pads[i] : (int64_t)in[1][i],
                 pads ? pads[n / 2 + i] : (int64_t)in[1][n / 2 + i]);
    return p;
}

/* Computes the padding of CenterCropPad: half of the difference at each end; an odd element is
 * added or removed at the end. */
static padding centre_padding(const lower_context *lc)
{
    padding p = {{0}, {0}};
    const shape *x = &lc->inputs[0].dims, *y = &lc->outputs[0].dims;
    for (int i = 0; i < x->rank; i++) {
        const int64_t more = y->dims[i] - x->dims[i];
        set_axis(&p, x->rank, i, more / 2, more - more / 2);
    }
    return p;
}

/* Moves position i of an axis into 0..n-1, as the mode says. Mode constant leaves it unchanged. */
static int64_t fold(const char *mode, int64_t i, int64_t n)
{
    if (strcmp(mode, "constant") == 0) return i;
    if (strcmp(mode, "edge") == 0 || n == 1) return i < 0 ? 0 : i < n ? i : n - 1;
    const bool reflects = strcmp(mode, "reflect") == 0;
    while (i < 0 || i >= n) {
        if (reflects)
            i = i < 0 ? -i : 2 * (n - 1) - i;
        else
            i = i < 0 ? i + n : i - n;
    }
    return i;
}

/* Returns the index in x of element `at` of the output; -1 for padding with the constant. Elements
 * are removed before others are added. */
static int64_t source_of(const lower_context *lc, const padding *p, const char *mode, int64_t at)
{
    const shape *x = &lc->inputs[0].dims, *y = &lc->outputs[0].dims;
    int64_t from = 0, stride = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        const int64_t first = p->before[d] < 0 ? -p->before[d] : 0,
                      end = p->after[d] < 0 ? x->dims[d] + p->after[d] : x->dims[d];
        const int64_t i = first + fold(mode, at % y->dims[d] - p->before[d] - first, end - first);
        if (i < first || i >= end) return -1;
        from += i * stride;
        stride *= x->dims[d];
        at /= y->dims[d];
    }
    return from;
}

/* Computes Pad and CenterCropPad. Copied elements must be exact: for a constant, rounding to the
 * output's dtype is allowed. */
clg_status selftest_pad(const lower_context *lc, const double *const *in,
                        const selftest_expected *out)
{
    const bool centre = strcmp(lc->node->op_type, "CenterCropPad") == 0;
    const padding p = centre ? centre_padding(lc) : read_padding(lc, in);
    const char *mode = centre ? "constant" : node_string(lc->node, "mode", "constant");
    const double constant =
        !centre && lower_has_input(lc, 2) ? in[2][0] : (double)node_float(lc->node, "value", 0);
    for (int64_t i = 0; i < selftest_count(&lc->outputs[0].dims); i++) {
        const int64_t from = source_of(lc, &p, mode, i);
        out[0].y[i] = from < 0 ? constant : in[0][from];
        out[0].scale[i] = from < 0 ? fabs(constant) : 0;
    }
    return CLG_OK;
}

/* ---- ConvTranspose --------------------------------------------------------------------------- */

#define MAX_AXES 3
/* Products that the reference may sum. Of larger problems only some output channels are computed;
 * the others are only checked for NaNs. */
#define MAX_TERMS (1 << 24)

/* An axis of a transposed convolution: input i and weight tap k contribute to output
 * i * stride + k * dilation - pad. */
typedef struct spread_axis {
    int64_t in, out, kernel, stride, dilation, pad;
} spread_axis;

/* A transposed convolution over three axes, the last one last; unused ones have length 1. ic, oc:
 * channels of a group. */
typedef struct transposed {
    spread_axis axes[MAX_AXES];
    int64_t groups, ic, oc, n_in, n_out, n_taps;
    int64_t step; /* distance between output channels that are computed */
} transposed;

/* Returns value i of a list attribute, or `fallback` without the attribute. output_shape may begin
 * with batch and channels. */
static int64_t value_of(const node *n, const char *name, int n_axes, int i, int64_t fallback)
{
    size_t count;
    const int64_t *values = node_ints(n, name, &count);
    return count == 0 ? fallback : values[count == (size_t)n_axes + 2 ? i + 2 : i];
}

/* Sets the padding before an axis: attribute pads, or as computed from the output's size by the
 * formulas of ConvTranspose. */
static void set_pad(const node *n, int n_axes, int i, spread_axis *a)
{
    const char *mode = node_string(n, "auto_pad", "NOTSET");
    const bool has_size = value_of(n, "output_shape", n_axes, i, -1) >= 0;
    size_t n_pads;
    const int64_t *pads = node_ints(n, "pads", &n_pads);
    a->pad = n_pads > 0 && strcmp(mode, "NOTSET") == 0 ? pads[i] : 0;
    if (!has_size && strncmp(mode, "SAME", 4) != 0) return;
    const int64_t total = a->stride * (a->in - 1) + value_of(n, "output_padding", n_axes, i, 0) +
                          (a->kernel - 1) * a->dilation + 1 - a->out;
    a->pad = 0;
    if (total > 0) a->pad = strcmp(mode, "SAME_UPPER") == 0 ? total / 2 : (total + 1) / 2;
}

/* x, y: shapes in NCHW order. */
static transposed read_transposed(const lower_context *lc, const shape *x, const shape *y)
{
    const node *n = lc->node;
    const shape *w = &lc->inputs[1].dims;
    const int n_axes = x->rank - 2;
    transposed t = {.groups = node_int(n, "group", 1), .oc = w->dims[1]};
    t.ic = w->dims[0] / t.groups;
    t.n_in = t.n_out = t.n_taps = 1;
    for (int d = 0; d < MAX_AXES; d++) {
        spread_axis *a = &t.axes[d];
        const int i = d - (MAX_AXES - n_axes);
        *a = (spread_axis){1, 1, 1, 1, 1, 0};
        if (i < 0) continue;
        *a = (spread_axis){.in = x->dims[2 + i],
                           .out = y->dims[2 + i],
                           .kernel = w->dims[2 + i],
                           .stride = value_of(n, "strides", n_axes, i, 1),
                           .dilation = value_of(n, "dilations", n_axes, i, 1)};
        set_pad(n, n_axes, i, a);
        t.n_in *= a->in;
        t.n_out *= a->out;
        t.n_taps *= a->kernel;
    }
    const double terms =
        (double)(x->dims[0] * x->dims[1] * t.oc) * (double)t.n_in * (double)t.n_taps;
    t.step = 1 + (int64_t)(terms / MAX_TERMS);
    return t;
}

/* Returns the output position that input `at` and weight tap `tap` (each d, h, w) contribute to;
 * -1 if it is outside. */
static int64_t reached(const transposed *t, const int64_t at[MAX_AXES], int64_t tap)
{
    int64_t to = 0, taps[MAX_AXES];
    for (int d = MAX_AXES - 1; d >= 0; d--) {
        taps[d] = tap % t->axes[d].kernel;
        tap /= t->axes[d].kernel;
    }
    for (int d = 0; d < MAX_AXES; d++) {
        const spread_axis *a = &t->axes[d];
        const int64_t i = at[d] * a->stride + taps[d] * a->dilation - a->pad;
        if (i < 0 || i >= a->out) return -1;
        to = to * a->out + i;
    }
    return to;
}

/* Adds the contributions of an input channel to the output channels of its group, which y and scale
 * begin with. w: the weights of that input channel. */
static void scatter_channel(const transposed *t, const double *x, const double *w, double *y,
                            double *scale)
{
    const spread_axis *a = t->axes;
    for (int64_t i = 0; i < t->n_in; i++) {
        const int64_t at[MAX_AXES] = {i / (a[1].in * a[2].in), i / a[2].in % a[1].in, i % a[2].in};
        for (int64_t tap = 0; tap < t->n_taps; tap++) {
            const int64_t to = reached(t, at, tap);
            for (int64_t o = (t->oc - 1) % t->step; to >= 0 && o < t->oc; o += t->step) {
                const double term = x[i] * w[o * t->n_taps + tap];
                y[o * t->n_out + to] += term;
                scale[o * t->n_out + to] += fabs(term);
            }
        }
    }
}

/* Adds the bias, and sets the scales of the channels that are not computed. */
static void finish(const transposed *t, const double *bias, int64_t n, const selftest_expected *out)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t channel = i / t->n_out % (t->groups * t->oc);
        if (bias) out->y[i] += bias[channel];
        if (bias) out->scale[i] += fabs(bias[channel]);
        if ((t->oc - 1 - channel % t->oc) % t->step != 0) out->scale[i] = HUGE_VAL;
    }
}

/* Computes y from x, both of these shapes, in NCHW order. */
static void scatter_all(const lower_context *lc, const double *const *in, const shape *x_dims,
                        const shape *y_dims, const double *x, const selftest_expected *out)
{
    const transposed t = read_transposed(lc, x_dims, y_dims);
    for (int64_t i = 0; i < x_dims->dims[0] * t.groups * t.ic; i++) { /* image, group, channel */
        const int64_t to = i / t.ic * t.oc * t.n_out;
        scatter_channel(&t, x + i * t.n_in, in[1] + i % (t.groups * t.ic) * t.oc * t.n_taps,
                        out->y + to, out->scale + to);
    }
    finish(&t, lower_has_input(lc, 2) ? in[2] : NULL, selftest_count(y_dims), out);
}

clg_status selftest_conv_transposed(const lower_context *lc, const double *const *in,
                                    const selftest_expected *out)
{
    scatter_all(lc, in, &lc->inputs[0].dims, &lc->outputs[0].dims, in[0], &out[0]);
    return CLG_OK;
}

/* Computes BlockedConvTranspose in NCHW order. Lanes after the last channel are only checked for
 * NaNs. */
clg_status selftest_blocked_transposed(const lower_context *lc, const double *const *in,
                                       const selftest_expected *out)
{
    const shape *blocks = &lc->inputs[0].dims, *over = &lc->outputs[0].dims;
    const shape *w = &lc->inputs[1].dims;
    shape x_dims = conv_blocked_flat(blocks), y_dims = conv_blocked_flat(over);
    x_dims.dims[1] = w->dims[0];
    y_dims.dims[1] = w->dims[1];
    const size_t n_x = (size_t)selftest_count(&x_dims), n_y = (size_t)selftest_count(&y_dims);
    double *x = arena_alloc(lc->memory, n_x + 1, sizeof *x);
    const selftest_expected plain = {.y = arena_alloc(lc->memory, n_y + 1, sizeof *x),
                                     .scale = arena_alloc(lc->memory, n_y + 1, sizeof *x)};
    if (!x || !plain.y || !plain.scale) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    memset(plain.y, 0, n_y * sizeof *x);
    memset(plain.scale, 0, n_y * sizeof *x);
    selftest_reorder(blocks, w->dims[0], in[0], x, false);
    scatter_all(lc, in, &x_dims, &y_dims, x, &plain);
    for (int64_t i = 0; i < selftest_count(over); i++) out[0].scale[i] = HUGE_VAL;
    selftest_reorder(over, w->dims[1], plain.y, out[0].y, true);
    selftest_reorder(over, w->dims[1], plain.scale, out[0].scale, true);
    return CLG_OK;
}
