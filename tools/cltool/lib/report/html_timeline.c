/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws the timeline of a profile: what the host did until the last run, and the steps of the last
 * run on the device below the time of the host.
 */
#include "html_profile.h"

#include <math.h>
#include <stdlib.h>

/* Steps shorter than this share of the run join the bar before them when they follow it closely, so
 * that the page stays small. */
#define MIN_SHARE 2e-4

static void add_bar(text_buffer *b, int colour, double start, double length, double whole)
{
    text_buffer_printf(b, "<b class=\"c%d\" style=\"left:%.4f%%;width:%.4f%%\" title=\"", colour,
                       100 * start / whole, 100 * length / whole);
}

/* Appends the marks of an axis of `whole` milliseconds. */
static void add_axis(text_buffer *b, double whole)
{
    const double power = pow(10, floor(log10(whole / 4)));
    double step = power;
    for (int i = 0; i < 3 && whole / step > 8; i++) step *= i % 2 == 0 ? 2 : 2.5;
    text_buffer_add(b, "<div class=\"track\">");
    for (int i = 0; i * step < whole * 0.93; i++)
        text_buffer_printf(b, "<em style=\"left:%.3f%%\">%g ms</em>", 100 * i * step / whole,
                           i * step);
    text_buffer_add(b, "</div>\n");
}

/* Appends what the host did, from the start of loading to the end of the last run. */
static void add_host(text_buffer *b, const profile_page *p)
{
    if (p->n_events == 0) return;
    const host_event *last = &p->events[p->n_events - 1];
    const double start = p->events[0].start_ms, whole = last->start_ms + last->ms - start;
    if (whole <= 0) return;
    text_buffer_add(b, "<div class=\"scroll\"><span class=\"label\">host, from the start</span>\n");
    add_axis(b, whole);
    text_buffer_add(b, "<div class=\"track\">");
    for (size_t i = 0; i < p->n_events; i++) {
        const host_event *e = &p->events[i];
        add_bar(b, (int)(i % 7), e->start_ms - start, e->ms, whole);
        html_printf(b, "%s: %.4g ms", e->name, e->ms);
        text_buffer_add(b, "\">");
        html_add(b, e->name, 0);
        text_buffer_add(b, "</b>");
    }
    text_buffer_add(b, "</div></div>\n");
}

/* Appends the steps of the last run in order, whose starts do not decrease. */
static void add_steps(text_buffer *b, const profile_rows *r, double whole)
{
    for (size_t i = 0; i < r->n_steps;) {
        const step_row *first = &r->steps[i];
        double end = first->start_us + first->last_us;
        size_t n = 1;
        for (; i + n < r->n_steps; n++) {
            const step_row *next = &r->steps[i + n];
            const bool is_short = next->last_us < MIN_SHARE * whole * 1e3;
            if (!is_short || next->start_us - end > MIN_SHARE * whole * 1e3) break;
            end = fmax(end, next->start_us + next->last_us);
        }
        add_bar(b, html_operator_colour(r, first->op_type), first->start_us / 1e3,
                (end - first->start_us) / 1e3, whole);
        html_add(b, first->node, 200);
        text_buffer_add(b, "\n");
        html_add(b, first->op_type, 60);
        text_buffer_add(b, ", ");
        html_add(b, first->kernel, 60);
        if (n > 1)
            html_printf(b, "\nand %zu short steps: %.4g us", n - 1, end - first->start_us);
        else
            html_printf(b, "\n%.4g us", first->last_us);
        text_buffer_add(b, "\"></b>");
        i += n;
    }
}

void html_add_timeline(text_buffer *b, const profile_page *p)
{
    const profile_rows *r = p->rows;
    double device_us = 0;
    for (size_t i = 0; i < r->n_steps; i++)
        device_us = fmax(device_us, r->steps[i].start_us + r->steps[i].last_us);
    const double whole = fmax(r->last_host_ms, device_us / 1e3);
    text_buffer_add(b, "<h2 id=\"timeline\">Timeline</h2>\n");
    add_host(b, p);
    if (whole <= 0) return;
    text_buffer_printf(b,
                       "<p class=\"dim\">The last run: %.4g ms on the host, steps within %.4g ms "
                       "on the device, drawn from the start of the run on. Clocks of host and "
                       "device are not compared.</p>\n",
                       r->last_host_ms, device_us / 1e3);
    html_add_colour_key(b, r);
    text_buffer_add(b, "<div class=\"controls\"><label>Stretch: <input type=\"range\" "
                       "id=\"stretch\" min=\"100\" max=\"4000\" value=\"100\"></label></div>\n"
                       "<div class=\"scroll\"><div class=\"tracks\" id=\"tracks\">\n");
    add_axis(b, whole);
    text_buffer_add(b, "<span class=\"label\">host</span><div class=\"track\">");
    add_bar(b, 7, 0, r->last_host_ms, whole);
    html_printf(b, "run: %.4g ms", r->last_host_ms);
    text_buffer_add(b, "\"></b></div>\n<span class=\"label\">device</span><div class=\"track\">");
    add_steps(b, r, whole);
    text_buffer_add(b, "</div></div></div>\n");
}
