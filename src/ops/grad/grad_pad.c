/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of Pad and CenterCropPad. Modes that repeat elements are gathers along each axis, whose
 * indices are the padded list of all indices; their rule adds rows at these indices.
 */
#include "ops/grad/grad_rule.h"

#include <string.h>

/* Removes the padding; the gradient of the padding's constant is the sum of what is removed. */
static void give_constant(grad_node *c, value_id pads, value_id axes)
{
    const value_id g = grad_cotangent(c, 0), zero = grad_number(c, 0);
    const size_t n = axes == VALUE_NONE ? 3 : 4;
    value_id inputs[4] = {g, GRAD_ADD(c, "Neg", pads), zero, axes};
    const value_id inside = grad_of_opset(c, grad_add(c, "Pad", n, inputs), 18);
    grad_give(c, 0, inside);
    if (!grad_wants(c, 2)) return;
    inputs[0] = inside;
    inputs[1] = pads;
    const value_id again = grad_of_opset(c, grad_add(c, "Pad", n, inputs), 18);
    const value_id sum = GRAD_ADD(c, "ReduceSum", GRAD_ADD(c, "Sub", g, again));
    grad_give(c, 2, grad_reshape_like(c, sum, grad_in(c, 2)));
}

/* Returns v with the padding of one axis added to the elements that it repeats. pads: a list of two
 * numbers. */
static value_id add_repeated(grad_node *c, value_id v, int rank, int axis, value_id pads)
{
    const value_id size = grad_size_along(c, grad_in(c, 0), axis);
    const int64_t zero = 0, one = 1;
    const value_id first = GRAD_ADD(c, "Squeeze", grad_list(c, 1, &zero)),
                   step = GRAD_ADD(c, "Squeeze", grad_list(c, 1, &one));
    const value_id all = GRAD_ADD(c, "Range", first, GRAD_ADD(c, "Squeeze", size), step);
    const value_id places = grad_of_opset(c, GRAD_ADD(c, "Pad", all, pads), 19); /* wrap is new */
    if (c->status == CLG_OK)
        c->status = node_set_string(c->graph, c->graph->values[places].producer, "mode",
                                    node_string(&c->node, "mode", ""));
    return grad_add_rows(c, v, rank, axis, places, size);
}

static void give_repeated(grad_node *c, value_id pads, value_id axes)
{
    int64_t numbers[OP_MAX_INTS], named[OP_MAX_INTS];
    size_t n_numbers, n = 0;
    const int rank = grad_rank(c, 0);
    const bool known = grad_ints(c, 1, "pads", numbers, &n_numbers);
    value_id v = grad_cotangent(c, 0);
    for (; axes == VALUE_NONE && n < (size_t)rank; n++) named[n] = (int64_t)n;
    if (axes != VALUE_NONE && !grad_ints(c, 3, NULL, named, &n)) {
        grad_refuse(c, "its axes are not known");
        return;
    }
    if (known && n_numbers != 2 * n) {
        grad_refuse(c, "pads has %zu numbers for %zu axes", n_numbers, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const int64_t axis = named[i] < 0 ? named[i] + rank : named[i],
                      both[2] = {(int64_t)i, (int64_t)(n + i)};
        if (known && numbers[i] == 0 && numbers[n + i] == 0) continue;
        if (axis < 0 || axis >= rank) {
            grad_refuse(c, "an axis is out of range");
            return;
        }
        v = add_repeated(c, v, rank, (int)axis, GRAD_ADD(c, "Gather", pads, grad_list(c, 2, both)));
    }
    grad_give(c, 0, v);
}

void grad_pass_pad(grad_node *c)
{
    size_t n;
    const int64_t *given = node_ints(&c->node, "pads", &n);
    const value_id pads = given ? grad_list(c, n, given) : grad_in(c, 1), axes = grad_in(c, 3);
    if (strcmp(node_string(&c->node, "mode", "constant"), "constant") == 0)
        give_constant(c, pads, axes);
    else
        give_repeated(c, pads, axes);
}

/* Crops or pads back to the sizes that there were: the odd element is at the end both times. */
void grad_pass_centre(grad_node *c)
{
    size_t n;
    const int64_t *axes = node_ints(&c->node, "axes", &n);
    value_id sizes = grad_dims(c, grad_in(c, 0));
    if (axes) sizes = GRAD_ADD(c, "Gather", sizes, grad_list(c, n, axes));
    const value_id v =
        grad_of_opset(c, GRAD_ADD(c, "CenterCropPad", grad_cotangent(c, 0), sizes), 18);
    grad_give(c, 0, axes ? grad_set_ints(c, v, "axes", n, axes) : v);
}
