/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers Softmax, LogSoftmax and Hardmax: from opset 13 on along one axis; before that over all
 * axes from `axis` on, as rows of a matrix. Kernels: cl/reduce/softmax.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"
#include "ops/reduce/softmax.h"

typedef struct softmax_kind {
    softmax_op op;
    bool flattens;
} softmax_kind;

static const softmax_kind softmax_1 = {SOFTMAX, true}, softmax_13 = {SOFTMAX, false};
static const softmax_kind log_softmax_1 = {LOG_SOFTMAX, true},
                          log_softmax_13 = {LOG_SOFTMAX, false};
static const softmax_kind hardmax_1 = {HARDMAX, true}, hardmax_13 = {HARDMAX, false};

static clg_status find_axis(const op_row *row, const node *n, int rank, int *out_axis)
{
    const softmax_kind *kind = row->param;
    return shape_axis(node_int(n, "axis", kind->flattens ? 1 : -1), rank, "axis", out_axis);
}

static clg_status softmax_infer(op_context *c)
{
    const value_fact *x = op_input(c, 0);
    int axis;
    if (x->dims.rank > 0 && find_axis(c->row, c->node, x->dims.rank, &axis) != CLG_OK)
        return op_error(c, CLG_ERROR_SHAPE, "axis does not fit an input of rank %d", x->dims.rank);
    fact_set(&c->outputs[0], c->outputs[0].dtype, &x->dims);
    return CLG_OK;
}

/* Sets *out to the input's shape as [outer, cols, inner], where cols are normalised. */
static clg_status collapse_shape(const lower_context *c, softmax_shape *out)
{
    const softmax_kind *kind = c->row->param;
    const shape *dims = &lower_input(c, 0)->dims;
    *out = (softmax_shape){1, 1, 1};
    int axis = 0;
    if (dims->rank > 0) CLG_TRY(find_axis(c->row, c->node, dims->rank, &axis));
    for (int i = 0; i < dims->rank; i++) {
        if (i < axis)
            out->outer *= dims->dims[i];
        else if (i == axis || kind->flattens)
            out->cols *= dims->dims[i];
        else
            out->inner *= dims->dims[i];
    }
    return CLG_OK;
}

/* P_FORM of the kernel, for rows of `cols` elements:
 *   ROWS    a work-item per row; rows are contiguous
 *   GROUPS  a work-group per row
 *   LANES   a work-item for one or more adjacent rows, one per lane of its vectors */
typedef enum softmax_form { ROWS, GROUPS, LANES } softmax_form;

static void add_step(lower_context *c, candidate *impl, const softmax_job *j, softmax_form form)
{
    static const char *const labels[] = {"softmax", "log_softmax", "hardmax"};
    static const char *const entries[] = {"softmax_rows", "softmax_groups", "softmax_lanes"};
    const softmax_shape *s = &j->dims;
    const bool simd = lower_is_simd(c);
    const int lanes = simd ? work_lanes(c, form == LANES ? s->inner : s->cols) : 1;
    const uint64_t local = form == GROUPS ? work_group_local(c, s->cols) : 1;
    step_builder *b = &c->build;
    step *k = step_kernel(b, impl, "softmax", entries[form],
                          prelude_text(b, "P_OP=%d P_FORM=%d P_LOCAL=%d P_T=%d P_VEC=%d",
                                       (int)j->op, (int)form, (int)local, (int)j->dtype, lanes));
    k->label = labels[j->op];
    STEP_BUFFERS(b, k, {j->x, j->dtype}, {j->y, j->dtype});
    STEP_INTS(b, k, s->outer, s->cols, s->inner);
    k->bytes = 3.0 * (double)(s->outer * s->cols * s->inner) * (double)dtype_size(j->dtype);
    if (form == LANES) {
        const uint64_t across = simd ? 1 : work_power_of_two(s->inner, 64);
        work_range_2d(c, k, s->cols > 0 ? (s->inner + lanes - 1) / lanes : 0, across, s->outer,
                      simd ? 1 : 64 / across);
    } else {
        work_range_groups(c, k, s->cols > 0 ? s->outer * s->inner : 0, local);
    }
}

/* Choice of the form for GPUs: LANES, if adjacent work-items then read adjacent elements, or if
 * rows are short; else GROUPS. Estimated, not measured; checked by: cltool profile MODEL on a GPU
 */
#define LANES_MIN_INNER 32 /* adjacent work-items then read whole lines of memory */
#define LANES_MAX_COLS 8   /* shorter rows leave a work-group idle */

void softmax_append(lower_context *c, candidate *impl, const softmax_job *j)
{
    const softmax_shape *s = &j->dims;
    if (lower_is_simd(c))
        add_step(c, impl, j, s->inner == 1 ? ROWS : LANES);
    else
        add_step(c, impl, j,
                 s->inner >= LANES_MIN_INNER || s->cols <= LANES_MAX_COLS ? LANES : GROUPS);
}

static clg_status softmax_lower(lower_context *c)
{
    softmax_job j = {.op = ((const softmax_kind *)c->row->param)->op,
                     .dtype = lower_input(c, 0)->dtype,
                     .x = operand_input(0),
                     .y = operand_output(0)};
    CLG_TRY(work_check_dtype(c, j.dtype));
    CLG_TRY(collapse_shape(c, &j.dims));
    softmax_append(c, step_candidate(&c->build, "softmax"), &j);
    return CLG_OK;
}

static const op_types types[] = {{'T', DTYPES_FLOAT}, {0}};
static const op_attribute attributes[] = {{"axis", ATTRIBUTE_INT, false, OP_ANY}, {0}};

#define ROW(row_name, first, last, kind, how, rule)                                                \
    {                                                                                              \
        .name = row_name, .since = first, .until = last, OP_INPUTS(1, 1, "T"),                     \
        OP_OUTPUTS(1, 1, "T"), .types = types, .attributes = attributes, .infer = softmax_infer,   \
        .lower = softmax_lower, .param = &(kind), .batch = how, .grad = rule                       \
    }

const op_row op_rows_softmax[] = {
    ROW("Softmax", 1, 12, softmax_1, BATCH_FROM("axis", 1), GRAD_BY(grad_pass_softmax)),
    ROW("Softmax", 13, 0, softmax_13, BATCH_OVER("axis", -1), GRAD_BY(grad_pass_softmax)),
    ROW("LogSoftmax", 1, 12, log_softmax_1, BATCH_FROM("axis", 1), GRAD_BY(grad_pass_log_softmax)),
    ROW("LogSoftmax", 13, 0, log_softmax_13, BATCH_OVER("axis", -1),
        GRAD_BY(grad_pass_log_softmax)),
    ROW("Hardmax", 1, 12, hardmax_1, BATCH_FROM("axis", 1), GRAD_ZERO),
    ROW("Hardmax", 13, 0, hardmax_13, BATCH_OVER("axis", -1), GRAD_ZERO),
};
const size_t n_op_rows_softmax = sizeof op_rows_softmax / sizeof *op_rows_softmax;
