/* SPDX-License-Identifier: Apache-2.0
 *
 * The self-test reference of Resize (opset 10 and later) and Upsample (7 and 9). Axes are resized
 * one after the other, each by scattering the input's elements to the outputs in whose filter they
 * are. Positions are quotients of numbers that are computed without rounding, so that the nearest
 * element is certain also where a position is in the middle between two.
 */
#include "session/selftest/references/selftest_math.h"
#include "session/selftest/selftest.h"

#include <math.h>
#include <string.h>

/* ---- attributes and inputs ------------------------------------------------------------------- */

/* What the outputs at an index of an axis are; a set. */
enum {
    OUTSIDE = 1,      /* the extrapolation value */
    UNDETERMINED = 2, /* any value: the position is rounded, and near a discontinuity */
    ROUNDED = 4       /* sums with weights that float32 may not represent */
};

/* An axis, whose scale is scale / divisor, exactly. */
typedef struct axis {
    int64_t in, out;
    double scale, divisor;
    double start, end;    /* of the region, relative to the axis */
    unsigned char *state; /* [out] */
} axis;

typedef struct resampling {
    const char *mode, *nearest, *coordinates; /* mode: nearest, linear or cubic */
    double reach;                             /* of the filter; 0 for nearest */
    double cubic_a;
    double slack; /* error of a weight, in units of the dtype's error bound */
    bool exclude_outside, antialias;
    int rank;
    axis axes[CLG_MAX_RANK];
} resampling;

/* Returns whether the node crops and extrapolates. */
static bool crops(const resampling *r) { return strcmp(r->coordinates, "tf_crop_and_resize") == 0; }

/* Reads the attributes. Nodes before opset 11 have only the mode. */
static void read_attributes(const lower_context *lc, resampling *r)
{
    const node *n = lc->node;
    const bool old = n->opset < 11;
    const clg_dtype dtype = lc->inputs[0].dtype;
    r->mode = node_string(n, "mode", "nearest");
    if (old && strcmp(r->mode, "nearest") != 0) r->mode = "linear"; /* bilinear, trilinear */
    r->nearest = node_string(n, "nearest_mode", old ? "floor" : "round_prefer_floor");
    r->coordinates =
        node_string(n, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
    r->exclude_outside = node_int(n, "exclude_outside", 0) != 0;
    r->antialias = node_int(n, "antialias", 0) != 0;
    r->cubic_a = (double)node_float(n, "cubic_coeff_a", -0.75f);
    r->reach = strcmp(r->mode, "nearest") == 0 ? 0 : strcmp(r->mode, "linear") == 0 ? 1 : 2;
    /* Weights are float32 also for float16. Their polynomials' terms are larger than they are. */
    r->slack = r->reach == 2 ? (1 + fabs(r->cubic_a)) / 2 : 0.125;
    if (dtype == CLG_FLOAT16) r->slack /= 32;
    if (dtype == CLG_FLOAT64 && crops(r)) r->slack = 16; /* positions may be rounded to 2^-40 */
}

/* Returns the number of elements of an input; 0 if it is absent. */
static int64_t count_of(const lower_context *lc, size_t input)
{
    return lower_has_input(lc, input) ? selftest_count(&lc->inputs[input].dims) : 0;
}

/* Sets the scales of the axes in the list to the ratios of sizes or, with a policy for the aspect
 * ratio, to the smallest or largest ratio. */
static void set_sizes(const node *n, const double *sizes, int64_t count, const int *list,
                      resampling *r)
{
    const char *policy = node_string(n, "keep_aspect_ratio_policy", "stretch");
    const bool smallest = strcmp(policy, "not_larger") == 0,
               largest = strcmp(policy, "not_smaller") == 0;
    int64_t best = -1;
    for (int64_t i = 0; i < count; i++) {
        axis *a = &r->axes[list[i]];
        a->scale = sizes[i];
        a->divisor = (double)a->in;
        const double ratio = a->scale / a->divisor;
        const double other =
            best < 0 ? ratio : r->axes[list[best]].scale / r->axes[list[best]].divisor;
        if (best < 0 || (smallest ? ratio < other : ratio > other)) best = i;
    }
    if (best < 0 || (!smallest && !largest)) return;
    const axis chosen = r->axes[list[best]];
    for (int64_t i = 0; i < count; i++) {
        r->axes[list[i]].scale = chosen.scale;
        r->axes[list[i]].divisor = chosen.divisor;
    }
}

/* Reads the axes, scales, sizes and region. Numbers are used as float32. */
static clg_status read_axes(const lower_context *lc, const double *const *in, resampling *r)
{
    const node *n = lc->node;
    const shape *x = &lc->inputs[0].dims, *y = &lc->outputs[0].dims;
    const size_t from = n->opset < 11 ? 1 : 2; /* input scales */
    const bool has_region = n->opset >= 11 && crops(r) && count_of(lc, 1) > 0,
               has_sizes = n->opset >= 11 && count_of(lc, 3) > 0;
    size_t n_axes, n_scales;
    int list[CLG_MAX_RANK];
    const int64_t *axes = node_ints(n, "axes", &n_axes);
    const float *scales = node_floats(n, "scales", &n_scales);
    const int64_t count = axes ? (int64_t)n_axes : x->rank;
    r->rank = x->rank;
    for (int i = 0; i < x->rank; i++) {
        axis *a = &r->axes[i];
        *a = (axis){.in = x->dims[i], .out = y->dims[i], .scale = 1, .divisor = 1, .end = 1};
        a->state = arena_alloc(lc->memory, (size_t)a->out + 1, 1);
        if (!a->state) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    for (int64_t i = 0; i < count; i++) {
        list[i] = axes ? (int)((axes[i] + x->rank) % x->rank) : (int)i;
        axis *a = &r->axes[list[i]];
        if (has_region) {
            a->start = (double)(float)in[1][i];
            a->end = (double)(float)in[1][count + i];
        }
        if (!has_sizes) a->scale = scales ? (double)scales[i] : (double)(float)in[from][i];
    }
    if (has_sizes) set_sizes(n, in[3], count, list, r);
    return CLG_OK;
}

/* Sets how the first version of Resize finds the nearest element: the next one above if axes are
 * shrunk, below if they are enlarged. Nodes that do both are not tested: the operator does not
 * specify it, and implementations differ. */
static clg_status choose_nearest(const node *n, resampling *r)
{
    bool shrinks = false, enlarges = false;
    if (n->opset >= 11 || r->reach > 0 || strcmp(n->op_type, "Resize") != 0) return CLG_OK;
    for (int i = 0; i < r->rank; i++) {
        shrinks = shrinks || r->axes[i].scale < 1;
        enlarges = enlarges || r->axes[i].scale > 1;
    }
    if (shrinks && enlarges)
        return error_set(CLG_ERROR_NOT_FOUND,
                         "Resize 10 that shrinks and enlarges has no reference");
    r->nearest = shrinks ? "ceil" : "floor";
    return CLG_OK;
}

/* ---- positions ------------------------------------------------------------------------------- */

/* A number, and whether it was computed without rounding. */
typedef struct exactly {
    double v;
    bool exact;
} exactly;

static exactly of(double v) { return (exactly){v, true}; }

static exactly times(exactly a, exactly b)
{
    const double v = a.v * b.v;
    return (exactly){v, a.exact && b.exact && fma(a.v, b.v, -v) == 0};
}

static exactly plus(exactly a, exactly b)
{
    const double v = a.v + b.v;
    return (exactly){v, a.exact && b.exact && v - a.v == b.v && v - b.v == a.v};
}

static exactly minus(exactly a, exactly b) { return plus(a, (exactly){-b.v, b.exact}); }

/* Returns a / b, which is rounded, but not across an integer or the middle between two if a and b
 * are exact and of moderate size. */
static exactly quotient(exactly a, exactly b) { return (exactly){a.v / b.v, a.exact && b.exact}; }

/* Returns the position in the input of output o for tf_crop_and_resize. */
static exactly crop_position(const axis *a, int64_t o)
{
    const exactly last = of((double)(a->in - 1)), start = of(a->start), end = of(a->end);
    const exactly length = times(of((double)a->in), of(a->scale)), divisor = of(a->divisor);
    if (length.v == a->divisor) return times(times(of(0.5), plus(start, end)), last);
    const exactly room = minus(length, divisor), region = minus(end, start);
    const exactly moved = times(times(of((double)o), divisor), times(region, last));
    return quotient(plus(times(times(start, last), room), moved), room);
}

/* Returns the position in the input of output o: the operator's formulas with the scale as
 * scale / divisor, reduced to one division. */
static exactly position(const resampling *r, const axis *a, int64_t o)
{
    const char *mode = r->coordinates;
    const exactly scale = of(a->scale), divisor = of(a->divisor), in = of((double)a->in),
                  out = of((double)a->out), twice = times(of(2), scale);
    const exactly length = times(in, scale); /* times the divisor: output length before rounding */
    const exactly middle = times(of((double)(2 * o + 1)), divisor);
    const bool one = length.v == a->divisor;
    if (crops(r)) return crop_position(a, o);
    if (strcmp(mode, "asymmetric") == 0) return quotient(times(of((double)o), divisor), scale);
    if (strcmp(mode, "tf_half_pixel_for_nn") == 0) return quotient(middle, twice);
    if (strcmp(mode, "align_corners") == 0) {
        const exactly moved = times(times(of((double)o), divisor), of((double)(a->in - 1)));
        return one ? of(0) : quotient(moved, minus(length, divisor));
    }
    if (strcmp(mode, "pytorch_half_pixel") == 0 && one) return of(0);
    exactly sum = minus(middle, scale);
    if (strcmp(mode, "half_pixel_symmetric") == 0)
        sum = plus(sum, minus(length, times(out, divisor)));
    return quotient(sum, twice);
}

/* Returns whether a position is so near to `to`, where the result changes, that rounding may decide
 * between both. */
static bool is_doubtful(exactly p, double to)
{
    return !p.exact && fabs(p.v - to) < 1e-9 * (1 + fabs(to));
}

/* Returns the nearest element, which may be outside; sets *out_doubtful if it may be another. */
static int64_t nearest(const resampling *r, exactly p, bool *out_doubtful)
{
    const bool rounds = strncmp(r->nearest, "round", 5) == 0;
    const double offset = rounds ? 0.5 : 0;
    *out_doubtful = is_doubtful(p, round(p.v - offset) + offset);
    if (strcmp(r->nearest, "floor") == 0) return (int64_t)floor(p.v);
    if (strcmp(r->nearest, "ceil") == 0) return (int64_t)ceil(p.v);
    if (strcmp(r->nearest, "round_prefer_floor") == 0) return (int64_t)ceil(p.v - 0.5);
    return (int64_t)floor(p.v + 0.5);
}

/* Returns whether an axis changes. */
static bool is_resized(const resampling *r, const axis *a)
{
    for (int64_t o = 0; o < a->out; o++)
        if (position(r, a, o).v != (double)o) return true;
    return a->in != a->out;
}

/* Interpolated integers are tested where kernels resize all axes at once: adjacent ones, three at
 * most. Else they are truncated in between, which the operator does not specify. */
static clg_status check_integers(const lower_context *lc, const resampling *r)
{
    int first = r->rank, end = 0;
    if (dtype_is_float(lc->inputs[0].dtype) || r->reach == 0) return CLG_OK;
    for (int i = 0; i < r->rank; i++) {
        if (!is_resized(r, &r->axes[i])) continue;
        first = first < i ? first : i;
        end = i + 1;
    }
    for (int i = first; i < end; i++)
        if (end - first > 3 || !is_resized(r, &r->axes[i]))
            return error_set(CLG_ERROR_NOT_FOUND,
                             "Resize of integers along separate axes has no reference");
    return CLG_OK;
}

/* ---- one axis -------------------------------------------------------------------------------- */

/* A tensor [outer, axis, inner] in which an axis is resized: elements and their error scales. */
typedef struct lines {
    int64_t outer, inner;
    const double *x, *x_scale;
    double *y, *y_scale;
} lines;

/* Returns the filter's weight at distance t. */
static double weight_at(const resampling *r, double t)
{
    const double d = fabs(t), a = r->cubic_a;
    if (r->reach == 1) return d < 1 ? 1 - d : 0;
    if (d < 1) return (1 - d) * (1 + d - (a + 2) * d * d);
    return d < 2 ? a * (d - 1) * (d - 2) * (d - 2) : 0;
}

/* Adds input element `tap` of the axis, or the nearest one inside, to output o with a weight. */
static void add_tap(const lines *l, const axis *a, int64_t tap, int64_t o, double weight,
                    double slack)
{
    const int64_t from = tap < 0 ? 0 : tap < a->in ? tap : a->in - 1;
    for (int64_t i = 0; i < l->outer; i++)
        for (int64_t k = 0; k < l->inner; k++) {
            const int64_t at = (i * a->in + from) * l->inner + k,
                          to = (i * a->out + o) * l->inner + k;
            l->y[to] += weight * l->x[at];
            l->y_scale[to] += (fabs(weight) + slack) * l->x_scale[at];
        }
}

/* Divides output o of the axis by a number. */
static void divide(const lines *l, const axis *a, int64_t o, double by)
{
    for (int64_t i = 0; i < l->outer * l->inner; i++) {
        const int64_t at = (i / l->inner * a->out + o) * l->inner + i % l->inner;
        l->y[at] /= by;
        l->y_scale[at] /= fabs(by);
    }
}

static bool is_coarse(double weight) { return weight * 64 == floor(weight * 64); }

/* Computes output o of an axis, at position p, as a weighted sum. */
static void filter(const resampling *r, const lines *l, axis *a, int64_t o, double p)
{
    const double ratio = a->scale / a->divisor;
    const bool wide = r->antialias && ratio < 1;
    const double shrink = wide ? (double)(float)ratio : 1, reach = r->reach / shrink;
    double total = 0;
    bool coarse = true;
    if (!wide && p == floor(p)) { /* at an element: the other weights are 0 */
        add_tap(l, a, (int64_t)p, o, 1, 0);
        if (r->exclude_outside && (p < 0 || p > (double)(a->in - 1))) a->state[o] |= UNDETERMINED;
        return;
    }
    for (int64_t tap = (int64_t)floor(p - reach); tap <= (int64_t)ceil(p + reach); tap++) {
        const double distance = ((double)tap - p) * shrink, weight = weight_at(r, distance);
        if (fabs(distance) >= r->reach) continue;
        if (r->exclude_outside && (tap < 0 || tap >= a->in)) continue;
        add_tap(l, a, tap, o, weight, r->slack);
        total += weight;
        coarse = coarse && is_coarse(weight);
    }
    const bool normalise = wide || r->exclude_outside;
    if (normalise && fabs(total) < 1e-3)
        a->state[o] |= UNDETERMINED;
    else if (normalise)
        divide(l, a, o, total);
    if (!coarse || (normalise && total != 1)) a->state[o] |= ROUNDED;
}

/* Resizes one axis. */
static void resize_axis(const resampling *r, const lines *l, axis *a)
{
    const double last = (double)(a->in - 1);
    for (int64_t o = 0; o < a->out; o++) {
        const exactly p = position(r, a, o);
        bool doubtful = false;
        if (crops(r) && (p.v < 0 || p.v > last)) a->state[o] |= OUTSIDE;
        if (crops(r) && (is_doubtful(p, 0) || is_doubtful(p, last))) a->state[o] |= UNDETERMINED;
        if (a->state[o] & OUTSIDE) continue;
        if (r->reach > 0) {
            filter(r, l, a, o, p.v);
            continue;
        }
        add_tap(l, a, nearest(r, p, &doubtful), o, 1, 0);
        if (doubtful) a->state[o] |= UNDETERMINED;
    }
}

/* ---- all axes -------------------------------------------------------------------------------- */

/* Returns the union of the states of an output element's indices. */
static unsigned state_of(const resampling *r, int64_t at)
{
    unsigned state = 0;
    for (int i = r->rank - 1; i >= 0 && r->axes[i].out > 0; i--) {
        state |= r->axes[i].state[at % r->axes[i].out];
        at /= r->axes[i].out;
    }
    return state;
}

/* Converts *y to an integer dtype: truncates, and limits it to the range of narrow ones, which can
 * be interpolated. Returns whether rounding may change the result. */
static bool truncate(clg_dtype dtype, unsigned state, double *y)
{
    const double bits = 8 * (double)dtype_size(dtype);
    const bool is_signed = dtype_find(dtype)->kind == DTYPE_KIND_SIGNED;
    const double high = is_signed ? exp2(bits - 1) - 1 : exp2(bits) - 1,
                 low = is_signed ? -exp2(bits - 1) : 0, exact = *y;
    *y = fmin(high, fmax(low, trunc(exact)));
    return (state & ROUNDED) && fabs(exact - round(exact)) < 1e-4 && fabs(exact) > 0.5 &&
           exact > low;
}

/* Sets what is the same whatever the mode: extrapolated, undetermined and integer elements. */
static void finish(const lower_context *lc, const resampling *r, const selftest_expected *out)
{
    const clg_dtype dtype = lc->outputs[0].dtype;
    const bool is_integer = !dtype_is_float(dtype);
    const double beyond = (double)node_float(lc->node, "extrapolation_value", 0);
    for (int64_t i = 0; i < selftest_count(&lc->outputs[0].dims); i++) {
        const unsigned state = state_of(r, i);
        bool determined = !(state & UNDETERMINED);
        if (state & OUTSIDE) {
            out->y[i] = beyond;
            out->scale[i] = fabs(beyond);
            determined = determined && (!is_integer || beyond == 0 ||
                                        (dtype != CLG_BOOL && beyond > 0 && beyond < 128));
        }
        if (is_integer && r->reach > 0 && truncate(dtype, state, &out->y[i])) determined = false;
        if (is_integer && (state & OUTSIDE)) out->y[i] = trunc(out->y[i]);
        if (!determined) out->scale[i] = NAN;
    }
}

/* Resizes all axes, of x with the error scales x_scale. */
static clg_status resize_all(const lower_context *lc, resampling *r, const double *x,
                             const double *x_scale, const selftest_expected *out)
{
    lines l = {.outer = 1, .x = x, .x_scale = x_scale};
    for (int i = 0; i < r->rank; i++) {
        axis *a = &r->axes[i];
        l.inner = 1;
        for (int k = i + 1; k < r->rank; k++) l.inner *= r->axes[k].in;
        const size_t n = (size_t)(l.outer * a->out * l.inner) + 1;
        l.y = i == r->rank - 1 ? out->y : arena_alloc(lc->memory, n, sizeof(double));
        l.y_scale = i == r->rank - 1 ? out->scale : arena_alloc(lc->memory, n, sizeof(double));
        if (!l.y || !l.y_scale) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        resize_axis(r, &l, a);
        l.x = l.y;
        l.x_scale = l.y_scale;
        l.outer *= a->out;
    }
    return CLG_OK;
}

clg_status selftest_resample(const lower_context *lc, const double *const *in,
                             const selftest_expected *out)
{
    resampling r = {.rank = 0};
    const int64_t n = selftest_count(&lc->inputs[0].dims);
    if (selftest_count(&lc->outputs[0].dims) == 0) return CLG_OK;
    read_attributes(lc, &r);
    CLG_TRY(read_axes(lc, in, &r));
    CLG_TRY(choose_nearest(lc->node, &r));
    CLG_TRY(check_integers(lc, &r));
    if (r.rank == 0) {
        out[0].y[0] = in[0][0];
        return CLG_OK;
    }
    double *x_scale = arena_alloc(lc->memory, (size_t)n + 1, sizeof(double));
    if (!x_scale) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int64_t i = 0; i < n; i++) x_scale[i] = fabs(in[0][i]);
    CLG_TRY(resize_all(lc, &r, in[0], x_scale, &out[0]));
    finish(lc, &r, &out[0]);
    return CLG_OK;
}
