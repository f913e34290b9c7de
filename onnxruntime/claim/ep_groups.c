/* SPDX-License-Identifier: Apache-2.0
 *
 * Each supported node gets a stage: the number of times that some path to it leaves the supported
 * nodes and comes back. Stages never fall along an edge, and rise on the way through an unsupported
 * node; so the nodes of one stage that edges connect are a convex group, and groups form no cycle.
 *
 * The earliest stages split more than they must: a branch that starts beside an unsupported node
 * has stage 0 although all that reads it has stage 1. Groups are therefore moved to the stage of
 * their first reader where no unsupported node on the way to a reader forbids it.
 */
#include "ep_groups.h"

#include "base/memory.h"

typedef struct division {
    const ep_edges *edges;
    const bool *supported;
    size_t *stage;  /* of an unsupported node: the least stage of what reads it */
    size_t *latest; /* the least stage of a supported node that is, or depends on, the node */
    size_t *parent; /* union-find over nodes */
    size_t *first;  /* nodes of a group: members[first[root]] .. */
    size_t *count;  /* and their number */
    size_t *members;
    size_t *roots; /* of groups, by stage, the last one first */
    size_t *start; /* scratch, n_nodes + 1 */
} division;

static size_t find_root(size_t *parent, size_t i)
{
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

/* The smaller index becomes the root. Paths are halved: time is near linear without ranks. */
static void unite(size_t *parent, size_t a, size_t b)
{
    a = find_root(parent, a);
    b = find_root(parent, b);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

static void find_earliest_stages(division *d)
{
    for (size_t i = 0; i < d->edges->n_nodes; i++) d->stage[i] = 0;
    for (size_t i = 0; i < d->edges->n_nodes; i++)
        for (size_t e = d->edges->first[i]; e < d->edges->first[i + 1]; e++) {
            size_t to = d->edges->to[e];
            size_t least = d->stage[i] + (d->supported[i] && !d->supported[to] ? 1 : 0);
            if (d->stage[to] < least) d->stage[to] = least;
        }
}

static void find_latest_stages(division *d)
{
    for (size_t i = d->edges->n_nodes; i-- > 0;) {
        d->latest[i] = d->supported[i] ? d->stage[i] : SIZE_MAX;
        if (d->supported[i]) continue;
        for (size_t e = d->edges->first[i]; e < d->edges->first[i + 1]; e++)
            if (d->latest[i] > d->latest[d->edges->to[e]])
                d->latest[i] = d->latest[d->edges->to[e]];
    }
}

/* Unites the supported nodes of one stage that are connected. */
static void unite_stages(division *d)
{
    for (size_t i = 0; i < d->edges->n_nodes; i++) {
        if (!d->supported[i]) continue;
        for (size_t e = d->edges->first[i]; e < d->edges->first[i + 1]; e++) {
            size_t to = d->edges->to[e];
            if (d->supported[to] && d->stage[to] == d->stage[i]) unite(d->parent, i, to);
        }
    }
}

/* Lists the nodes of each group, and the groups by stage. Returns the number of groups. */
static size_t list_groups(division *d)
{
    size_t n = d->edges->n_nodes, n_roots = 0, at = 0;
    for (size_t i = 0; i < n; i++) d->count[i] = 0;
    for (size_t i = 0; i <= n; i++) d->start[i] = 0;
    for (size_t i = 0; i < n; i++) {
        if (!d->supported[i]) continue;
        size_t root = find_root(d->parent, i);
        d->count[root]++;
        if (root == i) d->start[n - 1 - d->stage[i]]++, n_roots++;
    }
    for (size_t i = 0; i < n; i++) d->first[i] = at, at += d->count[i], d->count[i] = 0;
    for (size_t i = 0; i < n; i++)
        if (d->supported[i]) {
            size_t root = find_root(d->parent, i);
            d->members[d->first[root] + d->count[root]++] = i;
        }
    at = 0;
    for (size_t i = 0; i <= n; i++) {
        size_t here = d->start[i];
        d->start[i] = at;
        at += here;
    }
    for (size_t i = 0; i < n; i++)
        if (d->supported[i] && d->parent[i] == i) d->roots[d->start[n - 1 - d->stage[i]]++] = i;
    return n_roots;
}

/* Moves a group to the least stage of what reads it, if that of nothing between forbids it. */
static void move_late(division *d, size_t root)
{
    size_t reader = SIZE_MAX, limit = SIZE_MAX; /* a limit is exclusive */
    for (size_t m = 0; m < d->count[root]; m++) {
        size_t node = d->members[d->first[root] + m];
        for (size_t e = d->edges->first[node]; e < d->edges->first[node + 1]; e++) {
            size_t to = d->edges->to[e];
            if (!d->supported[to]) {
                if (limit > d->latest[to]) limit = d->latest[to];
            } else if (find_root(d->parent, to) != root && reader > d->stage[to]) {
                reader = d->stage[to];
            }
        }
    }
    if (reader == SIZE_MAX || reader >= limit) return;
    for (size_t m = 0; m < d->count[root]; m++) d->stage[d->members[d->first[root] + m]] = reader;
}

static void number_groups(division *d, size_t *out_group, size_t *out_n_groups)
{
    size_t n_groups = 0;
    for (size_t i = 0; i < d->edges->n_nodes; i++) {
        out_group[i] = EP_NO_GROUP;
        if (!d->supported[i]) continue;
        /* The root is the smallest index of its group. */
        size_t root = find_root(d->parent, i);
        out_group[i] = root == i ? n_groups++ : out_group[root];
    }
    *out_n_groups = n_groups;
}

clg_status ep_groups_find(const ep_edges *edges, const bool *supported, size_t *out_group,
                          size_t *out_n_groups)
{
    size_t n = edges->n_nodes;
    *out_n_groups = 0;
    size_t *memory = memory_zalloc(8, (n + 1) * sizeof *memory);
    if (memory == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    division d = {.edges = edges, .supported = supported};
    size_t **arrays[] = {&d.stage, &d.latest,  &d.parent, &d.first,
                         &d.count, &d.members, &d.roots,  &d.start};
    for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++) *arrays[a] = memory + a * (n + 1);
    for (size_t i = 0; i < n; i++) d.parent[i] = i;
    find_earliest_stages(&d);
    find_latest_stages(&d);
    unite_stages(&d);
    size_t n_roots = list_groups(&d);
    for (size_t r = 0; r < n_roots; r++) move_late(&d, d.roots[r]);
    unite_stages(&d);
    number_groups(&d, out_group, out_n_groups);
    memory_free(memory);
    return CLG_OK;
}
