/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers com.microsoft's quantised operators other than GEMMs and convolutions: QLinearAdd,
 * QLinearMul, QLinearSigmoid, QLinearLeakyRelu, QLinearConcat, QLinearAveragePool and
 * QLinearGlobalAveragePool. They dequantise to float32, compute, and quantise; pointwise operators
 * do so in one kernel. A pass makes channels-last QLinearAveragePool channels-first
 * (passes/quant/pass_quantized.c).
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/window.h"
#include "ops/lowering/work.h"
#include "ops/movement/strided.h"
#include "ops/pointwise/pointwise.h"
#include "ops/reduce/reduce.h"
#include "ops/vision/pool.h"

#include <inttypes.h>

/* A pointwise group under construction, and the node inputs that are its inputs. */
typedef struct qlinear {
    lower_context *context;
    pointwise_group group;
    pointwise_binding inputs[POINTWISE_MAX_INPUTS];
    lower_operand operands[POINTWISE_MAX_INPUTS];
} qlinear;

/* op_row.param of the unary and binary operators: the instruction that they compute. */
typedef struct qlinear_op {
    const char *def;
    int n_operands;
    const char *scalar; /* the attribute that is the def's scalar; NULL: none */
    float fallback;
} qlinear_op;

/* ---- groups ---------------------------------------------------------------------------------- */

static clg_status add_input(qlinear *q, operand where, const lower_operand *what,
                            pointwise_register *out)
{
    const size_t i = q->group.n_inputs;
    CLG_TRY(pointwise_add_input(&q->group, what->dtype, out));
    q->operands[i] = *what;
    q->inputs[i] = (pointwise_binding){where, &q->operands[i]};
    return CLG_OK;
}

/* Adds input i of the node, a scalar, to the group, converted to float32. */
static clg_status add_number(qlinear *q, uint32_t i, pointwise_register *out)
{
    lower_operand one = *lower_input(q->context, i);
    one.dims = shape_scalar();
    CLG_TRY(add_input(q, operand_input(i), &one, out));
    return one.dtype == CLG_FLOAT32 ? CLG_OK
                                    : pointwise_add_cast(&q->group, *out, CLG_FLOAT32, out);
}

static clg_status combine(qlinear *q, const char *def, pointwise_register a, pointwise_register b,
                          pointwise_register *out)
{
    return pointwise_add(&q->group, def, (pointwise_register[]){a, b}, NULL, out);
}

/* Appends (x - zero) * scale. The scale is input `at`; the zero point is the input after it, or 0
 * if that is absent. */
static clg_status dequantize(qlinear *q, pointwise_register x, uint32_t at, pointwise_register *out)
{
    pointwise_register scale, zero;
    *out = x;
    if (pointwise_dtype(&q->group, x) != CLG_FLOAT32)
        CLG_TRY(pointwise_add_cast(&q->group, x, CLG_FLOAT32, out));
    if (lower_has_input(q->context, at + 1)) {
        CLG_TRY(add_number(q, at + 1, &zero));
        CLG_TRY(combine(q, "Sub", *out, zero, out));
    }
    CLG_TRY(add_number(q, at, &scale));
    return combine(q, "Mul", *out, scale, out);
}

/* Appends saturate(round(x / scale) + zero) and makes it the group's output. The scale is input
 * `at`, the zero point the input after it. */
static clg_status quantize(qlinear *q, pointwise_register x, uint32_t at)
{
    const clg_dtype dtype = q->context->outputs[0].dtype;
    const float unsigned_range[] = {0, 255}, signed_range[] = {-128, 127};
    pointwise_register scale, zero;
    CLG_TRY(add_number(q, at, &scale));
    CLG_TRY(combine(q, "Div", x, scale, &x));
    CLG_TRY(pointwise_add(&q->group, "RoundNear", &x, NULL, &x));
    if (lower_has_input(q->context, at + 1)) {
        CLG_TRY(add_number(q, at + 1, &zero));
        CLG_TRY(combine(q, "Add", x, zero, &x));
    }
    CLG_TRY(pointwise_add(&q->group, "Clip", &x, dtype == CLG_INT8 ? signed_range : unsigned_range,
                          &x));
    CLG_TRY(pointwise_add_cast(&q->group, x, dtype, &x));
    return pointwise_add_output(&q->group, x);
}

static clg_status finish(qlinear *q, candidate *impl, operand to, const lower_operand *what)
{
    const pointwise_binding output = {to, what};
    return pointwise_lower(q->context, impl, &q->group, q->inputs, &output);
}

static qlinear *start(lower_context *c)
{
    qlinear *q = arena_alloc(c->memory, 1, sizeof *q);
    if (q) q->context = c;
    return q;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Checks that input `at`, a scale, is present, and that it and the zero point after it are scalars.
 */
static clg_status check_numbers(const op_context *c, size_t at)
{
    if (!op_has_input(c, at))
        return op_error(c, CLG_ERROR_INVALID_MODEL, "leaves out input %zu, which is a scale", at);
    for (size_t i = at; i < at + 2; i++) {
        int64_t n;
        CLG_TRY(shape_n_elements(&op_input(c, i)->dims, &n));
        if (op_has_input(c, i) && n != DIM_UNKNOWN && n != 1)
            return op_error(c, CLG_ERROR_SHAPE, "input %zu has %" PRId64 " numbers; one is wanted",
                            i, n);
    }
    return CLG_OK;
}

/* ---- QLinearAdd, QLinearMul, QLinearSigmoid, QLinearLeakyRelu -------------------------------- */

static clg_status elements_infer(op_context *c)
{
    const qlinear_op *op = c->row->param;
    shape y = op_input(c, 0)->dims;
    for (size_t i = 0; i < (size_t)op->n_operands; i++) CLG_TRY(check_numbers(c, 3 * i + 1));
    CLG_TRY(check_numbers(c, 3 * (size_t)op->n_operands));
    if (op->n_operands == 2 && !op_has_input(c, 3))
        return op_error(c, CLG_ERROR_INVALID_MODEL, "leaves out its second operand");
    if (op->n_operands == 2)
        CLG_TRY(op_prefix(c, shape_broadcast(&op_input(c, 0)->dims, &op_input(c, 3)->dims, &y)));
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

static clg_status elements_lower(lower_context *c)
{
    const qlinear_op *op = c->row->param;
    pointwise_register r[2], x;
    qlinear *q = start(c);
    if (!q) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (uint32_t i = 0; i < (uint32_t)op->n_operands; i++) {
        CLG_TRY(add_input(q, operand_input(3 * i), lower_input(c, 3 * i), &x));
        CLG_TRY(dequantize(q, x, 3 * i + 1, &r[i]));
    }
    const float scalar = op->scalar ? node_float(c->node, op->scalar, op->fallback) : 0;
    CLG_TRY(pointwise_add(&q->group, op->def, r, op->scalar ? &scalar : NULL, &x));
    CLG_TRY(quantize(q, x, 3 * (uint32_t)op->n_operands));
    return finish(q, step_candidate(&c->build, "qlinear"), operand_output(0), &c->outputs[0]);
}

/* ---- QLinearGlobalAveragePool ---------------------------------------------------------------- */

static bool is_pooled(const node *n, int rank, int axis)
{
    return node_int(n, "channels_last", 0) != 0 ? axis > 0 && axis < rank - 1 : axis >= 2;
}

static clg_status pool_infer(op_context *c)
{
    shape y = op_input(c, 0)->dims;
    if (y.rank < 3)
        return op_error(c, CLG_ERROR_SHAPE, "takes an input of rank 3 at least, not %d", y.rank);
    CLG_TRY(check_numbers(c, 1));
    CLG_TRY(check_numbers(c, 3));
    for (int i = 0; i < y.rank; i++)
        if (is_pooled(c->node, y.rank, i)) y.dims[i] = 1;
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

static clg_status pool_lower(lower_context *c)
{
    const shape *x = &lower_input(c, 0)->dims;
    bool reduced[CLG_MAX_RANK] = {false};
    float count = 1;
    for (int i = 0; i < x->rank; i++) {
        reduced[i] = is_pooled(c->node, x->rank, i);
        if (reduced[i]) count *= (float)x->dims[i];
    }
    qlinear *q = start(c);
    if (!q) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    candidate *impl = step_candidate(&c->build, "qlinear");
    int64_t n;
    CLG_TRY(shape_n_elements(&c->outputs[0].dims, &n));
    if (n == 0) return CLG_OK;
    operand sums;
    pointwise_register v;
    lower_operand what = c->outputs[0];
    CLG_TRY(reduce_append_sum(c, impl, reduced, &sums, &what.dtype));
    CLG_TRY(add_input(q, sums, &what, &v));
    CLG_TRY(pointwise_add_cast(&q->group, v, CLG_FLOAT32, &v));
    CLG_TRY(pointwise_add(&q->group, "DivScalar", &v, &count, &v));
    CLG_TRY(dequantize(q, v, 1, &v));
    CLG_TRY(quantize(q, v, 3));
    return finish(q, impl, operand_output(0), &c->outputs[0]);
}

/* ---- QLinearAveragePool ---------------------------------------------------------------------- */

static clg_status window_pool_infer(op_context *c)
{
    const bool last = node_int(c->node, "channels_last", 0) != 0;
    const shape given = op_input(c, 0)->dims, transposed = window_channels_first(&given),
                *x = last ? &transposed : &given;
    window_desc w;
    shape y;
    CLG_TRY(check_numbers(c, 1));
    CLG_TRY(check_numbers(c, 3));
    CLG_TRY(window_read(c->node, x, NULL, &w));
    window_shape(&w, x->dims[0], x->dims[1], &y);
    if (last) y = window_channels_last(&y);
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

/* Allocates scratch for a dense float32 tensor of the shape of `like`. *out is its memory, *what
 * its description. */
static clg_status float_scratch(lower_context *c, candidate *impl, const lower_operand *like,
                                lower_operand *what, operand *out)
{
    int64_t n;
    size_t size_bytes;
    *what = (lower_operand){.dtype = CLG_FLOAT32, .dims = like->dims, .dense = true};
    shape_strides(&what->dims, what->strides);
    CLG_TRY(shape_n_elements(&what->dims, &n));
    if (!dtype_bytes(CLG_FLOAT32, n, &size_bytes))
        return lower_error(c, CLG_ERROR_SHAPE, "needs more memory than can be addressed");
    *out = step_scratch(&c->build, impl, size_bytes);
    return CLG_OK;
}

static clg_status window_pool_lower(lower_context *c)
{
    lower_operand reals, means;
    operand from = operand_input(0), to = from;
    pointwise_register v;
    int64_t n, n_x;
    qlinear *before = start(c), *after = start(c);
    if (node_int(c->node, "channels_last", 0) != 0)
        return lower_error(c, CLG_ERROR_INTERNAL,
                           "its channels were to be transposed to the front");
    if (!before || !after) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    candidate *impl = step_candidate(&c->build, "qlinear");
    CLG_TRY(shape_n_elements(&c->outputs[0].dims, &n));
    CLG_TRY(shape_n_elements(&lower_input(c, 0)->dims, &n_x));
    if (n == 0) return CLG_OK;
    if (n_x == 0) return lower_error(c, CLG_ERROR_SHAPE, "there is nothing to take the mean of");
    CLG_TRY(float_scratch(c, impl, lower_input(c, 0), &reals, &from));
    CLG_TRY(float_scratch(c, impl, &c->outputs[0], &means, &to));
    CLG_TRY(add_input(before, operand_input(0), lower_input(c, 0), &v));
    CLG_TRY(dequantize(before, v, 1, &v));
    CLG_TRY(pointwise_add_output(&before->group, v));
    CLG_TRY(finish(before, impl, from, &reals));
    CLG_TRY(pool_append_average(c, impl, from, to));
    CLG_TRY(add_input(after, to, &means, &v));
    CLG_TRY(quantize(after, v, 3));
    return finish(after, impl, operand_output(0), &c->outputs[0]);
}

/* ---- QLinearConcat --------------------------------------------------------------------------- */

static bool is_quantized(clg_dtype dtype) { return dtype == CLG_INT8 || dtype == CLG_UINT8; }

/* Index of the input of QLinearConcat that is part i. Its scale and zero point are the two inputs
 * after it. */
#define PART(i) (2 + 3 * (i))

static clg_status concat_infer(op_context *c)
{
    const size_t n = c->n_inputs / 3;
    int axis;
    shape y = op_input(c, 2)->dims;
    if (c->n_inputs % 3 != 2)
        return op_error(c, CLG_ERROR_INVALID_MODEL,
                        "takes a scale, a zero point, and three inputs for each part");
    CLG_TRY(op_prefix(c, shape_axis(node_int(c->node, "axis", 0), y.rank, "axis", &axis)));
    CLG_TRY(check_numbers(c, 0));
    for (size_t k = 0; k < n; k++) {
        const value_fact *x = op_input(c, PART(k));
        CLG_TRY(check_numbers(c, PART(k) + 1));
        if (!is_quantized(x->dtype) || op_input(c, PART(k) + 1)->dtype != CLG_FLOAT32 ||
            (op_has_input(c, PART(k) + 2) && op_input(c, PART(k) + 2)->dtype != x->dtype))
            return op_error(c, CLG_ERROR_UNSUPPORTED_DTYPE,
                            "part %zu must be int8 or uint8, with a scale of float32", k);
        if (x->dims.rank != y.rank)
            return op_error(c, CLG_ERROR_SHAPE, "part %zu has rank %d, the first one %d", k,
                            x->dims.rank, y.rank);
        for (int i = 0; k > 0 && i < y.rank; i++) {
            const int64_t a = y.dims[i], b = x->dims.dims[i];
            if (i == axis)
                y.dims[i] = a == DIM_UNKNOWN || b == DIM_UNKNOWN ? DIM_UNKNOWN : a + b;
            else if (a != DIM_UNKNOWN && b != DIM_UNKNOWN && a != b)
                return op_error(c, CLG_ERROR_SHAPE,
                                "dimension %d of part %zu is %" PRId64 ", of the first %" PRId64, i,
                                k, b, a);
        }
    }
    fact_set(&c->outputs[0], op_input(c, 1)->dtype, &y);
    return CLG_OK;
}

/* Requantises part k in scratch, copies it to index *place of the output's axis, and increases
 * *place by the part's length. */
static clg_status concat_part(lower_context *c, candidate *impl, uint32_t k, int axis,
                              int64_t *place)
{
    const lower_operand *x = lower_input(c, PART(k));
    lower_operand made = c->outputs[0];
    int64_t n, to[CLG_MAX_RANK];
    pointwise_register v;
    qlinear *q = start(c);
    if (!q) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    CLG_TRY(shape_n_elements(&x->dims, &n));
    if (n == 0) return CLG_OK;
    made.dims = x->dims;
    shape_strides(&made.dims, made.strides);
    const operand scratch = step_scratch(&c->build, impl, (size_t)n);
    CLG_TRY(add_input(q, operand_input(PART(k)), x, &v));
    CLG_TRY(dequantize(q, v, PART(k) + 1, &v));
    CLG_TRY(quantize(q, v, 0));
    CLG_TRY(finish(q, impl, scratch, &made));
    grid_dims *g = strided_grid(c->memory, x->dims.rank, x->dims.dims);
    if (!g) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    shape_strides(&c->outputs[0].dims, to);
    grid_set_strides(g, STRIDED_FROM, made.strides);
    grid_set_strides(g, STRIDED_TO, to);
    operand destination = operand_output(0);
    destination.offset_elems = *place * to[axis];
    strided_copy(c, impl, g, scratch, destination, made.dtype);
    *place += x->dims.dims[axis];
    return CLG_OK;
}

static clg_status concat_lower(lower_context *c)
{
    int axis;
    int64_t place = 0;
    CLG_TRY(shape_axis(node_int(c->node, "axis", 0), c->outputs[0].dims.rank, "axis", &axis));
    candidate *impl = step_candidate(&c->build, "qlinear");
    for (uint32_t k = 0; k < c->n_inputs / 3; k++) CLG_TRY(concat_part(c, impl, k, axis, &place));
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const qlinear_op add = {"Add", 2, NULL, 0}, mul = {"Mul", 2, NULL, 0},
                        sigmoid = {"Sigmoid", 1, NULL, 0},
                        leaky_relu = {"LeakyRelu", 1, "alpha", 0.01f};

static const op_types types[] = {
    {'T', DTYPE_BIT(CLG_INT8) | DTYPE_BIT(CLG_UINT8)}, {'S', DTYPE_BIT(CLG_FLOAT32)}, {0}};
static const op_attribute alpha[] = {{"alpha", ATTRIBUTE_FLOAT, false, OP_ANY}, {0}};
static const op_attribute axis[] = {{"axis", ATTRIBUTE_INT, true, OP_ANY}, {0}};
static const op_attribute window_attributes[] = {
    {"auto_pad", ATTRIBUTE_STRING, false, OP_WORDS(window_auto_pads)},
    {"ceil_mode", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"channels_last", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"count_include_pad", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"kernel_shape", ATTRIBUTE_INTS, true, OP_SIZE},
    {"pads", ATTRIBUTE_INTS, false, OP_PADDING},
    {"strides", ATTRIBUTE_INTS, false, OP_SIZE},
    {0}};
static const op_attribute channels_last[] = {{"channels_last", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                             {0}};

#define QLINEAR                                                                                    \
    .domain = "com.microsoft", .since = 1, OP_OUTPUTS(1, 1, "T"), .types = types,                  \
    .flags = OP_STRIDED_INPUTS
#define BINARY(op_name, op)                                                                        \
    {                                                                                              \
        .name = op_name, .grad = GRAD_NONE(GRAD_QUANTIZED), OP_INPUTS(2, 8, "TSTTSTST"),           \
        .batch = BATCH_BROADCAST(0, 3), .infer = elements_infer, .lower = elements_lower,          \
        .param = &(op), QLINEAR                                                                    \
    }
#define UNARY(op_name, op, list)                                                                   \
    {                                                                                              \
        .name = op_name, .grad = GRAD_NONE(GRAD_QUANTIZED), OP_INPUTS(2, 5, "TSTST"),              \
        .batch = BATCH_BROADCAST(0), .attributes = list, .infer = elements_infer,                  \
        .lower = elements_lower, .param = &(op), QLINEAR                                           \
    }

const op_row op_rows_qlinear[] = {
    BINARY("QLinearAdd", add),
    BINARY("QLinearMul", mul),
    UNARY("QLinearSigmoid", sigmoid, NULL),
    UNARY("QLinearLeakyRelu", leaky_relu, alpha),
    {.name = "QLinearGlobalAveragePool",
     .grad = GRAD_NONE(GRAD_QUANTIZED),
     .batch = BATCH_FIRST,
     OP_INPUTS(5, 5, "TSTST"),
     .attributes = channels_last,
     .infer = pool_infer,
     .lower = pool_lower,
     QLINEAR},
    {.name = "QLinearAveragePool",
     .grad = GRAD_NONE(GRAD_QUANTIZED),
     .batch = BATCH_FIRST,
     OP_INPUTS(2, 5, "TSTST"),
     .attributes = window_attributes,
     .check = window_check,
     .infer = window_pool_infer,
     .lower = window_pool_lower,
     QLINEAR},
    {.name = "QLinearConcat",
     .grad = GRAD_NONE(GRAD_QUANTIZED),
     .batch = BATCH_PRODUCT(batch_pass_concat, 2),
     OP_INPUTS(5, OP_ANY_NUMBER, "ST?"),
     .attributes = axis,
     .infer = concat_infer,
     .lower = concat_lower,
     QLINEAR},
};
const size_t n_op_rows_qlinear = sizeof op_rows_qlinear / sizeof *op_rows_qlinear;
