/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests how the provider for ONNX Runtime groups nodes. On random graphs, groups are checked
 * against the definition, by the reachability of all pairs.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"

#include "ep_groups.h"

#include <string.h>

#define MAX_NODES 24

typedef struct dag {
    size_t n;
    bool edge[MAX_NODES][MAX_NODES]; /* from, to > from */
    bool supported[MAX_NODES];
    size_t group[MAX_NODES], n_groups;
} dag;

static void divide(dag *g)
{
    size_t first[MAX_NODES + 1], to[MAX_NODES * MAX_NODES], n_edges = 0;
    for (size_t i = 0; i < g->n; i++) {
        first[i] = n_edges;
        for (size_t j = i + 1; j < g->n; j++)
            if (g->edge[i][j]) to[n_edges++] = j;
    }
    first[g->n] = n_edges;
    assert_ok(ep_groups_find(&(ep_edges){g->n, first, to}, g->supported, g->group, &g->n_groups));
}

static dag chain(const char *kinds) /* 's': supported, 'u': not */
{
    dag g = {.n = strlen(kinds)};
    for (size_t i = 0; i < g.n; i++) {
        g.supported[i] = kinds[i] == 's';
        if (i > 0) g.edge[i - 1][i] = true;
    }
    return g;
}

TEST(ep_groups__a_chain_splits_at_unsupported_nodes)
{
    dag g = chain("ssuss");
    divide(&g);
    assert_int_equal(g.n_groups, 2);
    assert_true(g.group[0] == 0 && g.group[1] == 0 && g.group[2] == EP_NO_GROUP);
    assert_true(g.group[3] == 1 && g.group[4] == 1);
    g = chain("uuu");
    divide(&g);
    assert_int_equal(g.n_groups, 0);
    g = chain("");
    divide(&g);
    assert_int_equal(g.n_groups, 0);
}

/* 0 -> 1 (not supported) -> 2, and 0 -> 2: with 0 and 2 in one group, 1 would be read by the group
 * that it reads. */
TEST(ep_groups__a_path_around_keeps_apart)
{
    dag g = chain("sus");
    g.edge[0][2] = true;
    divide(&g);
    assert_int_equal(g.n_groups, 2);
}

/* A branch that starts beside an unsupported node belongs to the group that reads it. */
TEST(ep_groups__late_branch_joins_its_reader)
{
    dag g = {.n = 6, .supported = {true, false, true, true, true, true}};
    g.edge[0][1] = g.edge[1][4] = true; /* s u . . s */
    g.edge[2][3] = g.edge[3][4] = true; /* . . s s s */
    g.edge[4][5] = true;
    divide(&g);
    assert_int_equal(g.n_groups, 2);
    assert_true(g.group[2] == g.group[4] && g.group[3] == g.group[4] && g.group[0] != g.group[4]);
    /* Not if an unsupported node that the group depends on reads the branch too. */
    g = (dag){.n = 5, .supported = {true, true, false, true, true}};
    g.edge[0][1] = g.edge[0][2] = g.edge[2][3] = g.edge[1][3] = g.edge[3][4] = true;
    divide(&g);
    assert_true(g.group[0] != g.group[3]);
}

TEST(ep_groups__parts_that_nothing_connects_are_groups)
{
    dag g = {.n = 4, .supported = {true, true, true, true}};
    g.edge[0][2] = g.edge[1][3] = true;
    divide(&g);
    assert_int_equal(g.n_groups, 2);
    assert_true(g.group[0] == g.group[2] && g.group[1] == g.group[3]);
}

static clg_status divide_once(void *user)
{
    static const size_t first[] = {0, 1, 1}, to[] = {1};
    size_t group[2], n_groups = 0;
    (void)user;
    return ep_groups_find(&(ep_edges){2, first, to}, (const bool[]){true, true}, group, &n_groups);
}

TEST(ep_groups__out_of_memory) { assert_true(fault_loop_alone(divide_once, NULL) > 0); }

/* ---- random graphs ------------------------------------------------------------------------- */

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525U + 1013904223U;
    return *state >> 8;
}

static void find_paths(const dag *g, bool path[MAX_NODES][MAX_NODES])
{
    memcpy(path, g->edge, sizeof g->edge);
    for (size_t k = 0; k < g->n; k++)
        for (size_t i = 0; i < g->n; i++)
            for (size_t j = 0; j < g->n; j++)
                if (path[i][k] && path[k][j]) path[i][j] = true;
}

static bool together(const dag *g, size_t i, size_t j)
{
    return i == j || (g->group[i] == g->group[j] && g->group[i] != EP_NO_GROUP);
}

/* No cycle between groups: with paths through groups, no node outside of a group is both reached
 * from it and leads to it. Convexity is the case of one node. */
static void check_no_cycle(const dag *g)
{
    dag merged = *g;
    for (size_t i = 0; i < g->n; i++)
        for (size_t j = 0; j < g->n; j++)
            if (i != j && together(g, i, j)) merged.edge[i][j] = true;
    bool path[MAX_NODES][MAX_NODES];
    find_paths(&merged, path);
    for (size_t i = 0; i < g->n; i++)
        for (size_t j = 0; j < g->n; j++)
            if (path[i][j] && path[j][i]) assert_true(together(g, i, j));
}

static void check_connected(const dag *g)
{
    dag inside = {.n = g->n};
    for (size_t i = 0; i < g->n; i++)
        for (size_t j = 0; j < g->n; j++)
            if (g->edge[i][j] && together(g, i, j)) inside.edge[i][j] = inside.edge[j][i] = true;
    bool path[MAX_NODES][MAX_NODES];
    find_paths(&inside, path);
    for (size_t i = 0; i < g->n; i++)
        for (size_t j = 0; j < g->n; j++)
            if (i != j && together(g, i, j)) assert_true(path[i][j]);
}

TEST(ep_groups__random_graphs_keep_the_rules)
{
    uint32_t seed = 7;
    size_t n_grouped = 0;
    for (int round = 0; round < 3000; round++) {
        dag g = {.n = 1 + next_random(&seed) % MAX_NODES};
        uint32_t density = 1 + next_random(&seed) % 8, unsupported = 2 + next_random(&seed) % 6;
        for (size_t i = 0; i < g.n; i++) {
            g.supported[i] = next_random(&seed) % unsupported != 0;
            for (size_t j = i + 1; j < g.n; j++)
                g.edge[i][j] = next_random(&seed) % (density * 2) == 0;
        }
        divide(&g);
        for (size_t i = 0; i < g.n; i++) {
            assert_true((g.group[i] != EP_NO_GROUP) == g.supported[i]);
            if (g.supported[i]) assert_true(g.group[i] < g.n_groups);
            for (size_t j = 0; j < i; j++)
                if (g.supported[i] && together(&g, i, j)) n_grouped++;
        }
        check_no_cycle(&g);
        check_connected(&g);
    }
    assert_true(n_grouped > 40000); /* a group for each node would keep the rules too */
}
