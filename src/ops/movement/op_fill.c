/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers operators that compute each element from its position: Range, EyeLike, Trilu, OneHot.
 * Kernels: cl/movement/fill.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/grid.h"
#include "ops/lowering/work.h"
#include "tensor/tensor.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Elements per work-item of the SIMD class. Estimated, not measured; checked by:
 *     cltool profile MODEL    (GB/s of fill) */
#define SIMD_CHUNK 4096 /* elements */

static int64_t count(const shape *dims)
{
    int64_t n = 1;
    for (int i = 0; i < dims->rank; i++) n *= dims->dims[i];
    return n;
}

/* ---- steps ----------------------------------------------------------------------------------- */

typedef struct fill_step {
    step *step;
    bool wide_index;
    int64_t n, chunk;
} fill_step;

/* Starts a step that writes all elements of the output. dtype and parameter are P_T and P_VALUE of
 * the kernel. */
static fill_step start_step(lower_context *c, const char *entry, int dtype, int parameter)
{
    const lower_operand *out = &c->outputs[0];
    fill_step f = {.n = count(&out->dims), .chunk = lower_is_simd(c) ? SIMD_CHUNK : 1};
    const bool fp64 = dtype == CLG_FLOAT64 || parameter == CLG_FLOAT64;
    f.wide_index = f.n > INT32_MAX / 2;
    const char *prelude =
        prelude_text(&c->build, "P_T=%d P_SIZE=%d P_FP64=%d P_VALUE=%d P_INDEX=%d P_VEC=1", dtype,
                     (int)dtype_size(out->dtype), fp64, parameter, f.wide_index ? 64 : 32);
    f.step = step_kernel(&c->build, step_candidate(&c->build, entry), "fill", entry, prelude);
    f.step->bytes = (double)f.n * (double)dtype_size(out->dtype);
    return f;
}

static void finish_step(lower_context *c, const fill_step *f)
{
    step_arg_buffer(&c->build, f->step, operand_output(0), c->outputs[0].dtype);
    grid_range_1d(c, f->step, (f->n + f->chunk - 1) / f->chunk);
}

/* ---- Range ----------------------------------------------------------------------------------- */

static clg_status range_count(const tensor *start, const tensor *limit, const tensor *delta,
                              int64_t *out_n)
{
    double n;
    if (start->n_elements != 1 || limit->n_elements != 1 || delta->n_elements != 1)
        return error_set(CLG_ERROR_SHAPE, "start, limit and delta must be scalars");
    if (dtype_is_float(start->dtype)) {
        const double by = tensor_get_float(delta, 0);
        n = ceil((tensor_get_float(limit, 0) - tensor_get_float(start, 0)) / by);
        if (by == 0 || !isfinite(n))
            return error_set(CLG_ERROR_SHAPE, "no number of steps of %g goes from start to limit",
                             by);
    } else {
        const int64_t by = tensor_get_int(delta, 0), first = tensor_get_int(start, 0),
                      last = tensor_get_int(limit, 0);
        if (by == 0) return error_set(CLG_ERROR_SHAPE, "delta is 0");
        /* Unsigned, since the difference of two int64 always fits uint64. */
        const bool ahead = by > 0 ? last > first : last < first;
        const uint64_t distance =
            by > 0 ? (uint64_t)last - (uint64_t)first : (uint64_t)first - (uint64_t)last;
        const uint64_t stride = by > 0 ? (uint64_t)by : 0u - (uint64_t)by;
        const uint64_t steps = (distance - 1) / stride + 1;
        n = ahead ? (double)steps : 0;
    }
    if (n > (double)(INT64_C(1) << 48))
        return error_set(CLG_ERROR_SHAPE, "%g elements are too many", n);
    *out_n = n > 0 ? (int64_t)n : 0;
    return CLG_OK;
}

static clg_status range_infer(op_context *c)
{
    shape out = {.rank = 1, .dims = {DIM_UNKNOWN}};
    const clg_dtype dtype = c->outputs[0].dtype;
    const int64_t stash = node_int(c->node, "stash_type", CLG_FLOAT32);
    if (stash != CLG_FLOAT32 && (dtype == CLG_FLOAT16 || dtype == CLG_BFLOAT16))
        return op_error(c, CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                        "stash_type is %" PRId64 "; only 1 (float32) is supported", stash);
    const tensor *start = op_need(c, 0), *limit = op_need(c, 1), *delta = op_need(c, 2);
    if (start && limit && delta && range_count(start, limit, delta, &out.dims[0]) != CLG_OK)
        return op_error(c, CLG_ERROR_SHAPE, "%s", error_text());
    fact_set(&c->outputs[0], dtype, &out);
    return CLG_OK;
}

static clg_status range_eval(op_context *c, tensor **out_tensors)
{
    tensor *t;
    const tensor *start = c->inputs[0].known, *delta = c->inputs[2].known;
    CLG_TRY(tensor_create(start->dtype, &c->outputs[0].dims, &t));
    for (int64_t i = 0; i < t->n_elements; i++) {
        if (dtype_is_float(t->dtype))
            tensor_set_float(t, i,
                             tensor_get_float(start, 0) + (double)i * tensor_get_float(delta, 0));
        else
            tensor_set_int(t, i,
                           (int64_t)((uint64_t)tensor_get_int(start, 0) +
                                     (uint64_t)i * (uint64_t)tensor_get_int(delta, 0)));
    }
    out_tensors[0] = t;
    return CLG_OK;
}

static clg_status range_lower(lower_context *c)
{
    const clg_dtype dtype = c->outputs[0].dtype;
    CLG_TRY(work_check_dtype(c, dtype));
    const fill_step f = start_step(c, "range", dtype, 0);
    grid_arg(c, f.step, f.wide_index, f.n);
    step_arg_int(&c->build, f.step, f.chunk);
    STEP_BUFFERS(&c->build, f.step, {operand_input(0), dtype}, {operand_input(2), dtype});
    finish_step(c, &f);
    return CLG_OK;
}

/* ---- EyeLike --------------------------------------------------------------------------------- */

static clg_status eye_infer(op_context *c)
{
    if (c->inputs[0].dims.rank != 2)
        return op_error(c, CLG_ERROR_SHAPE, "takes an input of rank 2, not %d",
                        c->inputs[0].dims.rank);
    fact_set(&c->outputs[0], (clg_dtype)node_int(c->node, "dtype", c->inputs[0].dtype),
             &c->inputs[0].dims);
    return CLG_OK;
}

static int64_t one_of(clg_dtype dtype)
{
    switch (dtype) {
    case CLG_FLOAT32: return 0x3f800000;
    case CLG_FLOAT16: return 0x3c00;
    case CLG_BFLOAT16: return 0x3f80;
    case CLG_FLOAT64: return INT64_C(0x3ff0000000000000);
    default: return 1;
    }
}

static clg_status eye_lower(lower_context *c)
{
    const lower_operand *out = &c->outputs[0];
    const fill_step f = start_step(c, "eye", 0, 0);
    grid_arg(c, f.step, f.wide_index, out->dims.dims[0]);
    grid_arg(c, f.step, f.wide_index, out->dims.dims[1]);
    step_arg_int(&c->build, f.step, f.chunk);
    STEP_LONGS(&c->build, f.step, node_int(c->node, "k", 0), one_of(out->dtype));
    finish_step(c, &f);
    return CLG_OK;
}

/* ---- Trilu ----------------------------------------------------------------------------------- */

static clg_status trilu_infer(op_context *c)
{
    if (c->inputs[0].dims.rank < 2)
        return op_error(c, CLG_ERROR_SHAPE, "takes an input of rank 2 at least, not %d",
                        c->inputs[0].dims.rank);
    if (op_has_input(c, 1) && c->inputs[1].dims.rank > 1)
        return op_error(c, CLG_ERROR_SHAPE, "k must be a scalar");
    fact_set(&c->outputs[0], c->inputs[0].dtype, &c->inputs[0].dims);
    return CLG_OK;
}

static clg_status trilu_lower(lower_context *c)
{
    const shape *dims = &c->outputs[0].dims;
    if (lower_has_input(c, 1) && count(&c->inputs[1].dims) != 1)
        return lower_error(c, CLG_ERROR_SHAPE, "k must be one number");
    const fill_step f = start_step(c, "trilu", 0, lower_has_input(c, 1));
    grid_arg(c, f.step, f.wide_index, f.n);
    grid_arg(c, f.step, f.wide_index, dims->dims[dims->rank - 2]);
    grid_arg(c, f.step, f.wide_index, dims->dims[dims->rank - 1]);
    STEP_INTS(&c->build, f.step, f.chunk, node_int(c->node, "upper", 1) != 0);
    if (lower_has_input(c, 1)) step_arg_buffer(&c->build, f.step, operand_input(1), CLG_INT64);
    step_arg_buffer(&c->build, f.step, operand_input(0), c->inputs[0].dtype);
    finish_step(c, &f);
    return CLG_OK;
}

/* ---- OneHot ---------------------------------------------------------------------------------- */

static clg_status onehot_infer(op_context *c)
{
    int axis;
    int64_t depth = DIM_UNKNOWN;
    const shape *indices = &c->inputs[0].dims;
    const tensor *t = op_need(c, 1);
    shape out = {.rank = indices->rank + 1};
    if (out.rank > CLG_MAX_RANK)
        return op_error(c, CLG_ERROR_SHAPE, "the output has a rank of %d, more than %d", out.rank,
                        CLG_MAX_RANK);
    if (shape_axis(node_int(c->node, "axis", -1), out.rank, "axis", &axis) != CLG_OK)
        return op_error(c, CLG_ERROR_SHAPE, "%s", error_text());
    if (t && t->n_elements != 1) return op_error(c, CLG_ERROR_SHAPE, "depth must be a scalar");
    if (t) depth = tensor_get_int(t, 0);
    if (t && depth < 1) return op_error(c, CLG_ERROR_SHAPE, "depth is %" PRId64, depth);
    if (shape_is_known(&c->inputs[2].dims) &&
        (c->inputs[2].dims.rank != 1 || c->inputs[2].dims.dims[0] != 2))
        return op_error(c, CLG_ERROR_SHAPE, "values must be two: off and on");
    for (int i = 0; i < out.rank; i++)
        out.dims[i] = i < axis ? indices->dims[i] : i == axis ? depth : indices->dims[i - 1];
    fact_set(&c->outputs[0], c->inputs[2].dtype, &out);
    return CLG_OK;
}

static clg_status onehot_lower(lower_context *c)
{
    int axis;
    int64_t outer = 1, inner = 1;
    const shape *dims = &c->outputs[0].dims;
    CLG_TRY(work_check_dtype(c, c->inputs[0].dtype));
    CLG_TRY(shape_axis(node_int(c->node, "axis", -1), dims->rank, "axis", &axis));
    for (int i = 0; i < dims->rank; i++) {
        outer *= i < axis ? dims->dims[i] : 1;
        inner *= i > axis ? dims->dims[i] : 1;
    }
    const fill_step f = start_step(c, "onehot", 0, c->inputs[0].dtype);
    grid_arg(c, f.step, f.wide_index, outer);
    grid_arg(c, f.step, f.wide_index, dims->dims[axis]);
    grid_arg(c, f.step, f.wide_index, inner);
    step_arg_int(&c->build, f.step, f.chunk);
    step_arg_buffer(&c->build, f.step, operand_input(0), c->inputs[0].dtype);
    step_arg_buffer(&c->build, f.step, operand_input(2), c->inputs[2].dtype);
    finish_step(c, &f);
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_attribute eye_attributes[] = {
    {"dtype", ATTRIBUTE_INT, false, OP_DTYPES(DTYPES_ALL_FIXED)},
    {"k", ATTRIBUTE_INT, false, OP_ANY},
    {0}};
static const op_attribute trilu_attributes[] = {{"upper", ATTRIBUTE_INT, false, OP_BOOLEAN}, {0}};
static const op_attribute onehot_attributes[] = {{"axis", ATTRIBUTE_INT, false, OP_ANY}, {0}};
#define RANGE_TYPES                                                                                \
    (DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT64) | DTYPE_BIT(CLG_INT16) |                      \
     DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT64))
static const op_types range_types[] = {{'T', RANGE_TYPES}, {0, 0}};
static const op_types range_27_types[] = {
    {'T', RANGE_TYPES | DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_BFLOAT16)}, {0, 0}};
static const op_attribute range_attributes[] = {{"stash_type", ATTRIBUTE_INT, false, OP_ANY}, {0}};
static const op_types trilu_types[] = {{'K', DTYPE_BIT(CLG_INT64)}, {0, 0}};
static const op_types onehot_types[] = {
    {'I', DTYPES_INTEGER | DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT64)},
    {'D', DTYPES_NUMERIC},
    {0, 0}};

const op_row op_rows_fill[] = {
    {.name = "Range",
     .grad = GRAD_BY(grad_pass_range),
     .batch = BATCH_SHAPES(batch_pass_range, 0),
     .since = 27,
     OP_INPUTS(3, 3, "T"),
     OP_OUTPUTS(1, 1, "T"),
     .types = range_27_types,
     .attributes = range_attributes,
     .infer = range_infer,
     .eval = range_eval,
     .lower = range_lower},
    {.name = "Range",
     .grad = GRAD_BY(grad_pass_range),
     .batch = BATCH_SHAPES(batch_pass_range, 0),
     .since = 11,
     .until = 26,
     OP_INPUTS(3, 3, "T"),
     OP_OUTPUTS(1, 1, "T"),
     .types = range_types,
     .infer = range_infer,
     .eval = range_eval,
     .lower = range_lower},
    {.name = "EyeLike",
     .grad = GRAD_ZERO,
     .batch = BATCH_NEVER("its result depends on the number of rows"),
     .since = 9,
     OP_INPUTS(1, 1, "T"),
     OP_OUTPUTS(1, 1, "?"),
     .attributes = eye_attributes,
     .infer = eye_infer,
     .lower = eye_lower},
    {.name = "Trilu",
     .grad = GRAD_BY(grad_pass_trilu),
     .batch = BATCH_INNER(2),
     .since = 14,
     OP_INPUTS(1, 2, "TK"),
     OP_OUTPUTS(1, 1, "T"),
     .types = trilu_types,
     .attributes = trilu_attributes,
     .infer = trilu_infer,
     .lower = trilu_lower},
    {.name = "OneHot",
     .grad = GRAD_BY(grad_pass_onehot),
     .batch = OP_BATCH(.pass = batch_pass_onehot, .rows = 1, .attribute = "axis", .fallback = -1),
     .since = 9,
     OP_INPUTS(3, 3, "IDT"),
     OP_OUTPUTS(1, 1, "T"),
     .types = onehot_types,
     .attributes = onehot_attributes,
     .infer = onehot_infer,
     .lower = onehot_lower},
};
const size_t n_op_rows_fill = sizeof op_rows_fill / sizeof op_rows_fill[0];
