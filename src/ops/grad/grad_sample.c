/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of operators that interpolate images at given positions: GridSample, for image and grid,
 * AffineGrid, and RoiAlign, for the image.
 */
#include "ops/grad/grad_rule.h"

#include <string.h>

enum { MAX_AXES = 3, MAX_TAPS = 4 };

typedef enum sample_mode { NEAREST, LINEAR, CUBIC } sample_mode;
typedef enum sample_padding { ZEROS, BORDER, REFLECTION } sample_padding;

/* Positions along an axis: for each of its taps, elements of the image and their weights. */
typedef struct taps {
    size_t n;
    value_id at[MAX_TAPS];     /* int64 [M, 1] */
    value_id weight[MAX_TAPS]; /* [M, 1]; NONE: 1 */
} taps;

/* A GridSample; M: places of all images. */
typedef struct sampler {
    clg_dtype dtype; /* of positions and weights */
    sample_mode mode;
    sample_padding padding;
    bool align;
    int n_axes;
} sampler;

static value_id number(grad_node *c, const sampler *s, double n)
{
    return grad_number_of(c, s->dtype, n);
}

static value_id floor_to_int(grad_node *c, value_id v)
{
    return grad_cast(c, GRAD_ADD(c, "Floor", v), CLG_INT64);
}

/* ---- positions along an axis ----------------------------------------------------------------- */

/* Returns positions x reflected at low and low + span, as often as needed. */
static value_id reflect(grad_node *c, const sampler *s, value_id x, value_id low, value_id span)
{
    /* a triangle wave: |t - 2 span floor(t / (2 span) + 1 / 2)| */
    const value_id period = GRAD_ADD(c, "Mul", span, number(c, s, 2));
    const value_id safe = GRAD_ADD(c, "Max", period, number(c, s, 1e-30));
    const value_id t = GRAD_ADD(c, "Sub", x, low);
    const value_id turns =
        GRAD_ADD(c, "Floor", GRAD_ADD(c, "Add", GRAD_ADD(c, "Div", t, safe), number(c, s, 0.5)));
    const value_id wave =
        GRAD_ADD(c, "Abs", GRAD_ADD(c, "Sub", t, GRAD_ADD(c, "Mul", period, turns)));
    const value_id some = GRAD_ADD(c, "Greater", span, number(c, s, 0));
    return GRAD_ADD(c, "Where", some, GRAD_ADD(c, "Add", low, wave), low);
}

/* Returns indices of elements: those outside of the image reflected, or at its border. */
static value_id inside(grad_node *c, const sampler *s, value_id at, value_id size)
{
    const value_id zero = grad_number_of(c, CLG_INT64, 0), one = grad_number_of(c, CLG_INT64, 1);
    const value_id last = GRAD_ADD(c, "Sub", size, one);
    if (s->padding == REFLECTION) {
        const value_id x = grad_cast(c, at, s->dtype), n = grad_cast(c, size, s->dtype);
        const value_id low = number(c, s, s->align ? 0 : -0.5);
        const value_id span = s->align ? GRAD_ADD(c, "Sub", n, number(c, s, 1)) : n;
        const value_id half = GRAD_ADD(c, "Add", reflect(c, s, x, low, span), number(c, s, 0.5));
        at = floor_to_int(c, half);
    }
    return GRAD_ADD(c, "Max", GRAD_ADD(c, "Min", at, last), zero);
}

/* Returns the position in the image, in elements, of a coordinate of the grid. */
static value_id position_of(grad_node *c, const sampler *s, value_id g, value_id size)
{
    const value_id n = grad_cast(c, size, s->dtype), one = number(c, s, 1);
    const value_id last = GRAD_ADD(c, "Sub", n, one), half = number(c, s, 0.5);
    value_id x = GRAD_ADD(c, "Add", g, one);
    x = s->align ? GRAD_ADD(c, "Mul", x, last) : GRAD_ADD(c, "Sub", GRAD_ADD(c, "Mul", x, n), one);
    x = GRAD_ADD(c, "Mul", x, half);
    if (s->mode == NEAREST) x = GRAD_ADD(c, "Round", x);
    if (s->padding == BORDER)
        return GRAD_ADD(c, "Max", GRAD_ADD(c, "Min", x, last), number(c, s, 0));
    if (s->padding == REFLECTION)
        return s->align ? reflect(c, s, x, number(c, s, 0), last)
                        : reflect(c, s, x, number(c, s, -0.5), n);
    return x;
}

/* Returns the weight of a tap of a cubic convolution, by its distance d: below 1 or above. */
static value_id cubic_near(grad_node *c, const sampler *s, value_id d)
{
    const double a = -0.75;
    const value_id scaled =
        GRAD_ADD(c, "Sub", GRAD_ADD(c, "Mul", d, number(c, s, a + 2)), number(c, s, a + 3));
    return GRAD_ADD(c, "Add", GRAD_ADD(c, "Mul", scaled, GRAD_ADD(c, "Mul", d, d)),
                    number(c, s, 1));
}

static value_id cubic_far(grad_node *c, const sampler *s, value_id d)
{
    const double a = -0.75;
    value_id v = GRAD_ADD(c, "Sub", GRAD_ADD(c, "Mul", d, number(c, s, a)), number(c, s, 5 * a));
    v = GRAD_ADD(c, "Add", GRAD_ADD(c, "Mul", v, d), number(c, s, 8 * a));
    return GRAD_ADD(c, "Sub", GRAD_ADD(c, "Mul", v, d), number(c, s, 4 * a));
}

/* Sets the weights of the taps; f: how far the position is after the tap at or before it. */
static void set_weights(grad_node *c, const sampler *s, value_id f, taps *t)
{
    const value_id one = number(c, s, 1), e = GRAD_ADD(c, "Sub", one, f);
    if (s->mode == LINEAR) {
        t->weight[0] = e;
        t->weight[1] = f;
        return;
    }
    t->weight[0] = cubic_far(c, s, GRAD_ADD(c, "Add", f, one));
    t->weight[1] = cubic_near(c, s, f);
    t->weight[2] = cubic_near(c, s, e);
    t->weight[3] = cubic_far(c, s, GRAD_ADD(c, "Add", e, one));
}

/* Finds the taps of positions x, [M, 1], along an axis of this size, a scalar of int64. */
static void find_taps(grad_node *c, const sampler *s, value_id x, value_id size, taps *t)
{
    const value_id below = GRAD_ADD(c, "Floor", x);
    const int64_t first = s->mode == CUBIC ? -1 : 0;
    t->n = s->mode == NEAREST ? 1 : s->mode == LINEAR ? 2 : 4;
    t->weight[0] = VALUE_NONE;
    if (s->mode != NEAREST) set_weights(c, s, GRAD_ADD(c, "Sub", x, below), t);
    for (size_t i = 0; i < t->n; i++) {
        const value_id at = GRAD_ADD(c, "Add", grad_cast(c, below, CLG_INT64),
                                     grad_number_of(c, CLG_INT64, (double)(first + (int64_t)i)));
        t->at[i] = inside(c, s, at, size);
        if (s->padding != ZEROS) continue;
        const value_id exists = grad_cast(c, GRAD_ADD(c, "Equal", at, t->at[i]), s->dtype);
        t->weight[i] = t->weight[i] == VALUE_NONE || s->mode == NEAREST
                           ? exists
                           : GRAD_ADD(c, "Mul", t->weight[i], exists);
    }
}

/* ---- GridSample ------------------------------------------------------------------------------ */

static sampler read_sampler(const grad_node *c)
{
    const char *mode = node_string(&c->node, "mode", "linear"),
               *padding = node_string(&c->node, "padding_mode", "zeros");
    const clg_dtype dtype = grad_fact(c, grad_in(c, 1))->dtype;
    return (sampler){.dtype = dtype == CLG_FLOAT16 ? CLG_FLOAT32 : dtype,
                     .mode = strcmp(mode, "nearest") == 0 ? NEAREST
                             : strstr(mode, "cubic")      ? CUBIC
                                                          : LINEAR,
                     .padding = strcmp(padding, "border") == 0       ? BORDER
                                : strcmp(padding, "reflection") == 0 ? REFLECTION
                                                                     : ZEROS,
                     .align = node_int(&c->node, "align_corners", 0) != 0};
}

/* Returns the index of the image of each place, times the elements of an image: int64 [M, 1]. n,
 * each: lists of one, the images and the places of each. */
static value_id first_elements(grad_node *c, value_id n, value_id each, value_id plane)
{
    const int64_t one = 1, all[2] = {-1, 1};
    const value_id starts = GRAD_ADD(c, "Mul", grad_indices(c, n), plane);
    const value_id dims = grad_concat(c, 0, 2, (value_id[]){n, each});
    const value_id column = grad_unsqueeze(c, starts, 1, &one);
    return grad_reshape(c, GRAD_ADD(c, "Expand", column, dims), 2, all);
}

/* Returns the sum over all combinations of taps, from axis `axis` on, of elements of rows, [all
 * elements of all images, channels], times weights. at: elements, weight: NONE or the product, by
 * the axes before. */
static value_id combine(grad_node *c, const sampler *s, const taps *all, int axis, value_id rows,
                        value_id at, value_id weight, const value_id *strides)
{
    value_id sum = VALUE_NONE;
    if (axis == s->n_axes) {
        const int64_t last = 1;
        const value_id index = GRAD_ADD(c, "Squeeze", at, grad_list(c, 1, &last));
        const value_id v = GRAD_ADD(c, "Gather", rows, index);
        if (weight == VALUE_NONE) return v;
        const clg_dtype dtype = grad_fact(c, grad_out(c, 0))->dtype;
        return GRAD_ADD(c, "Mul", v, dtype == s->dtype ? weight : grad_cast(c, weight, dtype));
    }
    for (size_t i = 0; i < all[axis].n; i++) {
        const value_id w = all[axis].weight[i];
        const value_id by = weight == VALUE_NONE ? w
                            : w == VALUE_NONE    ? weight
                                                 : GRAD_ADD(c, "Mul", weight, w);
        const value_id to =
            GRAD_ADD(c, "Add", at, GRAD_ADD(c, "Mul", all[axis].at[i], strides[axis]));
        const value_id part = combine(c, s, all, axis + 1, rows, to, by, strides);
        sum = sum == VALUE_NONE ? part : GRAD_ADD(c, "Add", sum, part);
    }
    return sum;
}

/* Returns the size of x along an axis, as a scalar. */
static value_id size_of(grad_node *c, value_id x, int64_t axis)
{
    return GRAD_ADD(c, "Squeeze", grad_size_along(c, x, axis));
}

/* Returns the samples of images x, [n, channels, sizes...], as rows [M, channels]. at: positions
 * along each axis, [M, 1]; each: the places of an image, a list of one. */
static value_id sample_rows(grad_node *c, const sampler *s, value_id x, const value_id *at,
                            value_id each)
{
    taps all[MAX_AXES];
    value_id strides[MAX_AXES], plane = grad_number_of(c, CLG_INT64, 1);
    int64_t perm[MAX_AXES + 2] = {0};
    const int64_t front = 0;
    const value_id n = grad_size_along(c, x, 0);
    for (int i = s->n_axes; i-- > 0;) {
        const value_id size = size_of(c, x, 2 + i);
        find_taps(c, s, at[i], size, &all[i]);
        strides[i] = plane;
        plane = GRAD_ADD(c, "Mul", plane, size);
    }
    for (int i = 0; i < s->n_axes; i++) perm[1 + i] = 2 + i;
    perm[s->n_axes + 1] = 1;
    const value_id elements = GRAD_ADD(c, "Mul", n, grad_unsqueeze(c, plane, 1, &front));
    const value_id rows = grad_reshape_to(c, grad_permute(c, x, (size_t)s->n_axes + 2, perm), 2,
                                          (value_id[]){elements, grad_size_along(c, x, 1)});
    const value_id start = first_elements(c, n, each, plane);
    return combine(c, s, all, 0, rows, start, VALUE_NONE, strides);
}

value_id grad_interpolate(grad_node *c, value_id x, value_id down, value_id across, value_id each,
                          clg_dtype dtype)
{
    const sampler s = {.dtype = dtype, .mode = LINEAR, .padding = ZEROS, .n_axes = 2};
    return sample_rows(c, &s, x, (value_id[]){down, across}, each);
}

/* Returns rows [M, channels] as the output, [N, channels, places...]. */
static value_id as_output(grad_node *c, const sampler *s, value_id rows, value_id grid)
{
    value_id lists[MAX_AXES + 2];
    int64_t perm[MAX_AXES + 2] = {0, s->n_axes + 1};
    size_t n = 0;
    for (int i = 0; i <= s->n_axes; i++) lists[n++] = grad_size_along(c, grid, i);
    lists[n++] = grad_size_along(c, grad_in(c, 0), 1);
    for (int i = 0; i < s->n_axes; i++) perm[2 + i] = 1 + i;
    return grad_permute(c, grad_reshape_to(c, rows, n, lists), n, perm);
}

void grad_pass_grid_sample(grad_node *c)
{
    const size_t first = c->graph->n_nodes;
    const value_id x = grad_in(c, 0), grid = grad_in(c, 1);
    sampler s = read_sampler(c);
    value_id at[MAX_AXES];
    s.n_axes = grad_rank(c, 0) - 2;
    if (s.n_axes < 1 || s.n_axes > MAX_AXES || grad_rank(c, 1) != s.n_axes + 2) {
        grad_refuse(c, "its images have %d spatial axes, and 1 to 3 are supported", s.n_axes);
        return;
    }
    const value_id places = grad_reshape(c, grid, 2, (const int64_t[]){-1, s.n_axes});
    for (int i = 0; i < s.n_axes; i++) {
        const int64_t from = s.n_axes - 1 - i; /* the last axis is the first coordinate */
        value_id g = grad_slice(c, places, 1, from, from + 1, 1);
        if (grad_fact(c, grid)->dtype != s.dtype) g = grad_cast(c, g, s.dtype);
        at[i] = position_of(c, &s, g, size_of(c, x, 2 + i));
    }
    const value_id rows = sample_rows(c, &s, x, at, grad_size_of_axes(c, grid, 1, s.n_axes + 1));
    const value_id y = as_output(c, &s, rows, grid);
    grad_through(c, first, 1, &y);
}

/* ---- AffineGrid ------------------------------------------------------------------------------ */

/* The grid of an identity gives the places, as numbers from -1 to 1: y = places theta^T. */
void grad_pass_affine_grid(grad_node *c)
{
    const clg_dtype dtype = grad_fact(c, grad_out(c, 0))->dtype;
    const shape *y = &grad_fact(c, grad_out(c, 0))->dims;
    const int axes = y->rank - 2;
    if (axes != 2 && axes != 3) {
        grad_refuse(c, "its number of axes is not known");
        return;
    }
    /* the grid of one identity, [places, axes], and ones: the same for each of the batch */
    const int64_t square[2] = {axes, axes + 1}, front = 0, one = 1;
    const value_id eye = GRAD_ADD(c, "EyeLike", grad_fill(c, grad_list(c, 2, square), dtype, 0));
    const value_id rest = GRAD_ADD(c, "Slice", grad_in(c, 1), grad_list(c, 1, &one),
                                   grad_list(c, 1, &(int64_t){axes + 2}));
    const value_id sizes = grad_concat(c, 0, 2, (value_id[]){grad_list(c, 1, &one), rest});
    value_id places = GRAD_ADD(c, "AffineGrid", grad_unsqueeze(c, eye, 1, &front), sizes);
    places = grad_set_int(c, grad_of_opset(c, places, 20), "align_corners",
                          node_int(&c->node, "align_corners", 0));
    places = grad_reshape(c, places, 2, (const int64_t[]){-1, axes});
    const value_id n = grad_size_along(c, places, 0), dims[2] = {n, grad_list(c, 1, &one)};
    const value_id ones = grad_fill(c, grad_concat(c, 0, 2, dims), dtype, 1);
    const value_id all = grad_concat(c, 1, 2, (value_id[]){places, ones});
    const value_id lists[3] = {grad_size_along(c, grad_in(c, 0), 0), n,
                               grad_list(c, 1, &(int64_t){axes})};
    const value_id g = grad_reshape_to(c, grad_cotangent(c, 0), 3, lists);
    grad_give(c, 0, GRAD_ADD(c, "MatMul", grad_permute(c, g, 3, (int64_t[]){0, 2, 1}), all));
}

/* ---- RoiAlign -------------------------------------------------------------------------------- */

/* The bins of regions along an axis of the image. */
typedef struct bins {
    clg_dtype dtype;
    int64_t n, ratio;           /* bins, and samples of each */
    double scale, shift, least; /* least: extent of a region; 0: any */
} bins;

/* Returns the weight of each element of the axis in each bin: [regions, bins, size]. low, high:
 * columns of the regions' coordinates. */
static value_id bin_weights(grad_node *c, const bins *b, int64_t low, int64_t high, value_id size)
{
    const int64_t middle = 2, n_samples = b->n * b->ratio;
    const value_id rois = grad_in(c, 1);
    value_id ends[2];
    for (int i = 0; i < 2; i++) {
        const int64_t at = i ? high : low;
        const value_id v = GRAD_ADD(c, "Mul", grad_slice(c, rois, 1, at, at + 1, 1),
                                    grad_number_of(c, b->dtype, b->scale));
        ends[i] = GRAD_ADD(c, "Sub", v, grad_number_of(c, b->dtype, b->shift));
    }
    value_id extent = GRAD_ADD(c, "Sub", ends[1], ends[0]);
    if (b->least > 0) extent = GRAD_ADD(c, "Max", extent, grad_number_of(c, b->dtype, b->least));
    /* sample i of n is at (i + 1/2) / n of the extent */
    const value_id i = grad_cast(c, grad_indices(c, grad_list(c, 1, &n_samples)), b->dtype);
    const value_id part =
        GRAD_ADD(c, "Div", GRAD_ADD(c, "Add", i, grad_number_of(c, b->dtype, 0.5)),
                 grad_number_of(c, b->dtype, (double)n_samples));
    const value_id x = GRAD_ADD(c, "Add", ends[0], GRAD_ADD(c, "Mul", extent, part));
    const value_id n = grad_cast(c, GRAD_ADD(c, "Squeeze", size), b->dtype);
    const value_id last = GRAD_ADD(c, "Sub", n, grad_number_of(c, b->dtype, 1));
    const value_id counts =
        GRAD_ADD(c, "And", GRAD_ADD(c, "GreaterOrEqual", x, grad_number_of(c, b->dtype, -1)),
                 GRAD_ADD(c, "LessOrEqual", x, n));
    const value_id at =
        GRAD_ADD(c, "Max", GRAD_ADD(c, "Min", x, last), grad_number_of(c, b->dtype, 0));
    /* linear interpolation: 1 less the distance to an element, or 0 */
    const value_id h = grad_cast(c, grad_indices(c, size), b->dtype);
    const value_id away =
        GRAD_ADD(c, "Abs", GRAD_ADD(c, "Sub", grad_unsqueeze(c, at, 1, &middle), h));
    const value_id near =
        GRAD_ADD(c, "Relu", GRAD_ADD(c, "Sub", grad_number_of(c, b->dtype, 1), away));
    const value_id weights =
        GRAD_ADD(c, "Mul", near, grad_cast(c, grad_unsqueeze(c, counts, 1, &middle), b->dtype));
    /* means of the samples of each bin */
    const value_id apart =
        grad_reshape_to(c, weights, 4,
                        (value_id[]){grad_size_along(c, rois, 0), grad_list(c, 1, &b->n),
                                     grad_list(c, 1, &b->ratio), size});
    const value_id mean = grad_mean(c, apart, 1, &middle);
    return GRAD_ADD(c, "Squeeze", mean, grad_list(c, 1, &middle));
}

/* A bin is a weighted sum over the rows, then the columns of its image: products with two matrices
 * for each region. Regions have no gradient, as in PyTorch. */
void grad_pass_roi_align(grad_node *c)
{
    const size_t first = c->graph->n_nodes;
    const value_id x = grad_in(c, 0);
    const int64_t one = 1, swap[3] = {0, 2, 1};
    const char *transformation =
        node_string(&c->node, "coordinate_transformation_mode", "half_pixel");
    const bool half = c->node.opset >= 16 && strcmp(transformation, "half_pixel") == 0;
    bins b = {.dtype = grad_fact(c, x)->dtype,
              .n = node_int(&c->node, "output_height", 1),
              .ratio = node_int(&c->node, "sampling_ratio", 0),
              .scale = (double)node_float(&c->node, "spatial_scale", 1),
              .shift = half ? 0.5 : 0,
              .least = half ? 0 : 1};
    if (strcmp(node_string(&c->node, "mode", "avg"), "avg") != 0)
        grad_refuse(c, "mode other than avg has no rule");
    if (b.ratio < 1) grad_refuse(c, "sampling_ratio 0 has no rule");
    const value_id down = bin_weights(c, &b, 1, 3, grad_size_along(c, x, 2));
    b.n = node_int(&c->node, "output_width", 1);
    const value_id across = bin_weights(c, &b, 0, 2, grad_size_along(c, x, 3));
    const value_id images = GRAD_ADD(c, "Gather", x, grad_in(c, 2));
    const value_id rows = GRAD_ADD(c, "MatMul", grad_unsqueeze(c, down, 1, &one), images);
    const value_id columns = grad_unsqueeze(c, grad_permute(c, across, 3, swap), 1, &one);
    const value_id y = GRAD_ADD(c, "MatMul", rows, columns);
    grad_through(c, first, 1, &y);
    if (c->node.n_inputs > 1) c->given[1] = VALUE_NONE;
}
