/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes small self-test problems of the kind of a node being planned, whose sizes for GEMMs and
 * convolutions, float or quantised, are below. Lowering chooses kernels and tiles by sizes, so
 * several sizes are offered, each with remainders in every dimension; the caller uses the first
 * that is lowered to the node's own programs. First come sizes that may exceed the node's own,
 * since those may be tiny and only the first of many; then sizes limited by the node's own.
 */
#include "session/selftest/references/selftest_math.h"
#include "session/selftest/selftest.h"

#include "tensor/tensor.h"

#include "ops/conv/conv_blocked.h"
#include "ops/conv/conv_grad.h"
#include "ops/conv/conv_transpose.h"
#include "ops/lowering/work.h"

#include <math.h>
#include <string.h>

/* Sizes of a test problem: a matrix product [m,k] x [k,n]; or a convolution with m output channels
 * of rows x columns pixels, each a sum of about k terms. */
typedef struct small_size {
    int64_t m, n, k, rows, columns;
    int64_t repeats; /* batches, and outputs along the depth of a 3-D convolution */
    bool within;     /* limit each dimension to the node's own */
} small_size;

static const small_size sizes[] = {
    {37, 45, 277, 11, 19, 2, false},      {5, 45, 277, 3, 5, 2, false}, /* few rows, few pixels */
    {95, 13, 259, 7, 7, 2, false},        /* narrow; a convolution that is transposed */
    {95, 3, 259, 1, 3, 2, false},         /* narrower than a vector of 4 lanes */
    {95, 13, 259, 1, 1, 2, false},        /* a feature map of one pixel */
    {37, 1029, 23, 33, 35, 2, false},     /* many columns */
    {1027, 1029, 19, 33, 35, 2, false},   /* large tiles */
    {2053, 2053, 2053, 47, 47, 2, false}, /* only used with `within`: mostly the node's sizes */
};
enum { N_SIZES = sizeof sizes / sizeof *sizes, N_CUBES = 4, MAX_SIZES = 2 * N_SIZES + N_CUBES };

/* Lists sizes for CLBlast's GEMM, which chooses kernels by m n k: cubes, which have the fewest
 * elements for a given m n k. Returns their number. */
static size_t list_cubes(const candidate *impl, small_size *out)
{
    const step *s = impl->steps;
    while (s && s->kind != STEP_BLAS_GEMM) s = s->next;
    if (!s || selftest_size_class(&s->gemm) == 0) return 0;
    const double own = (double)s->gemm.m * (double)s->gemm.n * (double)s->gemm.k;
    const double volume = fmin(own, SELFTEST_MAX_VOLUME);
    const int64_t side = (int64_t)cbrt(volume) | 1;
    const int64_t k = (int64_t)(volume / (double)(side * side));
    for (int i = 0; i < N_CUBES; i++)
        out[i] = (small_size){side, side, k + i % 2, 1, side, 2 - i / 2, false};
    return N_CUBES;
}

/* Lists the sizes to try, in order; returns their number. */
static size_t list_sizes(const candidate *impl, small_size out[MAX_SIZES])
{
    size_t n = N_SIZES - 1;
    memcpy(out, sizes, n * sizeof *out);
    n += list_cubes(impl, out + n);
    for (size_t i = 0; i < N_SIZES; i++, n++) {
        out[n] = sizes[i];
        out[n].within = true;
    }
    return n;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Returns the wanted size of a dimension, at most the node's own if to->within. */
static int64_t side_of(const small_size *to, int64_t own, int64_t wanted)
{
    return to->within ? work_min(own, wanted) : wanted;
}

/* Returns the new size of a dimension that is either `side` of the node, which becomes `small`, or
 * 1 (broadcast). */
static int64_t swapped(int64_t dim, int64_t side, int64_t small)
{
    return dim == side && dim != 1 ? small : dim;
}

/* Sets the operands' shapes of a smaller Gemm or MatMul. */
static bool shrink_gemm(const lower_context *lc, const small_size *to, shape dims[])
{
    const shape *a = &lc->inputs[0].dims, *b = &lc->inputs[1].dims, *y = &lc->outputs[0].dims;
    if (a->rank < 2 || b->rank < 2 || y->rank < 2) return false;
    const bool trans_a = node_int(lc->node, "transA", 0) != 0,
               trans_b = node_int(lc->node, "transB", 0) != 0;
    const int64_t m = y->dims[y->rank - 2], n = y->dims[y->rank - 1];
    const int64_t k = a->dims[trans_a ? a->rank - 2 : a->rank - 1];
    const int64_t small_m = side_of(to, m, to->m), small_n = side_of(to, n, to->n),
                  small_k = side_of(to, k, to->k);
    for (size_t i = 0; i < lc->n_inputs; i++) {
        shape *s = &dims[i];
        for (int d = 0; d < s->rank - 2; d++) s->dims[d] = work_min(s->dims[d], to->repeats);
        const bool trans = i == 0 ? trans_a : i == 1 && trans_b;
        const int64_t down = i == 1 ? small_k : small_m, across = i == 0 ? small_k : small_n;
        if (i != 2 && s->rank > 1) {
            s->dims[s->rank - 2] = trans ? across : down;
            s->dims[s->rank - 1] = trans ? down : across;
        } else {
            if (s->rank > 0) s->dims[s->rank - 1] = swapped(s->dims[s->rank - 1], n, small_n);
            if (s->rank > 1) s->dims[s->rank - 2] = swapped(s->dims[s->rank - 2], m, small_m);
        }
    }
    return true;
}

/* Returns the input length along an axis that gives this many outputs. */
static int64_t length_for(const window_axis *a, int64_t outputs)
{
    const int64_t length = window_seen(a, outputs) - a->pad_begin - a->pad_end;
    return length < 1 ? 1 : length;
}

/* Sets the shapes of x and w of a smaller convolution. */
static bool shrink_sides(const lower_context *lc, const small_size *to, shape *x, shape *w)
{
    const int64_t groups = node_int(lc->node, "group", 1), few = 5;
    window_desc win;
    int64_t n_taps = 1;
    if (window_read(lc->node, x, w, &win) != CLG_OK) return false;
    for (int i = 0; i < win.n_axes; i++) {
        const int from_last = win.n_axes - 1 - i;
        const int64_t outputs = from_last == 0   ? to->columns
                                : from_last == 1 ? to->rows
                                                 : to->repeats;
        x->dims[2 + i] = side_of(to, win.axes[i].in, length_for(&win.axes[i], outputs));
        n_taps *= win.axes[i].kernel;
    }
    const int64_t ic = side_of(to, w->dims[1], groups > 4 ? few : (to->k + n_taps - 1) / n_taps);
    const int64_t oc = side_of(to, w->dims[0] / groups, groups > 4 ? few : to->m);
    x->dims[0] = work_min(x->dims[0], to->repeats);
    x->dims[1] = groups * ic;
    w->dims[0] = groups * oc;
    w->dims[1] = ic;
    return true;
}

/* As shrink_sides, with bias and residual. */
static bool shrink_conv(const lower_context *lc, const small_size *to, shape dims[])
{
    window_desc win;
    if (!shrink_sides(lc, to, &dims[0], &dims[1])) return false;
    const int64_t channels = dims[1].dims[0];
    if (lower_has_input(lc, 2)) dims[2].dims[0] = channels;
    if (lower_has_input(lc, 3)) {
        if (window_read(lc->node, &dims[0], &dims[1], &win) != CLG_OK) return false;
        window_shape(&win, dims[0].dims[0], channels, &dims[3]);
    }
    return true;
}

/* Sets the shapes of a smaller BlockedConv, in whole blocks of channels. */
static bool shrink_blocked(const lower_context *lc, const small_size *to, shape dims[])
{
    window_desc win;
    const shape x = dims[0];
    const int64_t lanes = lc->outputs[0].dims.dims[4];
    const int64_t groups = node_int(lc->node, "group", 1);
    shape *w = &dims[1];
    dims[0] = conv_blocked_flat(&x);
    if (!shrink_sides(lc, to, &dims[0], w)) return false;
    const bool expanded = lower_has_input(lc, BLOCKED_EXPAND_WEIGHT);
    if (groups > 1) { /* depthwise: one channel per group */
        w->dims[0] = dims[0].dims[1] = groups;
        w->dims[1] = 1;
    } else {
        w->dims[0] = work_ceil_div(w->dims[0], lanes) * lanes;
    }
    if (x.rank == 5 && groups == 1)
        dims[0].dims[1] = w->dims[1] = work_ceil_div(w->dims[1], lanes) * lanes;
    if (lower_has_input(lc, 2)) dims[2].dims[0] = w->dims[0];
    if (lower_has_input(lc, 3)) {
        if (window_read(lc->node, &dims[0], w, &win) != CLG_OK) return false;
        window_shape(&win, dims[0].dims[0], w->dims[0], &dims[3]);
        dims[3] = conv_blocked_shape(&dims[3], lanes);
    }
    if (expanded) { /* input channels of the 1x1 convolution before it */
        shape *points = &dims[BLOCKED_EXPAND_WEIGHT];
        points->dims[1] = work_ceil_div(side_of(to, points->dims[1], to->k), lanes) * lanes;
        dims[0].dims[1] = points->dims[1];
    }
    if (x.rank == 5) dims[0] = conv_blocked_shape(&dims[0], lanes);
    for (size_t i = BLOCKED_SCALE; i <= BLOCKED_SHIFT && lower_has_input(lc, i); i++)
        dims[i].dims[0] = dims[0].dims[1];
    return true;
}

/* Sets the shape of a smaller input that is a scalar or has one element for each of `from` rows,
 * columns or channels, of which there are `to` now. Returns false for other inputs. */
static bool shrink_list(const lower_context *lc, shape dims[], size_t input, int64_t from,
                        int64_t to)
{
    if (!lower_has_input(lc, input) || selftest_count(&dims[input]) == 1) return true;
    if (dims[input].rank != 1 || dims[input].dims[0] != from) return false;
    dims[input].dims[0] = to;
    return true;
}

/* Sets the shapes of a smaller quantised product or convolution. */
static bool shrink_quantized(const lower_context *lc, const small_size *to, shape dims[])
{
    const selftest_roles *r = selftest_quantized_roles(lc->node);
    shape *x = &dims[r->x], *w = &dims[r->w];
    if (x->rank < 2 || w->rank < 2) return false;
    const int64_t rows = x->dims[x->rank - 2], columns = w->dims[r->is_conv ? 0 : w->rank - 1];
    if (r->is_conv) {
        if (!shrink_sides(lc, to, x, w)) return false;
    } else {
        for (int d = 0; d < x->rank - 2; d++) x->dims[d] = work_min(x->dims[d], to->repeats);
        for (int d = 0; d < w->rank - 2; d++) w->dims[d] = work_min(w->dims[d], to->repeats);
        w->dims[w->rank - 2] = side_of(to, x->dims[x->rank - 1], to->k);
        x->dims[x->rank - 1] = w->dims[w->rank - 2];
        x->dims[x->rank - 2] = side_of(to, rows, to->m);
        w->dims[w->rank - 1] = side_of(to, columns, to->n);
        if (!shrink_list(lc, dims, r->x_zero, rows, x->dims[x->rank - 2]) ||
            !shrink_list(lc, dims, r->x_scale, rows, x->dims[x->rank - 2]))
            return false;
    }
    const int64_t now = w->dims[r->is_conv ? 0 : w->rank - 1];
    if (lower_has_input(lc, r->bias)) dims[r->bias].dims[0] = now;
    return shrink_list(lc, dims, r->w_zero, columns, now) &&
           shrink_list(lc, dims, r->w_scale, columns, now);
}

/* ---- gradients of convolutions --------------------------------------------------------------- */

/* Sets the shapes of x, w and y of a smaller convolution, of which it is a gradient. */
static bool shrink_forward(const lower_context *lc, const small_size *to, shape *x, shape *w,
                           shape *y)
{
    const conv_grad_op *op = lc->row->param;
    window_desc win;
    if (!op->is_transposed) {
        if (!shrink_sides(lc, to, x, w) || window_read(lc->node, x, w, &win) != CLG_OK)
            return false;
        window_shape(&win, x->dims[0], w->dims[0], y);
        return true;
    }
    const int64_t groups = node_int(lc->node, "group", 1);
    int64_t n_taps = 1;
    for (int d = 2; d < x->rank; d++) {
        const int from_last = x->rank - 1 - d;
        x->dims[d] = side_of(to, x->dims[d],
                             from_last == 0   ? to->columns
                             : from_last == 1 ? to->rows
                                              : to->repeats);
        n_taps *= w->dims[d];
    }
    const int64_t per_group = w->dims[0] / groups, few = 5;
    w->dims[0] = groups * side_of(to, per_group, groups > 4 ? few : to->m);
    w->dims[1] = side_of(to, w->dims[1], groups > 4 ? few : (to->k + n_taps - 1) / n_taps);
    x->dims[0] = work_min(x->dims[0], to->repeats);
    x->dims[1] = w->dims[0];
    if (conv_transpose_read(lc->node, x, w, &win) != CLG_OK) return false;
    window_shape(&win, x->dims[0], groups * w->dims[1], y);
    for (int i = 0; i < win.n_axes; i++) y->dims[2 + i] = win.axes[i].out;
    return true;
}

/* Makes an input the constant that lists these dimensions. */
static clg_status list_dims(selftest_problem *p, size_t input, const shape *dims)
{
    int64_t *elements = arena_alloc(&p->memory, CLG_MAX_RANK, sizeof *elements);
    tensor *t = arena_alloc(&p->memory, 1, sizeof *t);
    if (!elements || !t) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const size_t n = (size_t)dims->rank;
    memcpy(elements, dims->dims, n * sizeof *elements);
    *t = (tensor){.dtype = CLG_INT64,
                  .dims = {.rank = 1, .dims = {dims->rank}},
                  .n_elements = dims->rank,
                  .data = elements,
                  .size_bytes = n * sizeof *elements};
    refcount_init(&t->refs); /* the arena owns it */
    p->inputs[input].known = t;
    return CLG_OK;
}

/* Returns the number of matrix products of a gradient, each of some images. */
static int64_t count_products(const candidate *impl)
{
    int64_t n = 0;
    for (const step *s = impl->steps; s; s = s->next)
        n += s->kind == STEP_KERNEL &&
             (strcmp(s->kernel.source, "im2col") == 0 || strcmp(s->kernel.source, "col2im") == 0);
    return n;
}

/* Returns the images of one product in the test of a node with several: one, or several. */
static int64_t images_together(const lower_context *lc, int64_t n_products)
{
    return lc->inputs[0].dims.dims[0] > n_products ? 2 : 1;
}

/* Sets the shapes of the inputs and the result of a smaller gradient of a convolution. Returns
 * false after the last attempt, or where there is none. */
static bool shrink_conv_grad(const lower_context *lc, const candidate *impl, size_t attempt,
                             shape dims[], shape *result)
{
    const conv_grad_op *op = lc->row->param;
    const conv_grad_roles r = conv_grad_roles_of(lc->row, &dims[0], &dims[1], &lc->outputs[0].dims);
    const int64_t n_products = count_products(impl);
    shape x = *r.x, w = *r.w, y = *r.g;
    small_size list[MAX_SIZES];
    if (attempt >= list_sizes(impl, list)) return false;
    if (n_products > 1) list[attempt].repeats = n_products * images_together(lc, n_products);
    if (!shrink_forward(lc, &list[attempt], &x, &w, &y)) return false;
    dims[0] = op->is_filter ? x : y;
    dims[1] = op->is_filter ? y : w;
    *result = op->is_filter ? w : x;
    return true;
}

/* Sets what a gradient of a convolution has besides shapes: the list that is input 2, and images of
 * one product where the node has several. */
static clg_status complete_conv_grad(const lower_context *lc, const candidate *impl,
                                     const shape *result, selftest_problem *p)
{
    const size_t n = p->node.n_attributes;
    const int64_t n_products = count_products(impl);
    CLG_TRY(list_dims(p, 2, result));
    if (n_products <= 1) return CLG_OK;
    graph_attribute *own = arena_alloc(&p->memory, n + 1, sizeof *own);
    if (!own) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    memcpy(own, p->node.attributes, n * sizeof *own);
    own[n] = (graph_attribute){.name = "together", .type = ATTRIBUTE_INT};
    own[n].as.i = images_together(lc, n_products);
    p->node.attributes = own;
    p->node.n_attributes = n + 1;
    return CLG_OK;
}

/* Returns a distance between lines in memory like `gap`, but not a large one. */
static int64_t small_gap(int64_t gap)
{
    enum { SMALL = 64, REMAINDER = 16 };
    return gap < SMALL ? gap : SMALL + gap % REMAINDER;
}

/* Sets strides like those of `like`: a transposed operand stays transposed, one that is part of
 * another stays one, with gaps between its lines. */
static void set_strides(const lower_operand *like, lower_operand *o)
{
    bool done[CLG_MAX_RANK] = {false};
    int64_t end = 0, like_end = 0; /* the least stride without a gap */
    shape_strides(&o->dims, o->strides);
    for (int n_done = 0; !o->dense && n_done < o->dims.rank; n_done++) {
        int next = -1;
        for (int d = o->dims.rank - 1; d >= 0; d--)
            if (!done[d] && (next < 0 || like->strides[d] < like->strides[next])) next = d;
        done[next] = true;
        const int64_t stride = like->strides[next];
        o->strides[next] = stride <= 0 ? stride : end + small_gap(stride - like_end);
        if (stride <= 0) continue;
        end = o->strides[next] * o->dims.dims[next];
        like_end = stride * like->dims.dims[next];
    }
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* Replacements for attributes that kernels take as arguments: the program does not depend on their
 * values, and the model's could be extreme. */
static const struct {
    const char *name;
    float value;
} numbers[] = {{"alpha", 0.5f}, {"beta", 2}, {"activation_alpha", -0.5f}, {"activation_beta", 1}};
static const float params[] = {-0.5f, 1};

/* Replaces an attribute's value by a moderate one. A coefficient of zero stays, since its term is
 * absent from the kernels. */
static void fix_number(graph_attribute *a)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(a->name, numbers[i].name) == 0 && a->type == ATTRIBUTE_FLOAT && a->as.f != 0)
            a->as.f = numbers[i].value;
    if (strcmp(a->name, "activation_params") == 0 && a->type == ATTRIBUTE_FLOATS) {
        a->count = a->count < 2 ? a->count : 2;
        a->as.floats = params;
    }
}

static clg_status fix_numbers(selftest_problem *p)
{
    const size_t n = p->node.n_attributes;
    graph_attribute *own = arena_alloc(&p->memory, n + 1, sizeof *own);
    if (!own) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n; i++) {
        own[i] = p->node.attributes[i];
        fix_number(&own[i]);
    }
    p->node.attributes = own;
    return CLG_OK;
}

/* ---- the problem ----------------------------------------------------------------------------- */

/* Sets the shapes of a smaller GEMM or convolution, that of a vector as of other operators. Returns
 * false after the last attempt. */
static bool shrink_product(const lower_context *lc, const candidate *impl, size_t attempt,
                           shape dims[])
{
    small_size list[MAX_SIZES];
    if (dims[0].rank < 2 || dims[1].rank < 2) return selftest_shrink(lc, attempt, dims);
    if (attempt >= list_sizes(impl, list)) return false;
    return (selftest_quantized_roles(lc->node)              ? shrink_quantized
            : strcmp(lc->node->op_type, "BlockedConv") == 0 ? shrink_blocked
            : strstr(lc->node->op_type, "Conv") != NULL     ? shrink_conv
                                                        : shrink_gemm)(lc, &list[attempt], dims);
}

/* Returns whether lowering may see these elements of a floating-point input: few, as the bounds of
 * a Clip are, and moderate, since results of extreme ones would say nothing about the kernel. */
static bool are_usable(const tensor *known)
{
    enum { FEW = 16 };
    for (int64_t i = 0; i < known->n_elements && i < FEW; i++) {
        const double size = fabs(tensor_get_float(known, i));
        if (!(size <= 1e4) || (size > 0 && size < 1e-4)) return false;
    }
    return known->n_elements <= FEW;
}

/* Takes over an operand, with other dims. */
static void take_operand(const lower_operand *from, const shape *dims, bool knows,
                         lower_operand *to)
{
    *to = *from;
    to->dims = *dims;
    if (from->dtype == CLG_DTYPE_NONE) return;
    if (from->known && (!knows || !shape_equal(&from->dims, dims) ||
                        (dtype_is_float(from->dtype) && !are_usable(from->known))))
        to->known = NULL;
    set_strides(from, to);
}

/* Returns whether lowering may see the elements of inputs. Indices are only in range of the sizes
 * for which they were given. */
static bool may_know(const lower_context *lc, const selftest_op *op, const shape dims[])
{
    for (size_t i = 0; i < lc->n_inputs && op->contents == selftest_index_contents; i++)
        if (!shape_equal(&lc->inputs[i].dims, &dims[i])) return false;
    return true;
}

static const node copy_node = {.name = "",
                               .label = "Copy",
                               .domain = "clgraph",
                               .op_type = "Copy",
                               .opset = 1,
                               .n_outputs = 1};

/* Sets p's node to that of lc, or to a Copy where the planner copies a tensor. */
static void take_node(const lower_context *lc, selftest_problem *p)
{
    if (lc->node) {
        p->node = *lc->node;
        return;
    }
    p->values[SELFTEST_MAX_INPUTS] = SELFTEST_MAX_INPUTS;
    p->node = copy_node;
    p->node.inputs = p->values;
    p->node.outputs = &p->values[SELFTEST_MAX_INPUTS];
    p->node.n_inputs = 1;
    p->node.op = ops_find("clgraph", "Copy", 1);
}

clg_status selftest_small(const lower_context *lc, const candidate *impl, size_t attempt,
                          selftest_problem *out_problem, bool *out_made)
{
    selftest_problem *p = out_problem;
    const selftest_op *op = selftest_find(lc->node);
    const bool is_product = lc->node && selftest_gemm_reference(lc->node);
    const bool is_conv_grad = op && op->reference == selftest_conv_grad;
    shape dims[SELFTEST_MAX_INPUTS] = {{0}}, result = {0};
    *p = (selftest_problem){0};
    *out_made = false;
    if (!op || lc->n_inputs > SELFTEST_MAX_INPUTS || lc->n_outputs > SELFTEST_MAX_OUTPUTS ||
        (lc->node && lc->node->op != lc->row)) /* a stage */
        return CLG_OK;
    take_node(lc, p);
    selftest_set_op(p, op);
    for (size_t i = 0; i < lc->n_inputs; i++) dims[i] = lc->inputs[i].dims;
    if (!(is_product     ? shrink_product(lc, impl, attempt, dims)
          : is_conv_grad ? shrink_conv_grad(lc, impl, attempt, dims, &result)
                         : selftest_shrink(lc, attempt, dims)))
        return CLG_OK;
    const bool knows = !is_product && may_know(lc, op, dims);
    for (size_t i = 0; i < lc->n_inputs; i++)
        take_operand(&lc->inputs[i], &dims[i], knows, &p->inputs[i]);
    *out_made = true;
    if (is_conv_grad) return complete_conv_grad(lc, impl, &result, p);
    return is_product ? fix_numbers(p) : CLG_OK;
}
