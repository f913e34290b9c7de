/* SPDX-License-Identifier: Apache-2.0
 *
 * The rule of DeformConv, which interpolates images at the moved positions of its windows, and
 * multiplies them by the weight. Positions are counted in elements, so that offsets of 0, with
 * which models start, are positions on elements exactly.
 *
 * Letters: N images, F groups of offsets, T elements of the kernel (taps), P pixels of the output.
 */
#include "ops/grad/grad_rule.h"

enum { X, W, OFFSET, BIAS, MASK };

typedef struct deform {
    int64_t channels, outputs, group, fields, kernel[2], taps;
    clg_dtype dtype, precision; /* of X; of positions */
    value_id out[2], pixels;    /* lists of one: sizes of the output, and their product */
    value_id batch, images;     /* lists of one: N and N F */
} deform;

/* Returns entry i of a list attribute. */
static int64_t entry(const grad_node *c, const char *name, size_t i, int64_t fallback)
{
    size_t n;
    const int64_t *list = node_ints(&c->node, name, &n);
    return i < n ? list[i] : fallback;
}

/* Returns the positions along axis `i` of the image without offsets, [T, P]. */
static value_id positions(grad_node *c, const deform *d, int i)
{
    const int64_t stride = entry(c, "strides", (size_t)i, 1),
                  dilation = entry(c, "dilations", (size_t)i, 1),
                  pad = -entry(c, "pads", (size_t)i, 0);
    const int64_t of_tap[3] = {1 - i, 2, 3}, of_pixel[3] = {0, 1, 3 - i};
    const value_id tap = GRAD_ADD(c, "Mul", grad_indices(c, grad_list(c, 1, &d->kernel[i])),
                                  grad_list(c, 1, &dilation));
    const value_id pixel =
        GRAD_ADD(c, "Add", GRAD_ADD(c, "Mul", grad_indices(c, d->out[i]), grad_list(c, 1, &stride)),
                 grad_list(c, 1, &pad));
    const value_id at = GRAD_ADD(c, "Add", grad_unsqueeze(c, tap, 3, of_tap),
                                 grad_unsqueeze(c, pixel, 3, of_pixel));
    const value_id dims =
        grad_concat(c, 0, 3, (value_id[]){grad_list(c, 2, d->kernel), d->out[0], d->out[1]});
    return grad_cast(c,
                     grad_reshape_to(c, GRAD_ADD(c, "Expand", at, dims), 2,
                                     (value_id[]){grad_list(c, 1, &d->taps), d->pixels}),
                     d->precision);
}

/* Returns the positions along axis `i`, moved by offsets [N F, T, 2, P], as [N F T P, 1]. */
static value_id moved(grad_node *c, const deform *d, int i, value_id offsets)
{
    value_id moves = grad_pick(c, offsets, 2, i);
    if (d->precision != d->dtype) moves = grad_cast(c, moves, d->precision);
    return grad_reshape(c, GRAD_ADD(c, "Add", moves, positions(c, d, i)), 2,
                        (const int64_t[]){-1, 1});
}

/* Returns the windows, [N F, channels / F, T, P], times the mask. */
static value_id columns(grad_node *c, const deform *d)
{
    const int64_t two = 2, one = 1, per_field = d->channels / d->fields, front[4] = {0, 3, 1, 2};
    const value_id x = grad_in(c, X), taps = grad_list(c, 1, &d->taps),
                   channels = grad_list(c, 1, &per_field);
    const value_id images = grad_reshape_to(
        c, x, 4,
        (value_id[]){d->images, channels, grad_size_along(c, x, 2), grad_size_along(c, x, 3)});
    const value_id offsets = grad_reshape_to(
        c, grad_in(c, OFFSET), 4, (value_id[]){d->images, taps, grad_list(c, 1, &two), d->pixels});
    const value_id rows =
        grad_interpolate(c, images, moved(c, d, 0, offsets), moved(c, d, 1, offsets),
                         GRAD_ADD(c, "Mul", taps, d->pixels), d->precision);
    const value_id v = grad_permute(
        c, grad_reshape_to(c, rows, 4, (value_id[]){d->images, taps, d->pixels, channels}), 4,
        front);
    if (grad_in(c, MASK) == VALUE_NONE) return v;
    const value_id mask = grad_reshape_to(
        c, grad_in(c, MASK), 4, (value_id[]){d->images, grad_list(c, 1, &one), taps, d->pixels});
    return GRAD_ADD(c, "Mul", v, mask);
}

static bool read_deform(grad_node *c, deform *d)
{
    const shape *w = &grad_fact(c, grad_in(c, W))->dims;
    *d = (deform){.group = node_int(&c->node, "group", 1),
                  .fields = node_int(&c->node, "offset_group", 1),
                  .dtype = grad_fact(c, grad_in(c, X))->dtype};
    d->precision = d->dtype == CLG_FLOAT64 ? CLG_FLOAT64 : CLG_FLOAT32;
    if (w->rank != 4 || !shape_is_known(w)) {
        grad_refuse(c, "the sizes of its weight are not known");
        return false;
    }
    d->outputs = w->dims[0];
    d->channels = w->dims[1] * d->group;
    d->kernel[0] = w->dims[2];
    d->kernel[1] = w->dims[3];
    d->taps = d->kernel[0] * d->kernel[1];
    for (int i = 0; i < 2; i++) d->out[i] = grad_size_along(c, grad_in(c, OFFSET), 2 + i);
    d->pixels = GRAD_ADD(c, "Mul", d->out[0], d->out[1]);
    d->batch = grad_size_along(c, grad_in(c, X), 0);
    d->images = GRAD_ADD(c, "Mul", d->batch, grad_list(c, 1, &d->fields));
    return true;
}

void grad_pass_deform_conv(grad_node *c)
{
    const size_t first = c->graph->n_nodes;
    deform d;
    if (!read_deform(c, &d)) return;
    const int64_t depth = d.channels / d.group * d.taps, axes[2] = {1, 2};
    const value_id matrix =
        grad_reshape(c, grad_in(c, W), 3, (const int64_t[]){d.group, d.outputs / d.group, depth});
    const value_id by_group = grad_reshape_to(
        c, columns(c, &d), 4,
        (value_id[]){d.batch, grad_list(c, 1, &d.group), grad_list(c, 1, &depth), d.pixels});
    value_id y =
        grad_reshape_to(c, GRAD_ADD(c, "MatMul", matrix, by_group), 4,
                        (value_id[]){d.batch, grad_list(c, 1, &d.outputs), d.out[0], d.out[1]});
    if (grad_in(c, BIAS) != VALUE_NONE)
        y = GRAD_ADD(c, "Add", y, grad_unsqueeze(c, grad_in(c, BIAS), 2, axes));
    grad_through(c, first, 1, &y);
}
