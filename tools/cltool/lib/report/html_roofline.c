/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws the roofline of a profile (Williams, Waterman and Patterson, 2009): GFLOP/s of each step
 * over its operations per byte, below what the device's arithmetic and memory allow. Both axes are
 * logarithmic.
 */
#include "html_profile.h"

#include <math.h>
#include <stdlib.h>

/* Sizes in pixels. */
enum { WIDTH = 900, HEIGHT = 440, LEFT = 70, RIGHT = 20, TOP = 20, BOTTOM = 50 };
#define MAX_POINTS 1500

/* An axis from a power of ten to another. */
typedef struct log_axis {
    double low, high; /* exponents */
    double from, to;  /* pixels */
} log_axis;

static double at(const log_axis *a, double number)
{
    return a->from + (log10(number) - a->low) / (a->high - a->low) * (a->to - a->from);
}

static bool has_point(const step_row *s)
{
    return s->flops > 0 && s->bytes > 0 && s->median_us > 0;
}

static void widen(log_axis *a, double number)
{
    a->low = fmin(a->low, floor(log10(number)));
    a->high = fmax(a->high, ceil(log10(number)));
}

static void draw_grid(text_buffer *b, const log_axis *x, const log_axis *y)
{
    for (int e = (int)x->low; e <= (int)x->high; e++) {
        const double px = at(x, pow(10, e));
        text_buffer_printf(b,
                           "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>"
                           "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n",
                           px, TOP, px, HEIGHT - BOTTOM, px, HEIGHT - BOTTOM + 18, pow(10, e));
    }
    for (int e = (int)y->low; e <= (int)y->high; e++) {
        const double py = at(y, pow(10, e));
        text_buffer_printf(b,
                           "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>"
                           "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                           LEFT, py, WIDTH - RIGHT, py, LEFT - 6, py + 4, pow(10, e));
    }
    text_buffer_printf(b,
                       "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">operations per byte of "
                       "memory traffic</text><text x=\"%d\" y=\"%d\">GFLOP/s</text>\n",
                       (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, 8, TOP - 6);
}

/* Draws min(peak, bandwidth x). */
static void draw_roof(text_buffer *b, const log_axis *x, const log_axis *y,
                      const clg_measurement *peaks)
{
    const double ridge = peaks->fp32_gflops / peaks->memory_gbytes_per_s;
    const double end = pow(10, x->high);
    double start = pow(10, x->low);
    /* where the slope enters the drawing */
    start = fmax(start, pow(10, y->low) / peaks->memory_gbytes_per_s);
    text_buffer_printf(b, "<polyline class=\"roof\" points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\"/>\n",
                       at(x, start), at(y, start * peaks->memory_gbytes_per_s), at(x, ridge),
                       at(y, peaks->fp32_gflops), at(x, end), at(y, peaks->fp32_gflops));
    text_buffer_printf(b, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.0f GFLOP/s</text>\n",
                       WIDTH - RIGHT - 4, at(y, peaks->fp32_gflops) - 6, peaks->fp32_gflops);
    text_buffer_printf(b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%.1f GB/s</text>\n",
                       at(x, sqrt(start * ridge)) - 8,
                       at(y, sqrt(start * ridge) * peaks->memory_gbytes_per_s),
                       peaks->memory_gbytes_per_s);
}

static void draw_point(text_buffer *b, const profile_rows *r, const step_row *s, const log_axis *x,
                       const log_axis *y)
{
    const double share = profile_share(r, s->median_us);
    text_buffer_printf(b, "<circle class=\"c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>",
                       html_operator_colour(r, s->op_type), at(x, s->flops / s->bytes),
                       at(y, profile_rate(s->flops, s->median_us)), 3 + 22 * sqrt(share));
    html_add(b, s->node, 300);
    text_buffer_add(b, "\n");
    html_add(b, s->op_type, 100);
    text_buffer_add(b, ", ");
    html_add(b, s->kernel, 100);
    html_printf(b, "\n%.4g us, %.1f %%, %.3g GFLOP/s, %.3g GB/s, %.0f %% of peak", s->median_us,
                100 * share, profile_rate(s->flops, s->median_us),
                profile_rate(s->bytes, s->median_us),
                100 * profile_of_peak(r, s->flops, s->bytes, s->median_us));
    text_buffer_add(b, "</title></circle>\n");
}

static int longest_first(const void *a, const void *b)
{
    const step_row *x = *(const step_row *const *)a, *y = *(const step_row *const *)b;
    return (x->median_us < y->median_us) - (x->median_us > y->median_us);
}

void html_add_roofline(text_buffer *b, const profile_rows *r)
{
    const clg_measurement *peaks = &r->peaks;
    const step_row **points = must_alloc(r->n_steps + 1, sizeof *points);
    size_t n = 0;
    for (size_t i = 0; i < r->n_steps; i++)
        if (has_point(&r->steps[i])) points[n++] = &r->steps[i];
    text_buffer_add(b, "<h2 id=\"roofline\">Roofline</h2>\n");
    if (n == 0 || peaks->fp32_gflops <= 0 || peaks->memory_gbytes_per_s <= 0) {
        text_buffer_add(b, "<p class=\"dim\">No step has both operations and memory traffic that "
                           "are counted.</p>\n");
        free(points);
        return;
    }
    qsort(points, n, sizeof *points, longest_first); /* small points come out above large ones */
    log_axis x = {.low = -1, .high = 2, .from = LEFT, .to = WIDTH - RIGHT};
    log_axis y = {.low = INFINITY, .high = -INFINITY, .from = HEIGHT - BOTTOM, .to = TOP};
    widen(&x, peaks->fp32_gflops / peaks->memory_gbytes_per_s);
    widen(&y, peaks->fp32_gflops * 1.3);
    const size_t n_shown = n < MAX_POINTS ? n : MAX_POINTS;
    for (size_t i = 0; i < n_shown; i++) {
        widen(&x, points[i]->flops / points[i]->bytes);
        widen(&y, profile_rate(points[i]->flops, points[i]->median_us));
    }
    if (y.high - y.low < 2) y.low = y.high - 2;
    text_buffer_printf(b,
                       "<p class=\"dim\">A point for each of %zu steps; its area is its share of "
                       "the time. ",
                       n_shown);
    if (r->n_steps > n)
        text_buffer_printf(b, "%zu steps without counted operations have none. ", r->n_steps - n);
    text_buffer_add(b, "Points above the roof read data that a cache held.</p>\n");
    html_add_colour_key(b, r);
    text_buffer_printf(
        b, "<div class=\"scroll\"><svg class=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\">\n", WIDTH,
        HEIGHT);
    draw_grid(b, &x, &y);
    draw_roof(b, &x, &y, peaks);
    for (size_t i = 0; i < n_shown; i++) draw_point(b, r, points[i], &x, &y);
    text_buffer_add(b, "</svg></div>\n");
    free(points);
}
