/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape arithmetic and views: Shape, Size, Constant, ConstantOfShape, Identity, Reshape, Flatten, Squeeze,
 * Unsqueeze, Dropout. None of them moves data: views give another shape to the same memory, the rest is computed
 * on the host.
 */
#include "base/checked.h"
#include "ops/op.h"

#include <inttypes.h>
#include <string.h>

/* ---- views --------------------------------------------------------------------------------------------- */

/* Output 0 is input 0 with axes of length 1 put in or left out: the other axes keep their strides. */
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

/* The preset: dense, from where input 0 starts. */
static clg_status lower_dense(lower_context *c)
{
    c->is_view = true;
    return CLG_OK;
}

static clg_status eval_reshaped(op_context *c, tensor **out_tensors)
{
    return fact_reshaped(c->inputs[0].known, &c->outputs[0].dims, &out_tensors[0]);
}

/* ---- Shape, Size ------------------------------------------------------------------------------------------ */

static int64_t clamp_axis(int64_t axis, int rank)
{
    if (axis < 0) axis += rank;
    return axis < 0 ? 0 : axis > rank ? rank : axis;
}

/* The axes that Shape tells of: [start, end). */
static void shape_range(const op_context *c, int64_t *out_start, int64_t *out_end)
{
    int rank = c->inputs[0].dims.rank;
    *out_start = clamp_axis(node_int(c->node, "start", 0), rank);
    *out_end = clamp_axis(node_int(c->node, "end", rank), rank);
    if (*out_end < *out_start) *out_end = *out_start;
}

static clg_status shape_infer(op_context *c)
{
    shape dims = {.rank = 1, .dims = {DIM_UNKNOWN}};
    if (c->inputs[0].dims.rank != RANK_UNKNOWN) {
        int64_t start, end;
        shape_range(c, &start, &end);
        dims.dims[0] = end - start;
    }
    fact_set(&c->outputs[0], CLG_INT64, &dims);
    return CLG_OK;
}

static clg_status shape_eval(op_context *c, tensor **out_tensors)
{
    const shape *in = &c->inputs[0].dims;
    if (in->rank == RANK_UNKNOWN) return CLG_OK;
    int64_t start, end;
    shape_range(c, &start, &end);
    for (int64_t i = start; i < end; i++) {
        if (in->dims[i] == DIM_UNKNOWN) return CLG_OK;
    }
    CLG_TRY(tensor_create(CLG_INT64, &c->outputs[0].dims, &out_tensors[0]));
    for (int64_t i = start; i < end; i++) tensor_set_int(out_tensors[0], i - start, in->dims[i]);
    return CLG_OK;
}

static clg_status size_infer(op_context *c)
{
    shape scalar = shape_scalar();
    fact_set(&c->outputs[0], CLG_INT64, &scalar);
    return CLG_OK;
}

static clg_status size_eval(op_context *c, tensor **out_tensors)
{
    int64_t n;
    CLG_TRY(op_prefix(c, shape_n_elements(&c->inputs[0].dims, &n)));
    if (n == DIM_UNKNOWN) return CLG_OK;
    CLG_TRY(tensor_create(CLG_INT64, &c->outputs[0].dims, &out_tensors[0]));
    tensor_set_int(out_tensors[0], 0, n);
    return CLG_OK;
}

/* ---- Constant ------------------------------------------------------------------------------------------------ */

static clg_status constant_check(const node *n)
{
    char shown[NODE_TEXT_BYTES];
    if (n->n_attributes == 1) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL, "%s must have one value, not %zu", node_text(n, shown),
                     n->n_attributes);
}

static clg_status constant_infer(op_context *c)
{
    const attribute *a = &c->node->attributes[0];
    shape dims = {.rank = 1, .dims = {(int64_t)a->n}}, scalar = shape_scalar();
    switch (a->type) {
    case ATTRIBUTE_TENSOR: fact_set(&c->outputs[0], a->as.t->dtype, &a->as.t->dims); return CLG_OK;
    case ATTRIBUTE_FLOAT: fact_set(&c->outputs[0], CLG_FLOAT32, &scalar); return CLG_OK;
    case ATTRIBUTE_FLOATS: fact_set(&c->outputs[0], CLG_FLOAT32, &dims); return CLG_OK;
    case ATTRIBUTE_INT: fact_set(&c->outputs[0], CLG_INT64, &scalar); return CLG_OK;
    case ATTRIBUTE_INTS: fact_set(&c->outputs[0], CLG_INT64, &dims); return CLG_OK;
    case ATTRIBUTE_STRING: fact_set(&c->outputs[0], CLG_STRING, &scalar); return CLG_OK;
    case ATTRIBUTE_STRINGS: fact_set(&c->outputs[0], CLG_STRING, &dims); return CLG_OK;
    case ATTRIBUTE_NONE:
    case ATTRIBUTE_GRAPH: break;
    }
    return op_error(c, CLG_ERROR_INTERNAL, "a value of this kind passed the table of attributes");
}

static clg_status constant_eval(op_context *c, tensor **out_tensors)
{
    const attribute *a = &c->node->attributes[0];
    if (a->type == ATTRIBUTE_TENSOR) {
        out_tensors[0] = tensor_retain(a->as.t);
        return CLG_OK;
    }
    CLG_TRY(tensor_create(c->outputs[0].dtype, &c->outputs[0].dims, &out_tensors[0]));
    tensor *t = out_tensors[0];
    switch (a->type) {
    case ATTRIBUTE_FLOAT: tensor_set_float(t, 0, a->as.f); break;
    case ATTRIBUTE_INT: tensor_set_int(t, 0, a->as.i); break;
    case ATTRIBUTE_STRING: return op_prefix(c, tensor_set_string(t, 0, a->as.s, a->n));
    case ATTRIBUTE_FLOATS:
        if (a->n > 0) memcpy(t->data, a->as.floats, t->size_bytes);
        break;
    case ATTRIBUTE_INTS:
        if (a->n > 0) memcpy(t->data, a->as.ints, t->size_bytes);
        break;
    case ATTRIBUTE_STRINGS:
        for (size_t i = 0; i < a->n; i++) {
            CLG_TRY(op_prefix(c, tensor_set_string(t, (int64_t)i, a->as.strings[i], strlen(a->as.strings[i]))));
        }
        break;
    case ATTRIBUTE_NONE:
    case ATTRIBUTE_TENSOR:
    case ATTRIBUTE_GRAPH: break;
    }
    return CLG_OK;
}

/* ---- ConstantOfShape --------------------------------------------------------------------------------------------- */

static const tensor *fill_value(const node *n)
{
    const attribute *a = node_attribute(n, "value");
    return a ? a->as.t : NULL;
}

/* One number, of a dtype that memory can be filled with. */
static clg_status fill_check(const node *n)
{
    char shown[NODE_TEXT_BYTES];
    const tensor *t = fill_value(n);
    if (!t) return CLG_OK;
    if (t->n_elements != 1) {
        return error_set(CLG_ERROR_INVALID_MODEL, "%s must have one number as its value, not %" PRId64,
                         node_text(n, shown), t->n_elements);
    }
    if (DTYPES_ALL_FIXED & DTYPE_BIT(t->dtype)) return CLG_OK;
    return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "%s fills with %s, which is not supported", node_text(n, shown),
                     dtype_name(t->dtype));
}

/* The numbers of an input that asks for a shape, as they are; where they are not known, at most their count. */
static clg_status wanted_dims(op_context *c, size_t i, bool *out_known, shape *out_dims)
{
    int64_t numbers[OP_MAX_INTS];
    size_t n;
    clg_status status = CLG_OK;
    const shape *list = &op_input(c, i)->dims;
    *out_dims = shape_unknown();
    *out_known = op_need_ints(c, i, numbers, &n, &status);
    if (status != CLG_OK) return status;
    int64_t rank = *out_known ? (int64_t)n : list->rank == 1 ? list->dims[0] : DIM_UNKNOWN;
    if (rank > CLG_MAX_RANK) {
        return op_error(c, CLG_ERROR_SHAPE, "asks for %" PRId64 " axes, more than the %d supported", rank,
                        CLG_MAX_RANK);
    }
    if (rank == DIM_UNKNOWN) return CLG_OK;
    out_dims->rank = (int)rank;
    for (int k = 0; k < out_dims->rank; k++) out_dims->dims[k] = *out_known ? numbers[k] : DIM_UNKNOWN;
    return CLG_OK;
}

static clg_status fill_infer(op_context *c)
{
    bool is_known;
    shape dims;
    CLG_TRY(wanted_dims(c, 0, &is_known, &dims));
    for (int i = 0; is_known && i < dims.rank; i++) {
        if (dims.dims[i] >= 0) continue;
        return op_error(c, CLG_ERROR_SHAPE, "asks for a dimension of %" PRId64, dims.dims[i]);
    }
    const tensor *filler = fill_value(c->node);
    fact_set(&c->outputs[0], filler ? filler->dtype : CLG_FLOAT32, &dims);
    return CLG_OK;
}

static clg_status fill_eval(op_context *c, tensor **out_tensors)
{
    const tensor *filler = fill_value(c->node);
    CLG_TRY(tensor_create(c->outputs[0].dtype, &c->outputs[0].dims, &out_tensors[0]));
    if (!filler) return CLG_OK;
    size_t item_bytes = dtype_find(filler->dtype)->bits / 8u;
    for (int64_t i = 0; i < out_tensors[0]->n_elements; i++) {
        memcpy((uint8_t *)out_tensors[0]->data + (size_t)i * item_bytes, filler->data, item_bytes);
    }
    return CLG_OK;
}

static clg_status fill_lower(lower_context *c)
{
    static const uint8_t zeros[8];
    const tensor *filler = fill_value(c->node);
    int64_t n;
    size_t size_bytes;
    CLG_TRY(shape_n_elements(&c->outputs[0].dims, &n));
    if (!dtype_bytes(c->outputs[0].dtype, n, &size_bytes)) return error_no_memory(SIZE_MAX);
    uint32_t item_bytes = dtype_find(c->outputs[0].dtype)->bits / 8u;
    candidate *fill = step_candidate(&c->build, "fill");
    step_fill(&c->build, fill, operand_output(0), size_bytes, filler ? filler->data : zeros, item_bytes);
    return CLG_OK;
}

/* ---- Identity, Dropout ------------------------------------------------------------------------------------------- */

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

/* Prediction passes everything on. What asks for training draws random numbers, unless it drops nothing. */
static clg_status dropout_infer(op_context *c)
{
    if (op_has_input(c, 2)) {
        const tensor *training = op_need(c, 2);
        if (!training) return CLG_OK;
        bool trains = training->n_elements > 0 && tensor_get_int(training, 0) != 0;
        const tensor *ratio = trains ? op_need(c, 1) : NULL;
        if (trains && op_has_input(c, 1) && !ratio) return CLG_OK;
        if (trains && (!ratio || ratio->n_elements < 1 || tensor_get_float(ratio, 0) != 0.0)) {
            return op_error(c, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "training_mode is on, which clgraph does not do");
        }
    }
    c->outputs[0].dims = c->inputs[0].dims;
    if (c->n_outputs > 1) c->outputs[1].dims = c->inputs[0].dims;
    return CLG_OK;
}

static clg_status dropout_eval(op_context *c, tensor **out_tensors)
{
    out_tensors[0] = fact_share(c->inputs[0].known);
    if (!op_has_output(c, 1)) return CLG_OK;
    CLG_TRY(tensor_create(c->outputs[1].dtype, &c->outputs[1].dims, &out_tensors[1]));
    for (int64_t i = 0; i < out_tensors[1]->n_elements; i++) tensor_set_int(out_tensors[1], i, 1);
    return CLG_OK;
}

static clg_status dropout_lower(lower_context *c)
{
    if (c->n_outputs < 2 || c->outputs[1].dtype == CLG_DTYPE_NONE) return lower_dense(c);
    int64_t n;
    size_t bytes, mask_bytes;
    CLG_TRY(shape_n_elements(&c->outputs[0].dims, &n));
    if (!dtype_bytes(c->outputs[0].dtype, n, &bytes) || !dtype_bytes(c->outputs[1].dtype, n, &mask_bytes)) {
        return error_no_memory(SIZE_MAX);
    }
    shape scalar = shape_scalar();
    tensor *one;
    CLG_TRY(tensor_create(c->outputs[1].dtype, &scalar, &one));
    tensor_set_int(one, 0, 1);
    candidate *both = step_candidate(&c->build, "copy");
    step_copy(&c->build, both, operand_input(0), operand_output(0), bytes);
    step_fill(&c->build, both, operand_output(1), mask_bytes, one->data, (uint32_t)one->size_bytes);
    tensor_free(one);
    return CLG_OK;
}

/* ---- Reshape, Flatten ----------------------------------------------------------------------------------------------- */

/* What is asked for, split in what is copied from the input (0), what is to be found out (-1) and the rest. */
typedef struct reshaping {
    shape dims;
    bool copied[CLG_MAX_RANK];
    int open;                /* axis of the -1; -1: there is none */
    int64_t placed;          /* product of the numbers given */
    bool has_zero;           /* a 0 that means 0 */
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
                return op_error(c, CLG_ERROR_SHAPE, "copies dimension %d of an input that has %d", i, in->rank);
            }
            r->dims.dims[i] = in->dims[i];
            r->copied[i] = true;
            r->copies_maybe_empty = r->copies_maybe_empty || in->dims[i] <= 0;
        } else if (d == -1 && r->open < 0) {
            r->open = i;
        } else if (d < 0) {
            return op_error(c, CLG_ERROR_SHAPE, "asks for %s", d == -1 ? "-1 twice" : "a dimension below -1");
        } else if (!checked_mul_i64(r->placed, d, &r->placed)) {
            return op_error(c, CLG_ERROR_SHAPE, "asks for more elements than can be counted");
        } else {
            r->has_zero = r->has_zero || d == 0;
        }
    }
    if (r->open >= 0 && r->has_zero) return op_error(c, CLG_ERROR_SHAPE, "asks for 0 and -1 together");
    return CLG_OK;
}

/* Elements of the input but for the copied axes, which count on both sides. */
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
    CLG_TRY(wanted_dims(c, 1, &is_known, &wanted));
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
        return op_error(c, CLG_ERROR_SHAPE, "axis is %" PRId64 ", outside of %d..%d", axis, -rank, rank);
    }
    int at = (int)(axis < 0 ? axis + rank : axis);
    shape dims = {.rank = 2};
    CLG_TRY(product(c, 0, at, &dims.dims[0]));
    CLG_TRY(product(c, at, rank, &dims.dims[1]));
    c->outputs[0].dims = dims;
    return CLG_OK;
}

/* ---- Squeeze, Unsqueeze ------------------------------------------------------------------------------------------------ */

typedef struct axis_list {
    int64_t axes[OP_MAX_INTS];
    size_t n;
    bool given, known;
} axis_list;

/* The axes: an attribute until opset 12, an input from 13 on. */
static clg_status read_axes(op_context *c, axis_list *list)
{
    clg_status status = CLG_OK;
    *list = (axis_list){.n = 0};
    if (c->row->since >= 13) {
        list->given = op_has_input(c, 1);
        list->known = op_need_ints(c, 1, list->axes, &list->n, &status);
        return status;
    }
    const int64_t *axes = node_ints(c->node, "axes", &list->n);
    list->given = list->known = axes != NULL;
    if (list->n > OP_MAX_INTS) return op_error(c, CLG_ERROR_SHAPE, "there are %zu axes", list->n);
    if (list->n > 0) memcpy(list->axes, axes, list->n * sizeof *axes);
    return CLG_OK;
}

/* Axes of a shape of that rank as marks; each at most once. */
static clg_status mark_axes(const op_context *c, const axis_list *list, int rank, bool marks[CLG_MAX_RANK])
{
    for (size_t i = 0; i < list->n; i++) {
        int axis;
        CLG_TRY(op_prefix(c, shape_axis(list->axes[i], rank, "axes", &axis)));
        if (marks[axis]) return op_error(c, CLG_ERROR_SHAPE, "axis %d is given twice", axis);
        marks[axis] = true;
    }
    return CLG_OK;
}

/* Without axes: every axis of length 1. */
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
            return op_error(c, CLG_ERROR_SHAPE, "axis %d has length %" PRId64 " and cannot be taken away", i,
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
    if (list.n > (size_t)(CLG_MAX_RANK - in->rank)) {
        return op_error(c, CLG_ERROR_SHAPE, "the output would have %zu axes, more than the %d supported",
                        list.n + (size_t)in->rank, CLG_MAX_RANK);
    }
    shape dims = {.rank = in->rank + (int)list.n};
    CLG_TRY(mark_axes(c, &list, dims.rank, marks));
    for (int i = 0, from = 0; i < dims.rank; i++) dims.dims[i] = marks[i] ? 1 : in->dims[from++];
    c->outputs[0].dims = dims;
    return CLG_OK;
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

static const op_types int_list[] = {{'I', DTYPE_BIT(CLG_INT64)}, {0, 0}};
static const op_types output_int64[] = {{'L', DTYPE_BIT(CLG_INT64)}, {0, 0}};
static const op_types dropout_types[] = {
    {'T', DTYPES_FLOAT}, {'R', DTYPES_FLOAT}, {'B', DTYPE_BIT(CLG_BOOL)}, {0, 0}};

static const op_attribute shape_attributes[] = {
    {"start", ATTRIBUTE_INT, false}, {"end", ATTRIBUTE_INT, false}, {NULL, ATTRIBUTE_NONE, false}};
static const op_attribute constant_attributes[] = {{"value", ATTRIBUTE_TENSOR, false},
                                                   {"value_float", ATTRIBUTE_FLOAT, false},
                                                   {"value_floats", ATTRIBUTE_FLOATS, false},
                                                   {"value_int", ATTRIBUTE_INT, false},
                                                   {"value_ints", ATTRIBUTE_INTS, false},
                                                   {"value_string", ATTRIBUTE_STRING, false},
                                                   {"value_strings", ATTRIBUTE_STRINGS, false},
                                                   {NULL, ATTRIBUTE_NONE, false}};
static const op_attribute value_attribute[] = {{"value", ATTRIBUTE_TENSOR, false}, {NULL, ATTRIBUTE_NONE, false}};
static const op_attribute allowzero_attribute[] = {{"allowzero", ATTRIBUTE_INT, false},
                                                   {NULL, ATTRIBUTE_NONE, false}};
static const op_attribute axis_attribute[] = {{"axis", ATTRIBUTE_INT, false}, {NULL, ATTRIBUTE_NONE, false}};
static const op_attribute axes_attribute[] = {{"axes", ATTRIBUTE_INTS, false}, {NULL, ATTRIBUTE_NONE, false}};
static const op_attribute axes_required[] = {{"axes", ATTRIBUTE_INTS, true}, {NULL, ATTRIBUTE_NONE, false}};
static const op_attribute ratio_attribute[] = {{"ratio", ATTRIBUTE_FLOAT, false}, {NULL, ATTRIBUTE_NONE, false}};
static const op_attribute seed_attribute[] = {{"seed", ATTRIBUTE_INT, false}, {NULL, ATTRIBUTE_NONE, false}};

#define COUNTS(in_min, in_max, out_min, out_max)                                                                       \
    .min_inputs = in_min, .max_inputs = in_max, .min_outputs = out_min, .max_outputs = out_max

const op_row op_rows_shape[] = {
    {.name = "Shape", .since = 1, .until = 14, COUNTS(1, 1, 1, 1), .input_types = "T", .output_types = "L",
     .types = output_int64, .flags = OP_EVAL_ONLY | OP_UNKNOWN_RANK, .infer = shape_infer, .eval = shape_eval},
    {.name = "Shape", .since = 15, COUNTS(1, 1, 1, 1), .input_types = "T", .output_types = "L",
     .types = output_int64, .attributes = shape_attributes, .flags = OP_EVAL_ONLY | OP_UNKNOWN_RANK,
     .infer = shape_infer, .eval = shape_eval},
    {.name = "Size", .since = 1, COUNTS(1, 1, 1, 1), .input_types = "T", .output_types = "L", .types = output_int64,
     .flags = OP_EVAL_ONLY | OP_UNKNOWN_RANK, .infer = size_infer, .eval = size_eval},
    {.name = "Constant", .since = 1, .until = 11, COUNTS(0, 0, 1, 1), .output_types = "?",
     .attributes = value_attribute, .flags = OP_EVAL_ONLY, .check = constant_check, .infer = constant_infer,
     .eval = constant_eval},
    {.name = "Constant", .since = 12, COUNTS(0, 0, 1, 1), .output_types = "?", .attributes = constant_attributes,
     .flags = OP_EVAL_ONLY, .check = constant_check, .infer = constant_infer, .eval = constant_eval},
    {.name = "ConstantOfShape", .since = 9, COUNTS(1, 1, 1, 1), .input_types = "I", .output_types = "?",
     .types = int_list, .attributes = value_attribute, .check = fill_check, .infer = fill_infer,
     .eval = fill_eval, .lower = fill_lower},
    {.name = "Identity", .since = 1, COUNTS(1, 1, 1, 1), .input_types = "T", .output_types = "T",
     .flags = OP_STRIDED_INPUTS, .infer = identity_infer, .eval = identity_eval, .lower = lower_same_axes},
    {.name = "Reshape", .since = 5, .until = 13, COUNTS(2, 2, 1, 1), .input_types = "TI", .output_types = "T",
     .types = int_list, .infer = reshape_infer, .eval = eval_reshaped, .lower = lower_dense},
    {.name = "Reshape", .since = 14, COUNTS(2, 2, 1, 1), .input_types = "TI", .output_types = "T",
     .types = int_list, .attributes = allowzero_attribute, .infer = reshape_infer, .eval = eval_reshaped,
     .lower = lower_dense},
    {.name = "Flatten", .since = 1, COUNTS(1, 1, 1, 1), .input_types = "T", .output_types = "T",
     .attributes = axis_attribute, .infer = flatten_infer, .eval = eval_reshaped, .lower = lower_dense},
    {.name = "Squeeze", .since = 1, .until = 12, COUNTS(1, 1, 1, 1), .input_types = "T", .output_types = "T",
     .attributes = axes_attribute, .flags = OP_STRIDED_INPUTS, .infer = squeeze_infer, .eval = eval_reshaped,
     .lower = lower_same_axes},
    {.name = "Squeeze", .since = 13, COUNTS(1, 2, 1, 1), .input_types = "TI", .output_types = "T",
     .types = int_list, .flags = OP_STRIDED_INPUTS, .infer = squeeze_infer, .eval = eval_reshaped,
     .lower = lower_same_axes},
    {.name = "Unsqueeze", .since = 1, .until = 12, COUNTS(1, 1, 1, 1), .input_types = "T", .output_types = "T",
     .attributes = axes_required, .flags = OP_STRIDED_INPUTS, .infer = unsqueeze_infer, .eval = eval_reshaped,
     .lower = lower_same_axes},
    {.name = "Unsqueeze", .since = 13, COUNTS(2, 2, 1, 1), .input_types = "TI", .output_types = "T",
     .types = int_list, .flags = OP_STRIDED_INPUTS, .infer = unsqueeze_infer, .eval = eval_reshaped,
     .lower = lower_same_axes},
    {.name = "Dropout", .since = 7, .until = 9, COUNTS(1, 1, 1, 2), .input_types = "T", .output_types = "TT",
     .types = dropout_types, .attributes = ratio_attribute, .infer = dropout_infer, .eval = dropout_eval,
     .lower = dropout_lower},
    {.name = "Dropout", .since = 10, .until = 11, COUNTS(1, 1, 1, 2), .input_types = "T", .output_types = "TB",
     .types = dropout_types, .attributes = ratio_attribute, .infer = dropout_infer, .eval = dropout_eval,
     .lower = dropout_lower},
    {.name = "Dropout", .since = 12, COUNTS(1, 3, 1, 2), .input_types = "TRB", .output_types = "TB",
     .types = dropout_types, .attributes = seed_attribute, .infer = dropout_infer, .eval = dropout_eval,
     .lower = dropout_lower},
};
const size_t n_op_rows_shape = sizeof op_rows_shape / sizeof op_rows_shape[0];
