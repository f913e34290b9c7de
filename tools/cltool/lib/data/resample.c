/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements resample.h. The filters are those of Pillow (src/libImaging/Resample.c), sampled at
 * the centres of the source's elements: a triangle that reaches one element of the larger of source
 * and result to each side (BILINEAR), and Keys's cubic with a = -0.5, which reaches two (BICUBIC).
 * Weights are divided by the sum of those inside of the image. Sums are in double and not rounded
 * between the two axes, as Pillow does for 8 bits. The cubic overshoots, so that it matters that
 * Pillow stores levels after each axis: for it, this does so too.
 *
 * A row of the source is reduced along x, then added to all rows of the result that it has a weight
 * in. So each pixel is read once, and no image of intermediate size exists.
 */
#include "resample.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

/* The source elements first <= i < end that a result is made of; none outside of the image. The
 * weight of i is norm * kernel(|i + 0.5 - centre| * inverse_reach). */
typedef struct window {
    int first, end;
    double centre, norm;
} window;

typedef struct filter {
    window *windows; /* one for each wanted element; first and end never decrease */
    resample_filter kind;
    double inverse_reach;
} filter;

static double kernel(resample_filter kind, double t)
{
    if (kind == RESAMPLE_BILINEAR) return t < 1 ? 1 - t : 0;
    if (t < 1) return (1.5 * t - 2.5) * t * t + 1;
    return t < 2 ? ((-0.5 * t + 2.5) * t - 4) * t + 2 : 0;
}

static double weight(const filter *f, const window *w, int i)
{
    return kernel(f->kind, fabs(i + 0.5 - w->centre) * f->inverse_reach) * w->norm;
}

static window make_window(const filter *f, const resample_axis *axis, int in, int64_t at)
{
    const double scale = (double)in / (double)axis->size;
    const double reach = fmax(scale, 1) * (f->kind == RESAMPLE_BICUBIC ? 2 : 1);
    window w = {.first = at < 0 ? 0 : in, .end = at < 0 ? 0 : in, .norm = 1};
    if (at < 0 || at >= axis->size) return w;
    w.centre = ((double)at + 0.5) * scale;
    w.first = (int)fmax(w.centre - reach + 0.5, 0);
    w.end = (int)fmin(w.centre + reach + 0.5, in);
    double sum = 0;
    for (int i = w.first; i < w.end; i++) sum += weight(f, &w, i);
    w.norm = 1 / sum;
    return w;
}

/* Returns false when out of memory. */
static bool make_filter(const resample_axis *axis, int in, filter *out)
{
    out->inverse_reach = fmin((double)axis->size / in, 1);
    out->windows = calloc((size_t)axis->n, sizeof *out->windows);
    for (int i = 0; out->windows && i < axis->n; i++)
        out->windows[i] = make_window(out, axis, in, axis->first + i);
    return out->windows != NULL;
}

static inline double sample(const void *row, bool is_deep, size_t i)
{
    return is_deep ? ((const uint16_t *)row)[i] : ((const uint8_t *)row)[i];
}

/* Computes n pixels of a row. Inlined with constant channels and is_deep. */
static inline void narrow(const filter *f, int n, const void *row, size_t channels, bool is_deep,
                          double *to)
{
    for (int o = 0; o < n; o++, to += channels) {
        const window *w = &f->windows[o];
        double sums[4] = {0};
        for (int i = w->first; i < w->end; i++) {
            const double part = weight(f, w, i);
            for (size_t c = 0; c < channels; c++)
                sums[c] += part * sample(row, is_deep, (size_t)i * channels + c);
        }
        for (size_t c = 0; c < channels; c++) to[c] = sums[c];
    }
}

/* Makes whole levels of 0 to 255 of elements, each of which is a level times `unit`; those of
 * images of 16 bits are only clipped to 0 to 65535. */
static void make_levels(double *elements, size_t n, bool is_deep, double unit)
{
    for (size_t i = 0; i < n; i++) {
        const double level = fmin(fmax(elements[i] / unit, 0), is_deep ? 65535 : 255);
        elements[i] = (is_deep ? level : floor(level + 0.5)) * unit;
    }
}

static void narrow_row(const filter *f, int n, const raster *from, int y, double *to)
{
    const size_t at = (size_t)y * (size_t)from->width * (size_t)from->channels;
    if (from->is_deep) {
        const uint16_t *row = (const uint16_t *)from->pixels + at;
        if (from->channels == 1) narrow(f, n, row, 1, true, to);
        if (from->channels == 3) narrow(f, n, row, 3, true, to);
        if (from->channels == 4) narrow(f, n, row, 4, true, to);
    } else {
        const uint8_t *row = (const uint8_t *)from->pixels + at;
        if (from->channels == 1) narrow(f, n, row, 1, false, to);
        if (from->channels == 3) narrow(f, n, row, 3, false, to);
        if (from->channels == 4) narrow(f, n, row, 4, false, to);
    }
}

/* Adds each row of the source to the rows of `to` that depend on it; row: room for one. */
static void add_rows(const raster *from, const filter *across, int n_x, const filter *down, int n_y,
                     double *row, double *to)
{
    const size_t n = (size_t)n_x * (size_t)from->channels;
    const double unit = from->is_deep ? 1 / 65535.0 : 1 / 255.0;
    int next = 0; /* the first row of the result that is not complete */
    for (int y = down->windows[0].first; y < down->windows[n_y - 1].end; y++) {
        while (next < n_y && down->windows[next].end <= y) next++;
        if (next == n_y || down->windows[next].first > y) continue;
        narrow_row(across, n_x, from, y, row);
        if (across->kind == RESAMPLE_BICUBIC) make_levels(row, n, from->is_deep, 1);
        for (int o = next; o < n_y && down->windows[o].first <= y; o++) {
            const double part = weight(down, &down->windows[o], y) * unit;
            double *line = to + (size_t)o * n;
            for (size_t i = 0; i < n; i++) line[i] += part * row[i];
        }
    }
}

double *resample(const raster *from, resample_filter kind, const resample_axis *x,
                 const resample_axis *y)
{
    const size_t channels = (size_t)from->channels, n_x = (size_t)x->n, n_y = (size_t)y->n;
    filter across = {.kind = kind}, down = {.kind = kind};
    double *row = calloc(n_x, channels * sizeof *row), *to = NULL;
    if (row && n_y <= SIZE_MAX / sizeof *to / channels / n_x &&
        make_filter(x, from->width, &across) && make_filter(y, from->height, &down))
        to = calloc(n_x * n_y, channels * sizeof *to);
    if (to) add_rows(from, &across, x->n, &down, y->n, row, to);
    if (to && kind == RESAMPLE_BICUBIC)
        make_levels(to, n_x * n_y * channels, from->is_deep,
                    from->is_deep ? 1 / 65535.0 : 1 / 255.0);
    free(across.windows);
    free(down.windows);
    free(row);
    return to;
}
