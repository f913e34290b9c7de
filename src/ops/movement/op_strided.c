/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers operators that only move elements: Transpose, Expand, Tile, DepthToSpace, SpaceToDepth,
 * Concat, and the internal clgraph.Copy. Each describes which input element an output element is
 * (strided.h), from which a common function makes a view or a copy. Slice and Split are in
 * op_slice.c.
 */
#include "base/checked.h"
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/movement/strided.h"
#include "ops/quant/narrow.h"

#include <inttypes.h>
#include <string.h>

/* ---- Transpose ------------------------------------------------------------------------------- */

/* Reads and checks the permutation, by default the reversal of all axes. */
static clg_status read_permutation(const node *n, int rank, int out_perm[CLG_MAX_RANK])
{
    size_t n_perm;
    bool seen[CLG_MAX_RANK] = {false};
    const int64_t *perm = node_ints(n, "perm", &n_perm);
    if (perm && n_perm != (size_t)rank)
        return error_set(CLG_ERROR_SHAPE, "perm has %zu numbers for a rank of %d", n_perm, rank);
    for (int i = 0; i < rank; i++) {
        const int64_t axis = perm ? perm[i] : rank - 1 - i;
        if (axis < 0 || axis >= rank || seen[axis])
            return error_set(CLG_ERROR_INVALID_MODEL, "perm is not a permutation of 0..%d",
                             rank - 1);
        seen[axis] = true;
        out_perm[i] = (int)axis;
    }
    return CLG_OK;
}

static clg_status transpose_infer(op_context *c)
{
    int perm[CLG_MAX_RANK] = {0};
    const shape *in = &c->inputs[0].dims;
    shape out = {.rank = in->rank};
    const clg_status status = read_permutation(c->node, in->rank, perm);
    if (status != CLG_OK) return op_error(c, status, "%s", error_text());
    for (int i = 0; i < in->rank; i++) out.dims[i] = in->dims[perm[i]];
    fact_set(&c->outputs[0], c->inputs[0].dtype, &out);
    return CLG_OK;
}

static clg_status transpose_walk(strided_walk *w)
{
    int perm[CLG_MAX_RANK] = {0};
    int64_t to[CLG_MAX_RANK];
    CLG_TRY(read_permutation(w->node, w->in->rank, perm));
    shape_strides(w->out, to);
    for (int i = 0; i < w->out->rank; i++)
        strided_add_dim(w, w->out->dims[i], w->in_strides[perm[i]], to[i]);
    return CLG_OK;
}

/* ---- Expand ---------------------------------------------------------------------------------- */

static clg_status expand_infer(op_context *c)
{
    int64_t dims[OP_MAX_INTS];
    size_t n;
    shape wanted, out;
    clg_status status = CLG_OK;
    if (!op_need_ints(c, 1, dims, &n, &status)) {
        bool known;
        CLG_TRY(status);
        CLG_TRY(op_need_dims(c, 1, &known, &wanted)); /* the rank at least */
        const int rank = c->inputs[0].dims.rank;
        if (wanted.rank == RANK_UNKNOWN) return CLG_OK;
        while (wanted.rank < rank) wanted.dims[wanted.rank++] = DIM_UNKNOWN;
        fact_set(&c->outputs[0], c->inputs[0].dtype, &wanted);
        return CLG_OK;
    }
    status = shape_make(n, dims, &wanted);
    if (status == CLG_OK && !shape_is_known(&wanted))
        status = error_set(CLG_ERROR_SHAPE, "the shape to expand to has a negative dimension");
    if (status == CLG_OK) status = shape_broadcast(&c->inputs[0].dims, &wanted, &out);
    if (status != CLG_OK) return op_error(c, CLG_ERROR_SHAPE, "%s", error_text());
    fact_set(&c->outputs[0], c->inputs[0].dtype, &out);
    return CLG_OK;
}

static clg_status expand_walk(strided_walk *w)
{
    int64_t to[CLG_MAX_RANK];
    const int shift = w->out->rank - w->in->rank;
    shape_strides(w->out, to);
    for (int i = 0; i < w->out->rank; i++) {
        const bool repeats = i < shift || w->in->dims[i - shift] != w->out->dims[i];
        strided_add_dim(w, w->out->dims[i], repeats ? 0 : w->in_strides[i - shift], to[i]);
    }
    return CLG_OK;
}

/* ---- Tile ------------------------------------------------------------------------------------ */

static clg_status tile_infer(op_context *c)
{
    int64_t repeats[OP_MAX_INTS];
    size_t n;
    clg_status status = CLG_OK;
    const shape *in = &c->inputs[0].dims;
    shape out = {.rank = in->rank};
    if (!op_need_ints(c, 1, repeats, &n, &status)) return status;
    if (n != (size_t)in->rank)
        return op_error(c, CLG_ERROR_SHAPE, "repeats has %zu numbers for an input of rank %d", n,
                        in->rank);
    for (int i = 0; i < in->rank; i++) {
        if (repeats[i] < 0) return op_error(c, CLG_ERROR_SHAPE, "repeats[%d] is negative", i);
        out.dims[i] = DIM_UNKNOWN;
        if (in->dims[i] >= 0 && !checked_mul_i64(in->dims[i], repeats[i], &out.dims[i]))
            return op_error(c, CLG_ERROR_SHAPE, "dimension %d of the output is too large", i);
    }
    fact_set(&c->outputs[0], c->inputs[0].dtype, &out);
    return CLG_OK;
}

static clg_status tile_walk(strided_walk *w)
{
    int64_t to[CLG_MAX_RANK];
    shape_strides(w->out, to);
    for (int i = 0; i < w->in->rank; i++) {
        const int64_t n = w->in->dims[i];
        strided_add_dim(w, n ? w->out->dims[i] / n : 0, 0, to[i] * n);
        strided_add_dim(w, n, w->in_strides[i], to[i]);
    }
    return CLG_OK;
}

/* ---- DepthToSpace, SpaceToDepth -------------------------------------------------------------- */

static clg_status block_infer(op_context *c)
{
    const shape *in = &c->inputs[0].dims;
    const bool to_space = strcmp(c->node->op_type, "DepthToSpace") == 0;
    const int64_t block = node_int(c->node, "blocksize", 1);
    shape out = *in;
    if (in->rank != 4)
        return op_error(c, CLG_ERROR_SHAPE, "takes an input of rank 4, not %d", in->rank);
    const int64_t divisors[4] = {1, to_space ? block * block : 1, to_space ? 1 : block,
                                 to_space ? 1 : block};
    const int64_t factors[4] = {1, to_space ? 1 : block * block, to_space ? block : 1,
                                to_space ? block : 1};
    for (int i = 1; i < 4; i++) {
        if (in->dims[i] == DIM_UNKNOWN) continue;
        if (in->dims[i] % divisors[i] != 0)
            return op_error(c, CLG_ERROR_SHAPE,
                            "dimension %d is %" PRId64 ", no multiple of %" PRId64, i, in->dims[i],
                            divisors[i]);
        if (!checked_mul_i64(in->dims[i] / divisors[i], factors[i], &out.dims[i]))
            return op_error(c, CLG_ERROR_SHAPE, "dimension %d of the output is too large", i);
    }
    fact_set(&c->outputs[0], c->inputs[0].dtype, &out);
    return CLG_OK;
}

/* Describes DepthToSpace with block size b: output [N, C, H, b, W, b] from input channels that are
 * [b, b, C] (mode DCR) or [C, b, b] (CRD). */
static clg_status depth_to_space_walk(strided_walk *w)
{
    int64_t to[CLG_MAX_RANK];
    const int64_t b = node_int(w->node, "blocksize", 1), channels = w->out->dims[1],
                  *s = w->in_strides;
    const bool crd = strcmp(node_string(w->node, "mode", "DCR"), "CRD") == 0;
    const int64_t row = crd ? b * s[1] : b * channels * s[1], column = crd ? s[1] : channels * s[1];
    shape_strides(w->out, to);
    strided_add_dim(w, w->out->dims[0], s[0], to[0]);
    strided_add_dim(w, channels, crd ? b * b * s[1] : s[1], to[1]);
    strided_add_dim(w, w->in->dims[2], s[2], b * to[2]);
    strided_add_dim(w, b, row, to[2]);
    strided_add_dim(w, w->in->dims[3], s[3], b * to[3]);
    strided_add_dim(w, b, column, to[3]);
    return CLG_OK;
}

/* Describes SpaceToDepth with block size b: output channels are [b, b, C] (mode DCR) or [C, b, b]
 * (CRD), with rows of a block before columns. */
static clg_status space_to_depth_walk(strided_walk *w)
{
    int64_t to[CLG_MAX_RANK];
    const int64_t b = node_int(w->node, "blocksize", 1), channels = w->in->dims[1],
                  *s = w->in_strides;
    const bool crd = strcmp(node_string(w->node, "mode", "DCR"), "CRD") == 0;
    shape_strides(w->out, to);
    strided_add_dim(w, w->out->dims[0], s[0], to[0]);
    strided_add_dim(w, b, s[2], crd ? b * to[1] : b * channels * to[1]);
    strided_add_dim(w, b, s[3], crd ? to[1] : channels * to[1]);
    strided_add_dim(w, channels, s[1], crd ? b * b * to[1] : to[1]);
    strided_add_dim(w, w->out->dims[2], b * s[2], to[2]);
    strided_add_dim(w, w->out->dims[3], b * s[3], to[3]);
    return CLG_OK;
}

/* ---- Concat ---------------------------------------------------------------------------------- */

static clg_status concat_infer(op_context *c)
{
    int axis;
    shape out = c->inputs[0].dims;
    if (shape_axis(node_int(c->node, "axis", 1), out.rank, "axis", &axis) != CLG_OK)
        return op_error(c, CLG_ERROR_SHAPE, "%s", error_text());
    for (size_t i = 1; i < c->n_inputs; i++) {
        const shape *in = &c->inputs[i].dims;
        if (in->rank != out.rank)
            return op_error(c, CLG_ERROR_SHAPE, "input %zu has rank %d, input 0 rank %d", i,
                            in->rank, out.rank);
        for (int d = 0; d < out.rank; d++) {
            if (d == axis) {
                if (in->dims[d] == DIM_UNKNOWN || out.dims[d] == DIM_UNKNOWN)
                    out.dims[d] = DIM_UNKNOWN;
                else if (!checked_add_i64(out.dims[d], in->dims[d], &out.dims[d]))
                    return op_error(c, CLG_ERROR_SHAPE, "the output is too large");
            } else if (out.dims[d] == DIM_UNKNOWN) {
                out.dims[d] = in->dims[d];
            } else if (in->dims[d] != DIM_UNKNOWN && in->dims[d] != out.dims[d]) {
                return op_error(c, CLG_ERROR_SHAPE,
                                "dimension %d of input %zu is %" PRId64
                                ", of the inputs before %" PRId64,
                                d, i, in->dims[d], out.dims[d]);
            }
        }
    }
    fact_set(&c->outputs[0], c->outputs[0].dtype, &out);
    return CLG_OK;
}

/* Sets the grid of the copy of one input into its part of the output. */
static void concat_grid(grid_dims *g, const shape *in, const int64_t *in_strides,
                        const int64_t *out_strides)
{
    g->rank = in->rank;
    memcpy(g->dims, in->dims, sizeof in->dims);
    grid_set_strides(g, STRIDED_FROM, in_strides);
    grid_set_strides(g, STRIDED_TO, out_strides);
}

static clg_status concat_eval(op_context *c, tensor **out_tensors)
{
    int axis;
    int64_t in_strides[CLG_MAX_RANK], out_strides[CLG_MAX_RANK], strides[2][GRID_MAX_RANK], at = 0;
    grid_dims g = {.n_operands = 2, .strides = strides};
    const size_t size = dtype_size(c->outputs[0].dtype);
    tensor *t;
    if (size == 0) return CLG_OK;
    CLG_TRY(shape_axis(node_int(c->node, "axis", 1), c->outputs[0].dims.rank, "axis", &axis));
    CLG_TRY(tensor_create(c->outputs[0].dtype, &c->outputs[0].dims, &t));
    shape_strides(&t->dims, out_strides);
    for (size_t i = 0; i < c->n_inputs; i++) {
        const tensor *in = c->inputs[i].known;
        shape_strides(&in->dims, in_strides);
        concat_grid(&g, &in->dims, in_strides, out_strides);
        strided_copy_host(&g, size, in->data,
                          (char *)t->data + (size_t)(at * out_strides[axis]) * size);
        at += in->dims.dims[axis];
    }
    out_tensors[0] = t;
    return CLG_OK;
}

/* Returns whether each input's part of the output is contiguous in it. */
static bool parts_are_whole(const shape *dims, int axis)
{
    for (int i = 0; i < axis; i++)
        if (dims->dims[i] != 1) return false;
    return true;
}

static clg_status concat_lower(lower_context *c)
{
    int axis;
    int64_t at = 0;
    const lower_operand *out = &c->outputs[0];
    CLG_TRY(shape_axis(node_int(c->node, "axis", 1), out->dims.rank, "axis", &axis));
    if (c->n_inputs == 1) {
        c->is_view = true;
        memcpy(c->views[0].strides, c->inputs[0].strides, sizeof c->views[0].strides);
        return CLG_OK;
    }
    candidate *to = step_candidate(&c->build, "concat");
    for (size_t i = 0; i < c->n_inputs; i++) {
        const lower_operand *in = &c->inputs[i];
        operand destination = operand_output(0);
        grid_dims *g = strided_grid(c->memory, 0, NULL);
        if (!g) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        concat_grid(g, &in->dims, in->strides, out->strides);
        destination.offset_elems = at * out->strides[axis];
        if (parts_are_whole(&out->dims, axis)) c->joins[i] = destination.offset_elems;
        strided_copy(c, to, g, operand_input((uint32_t)i), destination, in->dtype);
        at += in->dims.dims[axis];
    }
    return CLG_OK;
}

/* ---- clgraph.Copy ---------------------------------------------------------------------------- */

static clg_status copy_infer(op_context *c)
{
    fact_set(&c->outputs[0], c->inputs[0].dtype, &c->inputs[0].dims);
    return CLG_OK;
}

/* Appends the copy of a tensor of sub-byte elements, which is always dense. */
static clg_status copy_packed(lower_context *c)
{
    int64_t n;
    size_t size_bytes;
    CLG_TRY(shape_n_elements(&c->inputs[0].dims, &n));
    if (!c->inputs[0].dense || !dtype_bytes(c->inputs[0].dtype, n, &size_bytes))
        return error_set(CLG_ERROR_INTERNAL, "%s cannot be copied from a view with strides",
                         dtype_name(c->inputs[0].dtype));
    (void)step_copy(&c->build, step_candidate(&c->build, "copy"), operand_input(0),
                    operand_output(0), size_bytes);
    return c->build.status;
}

clg_status ops_lower_copy(lower_context *c)
{
    const lower_operand *in = &c->inputs[0], *out = &c->outputs[0];
    if (narrow_is_packed(in->dtype)) return copy_packed(c);
    grid_dims *g = strided_grid(c->memory, in->dims.rank, in->dims.dims);
    if (!g) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    grid_set_strides(g, STRIDED_FROM, in->strides);
    grid_set_strides(g, STRIDED_TO, out->strides);
    strided_copy(c, step_candidate(&c->build, "copy"), g, operand_input(0), operand_output(0),
                 in->dtype);
    return c->build.status;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_attribute transpose_attributes[] = {{"perm", ATTRIBUTE_INTS, false, OP_ANY}, {0}};
static const op_attribute concat_attributes[] = {{"axis", ATTRIBUTE_INT, false, OP_ANY}, {0}};
static const op_attribute to_depth_attributes[] = {
    {"blocksize", ATTRIBUTE_INT, true, OP_BETWEEN(1, INT16_MAX)}, {0}};
static const op_attribute to_space_attributes[] = {
    {"blocksize", ATTRIBUTE_INT, true, OP_BETWEEN(1, INT16_MAX)},
    {"mode", ATTRIBUTE_STRING, false, OP_ONE_OF("DCR", "CRD")},
    {0}};
static const op_types shapes[] = {{'T', DTYPES_BYTES}, {'I', DTYPE_BIT(CLG_INT64)}, {0, 0}};

#define WALKS(variant_name, function)                                                              \
    OP_OUTPUTS(1, 1, "T"), .types = shapes, .eval = strided_eval, .lower = strided_lower,          \
                           .flags = OP_STRIDED_INPUTS | OP_MOVES, .param = &(const strided_op)     \
    {                                                                                              \
        variant_name, function                                                                     \
    }

const op_row op_rows_strided[] = {
    {.name = "Transpose",
     .grad = GRAD_BY(grad_pass_transpose),
     .batch = BATCH_BY(batch_pass_transpose, 1),
     .since = 1,
     OP_INPUTS(1, 1, "T"),
     .attributes = transpose_attributes,
     .infer = transpose_infer,
     WALKS("transpose", transpose_walk)},
    {.name = "Expand",
     .grad = GRAD_BY(grad_pass_expand),
     .batch = BATCH_SHAPES(batch_pass_expand, 1),
     .since = 8,
     OP_INPUTS(2, 2, "TI"),
     .infer = expand_infer,
     WALKS("expand", expand_walk)},
    {.name = "Tile",
     .grad = GRAD_BY(grad_pass_tile),
     .batch = BATCH_SHAPES(batch_pass_tile, 1),
     .since = 6,
     OP_INPUTS(2, 2, "TI"),
     .infer = tile_infer,
     WALKS("tile", tile_walk)},
    {.name = "DepthToSpace",
     .grad = GRAD_BY(grad_pass_depth_to_space),
     .batch = BATCH_FIRST,
     .since = 1,
     OP_INPUTS(1, 1, "T"),
     .attributes = to_space_attributes,
     .infer = block_infer,
     WALKS("depth_to_space", depth_to_space_walk)},
    {.name = "SpaceToDepth",
     .grad = GRAD_BY(grad_pass_space_to_depth),
     .batch = BATCH_FIRST,
     .since = 1,
     .until = 27,
     OP_INPUTS(1, 1, "T"),
     .attributes = to_depth_attributes,
     .infer = block_infer,
     WALKS("space_to_depth", space_to_depth_walk)},
    {.name = "SpaceToDepth",
     .grad = GRAD_BY(grad_pass_space_to_depth),
     .batch = BATCH_FIRST,
     .since = 28,
     OP_INPUTS(1, 1, "T"),
     .attributes = to_space_attributes,
     .infer = block_infer,
     WALKS("space_to_depth", space_to_depth_walk)},
    {.name = "Concat",
     .grad = GRAD_BY(grad_pass_concat),
     .batch = BATCH_SHAPES(batch_pass_concat, BATCH_ALL),
     .since = 4,
     OP_INPUTS(1, OP_ANY_NUMBER, "T"),
     OP_OUTPUTS(1, 1, "T"),
     .types = shapes,
     .attributes = concat_attributes,
     .infer = concat_infer,
     .eval = concat_eval,
     .lower = concat_lower,
     .flags = OP_STRIDED_INPUTS | OP_MOVES},
    {.name = "Copy",
     .grad = GRAD_NONE(GRAD_OF_PASSES),
     .domain = "clgraph",
     .since = 1,
     OP_INPUTS(1, 1, "T"),
     OP_OUTPUTS(1, 1, "T"),
     .infer = copy_infer,
     .lower = ops_lower_copy,
     .flags = OP_STRIDED_INPUTS},
};
const size_t n_op_rows_strided = sizeof op_rows_strided / sizeof op_rows_strided[0];
