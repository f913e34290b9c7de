/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers QuantizeLinear and DequantizeLinear with scales per tensor, per axis or per block, and
 * DynamicQuantizeLinear, which first computes scale and zero point. Kernels: cl/quant/quantize.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"
#include "ops/quant/narrow.h"
#include "ops/quant/quantize.h"

#include <inttypes.h>
#include <string.h>

/* The mapping of scales to elements (o, a, i) of x, which is [outer, n, inner]: the index of the
 * scale is o * s_outer + a / block * s_n and, if `step` is set, + i. */
typedef struct quantize_shape {
    int64_t outer, n, inner, s_outer, s_n, block;
    bool step;
} quantize_shape;

/* SCALES: dtypes of unquantised values and of scales; QUANTIZED: dtypes of quantised values. */
#define SCALES (DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_BFLOAT16))
#define QUANTIZED                                                                                  \
    (DTYPE_BIT(CLG_INT8) | DTYPE_BIT(CLG_UINT8) | DTYPE_BIT(CLG_INT16) | DTYPE_BIT(CLG_UINT16) |   \
     DTYPES_FLOAT8 | DTYPES_PACKED)

static bool is_one_number(const shape *s)
{
    return s->rank == 0 || (s->rank == 1 && s->dims[0] == 1);
}

static int64_t block_size(const node *n) { return node_int(n, "block_size", 0); }

/* ---- shapes ---------------------------------------------------------------------------------- */

static clg_status check_blocks(const op_context *c, const shape *x, const shape *scale, int axis)
{
    const int64_t block = block_size(c->node);
    bool fits = scale->rank == x->rank;
    for (int i = 0; fits && i < x->rank; i++) {
        const int64_t wanted =
            i == axis && x->dims[i] != DIM_UNKNOWN ? (x->dims[i] + block - 1) / block : x->dims[i];
        fits = wanted == DIM_UNKNOWN || scale->dims[i] == DIM_UNKNOWN || wanted == scale->dims[i];
    }
    return fits
               ? CLG_OK
               : op_error(c, CLG_ERROR_SHAPE,
                          "the scales do not fit blocks of %" PRId64 " along axis %d", block, axis);
}

static clg_status check_scales(const op_context *c)
{
    const shape *x = &op_input(c, 0)->dims, *scale = &op_input(c, 1)->dims,
                *zero = &op_input(c, 2)->dims;
    int axis;
    if (op_has_input(c, 2) && shape_is_known(scale) && shape_is_known(zero) &&
        !shape_equal(scale, zero) && !(is_one_number(scale) && is_one_number(zero)))
        return op_error(c, CLG_ERROR_SHAPE, "scale and zero point have different shapes");
    if (is_one_number(scale) && block_size(c->node) == 0) return CLG_OK;
    if (shape_axis(node_int(c->node, "axis", 1), x->rank, "axis", &axis) != CLG_OK)
        return op_error(c, CLG_ERROR_SHAPE, "axis does not fit an input of rank %d", x->rank);
    if (block_size(c->node) > 0) return check_blocks(c, x, scale, axis);
    if (scale->rank != 1)
        return op_error(c, CLG_ERROR_SHAPE, "the scale has rank %d; a number or a list is wanted",
                        scale->rank);
    if (scale->dims[0] != DIM_UNKNOWN && x->dims[axis] != DIM_UNKNOWN &&
        scale->dims[0] != x->dims[axis])
        return op_error(c, CLG_ERROR_SHAPE,
                        "there are %" PRId64 " scales for %" PRId64 " along axis %d",
                        scale->dims[0], x->dims[axis], axis);
    return CLG_OK;
}

static bool is_one_of(clg_dtype dtype, dtype_set set)
{
    return dtype > CLG_DTYPE_NONE && dtype < 32 && (DTYPE_BIT(dtype) & set) != 0;
}

static clg_status quantize_infer(op_context *c)
{
    const int64_t requested = node_int(c->node, "output_dtype", 0);
    clg_dtype dtype = requested ? (clg_dtype)requested : CLG_UINT8;
    if (op_has_input(c, 2)) dtype = op_input(c, 2)->dtype;
    if (op_has_input(c, 2) && requested && dtype != CLG_DTYPE_NONE && (clg_dtype)requested != dtype)
        return op_error(c, CLG_ERROR_INVALID_MODEL, "output_dtype is not that of the zero point");
    if (dtype != CLG_DTYPE_NONE && !is_one_of(dtype, QUANTIZED)) {
        char names[DTYPE_SET_TEXT_BYTES];
        return op_error(c, CLG_ERROR_UNSUPPORTED_DTYPE,
                        "quantising to %s is not supported; supported are %s", dtype_name(dtype),
                        dtype_set_text(QUANTIZED, names));
    }
    CLG_TRY(check_scales(c));
    fact_set(&c->outputs[0], dtype, &op_input(c, 0)->dims);
    return CLG_OK;
}

static clg_status dequantize_infer(op_context *c)
{
    const int64_t requested = node_int(c->node, "output_dtype", 0);
    const clg_dtype dtype = requested ? (clg_dtype)requested : op_input(c, 1)->dtype;
    if (dtype != CLG_DTYPE_NONE && !is_one_of(dtype, SCALES))
        return op_error(c, CLG_ERROR_UNSUPPORTED_DTYPE,
                        "an output of %s is not supported; float32, float16 and bfloat16 are",
                        dtype_name(dtype));
    CLG_TRY(check_scales(c));
    fact_set(&c->outputs[0], dtype, &op_input(c, 0)->dims);
    return CLG_OK;
}

/* ---- lowering -------------------------------------------------------------------------------- */

static clg_status measure(const lower_context *c, quantize_shape *q)
{
    const shape *x = &lower_input(c, 0)->dims, *scale = &lower_input(c, 1)->dims;
    const int64_t block = block_size(c->node);
    int axis;
    *q = (quantize_shape){.outer = 1, .n = 1, .inner = shape_product(x, 0, x->rank), .block = 1};
    if (is_one_number(scale) && block == 0) return CLG_OK;
    CLG_TRY(shape_axis(node_int(c->node, "axis", 1), x->rank, "axis", &axis));
    q->outer = shape_product(x, 0, axis);
    q->n = x->dims[axis];
    q->inner = shape_product(x, axis + 1, x->rank);
    if (block == 0 && q->inner == 1) { /* adjacent elements have different scales */
        *q = (quantize_shape){.outer = q->outer, .n = 1, .inner = q->n, .block = 1, .step = true};
    } else if (block == 0) {
        q->s_n = 1;
    } else if (q->inner == 1 && q->n % block == 0) { /* a block is a row */
        *q = (quantize_shape){
            .outer = 1, .n = q->outer * (q->n / block), .inner = block, .s_n = 1, .block = 1};
    } else {
        q->block = block;
        q->s_outer = (q->n + block - 1) / block * q->inner;
        q->s_n = q->inner;
        q->step = q->inner > 1;
    }
    return CLG_OK;
}

/* The operands and dtypes of QuantizeLinear or DequantizeLinear; `zero` is only set with has_zero.
 */
typedef struct quantize_operands {
    operand x, y, scale, zero;
    clg_dtype in, out, scale_dtype;
    clg_dtype quotient; /* dtype to which x / scale is rounded */
    int saturate;       /* P_SATURATE of quant/narrow.clh */
    bool has_zero;
} quantize_operands;

static const char *prelude_of(lower_context *c, const quantize_shape *q, const quantize_operands *o,
                              int local, int lanes)
{
    return prelude_text(&c->build,
                        "P_IN=%d P_OUT=%d P_S=%d P_ZERO=%d P_QUOTIENT=%d P_SATURATE=%d P_STEP=%d "
                        "P_LOCAL=%d P_VEC=%d",
                        (int)o->in, (int)o->out, (int)o->scale_dtype, o->has_zero, (int)o->quotient,
                        o->saturate, q->step, local, lanes);
}

static void set_range(lower_context *c, step *s, const quantize_shape *q, int lanes)
{
    const int64_t rows = q->outer * q->n, across = (q->inner + lanes - 1) / lanes;
    if (lower_is_simd(c)) {
        /* Long rows are divided so that all cores have work: into pieces of 512 vectors
         * where there are fewer than 8 rows for each core. Estimated, not measured. */
        const int64_t pieces = rows >= 8 * work_units(c) ? 1 : (across + 511) / 512;
        work_range_2d(c, s, q->inner > 0 ? pieces : 0, 1, rows, q->inner < 256 ? 16 : 1);
    } else {
        work_range_rows(c, s, across, rows);
    }
}

static void add_step(lower_context *c, candidate *impl, const quantize_shape *q,
                     const quantize_operands *o)
{
    step_builder *b = &c->build;
    const bool down = is_one_of(o->out, SCALES), packed = !down && narrow_is_packed(o->out);
    const int lanes = lower_is_simd(c) && !packed ? work_lanes(c, q->inner) : 1;
    const clg_dtype quantized = down ? o->in : o->out;
    const int64_t rows = q->outer * q->n, total = rows * q->inner;
    step *s = step_kernel(b, impl, "quantize",
                          down     ? "dequantize"
                          : packed ? "quantize_packed"
                                   : "quantize",
                          prelude_of(c, q, o, 1, lanes));
    STEP_BUFFERS(b, s, {o->x, o->in}, {o->y, o->out}, {o->scale, o->scale_dtype},
                 {o->has_zero ? o->zero : o->x, o->has_zero ? quantized : o->in});
    STEP_INTS(b, s, rows, q->n, q->inner);
    STEP_LONGS(b, s, q->s_outer, q->s_n);
    step_arg_int(b, s, q->block);
    s->bytes = (double)total * (dtype_find(o->in)->bits + dtype_find(o->out)->bits) / 8;
    if (!packed) {
        set_range(c, s, q, lanes);
        return;
    }
    step_arg_long(b, s, total);
    work_range_1d(c, s, (total + 7) / 8, lower_is_simd(c) ? 16 : 64);
}

/* Returns the dtype to which x / scale is rounded: that of attribute `precision`, else from opset
 * 23 on that of the scale, before that float32. */
static clg_dtype quotient_dtype(const lower_context *c)
{
    const int64_t requested = node_int(c->node, "precision", 0);
    const clg_dtype scale = lower_input(c, 1)->dtype;
    if (requested) return (clg_dtype)requested;
    return c->row->since >= 23 && is_one_of(scale, SCALES) ? scale : CLG_FLOAT32;
}

static clg_status quantize_lower(lower_context *c)
{
    quantize_shape q;
    CLG_TRY(measure(c, &q));
    const quantize_operands o = {.x = operand_input(0),
                                 .y = operand_output(0),
                                 .scale = operand_input(1),
                                 .zero = operand_input(2),
                                 .in = lower_input(c, 0)->dtype,
                                 .out = c->outputs[0].dtype,
                                 .scale_dtype = lower_input(c, 1)->dtype,
                                 .quotient = quotient_dtype(c),
                                 .saturate = narrow_saturation(c->node),
                                 .has_zero = lower_has_input(c, 2)};
    add_step(c, step_candidate(&c->build, "quantize"), &q, &o);
    return CLG_OK;
}

/* ---- DynamicQuantizeLinear ------------------------------------------------------------------- */

static clg_status dynamic_infer(op_context *c)
{
    const shape one = {.rank = 0};
    fact_set(&c->outputs[0], CLG_UINT8, &op_input(c, 0)->dims);
    if (c->n_outputs > 1) fact_set(&c->outputs[1], CLG_FLOAT32, &one);
    if (c->n_outputs > 2) fact_set(&c->outputs[2], CLG_UINT8, &one);
    return CLG_OK;
}

clg_status quantize_check_list(const op_context *c, uint32_t input, int64_t n, const char *what)
{
    int64_t count;
    if (input == 0 || !op_has_input(c, input)) return CLG_OK;
    CLG_TRY(shape_n_elements(&op_input(c, input)->dims, &count));
    if (count == 1 || !dims_differ(count, n)) return CLG_OK;
    return op_error(c, CLG_ERROR_SHAPE, "%s has %" PRId64 " numbers; 1 or %" PRId64 " are wanted",
                    what, count, n);
}

/* How the reduction of x to minimum and maximum is divided. Estimated, not measured; checked by:
 *     cltool profile MODEL    (of a model with DynamicQuantizeLinear) */
#define PART_ELEMENTS 4096    /* fewest elements of a part: 16 KiB */
#define SIMD_PARTS_PER_UNIT 4 /* parts per core, to balance the load */
#define SIMT_MAX_PARTS 64     /* a single work-item combines the parts */

void quantize_append_dynamic(lower_context *c, candidate *impl, operand x, int64_t n, operand y,
                             operand scale, operand zero)
{
    step_builder *b = &c->build;
    const bool simd = lower_is_simd(c);
    const int lanes = simd ? work_lanes(c, n) : 1, local = simd ? 1 : (int)work_local(c, 128, 128);
    const int64_t max = simd ? SIMD_PARTS_PER_UNIT * work_units(c) : SIMT_MAX_PARTS,
                  pieces = (n + PART_ELEMENTS - 1) / PART_ELEMENTS;
    const int64_t groups = pieces < 1 ? 1 : pieces < max ? pieces : max;
    const operand parts = step_scratch(b, impl, (size_t)groups * 2 * sizeof(float));
    const quantize_operands o = {.x = x,
                                 .y = y,
                                 .scale = scale,
                                 .zero = zero,
                                 .in = CLG_FLOAT32,
                                 .out = CLG_UINT8,
                                 .scale_dtype = CLG_FLOAT32,
                                 .quotient = CLG_FLOAT32,
                                 .saturate = 1,
                                 .has_zero = true};
    const quantize_shape q = {.outer = 1, .n = 1, .inner = n, .block = 1};
    const char *prelude = prelude_of(c, &q, &o, local, lanes);
    step *s = step_kernel(b, impl, "quantize", "range_parts", prelude);
    step_arg_int(b, s, n);
    STEP_BUFFERS(b, s, {o.x, CLG_FLOAT32}, {parts, CLG_FLOAT32});
    s->bytes = (double)n * sizeof(float);
    s->fixed_groups = true;
    work_range_groups(c, s, groups, (uint64_t)local);
    step *last = step_kernel(b, impl, "quantize", "range_last", prelude);
    step_arg_int(b, last, groups);
    STEP_BUFFERS(b, last, {parts, CLG_FLOAT32}, {o.scale, CLG_FLOAT32}, {o.zero, CLG_UINT8});
    work_range_1d(c, last, 1, 1);
    add_step(c, impl, &q, &o);
}

static clg_status dynamic_lower(lower_context *c)
{
    const shape *x = &lower_input(c, 0)->dims;
    const int64_t n = shape_product(x, 0, x->rank);
    candidate *impl = step_candidate(&c->build, "dynamic_quantize");
    const operand y = work_output_or_scratch(c, impl, 0, (size_t)n),
                  scale = work_output_or_scratch(c, impl, 1, sizeof(float)),
                  zero = work_output_or_scratch(c, impl, 2, 1);
    quantize_append_dynamic(c, impl, operand_input(0), n, y, scale, zero);
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

/* float8e8m0 is supported for scales only. */
#define ALL_SCALES (SCALES | DTYPE_BIT(CLG_FLOAT8E8M0))
static const op_types types[] = {
    {'T', SCALES | DTYPE_BIT(CLG_INT32)}, {'S', ALL_SCALES}, {'Q', QUANTIZED}, {0}};
static const op_types dequantize_types[] = {
    {'Q', QUANTIZED | DTYPE_BIT(CLG_INT32)}, {'S', ALL_SCALES}, {0}};
static const op_types dynamic_types[] = {{'T', DTYPE_BIT(CLG_FLOAT32)}, {0}};

static const op_attribute axis_13[] = {{"axis", ATTRIBUTE_INT, false, OP_ANY}, {0}};
static const op_attribute axis_19[] = {
    {"axis", ATTRIBUTE_INT, false, OP_ANY}, {"saturate", ATTRIBUTE_INT, false, OP_BOOLEAN}, {0}};
static const op_attribute blocks_21[] = {
    {"axis", ATTRIBUTE_INT, false, OP_ANY},
    {"block_size", ATTRIBUTE_INT, false, OP_BETWEEN(0, INT32_MAX)},
    {"output_dtype", ATTRIBUTE_INT, false, OP_DTYPES(QUANTIZED | DTYPE_BIT(CLG_DTYPE_NONE))},
    {"saturate", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"precision", ATTRIBUTE_INT, false, OP_DTYPES(SCALES | DTYPE_BIT(CLG_DTYPE_NONE))},
    {0}};
static const op_attribute dequantize_21[] = {
    {"axis", ATTRIBUTE_INT, false, OP_ANY},
    {"block_size", ATTRIBUTE_INT, false, OP_BETWEEN(0, INT32_MAX)},
    {"output_dtype", ATTRIBUTE_INT, false, OP_DTYPES(SCALES | DTYPE_BIT(CLG_DTYPE_NONE))},
    {0}};

#define QUANTIZE                                                                                   \
    .name = "QuantizeLinear", .grad = GRAD_NONE(GRAD_QUANTIZED), OP_INPUTS(2, 3, "TSQ"),           \
    OP_OUTPUTS(1, 1, "?"), .types = types, .infer = quantize_infer,                                \
    .batch = BATCH_BY(batch_pass_quantize, 1), .lower = quantize_lower
#define DEQUANTIZE                                                                                 \
    .name = "DequantizeLinear", .grad = GRAD_NONE(GRAD_QUANTIZED), OP_INPUTS(2, 3, "QSQ"),         \
    OP_OUTPUTS(1, 1, "?"), .types = dequantize_types, .infer = dequantize_infer,                   \
    .batch = BATCH_BY(batch_pass_quantize, 1), .lower = quantize_lower

const op_row op_rows_quantize[] = {
    {QUANTIZE, .since = 10, .until = 12},
    {QUANTIZE, .since = 13, .until = 18, .attributes = axis_13},
    {QUANTIZE, .since = 19, .until = 20, .attributes = axis_19},
    {QUANTIZE, .since = 21, .until = 22, .attributes = blocks_21},
    {QUANTIZE, .since = 23, .attributes = blocks_21},
    {QUANTIZE, .domain = "com.microsoft", .since = 1, .attributes = blocks_21},
    {DEQUANTIZE, .since = 10, .until = 12},
    {DEQUANTIZE, .since = 13, .until = 20, .attributes = axis_13},
    {DEQUANTIZE, .since = 21, .attributes = dequantize_21},
    {DEQUANTIZE, .domain = "com.microsoft", .since = 1, .attributes = dequantize_21},
    {.name = "DynamicQuantizeLinear",
     .grad = GRAD_NONE(GRAD_QUANTIZED),
     .batch = BATCH_NEVER("it finds one scale for all rows together"),
     .since = 11,
     OP_INPUTS(1, 1, "T"),
     OP_OUTPUTS(3, 3, "???"),
     .types = dynamic_types,
     .infer = dynamic_infer,
     .lower = dynamic_lower},
};
const size_t n_op_rows_quantize = sizeof op_rows_quantize / sizeof *op_rows_quantize;
