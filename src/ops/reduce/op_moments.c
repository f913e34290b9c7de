/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers MeanVarianceNormalization, and appends the steps that it and BatchNormalization in
 * training have in common (moments.h): partial statistics, a table of factor and shift per channel,
 * and its application.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"
#include "ops/movement/strided.h"
#include "ops/reduce/moments.h"

#include <string.h>

/* ---- training -------------------------------------------------------------------------------- */

bool norm_asks_for_statistics(const node *n)
{
    for (size_t i = 1; i < n->n_outputs; i++)
        if (n->outputs[i] != VALUE_NONE) return true;
    return false;
}

bool norm_batch_trains(const node *n)
{
    if (strcmp(n->op_type, "BatchNormTrain") == 0) return true;
    return n->opset >= 14 ? node_int(n, "training_mode", 0) != 0 : norm_asks_for_statistics(n);
}

/* ---- steps ----------------------------------------------------------------------------------- */

typedef struct moments_plan {
    const moments_job *job;
    candidate *impl;
    clg_dtype dtype, sums, scale, mean;
    int64_t n_parts;
    uint64_t local;
    operand parts, table;
} moments_plan;

static step *moments_step(lower_context *c, const moments_plan *p, const char *entry,
                          uint64_t local, int lanes)
{
    return step_kernel(&c->build, p->impl, "moments", entry,
                       prelude_text(&c->build, "P_KIND=%d P_LOCAL=%d P_T=%d P_VEC=%d P_S=%d P_M=%d",
                                    (int)p->job->kind, (int)local, (int)p->dtype, lanes,
                                    (int)p->scale, (int)p->mean));
}

/* How the elements of a channel are divided into parts. Estimated, not measured; checked by:
 *     cltool profile MODEL    (of a model with MeanVarianceNormalization) */
#define SIMD_PARTS_PER_UNIT 4    /* target of work-items per core, to balance the load */
#define SIMT_PARTS_PER_UNIT 64   /* target of work-groups per compute unit of a GPU */
#define SIMD_PART_ELEMENTS 16384 /* fewest elements of a part: 64 KiB of float32 */
#define SIMT_PART_ELEMENTS 4096
#define MAX_PARTS 256 /* of a channel: a single work-item adds them up */

/* Returns the number of parts of a channel: several if there are too few channels to keep the
 * device busy. */
static int64_t count_parts(const lower_context *c, const moments_job *j)
{
    const bool simd = lower_is_simd(c);
    const int64_t n = j->outer * j->inner,
                  per_unit = simd ? SIMD_PARTS_PER_UNIT : SIMT_PARTS_PER_UNIT;
    const int64_t wanted = per_unit * work_units(c);
    const int64_t worth = n / (simd ? SIMD_PART_ELEMENTS : SIMT_PART_ELEMENTS) + 1;
    int64_t parts = j->channels > 0 ? (wanted + j->channels - 1) / j->channels : 1;
    if (parts > worth) parts = worth;
    return parts < 1 ? 1 : parts > MAX_PARTS ? MAX_PARTS : parts;
}

static void add_parts(lower_context *c, const moments_plan *p)
{
    const moments_job *j = p->job;
    step_builder *b = &c->build;
    const bool groups = p->local > 1;
    step *k = moments_step(c, p, "moments_parts", p->local,
                           lower_is_simd(c) ? work_lanes(c, j->inner) : 1);
    STEP_BUFFERS(b, k, {j->x, p->dtype}, {p->parts, p->sums});
    STEP_INTS(b, k, j->outer, j->channels, j->inner, p->n_parts);
    work_check_work(c, k, j->outer * j->inner);
    k->bytes =
        (double)j->outer * (double)j->channels * (double)j->inner * (double)dtype_size(p->dtype);
    const uint64_t local = groups ? p->local : lower_is_simd(c) ? 1 : 64;
    work_range_2d(c, k, groups ? j->channels * (int64_t)p->local : j->channels, local, p->n_parts,
                  1);
}

static void add_finish(lower_context *c, const moments_plan *p)
{
    const moments_job *j = p->job;
    const bool batch = j->kind == MOMENTS_BATCH;
    step_builder *b = &c->build;
    int64_t wanted = 0;
    step *k = moments_step(c, p, "moments_finish", 1, 1);
    STEP_BUFFERS(b, k, {p->parts, p->sums}, {p->table, p->sums});
    for (uint32_t i = 1; i < 5; i++)
        step_arg_buffer(b, k, batch ? operand_input(i) : j->x, i < 3 ? p->scale : p->mean);
    for (uint32_t i = 1; i < 5; i++) {
        const bool requested = batch && work_has_output(c, i);
        step_arg_buffer(b, k, requested ? operand_output(i) : p->table,
                        requested ? p->mean : p->sums);
        if (requested) wanted |= 1 << (i - 1);
    }
    STEP_INTS(b, k, j->outer * j->inner, j->channels, p->n_parts, wanted,
              j->outer * j->inner - (j->is_sample ? 1 : 0));
    STEP_FLOATS(b, k, node_float(c->node, "epsilon", 1e-5f), node_float(c->node, "momentum", 0.9f));
    work_range_1d(c, k, j->channels, lower_is_simd(c) ? 1 : 64);
}

static void add_apply(lower_context *c, const moments_plan *p)
{
    const moments_job *j = p->job;
    const bool simd = lower_is_simd(c);
    const int64_t planes = j->outer * j->channels;
    step_builder *b = &c->build;
    step *k = moments_step(c, p, "moments_apply", 1, simd ? work_lanes(c, j->inner) : 1);
    STEP_BUFFERS(b, k, {j->x, p->dtype}, {j->y, p->dtype}, {p->table, p->sums});
    STEP_INTS(b, k, planes, j->channels, j->inner);
    k->bytes = 2.0 * (double)planes * (double)j->inner * (double)dtype_size(p->dtype);
    if (simd)
        work_range_2d(c, k, j->inner > 0 ? 1 : 0, 1, planes, j->inner < 256 ? 16 : 1);
    else
        work_range_rows(c, k, j->inner, planes);
}

void moments_append(lower_context *c, candidate *impl, const moments_job *j)
{
    const bool batch = j->kind == MOMENTS_BATCH;
    moments_plan p = {.job = j, .impl = impl, .dtype = c->inputs[0].dtype};
    p.sums = p.dtype == CLG_FLOAT64 ? CLG_FLOAT64 : CLG_FLOAT32;
    p.scale = batch ? c->inputs[1].dtype : p.dtype;
    p.mean = batch ? c->inputs[3].dtype : p.dtype;
    p.n_parts = count_parts(c, j);
    /* Adjacent work-items read adjacent elements: of a channel or, where channels are adjacent, of
     * several. */
    p.local = lower_is_simd(c) || j->inner < 8 ? 1 : work_group_local(c, j->outer * j->inner);
    const size_t rows = (size_t)(j->channels > 0 ? j->channels : 1) * dtype_size(p.sums);
    p.parts = step_scratch(&c->build, impl, (size_t)p.n_parts * rows * 3);
    p.table = step_scratch(&c->build, impl, rows * 3);
    add_parts(c, &p);
    add_finish(c, &p);
    add_apply(c, &p);
}

/* ---- MeanVarianceNormalization --------------------------------------------------------------- */

static clg_status find_axes(const node *n, int rank, bool out_reduced[CLG_MAX_RANK])
{
    static const int64_t usual[] = {0, 2, 3};
    size_t count;
    const int64_t *axes = node_ints(n, "axes", &count);
    if (!node_attribute(n, "axes")) {
        axes = usual;
        count = 3;
    }
    for (int i = 0; i < rank; i++) out_reduced[i] = false;
    for (size_t i = 0; i < count; i++) {
        int axis;
        CLG_TRY(shape_axis(axes[i], rank, "an axis", &axis));
        out_reduced[axis] = true;
    }
    return CLG_OK;
}

static clg_status mvn_infer(op_context *c)
{
    bool reduced[CLG_MAX_RANK];
    const shape *x = &c->inputs[0].dims;
    if (find_axes(c->node, x->rank, reduced) != CLG_OK)
        return op_error(c, CLG_ERROR_SHAPE, "%s", error_text());
    fact_set(&c->outputs[0], c->outputs[0].dtype, x);
    return CLG_OK;
}

/* Describes the reduction over the axes in `reduced` as [outer, channels, inner], where channels
 * are the axes that are kept. Returns false if those are not adjacent. */
static bool measure(const shape *x, const bool *reduced, moments_job *j)
{
    j->outer = j->channels = j->inner = 1;
    enum { BEFORE, AMONG, AFTER } at = BEFORE;
    for (int i = 0; i < x->rank; i++) {
        if (x->dims[i] == 1) continue;
        if (!reduced[i] && at == AFTER) return false;
        if (!reduced[i])
            at = AMONG;
        else if (at == AMONG)
            at = AFTER;
        *(at == BEFORE ? &j->outer : at == AMONG ? &j->channels : &j->inner) *= x->dims[i];
    }
    if (at == BEFORE) { /* a single row */
        j->inner = j->outer;
        j->outer = 1;
    }
    return true;
}

/* Returns a grid to copy between x, as operand `side`, and a dense tensor whose first dimensions
 * are those that are kept. NULL if memory is exhausted. */
static grid_dims *gathering(lower_context *c, const bool *reduced, size_t side)
{
    const shape *x = &c->inputs[0].dims;
    int64_t dims[CLG_MAX_RANK], strides[CLG_MAX_RANK];
    shape front = {.rank = x->rank};
    int n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < x->rank; i++)
            if (reduced[i] == (pass == 1)) {
                strides[n] = c->inputs[0].strides[i];
                dims[n++] = x->dims[i];
            }
    for (int i = 0; i < n; i++) front.dims[i] = dims[i];
    grid_dims *g = strided_grid(c->memory, n, dims);
    if (!g) return NULL;
    grid_set_strides(g, side, strides);
    shape_strides(&front, dims);
    grid_set_strides(g, side == STRIDED_FROM ? STRIDED_TO : STRIDED_FROM, dims);
    return g;
}

static clg_status mvn_lower(lower_context *c)
{
    bool reduced[CLG_MAX_RANK];
    int64_t n;
    size_t size_bytes;
    const shape *x = &c->inputs[0].dims;
    const clg_dtype dtype = c->inputs[0].dtype;
    moments_job j = {.kind = MOMENTS_PLAIN, .x = operand_input(0), .y = operand_output(0)};
    CLG_TRY(work_check_dtype(c, dtype));
    CLG_TRY(find_axes(c->node, x->rank, reduced));
    candidate *impl = step_candidate(&c->build, "moments");
    if (measure(x, reduced, &j)) {
        moments_append(c, impl, &j);
        return CLG_OK;
    }
    j.outer = j.channels = j.inner = 1;
    for (int i = 0; i < x->rank; i++) *(reduced[i] ? &j.inner : &j.channels) *= x->dims[i];
    CLG_TRY(shape_n_elements(x, &n));
    if (!dtype_bytes(dtype, n, &size_bytes)) return error_no_memory(SIZE_MAX);
    j.x = step_scratch(&c->build, impl, size_bytes);
    j.y = step_scratch(&c->build, impl, size_bytes);
    grid_dims *in = gathering(c, reduced, STRIDED_FROM), *out = gathering(c, reduced, STRIDED_TO);
    if (!in || !out) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    strided_copy(c, impl, in, operand_input(0), j.x, dtype);
    moments_append(c, impl, &j);
    strided_copy(c, impl, out, j.y, operand_output(0), dtype);
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_types types[] = {{'T', DTYPES_FLOAT}, {0}};
static const op_attribute attributes[] = {{"axes", ATTRIBUTE_INTS, false, OP_ANY}, {0}};

const op_row op_rows_moments[] = {
    {.name = "MeanVarianceNormalization",
     .grad = GRAD_BY(grad_pass_mean_variance),
     .batch = BATCH_BY(batch_pass_moments, 1),
     .since = 9,
     OP_INPUTS(1, 1, "T"),
     OP_OUTPUTS(1, 1, "T"),
     .types = types,
     .attributes = attributes,
     .infer = mvn_infer,
     .lower = mvn_lower},
};
const size_t n_op_rows_moments = sizeof op_rows_moments / sizeof *op_rows_moments;
