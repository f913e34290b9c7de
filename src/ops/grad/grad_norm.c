/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of normalisations: y = xhat scale + bias, where xhat is x without its mean and divided by
 * its deviation. With h = g scale and means over the normalised elements, the cotangent of x is
 * (h - mean(h) - xhat mean(h xhat)) / deviation; statistics that are given do not depend on x, and
 * it is h / deviation.
 */
#include "ops/grad/grad_rule.h"

/* Returns 1 / sqrt(variance + epsilon). */
static value_id inverse_deviation(grad_node *c, value_id variance, float fallback)
{
    const double epsilon = (double)node_float(&c->node, "epsilon", fallback);
    const value_id sum = GRAD_ADD(c, "Add", variance, grad_number(c, epsilon));
    return GRAD_ADD(c, "Reciprocal", GRAD_ADD(c, "Sqrt", sum));
}

/* ---- BatchNormalization ---------------------------------------------------------------------- */

/* Returns a value of rank 1, one number for each channel, in the dtype of output 0 and with axes of
 * size 1 for those after the channel's. */
static value_id of_channels(grad_node *c, value_id v, int rank)
{
    int64_t axes[CLG_MAX_RANK];
    const clg_dtype dtype = grad_fact(c, grad_out(c, 0))->dtype;
    for (int i = 0; i + 2 < rank; i++) axes[i] = i + 1;
    if (grad_fact(c, v)->dtype != dtype) v = grad_set_int(c, GRAD_ADD(c, "Cast", v), "to", dtype);
    return rank <= 2 ? v : GRAD_ADD(c, "Unsqueeze", v, grad_list(c, (size_t)rank - 2, axes));
}

/* Returns v summed to one number for each channel, in the dtype of input i. */
static value_id sum_channels(grad_node *c, value_id v, value_id like_channels, size_t i)
{
    const value_id in = grad_in(c, i);
    value_id sums = grad_reshape_like(c, grad_sum_to(c, v, like_channels), in);
    if (grad_fact(c, in)->dtype != grad_fact(c, grad_out(c, 0))->dtype)
        sums = grad_set_int(c, GRAD_ADD(c, "Cast", sums), "to", grad_fact(c, in)->dtype);
    return sums;
}

void grad_pass_batchnorm(grad_node *c)
{
    const int rank = grad_rank(c, 0);
    const value_id g = grad_cotangent(c, 0);
    if (node_int(&c->node, "training_mode", 0) != 0 || c->node.opset < 7) {
        grad_refuse(c, "in training it has no rule yet");
        return;
    }
    if (grad_wants(c, 3) || grad_wants(c, 4)) {
        grad_refuse(c, "mean or variance depend on what is differentiated for");
        return;
    }
    const value_id scale = of_channels(c, grad_in(c, 1), rank),
                   mean = of_channels(c, grad_in(c, 3), rank),
                   variance = of_channels(c, grad_in(c, 4), rank);
    const value_id inverse = inverse_deviation(c, variance, 1e-5f);
    grad_give(c, 0, GRAD_ADD(c, "Mul", g, GRAD_ADD(c, "Mul", scale, inverse)));
    if (grad_wants(c, 1)) {
        const value_id centred = GRAD_ADD(c, "Sub", grad_in(c, 0), mean);
        const value_id part = GRAD_ADD(c, "Mul", g, GRAD_ADD(c, "Mul", centred, inverse));
        grad_give(c, 1, sum_channels(c, part, scale, 1));
    }
    if (grad_wants(c, 2)) grad_give(c, 2, sum_channels(c, g, scale, 2));
}

/* ---- LayerNormalization and RMSNormalization ------------------------------------------------- */

/* Returns the mean of v over the normalised axes, from `axis` on, which stay with size 1. */
static value_id mean_of(grad_node *c, value_id v, int axis, int rank)
{
    int64_t axes[CLG_MAX_RANK];
    size_t n = 0;
    for (int i = axis; i < rank; i++) axes[n++] = i;
    return grad_mean(c, v, n, axes);
}

static void give_normalised(grad_node *c, bool centred)
{
    const int rank = grad_rank(c, 0);
    int64_t axis = node_int(&c->node, "axis", -1);
    const value_id x = grad_in(c, 0), g = grad_cotangent(c, 0);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || grad_cotangent(c, 1) != VALUE_NONE ||
        grad_cotangent(c, 2) != VALUE_NONE) {
        grad_refuse(c, "the result depends on its mean or deviation");
        return;
    }
    const value_id d = centred ? GRAD_ADD(c, "Sub", x, mean_of(c, x, (int)axis, rank)) : x;
    const value_id variance = mean_of(c, GRAD_ADD(c, "Mul", d, d), (int)axis, rank);
    const value_id inverse = inverse_deviation(c, variance, 1e-5f);
    const value_id normal = GRAD_ADD(c, "Mul", d, inverse);
    if (grad_wants(c, 0)) {
        const value_id h = GRAD_ADD(c, "Mul", g, grad_in(c, 1));
        const value_id along = mean_of(c, GRAD_ADD(c, "Mul", h, normal), (int)axis, rank);
        value_id rest = GRAD_ADD(c, "Sub", h, GRAD_ADD(c, "Mul", normal, along));
        if (centred) rest = GRAD_ADD(c, "Sub", rest, mean_of(c, h, (int)axis, rank));
        grad_give(c, 0, GRAD_ADD(c, "Mul", rest, inverse));
    }
    if (grad_wants(c, 1))
        grad_give(c, 1, grad_sum_to(c, GRAD_ADD(c, "Mul", g, normal), grad_in(c, 1)));
    if (grad_wants(c, 2)) grad_give(c, 2, grad_sum_to(c, g, grad_in(c, 2)));
}

void grad_pass_layernorm(grad_node *c) { give_normalised(c, true); }

void grad_pass_rmsnorm(grad_node *c) { give_normalised(c, false); }
