/* SPDX-License-Identifier: Apache-2.0
 *
 * How a batch passes through operators that compute along axes: with the batch on fixed axes, over
 * one axis or the last ones, reductions, normalisations and recurrent networks.
 */
#include "ops/batch/batch_rule.h"

#include <inttypes.h>
#include <string.h>

/* ---- the batch on fixed axes ----------------------------------------------------------------- */

/* Returns the character of input or output i. */
static char place_at(const char *list, size_t i, char otherwise)
{
    const size_t n = strlen(list);
    const bool repeats = n > 0 && list[n - 1] == '*';
    const size_t n_listed = repeats ? n - 1 : n;
    if (i < n_listed) return list[i];
    return repeats ? list[n_listed - 1] : otherwise;
}

/* Sets *out_axis to the axis that the character means for a value of this rank, or -1 if it does
 * not carry the batch. */
static clg_status axis_at(const batch_node *c, size_t i, char place, int *out_axis)
{
    const int rank = c->inputs[i]->rank;
    *out_axis = place == '.' ? -1 : place >= '0' && place <= '9' ? place - '0' : 0;
    if ((place == 'm' && rank < 4) || (place == 't' && rank < 3)) *out_axis = -1;
    if (*out_axis >= rank) *out_axis = -1;
    if (place == 'v' && rank < 2)
        return batch_refuse(c, "input %zu has %d axes: it is one row, not a list of rows", i, rank);
    return CLG_OK;
}

/* Checks where the inputs carry the batch, as the list says; *out_size becomes its size. */
static clg_status check_inputs(batch_node *c, const char *list, batch_term *out_size)
{
    const batch_value *first = NULL;
    for (size_t i = 0; i < c->n_inputs; i++) {
        const batch_value *v = c->inputs[i];
        int axis = 0;
        const char place = place_at(list, i, '.');
        if (!v || (place == '.' && v->kind == BATCH_FREE)) continue;
        CLG_TRY(batch_need_rank(c, i));
        CLG_TRY(axis_at(c, i, place, &axis));
        if (!batch_carries(v)) {
            if (axis >= 0) CLG_TRY(batch_need_one(c, i, axis, v->rank));
            continue;
        }
        if (axis != v->axis)
            return axis < 0
                       ? batch_refuse(c, "input %zu carries the batch, but holds for all rows", i)
                       : batch_refuse(c, "input %zu carries the batch on axis %d, not on %d", i,
                                      v->axis, axis);
        if (first && !term_equal(out_size, &v->dims[axis]))
            return batch_refuse(c, "input %zu is not known to have as many rows as the others", i);
        first = v;
        *out_size = v->dims[axis];
    }
    return CLG_OK;
}

static clg_status pass_at(batch_node *c, const char *inputs, const char *outputs)
{
    batch_term size = term_mixed();
    CLG_TRY(check_inputs(c, inputs, &size));
    if (!size.known) return batch_refuse(c, "its sizes depend on the number of rows");
    for (size_t o = 0; o < c->n_outputs; o++) {
        const char place = place_at(outputs, o, outputs[strlen(outputs) - 1]);
        if (c->node->outputs[o] == VALUE_NONE) continue;
        if (place == '!') return batch_refuse(c, "its output %zu depends on all rows together", o);
        if (c->outputs[o].rank == RANK_UNKNOWN || c->outputs[o].rank <= place - '0')
            return batch_refuse(c, "the rank of output %zu is not known", o);
        batch_set_rows(c, o, place - '0', &size);
    }
    return CLG_OK;
}

clg_status batch_pass_at(batch_node *c) { return pass_at(c, c->rule->inputs, c->rule->outputs); }

clg_status batch_pass_never(batch_node *c) { return batch_refuse(c, "%s", c->rule->reason); }

clg_status batch_pass_batchnorm(batch_node *c)
{
    if (node_int(c->node, "training_mode", 0) != 0) return batch_refuse(c, BATCH_WHY_TRAINS);
    return pass_at(c, "0", "0!");
}

/* X: [T,B,I] or, with layout 1, [B,T,I]; Y: [T,D,B,H] or [B,T,D,H]; states: [D,B,H] or [B,D,H]. */
clg_status batch_pass_recurrent(batch_node *c)
{
    const bool first = node_int(c->node, "layout", 0) != 0;
    return pass_at(c, first ? "0...000" : "1...011", first ? "000" : "211");
}

/* ---- over one axis, or the last ones --------------------------------------------------------- */

static clg_status refuse_over(const batch_node *c, int axis)
{
    return batch_refuse(c, "it computes over axis %d, which carries the batch", axis);
}

/* Checks that the axes over which the node computes are not that of the batch; *out_axis becomes
 * the first of them. */
static clg_status check_over(batch_node *c, int *out_axis)
{
    const op_batch *rule = c->rule;
    const batch_value *x = c->inputs[0];
    int64_t axis =
        rule->attribute ? node_int(c->node, rule->attribute, rule->fallback) : rule->fallback;
    int64_t given[BATCH_MAX_ELEMENTS];
    size_t n;
    CLG_TRY(batch_need_rank(c, 0));
    if (rule->axis_input && batch_input(c, (size_t)rule->axis_input)) {
        if (!batch_ints(c, (size_t)rule->axis_input, given, &n) || n != 1)
            return batch_refuse(c, "the axis over which it computes is not known");
        axis = given[0];
    }
    CLG_TRY(batch_axis(c, axis, x->rank, out_axis));
    if (*out_axis == x->axis) return refuse_over(c, x->axis);
    if (rule->onward && x->axis > *out_axis)
        return batch_refuse(c,
                            "it computes over all axes from %d on, and axis %d carries the batch",
                            *out_axis, x->axis);
    return CLG_OK;
}

/* Checks that parameters do not reach the axis of the batch, if they are broadcast to input 0. */
static clg_status check_parameters(batch_node *c)
{
    const batch_value *x = c->inputs[0];
    for (size_t i = 1; c->rule->onward && i < c->n_inputs; i++)
        if (batch_input(c, i)) CLG_TRY(batch_need_one(c, i, x->axis, x->rank));
    return CLG_OK;
}

/* Further outputs, the means of a normalisation, share the axes before those of the computation. */
static clg_status set_further(batch_node *c, size_t o, int axis)
{
    const batch_value *x = c->inputs[0];
    CLG_TRY(batch_set_rank(c, o, x->rank));
    for (int i = 0; i < axis; i++)
        if (i != x->axis) batch_set_dim(c, o, i, &x->dims[i]);
    batch_set_rows(c, o, x->axis, &x->dims[x->axis]);
    return CLG_OK;
}

clg_status batch_pass_over(batch_node *c)
{
    int axis = 0;
    CLG_TRY(check_over(c, &axis));
    CLG_TRY(check_parameters(c));
    CLG_TRY(batch_set_like(c, 0, c->inputs[0], c->rule->onward ? -1 : axis));
    for (size_t o = 1; o < c->n_outputs; o++) CLG_TRY(set_further(c, o, axis));
    return CLG_OK;
}

/* Sets output o to input 0 without the axes that are marked, or with size 1 there. */
static clg_status reduce_to(batch_node *c, size_t o, const bool reduced[CLG_MAX_RANK],
                            bool keepdims)
{
    const batch_value *x = c->inputs[0];
    const batch_term one = term_int(1);
    int rank = 0, at = 0;
    for (int i = 0; i < x->rank; i++) rank += keepdims || !reduced[i];
    CLG_TRY(batch_set_rank(c, o, rank));
    for (int i = 0; i < x->rank; i++) {
        if (reduced[i] && !keepdims) continue;
        if (i == x->axis)
            batch_set_rows(c, o, at, &x->dims[i]);
        else
            batch_set_dim(c, o, at, reduced[i] ? &one : &x->dims[i]);
        at++;
    }
    return CLG_OK;
}

clg_status batch_pass_drop(batch_node *c)
{
    bool dropped[CLG_MAX_RANK] = {false};
    int axis = 0;
    CLG_TRY(check_over(c, &axis));
    for (int i = axis; i < c->inputs[0]->rank; i++) dropped[i] = true;
    return reduce_to(c, 0, dropped, false);
}

static clg_status reduce_axes(batch_node *c, size_t n, const int64_t *axes, bool keepdims)
{
    bool reduced[CLG_MAX_RANK] = {false};
    const batch_value *x = c->inputs[0];
    for (size_t i = 0; i < n; i++) {
        int axis = 0;
        CLG_TRY(batch_axis(c, axes[i], x->rank, &axis));
        if (axis == x->axis) return refuse_over(c, axis);
        reduced[axis] = true;
    }
    return reduce_to(c, 0, reduced, keepdims);
}

/* Of a list of sizes, only the product is followed. */
static clg_status reduce_sizes(batch_node *c)
{
    size_t n;
    const batch_term *sizes = batch_elements(c, 0, &n);
    if (c->inputs[0]->kind == BATCH_COUNTS) c->outputs[0].kind = BATCH_COUNTS;
    if (strcmp(c->node->op_type, "ReduceProd") != 0 ||
        node_attribute(c->node, "noop_with_empty_axes") || c->inputs[0]->rank != 1 || !sizes)
        return CLG_OK;
    batch_term *product = arena_alloc(c->memory, 1, sizeof *product);
    if (!product) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    *product = term_int(1);
    for (size_t i = 0; i < n; i++) *product = term_mul(c->symbols, product, &sizes[i]);
    return batch_set_elements(c, 0, 1, product);
}

clg_status batch_pass_reduce(batch_node *c)
{
    int64_t given[BATCH_MAX_ELEMENTS];
    size_t n;
    const int64_t *axes = node_ints(c->node, "axes", &n);
    if (!batch_carries(c->inputs[0])) return reduce_sizes(c);
    CLG_TRY(batch_need_rank(c, 0));
    if (batch_input(c, 1)) {
        if (!batch_ints(c, 1, given, &n)) return batch_refuse(c, "its axes are not known");
        axes = given;
    }
    if (n == 0 && node_int(c->node, "noop_with_empty_axes", 0) == 0)
        return batch_refuse(c, "it computes over all axes, and axis %d carries the batch",
                            c->inputs[0]->axis);
    return reduce_axes(c, n, axes, node_int(c->node, "keepdims", 1) != 0);
}

clg_status batch_pass_arg(batch_node *c)
{
    const int64_t axis = node_int(c->node, "axis", 0);
    CLG_TRY(batch_need_rank(c, 0));
    return reduce_axes(c, 1, &axis, node_int(c->node, "keepdims", 1) != 0);
}

clg_status batch_pass_moments(batch_node *c)
{
    static const int64_t otherwise[] = {0, 2, 3};
    const batch_value *x = c->inputs[0];
    size_t n;
    const int64_t *axes = node_ints(c->node, "axes", &n);
    CLG_TRY(batch_need_rank(c, 0));
    if (!axes) {
        axes = otherwise;
        n = 3;
    }
    for (size_t i = 0; i < n; i++) {
        int axis = 0;
        CLG_TRY(batch_axis(c, axes[i], x->rank, &axis));
        if (axis == x->axis) return refuse_over(c, axis);
    }
    return batch_set_like(c, 0, x, -1);
}

/* ---- others ---------------------------------------------------------------------------------- */

/* Sets output 0 to the input with a new axis at the attribute's place. */
clg_status batch_pass_onehot(batch_node *c)
{
    const batch_value *x = c->inputs[0];
    int axis = 0;
    CLG_TRY(batch_need_rank(c, 0));
    const int64_t given = c->rule->attribute
                              ? node_int(c->node, c->rule->attribute, c->rule->fallback)
                              : c->rule->fallback;
    CLG_TRY(batch_axis(c, given, x->rank + 1, &axis));
    CLG_TRY(batch_set_rank(c, 0, x->rank + 1));
    for (int i = 0; i < x->rank; i++)
        if (i != x->axis) batch_set_dim(c, 0, i + (i >= axis), &x->dims[i]);
    batch_set_rows(c, 0, x->axis + (x->axis >= axis), &x->dims[x->axis]);
    return CLG_OK;
}

/* Each row is reversed along the time axis, up to its length. */
clg_status batch_pass_reverse(batch_node *c)
{
    const batch_value *x = c->inputs[0], *lengths = c->inputs[1];
    const int64_t batch = node_int(c->node, "batch_axis", 1);
    if (!batch_carries(x))
        return batch_refuse(c, "its lengths carry the batch, but its data do not");
    if (x->axis != batch || !batch_carries(lengths) ||
        !term_equal(&lengths->dims[0], &x->dims[x->axis]))
        return batch_refuse(c, "its lengths are not those of the rows of axis %d", x->axis);
    return batch_set_like(c, 0, x, -1);
}
