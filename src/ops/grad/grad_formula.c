/* SPDX-License-Identifier: Apache-2.0
 *
 * Says what the names in formulas of gradients are (grad_rule.h).
 */
#include "graph/formula.h"

#include "ops/grad/grad_rule.h"
#include "ops/pointwise/pointwise.h"

#include <string.h>

#define PI 3.14159265358979323846

typedef struct formula_values {
    grad_node *node;
    value_id g, y;
} formula_values;

/* Returns input i in the dtype of output 0. */
static value_id input_of(const formula_values *f, size_t i)
{
    grad_node *c = f->node;
    const value_id v = grad_in(c, i);
    const clg_dtype dtype = grad_fact(c, grad_out(c, 0))->dtype;
    if (v == VALUE_NONE || grad_fact(c, v)->dtype == dtype || grad_fact(c, v)->dtype == CLG_BOOL)
        return v;
    return grad_set_int(c, GRAD_ADD(c, "Cast", v), "to", dtype);
}

/* Returns whether the operator has this attribute among the scalars of its instruction. */
static bool find_scalar(const grad_node *c, const char *name, double *out)
{
    if (!pointwise_is(&c->node)) return false;
    const pointwise_op *op = c->row->param;
    for (size_t i = 0; i < 2 && op->scalars[i].attribute; i++) {
        if (strcmp(op->scalars[i].attribute, name) != 0) continue;
        *out = (double)node_float(&c->node, name, op->scalars[i].fallback);
        return true;
    }
    return false;
}

static value_id find(void *user, const char *name)
{
    double number;
    const formula_values *f = user;
    grad_node *c = f->node;
    if (strcmp(name, "g") == 0) return f->g;
    if (strcmp(name, "y") == 0) return f->y;
    if (strcmp(name, "x") == 0) return input_of(f, 0);
    if (strcmp(name, "x1") == 0) return input_of(f, 1);
    if (strcmp(name, "x2") == 0) return input_of(f, 2);
    if (strcmp(name, "pi") == 0) return grad_number(c, PI);
    return find_scalar(c, name, &number) ? grad_number(c, number) : VALUE_NONE;
}

static value_id add(void *user, const char *op_type, size_t n_inputs, const value_id *inputs)
{
    return grad_add(((formula_values *)user)->node, op_type, n_inputs, inputs);
}

static value_id add_number(void *user, double number)
{
    return grad_number(((formula_values *)user)->node, number);
}

value_id grad_formula_of(grad_node *c, const char *formula, value_id g, value_id y)
{
    formula_values values = {.node = c, .g = g, .y = y};
    const bool failed = c->status != CLG_OK;
    const formula_nodes nodes = {&values, add, add_number, find, &c->status};
    const value_id v = formula_add(&nodes, formula);
    if (!failed && c->status == CLG_ERROR_INTERNAL)
        c->status = error_prefix(c->status, "the gradient of %s", c->node.op_type);
    return v;
}

value_id grad_formula(grad_node *c, const char *formula)
{
    return grad_formula_of(c, formula, grad_cotangent(c, 0), grad_out(c, 0));
}
