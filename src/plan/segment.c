/* SPDX-License-Identifier: Apache-2.0
 *
 * Maintains the tree of a plan's segments: creates, finds, adds and removes them. A model whose
 * shapes depend on data needs a new child segment for each new set of tensors; the tree keeps the
 * most recently used ones. See decision 6.
 */
#include "plan/state.h"

#include <string.h>

/* Limits of the tree's memory: segments kept below a root. The segment being added and its
 * ancestors are never removed. Planning a new shape takes milliseconds
 * (build/tests/bench/growing). */
#define MAX_CONTINUATIONS 64
#define MAX_TREE_BYTES ((size_t)16 << 20) /* bytes; not applied to MIN_CONTINUATIONS or fewer */
#define MIN_CONTINUATIONS 4

clg_status segment_create(plan_segment *parent, size_t n_nodes, plan_segment **out_segment)
{
    *out_segment = NULL;
    plan_segment *segment = memory_zalloc(1, sizeof *segment);
    if (!segment) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    refcount_init(&segment->refs);
    atomic_init(&segment->detached, parent != NULL);
    segment->parent = parent ? plan_segment_retain(parent) : NULL;
    segment->depth = parent ? parent->depth + 1 : 0;
    segment->n_steps_before = parent ? parent->n_steps_before + parent->n_steps : 0;
    segment->node_places = arena_alloc(&segment->memory, n_nodes + 1, 1);
    if (!segment->node_places) {
        plan_segment_free(segment);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    memset(segment->node_places, UINT8_MAX, n_nodes);
    *out_segment = segment;
    return CLG_OK;
}

plan_segment *plan_segment_retain(plan_segment *segment)
{
    refcount_retain(&segment->refs);
    return segment;
}

void plan_segment_free(plan_segment *segment)
{
    while (segment && refcount_release(&segment->refs)) {
        plan_segment *parent = segment->parent;
        if (segment->bound && segment->release_bound) segment->release_bound(segment->bound);
        for (size_t i = 0; i < segment->n_held; i++) tensor_free(segment->held[i]);
        memory_free(segment->held);
        for (size_t i = 0; i < segment->n_blocks; i++) memo_block_free(segment->blocks[i]);
        memory_free(segment->blocks);
        state_free(segment->state);
        arena_deinit(&segment->memory);
        memory_free(segment);
        segment = parent;
    }
}

/* ---- the tree -------------------------------------------------------------------------------- */

static plan_segment *root_of(plan_segment *segment)
{
    while (segment->parent) segment = segment->parent;
    return segment;
}

/* Marks a segment as the most recently used one of its tree. */
static void use(plan_segment *segment) { segment->last_use = ++root_of(segment)->clock; }

plan_segment *segment_find_child(plan_segment *segment, tensor *const *contents)
{
    for (plan_segment *child = segment->children; child; child = child->sibling) {
        bool same = true;
        for (size_t i = 0; same && i < child->n_arrived; i++)
            same = tensor_equal(child->arrived[i], contents[i]);
        if (!same) continue;
        use(child);
        return plan_segment_retain(child);
    }
    return NULL;
}

static bool same_carried(const plan_carried *a, const plan_carried *b)
{
    if (a->parity != b->parity || a->n_facts != b->n_facts) return false;
    for (size_t i = 0; i < a->n_facts; i++)
        if (!aggregate_equal(&a->facts[i], &b->facts[i])) return false;
    return true;
}

plan_segment *segment_find_iteration(plan_segment *segment, const plan_carried *carried)
{
    for (plan_segment *child = segment->children; child; child = child->sibling) {
        if (!same_carried(&child->carried, carried)) continue;
        use(child);
        return plan_segment_retain(child);
    }
    return NULL;
}

/* Removes a segment without children from the tree. */
static void remove_leaf(plan_segment *leaf)
{
    plan_segment **link = &leaf->parent->children;
    while (*link != leaf) link = &(*link)->sibling;
    *link = leaf->sibling;
    leaf->sibling = NULL;
    plan_segment *root = root_of(leaf);
    root->n_children_all--;
    root->children_bytes -= leaf->size_bytes;
    atomic_store(&leaf->detached, true);
    plan_segment_free(leaf);
}

/* Returns the next segment in preorder; NULL after the last. */
static plan_segment *next_in_tree(const plan_segment *segment)
{
    if (segment->children) return segment->children;
    while (segment && !segment->sibling) segment = segment->parent;
    return segment ? segment->sibling : NULL;
}

static bool is_full(const plan_segment *root)
{
    return root->n_children_all > MAX_CONTINUATIONS ||
           (root->n_children_all > MIN_CONTINUATIONS && root->children_bytes > MAX_TREE_BYTES);
}

/* Removes the least recently used leaf other than `keep`; returns false if there is none. */
static bool drop_oldest(plan_segment *root, const plan_segment *keep)
{
    plan_segment *oldest = NULL;
    for (plan_segment *s = root; s; s = next_in_tree(s))
        if (s->parent && !s->children && s != keep && (!oldest || s->last_use < oldest->last_use))
            oldest = s;
    if (oldest) remove_leaf(oldest);
    return oldest != NULL;
}

void segment_add_child(plan_segment *segment, plan_segment *child)
{
    if (atomic_load(&segment->detached)) return;
    plan_segment *root = root_of(segment);
    atomic_store(&child->detached, false);
    child->sibling = segment->children;
    segment->children = plan_segment_retain(child);
    root->n_children_all++;
    root->children_bytes += child->size_bytes;
    use(child);
    while (is_full(root) && drop_oldest(root, child)) continue;
}

void segment_detach(plan_segment *segment)
{
    plan_segment *at = segment;
    while (segment->children) {
        while (at->children) at = at->children;
        plan_segment *parent = at->parent;
        remove_leaf(at);
        at = parent;
    }
}
