/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the trie of vocabulary.h: strings are sorted, then nodes are made level by level, each
 * from the range of strings that go through it.
 */
#include "base/memory.h"
#include "base/sort.h"
#include "text/models/vocabulary.h"

#include <string.h>

enum { MAX_NODES = 8 << 20 };

/* The strings of a node: a range of the order. */
typedef struct node_range {
    uint32_t from, to;
    uint32_t depth;
} node_range;

typedef struct trie_builder {
    byte_trie *trie;
    const char *const *strings;
    const int32_t *values;
    uint32_t *order;
    node_range *ranges; /* of each node */
    size_t ranges_capacity;
} trie_builder;

static bool goes_before(const void *self, uint32_t a, uint32_t b)
{
    const char *const *strings = self;
    return strcmp(strings[a], strings[b]) < 0;
}

static clg_status add_node(trie_builder *b, uint8_t label, node_range range)
{
    byte_trie *t = b->trie;
    if (t->n_nodes >= MAX_NODES)
        return error_set(CLG_ERROR_LIMIT, "the tokens need more than %d nodes of a trie",
                         MAX_NODES);
    CLG_TRY(MEMORY_RESERVE(t->nodes, t->capacity, t->n_nodes + 1));
    CLG_TRY(MEMORY_RESERVE(b->ranges, b->ranges_capacity, t->n_nodes + 1));
    b->ranges[t->n_nodes] = range;
    t->nodes[t->n_nodes++] = (trie_node){.value = -1, .label = label};
    return CLG_OK;
}

/* Adds the children of a node. */
static clg_status expand(trie_builder *b, size_t node)
{
    node_range r = b->ranges[node];
    trie_node *n = &b->trie->nodes[node];
    n->first_child = (uint32_t)b->trie->n_nodes;
    for (; r.from < r.to && b->strings[b->order[r.from]][r.depth] == '\0'; r.from++) {
        const uint32_t i = b->order[r.from];
        if (r.depth > 0) n->value = b->values ? b->values[i] : (int32_t)i;
    }
    while (r.from < r.to) {
        const char label = b->strings[b->order[r.from]][r.depth];
        uint32_t end = r.from + 1;
        while (end < r.to && b->strings[b->order[end]][r.depth] == label) end++;
        CLG_TRY(add_node(b, (uint8_t)label, (node_range){r.from, end, r.depth + 1}));
        b->trie->nodes[node].n_children++;
        r.from = end;
    }
    return CLG_OK;
}

clg_status trie_build(byte_trie *t, const char *const *strings, const int32_t *values, size_t n)
{
    trie_builder b = {.trie = t, .strings = strings, .values = values};
    clg_status status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    *t = (byte_trie){0};
    b.order = memory_zalloc(n, 2 * sizeof *b.order);
    if (!b.order) return status;
    for (size_t i = 0; i < n; i++) b.order[i] = (uint32_t)i;
    sort_indices(b.order, n, b.order + n, goes_before, strings);
    status = add_node(&b, 0, (node_range){0, (uint32_t)n, 0});
    for (size_t i = 0; status == CLG_OK && i < t->n_nodes; i++) status = expand(&b, i);
    for (size_t i = 0; status == CLG_OK && i < t->nodes[0].n_children; i++)
        t->firsts[t->nodes[t->nodes[0].first_child + i].label] =
            t->nodes[0].first_child + (uint32_t)i;
    memory_free(b.order);
    memory_free(b.ranges);
    if (status != CLG_OK) trie_deinit(t);
    return status;
}

void trie_deinit(byte_trie *t)
{
    memory_free(t->nodes);
    *t = (byte_trie){0};
}

uint32_t trie_child(const byte_trie *t, uint32_t node, uint8_t label)
{
    if (node == 0) return t->firsts[label];
    size_t low = t->nodes[node].first_child, high = low + t->nodes[node].n_children;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (t->nodes[middle].label == label) return (uint32_t)middle;
        if (t->nodes[middle].label < label)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}
