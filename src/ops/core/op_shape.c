/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers, evaluates and lowers Shape, Size, Constant and ConstantOfShape. They are computed on the
 * host during planning; only a large ConstantOfShape is computed on the device, as a fill.
 */
#include "ops/batch/batch_rule.h"
#include "ops/core/op.h"
#include "ops/grad/grad_rule.h"

#include <inttypes.h>
#include <string.h>

/* ---- Shape, Size ----------------------------------------------------------------------------- */

static int64_t clamp_axis(int64_t axis, int rank)
{
    if (axis < 0) axis += rank;
    return axis < 0 ? 0 : axis > rank ? rank : axis;
}

/* Returns the range of axes, [start, end), whose sizes the operator Shape returns. */
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

/* ---- Constant -------------------------------------------------------------------------------- */

static clg_status constant_check(const node *n)
{
    char shown[NODE_TEXT_BYTES];
    if (n->n_attributes == 1) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL, "%s must have one value, not %zu",
                     node_text(n, shown), n->n_attributes);
}

static clg_status constant_infer(op_context *c)
{
    const graph_attribute *a = &c->node->attributes[0];
    shape dims = {.rank = 1, .dims = {(int64_t)a->count}}, scalar = shape_scalar();
    switch (a->type) {
    case ATTRIBUTE_TENSOR:
        fact_set(&c->outputs[0], a->as.tensor->dtype, &a->as.tensor->dims);
        return CLG_OK;
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
    const graph_attribute *a = &c->node->attributes[0];
    if (a->type == ATTRIBUTE_TENSOR) {
        out_tensors[0] = tensor_retain(a->as.tensor);
        return CLG_OK;
    }
    CLG_TRY(tensor_create(c->outputs[0].dtype, &c->outputs[0].dims, &out_tensors[0]));
    tensor *t = out_tensors[0];
    switch (a->type) {
    case ATTRIBUTE_FLOAT: tensor_set_float(t, 0, a->as.f); break;
    case ATTRIBUTE_INT: tensor_set_int(t, 0, a->as.i); break;
    case ATTRIBUTE_STRING: return op_prefix(c, tensor_set_string(t, 0, a->as.s, a->count));
    case ATTRIBUTE_FLOATS:
        if (a->count > 0) memcpy(t->data, a->as.floats, t->size_bytes);
        break;
    case ATTRIBUTE_INTS:
        if (a->count > 0) memcpy(t->data, a->as.ints, t->size_bytes);
        break;
    case ATTRIBUTE_STRINGS:
        for (size_t i = 0; i < a->count; i++) {
            CLG_TRY(op_prefix(
                c, tensor_set_string(t, (int64_t)i, a->as.strings[i], strlen(a->as.strings[i]))));
        }
        break;
    case ATTRIBUTE_NONE:
    case ATTRIBUTE_TENSOR:
    case ATTRIBUTE_GRAPH: break;
    }
    return CLG_OK;
}

/* ---- ConstantOfShape ------------------------------------------------------------------------- */

static const tensor *fill_value(const node *n)
{
    const graph_attribute *a = node_attribute(n, "value");
    return a ? a->as.tensor : NULL;
}

/* Checks that the value has one element, of a dtype with which memory can be filled. */
static clg_status fill_check(const node *n)
{
    char shown[NODE_TEXT_BYTES];
    const tensor *t = fill_value(n);
    if (!t) return CLG_OK;
    if (t->n_elements != 1) {
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "%s must have one number as its value, not %" PRId64, node_text(n, shown),
                         t->n_elements);
    }
    if (DTYPES_ALL_FIXED & DTYPE_BIT(t->dtype)) return CLG_OK;
    return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "%s fills with %s, which is not supported",
                     node_text(n, shown), dtype_name(t->dtype));
}

static clg_status fill_infer(op_context *c)
{
    bool is_known;
    shape dims;
    CLG_TRY(op_need_dims(c, 0, &is_known, &dims));
    for (int i = 0; is_known && i < dims.rank; i++) {
        if (dims.dims[i] >= 0) continue;
        return op_error(c, CLG_ERROR_SHAPE, "requests a dimension of %" PRId64, dims.dims[i]);
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
    step_fill(&c->build, fill, operand_output(0), size_bytes, filler ? filler->data : zeros,
              item_bytes);
    return CLG_OK;
}

/* ---- entries of the operator table ----------------------------------------------------------- */

static const op_types int_list[] = {{'I', DTYPE_BIT(CLG_INT64)}, {0}};
static const op_types output_int64[] = {
    {'T', DTYPES_ALL_FIXED | DTYPES_NARROW}, {'L', DTYPE_BIT(CLG_INT64)}, {0}};

static const op_attribute shape_attributes[] = {
    {"start", ATTRIBUTE_INT, false, OP_ANY}, {"end", ATTRIBUTE_INT, false, OP_ANY}, {0}};
static const op_attribute constant_attributes[] = {
    {"value", ATTRIBUTE_TENSOR, false, OP_ANY},
    {"value_float", ATTRIBUTE_FLOAT, false, OP_ANY},
    {"value_floats", ATTRIBUTE_FLOATS, false, OP_ANY},
    {"value_int", ATTRIBUTE_INT, false, OP_ANY},
    {"value_ints", ATTRIBUTE_INTS, false, OP_ANY},
    {"value_string", ATTRIBUTE_STRING, false, OP_ANY},
    {"value_strings", ATTRIBUTE_STRINGS, false, OP_ANY},
    {0}};
static const op_attribute value_attribute[] = {{"value", ATTRIBUTE_TENSOR, false, OP_ANY}, {0}};

/* An entry for opset versions `from` to `to` (0: no end). */
#define ROW(row_name, from, to, ...)                                                               \
    {                                                                                              \
        .name = row_name, .since = from, .until = to, __VA_ARGS__                                  \
    }

const op_row op_rows_shape[] = {
    ROW("Shape", 1, 14, .grad = GRAD_ZERO, .batch = BATCH_SHAPES(batch_pass_shape, BATCH_ALL),
        OP_INPUTS(1, 1, "T"), OP_OUTPUTS(1, 1, "L"), .types = output_int64,
        .flags = OP_EVAL_ONLY | OP_UNKNOWN_RANK | OP_MOVES, .infer = shape_infer,
        .eval = shape_eval),
    ROW("Shape", 15, 0, .grad = GRAD_ZERO, .batch = BATCH_SHAPES(batch_pass_shape, BATCH_ALL),
        OP_INPUTS(1, 1, "T"), OP_OUTPUTS(1, 1, "L"), .types = output_int64,
        .attributes = shape_attributes, .flags = OP_EVAL_ONLY | OP_UNKNOWN_RANK | OP_MOVES,
        .infer = shape_infer, .eval = shape_eval),
    ROW("Size", 1, 0, .grad = GRAD_ZERO, .batch = BATCH_SHAPES(batch_pass_size, BATCH_ALL),
        OP_INPUTS(1, 1, "T"), OP_OUTPUTS(1, 1, "L"), .types = output_int64,
        .flags = OP_EVAL_ONLY | OP_UNKNOWN_RANK | OP_MOVES, .infer = size_infer, .eval = size_eval),
    ROW("Constant", 1, 11, .grad = GRAD_ZERO, OP_OUTPUTS(1, 1, "?"), .attributes = value_attribute,
        .flags = OP_EVAL_ONLY, .check = constant_check, .infer = constant_infer,
        .eval = constant_eval),
    ROW("Constant", 12, 0, .grad = GRAD_ZERO, OP_OUTPUTS(1, 1, "?"),
        .attributes = constant_attributes, .flags = OP_EVAL_ONLY, .check = constant_check,
        .infer = constant_infer, .eval = constant_eval),
    ROW("ConstantOfShape", 9, 0, .grad = GRAD_ZERO, .batch = BATCH_SHAPES(batch_pass_fill, 0),
        OP_INPUTS(1, 1, "I"), OP_OUTPUTS(1, 1, "?"), .types = int_list,
        .attributes = value_attribute, .check = fill_check, .infer = fill_infer, .eval = fill_eval,
        .lower = fill_lower),
};
const size_t n_op_rows_shape = sizeof op_rows_shape / sizeof op_rows_shape[0];
