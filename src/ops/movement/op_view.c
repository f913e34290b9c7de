/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers Identity, BitCast, Reshape, Flatten, Squeeze and Unsqueeze to views of their input.
 */
#include "base/checked.h"
#include "ops/batch/batch_rule.h"
#include "ops/core/op.h"
#include "ops/grad/grad_rule.h"

#include <inttypes.h>
#include <string.h>

/* ---- views ----------------------------------------------------------------------------------- */

/* Makes output 0 a view of input 0 with axes of length 1 inserted or removed: the other axes keep
 * their strides. */
static clg_status lower_same_axes(lower_context *c)
{
    const lower_operand *in = &c->inputs[0], *out = &c->outputs[0];
    int from = 0;
    for (int i = 0; i < out->dims.rank; i++) {
        if (out->dims.dims[i] == 1) continue;
        while (from < in->dims.rank && in->dims.dims[from] == 1) from++;
        if (from < in->dims.rank) c->views[0].strides[i] = in->strides[from++];
    }
    c->is_view = true;
    return CLG_OK;
}

/* Computes strides such that shape `to` addresses the elements of `in`, which may be strided, in
 * row-major order; returns false if there are none. Both shapes are split into the smallest groups
 * of axes with equally many elements: within a group, the axes of `in` must be contiguous. */
static bool split_strides(const lower_operand *in, const shape *to, int64_t *strides)
{
    int64_t dims[CLG_MAX_RANK], at[CLG_MAX_RANK];
    int n = 0, from = 0, first = 0;
    for (int i = 0; i < in->dims.rank; i++) {
        if (in->dims.dims[i] == 1) continue;
        dims[n] = in->dims.dims[i];
        at[n++] = in->strides[i];
    }
    for (int i = 0; i < to->rank; i++) strides[i] = 1;
    while (from < n && first < to->rank) {
        int64_t held = dims[from++], wanted = to->dims[first];
        int last = first;
        while (held != wanted) {
            if (held < wanted && from < n && at[from - 1] == dims[from] * at[from])
                held *= dims[from++];
            else if (wanted < held && last + 1 < to->rank)
                wanted *= to->dims[++last];
            else
                return false;
        }
        if (held == 0) return false;
        strides[last] = at[from - 1];
        for (int i = last; i > first; i--) strides[i - 1] = strides[i] * to->dims[i];
        first = last + 1;
    }
    return from == n;
}

static bool reshape_takes(size_t i, const lower_operand *input, const shape *output)
{
    int64_t strides[CLG_MAX_RANK];
    return i == 0 && split_strides(input, output, strides);
}

static clg_status reshape_lower(lower_context *c)
{
    if (!c->inputs[0].dense)
        (void)split_strides(&c->inputs[0], &c->outputs[0].dims, c->views[0].strides);
    c->is_view = true;
    return CLG_OK;
}

static clg_status eval_reshaped(op_context *c, tensor **out_tensors)
{
    return fact_reshaped(c->inputs[0].known, &c->outputs[0].dims, &out_tensors[0]);
}

/* ---- Identity -------------------------------------------------------------------------------- */

static clg_status identity_infer(op_context *c)
{
    c->outputs[0].dims = c->inputs[0].dims;
    return CLG_OK;
}

static clg_status identity_eval(op_context *c, tensor **out_tensors)
{
    out_tensors[0] = fact_share(c->inputs[0].known);
    return CLG_OK;
}

/* ---- BitCast --------------------------------------------------------------------------------- */

static clg_status bitcast_infer(op_context *c)
{
    const clg_dtype from = c->inputs[0].dtype, to = (clg_dtype)node_int(c->node, "to", 0);
    if (from != CLG_DTYPE_NONE && dtype_size(from) != dtype_size(to))
        return op_error(c, CLG_ERROR_INVALID_MODEL,
                        "an element of %s has not the size of one of %s", dtype_name(from),
                        dtype_name(to));
    fact_set(&c->outputs[0], to, &c->inputs[0].dims);
    return CLG_OK;
}

static clg_status bitcast_eval(op_context *c, tensor **out_tensors)
{
    const tensor *known = c->inputs[0].known;
    CLG_TRY(tensor_create(c->outputs[0].dtype, &c->outputs[0].dims, &out_tensors[0]));
    if (known->size_bytes > 0) memcpy(out_tensors[0]->data, known->data, known->size_bytes);
    return CLG_OK;
}

/* ---- Reshape, Flatten ------------------------------------------------------------------------ */

/* The shape that a Reshape requests: dimensions that are copied from the input (0), one that is to
 * be computed (-1), and given ones. */
typedef struct reshaping {
    shape dims;
    bool copied[CLG_MAX_RANK];
    int open;                /* axis of the -1; -1: no such axis */
    int64_t placed;          /* product of the given dimensions */
    bool has_zero;           /* a given dimension is 0 (allowzero) */
    bool copies_maybe_empty; /* a copied dimension that is 0 or not known */
} reshaping;

static clg_status parse_reshape(const op_context *c, const shape *wanted, reshaping *r)
{
    bool allow_zero = node_int(c->node, "allowzero", 0) != 0;
    const shape *in = &c->inputs[0].dims;
    *r = (reshaping){.dims = *wanted, .open = -1, .placed = 1};
    for (int i = 0; i < wanted->rank; i++) {
        int64_t d = wanted->dims[i];
        if (d == 0 && !allow_zero) {
            if (i >= in->rank) {
                return op_error(c, CLG_ERROR_SHAPE, "copies dimension %d of an input that has %d",
                                i, in->rank);
            }
            r->dims.dims[i] = in->dims[i];
            r->copied[i] = true;
            r->copies_maybe_empty = r->copies_maybe_empty || in->dims[i] <= 0;
        } else if (d == -1 && r->open < 0) {
            r->open = i;
        } else if (d < 0) {
            return op_error(c, CLG_ERROR_SHAPE, "requests %s",
                            d == -1 ? "-1 twice" : "a dimension below -1");
        } else if (!checked_mul_i64(r->placed, d, &r->placed)) {
            return op_error(c, CLG_ERROR_SHAPE, "requests more elements than can be counted");
        } else {
            r->has_zero = r->has_zero || d == 0;
        }
    }
    if (r->open >= 0 && r->has_zero)
        return op_error(c, CLG_ERROR_SHAPE, "requests 0 and -1 together");
    return CLG_OK;
}

/* Computes the product of the input's dimensions without the copied ones, which cancel out. */
static clg_status count_left(const op_context *c, const reshaping *r, int64_t *out_left)
{
    const shape *in = &c->inputs[0].dims;
    *out_left = 1;
    for (int i = 0; i < in->rank; i++) {
        if (r->copied[i] || *out_left == DIM_UNKNOWN) continue;
        if (in->dims[i] == DIM_UNKNOWN) {
            *out_left = DIM_UNKNOWN;
        } else if (!checked_mul_i64(*out_left, in->dims[i], out_left)) {
            return op_error(c, CLG_ERROR_SHAPE, "the input has more elements than can be counted");
        }
    }
    return CLG_OK;
}

static clg_status reshape_infer(op_context *c)
{
    int64_t left;
    bool is_known;
    shape wanted;
    reshaping r;
    char from[SHAPE_TEXT_BYTES], to[SHAPE_TEXT_BYTES];
    CLG_TRY(op_need_dims(c, 1, &is_known, &wanted));
    if (!is_known) {
        c->outputs[0].dims = wanted;
        return CLG_OK;
    }
    CLG_TRY(parse_reshape(c, &wanted, &r));
    CLG_TRY(count_left(c, &r, &left));
    bool fits = true;
    if (r.open >= 0) {
        fits = left == DIM_UNKNOWN || (r.placed > 0 && left % r.placed == 0);
        r.dims.dims[r.open] = left == DIM_UNKNOWN || !fits ? DIM_UNKNOWN : left / r.placed;
    } else if (left != DIM_UNKNOWN) {
        fits = left == r.placed || r.copies_maybe_empty;
    }
    if (!fits) {
        return op_error(c, CLG_ERROR_SHAPE, "an input of shape %s does not fit into %s",
                        shape_text(&c->inputs[0].dims, from), shape_text(&r.dims, to));
    }
    c->outputs[0].dims = r.dims;
    return CLG_OK;
}

static clg_status product(const op_context *c, int from, int to, int64_t *out_n)
{
    shape part = {.rank = to - from};
    for (int i = from; i < to; i++) part.dims[i - from] = c->inputs[0].dims.dims[i];
    return op_prefix(c, shape_n_elements(&part, out_n));
}

static clg_status flatten_infer(op_context *c)
{
    int rank = c->inputs[0].dims.rank;
    int64_t axis = node_int(c->node, "axis", 1);
    if (axis < -(int64_t)rank || axis > rank) {
        return op_error(c, CLG_ERROR_SHAPE, "axis is %" PRId64 ", outside of %d..%d", axis, -rank,
                        rank);
    }
    int at = (int)(axis < 0 ? axis + rank : axis);
    shape dims = {.rank = 2};
    CLG_TRY(product(c, 0, at, &dims.dims[0]));
    CLG_TRY(product(c, at, rank, &dims.dims[1]));
    c->outputs[0].dims = dims;
    return CLG_OK;
}

/* ---- Squeeze, Unsqueeze ---------------------------------------------------------------------- */

typedef struct axis_list {
    int64_t axes[OP_MAX_INTS];
    size_t count;
    bool given, known;
} axis_list;

/* Reads the axes: an attribute until opset 12, an input from 13 on. */
static clg_status read_axes(op_context *c, axis_list *list)
{
    clg_status status = CLG_OK;
    *list = (axis_list){.count = 0};
    if (c->row->since >= 13) {
        list->given = op_has_input(c, 1);
        list->known = op_need_ints(c, 1, list->axes, &list->count, &status);
        return status;
    }
    const int64_t *axes = node_ints(c->node, "axes", &list->count);
    list->given = list->known = axes != NULL;
    if (list->count > OP_MAX_INTS)
        return op_error(c, CLG_ERROR_SHAPE, "there are %zu axes", list->count);
    if (axes && list->count > 0) memcpy(list->axes, axes, list->count * sizeof *axes);
    return CLG_OK;
}

/* Sets marks for the listed axes of a shape of this rank. An axis that is listed twice is an error.
 */
static clg_status mark_axes(const op_context *c, const axis_list *list, int rank,
                            bool marks[CLG_MAX_RANK])
{
    for (size_t i = 0; i < list->count; i++) {
        int axis;
        CLG_TRY(op_prefix(c, shape_axis(list->axes[i], rank, "axes", &axis)));
        if (marks[axis]) return op_error(c, CLG_ERROR_SHAPE, "axis %d is given twice", axis);
        marks[axis] = true;
    }
    return CLG_OK;
}

/* Sets marks for all axes of length 1, for a Squeeze without axes. Returns false if a length is
 * unknown. */
static bool mark_ones(const shape *in, bool marks[CLG_MAX_RANK])
{
    for (int i = 0; i < in->rank; i++) {
        if (in->dims[i] == DIM_UNKNOWN) return false;
        marks[i] = in->dims[i] == 1;
    }
    return true;
}

static clg_status squeeze_infer(op_context *c)
{
    const shape *in = &c->inputs[0].dims;
    axis_list list;
    bool marks[CLG_MAX_RANK] = {false};
    CLG_TRY(read_axes(c, &list));
    if (!list.given) {
        if (!mark_ones(in, marks)) return CLG_OK;
    } else {
        if (!list.known) return CLG_OK;
        CLG_TRY(mark_axes(c, &list, in->rank, marks));
    }
    shape dims = {.rank = 0};
    for (int i = 0; i < in->rank; i++) {
        if (!marks[i]) {
            dims.dims[dims.rank++] = in->dims[i];
        } else if (in->dims[i] != 1 && in->dims[i] != DIM_UNKNOWN) {
            return op_error(c, CLG_ERROR_SHAPE,
                            "axis %d has length %" PRId64 " and cannot be taken away", i,
                            in->dims[i]);
        }
    }
    c->outputs[0].dims = dims;
    return CLG_OK;
}

static clg_status unsqueeze_infer(op_context *c)
{
    const shape *in = &c->inputs[0].dims;
    axis_list list;
    bool marks[CLG_MAX_RANK] = {false};
    CLG_TRY(read_axes(c, &list));
    if (!list.known) return CLG_OK;
    if (list.count > (size_t)(CLG_MAX_RANK - in->rank)) {
        return op_error(c, CLG_ERROR_SHAPE,
                        "the output would have %zu axes, more than the %d supported",
                        list.count + (size_t)in->rank, CLG_MAX_RANK);
    }
    shape dims = {.rank = in->rank + (int)list.count};
    CLG_TRY(mark_axes(c, &list, dims.rank, marks));
    for (int i = 0, from = 0; i < dims.rank; i++) dims.dims[i] = marks[i] ? 1 : in->dims[from++];
    c->outputs[0].dims = dims;
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

#define VIEWABLE (DTYPES_ALL_FIXED | DTYPES_NARROW)
static const op_types viewed[] = {{'T', VIEWABLE}, {'I', DTYPE_BIT(CLG_INT64)}, {0}};
static const op_types of_whole_bytes[] = {{'T', DTYPES_ALL_FIXED}, {0}};
static const op_attribute to_attribute[] = {
    {"to", ATTRIBUTE_INT, true, OP_DTYPES(DTYPES_ALL_FIXED)}, {0}};
static const op_attribute allowzero_attribute[] = {{"allowzero", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                                   {0}};
static const op_attribute axis_attribute[] = {{"axis", ATTRIBUTE_INT, false, OP_ANY}, {0}};
static const op_attribute axes_attribute[] = {{"axes", ATTRIBUTE_INTS, false, OP_ANY}, {0}};
static const op_attribute axes_required[] = {{"axes", ATTRIBUTE_INTS, true, OP_ANY}, {0}};

/* An entry of the operator table for opsets `from` to `to` (0: no upper limit). */
#define ROW(row_name, from, to, ...)                                                               \
    {                                                                                              \
        .name = row_name, .since = from, .until = to, __VA_ARGS__                                  \
    }

const op_row op_rows_view[] = {
    ROW("Identity", 1, 0, .batch = BATCH_POINTWISE, .grad = GRAD_BY(grad_pass_same),
        OP_INPUTS(1, 1, "T"), OP_OUTPUTS(1, 1, "T"), .types = viewed,
        .flags = OP_STRIDED_INPUTS | OP_ANY_KIND | OP_MOVES, .infer = identity_infer,
        .eval = identity_eval, .lower = lower_same_axes),
    ROW("BitCast", 26, 0, .grad = GRAD_NONE("reinterpreted bits have no derivative"),
        OP_INPUTS(1, 1, "T"), OP_OUTPUTS(1, 1, "?"), .types = of_whole_bytes,
        .flags = OP_STRIDED_INPUTS, .attributes = to_attribute, .infer = bitcast_infer,
        .eval = bitcast_eval, .lower = lower_same_axes),
    ROW("Reshape", 5, 13, .grad = GRAD_BY(grad_pass_reshape), OP_INPUTS(2, 2, "TI"),
        OP_OUTPUTS(1, 1, "T"), .types = viewed, .flags = OP_MOVES, .infer = reshape_infer,
        .batch = BATCH_SHAPES(batch_pass_reshape, 1), .eval = eval_reshaped,
        .takes_strided = reshape_takes, .lower = reshape_lower),
    ROW("Reshape", 14, 0, .grad = GRAD_BY(grad_pass_reshape), OP_INPUTS(2, 2, "TI"),
        OP_OUTPUTS(1, 1, "T"), .types = viewed, .attributes = allowzero_attribute,
        .flags = OP_MOVES, .infer = reshape_infer, .batch = BATCH_SHAPES(batch_pass_reshape, 1),
        .eval = eval_reshaped, .takes_strided = reshape_takes, .lower = reshape_lower),
    ROW("Flatten", 1, 0, .grad = GRAD_BY(grad_pass_reshape), OP_INPUTS(1, 1, "T"),
        OP_OUTPUTS(1, 1, "T"), .types = viewed, .attributes = axis_attribute, .flags = OP_MOVES,
        .infer = flatten_infer, .batch = BATCH_SHAPES(batch_pass_flatten, 1), .eval = eval_reshaped,
        .takes_strided = reshape_takes, .lower = reshape_lower),
    ROW("Squeeze", 1, 12, .grad = GRAD_BY(grad_pass_reshape), OP_INPUTS(1, 1, "T"),
        OP_OUTPUTS(1, 1, "T"), .types = viewed, .attributes = axes_attribute,
        .flags = OP_STRIDED_INPUTS | OP_MOVES, .infer = squeeze_infer,
        .batch = BATCH_SHAPES(batch_pass_squeeze, 1), .eval = eval_reshaped,
        .lower = lower_same_axes),
    ROW("Squeeze", 13, 0, .grad = GRAD_BY(grad_pass_reshape), OP_INPUTS(1, 2, "TI"),
        OP_OUTPUTS(1, 1, "T"), .types = viewed, .flags = OP_STRIDED_INPUTS | OP_MOVES,
        .infer = squeeze_infer, .batch = BATCH_SHAPES(batch_pass_squeeze, 1), .eval = eval_reshaped,
        .lower = lower_same_axes),
    ROW("Unsqueeze", 1, 12, .grad = GRAD_BY(grad_pass_reshape), OP_INPUTS(1, 1, "T"),
        OP_OUTPUTS(1, 1, "T"), .types = viewed, .attributes = axes_required,
        .flags = OP_STRIDED_INPUTS | OP_MOVES, .infer = unsqueeze_infer,
        .batch = BATCH_SHAPES(batch_pass_unsqueeze, 1), .eval = eval_reshaped,
        .lower = lower_same_axes),
    ROW("Unsqueeze", 13, 0, .grad = GRAD_BY(grad_pass_reshape), OP_INPUTS(2, 2, "TI"),
        OP_OUTPUTS(1, 1, "T"), .types = viewed, .flags = OP_STRIDED_INPUTS | OP_MOVES,
        .infer = unsqueeze_infer, .batch = BATCH_SHAPES(batch_pass_unsqueeze, 1),
        .eval = eval_reshaped, .lower = lower_same_axes),
};
const size_t n_op_rows_view = sizeof op_rows_view / sizeof op_rows_view[0];
