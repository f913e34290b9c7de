/* SPDX-License-Identifier: Apache-2.0
 *
 * A plot of curves as SVG: panels one below the other over a common x axis, each with axes and
 * numbers.
 */
#ifndef CLTOOL_PLOT_H
#define CLTOOL_PLOT_H

#include <stddef.h>

typedef struct plot_curve {
    const char *name, *colour; /* plain text without markup; an SVG colour */
    const double *y;           /* for each x; NaN: no point */
} plot_curve;

typedef struct plot_panel {
    const char *title;
    const plot_curve *curves;
    size_t n_curves;
} plot_panel;

/* Draws the panels that have a point. x: ascending. Returns the text of the file; free(). */
char *plot_draw(const char *x_title, const double *x, size_t n, const plot_panel *panels,
                size_t n_panels);

#endif
