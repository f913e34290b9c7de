/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws curves with the ticks 1, 2 and 5 times powers of ten. See plot.h.
 */
#include "plot.h"

#include "text_buffer.h"

#include <math.h>
#include <string.h>

/* Sizes in pixels. */
enum { WIDTH = 720, PANEL = 300, LEFT = 76, RIGHT = 20, TOP = 40, BOTTOM = 50, MAX_TICKS = 8 };

typedef struct axis {
    double low, high, step; /* of numbers; ticks are multiples of step */
    double from, to;        /* of pixels */
} axis;

/* Chooses round numbers that enclose low to high. */
static axis axis_of(double low, double high, double from, double to)
{
    static const double factors[] = {1, 2, 5, 10};
    if (!(high > low)) {
        const double room = low != 0 ? fabs(low) * 0.1 : 1;
        low -= room;
        high += room;
    }
    const double power = pow(10, floor(log10((high - low) / MAX_TICKS)));
    double step = power;
    for (size_t i = 0; i < 4; i++) {
        step = power * factors[i];
        if (ceil(high / step) - floor(low / step) <= MAX_TICKS) break;
    }
    return (axis){floor(low / step) * step, ceil(high / step) * step, step, from, to};
}

static double at(const axis *a, double number)
{
    return a->from + (number - a->low) / (a->high - a->low) * (a->to - a->from);
}

static bool range_of(const double *y, size_t n, double *low, double *high)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(y[i])) continue;
        *low = fmin(*low, y[i]);
        *high = fmax(*high, y[i]);
        any = true;
    }
    return any;
}

static bool panel_range(const plot_panel *p, size_t n, double *low, double *high)
{
    bool any = false;
    *low = INFINITY;
    *high = -INFINITY;
    for (size_t i = 0; i < p->n_curves; i++) any |= range_of(p->curves[i].y, n, low, high);
    return any;
}

/* Returns tick i of an axis: exactly 0 where rounding leaves a rest. */
static double tick(const axis *a, int i)
{
    const double number = a->low + i * a->step;
    return fabs(number) < a->step * 1e-6 ? 0 : number;
}

static int n_ticks(const axis *a) { return (int)lround((a->high - a->low) / a->step) + 1; }

static void draw_axes(text_buffer *d, const axis *x, const axis *y, const char *x_title)
{
    for (int i = 0; i < n_ticks(y); i++) {
        const double to = at(y, tick(y, i));
        text_buffer_printf(d, "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='#ddd'/>\n",
                           x->from, to, x->to, to);
        text_buffer_printf(d, "<text x='%.1f' y='%.1f' text-anchor='end'>%.6g</text>\n",
                           x->from - 8, to + 4, tick(y, i));
    }
    for (int i = 0; i < n_ticks(x); i++) {
        const double to = at(x, tick(x, i));
        text_buffer_printf(d, "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='#333'/>\n", to,
                           y->from, to, y->from + 5);
        text_buffer_printf(d, "<text x='%.1f' y='%.1f' text-anchor='middle'>%.6g</text>\n", to,
                           y->from + 19, tick(x, i));
    }
    text_buffer_printf(d, "<path d='M%.1f %.1fV%.1fH%.1f' fill='none' stroke='#333'/>\n", x->from,
                       y->to, y->from, x->to);
    text_buffer_printf(d, "<text x='%.1f' y='%.1f' text-anchor='middle'>%s</text>\n",
                       (x->from + x->to) / 2, y->from + 38, x_title);
}

static void draw_curve(text_buffer *d, const axis *x_axis, const axis *y_axis, const double *x,
                       size_t n, const plot_curve *c)
{
    bool is_open = false;
    text_buffer_printf(d, "<path d='");
    for (size_t i = 0; i < n; i++) {
        if (isfinite(c->y[i]))
            text_buffer_printf(d, "%c%.1f %.1f", is_open ? 'L' : 'M', at(x_axis, x[i]),
                               at(y_axis, c->y[i]));
        is_open = isfinite(c->y[i]);
    }
    text_buffer_printf(d, "' fill='none' stroke='%s' stroke-width='2'/>\n", c->colour);
    for (size_t i = 0; i < n && n <= 50; i++)
        if (isfinite(c->y[i]))
            text_buffer_printf(d, "<circle cx='%.1f' cy='%.1f' r='3' fill='%s'/>\n",
                               at(x_axis, x[i]), at(y_axis, c->y[i]), c->colour);
}

static void draw_panel(text_buffer *d, const plot_panel *p, const char *x_title, const double *x,
                       size_t n, double top)
{
    double low, high, legend = WIDTH - RIGHT;
    (void)panel_range(p, n, &low, &high);
    const axis x_axis = axis_of(x[0], x[n - 1], LEFT, WIDTH - RIGHT);
    const axis y_axis = axis_of(low, high, top + PANEL - BOTTOM, top + TOP);
    text_buffer_printf(d, "<text x='%d' y='%.1f' font-size='15' font-weight='bold'>%s</text>\n",
                       LEFT, top + 24, p->title);
    draw_axes(d, &x_axis, &y_axis, x_title);
    for (size_t i = p->n_curves; i-- > 0;) {
        const plot_curve *c = &p->curves[i];
        double ignored[2] = {INFINITY, -INFINITY};
        if (!range_of(c->y, n, &ignored[0], &ignored[1])) continue;
        draw_curve(d, &x_axis, &y_axis, x, n, c);
        text_buffer_printf(d, "<text x='%.1f' y='%.1f' text-anchor='end' fill='%s'>%s</text>\n",
                           legend, top + 24, c->colour, c->name);
        legend -= 12 + 8 * (double)strlen(c->name);
    }
}

char *plot_draw(const char *x_title, const double *x, size_t n, const plot_panel *panels,
                size_t n_panels)
{
    text_buffer d = {0};
    double low, high;
    size_t n_drawn = 0;
    for (size_t i = 0; i < n_panels; i++) n_drawn += panel_range(&panels[i], n, &low, &high);
    text_buffer_printf(
        &d,
        "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%zu' viewBox='0 0 %d %zu' "
        "font-family='sans-serif' font-size='12' fill='#333'>\n",
        WIDTH, n_drawn * PANEL, WIDTH, n_drawn * PANEL);
    text_buffer_printf(&d, "<rect width='100%%' height='100%%' fill='white'/>\n");
    n_drawn = 0;
    for (size_t i = 0; i < n_panels; i++)
        if (panel_range(&panels[i], n, &low, &high))
            draw_panel(&d, &panels[i], x_title, x, n, (double)(PANEL * n_drawn++));
    text_buffer_printf(&d, "</svg>\n");
    return text_buffer_take(&d);
}
