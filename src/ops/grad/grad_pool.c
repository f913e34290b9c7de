/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of poolings. The internal operators MaxPoolGrad, AveragePoolGrad and SumPoolGrad
 * (ops/vision/op_pool_grad.c) sum, for each element, the contributions of the windows that contain
 * it; their own rules, for second derivatives, are poolings again. The first of equal maxima gets
 * the whole cotangent, as in PyTorch.
 */
#include "ops/grad/grad_rule.h"

/* ---- windows --------------------------------------------------------------------------------- */

/* Copies the node's window to the node that computes v; returns v. */
static value_id with_window(grad_node *c, value_id v)
{
    static const char *const names[] = {"auto_pad", "dilations", "kernel_shape",
                                        "pads",     "strides",   "ceil_mode"};
    return grad_copy_attributes(c, v, sizeof names / sizeof *names, names);
}

/* Copies the attribute that says whether an average counts padding; returns v. */
static value_id with_count(grad_node *c, value_id v)
{
    return grad_copy_attributes(c, v, 1, (const char *const[]){"count_include_pad"});
}

/* Returns a pooling of v with the node's window. */
static value_id pool(grad_node *c, const char *op_type, value_id v)
{
    /* the first opset in which all poolings have all attributes of windows */
    return with_window(c, grad_of_opset(c, GRAD_ADD(c, op_type, v), 19));
}

/* Returns an internal operator with the node's window, which spreads g over input 0. */
static value_id spread(grad_node *c, const char *op_type, value_id g)
{
    const value_id inputs[2] = {g, grad_dims(c, grad_in(c, 0))};
    return with_window(c, grad_add_of(c, DOMAIN_INTERNAL, op_type, 2, inputs));
}

/* ---- MaxPool --------------------------------------------------------------------------------- */

void grad_pass_max_pool(grad_node *c)
{
    const value_id inputs[3] = {grad_cotangent(c, 0), grad_in(c, 0), grad_out(c, 0)};
    grad_give(c, 0, with_window(c, grad_add_of(c, DOMAIN_INTERNAL, "MaxPoolGrad", 3, inputs)));
}

/* Returns where the maxima of the windows of x are, as MaxPool gives them. */
static value_id indices_of(grad_node *c, value_id x)
{
    value_id indices = VALUE_NONE;
    const value_id y = pool(c, "MaxPool", x);
    if (c->status == CLG_OK) c->status = graph_add_value(c->graph, "", &indices);
    if (c->status == CLG_OK)
        c->status = node_add_output(c->graph, c->graph->values[y].producer, indices);
    return indices;
}

/* clgraph.MaxPoolGrad: picks the elements of the maxima. A window that has none, all padding, has
 * index -1. */
void grad_pass_max_pool_grad(grad_node *c)
{
    const int64_t all = -1, none = 0;
    const value_id indices = indices_of(c, grad_in(c, 1)), zero = grad_list(c, 1, &none);
    const value_id flat = GRAD_ADD(c, "Reshape", grad_cotangent(c, 0), grad_list(c, 1, &all));
    const value_id picked = GRAD_ADD(c, "Gather", flat, GRAD_ADD(c, "Max", indices, zero));
    grad_give(c, 0,
              GRAD_ADD(c, "Where", GRAD_ADD(c, "Less", indices, zero), grad_number(c, 0), picked));
}

/* Returns g cut to what the windows of MaxUnpool cover, to which its indices refer. */
static value_id cut_to_covered(grad_node *c, value_id g)
{
    const shape *dims = &grad_fact(c, grad_in(c, 0))->dims;
    int64_t axes[CLG_MAX_RANK], first[CLG_MAX_RANK] = {0}, strides[CLG_MAX_RANK],
                                more[CLG_MAX_RANK];
    size_t n_kernel, n_strides, n_pads;
    const int rank = grad_rank(c, 0), n = rank - 2;
    const int64_t *kernel = node_ints(&c->node, "kernel_shape", &n_kernel),
                  *given = node_ints(&c->node, "strides", &n_strides),
                  *pads = node_ints(&c->node, "pads", &n_pads);
    if (n < 1 || n_kernel != (size_t)n || (n_strides && n_strides != (size_t)n) ||
        (n_pads && n_pads != 2 * (size_t)n)) {
        grad_refuse(c, "kernel_shape, strides or pads do not fit the input");
        return VALUE_NONE;
    }
    /* (size - 1) stride + kernel - pads */
    bool known = true;
    for (int i = 0; i < n; i++) {
        axes[i] = i + 2;
        known = known && dims->dims[i + 2] != DIM_UNKNOWN;
        strides[i] = n_strides ? given[i] : 1;
        more[i] = kernel[i] - strides[i] - (n_pads ? pads[i] + pads[n + i] : 0);
    }
    const value_id along = grad_list(c, (size_t)n, axes), none = grad_list(c, (size_t)n, first);
    const value_id sizes = known ? grad_list(c, (size_t)n, dims->dims + 2)
                                 : GRAD_ADD(c, "Gather", grad_dims(c, grad_in(c, 0)), along);
    const value_id scaled = GRAD_ADD(c, "Mul", sizes, grad_list(c, (size_t)n, strides));
    const value_id ends = GRAD_ADD(c, "Add", scaled, grad_list(c, (size_t)n, more));
    return GRAD_ADD(c, "Slice", g, none, ends, along);
}

/* Gathers the cotangents at the indices, after removing the zeros that output_shape appends. */
void grad_pass_max_unpool(grad_node *c)
{
    const int64_t all = -1;
    value_id g = grad_cotangent(c, 0);
    if (grad_in(c, 2) != VALUE_NONE) g = cut_to_covered(c, g);
    const value_id flat = GRAD_ADD(c, "Reshape", g, grad_list(c, 1, &all));
    grad_give(c, 0, GRAD_ADD(c, "Gather", flat, grad_in(c, 1)));
}

/* ---- AveragePool ----------------------------------------------------------------------------- */

void grad_pass_average_pool(grad_node *c)
{
    grad_give(c, 0, with_count(c, spread(c, "AveragePoolGrad", grad_cotangent(c, 0))));
}

void grad_pass_average_pool_grad(grad_node *c)
{
    grad_give(c, 0, with_count(c, pool(c, "AveragePool", grad_cotangent(c, 0))));
}

/* ---- LpPool and GlobalLpPool: y = (sum of |x|^p)^(1/p) --------------------------------------- */

static value_id power(grad_node *c, value_id v, int64_t exponent)
{
    return exponent == 1 ? v : GRAD_ADD(c, "Pow", v, grad_number(c, (double)exponent));
}

/* Returns the cotangent of the sum of |x|^p, by p: g y^(1-p), and 0 where y is 0. */
static value_id of_sum(grad_node *c, int64_t p)
{
    const value_id g = grad_cotangent(c, 0), y = grad_out(c, 0);
    if (p == 1) return g;
    const value_id is_0 = GRAD_ADD(c, "Equal", y, grad_number(c, 0));
    const value_id divisor = GRAD_ADD(c, "Where", is_0, grad_number(c, 1), y);
    return GRAD_ADD(c, "Div", GRAD_ADD(c, "Where", is_0, grad_number(c, 0), g),
                    power(c, divisor, p - 1));
}

/* Returns the derivative of |x|^p divided by p: sign(x) |x|^(p-1). */
static value_id of_power(grad_node *c, int64_t p)
{
    const value_id x = grad_in(c, 0);
    if (p == 1) return GRAD_ADD(c, "Sign", x);
    if (p == 2) return x;
    return GRAD_ADD(c, "Mul", x, power(c, GRAD_ADD(c, "Abs", x), p - 2));
}

void grad_pass_lp_pool(grad_node *c)
{
    const int64_t p = node_int(&c->node, "p", 2);
    grad_give(c, 0, GRAD_ADD(c, "Mul", of_power(c, p), spread(c, "SumPoolGrad", of_sum(c, p))));
}

void grad_pass_global_lp_pool(grad_node *c)
{
    const int64_t p = node_int(&c->node, "p", 2);
    grad_give(c, 0, GRAD_ADD(c, "Mul", of_power(c, p), of_sum(c, p)));
}

/* Returns the sum of each window of v, whose elements are not negative. */
static value_id sum_windows(grad_node *c, value_id v)
{
    return grad_set_int(c, pool(c, "LpPool", v), "p", 1);
}

/* clgraph.SumPoolGrad: sums the windows, separately for positive and negative elements. */
void grad_pass_sum_pool_grad(grad_node *c)
{
    const value_id g = grad_cotangent(c, 0);
    const value_id positive = GRAD_ADD(c, "Relu", g),
                   negative = GRAD_ADD(c, "Relu", GRAD_ADD(c, "Neg", g));
    grad_give(c, 0, GRAD_ADD(c, "Sub", sum_windows(c, positive), sum_windows(c, negative)));
}
