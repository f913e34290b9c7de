/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers NonZero and Compress. One dimension of their output is the number of non-zero elements of
 * an input, so that both are planned in two stages (op_row.stages): the first counts, the second
 * writes. Kernels: cl/lowering/compact.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/compact.h"
#include "ops/lowering/work.h"
#include "ops/movement/gather.h"
#include "tensor/tensor.h"

#include <inttypes.h>

static bool is_zero(const tensor *t, int64_t i) { return tensor_get_float(t, i) == 0; }

/* Returns the shape, or [1] for a scalar. */
static shape at_least_rank_1(const shape *dims)
{
    return dims->rank == 0 ? (shape){.rank = 1, .dims = {1}} : *dims;
}

/* Returns the count that stage 0 computed, which is input i; DIM_UNKNOWN before it has run. */
static int64_t counted(op_context *c, size_t i)
{
    const tensor *t = op_need(c, i);
    return t ? tensor_get_int(t, 0) : DIM_UNKNOWN;
}

static void set_list(value_fact *f, clg_dtype dtype, int64_t n)
{
    fact_set(f, dtype, &(shape){.rank = 1, .dims = {n}});
}

/* ---- NonZero --------------------------------------------------------------------------------- */

static clg_status nonzero_infer(op_context *c)
{
    const value_fact *x = op_input(c, 0);
    const int rank = at_least_rank_1(&x->dims).rank;
    int64_t n = c->n_inputs > 1 ? counted(c, 1) : DIM_UNKNOWN;
    if (c->n_inputs == 1 && x->known && x->known->n_elements <= OP_MAX_KNOWN_ELEMENTS) {
        n = 0;
        for (int64_t i = 0; i < x->known->n_elements; i++) n += !is_zero(x->known, i);
    }
    fact_set(&c->outputs[0], CLG_INT64, &(shape){.rank = 2, .dims = {rank, n}});
    return CLG_OK;
}

static clg_status nonzero_eval(op_context *c, tensor **out_tensors)
{
    const tensor *x = c->inputs[0].known;
    const shape dims = at_least_rank_1(&x->dims);
    const int64_t n = c->outputs[0].dims.dims[1];
    CLG_TRY(tensor_create(CLG_INT64, &c->outputs[0].dims, &out_tensors[0]));
    for (int64_t i = 0, found = 0; i < x->n_elements; i++) {
        int64_t rest = i;
        if (is_zero(x, i)) continue;
        for (int d = dims.rank - 1; d >= 0; d--) {
            tensor_set_int(out_tensors[0], d * n + found, rest % dims.dims[d]);
            rest /= dims.dims[d];
        }
        found++;
    }
    return CLG_OK;
}

static compaction nonzero_blocks(const lower_context *c, operand offsets)
{
    const lower_operand *x = lower_input(c, 0);
    return (compaction){.x = operand_input(0),
                        .dtype = x->dtype,
                        .n = shape_product(&x->dims, 0, x->dims.rank),
                        .offsets = offsets};
}

static clg_status nonzero_count_infer(op_context *c)
{
    int64_t n;
    CLG_TRY(shape_n_elements(&c->inputs[0].dims, &n));
    set_list(&c->outputs[0], CLG_INT64, 1);
    set_list(&c->outputs[1], CLG_INT32, n == DIM_UNKNOWN ? n : compact_blocks(n));
    return CLG_OK;
}

static clg_status nonzero_count_lower(lower_context *c)
{
    const compaction what = nonzero_blocks(c, operand_output(1));
    compact_append_count(c, step_candidate(&c->build, "count"), &what, operand_output(0));
    return CLG_OK;
}

static clg_status nonzero_write_lower(lower_context *c)
{
    const compaction what = nonzero_blocks(c, operand_input(2));
    const shape dims = at_least_rank_1(&c->inputs[0].dims);
    compact_append_write(c, step_candidate(&c->build, "write"), &what, COMPACT_COORDINATES, &dims,
                         c->outputs[0].dims.dims[1], operand_output(0));
    return CLG_OK;
}

/* ---- Compress -------------------------------------------------------------------------------- */

/* Describes the input as [outer, n, inner] around the axis that is compressed; as [1, n, 1] with an
 * *out_axis of -1 if the node has no axis and compresses the flattened input. */
static clg_status compress_walk(const node *n, const shape *in, int64_t *out_outer, int64_t *out_n,
                                int64_t *out_inner, int *out_axis)
{
    *out_axis = -1;
    *out_outer = *out_inner = 1;
    if (!node_attribute(n, "axis")) {
        CLG_TRY(shape_n_elements(in, out_n));
        return CLG_OK;
    }
    CLG_TRY(shape_axis(node_int(n, "axis", 0), in->rank, "axis", out_axis));
    *out_outer = shape_product(in, 0, *out_axis);
    *out_n = in->dims[*out_axis];
    *out_inner = shape_product(in, *out_axis + 1, in->rank);
    return CLG_OK;
}

static clg_status compress_infer(op_context *c)
{
    const shape *in = &c->inputs[0].dims, *condition = &c->inputs[1].dims;
    int64_t outer, n, inner;
    int axis;
    if (compress_walk(c->node, in, &outer, &n, &inner, &axis) != CLG_OK)
        return op_prefix(c, CLG_ERROR_SHAPE);
    if (condition->rank != 1)
        return op_error(c, CLG_ERROR_SHAPE, "the condition has rank %d, not 1", condition->rank);
    if (n != DIM_UNKNOWN && condition->dims[0] != DIM_UNKNOWN && condition->dims[0] > n)
        return op_error(c, CLG_ERROR_SHAPE,
                        "the condition has %" PRId64 " elements for a dimension of %" PRId64,
                        condition->dims[0], n);
    shape out = axis < 0 ? (shape){.rank = 1} : *in;
    out.dims[axis < 0 ? 0 : axis] = c->n_inputs > 2 ? counted(c, 2) : DIM_UNKNOWN;
    fact_set(&c->outputs[0], c->inputs[0].dtype, &out);
    return CLG_OK;
}

static clg_status compress_count_infer(op_context *c)
{
    set_list(&c->outputs[0], CLG_INT64, 1);
    set_list(&c->outputs[1], CLG_INT32, c->inputs[1].dims.dims[0]);
    return CLG_OK;
}

static clg_status compress_count_lower(lower_context *c)
{
    step_builder *b = &c->build;
    candidate *impl = step_candidate(b, "list");
    const int64_t n = c->inputs[1].dims.dims[0];
    const compaction what = {
        .x = operand_input(1),
        .dtype = CLG_BOOL,
        .n = n,
        .offsets = step_scratch(b, impl, (size_t)compact_blocks(n) * sizeof(int32_t))};
    compact_append_count(c, impl, &what, operand_output(0));
    if (n > 0) compact_append_write(c, impl, &what, COMPACT_LIST, NULL, 0, operand_output(1));
    return CLG_OK;
}

static clg_status compress_pick_lower(lower_context *c)
{
    const clg_dtype dtype = c->inputs[0].dtype;
    gather_rows r = {.x = operand_input(0),
                     .index = operand_input(3),
                     .y = operand_output(0),
                     .dtype = dtype,
                     .index_dtype = CLG_INT32};
    int axis;
    CLG_TRY(compress_walk(c->node, &c->inputs[0].dims, &r.outer, &r.axis, &r.inner, &axis));
    r.picks = c->outputs[0].dims.dims[axis < 0 ? 0 : axis];
    gather_append(c, step_candidate(&c->build, "gather"), &r);
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_attribute compress_attributes[] = {{"axis", ATTRIBUTE_INT, false, OP_ANY}, {0}};
static const op_types types[] = {{'T', DTYPES_ALL_FIXED},
                                 {'B', DTYPE_BIT(CLG_BOOL)},
                                 {'N', DTYPE_BIT(CLG_INT64)},
                                 {'I', DTYPE_BIT(CLG_INT32)},
                                 {0}};

static const op_row nonzero_stages[] = {
    {.name = "NonZero",
     .grad = GRAD_ZERO,
     OP_INPUTS(1, 1, "T"),
     OP_OUTPUTS(2, 2, "NI"),
     .types = types,
     .infer = nonzero_count_infer,
     .lower = nonzero_count_lower},
    {.name = "NonZero",
     .grad = GRAD_ZERO,
     OP_INPUTS(3, 3, "TNI"),
     OP_OUTPUTS(1, 1, "N"),
     .types = types,
     .infer = nonzero_infer,
     .lower = nonzero_write_lower},
};

static const op_row compress_stages[] = {
    {.name = "Compress",
     .grad = GRAD_NONE(GRAD_OF_PASSES),
     OP_INPUTS(2, 2, "TB"),
     OP_OUTPUTS(2, 2, "NI"),
     .types = types,
     .attributes = compress_attributes,
     .infer = compress_count_infer,
     .lower = compress_count_lower},
    {.name = "Compress",
     .grad = GRAD_NONE(GRAD_OF_PASSES),
     OP_INPUTS(4, 4, "TBNI"),
     OP_OUTPUTS(1, 1, "T"),
     .types = types,
     .attributes = compress_attributes,
     .infer = compress_infer,
     .lower = compress_pick_lower},
};

const op_row op_rows_select[] = {
    {.name = "NonZero",
     .grad = GRAD_ZERO,
     .batch = BATCH_NEVER("the size of its result depends on all rows"),
     .since = 9,
     OP_INPUTS(1, 1, "T"),
     OP_OUTPUTS(1, 1, "N"),
     .types = types,
     .infer = nonzero_infer,
     .eval = nonzero_eval,
     .stages = nonzero_stages},
    {.name = "Compress",
     .grad = GRAD_BY(grad_pass_compress),
     .batch = BATCH_NEVER("the size of its result depends on all rows"),
     .since = 9,
     OP_INPUTS(2, 2, "TB"),
     OP_OUTPUTS(1, 1, "T"),
     .types = types,
     .attributes = compress_attributes,
     .infer = compress_infer,
     .stages = compress_stages},
};
const size_t n_op_rows_select = sizeof op_rows_select / sizeof *op_rows_select;
