/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of the losses of classification. Input 0 has the scores, [N, C, ...], input 1 the class of
 * each of the other positions, input 2, optional, a weight for each class. The loss of a position
 * is -weight score of its class; positions of the class ignore_index have weight 0.
 */
#include "ops/grad/grad_rule.h"

#include <string.h>

/* What each position contributes to a loss, [N, ...], and a one-hot encoding of its class,
 * [N, C, ...]. */
typedef struct shares {
    value_id of_position; /* the weight times the cotangent of the position's loss */
    value_id is_class;
} shares;

/* Returns the classes with 0 for those that are ignored; *out_ignored: which, or VALUE_NONE. */
static value_id valid_classes(grad_node *c, value_id *out_ignored)
{
    const graph_attribute *a = node_attribute(&c->node, "ignore_index");
    const value_id classes = grad_set_int(c, GRAD_ADD(c, "Cast", grad_in(c, 1)), "to", CLG_INT64);
    int64_t index = a ? a->as.i : 0;
    *out_ignored = VALUE_NONE;
    if (!a) return classes;
    *out_ignored = GRAD_ADD(c, "Equal", classes, grad_list(c, 1, &index));
    index = 0;
    return GRAD_ADD(c, "Where", *out_ignored, grad_list(c, 1, &index), classes);
}

/* Returns the numbers of the classes, [C, 1, ...], of scores of these dimensions. */
static value_id number_classes(grad_node *c, const shape *dims)
{
    value_id made = VALUE_NONE;
    tensor *t = NULL;
    shape of = {.rank = dims->rank - 1, .dims = {dims->dims[1]}};
    for (int d = 1; d < of.rank; d++) of.dims[d] = 1;
    if (c->status == CLG_OK) c->status = tensor_create(CLG_INT64, &of, &t);
    for (int64_t i = 0; c->status == CLG_OK && i < t->n_elements; i++) tensor_set_int(t, i, i);
    if (c->status == CLG_OK) c->status = graph_add_constant(c->graph, "", t, &made);
    tensor_free(t);
    return made;
}

/* Returns 1 at the class of each position, along axis 1, and 0 elsewhere. A comparison with the
 * numbers of all classes, which becomes a part of the kernel that takes the result, where their
 * number is known; else a OneHot. */
static value_id mark_classes(grad_node *c, value_id classes)
{
    const int64_t channel = 1;
    const clg_dtype dtype = grad_fact(c, grad_out(c, 0))->dtype;
    const shape *dims = &grad_fact(c, grad_in(c, 0))->dims;
    if (dims->rank < 2 || dims->dims[1] == DIM_UNKNOWN) {
        const value_id depth = grad_size_along(c, grad_in(c, 0), channel);
        const value_id off_on = grad_numbers(c, dtype, 2, (const double[]){0, 1});
        return grad_set_int(c, GRAD_ADD(c, "OneHot", classes, depth, off_on), "axis", channel);
    }
    const value_id at = GRAD_ADD(c, "Unsqueeze", classes, grad_list(c, 1, &channel));
    const value_id is = GRAD_ADD(c, "Equal", at, number_classes(c, dims));
    return grad_set_int(c, GRAD_ADD(c, "Cast", is), "to", dtype);
}

static shares make_shares(grad_node *c)
{
    value_id ignored, weight;
    const char *reduction = node_string(&c->node, "reduction", "mean");
    const value_id g = grad_cotangent(c, 0), classes = valid_classes(c, &ignored);
    if (grad_wants(c, 2)) grad_refuse(c, "the gradient by its class weights has no rule");
    if (grad_in(c, 2) != VALUE_NONE)
        weight = GRAD_ADD(c, "Gather", grad_in(c, 2), classes);
    else
        weight = grad_expand_like(c, grad_number(c, 1), classes);
    if (ignored != VALUE_NONE) weight = GRAD_ADD(c, "Where", ignored, grad_number(c, 0), weight);
    value_id share = GRAD_ADD(c, "Mul", weight, g);
    if (strcmp(reduction, "mean") == 0)
        share = GRAD_ADD(c, "Div", share,
                         grad_set_int(c, GRAD_ADD(c, "ReduceSum", weight), "keepdims", 0));
    const int64_t channel = 1;
    return (shares){GRAD_ADD(c, "Unsqueeze", share, grad_list(c, 1, &channel)),
                    mark_classes(c, classes)};
}

void grad_pass_likelihood(grad_node *c)
{
    const shares s = make_shares(c);
    const value_id part = GRAD_ADD(c, "Mul", s.of_position, s.is_class);
    grad_give(c, 0, GRAD_ADD(c, "Neg", part));
}

/* Returns what the scores get of the cotangent h of log_prob: h - p sum(h), p = exp(log_prob). */
static value_id part_of_logarithms(grad_node *c, value_id p)
{
    const int64_t channel = 1;
    const value_id h = grad_cotangent(c, 1);
    const value_id sum = grad_reduce(c, "ReduceSum", h, 1, &channel);
    return GRAD_ADD(c, "Sub", h, GRAD_ADD(c, "Mul", p, sum));
}

/* The loss of scores by their softmax p, whose logarithms the node has computed: p minus 1 at the
 * class, times the share. */
void grad_pass_cross_entropy(grad_node *c)
{
    const value_id p = GRAD_ADD(c, "Exp", grad_need_output(c, 1));
    value_id part = VALUE_NONE;
    if (grad_cotangent(c, 0) != VALUE_NONE) {
        const shares s = make_shares(c);
        part = GRAD_ADD(c, "Mul", GRAD_ADD(c, "Sub", p, s.is_class), s.of_position);
    }
    if (grad_cotangent(c, 1) != VALUE_NONE) {
        const value_id of_logarithms = part_of_logarithms(c, p);
        part = part == VALUE_NONE ? of_logarithms : GRAD_ADD(c, "Add", part, of_logarithms);
    }
    grad_give(c, 0, part);
}
