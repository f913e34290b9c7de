/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers Pad, with modes constant, edge, reflect and wrap, and CenterCropPad, which becomes a Pad
 * with pads computed from the requested shape. Negative pads crop; cropping comes before padding.
 * Kernel: cl/movement/pad.cl.
 */
#include "base/checked.h"
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/grid.h"
#include "ops/lowering/work.h"
#include "tensor/tensor.h"

#include <inttypes.h>

/* Work per work-item of the SIMD class. Estimated, not measured; checked by:
 *     cltool profile MODEL    (GB/s of pad) */
#define SIMD_CHUNK 16384 /* elements (64 KiB of float32): copying outweighs starting a work-item */

typedef enum pad_mode { PAD_CONSTANT, PAD_EDGE, PAD_REFLECT, PAD_WRAP } pad_mode;

static const char *const mode_words[] = {"constant", "edge", "reflect", "wrap", NULL};

static pad_mode read_mode(const node *n)
{
    return (pad_mode)op_word(n, "mode", "constant", mode_words);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

typedef struct pads {
    int64_t before[CLG_MAX_RANK], after[CLG_MAX_RANK];
} pads;

static clg_status spread(const int64_t *numbers, size_t n, const int64_t *axes, size_t n_axes,
                         int rank, pads *out)
{
    bool seen[CLG_MAX_RANK] = {false};
    *out = (pads){{0}, {0}};
    if (n != 2 * n_axes || n_axes > (size_t)rank)
        return error_set(CLG_ERROR_SHAPE, "pads has %zu numbers for %zu axes", n, n_axes);
    for (size_t i = 0; i < n_axes; i++) {
        int axis;
        CLG_TRY(shape_axis(axes ? axes[i] : (int64_t)i, rank, "an axis", &axis));
        if (seen[axis]) return error_set(CLG_ERROR_SHAPE, "axis %d is padded twice", axis);
        seen[axis] = true;
        if (numbers[i] < -INT32_MAX || numbers[n_axes + i] < -INT32_MAX)
            return error_set(CLG_ERROR_SHAPE, "pads of axis %d are out of range", axis);
        out->before[axis] = numbers[i];
        out->after[axis] = numbers[n_axes + i];
    }
    return CLG_OK;
}

/* Reads the pads: attribute pads (opset 2), or the values of inputs 1 (numbers) and 3 (axes). */
static clg_status read_pads(const node *n, const tensor *numbers, const tensor *axes, int rank,
                            pads *out)
{
    size_t count;
    int64_t values[OP_MAX_INTS] = {0}, axis_values[OP_MAX_INTS] = {0};
    const int64_t *given = node_ints(n, "pads", &count);
    if (given) return spread(given, count, NULL, (size_t)rank, rank, out);
    if (!numbers) return error_set(CLG_ERROR_INTERNAL, "pads are not known");
    if (numbers->n_elements > OP_MAX_INTS || (axes && axes->n_elements > OP_MAX_INTS))
        return error_set(CLG_ERROR_SHAPE, "pads or axes have too many numbers");
    for (int64_t i = 0; i < numbers->n_elements; i++) values[i] = tensor_get_int(numbers, i);
    for (int64_t i = 0; axes && i < axes->n_elements; i++) axis_values[i] = tensor_get_int(axes, i);
    return spread(values, (size_t)numbers->n_elements, axes ? axis_values : NULL,
                  axes ? (size_t)axes->n_elements : (size_t)rank, rank, out);
}

/* Computes the pads of CenterCropPad: half of the difference in length at each end, with the odd
 * element at the end of the axis. */
static clg_status centre_pads(const node *n, const shape *in, const int64_t *sizes, size_t n_sizes,
                              pads *out)
{
    size_t n_axes;
    int64_t numbers[2 * CLG_MAX_RANK] = {0};
    const int64_t *axes = node_ints(n, "axes", &n_axes);
    if (!axes) n_axes = (size_t)in->rank;
    if (n_sizes != n_axes || n_axes > (size_t)in->rank)
        return error_set(CLG_ERROR_SHAPE, "the shape has %zu numbers for %zu axes", n_sizes,
                         n_axes);
    for (size_t i = 0; i < n_axes; i++) {
        int axis;
        CLG_TRY(shape_axis(axes ? axes[i] : (int64_t)i, in->rank, "an axis", &axis));
        if (sizes[i] < 0 || sizes[i] > INT32_MAX || in->dims[axis] > INT32_MAX)
            return error_set(CLG_ERROR_SHAPE, "axis %d cannot become %" PRId64 " long", axis,
                             sizes[i]);
        if (in->dims[axis] == DIM_UNKNOWN) continue;
        const int64_t more = sizes[i] - in->dims[axis];
        numbers[i] = more / 2;
        numbers[n_axes + i] = more - more / 2;
    }
    return spread(numbers, 2 * n_axes, axes, n_axes, in->rank, out);
}

static clg_status padded_shape(const shape *in, const pads *p, pad_mode mode, shape *out)
{
    *out = *in;
    for (int i = 0; i < in->rank; i++) {
        int64_t n = in->dims[i];
        if (n == DIM_UNKNOWN) continue;
        if (!checked_add_i64(n, p->before[i], &n) || !checked_add_i64(n, p->after[i], &n) || n < 0)
            return error_set(CLG_ERROR_SHAPE,
                             "dimension %d of %" PRId64 " cannot be padded by %" PRId64
                             " and %" PRId64,
                             i, in->dims[i], p->before[i], p->after[i]);
        const int64_t removed =
            (p->before[i] < 0 ? -p->before[i] : 0) + (p->after[i] < 0 ? -p->after[i] : 0);
        if (mode != PAD_CONSTANT && n > 0 && in->dims[i] - removed <= 0)
            return error_set(CLG_ERROR_SHAPE, "dimension %d has no element to pad with", i);
        out->dims[i] = n;
    }
    return CLG_OK;
}

static clg_status pad_infer(op_context *c)
{
    pads p;
    shape out;
    pad_mode mode = PAD_CONSTANT;
    const shape *in = &c->inputs[0].dims;
    const tensor *numbers = op_has_input(c, 1) ? op_need(c, 1) : NULL;
    const tensor *axes = op_has_input(c, 3) ? op_need(c, 3) : NULL;
    mode = read_mode(c->node);
    if ((!numbers && !node_attribute(c->node, "pads")) || (op_has_input(c, 3) && !axes))
        return CLG_OK;
    clg_status status = read_pads(c->node, numbers, axes, in->rank, &p);
    if (status == CLG_OK) status = padded_shape(in, &p, mode, &out);
    if (status != CLG_OK) return op_error(c, status, "%s", error_text());
    fact_set(&c->outputs[0], c->inputs[0].dtype, &out);
    return CLG_OK;
}

static clg_status centre_infer(op_context *c)
{
    pads p;
    size_t n, n_axes;
    int64_t sizes[OP_MAX_INTS] = {0};
    clg_status status = CLG_OK;
    const shape *in = &c->inputs[0].dims;
    const int64_t *axes = node_ints(c->node, "axes", &n_axes);
    if (!op_need_ints(c, 1, sizes, &n, &status)) return status;
    status = centre_pads(c->node, in, sizes, n, &p);
    if (status != CLG_OK) return op_error(c, status, "%s", error_text());
    shape out = *in;
    for (size_t i = 0; i < n; i++) {
        int axis;
        CLG_TRY(shape_axis(axes ? axes[i] : (int64_t)i, in->rank, "an axis", &axis));
        out.dims[axis] = sizes[i];
    }
    fact_set(&c->outputs[0], c->inputs[0].dtype, &out);
    return CLG_OK;
}

/* ---- lowering -------------------------------------------------------------------------------- */

/* One dimension of the index space: lengths of output and input, number of elements padded before,
 * and the input's stride. */
typedef struct pad_dim {
    int64_t m, n, before, stride;
} pad_dim;

/* Sets out to the dimensions of the index space: those of the output, where adjacent ones are
 * merged if they have no pads and are contiguous in the input. Adds the offset of the cropped input
 * to *out_offset. Returns the number of dimensions, at least 1. */
static int merge_dims(const lower_context *c, const pads *p, pad_dim out[CLG_MAX_RANK],
                      int64_t *out_offset)
{
    const lower_operand *in = &c->inputs[0];
    int n = 0;
    for (int i = 0; i < in->dims.rank; i++) {
        const int64_t removed_before = p->before[i] < 0 ? -p->before[i] : 0,
                      removed_after = p->after[i] < 0 ? -p->after[i] : 0;
        const int64_t left = in->dims.dims[i] - removed_before - removed_after;
        pad_dim d = {c->outputs[0].dims.dims[i], left > 0 ? left : 0,
                     p->before[i] > 0 ? p->before[i] : 0, in->strides[i]};
        *out_offset += left > 0 ? removed_before * in->strides[i] : 0;
        const pad_dim *last = n > 0 ? &out[n - 1] : NULL;
        if (last && d.m == d.n && last->m == last->n && last->stride == d.stride * d.n) {
            out[n - 1] = (pad_dim){last->m * d.m, last->n * d.n, 0, d.stride};
        } else {
            out[n++] = d;
        }
    }
    if (n == 0) out[n++] = (pad_dim){1, 1, 0, 1};
    return n;
}

/* Returns the memory representation, in this floating-point dtype, of the constant of opset 2. */
static int64_t bits_of(float number, clg_dtype dtype)
{
    union {
        float f;
        double d;
        uint64_t bits;
    } u = {.bits = 0};
    switch (dtype) {
    case CLG_FLOAT32: u.f = number; return (int64_t)u.bits;
    case CLG_FLOAT64: u.d = number; return (int64_t)u.bits;
    case CLG_FLOAT16: return half_from_float(number);
    case CLG_BFLOAT16: return bfloat16_from_float(number);
    default: return 0;
    }
}

static void pad_step(lower_context *c, candidate *to, pad_mode mode, const pad_dim *dims, int n,
                     int64_t offset)
{
    const lower_operand *in = &c->inputs[0], *out = &c->outputs[0];
    const bool simd = lower_is_simd(c), has_value = mode == PAD_CONSTANT && lower_has_input(c, 2);
    const pad_dim *last = &dims[n - 1];
    int64_t total = 1, source = 1;
    for (int i = 0; i < out->dims.rank; i++) {
        total *= out->dims.dims[i];
        source *= in->dims.dims[i];
    }
    const bool wide_index = total > INT32_MAX / 2 || source > INT32_MAX / 2;
    const int vec = simd ? work_lanes(c, last->m) : 1;
    step *s = step_kernel(
        &c->build, to, "pad", "pad",
        prelude_text(
            &c->build, "P_SIZE=%d P_VEC=%d P_FP64=0 P_INDEX=%d P_RANK=%d P_MODE=%d P_VALUE=%d",
            (int)dtype_size(in->dtype), vec, wide_index ? 64 : 32, n - 1, (int)mode, has_value));
    for (int i = 0; i < n - 1; i++) {
        grid_arg(c, s, wide_index, dims[i].m);
        grid_arg(c, s, wide_index, dims[i].n);
        grid_arg(c, s, wide_index, dims[i].before);
        grid_arg(c, s, wide_index, dims[i].stride);
    }
    grid_arg(c, s, wide_index, last->m);
    grid_arg(c, s, wide_index, last->n);
    grid_arg(c, s, wide_index, last->before);
    const int64_t rows = last->m ? total / last->m : 0, chunk = simd ? SIMD_CHUNK : vec;
    const int64_t block = simd && last->m < SIMD_CHUNK && last->m > 0 ? SIMD_CHUNK / last->m : 1;
    STEP_INTS(&c->build, s, chunk, block);
    step_arg_long(&c->build, s, bits_of(node_float(c->node, "value", 0), in->dtype));
    operand data = operand_input(0);
    data.offset_elems = offset;
    STEP_BUFFERS(&c->build, s, {has_value ? operand_input(2) : operand_input(0), in->dtype},
                 {data, in->dtype}, {operand_output(0), in->dtype});
    grid_range_rows(c, s, last->m, (last->m + chunk - 1) / chunk, (rows + block - 1) / block);
    s->bytes = (double)(total + source) * (double)dtype_size(in->dtype);
}

static clg_status lower_pads(lower_context *c, pad_mode mode, const pads *p)
{
    pad_dim dims[CLG_MAX_RANK + 1];
    int64_t offset = 0;
    const int n = merge_dims(c, p, dims, &offset);
    if (shape_equal(&c->inputs[0].dims, &c->outputs[0].dims) && n == 1 && dims[0].m == dims[0].n &&
        offset == 0) {
        c->is_view = true;
        return CLG_OK;
    }
    pad_step(c, step_candidate(&c->build, "pad"), mode, dims, n, offset);
    return CLG_OK;
}

static clg_status pad_lower(lower_context *c)
{
    pads p;
    pad_mode mode = PAD_CONSTANT;
    const tensor *axes = lower_has_input(c, 3) ? c->inputs[3].known : NULL;
    mode = read_mode(c->node);
    const clg_status status = read_pads(c->node, c->n_inputs > 1 ? c->inputs[1].known : NULL, axes,
                                        c->inputs[0].dims.rank, &p);
    if (status != CLG_OK) return lower_error(c, status, "%s", error_text());
    return lower_pads(c, mode, &p);
}

static clg_status centre_lower(lower_context *c)
{
    pads p;
    int64_t sizes[OP_MAX_INTS] = {0};
    const tensor *given = c->inputs[1].known;
    const int64_t n = given && given->n_elements <= OP_MAX_INTS ? given->n_elements : 0;
    for (int64_t i = 0; i < n; i++) sizes[i] = tensor_get_int(given, i);
    const clg_status status = centre_pads(c->node, &c->inputs[0].dims, sizes, (size_t)n, &p);
    if (status != CLG_OK) return lower_error(c, status, "%s", error_text());
    return lower_pads(c, PAD_CONSTANT, &p);
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_attribute attributes[] = {{"mode", ATTRIBUTE_STRING, false, OP_WORDS(mode_words)},
                                          {"pads", ATTRIBUTE_INTS, true, OP_ANY},
                                          {"value", ATTRIBUTE_FLOAT, false, OP_ANY},
                                          {0}};
static const op_attribute attributes11[] = {{"mode", ATTRIBUTE_STRING, false, OP_WORDS(mode_words)},
                                            {0}};
static const op_attribute centre_attributes[] = {{"axes", ATTRIBUTE_INTS, false, OP_ANY}, {0}};
static const op_types floats[] = {{'T', DTYPES_FLOAT}, {0, 0}};
static const op_types types[] = {
    {'P', DTYPE_BIT(CLG_INT64)}, {'I', DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT64)}, {0, 0}};

#define PAD                                                                                        \
    .name = "Pad", OP_OUTPUTS(1, 1, "T"), .infer = pad_infer,                                      \
    .batch = BATCH_BY(batch_pass_pad, 1), .grad = GRAD_BY(grad_pass_pad), .lower = pad_lower

const op_row op_rows_pad[] = {
    {.since = 2, .until = 10, OP_INPUTS(1, 1, "T"), .types = floats, .attributes = attributes, PAD},
    {.since = 11,
     .until = 17,
     OP_INPUTS(2, 3, "TPT"),
     .types = types,
     .attributes = attributes11,
     PAD},
    {.since = 18, OP_INPUTS(2, 4, "TPTI"), .types = types, .attributes = attributes11, PAD},
    {.name = "CenterCropPad",
     .grad = GRAD_BY(grad_pass_centre),
     .since = 18,
     OP_INPUTS(2, 2, "TI"),
     OP_OUTPUTS(1, 1, "T"),
     .types = types,
     .attributes = centre_attributes,
     .infer = centre_infer,
     .lower = centre_lower},
};
const size_t n_op_rows_pad = sizeof op_rows_pad / sizeof op_rows_pad[0];
