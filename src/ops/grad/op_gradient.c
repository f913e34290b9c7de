/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers ai.onnx.preview.training.Gradient: derivatives of value y of the graph with respect to its
 * values xs, where xs and zs have the values of the node's inputs. A pass replaces it by nodes that
 * compute them (passes/decompose/pass_gradient.c).
 */
#include "ops/grad/grad_rule.h"

static clg_status gradient_check(const node *n)
{
    const graph_attribute *xs = node_attribute(n, "xs"), *zs = node_attribute(n, "zs");
    const size_t n_xs = xs ? xs->count : 0, n_zs = zs ? zs->count : 0;
    char text[NODE_TEXT_BYTES];
    if (n->n_inputs == n_xs + n_zs && n->n_outputs <= n_xs) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL,
                     "%s has %zu inputs and %zu outputs for %zu names in xs and %zu in zs",
                     node_text(n, text), n->n_inputs, n->n_outputs, n_xs, n_zs);
}

static clg_status gradient_infer(op_context *c)
{
    for (size_t i = 0; i < c->n_outputs; i++) {
        if (c->inputs[i].dtype != CLG_DTYPE_NONE && !dtype_is_float(c->inputs[i].dtype))
            return op_error(c, CLG_ERROR_UNSUPPORTED_DTYPE,
                            "input %zu is %s, and only floats have gradients", i,
                            dtype_name(c->inputs[i].dtype));
        fact_set(&c->outputs[i], c->inputs[i].dtype, &c->inputs[i].dims);
    }
    return CLG_OK;
}

/* Reports a node that the pass did not replace. */
static clg_status not_replaced(lower_context *c)
{
    return lower_error(c, CLG_ERROR_UNSUPPORTED_OPERATOR,
                       "it is supported outside of branches and loops");
}

static const op_attribute attributes[] = {{"xs", ATTRIBUTE_STRINGS, true, OP_ANY},
                                          {"zs", ATTRIBUTE_STRINGS, false, OP_ANY},
                                          {"y", ATTRIBUTE_STRING, true, OP_ANY},
                                          {0}};

const op_row op_rows_gradient[] = {
    {.name = "Gradient",
     .domain = "ai.onnx.preview.training",
     .since = 1,
     .grad = GRAD_LATER,
     OP_INPUTS(1, OP_ANY_NUMBER, "?"),
     OP_OUTPUTS(1, OP_ANY_NUMBER, "?"),
     .attributes = attributes,
     .check = gradient_check,
     .infer = gradient_infer,
     .lower = not_replaced},
};
const size_t n_op_rows_gradient = sizeof op_rows_gradient / sizeof *op_rows_gradient;
