/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests which outputs a plan computes in the memory of an input, and how many bytes its steps then
 * move: by the ranges of memory that they declare to access, not by time.
 */
#include "support/unit.h"

#include "support/cases/plan_case.h"
#include "support/literals.h"

#include <string.h>

enum { KV_HEADS = 2, HEADS = 4, D = 8, ROOM = 64, QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE };

#define VALUES(...) ((const value_id[]){__VA_ARGS__})

/* Sets the last readers of the values, as the owner of plans does. */
static void set_readers(plan_case *k, node_id *readers)
{
    const graph *g = k->graph;
    memset(readers, 0, g->n_values * sizeof *readers);
    for (node_id n = 0; n < g->n_nodes; n++)
        for (size_t i = 0; i < g->nodes[n].n_inputs; i++)
            if (g->nodes[n].inputs[i] != VALUE_NONE) readers[g->nodes[n].inputs[i]] = n;
    for (size_t i = 0; i < k->c.n_outputs; i++) readers[k->outputs[i]] = NODE_NONE;
    k->c.last_readers = readers;
}

static double moved_bytes(const plan_segment *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->n_steps; i++) sum += step_bytes(s->steps[i].what);
    return sum;
}

/* ---- GroupQueryAttention --------------------------------------------------------------------- */

typedef struct attention_case {
    plan_case plan;
    node_id readers[32];
    uint32_t in_place[PLAN_CASE_INPUTS];
    tensor *total;
} attention_case;

/* Builds one token of attention over `used` positions of a cache. */
static void start_attention(attention_case *a, clg_kernel_class kernels, int64_t used)
{
    plan_case *k = &a->plan;
    value_id in[7], out[3];
    const shape one = {.rank = 1, .dims = {1}};
    plan_case_start(k, kernels);
    assert_ok(graph_set_opset(k->graph, "com.microsoft", 1));
    in[0] = plan_case_input(k, "q", CLG_FLOAT32, 3, DIMS(1, 1, HEADS * D));
    in[1] = plan_case_input(k, "k", CLG_FLOAT32, 3, DIMS(1, 1, KV_HEADS * D));
    in[2] = plan_case_input(k, "v", CLG_FLOAT32, 3, DIMS(1, 1, KV_HEADS * D));
    in[3] = plan_case_input(k, "pk", CLG_FLOAT32, 4, DIMS(1, KV_HEADS, ROOM, D));
    in[4] = plan_case_input(k, "pv", CLG_FLOAT32, 4, DIMS(1, KV_HEADS, ROOM, D));
    in[5] = plan_case_input(k, "lengths", CLG_INT32, 1, DIMS(1));
    in[6] = plan_case_input(k, "total", CLG_INT32, 1, DIMS(1));
    assert_ok(tensor_create(CLG_INT32, &one, &a->total));
    tensor_set_int(a->total, 0, used);
    k->inputs[6].known = a->total;
    node_id id;
    for (int i = 0; i < 3; i++)
        assert_ok(graph_add_value(k->graph, NAMES("y", "nk", "nv")[i], &out[i]));
    assert_ok(
        graph_add_node(k->graph, "com.microsoft", "GroupQueryAttention", "a", 7, in, 3, out, &id));
    assert_ok(node_set_int(k->graph, id, "num_heads", HEADS));
    assert_ok(node_set_int(k->graph, id, "kv_num_heads", KV_HEADS));
    for (int i = 0; i < 3; i++) plan_case_output(k, out[i]);
    set_readers(k, a->readers);
    for (int i = 0; i < PLAN_CASE_INPUTS; i++) a->in_place[i] = PLAN_APART;
}

static void end_attention(attention_case *a)
{
    plan_case_end(&a->plan);
    tensor_free(a->total);
}

/* Returns the bytes that the steps of a token move. in_place: the caches are requested so. */
static double bytes_of_token(clg_kernel_class kernels, int64_t used, bool in_place)
{
    attention_case a;
    start_attention(&a, kernels, used);
    for (uint32_t i = 0; i < 2; i++) a.in_place[3 + i] = in_place ? 1 + i : PLAN_APART;
    a.plan.in_place = a.in_place;
    plan_case_plan(&a.plan);
    const plan_segment *s = a.plan.plan->root;
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(s->outputs[1 + i].place.kind, in_place ? PLACE_INPUT : PLACE_OUTPUT);
        assert_int_equal(s->outputs[1 + i].place.index, in_place ? 3 + i : 1 + i);
        assert_true((s->output_bytes[1 + i] == PLAN_NO_OUTPUT) == in_place);
    }
    const double bytes = moved_bytes(s);
    end_attention(&a);
    return bytes;
}

TEST(plan_in_place__a_token_moves_what_is_used)
{
    for (int c = 0; c < 2; c++) {
        const clg_kernel_class kernels = c ? CLG_KERNELS_SIMT : CLG_KERNELS_SIMD;
        for (int64_t used = 2; used <= ROOM; used += 31) {
            const double cache = 2.0 * KV_HEADS * ROOM * D * sizeof(float),
                         row = 2.0 * KV_HEADS * D * sizeof(float), /* of both caches */
                ends = 2.0 * HEADS * D * sizeof(float);            /* queries and results */
            const double reads = row * (double)used + ends;
            assert_true(bytes_of_token(kernels, used, true) == reads + 2 * row);
            assert_true(bytes_of_token(kernels, used, false) == reads + 2 * cache);
        }
    }
}

/* A cache without room for another position, or whose request names another output, is copied. */
TEST(plan_in_place__not_where_shapes_differ)
{
    attention_case a;
    start_attention(&a, CLG_KERNELS_SIMD, ROOM + 1);
    a.in_place[3] = 1;
    a.plan.in_place = a.in_place;
    plan_case_plan(&a.plan);
    assert_int_equal(a.plan.plan->root->outputs[1].place.kind, PLACE_OUTPUT);
    end_attention(&a);
    start_attention(&a, CLG_KERNELS_SIMD, ROOM);
    a.in_place[3] = 2;
    a.plan.in_place = a.in_place;
    plan_case_plan(&a.plan);
    assert_int_equal(a.plan.plan->root->outputs[1].place.kind, PLACE_OUTPUT);
    assert_int_equal(a.plan.plan->root->outputs[2].place.kind, PLACE_OUTPUT);
    end_attention(&a);
}

/* ---- scatters of intermediate values --------------------------------------------------------- */

enum { N = 6 };

typedef struct scatter_case {
    plan_case plan;
    node_id readers[32];
    value_id x, at, u;
} scatter_case;

static void start_scatter(scatter_case *t)
{
    plan_case *k = &t->plan;
    plan_case_start(k, CLG_KERNELS_SIMD);
    t->x = plan_case_input(k, "x", CLG_FLOAT32, 1, DIMS(N));
    t->at = plan_case_input(k, "at", CLG_INT64, 2, DIMS(2, 1));
    t->u = plan_case_input(k, "u", CLG_FLOAT32, 1, DIMS(2));
}

static value_id scatter(scatter_case *t, value_id data)
{
    return plan_case_node(&t->plan, "ScatterND", 3, VALUES(data, t->at, t->u));
}

/* Plans; returns the number of copies. */
static size_t count_copies(scatter_case *t)
{
    size_t n = 0;
    set_readers(&t->plan, t->readers);
    plan_case_plan(&t->plan);
    const plan_segment *s = t->plan.plan->root;
    for (size_t i = 0; i < s->n_steps; i++) n += s->steps[i].what->kind == STEP_COPY;
    return n;
}

TEST(plan_in_place__a_chain_of_scatters_copies_nothing)
{
    scatter_case t;
    start_scatter(&t);
    value_id v = plan_case_node(&t.plan, "Neg", 1, &t.x);
    for (int i = 0; i < 3; i++) v = scatter(&t, v);
    plan_case_output(&t.plan, v);
    assert_int_equal(count_copies(&t), 0);
    const plan_segment *s = t.plan.plan->root;
    assert_int_equal(s->outputs[0].place.kind, PLACE_OUTPUT);
    for (size_t i = 0; i < s->n_steps; i++) /* all in the memory of the output */
        assert_int_equal(s->steps[i].buffers[s->steps[i].n_buffers - 1].kind, PLACE_OUTPUT);
    assert_int_equal(s->n_slabs, 0);
    plan_case_end(&t.plan);
}

TEST(plan_in_place__not_what_is_read_later)
{
    scatter_case t;
    start_scatter(&t);
    const value_id v = plan_case_node(&t.plan, "Neg", 1, &t.x);
    const value_id view = plan_case_node(&t.plan, "Reshape", 2,
                                         VALUES(v, plan_case_ints(&t.plan, 2, DIMS(2, N / 2))));
    plan_case_output(&t.plan, scatter(&t, v));
    plan_case_output(&t.plan, plan_case_node(&t.plan, "Neg", 1, &view));
    assert_int_equal(count_copies(&t), 1);
    plan_case_end(&t.plan);
}

TEST(plan_in_place__not_inputs_outputs_and_weights)
{
    scatter_case t;
    start_scatter(&t);
    const value_id v = plan_case_node(&t.plan, "Neg", 1, &t.x);
    plan_case_output(&t.plan, v);
    plan_case_output(&t.plan, scatter(&t, v));
    plan_case_output(&t.plan, scatter(&t, t.x));
    plan_case_output(&t.plan, scatter(&t, plan_case_floats(&t.plan, 1, DIMS(N))));
    assert_int_equal(count_copies(&t), 3);
    plan_case_end(&t.plan);
}

/* The updates are a part of the data. */
TEST(plan_in_place__not_what_the_node_reads_elsewhere)
{
    scatter_case t;
    start_scatter(&t);
    const value_id v = plan_case_node(&t.plan, "Neg", 1, &t.x);
    const value_id part = plan_case_node(
        &t.plan, "Slice", 3,
        VALUES(v, plan_case_ints(&t.plan, 1, DIMS(2)), plan_case_ints(&t.plan, 1, DIMS(4))));
    plan_case_output(&t.plan, plan_case_node(&t.plan, "ScatterND", 3, VALUES(v, t.at, part)));
    assert_int_equal(count_copies(&t), 1);
    plan_case_end(&t.plan);
}

/* The data are a Concat, in whose memory a part of it is that is read later: as it is, or through a
 * view that is made after the Concat. */
TEST(plan_in_place__not_a_concat_whose_part_is_read_later)
{
    for (int view = 0; view < 2; view++) {
        scatter_case t;
        start_scatter(&t);
        value_id part = plan_case_node(&t.plan, "Neg", 1, &t.x);
        const value_id other = plan_case_node(&t.plan, "Neg", 1, &t.x);
        const value_id whole = plan_case_node(&t.plan, "Concat", 2, VALUES(part, other));
        assert_ok(node_set_int(t.plan.graph, plan_case_last(&t.plan), "axis", 0));
        if (view)
            part = plan_case_node(&t.plan, "Reshape", 2,
                                  VALUES(part, plan_case_ints(&t.plan, 2, DIMS(2, N / 2))));
        plan_case_output(&t.plan, scatter(&t, whole));
        plan_case_output(&t.plan, plan_case_node(&t.plan, "Neg", 1, &part));
        assert_int_equal(count_copies(&t), 1);
        plan_case_end(&t.plan);
    }
}
