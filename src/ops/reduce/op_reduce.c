/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers, evaluates and lowers reductions: ReduceSum and the like, the global pools, and
 * LpNormalization, which divides by a reduction. A reduction is described by its functions map,
 * combine and finish; all else is common to them. Kernels: cl/reduce/reduce.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"
#include "ops/movement/strided.h"
#include "ops/pointwise/pointwise.h"
#include "ops/reduce/reduce.h"

#include <math.h>
#include <string.h>

/* The functions of a reduction, finish(combine(map(x), ..)): P_MAP, P_COMBINE, P_FINISH. */
typedef enum reduce_map { TAKE_NONE, TAKE_ABS, TAKE_SQUARE, TAKE_EXP, TAKE_POWER } reduce_map;
typedef enum reduce_combine {
    COMBINE_SUM,
    COMBINE_PRODUCT,
    COMBINE_MAX,
    COMBINE_MIN
} reduce_combine;
typedef enum reduce_finish {
    FINISH_NONE,
    FINISH_MEAN,
    FINISH_ROOT,
    FINISH_LOG,
    FINISH_LOG_SHIFT,
    FINISH_POWER
} reduce_finish;

typedef struct reduce_op {
    reduce_map map;
    reduce_combine combine;
    reduce_finish finish;
    bool is_global; /* over all axes from 2 on, with keepdims */
} reduce_op;

/* ---- axes and shapes ------------------------------------------------------------------------- */

/* Finds the reduced axes. given: the value of the axes input, NULL if absent. */
static clg_status find_axes(const node *n, const tensor *given, int rank,
                            bool out_reduced[CLG_MAX_RANK])
{
    size_t count;
    int64_t values[OP_MAX_INTS];
    const int64_t *axes = node_ints(n, "axes", &count);
    const reduce_op *op = ((const op_row *)n->op)->param;
    if (given) {
        if (given->n_elements > OP_MAX_INTS)
            return error_set(CLG_ERROR_SHAPE, "there are more axes than dimensions");
        count = (size_t)given->n_elements;
        for (size_t i = 0; i < count; i++) values[i] = tensor_get_int(given, (int64_t)i);
        axes = values;
    }
    const bool all = count == 0 && node_int(n, "noop_with_empty_axes", 0) == 0;
    for (int i = 0; i < rank; i++) out_reduced[i] = op->is_global ? i >= 2 : all;
    for (size_t i = 0; i < count; i++) {
        int axis;
        CLG_TRY(shape_axis(axes[i], rank, "an axis", &axis));
        out_reduced[axis] = true;
    }
    return CLG_OK;
}

static clg_status reduce_infer(op_context *c)
{
    bool reduced[CLG_MAX_RANK];
    const shape *in = &c->inputs[0].dims;
    const reduce_op *op = c->row->param;
    const bool keep = op->is_global || node_int(c->node, "keepdims", 1) != 0;
    const tensor *given = op_has_input(c, 1) ? op_need(c, 1) : NULL;
    shape out = {.rank = 0};
    if (op_has_input(c, 1) && !given) return CLG_OK;
    if (op->is_global && in->rank < 3)
        return op_error(c, CLG_ERROR_SHAPE, "takes an input of rank 3 at least, not %d", in->rank);
    if (find_axes(c->node, given, in->rank, reduced) != CLG_OK)
        return op_error(c, CLG_ERROR_SHAPE, "%s", error_text());
    for (int i = 0; i < in->rank; i++)
        if (!reduced[i] || keep) out.dims[out.rank++] = reduced[i] ? 1 : in->dims[i];
    fact_set(&c->outputs[0], c->inputs[0].dtype, &out);
    return CLG_OK;
}

/* ---- host arithmetic ------------------------------------------------------------------------- */

typedef struct total {
    double f;
    int64_t i;
} total;

static total combine(reduce_combine how, total a, total b)
{
    switch (how) {
    case COMBINE_SUM: return (total){a.f + b.f, (int64_t)((uint64_t)a.i + (uint64_t)b.i)};
    case COMBINE_PRODUCT: return (total){a.f * b.f, (int64_t)((uint64_t)a.i * (uint64_t)b.i)};
    case COMBINE_MAX: return (total){a.f > b.f || a.f != a.f ? a.f : b.f, a.i > b.i ? a.i : b.i};
    default: return (total){a.f < b.f || a.f != a.f ? a.f : b.f, a.i < b.i ? a.i : b.i};
    }
}

/* Evaluates sums, products, maxima and minima on the host for shape arithmetic, except those of no
 * elements. */
static clg_status reduce_eval(op_context *c, tensor **out_tensors)
{
    bool reduced[CLG_MAX_RANK];
    int64_t at[CLG_MAX_RANK] = {0}, to_strides[CLG_MAX_RANK] = {0};
    const reduce_op *op = c->row->param;
    const tensor *in = c->inputs[0].known;
    tensor *t;
    if (op->map != TAKE_NONE || op->finish != FINISH_NONE || in->n_elements == 0 ||
        in->dtype == CLG_UINT64)
        return CLG_OK;
    CLG_TRY(
        find_axes(c->node, op_has_input(c, 1) ? c->inputs[1].known : NULL, in->dims.rank, reduced));
    CLG_TRY(tensor_create(in->dtype, &c->outputs[0].dims, &t));
    bool *started = memory_zalloc((size_t)t->n_elements, sizeof *started);
    total *totals = memory_zalloc((size_t)t->n_elements, sizeof *totals);
    clg_status status = started && totals ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    int64_t stride = 1;
    for (int d = in->dims.rank - 1; d >= 0; d--) {
        to_strides[d] = reduced[d] ? 0 : stride;
        stride *= reduced[d] ? 1 : in->dims.dims[d];
    }
    for (int64_t i = 0; i < in->n_elements && status == CLG_OK; i++) {
        int64_t to = 0;
        for (int d = 0; d < in->dims.rank; d++) to += at[d] * to_strides[d];
        const total x = {tensor_get_float(in, i), tensor_get_int(in, i)};
        totals[to] = started[to] ? combine(op->combine, totals[to], x) : x;
        started[to] = true;
        for (int d = in->dims.rank - 1; d >= 0 && ++at[d] == in->dims.dims[d]; d--) at[d] = 0;
    }
    for (int64_t i = 0; i < t->n_elements && status == CLG_OK; i++) {
        if (dtype_is_float(t->dtype))
            tensor_set_float(t, i, totals[i].f);
        else
            tensor_set_int(t, i, totals[i].i);
    }
    memory_free(totals);
    memory_free(started);
    if (status == CLG_OK)
        out_tensors[0] = t;
    else
        tensor_free(t);
    return status;
}

/* ---- lowering -------------------------------------------------------------------------------- */

typedef struct reduce_dim {
    int64_t n, stride;
} reduce_dim;

/* The parameters of one kernel launch. */
typedef struct reduce_launch {
    bool by_columns;
    reduce_dim kept[CLG_MAX_RANK],
        reds[CLG_MAX_RANK]; /* neither list has the last dimension, of length n */
    int n_kept, n_reds;
    int64_t n; /* length of the last dimension */
    int64_t results, reduced;
    reduce_map map;
    reduce_combine combine;
    reduce_finish finish;
    clg_dtype in, out;
    operand x, shift, y;
    float parameter;
    int64_t count;
    /* set by size_launch */
    int group, vec;
    int64_t chunk, parts, units;
    bool wide_index;
} reduce_launch;

static clg_dtype accumulator(clg_dtype dtype)
{
    if (dtype == CLG_FLOAT64) return CLG_FLOAT64;
    if (dtype_is_float(dtype)) return CLG_FLOAT32;
    return dtype_find(dtype)->kind == DTYPE_KIND_SIGNED ? CLG_INT64 : CLG_UINT64;
}

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* How reductions are divided. CHUNK and MAX_CHUNKS keep float sums precise; the other sizes are
 * estimated, not measured; checked by: cltool profile MODEL    (GB/s of its reductions) */
#define CHUNK 64                 /* elements per lane that are summed sequentially */
#define MAX_CHUNKS 128           /* chunks of a part, whose sums are summed sequentially */
#define MAX_PARTS 4096           /* parts of a result */
#define SMALL_GROUP_MIN 64       /* shortest row that several work-items of a GPU share */
#define SMALL_GROUP 32           /* number of these work-items */
#define LARGE_GROUP_MIN 512      /* shortest row that a larger group shares */
#define LARGE_GROUP 128          /* number of its work-items */
#define SIMD_ITEMS_PER_UNIT 4    /* target of work-items per core, to balance the load */
#define SIMT_ITEMS_PER_UNIT 1024 /* the same per compute unit of a GPU: its threads */
#define SIMD_PART_ELEMENTS 16384 /* fewest elements of a part: 64 KiB of float32 */
#define SIMT_PART_ELEMENTS 1024
#define SIMD_ALONE_ELEMENTS 65536 /* below this the second launch costs more than parts save */
#define SIMT_ALONE_ELEMENTS 4096

/* Sets group, vec, chunk, parts and units. A result is divided into parts where results are few, so
 * that all of the device works, and where it is long: a part is a sum of at most 128 sums of 64,
 * which keeps float sums precise. */
static void size_launch(const lower_context *c, reduce_launch *l)
{
    const bool simd = lower_is_simd(c);
    const int64_t cu = c->caps->compute_units ? c->caps->compute_units : 1;
    l->vec = simd ? work_lanes(c, l->n) : 1;
    l->group = simd || l->by_columns || l->reduced < SMALL_GROUP_MIN ? 1
               : l->reduced < LARGE_GROUP_MIN                        ? SMALL_GROUP
                                                                     : LARGE_GROUP;
    if (l->group > (int)grid_local(c)) l->group = (int)grid_local(c);
    l->chunk = l->by_columns ? CHUNK : CHUNK * l->vec * l->group;
    const int64_t runs = l->by_columns || l->n == 0 ? 1 : l->reduced / l->n;
    l->units = l->by_columns ? divide_up(l->reduced, l->chunk) : runs * divide_up(l->n, l->chunk);
    const int64_t items =
        simd ? divide_up(l->results, l->by_columns ? l->vec : 1) : l->results * l->group;
    const int64_t wanted =
        divide_up((simd ? SIMD_ITEMS_PER_UNIT : SIMT_ITEMS_PER_UNIT) * cu, items > 0 ? items : 1);
    const int64_t worth =
        l->results * (l->reduced / (simd ? SIMD_PART_ELEMENTS : SIMT_PART_ELEMENTS) + 1);
    int64_t parts = wanted < worth ? wanted : worth;
    if (l->results * l->reduced < (simd ? SIMD_ALONE_ELEMENTS : SIMT_ALONE_ELEMENTS)) parts = 1;
    if (parts < divide_up(l->units, MAX_CHUNKS)) parts = divide_up(l->units, MAX_CHUNKS);
    if (parts > l->units) parts = l->units;
    l->parts = parts > MAX_PARTS ? MAX_PARTS : parts < 1 ? 1 : parts;
    l->wide_index = l->results * l->parts > INT32_MAX / 2 || l->reduced > INT32_MAX / 2 ||
                    (l->reduced > 0 && l->results > INT32_MAX / 2 / l->reduced);
    for (int i = 0; i < l->n_kept; i++)
        l->wide_index = l->wide_index || l->kept[i].n * l->kept[i].stride > INT32_MAX / 2;
    for (int i = 0; i < l->n_reds; i++)
        l->wide_index = l->wide_index || l->reds[i].n * l->reds[i].stride > INT32_MAX / 2;
}

static void set_range(lower_context *c, step *s, const reduce_launch *l, int64_t block)
{
    const int64_t all = (int64_t)grid_local(c);
    if (l->by_columns) {
        grid_range_rows(c, s, l->n, divide_up(l->n, l->vec),
                        (l->n ? l->results / l->n : 0) * l->parts);
    } else {
        const int64_t lines = l->group == 1 ? 1 : all / l->group;
        const int64_t results =
            l->group == 1 ? divide_up(l->results, block) : divide_up(l->results, lines) * l->group;
        const int64_t pieces[2] = {results, l->parts * lines};
        const uint64_t local[2] = {(uint64_t)(all / lines), (uint64_t)lines};
        work_range(c, s, 2, pieces, local);
    }
}

/* Appends one kernel step, which writes parts or final results. */
static void emit_step(lower_context *c, candidate *to, const reduce_launch *l)
{
    step_builder *b = &c->build;
    const clg_dtype acc = accumulator(l->in);
    const char *prelude =
        prelude_text(b,
                     "P_IN=%d P_OUT=%d P_VEC=%d P_INDEX=%d P_FP64=%d P_MAP=%d P_COMBINE=%d "
                     "P_FINISH=%d P_KEPT=%d P_RED=%d P_GROUP=%d",
                     (int)l->in, (int)l->out, l->vec, l->wide_index ? 64 : 32, acc == CLG_FLOAT64,
                     (int)l->map, (int)l->combine, (int)l->finish, l->n_kept, l->n_reds, l->group);
    step *s =
        step_kernel(b, to, "reduce", l->by_columns ? "reduce_columns" : "reduce_rows", prelude);
    for (int i = 0; i < l->n_kept; i++) {
        grid_arg(c, s, l->wide_index, l->kept[i].n);
        grid_arg(c, s, l->wide_index, l->kept[i].stride);
    }
    for (int i = 0; i < l->n_reds; i++) {
        /* Kernels divide by lengths even where there is nothing to reduce: pass at least 1. */
        grid_arg(c, s, l->wide_index, l->reds[i].n > 0 ? l->reds[i].n : 1);
        grid_arg(c, s, l->wide_index, l->reds[i].stride);
    }
    int64_t block = lower_is_simd(c) && l->reduced < 4096 ? 4096 / (l->reduced + 1) : 1;
    if (block < 1) block = 1;
    grid_arg(c, s, l->wide_index, l->n);
    grid_arg(c, s, l->wide_index, l->results);
    grid_arg(c, s, l->wide_index, l->by_columns ? l->reduced : l->n ? l->reduced / l->n : 0);
    STEP_INTS(b, s, l->chunk, l->parts, block);
    step_arg_long(b, s, l->count);
    step_arg_float(b, s, l->parameter);
    STEP_BUFFERS(b, s, {l->x, l->in},
                 {l->shift, l->shift.space == OPERAND_SCRATCH ? acc : CLG_UINT8}, {l->y, l->out});
    set_range(c, s, l, block);
    s->bytes = (double)l->results * (double)l->reduced * (double)dtype_size(l->in);
    s->flops = (double)l->results * (double)l->reduced;
}

static clg_status scratch(lower_context *c, candidate *to, clg_dtype dtype, int64_t n, operand *out)
{
    size_t size_bytes;
    if (!dtype_bytes(dtype, n, &size_bytes))
        return lower_error(c, CLG_ERROR_SHAPE, "needs more memory than can be addressed");
    *out = step_scratch(&c->build, to, size_bytes);
    return CLG_OK;
}

/* Appends the reduction: one launch, or one over parts and a second that combines their results. */
static clg_status emit(lower_context *c, candidate *to, reduce_launch l)
{
    size_launch(c, &l);
    if (l.parts == 1) {
        emit_step(c, to, &l);
        return CLG_OK;
    }
    reduce_launch last = {.by_columns = true,
                          .n_reds = 1,
                          .reds = {{l.parts, l.results}},
                          .n = l.results,
                          .results = l.results,
                          .reduced = l.parts,
                          .combine = l.combine,
                          .finish = l.finish,
                          .in = accumulator(l.in),
                          .out = l.out,
                          .shift = l.shift,
                          .y = l.y,
                          .parameter = l.parameter,
                          .count = l.count};
    CLG_TRY(scratch(c, to, last.in, l.results * l.parts, &last.x));
    if (l.shift.space != OPERAND_SCRATCH) last.shift = last.x;
    l.finish = FINISH_NONE;
    l.out = last.in;
    l.y = last.x;
    emit_step(c, to, &l);
    size_launch(c, &last);
    last.parts = 1;
    emit_step(c, to, &last);
    return CLG_OK;
}

/* Separates the input's dimensions into kept and reduced ones, and merges adjacent contiguous ones
 * of a kind. Returns false if the last one is not contiguous. */
static bool sort_dims(const lower_operand *in, const bool *reduced, reduce_launch *l)
{
    reduce_dim dims[CLG_MAX_RANK + 1];
    bool is_reduced[CLG_MAX_RANK + 1];
    int n = 0;
    l->results = l->reduced = 1;
    for (int i = 0; i < in->dims.rank; i++) {
        const reduce_dim d = {in->dims.dims[i], in->strides[i]};
        *(reduced[i] ? &l->reduced : &l->results) *= d.n;
        if (d.n == 1) continue;
        if (n > 0 && is_reduced[n - 1] == reduced[i] && dims[n - 1].stride == d.stride * d.n) {
            dims[n - 1] = (reduce_dim){dims[n - 1].n * d.n, d.stride};
        } else {
            is_reduced[n] = reduced[i];
            dims[n++] = d;
        }
    }
    if (n == 0) {
        is_reduced[n] = false;
        dims[n++] = (reduce_dim){1, 1};
    }
    l->by_columns = !is_reduced[n - 1];
    l->n = dims[n - 1].n;
    for (int i = 0; i < n; i++) {
        if (is_reduced[i] && (l->by_columns || i < n - 1)) l->reds[l->n_reds++] = dims[i];
        if (!is_reduced[i] && (!l->by_columns || i < n - 1)) l->kept[l->n_kept++] = dims[i];
    }
    return dims[n - 1].stride == 1;
}

/* Appends a copy of a strided input to dense scratch, *out, and makes the strides of `in` dense. */
static clg_status densify(lower_context *c, candidate *to, lower_operand *in, operand from,
                          operand *out)
{
    int64_t n;
    CLG_TRY(shape_n_elements(&in->dims, &n));
    CLG_TRY(scratch(c, to, in->dtype, n, out));
    grid_dims *g = strided_grid(c->memory, in->dims.rank, in->dims.dims);
    if (!g) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    grid_set_strides(g, STRIDED_FROM, in->strides);
    shape_strides(&in->dims, in->strides);
    grid_set_strides(g, STRIDED_TO, in->strides);
    strided_copy(c, to, g, from, *out, in->dtype);
    return CLG_OK;
}

/* Sets the dimensions of a launch over l->x, described by `in`; first copies it if sort_dims
 * requires that. */
static clg_status place_input(lower_context *c, candidate *to, lower_operand in,
                              const bool *reduced, reduce_launch *l)
{
    if (!sort_dims(&in, reduced, l)) {
        CLG_TRY(densify(c, to, &in, l->x, &l->x));
        l->n_kept = l->n_reds = 0;
        (void)sort_dims(&in, reduced, l);
    }
    l->count = l->reduced;
    return CLG_OK;
}

static clg_status reduce_lower(lower_context *c)
{
    bool reduced[CLG_MAX_RANK];
    const lower_operand in = c->inputs[0];
    const reduce_op *op = c->row->param;
    const tensor *given = lower_has_input(c, 1) ? c->inputs[1].known : NULL;
    reduce_launch l = {.map = op->map,
                       .combine = op->combine,
                       .finish = op->finish,
                       .in = in.dtype,
                       .out = c->outputs[0].dtype,
                       .x = operand_input(0),
                       .shift = operand_input(0),
                       .y = operand_output(0),
                       .parameter = (float)node_int(c->node, "p", 2)};
    CLG_TRY(work_check_dtype(c, in.dtype));
    const clg_status status = find_axes(c->node, given, in.dims.rank, reduced);
    if (status != CLG_OK) return lower_error(c, status, "%s", error_text());
    candidate *to = step_candidate(&c->build, "reduce");
    CLG_TRY(place_input(c, to, in, reduced, &l));
    if (l.finish == FINISH_LOG_SHIFT) {
        reduce_launch max = l;
        max.map = TAKE_NONE;
        max.combine = COMBINE_MAX;
        max.finish = FINISH_NONE;
        max.out = accumulator(l.in);
        CLG_TRY(scratch(c, to, max.out, l.results, &max.y));
        CLG_TRY(emit(c, to, max));
        l.shift = max.y;
    }
    if (l.map == TAKE_POWER && l.parameter == 2) {
        l.map = TAKE_SQUARE;
        l.finish = FINISH_ROOT;
    }
    return emit(c, to, l);
}

clg_status reduce_append_sum(lower_context *c, candidate *to, const bool reduced[CLG_MAX_RANK],
                             operand *out_sums, clg_dtype *out_dtype)
{
    reduce_launch l = {.combine = COMBINE_SUM,
                       .in = c->inputs[0].dtype,
                       .out = accumulator(c->inputs[0].dtype),
                       .x = operand_input(0),
                       .shift = operand_input(0)};
    CLG_TRY(place_input(c, to, c->inputs[0], reduced, &l));
    CLG_TRY(scratch(c, to, l.out, l.results, &l.y));
    *out_sums = l.y;
    *out_dtype = l.out;
    return emit(c, to, l);
}

clg_status reduce_append_sum_to(lower_context *c, candidate *to, const lower_operand *in, operand x,
                                const bool reduced[CLG_MAX_RANK], operand y)
{
    reduce_launch l = {.combine = COMBINE_SUM,
                       .in = in->dtype,
                       .out = in->dtype,
                       .x = x,
                       .shift = operand_input(0),
                       .y = y};
    CLG_TRY(place_input(c, to, *in, reduced, &l));
    return emit(c, to, l);
}

/* ---- LpNormalization ------------------------------------------------------------------------- */

static clg_status normalize_infer(op_context *c)
{
    int axis;
    const shape *in = &c->inputs[0].dims;
    CLG_TRY(op_prefix(c, shape_axis(node_int(c->node, "axis", -1), in->rank, "axis", &axis)));
    fact_set(&c->outputs[0], c->inputs[0].dtype, in);
    return CLG_OK;
}

/* Builds the group x / norm, computed in acc, the norm's dtype; the result is 0 where the norm is
 * 0. */
static clg_status divide_group(clg_dtype in, clg_dtype acc, pointwise_group *g)
{
    pointwise_register r[2];
    *g = (pointwise_group){0};
    CLG_TRY(pointwise_add_input(g, in, &r[0]));
    CLG_TRY(pointwise_add_input(g, acc, &r[1]));
    if (in != acc) CLG_TRY(pointwise_add_cast(g, r[0], acc, &r[0]));
    CLG_TRY(pointwise_add(g, "DivOrZero", r, NULL, &r[0]));
    if (in != acc) CLG_TRY(pointwise_add_cast(g, r[0], in, &r[0]));
    return pointwise_add_output(g, r[0]);
}

static clg_status normalize_lower(lower_context *c)
{
    int axis;
    bool reduced[CLG_MAX_RANK] = {false};
    const lower_operand *in = &c->inputs[0];
    const bool square = node_int(c->node, "p", 2) == 2;
    reduce_launch l = {.map = square ? TAKE_SQUARE : TAKE_ABS,
                       .combine = COMBINE_SUM,
                       .finish = square ? FINISH_ROOT : FINISH_NONE,
                       .in = in->dtype,
                       .out = accumulator(in->dtype),
                       .x = operand_input(0),
                       .shift = operand_input(0)};
    CLG_TRY(work_check_dtype(c, in->dtype));
    CLG_TRY(shape_axis(node_int(c->node, "axis", -1), in->dims.rank, "axis", &axis));
    reduced[axis] = true;
    candidate *to = step_candidate(&c->build, "lp_normalization");
    CLG_TRY(place_input(c, to, c->inputs[0], reduced, &l));
    if (l.results == 0 || l.reduced == 0) return CLG_OK;
    CLG_TRY(scratch(c, to, l.out, l.results, &l.y));
    CLG_TRY(emit(c, to, l));
    lower_operand norm = {.dtype = l.out, .dims = in->dims, .dense = true};
    norm.dims.dims[axis] = 1;
    shape_strides(&norm.dims, norm.strides);
    pointwise_group g;
    CLG_TRY(divide_group(in->dtype, l.out, &g));
    const pointwise_binding inputs[] = {{operand_input(0), in}, {l.y, &norm}};
    const pointwise_binding output = {operand_output(0), &c->outputs[0]};
    return pointwise_lower(c, to, &g, inputs, &output);
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_attribute by_attribute[] = {
    {"axes", ATTRIBUTE_INTS, false, OP_ANY}, {"keepdims", ATTRIBUTE_INT, false, OP_BOOLEAN}, {0}};
static const op_attribute by_input[] = {{"keepdims", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                        {"noop_with_empty_axes", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                        {0}};
static const op_attribute normalize_attributes[] = {
    {"axis", ATTRIBUTE_INT, false, OP_ANY}, {"p", ATTRIBUTE_INT, false, OP_BETWEEN(1, 2)}, {0}};
static const op_attribute lp_attributes[] = {{"p", ATTRIBUTE_INT, false, OP_COUNT}, {0}};

#define AXES                                                                                       \
    {                                                                                              \
        'A', DTYPE_BIT(CLG_INT64)                                                                  \
    }
static const op_types numbers[] = {{'T', DTYPES_NUMERIC}, AXES, {0, 0}};
static const op_types compared[] = {{'T', DTYPES_ALL_FIXED}, AXES, {0, 0}};
static const op_types floats[] = {{'T', DTYPES_FLOAT}, AXES, {0, 0}};

#define FUNCTIONS                                                                                  \
    .infer = reduce_infer, .eval = reduce_eval, .lower = reduce_lower, .flags = OP_STRIDED_INPUTS
#define OP(...)                                                                                    \
    .param = &(const reduce_op) { __VA_ARGS__ }
#define BATCH_REDUCE OP_BATCH(.pass = batch_pass_reduce, .rows = 1, .counts = 1, .always = true)
/* Entries for a reduction whose axes are an attribute up to opset `last`, then an input. */
#define REDUCE(op_name, last, set, how, ...)                                                       \
    {.name = op_name,                                                                              \
     .since = 1,                                                                                   \
     .until = last,                                                                                \
     OP_INPUTS(1, 1, "T"),                                                                         \
     OP_OUTPUTS(1, 1, "T"),                                                                        \
     .types = set,                                                                                 \
     .attributes = by_attribute,                                                                   \
     .batch = BATCH_REDUCE,                                                                        \
     .grad = how,                                                                                  \
     FUNCTIONS,                                                                                    \
     OP(__VA_ARGS__)},                                                                             \
    {                                                                                              \
        .name = op_name, .since = last + 1, OP_INPUTS(1, 2, "TA"), OP_OUTPUTS(1, 1, "T"),          \
        .types = set, .attributes = by_input, .batch = BATCH_REDUCE, .grad = how, FUNCTIONS,       \
        OP(__VA_ARGS__)                                                                            \
    }
#define GLOBAL(op_name, first, attribute_list, how, ...)                                           \
    {                                                                                              \
        .name = op_name, .since = first, OP_INPUTS(1, 1, "T"), OP_OUTPUTS(1, 1, "T"),              \
        .types = floats, .attributes = attribute_list, .batch = BATCH_FIRST, .grad = how,          \
        FUNCTIONS, OP(.is_global = true, __VA_ARGS__)                                              \
    }

const op_row op_rows_reduce[] = {
    REDUCE("ReduceSum", 12, numbers, GRAD_BY(grad_pass_reduce_sum), .combine = COMBINE_SUM),
    REDUCE("ReduceMean", 17, numbers, GRAD_BY(grad_pass_reduce_mean), .combine = COMBINE_SUM,
           .finish = FINISH_MEAN),
    REDUCE("ReduceMax", 17, compared, GRAD_BY(grad_pass_reduce_extreme), .combine = COMBINE_MAX),
    REDUCE("ReduceMin", 17, compared, GRAD_BY(grad_pass_reduce_extreme), .combine = COMBINE_MIN),
    REDUCE("ReduceProd", 17, numbers, GRAD_BY(grad_pass_reduce_prod), .combine = COMBINE_PRODUCT),
    REDUCE("ReduceL1", 17, numbers, GRAD_REDUCED("g * Sign(x)"), .map = TAKE_ABS,
           .combine = COMBINE_SUM),
    REDUCE("ReduceL2", 17, numbers, GRAD_REDUCED("Where(y == 0, 0, g * x / y)"), .map = TAKE_SQUARE,
           .combine = COMBINE_SUM, .finish = FINISH_ROOT),
    REDUCE("ReduceSumSquare", 17, numbers, GRAD_REDUCED("2 * g * x"), .map = TAKE_SQUARE,
           .combine = COMBINE_SUM),
    REDUCE("ReduceLogSum", 17, floats, GRAD_REDUCED("g / Exp(y)"), .combine = COMBINE_SUM,
           .finish = FINISH_LOG),
    REDUCE("ReduceLogSumExp", 17, floats, GRAD_REDUCED("g * Exp(x - y)"), .map = TAKE_EXP,
           .combine = COMBINE_SUM, .finish = FINISH_LOG_SHIFT),
    GLOBAL("GlobalAveragePool", 1, NULL, GRAD_BY(grad_pass_global_average), .combine = COMBINE_SUM,
           .finish = FINISH_MEAN),
    GLOBAL("GlobalMaxPool", 1, NULL, GRAD_BY(grad_pass_global_max), .combine = COMBINE_MAX),
    GLOBAL("GlobalLpPool", 2, lp_attributes, GRAD_BY(grad_pass_global_lp_pool), .map = TAKE_POWER,
           .combine = COMBINE_SUM, .finish = FINISH_POWER),
    {.name = "LpNormalization",
     .grad = GRAD_BY(grad_pass_lp_normalization),
     .batch = BATCH_OVER("axis", -1),
     .since = 1,
     OP_INPUTS(1, 1, "T"),
     OP_OUTPUTS(1, 1, "T"),
     .types = floats,
     .attributes = normalize_attributes,
     .infer = normalize_infer,
     .lower = normalize_lower,
     .flags = OP_STRIDED_INPUTS},
};
const size_t n_op_rows_reduce = sizeof op_rows_reduce / sizeof op_rows_reduce[0];
