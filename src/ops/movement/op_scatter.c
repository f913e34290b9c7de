/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers ScatterElements (Scatter before opset 11), ScatterND and TensorScatter: copies the data,
 * then writes updates into the copy (cl/movement/scatter.cl); in place, writes them into the data.
 * Reductions apply updates in their order, so that results are bit-identical in each run.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/grid.h"
#include "ops/lowering/work.h"
#include "tensor/tensor.h"

#include <inttypes.h>
#include <string.h>

/* Work per work-item of the SIMD class. Estimated, not measured; checked by:
 *     cltool profile MODEL    (GB/s of scatter) */
#define SIMD_CHUNK 16384 /* elements (64 KiB of float32): copying outweighs starting a work-item */
#define SIMD_ROWS 1024   /* rows, at most, where they are short: each reads an index */
/* Owners per compute unit. The output positions of a scatter with a reduction are divided among
 * work-items, their owners, each of which reads all indices and applies the updates of its
 * positions. Therefore there are only as many as keep the device busy. Estimated, not measured. */
#define SIMD_OWNERS_PER_UNIT 2
#define SIMT_OWNERS_PER_UNIT 128

/* P_REDUCE of cl/movement/scatter.cl. */
typedef enum scatter_reduction {
    REDUCE_NONE,
    REDUCE_ADD,
    REDUCE_MUL,
    REDUCE_MIN,
    REDUCE_MAX
} scatter_reduction;

static const char *const reduction_words_16[] = {"none", "add", "mul", NULL},
                         *const reduction_words[] = {"none", "add", "mul", "min", "max", NULL};

static scatter_reduction find_reduction(const node *n)
{
    return (scatter_reduction)op_word(n, "reduction", "none", reduction_words);
}

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t at_least_one(int64_t n) { return n > 1 ? n : 1; }

/* ---- steps ----------------------------------------------------------------------------------- */

/* The step of a scatter kernel under construction. updates and indices: their indices among the
 * node's inputs, which differ in TensorScatter. */
typedef struct scatter_step {
    step *step;
    bool wide_index, reduces;
    uint32_t updates, indices;
} scatter_step;

static clg_status check_reduced(const lower_context *c, clg_dtype dtype)
{
    if (dtype == CLG_BOOL || dtype == CLG_BFLOAT16)
        return lower_error(c, CLG_ERROR_UNSUPPORTED_DTYPE, "nothing is reduced with elements of %s",
                           dtype_name(dtype));
    return work_check_dtype(c, dtype);
}

static bool scatter_accumulates(const node *n) { return find_reduction(n) != REDUCE_NONE; }

/* Appends the copy of the data to the output, unless that is in its memory, and starts the step
 * that writes the updates. */
static clg_status start_step(lower_context *c, const char *entry, int rank, scatter_reduction r,
                             scatter_step *out)
{
    const lower_operand *data = &c->inputs[0];
    const clg_dtype dtype = data->dtype;
    const int64_t max = INT32_MAX / 2, n = shape_product(&data->dims, 0, data->dims.rank);
    size_t size_bytes;
    if (out->reduces) CLG_TRY(check_reduced(c, dtype));
    if (!dtype_bytes(dtype, n, &size_bytes))
        return lower_error(c, CLG_ERROR_SHAPE, "needs more memory than can be addressed");
    candidate *impl = step_candidate(&c->build, entry);
    if (!lower_is_in_place(c, 0))
        (void)step_copy(&c->build, impl, operand_input(0), operand_output(0), size_bytes);
    out->wide_index = n > max;
    for (size_t i = 1; i < c->n_inputs; i++)
        out->wide_index =
            out->wide_index || (lower_has_input(c, i) &&
                                shape_product(&c->inputs[i].dims, 0, c->inputs[i].dims.rank) > max);
    const bool vectors = lower_is_simd(c) && !out->reduces;
    const int vec = !vectors ? 1 : c->caps->vector_width ? (int)c->caps->vector_width : 4;
    const lower_operand *indices = lower_input(c, out->indices),
                        *updates = lower_input(c, out->updates);
    out->step = step_kernel(
        &c->build, impl, "scatter", entry,
        prelude_text(&c->build,
                     "P_SIZE=%d P_VEC=%d P_FP64=0 P_INDEX=%d P_INT=%d P_RANK=%d P_REDUCE=%d P_T=%d",
                     (int)dtype_size(dtype), vec, out->wide_index ? 64 : 32,
                     indices->dtype == CLG_INT32 ? 32 : 64, rank, (int)r,
                     out->reduces ? (int)dtype : CLG_FLOAT32));
    out->step->bytes = 2.0 * (double)shape_product(&updates->dims, 0, updates->dims.rank) *
                       (double)dtype_size(dtype);
    return CLG_OK;
}

static void buffers(lower_context *c, const scatter_step *g)
{
    const bool given = lower_has_input(c, g->indices);
    step_arg_buffer(&c->build, g->step, operand_input(given ? g->indices : g->updates),
                    given ? c->inputs[g->indices].dtype : CLG_INT64);
    step_arg_buffer(&c->build, g->step, operand_input(g->updates), c->inputs[0].dtype);
    step_arg_buffer(&c->build, g->step, operand_output(0), c->inputs[0].dtype);
    step_arg_fault(&c->build, g->step, STEP_FAULT_INDEX);
}

/* Completes a step that writes rows of `inner` elements. */
static void finish_rows(lower_context *c, const scatter_step *g, int64_t rows, int64_t inner)
{
    const bool simd = lower_is_simd(c);
    const int64_t chunk = simd ? SIMD_CHUNK : 1;
    int64_t block = simd ? SIMD_CHUNK / at_least_one(inner) : 1;
    block = at_least_one(block < SIMD_ROWS ? block : SIMD_ROWS);
    STEP_INTS(&c->build, g->step, chunk, block);
    buffers(c, g);
    const int64_t pieces[2] = {divide_up(inner, chunk), divide_up(rows, block)};
    const uint64_t along = simd ? 1 : inner >= 128 ? 128 : inner >= 16 ? 16 : 1;
    const uint64_t local[2] = {along, simd ? 1 : 128 / along};
    work_range(c, g->step, 2, pieces, local);
}

/* Returns the number of owners among which n positions are divided, enough to keep the device busy
 * if each owner has `others` work-items. */
static int64_t count_owners(const lower_context *c, int64_t n, int64_t others)
{
    const int64_t per_unit = lower_is_simd(c) ? SIMD_OWNERS_PER_UNIT : SIMT_OWNERS_PER_UNIT;
    const int64_t wanted = divide_up(per_unit * work_units(c), at_least_one(others));
    return at_least_one(wanted < n ? wanted : n);
}

/* ---- ScatterElements ------------------------------------------------------------------------- */

static clg_status elements_infer(op_context *c)
{
    int axis;
    const shape *data = &c->inputs[0].dims, *indices = &c->inputs[1].dims,
                *updates = &c->inputs[2].dims;
    if (data->rank != indices->rank || updates->rank != indices->rank || data->rank < 1)
        return op_error(c, CLG_ERROR_SHAPE,
                        "data has rank %d, indices %d, updates %d; they must be equal and not 0",
                        data->rank, indices->rank, updates->rank);
    if (shape_axis(node_int(c->node, "axis", 0), data->rank, "axis", &axis) != CLG_OK)
        return op_error(c, CLG_ERROR_SHAPE, "%s", error_text());
    for (int i = 0; i < data->rank; i++) {
        const int64_t m = indices->dims[i], u = updates->dims[i];
        if (m != DIM_UNKNOWN && u != DIM_UNKNOWN && m != u)
            return op_error(c, CLG_ERROR_SHAPE,
                            "dimension %d of the indices is %" PRId64 ", of the updates %" PRId64,
                            i, m, u);
        if (i != axis && data->dims[i] != DIM_UNKNOWN && m > data->dims[i])
            return op_error(c, CLG_ERROR_SHAPE,
                            "dimension %d of the indices is %" PRId64 ", of the data %" PRId64, i,
                            m, data->dims[i]);
    }
    fact_set(&c->outputs[0], c->inputs[0].dtype, data);
    return CLG_OK;
}

static clg_status elements_lower(lower_context *c)
{
    int axis;
    const lower_operand *data = &c->inputs[0], *indices = &c->inputs[1];
    const shape *m = &indices->dims;
    const scatter_reduction r = find_reduction(c->node);
    const bool simd = lower_is_simd(c);
    scatter_step g = {.reduces = r != REDUCE_NONE, .indices = 1, .updates = 2};
    CLG_TRY(shape_axis(node_int(c->node, "axis", 0), data->dims.rank, "axis", &axis));
    CLG_TRY(start_step(c, "scatter_elements", m->rank, r, &g));
    int64_t lines = shape_product(m, 0, m->rank);
    if (g.reduces) lines = shape_product(m, 0, axis) * shape_product(m, axis + 1, m->rank);
    for (int i = 0; i < m->rank; i++) {
        grid_arg(c, g.step, g.wide_index, g.reduces && i == axis ? 1 : m->dims[i]);
        grid_arg(c, g.step, g.wide_index, i == axis ? 0 : data->strides[i]);
        grid_arg(c, g.step, g.wide_index, indices->strides[i]);
    }
    grid_arg(c, g.step, g.wide_index, data->dims.dims[axis]);
    grid_arg(c, g.step, g.wide_index, data->strides[axis]);
    grid_arg(c, g.step, g.wide_index, m->dims[axis]);
    grid_arg(c, g.step, g.wide_index, indices->strides[axis]);
    const int64_t chunk = !simd       ? 1
                          : g.reduces ? at_least_one(SIMD_ROWS / at_least_one(m->dims[axis]))
                                      : SIMD_ROWS;
    const int64_t owners = g.reduces ? count_owners(c, data->dims.dims[axis], lines) : 1;
    step_arg_int(&c->build, g.step, chunk);
    if (g.reduces) {
        step_arg_int(&c->build, g.step, owners);
        grid_arg(c, g.step, g.wide_index, at_least_one(divide_up(data->dims.dims[axis], owners)));
    }
    buffers(c, &g);
    const int64_t pieces[2] = {m->dims[axis] > 0 ? divide_up(lines, chunk) : 0, owners};
    const uint64_t local[2] = {simd ? 1 : work_power_of_two(lines, 64), 1};
    work_range(c, g.step, 2, pieces, local);
    return CLG_OK;
}

/* ---- ScatterND ------------------------------------------------------------------------------- */

static clg_status nd_infer(op_context *c)
{
    const shape *data = &c->inputs[0].dims, *indices = &c->inputs[1].dims,
                *updates = &c->inputs[2].dims;
    char text[SHAPE_TEXT_BYTES];
    if (data->rank < 1 || indices->rank < 1)
        return op_error(c, CLG_ERROR_SHAPE,
                        "data has rank %d and indices %d; both must be at least 1", data->rank,
                        indices->rank);
    fact_set(&c->outputs[0], c->inputs[0].dtype, data);
    const int64_t k = indices->dims[indices->rank - 1];
    if (k == DIM_UNKNOWN) return CLG_OK;
    if (k < 1 || k > data->rank)
        return op_error(c, CLG_ERROR_SHAPE,
                        "an index has %" PRId64 " numbers; there are 1 to %d dimensions for them",
                        k, data->rank);
    const int outer = indices->rank - 1;
    bool fits = updates->rank == outer + data->rank - (int)k;
    for (int i = 0; fits && i < updates->rank; i++)
        fits = !dims_differ(updates->dims[i],
                            i < outer ? indices->dims[i] : data->dims[k + i - outer]);
    if (!fits)
        return op_error(c, CLG_ERROR_SHAPE, "updates of shape %s do not fit indices and data",
                        shape_text(updates, text));
    return CLG_OK;
}

/* Evaluates ScatterND on the host, for shape arithmetic. Returns no tensor for a node with a
 * reduction. */
static clg_status nd_eval(op_context *c, tensor **out_tensors)
{
    tensor *t;
    const tensor *data = c->inputs[0].known, *indices = c->inputs[1].known,
                 *updates = c->inputs[2].known;
    const size_t size = dtype_size(data->dtype);
    const int k = (int)indices->dims.dims[indices->dims.rank - 1];
    int64_t strides[CLG_MAX_RANK];
    if (find_reduction(c->node) != REDUCE_NONE || size == 0) return CLG_OK;
    shape_strides(&data->dims, strides);
    CLG_TRY(tensor_create(data->dtype, &data->dims, &t));
    memcpy(t->data, data->data, data->size_bytes);
    const int64_t inner = shape_product(&data->dims, k, data->dims.rank),
                  tuples = indices->n_elements / k;
    for (int64_t row = 0; row < tuples; row++) {
        int64_t to = 0;
        for (int i = 0; i < k; i++) {
            const int64_t given = tensor_get_int(indices, row * k + i), n = data->dims.dims[i];
            if (given < -n || given >= n) {
                tensor_free(t);
                return op_error(c, CLG_ERROR_DATA,
                                "index %" PRId64 " is out of range for an axis of %" PRId64, given,
                                n);
            }
            to += (given < 0 ? given + n : given) * strides[i];
        }
        if (inner > 0)
            memcpy((char *)t->data + (size_t)to * size,
                   (const char *)updates->data + (size_t)(row * inner) * size,
                   (size_t)inner * size);
    }
    out_tensors[0] = t;
    return CLG_OK;
}

static void finish_owners(lower_context *c, const scatter_step *g, int64_t n, int64_t tuples,
                          int64_t inner)
{
    const int64_t owners = count_owners(c, n / at_least_one(inner), inner);
    const bool simd = lower_is_simd(c);
    step_arg_int(&c->build, g->step, owners);
    grid_arg(c, g->step, g->wide_index, at_least_one(divide_up(n, owners)));
    buffers(c, g);
    const int64_t lanes = simd ? work_units(c) : inner;
    const int64_t pieces[2] = {tuples > 0 ? (lanes < inner ? lanes : inner) : 0, owners};
    const uint64_t local[2] = {simd ? 1 : work_power_of_two(inner, 64), 1};
    work_range(c, g->step, 2, pieces, local);
}

static clg_status nd_lower(lower_context *c)
{
    const lower_operand *data = &c->inputs[0];
    const shape *indices = &c->inputs[1].dims;
    const scatter_reduction r = find_reduction(c->node);
    const int k = (int)indices->dims[indices->rank - 1];
    const int64_t tuples = shape_product(indices, 0, indices->rank - 1),
                  inner = shape_product(&data->dims, k, data->dims.rank);
    scatter_step g = {.reduces = r != REDUCE_NONE, .indices = 1, .updates = 2};
    CLG_TRY(start_step(c, "scatter_nd", k, r, &g));
    grid_arg(c, g.step, g.wide_index, tuples);
    grid_arg(c, g.step, g.wide_index, inner);
    for (int i = 0; i < k; i++) {
        grid_arg(c, g.step, g.wide_index, data->dims.dims[i]);
        grid_arg(c, g.step, g.wide_index, data->strides[i]);
    }
    if (g.reduces)
        finish_owners(c, &g, shape_product(&data->dims, 0, data->dims.rank), tuples, inner);
    else
        finish_rows(c, &g, tuples, inner);
    return CLG_OK;
}

/* ---- TensorScatter --------------------------------------------------------------------------- */

static clg_status tensor_infer(op_context *c)
{
    int axis;
    const shape *past = &c->inputs[0].dims, *update = &c->inputs[1].dims,
                *write = &op_input(c, 2)->dims;
    if (past->rank != update->rank || past->rank < 2)
        return op_error(
            c, CLG_ERROR_SHAPE,
            "the cache has rank %d and the update %d; they must be equal and at least 2",
            past->rank, update->rank);
    if (shape_axis(node_int(c->node, "axis", -2), past->rank, "axis", &axis) != CLG_OK || axis == 0)
        return op_error(c, CLG_ERROR_SHAPE,
                        "axis must be one of the cache's, and not that of the batch");
    for (int i = 0; i < past->rank; i++) {
        const int64_t p = past->dims[i], u = update->dims[i];
        if (i == axis ? p != DIM_UNKNOWN && u > p : dims_differ(p, u))
            return op_error(c, CLG_ERROR_SHAPE,
                            "dimension %d of the cache is %" PRId64 ", of the update %" PRId64, i,
                            p, u);
    }
    if (op_has_input(c, 2) && (write->rank != 1 || dims_differ(write->dims[0], past->dims[0])))
        return op_error(c, CLG_ERROR_SHAPE, "there must be one write index for each of the batch");
    fact_set(&c->outputs[0], c->inputs[0].dtype, past);
    return CLG_OK;
}

static clg_status tensor_lower(lower_context *c)
{
    int axis;
    const shape *past = &c->inputs[0].dims, *update = &c->inputs[1].dims;
    scatter_step g = {.indices = 2, .updates = 1};
    CLG_TRY(shape_axis(node_int(c->node, "axis", -2), past->rank, "axis", &axis));
    CLG_TRY(start_step(c, "tensor_scatter", 0, REDUCE_NONE, &g));
    const int64_t prefixes = shape_product(past, 0, axis),
                  inner = shape_product(past, axis + 1, past->rank);
    const int64_t sizes[] = {prefixes, shape_product(past, 1, axis), past->dims[axis],
                             update->dims[axis], inner};
    for (int i = 0; i < 5; i++) grid_arg(c, g.step, g.wide_index, sizes[i]);
    STEP_INTS(&c->build, g.step, strcmp(node_string(c->node, "mode", "linear"), "circular") == 0,
              lower_has_input(c, 2));
    finish_rows(c, &g, prefixes * update->dims[axis], inner);
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_attribute elements_11[] = {{"axis", ATTRIBUTE_INT, false, OP_ANY}, {0}};
#define REDUCTION(words)                                                                           \
    {                                                                                              \
        "reduction", ATTRIBUTE_STRING, false, OP_WORDS(words)                                      \
    }
static const op_attribute elements_16[] = {
    {"axis", ATTRIBUTE_INT, false, OP_ANY}, REDUCTION(reduction_words_16), {0}};
static const op_attribute elements_18[] = {
    {"axis", ATTRIBUTE_INT, false, OP_ANY}, REDUCTION(reduction_words), {0}};
static const op_attribute nd_16[] = {REDUCTION(reduction_words_16), {0}};
static const op_attribute nd_18[] = {REDUCTION(reduction_words), {0}};
static const op_attribute tensor_24[] = {
    {"axis", ATTRIBUTE_INT, false, OP_ANY},
    {"mode", ATTRIBUTE_STRING, false, OP_ONE_OF("linear", "circular")},
    {0}};
static const op_types types[] = {{'I', DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT64)}, {0}};
static const op_types types64[] = {{'I', DTYPE_BIT(CLG_INT64)}, {0}};

#define SCATTER                                                                                    \
    OP_INPUTS(3, 3, "TIT"), OP_OUTPUTS(1, 1, "T"), .accumulates = scatter_accumulates,             \
                                                   OP_IN_PLACE(1, {0, 0})
#define ELEMENTS                                                                                   \
    SCATTER, .types = types, .infer = elements_infer,                                              \
             .batch = BATCH_BY(batch_pass_gather_elements, 7), .lower = elements_lower
#define ND                                                                                         \
    SCATTER, .types = types64, .infer = nd_infer,                                                  \
             .batch = BATCH_NEVER("its indices count positions among all rows"), .eval = nd_eval,  \
             .lower = nd_lower

const op_row op_rows_scatter[] = {
    {.name = "Scatter",
     .grad = GRAD_BY(grad_pass_scatter_elements),
     .since = 9,
     .until = 10,
     ELEMENTS,
     .attributes = elements_11},
    {.name = "ScatterElements",
     .grad = GRAD_BY(grad_pass_scatter_elements),
     .since = 11,
     .until = 15,
     ELEMENTS,
     .attributes = elements_11},
    {.name = "ScatterElements",
     .grad = GRAD_BY(grad_pass_scatter_elements),
     .since = 16,
     .until = 17,
     ELEMENTS,
     .attributes = elements_16},
    {.name = "ScatterElements",
     .grad = GRAD_BY(grad_pass_scatter_elements),
     .since = 18,
     ELEMENTS,
     .attributes = elements_18},
    {.name = "ScatterND", .grad = GRAD_BY(grad_pass_scatter_nd), .since = 11, .until = 15, ND},
    {.name = "ScatterND",
     .grad = GRAD_BY(grad_pass_scatter_nd),
     .since = 16,
     .until = 17,
     ND,
     .attributes = nd_16},
    {.name = "ScatterND",
     .grad = GRAD_BY(grad_pass_scatter_nd),
     .since = 18,
     ND,
     .attributes = nd_18},
    {.name = "TensorScatter",
     .grad = GRAD_BY(grad_pass_tensor_scatter),
     .batch = BATCH_AT("000", "0"),
     .since = 24,
     OP_INPUTS(2, 3, "TTI"),
     OP_OUTPUTS(1, 1, "T"),
     .types = types64,
     .attributes = tensor_24,
     .infer = tensor_infer,
     .lower = tensor_lower,
     OP_IN_PLACE(1, {0, 0})},
};
const size_t n_op_rows_scatter = sizeof op_rows_scatter / sizeof op_rows_scatter[0];
