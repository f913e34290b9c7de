/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers MaxPool, AveragePool and LpPool over one to three axes. Kernels: cl/vision/pool.cl and
 * pool_blocked.cl. Global pools are reductions (op_reduce.c).
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/window.h"
#include "ops/lowering/work.h"
#include "ops/vision/pool.h"

typedef enum pool_op {
    POOL_MAX,
    POOL_AVERAGE,
    POOL_AVERAGE_PADDED,
    POOL_LP
} pool_op; /* P_OP of cl/vision/pool.cl */

static const pool_op pool_max = POOL_MAX, pool_average = POOL_AVERAGE, pool_lp = POOL_LP;

static clg_status pool_infer(op_context *c)
{
    const value_fact *x = op_input(c, 0);
    window_desc w;
    shape y;
    CLG_TRY(window_read(c->node, &x->dims, NULL, &w));
    window_shape(&w, x->dims.dims[0], x->dims.dims[1], &y);
    for (size_t i = 0; i < c->n_outputs; i++) fact_set(&c->outputs[i], c->outputs[i].dtype, &y);
    return CLG_OK;
}

/* Returns the kernel's P_P: p for LpPool with p of 1 or 2, which need no pow(); else 0. */
static int power_form(pool_op op, int64_t p)
{
    return op == POOL_LP && (p == 1 || p == 2) ? (int)p : 0;
}

static void add_sizes(step_builder *b, step *k, const window_axis *axes)
{
    for (int i = 0; i < WINDOW_MAX_AXES; i++) {
        const window_axis *a = &axes[i];
        STEP_INTS(b, k, a->in, a->out, a->kernel, a->stride, a->dilation, a->pad_begin, a->pad_end);
    }
}

/* A pooling of x to y, in this dtype. indices: also writes output 1, which only MaxPool has. */
typedef struct pool_job {
    pool_op op;
    operand x, y;
    clg_dtype dtype;
    bool indices;
} pool_job;

/* How the kernels pool_rows and pool_blocked are divided. Estimated, not measured; checked by:
 *     cltool profile MODEL    (of GoogLeNet, GB/s of its pools) */
#define LINE_ROOM 4096    /* P_LINE: floats of a work-item's buffer of rows: half of a 32 KiB L1 */
#define GROUPS_PER_UNIT 8 /* at least this many work-items per core; balances the load */

/* The kernels: an output, a few rows of outputs, or a few rows of vectors for each work-item. */
typedef enum pool_form { POOL_ITEMS, POOL_ROWS, POOL_BLOCKED } pool_form; /* P_FORM */

static const struct {
    const char *source, *entry;
} kernels[] = {[POOL_ITEMS] = {"pool", "pool_items"},
               [POOL_ROWS] = {"pool", "pool_rows"},
               [POOL_BLOCKED] = {"pool_blocked", "pool_blocked"}};

/* Returns how many of n_rows rows a work-item computes for all compute units to be busy. */
static int64_t rows_share(const lower_context *c, int64_t n_rows)
{
    return work_ceil_div(n_rows, GROUPS_PER_UNIT * work_units(c));
}

/* Returns how many output rows a work-item of pool_rows computes, with vectors of `lanes` elements:
 * as many as fit P_LINE, but few enough to keep all compute units busy; 0 if not even one fits. */
static int64_t rows_at_once(const lower_context *c, const window_axis *w, int lanes, int64_t n_rows)
{
    const int64_t length = window_seen(w, w->out) + lanes;
    const int64_t max = LINE_ROOM / length, share = rows_share(c, n_rows);
    return share < max && share > 0 ? share : max;
}

/* Returns whether elements of a vector are never in the same window, and windows of vectors fit in
 * a line: what pool_blocked needs. */
static bool is_blocked(const window_axis *axes, int lanes)
{
    const window_axis *w = &axes[2];
    return w->in == lanes && w->out == lanes && w->kernel == 1 && w->stride == 1 &&
           w->pad_begin == 0 && window_seen(&axes[1], 1) <= LINE_ROOM / lanes;
}

/* Chooses the kernel. *at_once: rows of outputs of a work-item; 0 for POOL_ITEMS. */
static pool_form choose_form(const lower_context *c, const pool_job *j, const window_axis *axes,
                             int64_t planes, int64_t *at_once)
{
    const int64_t n_rows = axes[0].out * axes[1].out;
    const int lanes = work_lanes(c, axes[2].out);
    *at_once = 0;
    if (!lower_is_simd(c) || j->indices || axes[2].out < 4) return POOL_ITEMS;
    if (is_blocked(axes, lanes)) {
        const int64_t share = rows_share(c, planes * axes[0].out);
        *at_once = share < 1 ? 1 : work_min(share, axes[0].out);
        return POOL_BLOCKED;
    }
    *at_once = rows_at_once(c, &axes[2], lanes, planes * n_rows);
    return *at_once > 0 ? POOL_ROWS : POOL_ITEMS;
}

/* Appends the step of a pool to `impl`, or to a new candidate if impl is NULL. */
static clg_status add_pool(lower_context *c, candidate *impl, const pool_job *j)
{
    static const char *const labels[] = {"max_pool", "average_pool", "average_pool", "lp_pool"};
    const shape *x = &lower_input(c, 0)->dims;
    window_desc w;
    window_axis axes[WINDOW_MAX_AXES];
    CLG_TRY(window_read(c->node, x, NULL, &w));
    window_fill(&w, axes);
    const int64_t planes = x->dims[0] * x->dims[1], p = node_int(c->node, "p", 2);
    const int64_t rows = axes[0].out * axes[1].out, outputs = rows * axes[2].out;
    pool_op op = j->op;
    if (op == POOL_AVERAGE && node_int(c->node, "count_include_pad", 0) != 0)
        op = POOL_AVERAGE_PADDED;
    int64_t at_once;
    const pool_form form = choose_form(c, j, axes, planes, &at_once);
    const int lanes = form == POOL_ITEMS ? 1 : work_lanes(c, axes[2].out);
    const int line = form == POOL_ITEMS ? 0 : LINE_ROOM;

    step_builder *b = &c->build;
    const char *entry = kernels[form].entry;
    step *k = step_kernel(b, impl ? impl : step_candidate(b, entry), kernels[form].source, entry,
                          prelude_text(b,
                                       "P_OP=%d P_P=%d P_INDICES=%d P_FORM=%d P_LINE=%d P_T=%d "
                                       "P_VEC=%d",
                                       (int)op, power_form(op, p), j->indices, (int)form, line,
                                       (int)j->dtype, lanes));
    k->label = labels[op];
    STEP_BUFFERS(b, k, {j->x, j->dtype}, {j->y, j->dtype},
                 {j->indices ? operand_output(1) : j->y, j->indices ? CLG_INT64 : j->dtype});
    step_arg_int(b, k, planes);
    add_sizes(b, k, axes);
    step_arg_int(b, k, node_int(c->node, "storage_order", 0) != 0);
    step_arg_float(b, k, (double)p);
    step_arg_int(b, k, at_once);
    k->flops =
        (double)(planes * outputs) * (double)(axes[0].kernel * axes[1].kernel * axes[2].kernel);
    k->bytes = (double)(planes * (outputs + axes[0].in * axes[1].in * axes[2].in)) *
               (double)dtype_size(j->dtype);
    if (form == POOL_ITEMS)
        work_range_rows(c, k, outputs, planes);
    else
        work_range_2d(c, k, work_ceil_div(form == POOL_ROWS ? rows : axes[0].out, at_once), 1,
                      planes, 1);
    return CLG_OK;
}

clg_status pool_append_average(lower_context *c, candidate *impl, operand x, operand y)
{
    const pool_job j = {.op = POOL_AVERAGE, .x = x, .y = y, .dtype = CLG_FLOAT32};
    return add_pool(c, impl, &j);
}

static clg_status pool_lower(lower_context *c)
{
    const pool_job j = {.op = *(const pool_op *)c->row->param,
                        .x = operand_input(0),
                        .y = operand_output(0),
                        .dtype = lower_input(c, 0)->dtype,
                        .indices = work_has_output(c, 1)};
    CLG_TRY(work_check_dtype(c, j.dtype));
    return add_pool(c, NULL, &j);
}

#define FLOATS (DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT64))
static const op_types max_types[] = {
    {'T', FLOATS | DTYPE_BIT(CLG_INT8) | DTYPE_BIT(CLG_UINT8)}, {'I', DTYPE_BIT(CLG_INT64)}, {0}};
static const op_types float_types[] = {{'T', FLOATS}, {0}};

#define POOL_ATTRIBUTES WINDOW_ATTRIBUTES(true){"ceil_mode", ATTRIBUTE_INT, false, OP_BOOLEAN},
static const op_attribute max_attributes[] = {
    POOL_ATTRIBUTES{"storage_order", ATTRIBUTE_INT, false, OP_BOOLEAN}, {0}};
static const op_attribute average_attributes[] = {
    POOL_ATTRIBUTES{"count_include_pad", ATTRIBUTE_INT, false, OP_BOOLEAN}, {0}};
static const op_attribute lp_attributes[] = {POOL_ATTRIBUTES{"p", ATTRIBUTE_INT, false, OP_COUNT},
                                             {0}};

const op_row op_rows_pool[] = {
    {.name = "MaxPool",
     .grad = GRAD_BY(grad_pass_max_pool),
     .batch = BATCH_AT("0", "0!"),
     .since = 1,
     OP_INPUTS(1, 1, "T"),
     OP_OUTPUTS(1, 2, "TI"),
     .types = max_types,
     .attributes = max_attributes,
     .check = window_check,
     .infer = pool_infer,
     .lower = pool_lower,
     .param = &pool_max},
    {.name = "AveragePool",
     .grad = GRAD_BY(grad_pass_average_pool),
     .batch = BATCH_FIRST,
     .since = 1,
     OP_INPUTS(1, 1, "T"),
     OP_OUTPUTS(1, 1, "T"),
     .types = float_types,
     .attributes = average_attributes,
     .check = window_check,
     .infer = pool_infer,
     .lower = pool_lower,
     .param = &pool_average},
    {.name = "LpPool",
     .grad = GRAD_BY(grad_pass_lp_pool),
     .batch = BATCH_FIRST,
     .since = 2,
     OP_INPUTS(1, 1, "T"),
     OP_OUTPUTS(1, 1, "T"),
     .types = float_types,
     .attributes = lp_attributes,
     .check = window_check,
     .infer = pool_infer,
     .lower = pool_lower,
     .param = &pool_lp},
};
const size_t n_op_rows_pool = sizeof op_rows_pool / sizeof *op_rows_pool;
