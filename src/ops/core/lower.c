/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers a node: initializes the results in the context, calls the operator's function lower, and
 * validates its results.
 */
#include "ops/core/op.h"

static const lower_operand absent_operand = {.dims = {.rank = RANK_UNKNOWN}};

const lower_operand *lower_input(const lower_context *c, size_t i)
{
    return i < c->n_inputs ? &c->inputs[i] : &absent_operand;
}

bool lower_has_input(const lower_context *c, size_t i)
{
    return lower_input(c, i)->dtype != CLG_DTYPE_NONE;
}

bool lower_is_simd(const lower_context *c) { return c->kernel_class == CLG_KERNELS_SIMD; }

static clg_status make_views(lower_context *c)
{
    c->is_view = false;
    c->views = arena_alloc(c->memory, c->n_outputs, sizeof *c->views);
    c->joins = arena_alloc(c->memory, c->n_inputs + 1, sizeof *c->joins);
    if (!c->views || !c->joins) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < c->n_inputs; i++) c->joins[i] = -1;
    for (size_t i = 0; i < c->n_outputs; i++) {
        if (shape_is_known(&c->outputs[i].dims))
            shape_strides(&c->outputs[i].dims, c->views[i].strides);
    }
    return CLG_OK;
}

bool lower_takes(const op_row *row, size_t i, const lower_operand *input, const shape *output)
{
    if (input->dense) return true;
    return row->takes_strided ? row->takes_strided(i, input, output)
                              : (row->flags & OP_STRIDED_INPUTS) != 0;
}

/* Prefixes the node's name to an error that the step builder reported without it. */
static clg_status with_node(const lower_context *c, clg_status status)
{
    char shown[NODE_TEXT_BYTES];
    return error_prefix(status, "%s", node_text(c->node, shown));
}

clg_status ops_lower_node(lower_context *c)
{
    step_builder_init(&c->build, c->memory, c->texts);
    CLG_TRY(make_views(c));
    if (!c->row->lower) {
        return lower_error(
            c, CLG_ERROR_UNSUPPORTED_OPERATOR,
            "its value must be known before the run, since it cannot be computed on a device");
    }
    for (size_t i = 0; i < c->n_inputs; i++) {
        if (c->inputs[i].dtype != CLG_DTYPE_NONE &&
            !lower_takes(c->row, i, &c->inputs[i], &c->outputs[0].dims))
            return lower_error(c, CLG_ERROR_INTERNAL, "input %zu is not dense", i);
    }
    CLG_TRY(c->row->lower(c));
    clg_status status = step_builder_check(&c->build, c->n_inputs, c->n_outputs);
    if (status != CLG_OK) return with_node(c, status);
    if (c->caps->quirks & QUIRK_COSTLY_ARGUMENTS) CLG_TRY(step_builder_pack_args(&c->build));
    if (!c->is_view && !c->build.candidates)
        return lower_error(c, CLG_ERROR_INTERNAL, "lowering gave nothing");
    return CLG_OK;
}
