/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers Gather, GatherElements and GatherND. Out-of-range indices are detected by the kernel at
 * run time, or on the host where indices are known. A Gather with a single known index is a view.
 * Kernels: cl/movement/gather.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/grid.h"
#include "ops/lowering/work.h"
#include "ops/movement/gather.h"
#include "tensor/tensor.h"

#include <inttypes.h>
#include <string.h>

/* Work per work-item of the SIMD class. Estimated, not measured; checked by:
 *     cltool profile MODEL    (GB/s of gather) */
#define SIMD_CHUNK 16384 /* elements (64 KiB of float32): copying outweighs starting a work-item */
#define SIMD_ROWS 1024   /* rows, at most, where they are short: each reads an index */

static int64_t at_least_one(int64_t n) { return n > 1 ? n : 1; }

/* ---- steps ----------------------------------------------------------------------------------- */

typedef struct gather_step {
    step *step;
    bool wide_index;
} gather_step;

/* Starts a step that copies rows of `inner` elements. */
static gather_step start_step(lower_context *c, const char *entry, int rank, int64_t inner)
{
    const lower_operand *data = &c->inputs[0], *indices = &c->inputs[1], *out = &c->outputs[0];
    const bool simd = lower_is_simd(c);
    const int64_t max = INT32_MAX / 2;
    gather_step g;
    g.wide_index = shape_product(&data->dims, 0, data->dims.rank) > max ||
                   shape_product(&out->dims, 0, out->dims.rank) > max ||
                   shape_product(&indices->dims, 0, indices->dims.rank) > max;
    const int vec = simd ? work_lanes(c, inner) : 1;
    const char *prelude =
        prelude_text(&c->build, "P_SIZE=%d P_VEC=%d P_FP64=0 P_INDEX=%d P_INT=%d P_RANK=%d",
                     (int)dtype_size(data->dtype), vec, g.wide_index ? 64 : 32,
                     indices->dtype == CLG_INT32 ? 32 : 64, rank);
    g.step = step_kernel(&c->build, step_candidate(&c->build, entry), "gather", entry, prelude);
    g.step->bytes = 2.0 * (double)shape_product(&out->dims, 0, out->dims.rank) *
                    (double)dtype_size(data->dtype);
    return g;
}

static void buffers(lower_context *c, step *s)
{
    STEP_BUFFERS(&c->build, s, {operand_input(0), c->inputs[0].dtype},
                 {operand_input(1), c->inputs[1].dtype}, {operand_output(0), c->outputs[0].dtype});
    step_arg_fault(&c->build, s, STEP_FAULT_INDEX);
}

/* Sets the NDRange of a step that copies rows of `inner` elements, and adds the arguments that
 * describe the NDRange. */
static void range_rows(lower_context *c, step *s, int64_t rows, int64_t inner)
{
    const bool simd = lower_is_simd(c);
    const int64_t chunk = simd ? SIMD_CHUNK : 1;
    int64_t block = simd ? SIMD_CHUNK / at_least_one(inner) : 1;
    block = at_least_one(block < SIMD_ROWS ? block : SIMD_ROWS);
    STEP_INTS(&c->build, s, chunk, block);
    grid_range_rows(c, s, inner, (inner + chunk - 1) / chunk, (rows + block - 1) / block);
}

static void finish_rows(lower_context *c, step *s, int64_t rows, int64_t inner)
{
    range_rows(c, s, rows, inner);
    buffers(c, s);
}

void gather_append(lower_context *c, candidate *impl, const gather_rows *r)
{
    step_builder *b = &c->build;
    const int64_t max = INT32_MAX / 2,
                  sizes[] = {r->outer, r->axis, r->picks, r->inner, r->axis * r->inner};
    const bool wide_index =
        r->outer * r->axis * r->inner > max || r->outer * r->picks * r->inner > max;
    step *s = step_kernel(
        b, impl, "gather", "gather",
        prelude_text(b, "P_SIZE=%d P_VEC=%d P_FP64=0 P_INDEX=%d P_INT=%d P_RANK=0",
                     (int)dtype_size(r->dtype), lower_is_simd(c) ? work_lanes(c, r->inner) : 1,
                     wide_index ? 64 : 32, r->index_dtype == CLG_INT32 ? 32 : 64));
    s->bytes =
        2.0 * (double)r->outer * (double)r->picks * (double)r->inner * (double)dtype_size(r->dtype);
    for (int k = 0; k < 5; k++) grid_arg(c, s, wide_index, sizes[k]);
    range_rows(c, s, r->outer * r->picks, r->inner);
    STEP_BUFFERS(b, s, {r->x, r->dtype}, {r->index, r->index_dtype}, {r->y, r->dtype});
    step_arg_fault(b, s, STEP_FAULT_INDEX);
}

/* ---- Gather ---------------------------------------------------------------------------------- */

static clg_status gather_infer(op_context *c)
{
    int axis;
    const shape *data = &c->inputs[0].dims, *indices = &c->inputs[1].dims;
    if (shape_axis(node_int(c->node, "axis", 0), data->rank, "axis", &axis) != CLG_OK)
        return op_error(c, CLG_ERROR_SHAPE, "%s", error_text());
    shape out = {.rank = data->rank - 1 + indices->rank};
    if (out.rank > CLG_MAX_RANK)
        return op_error(c, CLG_ERROR_SHAPE, "the output has a rank of %d, more than %d", out.rank,
                        CLG_MAX_RANK);
    for (int i = 0; i < axis; i++) out.dims[i] = data->dims[i];
    for (int i = 0; i < indices->rank; i++) out.dims[axis + i] = indices->dims[i];
    for (int i = axis + 1; i < data->rank; i++) out.dims[indices->rank + i - 1] = data->dims[i];
    fact_set(&c->outputs[0], c->inputs[0].dtype, &out);
    return CLG_OK;
}

/* Returns index i of an axis of length n as a number from 0 to n - 1; -1 if it is out of range. */
static int64_t place_of(int64_t i, int64_t n) { return i < -n || i >= n ? -1 : i < 0 ? i + n : i; }

static clg_status gather_eval(op_context *c, tensor **out_tensors)
{
    int axis;
    tensor *t;
    const tensor *data = c->inputs[0].known, *indices = c->inputs[1].known;
    const size_t size = dtype_size(data->dtype);
    if (size == 0) return CLG_OK;
    CLG_TRY(shape_axis(node_int(c->node, "axis", 0), data->dims.rank, "axis", &axis));
    const int64_t n = data->dims.dims[axis], outer = shape_product(&data->dims, 0, axis);
    const int64_t inner = shape_product(&data->dims, axis + 1, data->dims.rank);
    CLG_TRY(tensor_create(data->dtype, &c->outputs[0].dims, &t));
    for (int64_t row = 0; row < outer * indices->n_elements && inner > 0; row++) {
        const int64_t i = tensor_get_int(indices, row % indices->n_elements), at = place_of(i, n);
        if (at < 0) {
            tensor_free(t);
            return op_error(c, CLG_ERROR_DATA,
                            "index %" PRId64 " is out of range for an axis of %" PRId64, i, n);
        }
        memcpy((char *)t->data + (size_t)(row * inner) * size,
               (const char *)data->data +
                   (size_t)((row / indices->n_elements * n + at) * inner) * size,
               (size_t)inner * size);
    }
    out_tensors[0] = t;
    return CLG_OK;
}

static clg_status gather_lower(lower_context *c)
{
    int axis;
    const lower_operand *data = &c->inputs[0], *indices = &c->inputs[1];
    CLG_TRY(shape_axis(node_int(c->node, "axis", 0), data->dims.rank, "axis", &axis));
    const int64_t n = data->dims.dims[axis], outer = shape_product(&data->dims, 0, axis);
    const int64_t inner = shape_product(&data->dims, axis + 1, data->dims.rank);
    const int64_t picks = shape_product(&indices->dims, 0, indices->dims.rank);
    if (indices->known && picks == 1) {
        const int64_t i = tensor_get_int(indices->known, 0), at = place_of(i, n);
        if (at < 0)
            return lower_error(c, CLG_ERROR_DATA,
                               "index %" PRId64 " is out of range for an axis of %" PRId64, i, n);
        int64_t *strides = c->views[0].strides;
        c->is_view = true;
        c->views[0].offset_elems = at * data->strides[axis];
        for (int d = 0; d < axis; d++) strides[d] = data->strides[d];
        for (int d = axis + 1; d < data->dims.rank; d++)
            strides[indices->dims.rank + d - 1] = data->strides[d];
        return CLG_OK;
    }
    gather_append(c, step_candidate(&c->build, "gather"),
                  &(gather_rows){.x = operand_input(0),
                                 .index = operand_input(1),
                                 .y = operand_output(0),
                                 .dtype = data->dtype,
                                 .index_dtype = indices->dtype,
                                 .outer = outer,
                                 .axis = n,
                                 .picks = picks,
                                 .inner = inner});
    return CLG_OK;
}

/* ---- GatherElements -------------------------------------------------------------------------- */

static clg_status elements_infer(op_context *c)
{
    int axis;
    const shape *data = &c->inputs[0].dims, *indices = &c->inputs[1].dims;
    if (data->rank != indices->rank || data->rank < 1)
        return op_error(c, CLG_ERROR_SHAPE,
                        "data has rank %d and indices have rank %d; they must be equal and not 0",
                        data->rank, indices->rank);
    if (shape_axis(node_int(c->node, "axis", 0), data->rank, "axis", &axis) != CLG_OK)
        return op_error(c, CLG_ERROR_SHAPE, "%s", error_text());
    for (int i = 0; i < data->rank; i++)
        if (i != axis && data->dims[i] != DIM_UNKNOWN && indices->dims[i] > data->dims[i])
            return op_error(c, CLG_ERROR_SHAPE,
                            "dimension %d of the indices is %" PRId64 ", of the data %" PRId64, i,
                            indices->dims[i], data->dims[i]);
    fact_set(&c->outputs[0], c->inputs[0].dtype, indices);
    return CLG_OK;
}

static clg_status elements_lower(lower_context *c)
{
    int axis;
    const lower_operand *data = &c->inputs[0], *indices = &c->inputs[1];
    const bool simd = lower_is_simd(c);
    const int64_t chunk = simd ? SIMD_ROWS : 1,
                  n = shape_product(&indices->dims, 0, indices->dims.rank);
    CLG_TRY(shape_axis(node_int(c->node, "axis", 0), data->dims.rank, "axis", &axis));
    const gather_step g = start_step(c, "gather_elements", data->dims.rank, 1);
    for (int i = 0; i < data->dims.rank; i++) {
        grid_arg(c, g.step, g.wide_index, indices->dims.dims[i]);
        grid_arg(c, g.step, g.wide_index, i == axis ? 0 : data->strides[i]);
    }
    grid_arg(c, g.step, g.wide_index, data->dims.dims[axis]);
    grid_arg(c, g.step, g.wide_index, data->strides[axis]);
    step_arg_int(&c->build, g.step, chunk);
    buffers(c, g.step);
    grid_range_1d(c, g.step, (n + chunk - 1) / chunk);
    return CLG_OK;
}

/* ---- GatherND -------------------------------------------------------------------------------- */

static clg_status nd_infer(op_context *c)
{
    const shape *data = &c->inputs[0].dims, *indices = &c->inputs[1].dims;
    const int64_t batch = node_int(c->node, "batch_dims", 0);
    if (data->rank < 1 || indices->rank < 1 || batch >= data->rank || batch >= indices->rank)
        return op_error(c, CLG_ERROR_SHAPE,
                        "batch_dims is %" PRId64 ", data has rank %d, indices rank %d", batch,
                        data->rank, indices->rank);
    const int64_t k = indices->dims[indices->rank - 1];
    if (k == DIM_UNKNOWN) return CLG_OK;
    if (k < 1 || k > data->rank - batch)
        return op_error(c, CLG_ERROR_SHAPE,
                        "an index has %" PRId64 " numbers; there are 1 to %" PRId64
                        " dimensions for them",
                        k, data->rank - batch);
    shape out = {.rank = indices->rank - 1 + data->rank - (int)(batch + k)};
    if (out.rank > CLG_MAX_RANK)
        return op_error(c, CLG_ERROR_SHAPE, "the output has a rank of %d, more than %d", out.rank,
                        CLG_MAX_RANK);
    for (int i = 0; i < indices->rank - 1; i++) {
        if (i < batch && data->dims[i] != DIM_UNKNOWN && indices->dims[i] != DIM_UNKNOWN &&
            data->dims[i] != indices->dims[i])
            return op_error(c, CLG_ERROR_SHAPE,
                            "batch dimension %d is %" PRId64 " in the data, %" PRId64
                            " in the indices",
                            i, data->dims[i], indices->dims[i]);
        out.dims[i] = indices->dims[i];
    }
    for (int i = indices->rank - 1; i < out.rank; i++)
        out.dims[i] = data->dims[batch + k + i - (indices->rank - 1)];
    fact_set(&c->outputs[0], c->inputs[0].dtype, &out);
    return CLG_OK;
}

static clg_status nd_lower(lower_context *c)
{
    const lower_operand *data = &c->inputs[0], *indices = &c->inputs[1];
    const int batch = (int)node_int(c->node, "batch_dims", 0),
              k = (int)indices->dims.dims[indices->dims.rank - 1];
    const int64_t tuples = shape_product(&indices->dims, 0, indices->dims.rank - 1);
    const int64_t inner = shape_product(&data->dims, batch + k, data->dims.rank);
    const int64_t per_batch = shape_product(&indices->dims, batch, indices->dims.rank - 1);
    const gather_step g = start_step(c, "gather_nd", k, inner);
    const int64_t sizes[] = {tuples, inner, per_batch,
                             shape_product(&data->dims, batch, data->dims.rank)};
    for (int i = 0; i < 4; i++) grid_arg(c, g.step, g.wide_index, sizes[i]);
    for (int i = 0; i < k; i++) {
        grid_arg(c, g.step, g.wide_index, data->dims.dims[batch + i]);
        grid_arg(c, g.step, g.wide_index, data->strides[batch + i]);
    }
    finish_rows(c, g.step, tuples, inner);
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_attribute axis_attributes[] = {{"axis", ATTRIBUTE_INT, false, OP_ANY}, {0}};
static const op_attribute batch_attributes[] = {
    {"batch_dims", ATTRIBUTE_INT, false, OP_AT_LEAST(0)}, {0}};
static const op_types types[] = {
    {'T', DTYPES_BYTES}, {'I', DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT64)}, {0, 0}};
static const op_types types64[] = {{'T', DTYPES_BYTES}, {'I', DTYPE_BIT(CLG_INT64)}, {0, 0}};

#define GATHER OP_INPUTS(2, 2, "TI"), OP_OUTPUTS(1, 1, "T")

const op_row op_rows_gather[] = {
    {.name = "Gather",
     .grad = GRAD_BY(grad_pass_gather),
     .batch = BATCH_SHAPES(batch_pass_gather, 3),
     .since = 1,
     GATHER,
     .types = types,
     .attributes = axis_attributes,
     .flags = OP_MOVES,
     .infer = gather_infer,
     .eval = gather_eval,
     .lower = gather_lower},
    {.name = "GatherElements",
     .grad = GRAD_BY(grad_pass_gather_elements),
     .batch = BATCH_BY(batch_pass_gather_elements, 3),
     .since = 11,
     GATHER,
     .types = types,
     .attributes = axis_attributes,
     .infer = elements_infer,
     .lower = elements_lower},
    {.name = "GatherND",
     .grad = GRAD_BY(grad_pass_gather_nd),
     .batch = BATCH_BY(batch_pass_gather_nd, 3),
     .since = 11,
     GATHER,
     .types = types64,
     .attributes = batch_attributes,
     .infer = nd_infer,
     .lower = nd_lower},
};
const size_t n_op_rows_gather = sizeof op_rows_gather / sizeof op_rows_gather[0];
