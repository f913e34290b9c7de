/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of normalisations: y = xhat scale + bias, where xhat is x without its mean and divided by
 * its deviation. With h = g scale and means over the normalised elements, the cotangent of x is
 * (h - mean(h) - xhat mean(h xhat)) / deviation; statistics that are given do not depend on x, and
 * it is h / deviation. grad_norm_more.c has normalisations of other kinds.
 */
#include "ops/grad/grad_rule.h"
#include "ops/reduce/moments.h"

/* Returns 1 / sqrt(variance + epsilon). */
static value_id inverse_deviation(grad_node *c, value_id variance, float fallback)
{
    const double epsilon = (double)node_float(&c->node, "epsilon", fallback);
    const value_id sum = GRAD_ADD(c, "Add", variance, grad_number(c, epsilon));
    return GRAD_ADD(c, "Reciprocal", GRAD_ADD(c, "Sqrt", sum));
}

/* ---- by statistics of x itself --------------------------------------------------------------- */

/* A normalisation of x over some of its axes. */
typedef struct statistics {
    int64_t axes[CLG_MAX_RANK];
    size_t n_axes; /* 0: each element alone */
    bool centred;  /* the mean is subtracted */
    value_id normal, inverse;
} statistics;

static value_id mean_of(grad_node *c, const statistics *s, value_id v)
{
    return s->n_axes == 0 ? v : grad_mean(c, v, s->n_axes, s->axes);
}

/* Computes normal and inverse; axes and centred are set. */
static void normalise(grad_node *c, statistics *s, value_id x, float epsilon)
{
    const value_id d = s->centred ? GRAD_ADD(c, "Sub", x, mean_of(c, s, x)) : x;
    const value_id variance = mean_of(c, s, GRAD_ADD(c, "Mul", d, d));
    s->inverse = inverse_deviation(c, variance, epsilon);
    s->normal = GRAD_ADD(c, "Mul", d, s->inverse);
}

/* Returns the cotangent of x from h, that of the normalised elements. */
static value_id through_statistics(grad_node *c, const statistics *s, value_id h)
{
    const value_id along = mean_of(c, s, GRAD_ADD(c, "Mul", h, s->normal));
    value_id rest = GRAD_ADD(c, "Sub", h, GRAD_ADD(c, "Mul", s->normal, along));
    if (s->centred) rest = GRAD_ADD(c, "Sub", rest, mean_of(c, s, h));
    return GRAD_ADD(c, "Mul", rest, s->inverse);
}

/* ---- channels: BatchNormalization and InstanceNormalization ---------------------------------- */

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

/* Gives the cotangents of x, scale and bias of a normalisation of channels. */
static void give_channels(grad_node *c, statistics *s, int rank)
{
    const value_id g = grad_cotangent(c, 0), scale = of_channels(c, grad_in(c, 1), rank);
    normalise(c, s, grad_in(c, 0), 1e-5f);
    if (grad_wants(c, 0)) grad_give(c, 0, through_statistics(c, s, GRAD_ADD(c, "Mul", g, scale)));
    if (grad_wants(c, 1))
        grad_give(c, 1, sum_channels(c, GRAD_ADD(c, "Mul", g, s->normal), scale, 1));
    if (grad_wants(c, 2)) grad_give(c, 2, sum_channels(c, g, scale, 2));
}

/* By statistics of the batch. Running mean and variance are state, whose gradient is zero as in
 * PyTorch, which updates them without recording it. */
static void give_trained(grad_node *c, int rank)
{
    statistics s = {.centred = true};
    if (grad_cotangent(c, 0) == VALUE_NONE) return;
    for (int i = 0; i < rank; i++)
        if (i != 1) s.axes[s.n_axes++] = i;
    give_channels(c, &s, rank);
}

/* By given statistics: y = scale (x - mean) inverse + bias, where inverse is that of
 * sqrt(variance + epsilon). */
static void give_predicted(grad_node *c, int rank)
{
    const value_id g = grad_cotangent(c, 0), scale = of_channels(c, grad_in(c, 1), rank),
                   mean = of_channels(c, grad_in(c, 3), rank),
                   variance = of_channels(c, grad_in(c, 4), rank);
    const value_id inverse = inverse_deviation(c, variance, 1e-5f);
    const value_id of_x = GRAD_ADD(c, "Mul", g, GRAD_ADD(c, "Mul", scale, inverse));
    grad_give(c, 0, of_x);
    if (grad_wants(c, 1)) {
        const value_id centred = GRAD_ADD(c, "Sub", grad_in(c, 0), mean);
        const value_id part = GRAD_ADD(c, "Mul", g, GRAD_ADD(c, "Mul", centred, inverse));
        grad_give(c, 1, sum_channels(c, part, scale, 1));
    }
    if (grad_wants(c, 2)) grad_give(c, 2, sum_channels(c, g, scale, 2));
    if (grad_wants(c, 3)) grad_give(c, 3, sum_channels(c, GRAD_ADD(c, "Neg", of_x), scale, 3));
    if (grad_wants(c, 4)) {
        const value_id centred = GRAD_ADD(c, "Sub", grad_in(c, 0), mean);
        const value_id by =
            GRAD_ADD(c, "Mul", GRAD_ADD(c, "Mul", inverse, inverse), grad_number(c, -0.5));
        const value_id part = GRAD_ADD(c, "Mul", GRAD_ADD(c, "Mul", of_x, centred), by);
        grad_give(c, 4, sum_channels(c, part, scale, 4));
    }
}

static bool has_channels(grad_node *c)
{
    if (node_int(&c->node, "spatial", 1) == 0) grad_refuse(c, "spatial 0 has no rule");
    return c->status == CLG_OK;
}

void grad_pass_batchnorm_train(grad_node *c)
{
    const int rank = grad_rank(c, 0);
    if (has_channels(c)) give_trained(c, rank);
}

void grad_pass_batchnorm(grad_node *c)
{
    const int rank = grad_rank(c, 0);
    if (c->node.opset < 7)
        grad_refuse(c, "before opset 7 it has no rule");
    else if (norm_batch_trains(&c->node))
        grad_pass_batchnorm_train(c);
    else if (has_channels(c))
        give_predicted(c, rank);
}

void grad_pass_instancenorm(grad_node *c)
{
    const int rank = grad_rank(c, 0);
    statistics s = {.centred = true};
    for (int i = 2; i < rank; i++) s.axes[s.n_axes++] = i;
    give_channels(c, &s, rank);
}

/* ---- GroupNormalization ---------------------------------------------------------------------- */

/* Returns v, of the shape of input 0, as [N, groups, elements of a group]. */
static value_id in_groups(grad_node *c, value_id v, int64_t n_groups)
{
    const value_id x = grad_in(c, 0), groups = grad_list(c, 1, &n_groups);
    const value_id in_group =
        GRAD_ADD(c, "Div", grad_size_of_axes(c, x, 1, grad_rank(c, 0)), groups);
    return grad_reshape_to(c, v, 3, (value_id[]){grad_size_along(c, x, 0), groups, in_group});
}

/* Up to opset 20 scale and bias have a number for each group, then one for each channel. */
void grad_pass_groupnorm(grad_node *c)
{
    const int rank = grad_rank(c, 0);
    const int64_t n_groups = node_int(&c->node, "num_groups", 1), last = 1;
    const bool by_group = c->node.opset < 21;
    const value_id x = grad_in(c, 0), g = grad_cotangent(c, 0);
    const value_id scale = by_group
                               ? GRAD_ADD(c, "Unsqueeze", grad_in(c, 1), grad_list(c, 1, &last))
                               : of_channels(c, grad_in(c, 1), rank);
    const value_id own = by_group ? in_groups(c, g, n_groups) : g;
    const value_id h = GRAD_ADD(c, "Mul", own, scale);
    statistics s = {.axes = {2}, .n_axes = 1, .centred = true};
    normalise(c, &s, in_groups(c, x, n_groups), 1e-5f);
    if (grad_wants(c, 0)) {
        const value_id made = through_statistics(c, &s, by_group ? h : in_groups(c, h, n_groups));
        grad_give(c, 0, grad_reshape_like(c, made, x));
    }
    if (grad_wants(c, 1)) {
        const value_id normal = by_group ? s.normal : grad_reshape_like(c, s.normal, x);
        grad_give(c, 1, sum_channels(c, GRAD_ADD(c, "Mul", own, normal), scale, 1));
    }
    if (grad_wants(c, 2)) grad_give(c, 2, sum_channels(c, own, scale, 2));
}

/* ---- rows: LayerNormalization and RMSNormalization ------------------------------------------- */

/* Sets the axes from `axis` on, which counts from the end where it is negative; refuses where there
 * is none. */
static bool set_rows(grad_node *c, statistics *s, int64_t axis, int rank)
{
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) {
        grad_refuse(c, "axis is out of range");
        return false;
    }
    for (int64_t i = axis; i < rank; i++) s->axes[s->n_axes++] = i;
    return true;
}

static void give_rows(grad_node *c, bool centred)
{
    statistics s = {.centred = centred};
    const value_id g = grad_cotangent(c, 0), scale = grad_in(c, 1);
    if (grad_cotangent(c, 1) != VALUE_NONE || grad_cotangent(c, 2) != VALUE_NONE) {
        grad_refuse(c, "the gradients of its outputs Mean and InvStdDev have no rule");
        return;
    }
    if (!set_rows(c, &s, node_int(&c->node, "axis", -1), grad_rank(c, 0))) return;
    normalise(c, &s, grad_in(c, 0), 1e-5f);
    if (grad_wants(c, 0)) grad_give(c, 0, through_statistics(c, &s, GRAD_ADD(c, "Mul", g, scale)));
    if (grad_wants(c, 1)) grad_give(c, 1, grad_sum_to(c, GRAD_ADD(c, "Mul", g, s.normal), scale));
    if (grad_wants(c, 2)) grad_give(c, 2, grad_sum_to(c, g, grad_in(c, 2)));
}

void grad_pass_layernorm(grad_node *c) { give_rows(c, true); }

void grad_pass_rmsnorm(grad_node *c) { give_rows(c, false); }

/* com.microsoft's SkipLayerNormalization and SkipSimplifiedLayerNormalization, which lacks beta:
 * the rows of x + skip + bias, the sum, which is output 3. */
static void give_skip(grad_node *c, bool centred)
{
    statistics s = {.centred = centred};
    const size_t bias = centred ? 4 : 3;
    const value_id g = grad_cotangent(c, 0), gamma = grad_in(c, 2);
    value_id total = grad_cotangent(c, 3);
    if (!set_rows(c, &s, -1, grad_rank(c, 0))) return;
    if (g != VALUE_NONE) {
        value_id sum = GRAD_ADD(c, "Add", grad_in(c, 0), grad_in(c, 1));
        if (grad_in(c, bias) != VALUE_NONE) sum = GRAD_ADD(c, "Add", sum, grad_in(c, bias));
        normalise(c, &s, sum, 1e-12f);
        const value_id part = through_statistics(c, &s, GRAD_ADD(c, "Mul", g, gamma));
        total = total == VALUE_NONE ? part : GRAD_ADD(c, "Add", total, part);
        if (grad_wants(c, 2))
            grad_give(c, 2, grad_sum_to(c, GRAD_ADD(c, "Mul", g, s.normal), gamma));
        if (centred && grad_wants(c, 3)) grad_give(c, 3, grad_sum_to(c, g, grad_in(c, 3)));
    }
    grad_give(c, 0, total);
    if (grad_wants(c, 1)) grad_give(c, 1, grad_sum_to(c, total, grad_in(c, 1)));
    if (grad_wants(c, bias)) grad_give(c, bias, grad_sum_to(c, total, grad_in(c, bias)));
}

void grad_pass_skip_layernorm(grad_node *c) { give_skip(c, true); }

void grad_pass_skip_rmsnorm(grad_node *c) { give_skip(c, false); }
