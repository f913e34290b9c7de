/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of operators that only move elements: each cotangent moves back.
 */
#include "ops/grad/grad_rule.h"

#include <string.h>

void grad_pass_same(grad_node *c) { grad_give(c, 0, grad_cotangent(c, 0)); }

void grad_pass_reshape(grad_node *c)
{
    grad_give(c, 0, grad_reshape_like(c, grad_cotangent(c, 0), grad_in(c, 0)));
}

void grad_pass_expand(grad_node *c)
{
    grad_give(c, 0, grad_sum_to(c, grad_cotangent(c, 0), grad_in(c, 0)));
}

void grad_pass_transpose(grad_node *c)
{
    int64_t inverse[CLG_MAX_RANK];
    size_t n;
    const int64_t *perm = node_ints(&c->node, "perm", &n);
    const value_id g = GRAD_ADD(c, "Transpose", grad_cotangent(c, 0));
    for (size_t i = 0; perm && i < n && i < CLG_MAX_RANK; i++)
        if (perm[i] >= 0 && perm[i] < CLG_MAX_RANK) inverse[perm[i]] = (int64_t)i;
    grad_give(c, 0, perm ? grad_set_ints(c, g, "perm", n, inverse) : g);
}

/* ---- Concat and Split ------------------------------------------------------------------------ */

/* Adds a Split of the cotangent into the parts that the inputs were. */
void grad_pass_concat(grad_node *c)
{
    const int64_t axis = node_int(&c->node, "axis", 1);
    const size_t n = c->node.n_inputs;
    value_id *sizes = memory_zalloc(2 * n, sizeof *sizes), *parts = sizes ? sizes + n : NULL;
    if (!sizes) {
        c->status = CLG_ERROR_OUT_OF_HOST_MEMORY;
        return;
    }
    for (size_t i = 0; i < n; i++) sizes[i] = grad_size_along(c, grad_in(c, i), axis);
    grad_split(c, grad_cotangent(c, 0), axis, grad_concat(c, 0, n, sizes), n, parts);
    for (size_t i = 0; i < n; i++) grad_give(c, i, parts[i]);
    memory_free(sizes);
}

/* Joins the cotangents of the parts, with zeros for parts on which the result does not depend. */
void grad_pass_split(grad_node *c)
{
    const size_t n = c->node.n_outputs;
    value_id *parts = memory_zalloc(n, sizeof *parts);
    if (!parts) {
        c->status = CLG_ERROR_OUT_OF_HOST_MEMORY;
        return;
    }
    for (size_t k = 0; k < n; k++) {
        parts[k] = grad_cotangent(c, k);
        if (parts[k] != VALUE_NONE) continue;
        if (grad_out(c, k) == VALUE_NONE) {
            grad_refuse(c, "its output %zu is omitted", k);
            break;
        }
        parts[k] = grad_fill_like(c, grad_out(c, k), 0);
    }
    const value_id joined = grad_add(c, "Concat", n, parts);
    grad_give(c, 0, grad_set_int(c, joined, "axis", node_int(&c->node, "axis", 0)));
    memory_free(parts);
}

/* ---- Slice --------------------------------------------------------------------------- */

/* Adds clgraph.SliceGrad: zeros of the shape of the input, with the cotangent where the slice was.
 */
void grad_pass_slice(grad_node *c)
{
    static const char *const names[4] = {"starts", "ends", "axes", "steps"};
    value_id inputs[6] = {grad_cotangent(c, 0), grad_dims(c, grad_in(c, 0)),
                          VALUE_NONE,           VALUE_NONE,
                          VALUE_NONE,           VALUE_NONE};
    size_t n_given = 2;
    for (size_t i = 0; i < 4; i++) {
        size_t n;
        const int64_t *given = node_ints(&c->node, names[i], &n);
        inputs[2 + i] = given ? grad_list(c, n, given) : grad_in(c, 1 + i);
        if (inputs[2 + i] != VALUE_NONE) n_given = 3 + i;
    }
    grad_give(c, 0, grad_add_of(c, DOMAIN_INTERNAL, "SliceGrad", n_given, inputs));
}

/* In second derivatives: the slice of the cotangent. */
void grad_pass_slice_grad(grad_node *c)
{
    value_id inputs[5] = {grad_cotangent(c, 0), VALUE_NONE, VALUE_NONE, VALUE_NONE, VALUE_NONE};
    for (size_t i = 1; i < 5; i++) inputs[i] = grad_in(c, i + 1);
    grad_give(c, 0, grad_add(c, "Slice", c->node.n_inputs - 1, inputs));
}

/* ---- Dropout --------------------------------------------------------------------------------- */

/* In training, opset 12 and later: passes on what was kept, scaled as it was. Else as Identity. */
void grad_pass_dropout(grad_node *c)
{
    const value_id g = grad_cotangent(c, 0);
    const tensor *training = grad_fact(c, grad_in(c, 2))->known;
    const bool never = c->row->since < 12 || grad_in(c, 2) == VALUE_NONE ||
                       (training && training->n_elements > 0 && tensor_get_int(training, 0) == 0);
    if (c->node.opset < 7 && node_int(&c->node, "is_test", 0) == 0) {
        grad_refuse(c, "before opset 7 its mask is not a bool");
    } else if (never) {
        grad_give(c, 0, g);
    } else if (!training) {
        grad_refuse(c, "training_mode is not known");
    } else {
        const value_id ratio = grad_in(c, 1) == VALUE_NONE ? grad_number(c, 0.5) : grad_in(c, 1);
        const value_id cast =
            grad_set_int(c, GRAD_ADD(c, "Cast", ratio), "to", grad_fact(c, grad_out(c, 0))->dtype);
        const value_id kept = GRAD_ADD(c, "Sub", grad_number(c, 1), cast);
        const value_id scaled = GRAD_ADD(c, "Div", g, kept);
        grad_give(c, 0, GRAD_ADD(c, "Where", grad_need_output(c, 1), scaled, grad_number(c, 0)));
    }
}
