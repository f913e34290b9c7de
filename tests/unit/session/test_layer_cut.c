/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests what cuts of a graph cost, and which are chosen: against an exhaustive search.
 */
#include "support/unit.h"

#include "session/exec/model.h"
#include "session/layers/layer_costs.h"
#include "support/fixtures/layers/layers_model.h"
#include "support/fixtures/random_graph.h"
#include "support/fixtures/random_model.h"

#include <clgraph/clgraph.h>

#include <math.h>
#include <string.h>

enum { MOST_BLOCKS = 7, MOST_DEVICES = 3 };

/* ---- costs ----------------------------------------------------------------------------------- */

static void costs_of(const graph *g, layer_costs *out_costs)
{
    value_fact *facts;
    assert_ok(ops_infer_graph(g, NULL, &facts));
    assert_ok(layer_costs_create(g, facts, out_costs));
    ops_facts_free(facts, g->n_values);
}

/* Returns whether node i uses v. */
typedef struct use_search {
    value_id wanted;
    bool found;
} use_search;

static void look(void *user, value_id v)
{
    use_search *s = user;
    s->found |= v == s->wanted;
}

static bool uses(const node *n, value_id v)
{
    use_search s = {v, false};
    node_visit_uses(n, look, &s);
    return s.found;
}

static uint64_t size_of(const graph *g, const value_fact *facts, value_id v)
{
    int64_t n;
    size_t bytes;
    if (g->values[v].constant) return g->values[v].constant->size_bytes;
    return shape_is_known(&facts[v].dims) && shape_n_elements(&facts[v].dims, &n) == CLG_OK &&
                   dtype_bytes(facts[v].dtype, n, &bytes)
               ? bytes
               : 0;
}

/* Returns whether a node of a block, from `first` to end - 1, uses v. */
static bool is_used(const graph *g, const layer_costs *c, value_id v, node_id first, node_id end)
{
    for (node_id i = first; i < end; i++)
        if (!c->is_apart[i] && uses(&g->nodes[i], v)) return true;
    return false;
}

static bool is_constant(const graph *g, const layer_costs *c, value_id v)
{
    const node_id from = g->values[v].producer;
    return g->values[v].constant || (from != NODE_NONE && c->is_apart[from]);
}

/* Returns the bytes of the constants that the nodes of blocks use. */
static uint64_t bytes_of_constants(const graph *g, const value_fact *facts, const layer_costs *c,
                                   size_t first, size_t end)
{
    uint64_t sum = 0;
    for (value_id v = 0; v < g->n_values; v++)
        if (is_constant(g, c, v) && is_used(g, c, v, c->starts[first], c->starts[end]))
            sum += size_of(g, facts, v);
    return sum;
}

/* Returns the bytes of values from before a cut that nodes after it use. */
static uint64_t bytes_across(const graph *g, const value_fact *facts, const layer_costs *c,
                             node_id at)
{
    uint64_t sum = 0;
    for (value_id v = 0; v < g->n_values; v++) {
        const node_id from = g->values[v].producer;
        if (from != NODE_NONE && from < at && !c->is_apart[from] &&
            is_used(g, c, v, at, (node_id)g->n_nodes))
            sum += size_of(g, facts, v);
    }
    return sum;
}

TEST(layer_cut__costs_of_random_graphs)
{
    size_t n_cuts = 0;
    for (uint64_t seed = 1; seed < 60; seed++) {
        clg_model *m = random_model_create(seed, false);
        const graph *g = m->graph;
        layer_costs c;
        value_fact *facts;
        costs_of(g, &c);
        assert_ok(ops_infer_graph(g, NULL, &facts));
        assert_int_equal(c.starts[0], 0);
        assert_int_equal(c.starts[c.n_blocks], g->n_nodes);
        for (size_t b = 1; b < c.n_blocks; b++) {
            assert_true(c.starts[b] > c.starts[b - 1]);
            assert_true(c.work[b] > 0);
            assert_int_equal(c.crossing[b], bytes_across(g, facts, &c, c.starts[b]));
            n_cuts++;
        }
        for (size_t first = 0; first < c.n_blocks; first++)
            for (size_t end = first + 1; end <= c.n_blocks; end++) {
                const size_t at = layer_index(&c, first, end);
                assert_int_equal(c.weight_bytes[at], bytes_of_constants(g, facts, &c, first, end));
                assert_true(c.part_bytes[at] >= c.weight_bytes[at]);
            }
        ops_facts_free(facts, g->n_values);
        layer_costs_deinit(&c);
        clg_model_free(m);
    }
    assert_true(n_cuts > 50);
}

/* One weight is in all layers, and `table` depends on constants only. */
TEST(layer_cut__costs_count_a_shared_weight_once)
{
    clg_model *m = layers_model();
    layer_costs c;
    costs_of(m->graph, &c);
    const uint64_t w = LAYERS_W * LAYERS_W * sizeof(float);
    const uint64_t all = c.weight_bytes[layer_index(&c, 0, c.n_blocks)];
    assert_in_range(all, w, w + 3 * LAYERS_W * sizeof(float));
    size_t n_apart = 0;
    for (size_t i = 0; i < m->graph->n_nodes; i++) n_apart += c.is_apart[i];
    assert_int_equal(n_apart, 1);
    layer_costs_deinit(&c);
    clg_model_free(m);
}

/* ---- cuts ------------------------------------------------------------------------------------ */

/* Costs made up, with their memory. */
typedef struct made_costs {
    layer_costs c;
    node_id starts[MOST_BLOCKS + 1];
    double work[MOST_BLOCKS], cut_work[MOST_BLOCKS + 1];
    uint64_t crossing[MOST_BLOCKS + 1], tables[2][(MOST_BLOCKS + 1) * (MOST_BLOCKS + 1)];
    bool is_apart[MOST_BLOCKS];
} made_costs;

static void make_costs(made_costs *m, size_t n_blocks, uint64_t *state)
{
    uint64_t weights[MOST_BLOCKS];
    *m = (made_costs){.c = {.n_blocks = n_blocks}};
    m->c.starts = m->starts;
    m->c.work = m->work;
    m->c.cut_work = m->cut_work;
    m->c.crossing = m->crossing;
    m->c.weight_bytes = m->tables[0];
    m->c.part_bytes = m->tables[1];
    m->c.is_apart = m->is_apart;
    for (size_t b = 0; b < n_blocks; b++) {
        m->starts[b + 1] = (node_id)b + 1;
        m->work[b] = 1 + (double)(random_next(state) % 100);
        m->cut_work[b] = b ? (double)(random_next(state) % 30) : 0;
        weights[b] = random_next(state) % 50;
    }
    for (size_t first = 0; first < n_blocks; first++) {
        uint64_t sum = 0;
        for (size_t end = first + 1; end <= n_blocks; end++) {
            sum += weights[end - 1];
            m->tables[0][layer_index(&m->c, first, end)] = sum;
            m->tables[1][layer_index(&m->c, first, end)] = sum + 10;
        }
    }
}

/* The value of a division; infinite if a part does not fit. */
typedef struct cut_value {
    double seconds; /* of the slowest device, and of all transfers */
    size_t n_idle;
} cut_value;

static cut_value value_of(const layer_costs *c, const uint64_t *bytes, const layer_device *devices,
                          size_t n, const size_t *first)
{
    cut_value v = {0, 0};
    double slowest = 0;
    for (size_t i = 0; i < n; i++) {
        double seconds = 0;
        if (first[i] == first[i + 1]) {
            v.n_idle++;
            continue;
        }
        if (devices[i].speed <= 0 ||
            bytes[layer_index(c, first[i], first[i + 1])] > devices[i].limit_bytes)
            return (cut_value){INFINITY, n};
        for (size_t b = first[i]; b < first[i + 1]; b++) seconds += c->work[b] / devices[i].speed;
        const double transfer = first[i] ? c->cut_work[first[i]] / devices[i].speed : 0;
        seconds += transfer;
        v.seconds += transfer;
        if (seconds > slowest) slowest = seconds;
    }
    v.seconds += slowest;
    return v;
}

/* Returns the best value of all divisions among up to three devices. */
static cut_value best_of_all(const layer_costs *c, const uint64_t *bytes,
                             const layer_device *devices, size_t n)
{
    cut_value best = {INFINITY, n};
    for (size_t a = 0; a <= c->n_blocks; a++)
        for (size_t b = a; b <= c->n_blocks; b++) {
            const size_t first[MOST_DEVICES + 1] = {0, n > 1 ? a : c->n_blocks,
                                                    n > 2 ? b : c->n_blocks, c->n_blocks};
            const cut_value v = value_of(c, bytes, devices, n, first);
            if (v.n_idle < best.n_idle || (v.n_idle == best.n_idle && v.seconds < best.seconds))
                best = v;
        }
    return best;
}

/* With each device a block if possible, the time is near the best one; memory is respected. */
TEST(layer_cut__is_near_the_best)
{
    uint64_t seed = 1;
    graph *g;
    size_t n_tight = 0, n_refused = 0;
    assert_ok(graph_create("cuts", &g));
    for (int round = 0; round < 3000; round++) {
        made_costs m;
        layer_device devices[MOST_DEVICES];
        size_t first[MOST_DEVICES + 1];
        const size_t n = 1 + random_next(&seed) % MOST_DEVICES;
        make_costs(&m, 1 + random_next(&seed) % MOST_BLOCKS, &seed);
        for (size_t i = 0; i < n; i++) {
            const uint64_t kind = random_next(&seed) % 8;
            devices[i].speed = kind == 0 ? 0 : (double)kind;
            devices[i].limit_bytes = 60 + random_next(&seed) % 200;
        }
        cut_value best = best_of_all(&m.c, m.c.part_bytes, devices, n);
        const bool counts_values = isfinite(best.seconds);
        const uint64_t *bytes = counts_values ? m.c.part_bytes : m.c.weight_bytes;
        if (!counts_values) best = best_of_all(&m.c, bytes, devices, n);
        if (!isfinite(best.seconds)) {
            n_refused++; /* the message would name nodes that this graph does not have */
            continue;
        }
        assert_ok(layer_cut(&m.c, g, devices, n, first));
        assert_int_equal(first[0], 0);
        assert_int_equal(first[n], m.c.n_blocks);
        const cut_value v = value_of(&m.c, bytes, devices, n, first);
        assert_int_equal(v.n_idle, best.n_idle);
        assert_true(v.seconds <= 1.25 * best.seconds);
        n_tight += !counts_values;
    }
    assert_true(n_tight > 10 && n_refused > 10);
    graph_free(g);
}

TEST(layer_cut__names_the_node_that_fits_no_device)
{
    clg_model *m = layers_model();
    layer_costs c;
    const layer_device devices[] = {{1, 100}, {1, 200}};
    size_t first[3];
    costs_of(m->graph, &c);
    assert_error(layer_cut(&c, m->graph, devices, 2, first), CLG_ERROR_OUT_OF_DEVICE_MEMORY,
                 "(MatMul");
    layer_costs_deinit(&c);
    clg_model_free(m);
}
