/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the shorthand of rules that compute a node once more by other operators.
 */
#include "ops/grad/grad_rule.h"

value_id grad_cast(grad_node *c, value_id v, clg_dtype dtype)
{
    return grad_set_int(c, GRAD_ADD(c, "Cast", v), "to", dtype);
}

value_id grad_number_of(grad_node *c, clg_dtype dtype, double number)
{
    value_id made = VALUE_NONE;
    if (c->status == CLG_OK) c->status = graph_add_number(c->graph, dtype, number, &made);
    return made;
}

value_id grad_unsqueeze(grad_node *c, value_id v, size_t n, const int64_t *axes)
{
    return GRAD_ADD(c, "Unsqueeze", v, grad_list(c, n, axes));
}

value_id grad_permute(grad_node *c, value_id v, size_t n, const int64_t *perm)
{
    return grad_set_ints(c, GRAD_ADD(c, "Transpose", v), "perm", n, perm);
}

value_id grad_reshape(grad_node *c, value_id v, size_t n, const int64_t *dims)
{
    return GRAD_ADD(c, "Reshape", v, grad_list(c, n, dims));
}

value_id grad_reshape_to(grad_node *c, value_id v, size_t n, const value_id *lists)
{
    return GRAD_ADD(c, "Reshape", v, grad_concat(c, 0, n, lists));
}

value_id grad_concat(grad_node *c, int64_t axis, size_t n, const value_id *parts)
{
    return grad_set_int(c, grad_add(c, "Concat", n, parts), "axis", axis);
}

value_id grad_slice(grad_node *c, value_id v, int64_t axis, int64_t from, int64_t to, int64_t step)
{
    const value_id first = grad_list(c, 1, &from), end = grad_list(c, 1, &to),
                   along = grad_list(c, 1, &axis), by = grad_list(c, 1, &step);
    return GRAD_ADD(c, "Slice", v, first, end, along, by);
}

value_id grad_slice_at(grad_node *c, value_id v, int64_t axis, value_id from, value_id to)
{
    return GRAD_ADD(c, "Slice", v, from, to, grad_list(c, 1, &axis));
}

value_id grad_indices(grad_node *c, value_id size)
{
    const value_id end = GRAD_ADD(c, "Squeeze", size);
    return GRAD_ADD(c, "Range", grad_number_of(c, CLG_INT64, 0), end,
                    grad_number_of(c, CLG_INT64, 1));
}
