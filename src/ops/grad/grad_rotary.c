/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of RotaryEmbedding, of ONNX and of com.microsoft: pairs of elements are turned by the
 * angles of their positions.
 */
#include "ops/grad/grad_attention.h"

#include <string.h>

value_id grad_rotary_rows(grad_node *c, value_id cache, value_id ids, bool by_batch)
{
    const value_id rows = ids == VALUE_NONE ? cache : GRAD_ADD(c, "Gather", cache, ids);
    return by_batch ? grad_unsqueeze(c, rows, 1, (const int64_t[]){1}) : rows;
}

/* Returns the elements of x, [batch, heads, positions, n], that are first (0) or second (1) in
 * their pairs. */
static value_id half_of(grad_node *c, value_id x, int64_t rotated, bool interleaved, int64_t which)
{
    if (interleaved) return grad_slice(c, x, 3, which, rotated, 2);
    const int64_t from = which * rotated / 2;
    return grad_slice(c, x, 3, from, from + rotated / 2, 1);
}

value_id grad_rotate(grad_node *c, value_id x, value_id cos, value_id sin, int64_t rotated,
                     bool interleaved)
{
    const value_id a = half_of(c, x, rotated, interleaved, 0),
                   b = half_of(c, x, rotated, interleaved, 1);
    value_id first = GRAD_ADD(c, "Sub", GRAD_ADD(c, "Mul", a, cos), GRAD_ADD(c, "Mul", b, sin));
    value_id second = GRAD_ADD(c, "Add", GRAD_ADD(c, "Mul", b, cos), GRAD_ADD(c, "Mul", a, sin));
    const value_id rest = grad_slice(c, x, 3, rotated, INT64_MAX, 1);
    if (!interleaved) return grad_concat(c, 3, 3, (value_id[]){first, second, rest});
    first = grad_unsqueeze(c, first, 1, (const int64_t[]){4});
    second = grad_unsqueeze(c, second, 1, (const int64_t[]){4});
    const value_id pairs = grad_concat(c, 4, 2, (value_id[]){first, second});
    const value_id turned = grad_reshape(c, pairs, 4, (const int64_t[]){0, 0, 0, rotated});
    return grad_concat(c, 3, 2, (value_id[]){turned, rest});
}

/* Returns the positions: ids, or one number that the first has. */
static value_id positions_of(grad_node *c, size_t i, value_id x, bool *by_batch)
{
    const value_id ids = grad_in(c, i);
    *by_batch = true;
    if (ids == VALUE_NONE || grad_rank(c, i) == 2) return ids;
    *by_batch = false;
    return GRAD_ADD(c, "Add", grad_indices(c, grad_size_along(c, x, 2)), ids);
}

void grad_pass_rotary(grad_node *c)
{
    const size_t first = c->graph->n_nodes;
    const bool is_microsoft = strcmp(c->node.domain, "com.microsoft") == 0;
    const size_t at_ids = is_microsoft ? 1 : 3, at_cos = is_microsoft ? 2 : 1;
    const shape *dims = &grad_fact(c, grad_in(c, 0))->dims,
                *cache = &grad_fact(c, grad_in(c, at_cos))->dims;
    const int rank = grad_rank(c, 0);
    int64_t rotated = node_int(&c->node, "rotary_embedding_dim", 0),
            heads = node_int(&c->node, "num_heads", 0);
    if (rotated == 0 && cache->rank > 0 && cache->dims[cache->rank - 1] > 0)
        rotated = 2 * cache->dims[cache->rank - 1];
    if (rank == 3 && heads == 0 && rotated > 0 && dims->dims[2] > 0)
        heads = dims->dims[2] / rotated;
    if (rotated <= 0 || (rank == 3 && heads < 1)) {
        grad_refuse(c, "the sizes of its heads are not known");
        return;
    }
    bool by_batch;
    const value_id x = rank == 3 ? grad_split_heads(c, grad_in(c, 0), heads) : grad_in(c, 0);
    const value_id ids = positions_of(c, at_ids, x, &by_batch);
    const value_id cos = grad_rotary_rows(c, grad_in(c, at_cos), ids, by_batch),
                   sin = grad_rotary_rows(c, grad_in(c, at_cos + 1), ids, by_batch);
    const bool interleaved = node_int(&c->node, "interleaved", 0) != 0;
    value_id y = grad_rotate(c, x, cos, sin, rotated, interleaved);
    if (rank == 3) y = grad_join_heads(c, y);
    grad_through(c, first, 1, &y);
}
