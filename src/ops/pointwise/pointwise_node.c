/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers, evaluates and lowers a node as a group of instructions. This is the same for all
 * pointwise operators; op_pointwise.c has their differences.
 */
#include "base/cancel.h"
#include "ops/lowering/work.h"
#include "ops/ml/strings.h"
#include "ops/pointwise/pointwise.h"
#include "ops/quant/narrow.h"

#include <string.h>

/* ---- groups ---------------------------------------------------------------------------------- */

/* Returns how the output's shape follows from the inputs'; clgraph.Pointwise, which has no param,
 * broadcasts. */
static pointwise_shapes shapes_of(const op_row *row)
{
    const pointwise_op *op = row->param;
    return op ? op->shapes : POINTWISE_BROADCAST;
}

static bool is_aligned(const op_row *row) { return shapes_of(row) >= POINTWISE_ALIGNED; }

bool pointwise_is(const node *n)
{
    const op_row *row = n->op;
    return row && row->infer == pointwise_infer_node && row->param && !is_aligned(row);
}

bool pointwise_broadcasts(const node *n) { return shapes_of(n->op) == POINTWISE_BROADCAST; }

clg_status pointwise_add_node(pointwise_group *g, const pointwise_source *s,
                              pointwise_register *out)
{
    const pointwise_op *op = s->row->param;
    float scalars[2] = {0, 0};
    const size_t n_instructions = g->n_instructions, n_scalars = g->n_scalars;
    for (size_t i = 0; i < 2 && op->scalars[i].attribute; i++)
        scalars[i] = node_float(s->node, op->scalars[i].attribute, op->scalars[i].fallback);
    const clg_status status =
        op->expand ? op->expand(g, s, out) : pointwise_add(g, op->def, s->registers, scalars, out);
    if (status != CLG_OK) {
        g->n_instructions = n_instructions;
        g->n_scalars = n_scalars;
    }
    return status;
}

clg_status pointwise_fold(pointwise_group *g, const pointwise_source *s, pointwise_register *out)
{
    const pointwise_op *op = s->row->param;
    *out = s->registers[0];
    for (size_t i = 1; i < s->count; i++)
        CLG_TRY(
            pointwise_add(g, op->def, (pointwise_register[]){*out, s->registers[i]}, NULL, out));
    return CLG_OK;
}

/* Builds the group of one node: inputs[i] is its input i; absent inputs have no register. */
static clg_status group_of_node(const node *n, const op_row *row, const clg_dtype *dtypes,
                                const tensor *const *known, pointwise_group *g)
{
    pointwise_register registers[POINTWISE_MAX_INPUTS], result;
    if (!row->param) return pointwise_read(n, dtypes, g);
    *g = (pointwise_group){.n_inputs = n->n_inputs};
    for (size_t i = 0; i < n->n_inputs; i++) {
        g->inputs[i] = dtypes[i];
        registers[i] = dtypes[i] == CLG_DTYPE_NONE ? POINTWISE_NONE : (pointwise_register)i;
    }
    const pointwise_source source = {n, row, registers, known, n->n_inputs};
    CLG_TRY(pointwise_add_node(g, &source, &result));
    return pointwise_add_output(g, result);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Appends dimensions of 1 to the shape of input 1, so that it starts at `axis` of input 0: the
 * broadcasting of opsets before 7. */
static void align(const node *n, const op_row *row, const shape *first, shape *second)
{
    const bool is_slope = shapes_of(row) == POINTWISE_ALIGNED_SLOPE && second->rank == 1;
    int64_t axis = node_int(n, "axis", is_slope ? 1 : first->rank - second->rank);
    if (axis < 0) axis += first->rank;
    while (second->rank > 0 && axis >= 0 && second->rank < CLG_MAX_RANK &&
           axis + second->rank < first->rank)
        second->dims[second->rank++] = 1;
}

static clg_status broadcast_all(op_context *c, shape *out)
{
    const size_t n = shapes_of(c->row) == POINTWISE_FIRST_ALONE ? 1 : c->n_inputs;
    *out = shape_scalar();
    for (size_t i = 0; i < n; i++) {
        CLG_TRY(cancel_check_step(i, "inferring shapes"));
        if (!op_has_input(c, i)) continue;
        if (c->inputs[i].dims.rank == RANK_UNKNOWN) {
            *out = shape_unknown();
            return CLG_OK;
        }
        shape in = c->inputs[i].dims;
        if (i == 1 && is_aligned(c->row)) align(c->node, c->row, &c->inputs[0].dims, &in);
        if (shape_broadcast(out, &in, out) != CLG_OK)
            return op_error(c, CLG_ERROR_SHAPE, "%s", error_text());
    }
    return CLG_OK;
}

static clg_status infer_fused(op_context *c, const shape *dims)
{
    clg_dtype dtypes[POINTWISE_MAX_INPUTS] = {CLG_DTYPE_NONE};
    pointwise_group g;
    for (size_t i = 0; i < c->n_inputs; i++) {
        dtypes[i] = c->inputs[i].dtype;
        if (!op_has_input(c, i)) return op_error(c, CLG_ERROR_INVALID_MODEL, "omits input %zu", i);
        if (dtypes[i] == CLG_DTYPE_NONE) return CLG_OK;
    }
    if (pointwise_read(c->node, dtypes, &g) != CLG_OK)
        return op_error(c, CLG_ERROR_INVALID_MODEL, "%s", error_text());
    for (size_t i = 0; i < c->n_outputs; i++)
        fact_set(&c->outputs[i], pointwise_dtype(&g, g.outputs[i]), dims);
    return CLG_OK;
}

/* Rejects shapes that broadcasting would allow but the operator does not. */
static clg_status check_shapes(const op_context *c, const shape *dims)
{
    const pointwise_shapes shapes = shapes_of(c->row);
    const shape *first = &c->inputs[0].dims;
    const bool of_first = shapes == POINTWISE_OF_FIRST || shapes == POINTWISE_ALIGNED_SLOPE;
    const shape *second = of_first ? dims : &op_input(c, 1)->dims;
    if (shapes != POINTWISE_ALIKE && !of_first) return CLG_OK;
    if (first->rank == RANK_UNKNOWN || second->rank == RANK_UNKNOWN || !shape_is_known(first) ||
        !shape_is_known(second) || shape_equal(first, second))
        return CLG_OK;
    return op_error(c, CLG_ERROR_SHAPE,
                    of_first ? "the slope must broadcast to the shape of the input"
                             : "the two inputs must have the same shape");
}

clg_status pointwise_infer_node(op_context *c)
{
    shape dims;
    const pointwise_op *op = c->row->param;
    CLG_TRY(broadcast_all(c, &dims));
    if (!op) return infer_fused(c, &dims);
    CLG_TRY(check_shapes(c, &dims));
    fact_set(&c->outputs[0],
             op->to ? (clg_dtype)node_int(c->node, "to", CLG_FLOAT32) : c->outputs[0].dtype, &dims);
    return CLG_OK;
}

/* ---- host arithmetic ------------------------------------------------------------------------- */

/* Evaluates Equal, Cast and CastLike on strings. */
static clg_status eval_strings(op_context *c, tensor **out_tensors)
{
    const value_fact *out = &c->outputs[0];
    if (out->dtype == CLG_BOOL && c->n_inputs == 2 && c->inputs[1].dtype == CLG_STRING)
        return strings_equal(c->inputs[0].known, c->inputs[1].known, &out->dims, out_tensors);
    return strings_cast(c, c->inputs[0].known, out->dtype, out_tensors);
}

clg_status pointwise_eval_node(op_context *c, tensor **out_tensors)
{
    clg_dtype dtypes[POINTWISE_MAX_INPUTS] = {CLG_DTYPE_NONE};
    const tensor *known[POINTWISE_MAX_INPUTS], *read[POINTWISE_MAX_INPUTS] = {NULL};
    pointwise_register moved[POINTWISE_MAX_INPUTS];
    pointwise_group g;
    if (c->n_inputs > POINTWISE_MAX_INPUTS || is_aligned(c->row)) return CLG_OK;
    if (strings_in(c)) return eval_strings(c, out_tensors);
    if (narrow_is(c->inputs[0].dtype) || narrow_is(c->outputs[0].dtype)) return CLG_OK;
    for (size_t i = 0; i < c->n_inputs; i++) {
        dtypes[i] = c->inputs[i].dtype;
        known[i] = c->inputs[i].known;
    }
    if (group_of_node(c->node, c->row, dtypes, known, &g) != CLG_OK)
        return op_error(c, CLG_ERROR_UNSUPPORTED_DTYPE, "%s", error_text());
    pointwise_drop_unread(&g, moved);
    for (size_t i = 0; i < c->n_inputs; i++)
        if (moved[i] != POINTWISE_NONE) read[moved[i]] = known[i];
    for (size_t i = 0; i < c->n_outputs; i++)
        CLG_TRY(pointwise_eval(&g, read, &c->outputs[i].dims, g.outputs[i], &out_tensors[i]));
    return CLG_OK;
}

/* ---- lowering -------------------------------------------------------------------------------- */

/* Builds the group of a node from its operands. */
static clg_status group_of_operands(const lower_context *c, pointwise_group *out_group)
{
    clg_dtype dtypes[POINTWISE_MAX_INPUTS] = {CLG_DTYPE_NONE};
    const tensor *known[POINTWISE_MAX_INPUTS];
    for (size_t i = 0; i < c->n_inputs; i++) {
        dtypes[i] = c->inputs[i].dtype;
        known[i] = c->inputs[i].known;
    }
    return group_of_node(c->node, c->row, dtypes, known, out_group);
}

clg_status pointwise_group_of(const lower_context *c, pointwise_group *out_group)
{
    if (c->n_inputs > POINTWISE_MAX_INPUTS || narrow_is(c->inputs[0].dtype) ||
        narrow_is(c->outputs[0].dtype))
        return error_set(CLG_ERROR_NOT_FOUND, "%s is not lowered as one group", c->node->op_type);
    return group_of_operands(c, out_group);
}

/* Binds the group's inputs to the node's, and drops inputs that no instruction reads: absent ones,
 * known exponents, the second input of CastLike. */
static void bind_used_inputs(const lower_context *c, pointwise_group *g, pointwise_binding *bound)
{
    pointwise_register moved[POINTWISE_MAX_INPUTS];
    const size_t n = g->n_inputs;
    pointwise_drop_unread(g, moved);
    for (size_t i = 0; i < n; i++)
        if (moved[i] != POINTWISE_NONE)
            bound[moved[i]] = (pointwise_binding){operand_input((uint32_t)i), &c->inputs[i]};
}

/* Lowers a Sum, Mean, Min or Max with more inputs than a group can have: several groups, which
 * accumulate in the output. */
static clg_status lower_many(lower_context *c, candidate *to)
{
    const pointwise_binding output = {operand_output(0), &c->outputs[0]};
    for (size_t done = 0; done < c->n_inputs;) {
        pointwise_binding bound[POINTWISE_MAX_INPUTS];
        pointwise_register registers[POINTWISE_MAX_INPUTS], result;
        pointwise_group g = {0};
        CLG_TRY(cancel_check("planning"));
        if (done > 0) bound[g.n_inputs++] = output;
        while (g.n_inputs < POINTWISE_MAX_INPUTS && done < c->n_inputs) {
            bound[g.n_inputs++] =
                (pointwise_binding){operand_input((uint32_t)done), &c->inputs[done]};
            done++;
        }
        for (size_t i = 0; i < g.n_inputs; i++) {
            g.inputs[i] = c->outputs[0].dtype;
            registers[i] = (pointwise_register)i;
        }
        const pointwise_source source = {c->node, c->row, registers, NULL, g.n_inputs};
        if (done == c->n_inputs)
            CLG_TRY(pointwise_add_node(&g, &source, &result));
        else
            CLG_TRY(pointwise_fold(&g, &source, &result));
        CLG_TRY(pointwise_add_output(&g, result));
        CLG_TRY(pointwise_lower(c, to, &g, bound, &output));
    }
    return CLG_OK;
}

/* Returns whether the group copies its input without changing anything, so that a view suffices. */
static bool is_nothing(const lower_context *c, const pointwise_group *g,
                       const pointwise_binding *bound)
{
    return g->n_instructions == 0 && g->n_outputs == 1 && bound[0].where.index == 0 &&
           shape_equal(&c->inputs[0].dims, &c->outputs[0].dims);
}

clg_status pointwise_lower_node(lower_context *c)
{
    pointwise_binding bound[POINTWISE_MAX_INPUTS] = {{operand_input(0), NULL}},
                      outputs[POINTWISE_MAX_OUTPUTS];
    if (c->n_inputs > POINTWISE_MAX_INPUTS)
        return lower_many(c, step_candidate(&c->build, "pointwise"));
    if (narrow_is(c->inputs[0].dtype) || narrow_is(c->outputs[0].dtype))
        return narrow_lower_cast(c);
    pointwise_group *g = arena_alloc(c->memory, 1, sizeof *g);
    if (!g) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const clg_status status = group_of_operands(c, g);
    if (status != CLG_OK) return lower_error(c, status, "%s", error_text());
    bind_used_inputs(c, g, bound);
    lower_operand second = *lower_input(c, 1);
    if (is_aligned(c->row) && g->n_inputs == 2) {
        align(c->node, c->row, &c->inputs[0].dims, &second.dims);
        bound[1].what = &second;
    }
    if (is_nothing(c, g, bound)) {
        c->is_view = true;
        memcpy(c->views[0].strides, c->inputs[0].strides, sizeof c->views[0].strides);
        return CLG_OK;
    }
    for (size_t i = 0; i < g->n_outputs; i++)
        outputs[i] = (pointwise_binding){operand_output((uint32_t)i), &c->outputs[i]};
    return pointwise_lower(c, step_candidate(&c->build, "pointwise"), g, bound, outputs);
}
