/* SPDX-License-Identifier: Apache-2.0
 *
 * Removes Transposes that cancel out. Two in a row become one or none. Those around a set of
 * pointwise operators (an island) are removed if all its large inputs come through Transposes with
 * the same permutation and all its results go through Transposes with the inverse. Models written
 * for channels-last images have such a pair around each convolution. Other Transposes are not
 * moved: most consumers read them as views.
 */
#include "base/cancel.h"
#include "base/work_count.h"
#include "ops/pointwise/pointwise.h"
#include "passes/rewrite.h"

#include <string.h>

typedef struct permutation {
    int rank;
    int64_t axes[CLG_MAX_RANK];
} permutation;

/* Reads the permutation of a Transpose; returns false for other nodes. Without the attribute it is
 * the reversal, for which the rank must be known. */
static bool read_permutation(const graph_info *s, const node *n, permutation *out)
{
    size_t count = 0;
    if (!node_is(n, "Transpose")) return false;
    const int64_t *given = node_ints(n, "perm", &count);
    out->rank = given ? (int)count : s->facts[n->inputs[0]].dims.rank;
    if (out->rank < 1 || out->rank > CLG_MAX_RANK) return false;
    for (int i = 0; i < out->rank; i++) out->axes[i] = given ? given[i] : out->rank - 1 - i;
    return true;
}

static bool same(const permutation *a, const permutation *b)
{
    return a->rank == b->rank && memcmp(a->axes, b->axes, (size_t)a->rank * sizeof *a->axes) == 0;
}

/* Returns the permutation of applying `inner` first, then `outer`. */
static permutation compose(const permutation *inner, const permutation *outer)
{
    permutation both = {.rank = outer->rank};
    for (int i = 0; i < outer->rank; i++) both.axes[i] = inner->axes[outer->axes[i]];
    return both;
}

static bool moves_nothing(const permutation *p)
{
    for (int i = 0; i < p->rank; i++)
        if (p->axes[i] != i) return false;
    return true;
}

/* ---- two in a row ---------------------------------------------------------------------------- */

static clg_status merge(graph *g, const graph_info *s, node_id i)
{
    permutation outer, inner;
    if (!read_permutation(s, &g->nodes[i], &outer)) return CLG_OK;
    const node_id before = g->values[g->nodes[i].inputs[0]].producer;
    if (before != NODE_NONE && read_permutation(s, &g->nodes[before], &inner) &&
        inner.rank == outer.rank) {
        outer = compose(&inner, &outer);
        CLG_TRY(node_set_ints(g, i, "perm", (size_t)outer.rank, outer.axes));
        graph_set_input(g, i, 0, g->nodes[before].inputs[0]);
    }
    const value_id result = g->nodes[i].outputs[0];
    if (!moves_nothing(&outer) || g->values[result].is_output) return CLG_OK;
    CLG_TRY(graph_replace_uses(g, result, g->nodes[i].inputs[0]));
    graph_remove_node(g, i);
    return CLG_OK;
}

static clg_status merge_all(graph *g)
{
    graph_info s;
    CLG_TRY(graph_info_make(g, &s));
    clg_status status = CLG_OK;
    for (node_id i = 0; i < g->n_nodes && status == CLG_OK; i++) status = merge(g, &s, i);
    graph_info_deinit(&s);
    return status;
}

/* ---- islands --------------------------------------------------------------------------------- */

/* An island: nodes between Transposes by `in` and Transposes by its inverse. */
typedef struct island {
    graph *graph;
    graph_info info;
    permutation in;
    bool *member;       /* [node] */
    uint32_t *fitting;  /* [value]: its uses by members and inverse Transposes */
    node_id *readers;   /* the nodes with an input, those of value v from readers_of[v] on */
    size_t *readers_of; /* [value + 1] */
    node_id *removed;   /* members that were removed and whose neighbours are to be checked */
    size_t n_removed;
    size_t n_nodes;
} island;

static bool is_in(const island *w, node_id n)
{
    permutation p;
    return n != NODE_NONE && read_permutation(&w->info, &w->graph->nodes[n], &p) &&
           same(&p, &w->in);
}

static bool is_inverse(const island *w, const node *n)
{
    permutation p;
    if (!read_permutation(&w->info, n, &p) || p.rank != w->in.rank) return false;
    p = compose(&w->in, &p);
    return moves_nothing(&p);
}

/* Returns whether v has one element and so needs no transposing. */
static bool is_single(const graph_info *s, value_id v)
{
    int64_t count;
    const shape *dims = &s->facts[v].dims;
    return dims->rank != RANK_UNKNOWN && dims->rank <= 1 && shape_is_known(dims) &&
           shape_n_elements(dims, &count) == CLG_OK && count == 1;
}

static bool may_be_member(const island *w, const node *n)
{
    return pointwise_is(n) && n->n_outputs == 1 && !w->graph->values[n->outputs[0]].is_output &&
           w->info.facts[n->outputs[0]].dims.rank == w->in.rank;
}

static bool inputs_fit(const island *w, const node *n)
{
    for (size_t k = 0; k < n->n_inputs; k++) {
        const value_id v = n->inputs[k];
        if (v == VALUE_NONE || is_single(&w->info, v)) continue;
        const node_id from = w->graph->values[v].producer;
        if (!is_in(w, from) && (from == NODE_NONE || !w->member[from])) return false;
    }
    return true;
}

static void count_fitting(const island *w)
{
    memset(w->fitting, 0, w->info.n_values * sizeof *w->fitting);
    for (node_id i = 0; i < w->n_nodes; i++) {
        const node *n = &w->graph->nodes[i];
        if (n->removed || (!w->member[i] && !is_inverse(w, n))) continue;
        for (size_t k = 0; k < n->n_inputs; k++)
            if (n->inputs[k] != VALUE_NONE) w->fitting[n->inputs[k]]++;
    }
}

/* Lists the nodes that read each value. */
static clg_status list_readers(island *w)
{
    const graph *g = w->graph;
    size_t n_uses = 0;
    w->readers_of = memory_zalloc(g->n_values + 2, sizeof *w->readers_of);
    if (!w->readers_of) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    size_t *next = w->readers_of + 1; /* by value: where its next reader goes */
    for (node_id i = 0; i < w->n_nodes; i++)
        for (size_t k = 0; k < g->nodes[i].n_inputs; k++)
            if (g->nodes[i].inputs[k] != VALUE_NONE) next[g->nodes[i].inputs[k]]++;
    for (size_t v = 0; v < g->n_values; v++) {
        const size_t n = next[v];
        next[v] = n_uses;
        n_uses += n;
    }
    w->readers = memory_zalloc(n_uses + 1, sizeof *w->readers);
    if (!w->readers) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (node_id i = 0; i < w->n_nodes; i++)
        for (size_t k = 0; k < g->nodes[i].n_inputs; k++)
            if (g->nodes[i].inputs[k] != VALUE_NONE) w->readers[next[g->nodes[i].inputs[k]]++] = i;
    return CLG_OK;
}

/* Removes node i from the members if its inputs or the uses of its output do not fit. */
static void check_member(island *w, node_id i)
{
    const node *n = &w->graph->nodes[i];
    work_count_add(1);
    if (!w->member[i] ||
        (inputs_fit(w, n) && w->fitting[n->outputs[0]] == w->info.uses[n->outputs[0]]))
        return;
    w->member[i] = false;
    for (size_t k = 0; k < n->n_inputs; k++)
        if (n->inputs[k] != VALUE_NONE) w->fitting[n->inputs[k]]--;
    w->removed[w->n_removed++] = i;
}

/* Checks the nodes before and after one that was removed from the members. */
static void check_neighbours(island *w, node_id i)
{
    const node *n = &w->graph->nodes[i];
    const value_id out = n->outputs[0];
    for (size_t k = 0; k < n->n_inputs; k++) {
        const node_id from =
            n->inputs[k] == VALUE_NONE ? NODE_NONE : w->graph->values[n->inputs[k]].producer;
        if (from != NODE_NONE) check_member(w, from);
    }
    for (size_t r = w->readers_of[out]; r < w->readers_of[out + 1]; r++)
        check_member(w, w->readers[r]);
}

/* Finds the largest set of nodes whose inputs and consumers all are members or such Transposes:
 * starts with all candidates, and removes nodes until none violates this. *out_any: whether any
 * remain. */
static clg_status find_members(island *w, bool *out_any)
{
    *out_any = false;
    for (node_id i = 0; i < w->n_nodes; i++) w->member[i] = may_be_member(w, &w->graph->nodes[i]);
    count_fitting(w);
    for (node_id i = 0; i < w->n_nodes; i++) {
        CLG_TRY(cancel_check("optimising the graph"));
        check_member(w, i);
        while (w->n_removed > 0) check_neighbours(w, w->removed[--w->n_removed]);
    }
    for (node_id i = 0; i < w->n_nodes; i++) *out_any = *out_any || w->member[i];
    return CLG_OK;
}

/* Removes the Transposes around an island: its nodes read the inputs of the leading ones, and
 * produce the outputs of the trailing ones. */
static clg_status remove_island(const island *w)
{
    graph *g = w->graph;
    for (node_id i = 0; i < w->n_nodes; i++) {
        node *n = &g->nodes[i];
        if (w->member[i]) {
            for (size_t k = 0; k < n->n_inputs; k++) {
                const value_id v = n->inputs[k];
                if (v != VALUE_NONE && is_in(w, g->values[v].producer))
                    graph_set_input(g, i, k, g->nodes[g->values[v].producer].inputs[0]);
            }
        } else if (is_inverse(w, n)) {
            const value_id given = n->inputs[0], result = n->outputs[0];
            const node_id from = g->values[given].producer;
            if (from == NODE_NONE || from >= w->n_nodes || !w->member[from]) continue;
            if (g->values[result].is_output) {
                CLG_TRY(rewrite_become(g, i, "", "Identity", n->opset, 1, &given));
            } else {
                CLG_TRY(graph_replace_uses(g, result, given));
                graph_remove_node(g, i);
            }
        }
    }
    return CLG_OK;
}

static clg_status find_island(graph *g, const permutation *in, bool *out_found)
{
    island w = {.graph = g, .in = *in, .n_nodes = g->n_nodes};
    CLG_TRY(graph_info_make(g, &w.info));
    w.member = memory_zalloc(g->n_nodes + 1, sizeof *w.member);
    w.fitting = memory_zalloc(g->n_values + 1, sizeof *w.fitting);
    w.removed = memory_zalloc(g->n_nodes + 1, sizeof *w.removed);
    clg_status status = w.member && w.fitting && w.removed ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK) status = list_readers(&w);
    if (status == CLG_OK) status = find_members(&w, out_found);
    if (status == CLG_OK && *out_found) status = remove_island(&w);
    memory_free(w.member);
    memory_free(w.fitting);
    memory_free(w.readers);
    memory_free(w.readers_of);
    memory_free(w.removed);
    graph_info_deinit(&w.info);
    return status;
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* The number of different permutations for which islands of a graph are searched. */
#define MAX_PERMUTATIONS 8

static clg_status list_permutations(graph *g, permutation *out, size_t *out_n)
{
    graph_info s;
    CLG_TRY(graph_info_make(g, &s));
    *out_n = 0;
    for (node_id i = 0; i < g->n_nodes && *out_n < MAX_PERMUTATIONS; i++) {
        permutation p;
        bool is_new = read_permutation(&s, &g->nodes[i], &p) && !moves_nothing(&p);
        for (size_t k = 0; is_new && k < *out_n; k++) is_new = !same(&p, &out[k]);
        if (is_new) out[(*out_n)++] = p;
    }
    graph_info_deinit(&s);
    return CLG_OK;
}

static bool has_two(const graph *g)
{
    size_t n = 0;
    for (node_id i = 0; i < g->n_nodes; i++) n += node_is(&g->nodes[i], "Transpose");
    return n >= 2;
}

clg_status pass_transpose(graph *g, const pass_options *options)
{
    (void)options;
    permutation found[MAX_PERMUTATIONS];
    size_t n;
    if (!has_two(g)) return CLG_OK;
    CLG_TRY(merge_all(g));
    CLG_TRY(list_permutations(g, found, &n));
    for (size_t i = 0; i < n; i++) {
        bool any;
        CLG_TRY(find_island(g, &found[i], &any));
        if (!any) continue;
        CLG_TRY(graph_compact(g));
        CLG_TRY(ops_resolve(g));
        CLG_TRY(merge_all(g));
    }
    return CLG_OK;
}
