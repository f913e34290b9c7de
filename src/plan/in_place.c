/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which outputs of a node are computed in the memory of an input (op_row.in_place): in that
 * of an intermediate value that no later node reads, and in that of an input of the graph for which
 * the plan was requested so (plan.in_place). Everywhere else the operator copies. See decision 80.
 */
#include "plan/state.h"

#include <string.h>

/* Returns whether another input of the node is in the same block of memory, so that its steps would
 * read what they write. */
static bool is_read_too(const plan_state *s, const node *n, size_t input)
{
    const uint32_t home = state_home(s, s->values[n->inputs[input]].root, NULL);
    for (size_t i = 0; i < n->n_inputs; i++) {
        if (i == input || n->inputs[i] == VALUE_NONE) continue;
        const uint32_t root = s->values[n->inputs[i]].root;
        if (root != ROOT_NONE && state_home(s, root, NULL) == home) return true;
    }
    return false;
}

/* Returns whether an intermediate value's memory, all of a root, may be overwritten by the current
 * node: nothing else reads it, in this segment or later. */
static bool is_spent(const plan_state *s, const plan_root *root, size_t size_bytes)
{
    return !s->has_control && !root->placed && root->home == ROOT_NONE &&
           root->size_bytes == size_bytes && root->last_read <= state_main_node(s);
}

/* Returns whether the plan was requested with output v in the memory of this root's input. */
static bool is_requested(const plan_state *s, const plan_root *root, const node *n, value_id v)
{
    const op_row *row = n->op;
    const uint32_t output = s->in_place ? s->in_place[root->index] : PLAN_APART;
    return output < s->context->n_outputs && s->context->outputs[output] == v &&
           !(row->accumulates && row->accumulates(n));
}

static bool may_overwrite(const plan_state *s, const node *n, const op_in_place *pair)
{
    if (pair->input >= n->n_inputs || pair->output >= n->n_outputs) return false;
    const value_id from = n->inputs[pair->input], to = n->outputs[pair->output];
    if (from == VALUE_NONE || to == VALUE_NONE) return false;
    const plan_value *x = &s->values[from], *y = &s->values[to];
    size_t size_bytes;
    if (x->root == ROOT_NONE || x->weight || x->fact.known || !x->dense || x->offset_elems != 0 ||
        x->fact.dtype != y->fact.dtype || !shape_equal(&x->fact.dims, &y->fact.dims) ||
        state_value_bytes(x, &size_bytes) != CLG_OK || size_bytes == 0 ||
        is_read_too(s, n, pair->input))
        return false;
    const plan_root *root = &s->roots[x->root];
    if (root->kind == PLACE_INPUT) return is_requested(s, root, n, to);
    return root->kind == PLACE_SLAB && is_spent(s, root, size_bytes);
}

uint32_t in_place_find(const plan_state *s, const node *n)
{
    const op_row *row = n->op;
    uint32_t found = 0;
    if (!s->context->last_readers || s->context->is_init_plan || s->n_scopes != 1) return 0;
    for (size_t i = 0; i < row->n_in_place; i++)
        if (may_overwrite(s, n, &row->in_place[i])) found |= 1u << row->in_place[i].output;
    return found;
}

void in_place_set(plan_state *s, const node *n, uint32_t output)
{
    const op_row *row = n->op;
    for (size_t i = 0; i < row->n_in_place; i++) {
        if (row->in_place[i].output != output) continue;
        const value_id to = n->outputs[output];
        plan_value *y = &s->values[to];
        y->root = s->values[n->inputs[row->in_place[i].input]].root;
        y->offset_elems = 0;
        y->dense = true;
        shape_strides(&y->fact.dims, y->strides);
        state_share_root(s, to);
    }
}

bool in_place_is_output(const plan_state *s, const plan_value *v, size_t output)
{
    if (v->root == ROOT_NONE || !v->dense || v->offset_elems != 0) return false;
    const plan_root *root = &s->roots[v->root];
    return root->kind == PLACE_INPUT && s->in_place && s->in_place[root->index] == output;
}
