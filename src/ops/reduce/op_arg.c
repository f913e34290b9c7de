/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers ArgMax, ArgMin, CumSum and CumProd: reductions and scans along one axis; and the internal
 * clgraph.LinearScan, y[k] = a[k] y[k-1] + b[k] along an axis, which gradients add. Kernels:
 * cl/reduce/arg.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/grid.h"
#include "ops/lowering/work.h"
#include "tensor/tensor.h"

#include <string.h>

#define SIMD_LANES 16       /* P_LANES: adjacent columns per work-item */
#define GROUP_MIN_LENGTH 64 /* shortest row for a GPU's work-group; estimated, not measured */

/* The input's shape as [outer, n, inner], where n is the length of the axis. */
typedef struct axis_walk {
    int64_t outer, n, inner;
} axis_walk;

static axis_walk walk_along(const shape *dims, int axis)
{
    axis_walk w = {1, dims->rank ? dims->dims[axis] : 1, 1};
    for (int i = 0; i < dims->rank; i++) {
        w.outer *= i < axis ? dims->dims[i] : 1;
        w.inner *= i > axis ? dims->dims[i] : 1;
    }
    return w;
}

static void emit(lower_context *c, const char *entry, const axis_walk *w, bool max, bool last,
                 int group, bool exclusive, bool reverse, bool product)
{
    step_builder *b = &c->build;
    const clg_dtype dtype = c->inputs[0].dtype;
    const bool simd = lower_is_simd(c);
    const int lanes = simd && w->inner > 1 ? SIMD_LANES : 1;
    const bool wide_index =
        w->inner > 0 && w->outer > 0 && w->n > INT32_MAX / 2 / w->inner / w->outer;
    const char *prelude =
        prelude_text(b,
                     "P_T=%d P_FP64=%d P_MAX=%d P_LAST=%d P_GROUP=%d P_LANES=%d P_EXCLUSIVE=%d "
                     "P_REVERSE=%d P_PRODUCT=%d P_INDEX=%d P_VEC=1",
                     (int)dtype, dtype == CLG_FLOAT64, max, last, group, lanes, exclusive, reverse,
                     product, wide_index ? 64 : 32);
    const bool linear = strcmp(entry, "linear_scan") == 0;
    step *s = step_kernel(b, step_candidate(b, entry), "arg", entry, prelude);
    grid_arg(c, s, wide_index, w->outer);
    grid_arg(c, s, wide_index, w->n);
    grid_arg(c, s, wide_index, w->inner);
    STEP_BUFFERS(b, s, {operand_input(0), dtype});
    if (linear) STEP_BUFFERS(b, s, {operand_input(1), dtype});
    STEP_BUFFERS(b, s, {operand_output(0), c->outputs[0].dtype});
    grid_range_1d(c, s, w->outer * (group > 1 ? group : (w->inner + lanes - 1) / lanes));
    s->bytes = (double)w->outer * (double)w->n * (double)w->inner * (double)dtype_size(dtype);
}

/* ---- ArgMax, ArgMin -------------------------------------------------------------------------- */

static clg_status arg_infer(op_context *c)
{
    int axis;
    const shape *in = &c->inputs[0].dims;
    const bool keep = node_int(c->node, "keepdims", 1) != 0;
    shape out = {.rank = 0};
    if (shape_axis(node_int(c->node, "axis", 0), in->rank, "axis", &axis) != CLG_OK)
        return op_error(c, CLG_ERROR_SHAPE, "%s", error_text());
    if (in->dims[axis] == 0)
        return op_error(c, CLG_ERROR_SHAPE,
                        "axis %d is empty: nothing in it is largest or smallest", axis);
    for (int i = 0; i < in->rank; i++)
        if (i != axis || keep) out.dims[out.rank++] = i == axis ? 1 : in->dims[i];
    fact_set(&c->outputs[0], CLG_INT64, &out);
    return CLG_OK;
}

static clg_status arg_lower(lower_context *c)
{
    int axis;
    const bool max = *(const bool *)c->row->param,
               last = node_int(c->node, "select_last_index", 0) != 0;
    CLG_TRY(work_check_dtype(c, c->inputs[0].dtype));
    CLG_TRY(shape_axis(node_int(c->node, "axis", 0), c->inputs[0].dims.rank, "axis", &axis));
    const axis_walk w = walk_along(&c->inputs[0].dims, axis);
    const bool in_groups = !lower_is_simd(c) && w.inner == 1 && w.n >= GROUP_MIN_LENGTH;
    const int group = in_groups ? (int)grid_local(c) : 1;
    emit(c, "arg", &w, max, last, group, false, false, false);
    return CLG_OK;
}

/* ---- CumSum, CumProd ------------------------------------------------------------------------- */

static clg_status find_axis(const tensor *t, int rank, int *out_axis)
{
    if (t->n_elements != 1) return error_set(CLG_ERROR_SHAPE, "axis must be a scalar");
    return shape_axis(tensor_get_int(t, 0), rank, "axis", out_axis);
}

static clg_status scan_infer(op_context *c)
{
    int axis;
    const tensor *t = op_need(c, 1);
    if (t && find_axis(t, c->inputs[0].dims.rank, &axis) != CLG_OK)
        return op_error(c, CLG_ERROR_SHAPE, "%s", error_text());
    fact_set(&c->outputs[0], c->inputs[0].dtype, &c->inputs[0].dims);
    return CLG_OK;
}

static clg_status scan_lower(lower_context *c)
{
    int axis;
    CLG_TRY(work_check_dtype(c, c->inputs[0].dtype));
    CLG_TRY(find_axis(c->inputs[1].known, c->inputs[0].dims.rank, &axis));
    const axis_walk w = walk_along(&c->inputs[0].dims, axis);
    emit(c, "scan", &w, false, false, 1, node_int(c->node, "exclusive", 0) != 0,
         node_int(c->node, "reverse", 0) != 0, *(const bool *)c->row->param);
    return CLG_OK;
}

/* ---- LinearScan ------------------------------------------------------------------------------ */

static clg_status linear_infer(op_context *c)
{
    int axis;
    const tensor *t = op_need(c, 2);
    const shape *a = &c->inputs[0].dims, *b = &c->inputs[1].dims;
    if (t && find_axis(t, a->rank, &axis) != CLG_OK)
        return op_error(c, CLG_ERROR_SHAPE, "%s", error_text());
    if (shape_is_known(a) && shape_is_known(b) && !shape_equal(a, b))
        return op_error(c, CLG_ERROR_SHAPE, "factors and summands have different shapes");
    fact_set(&c->outputs[0], c->inputs[0].dtype, b);
    return CLG_OK;
}

static clg_status linear_lower(lower_context *c)
{
    int axis;
    CLG_TRY(work_check_dtype(c, c->inputs[0].dtype));
    CLG_TRY(find_axis(c->inputs[2].known, c->inputs[0].dims.rank, &axis));
    const axis_walk w = walk_along(&c->inputs[0].dims, axis);
    emit(c, "linear_scan", &w, false, false, 1, false, node_int(c->node, "reverse", 0) != 0, false);
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_attribute arg_attributes[] = {
    {"axis", ATTRIBUTE_INT, false, OP_ANY},
    {"keepdims", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"select_last_index", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {0}};
static const op_attribute scan_attributes[] = {{"exclusive", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                               {"reverse", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                               {0}};
static const op_types arg_types[] = {{'T', DTYPES_NUMERIC}, {'I', DTYPE_BIT(CLG_INT64)}, {0, 0}};
static const op_types scan_types[] = {{'T', DTYPES_FLOAT | DTYPE_BIT(CLG_INT32) |
                                                DTYPE_BIT(CLG_INT64) | DTYPE_BIT(CLG_UINT32) |
                                                DTYPE_BIT(CLG_UINT64)},
                                      {'A', DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT64)},
                                      {0, 0}};

static const op_attribute linear_attributes[] = {{"reverse", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                                 {0}};
static const op_types linear_types[] = {
    {'T', DTYPES_FLOAT}, {'A', DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT64)}, {0, 0}};

#define ARG(op_name, is_max)                                                                       \
    {                                                                                              \
        .name = op_name, .since = 1, OP_INPUTS(1, 1, "T"), OP_OUTPUTS(1, 1, "I"),                  \
        .types = arg_types, .attributes = arg_attributes, .infer = arg_infer,                      \
        .batch = BATCH_BY(batch_pass_arg, 1), .grad = GRAD_ZERO, .lower = arg_lower,               \
        .param = &(const bool)                                                                     \
        {                                                                                          \
            is_max                                                                                 \
        }                                                                                          \
    }

#define SCAN(op_name, first, is_product, how)                                                      \
    {                                                                                              \
        .name = op_name, .since = first, OP_INPUTS(2, 2, "TA"), OP_OUTPUTS(1, 1, "T"),             \
        .types = scan_types, .attributes = scan_attributes, .infer = scan_infer,                   \
        .batch = BATCH_OVER_INPUT(1, 0), .grad = how, .lower = scan_lower, .param = &(const bool)  \
        {                                                                                          \
            is_product                                                                             \
        }                                                                                          \
    }

const op_row op_rows_arg[] = {
    ARG("ArgMax", true),
    ARG("ArgMin", false),
    SCAN("CumSum", 11, false, GRAD_BY(grad_pass_cumsum)),
    SCAN("CumProd", 26, true, GRAD_BY(grad_pass_cumprod)),
    {.name = "LinearScan",
     .domain = "clgraph",
     .since = 1,
     .grad = GRAD_BY(grad_pass_linear_scan),
     OP_INPUTS(3, 3, "TTA"),
     OP_OUTPUTS(1, 1, "T"),
     .types = linear_types,
     .attributes = linear_attributes,
     .infer = linear_infer,
     .lower = linear_lower},
};
const size_t n_op_rows_arg = sizeof op_rows_arg / sizeof op_rows_arg[0];
