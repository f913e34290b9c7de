/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares plans made with a memo of earlier plans with plans made anew, as text: of random graphs,
 * with changing shapes of their inputs; also with each allocation failing in turn.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"
#include "support/fixtures/random_graph.h"

#include "base/strbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_SEEDS 100

/* Gives a packed weight an index that depends on nothing else. */
static clg_status pack_by_value(void *self, value_id weight, const value_fact *fact,
                                const candidate *c, const packing *p, uint32_t *out_index)
{
    (void)self;
    (void)fact;
    (void)c;
    *out_index = weight * 16 + (uint32_t)strlen(p->recipe) % 16;
    return CLG_OK;
}

static tensor *minus_one(void *user, const plan_port *read)
{
    tensor *t;
    (void)user;
    assert_ok(tensor_create(read->dtype, &read->dims, &t));
    for (int64_t i = 0; i < t->n_elements; i++) tensor_set_int(t, i, -1);
    return t;
}

/* Plans, checks the plan and returns it as text; NULL where planning fails or needs contents. */
static char *plan_text(plan_case *k, plan_memo *memo)
{
    strbuf text;
    k->c.memo = memo;
    const clg_status status = plan_case_try(k);
    if (status != CLG_OK || !k->plan) return NULL;
    (void)plan_case_check(k, minus_one, NULL);
    strbuf_init(&text, 0);
    plan_dump(&k->c, k->plan, &text);
    assert_ok(text.status);
    char *copy = strdup(strbuf_data(&text));
    strbuf_deinit(&text);
    return copy;
}

/* Returns whether both plans exist, and then are equal. */
static bool compare(plan_case *k, plan_memo *memo, uint64_t seed)
{
    char *anew = plan_text(k, NULL), *recalled = plan_text(k, memo);
    assert_true((anew == NULL) == (recalled == NULL));
    if (anew && recalled && strcmp(anew, recalled) != 0)
        fail_msg("seed %llu: a plan with a memo differs:\n%s\nanew:\n%s", (unsigned long long)seed,
                 recalled, anew);
    const bool exist = anew != NULL;
    free(anew);
    free(recalled);
    return exist;
}

/* Changes the first length of the inputs that have one. */
static void set_lengths(plan_case *k, int64_t before, int64_t after)
{
    for (size_t i = 0; i < k->graph->n_inputs; i++) {
        shape *dims = &k->inputs[i].dims;
        if (dims->rank > 0 && dims->dims[0] == before && !k->inputs[i].known) dims->dims[0] = after;
    }
}

TEST(memo__plans_are_the_same)
{
    const random_graph_options data = {.repeated_outputs = true, .data_dependent = true},
                               plain = {.repeated_outputs = true};
    size_t n_equal = 0, n_changed = 0;
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        plan_case k;
        plan_memo *memo;
        random_graph_options o = seed % 3 ? plain : data;
        plan_case_start(&k, seed % 2 ? CLG_KERNELS_SIMD : CLG_KERNELS_SIMT);
        k.c.owner.pack = pack_by_value;
        o.n_nodes = 4 + seed % 40;
        random_graph_make(&k, seed, &o);
        plan_case_ready(&k);
        assert_ok(plan_memo_create(k.graph, &memo));
        const int64_t length = k.inputs[0].dims.rank > 0 ? k.inputs[0].dims.dims[0] : 1;
        for (int round = 0; round < 6; round++) {
            const int64_t other = length + round / 2 + 1;
            if (round % 2) set_lengths(&k, length, other);
            const bool exist = compare(&k, memo, seed);
            n_equal += exist;
            n_changed += exist && round % 2;
            if (round % 2) set_lengths(&k, other, length);
            if (round == 4) plan_memo_clear(memo);
        }
        plan_case_end(&k);
        plan_memo_free(memo);
    }
    print_message("%zu plans, %zu of changed shapes\n", n_equal, n_changed);
    assert_true(n_equal > 250 && n_changed > 20);
}

/* Two branches: of two plans that differ in the shape of one input, the other branch's steps are
 * the same objects. */
TEST(memo__steps_are_shared)
{
    plan_case k;
    plan_memo *memo;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    const value_id x = plan_case_input(&k, "x", CLG_FLOAT32, 2, (int64_t[]){3, 5}),
                   y = plan_case_input(&k, "y", CLG_FLOAT32, 1, (int64_t[]){7});
    plan_case_output(&k, plan_case_node(&k, "Relu", 1, &x));
    plan_case_output(&k, plan_case_node(&k, "Neg", 1, &y));
    plan_case_ready(&k);
    assert_ok(plan_memo_create(k.graph, &memo));
    k.c.memo = memo;
    plan_case_plan(&k);
    plan *first = plan_retain(k.plan);
    k.inputs[1].dims.dims[0] = 8;
    plan_case_plan(&k);
    const plan_segment *a = first->root, *b = k.plan->root;
    assert_int_equal(a->n_steps, 2);
    assert_int_equal(b->n_steps, 2);
    assert_ptr_equal(a->steps[0].what, b->steps[0].what);
    assert_ptr_not_equal(a->steps[1].what, b->steps[1].what);
    assert_int_equal(b->output_bytes[1], 8 * sizeof(float));
    plan_free(first);
    plan_memo_free(memo); /* the plan keeps its steps */
    k.c.memo = NULL;
    plan_case_check(&k, NULL, NULL);
    plan_case_end(&k);
}

/* Three layers of two nodes that are alike but for their inputs' shapes: of each of the two, only
 * that of the first layer is lowered. */
TEST(memo__layers_have_the_steps_of_the_first)
{
    plan_case k;
    plan_memo *memo;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    for (int layer = 0; layer < 3; layer++) {
        char name[2][16];
        (void)snprintf(name[0], sizeof name[0], "a%d", layer);
        (void)snprintf(name[1], sizeof name[1], "b%d", layer);
        const value_id a = plan_case_input(&k, name[0], CLG_FLOAT32, 2, (int64_t[]){5, 3}),
                       b = plan_case_input(&k, name[1], CLG_FLOAT32, 2, (int64_t[]){5, 4});
        plan_case_output(&k, plan_case_node(&k, "Tanh", 1, &a));
        plan_case_output(&k, plan_case_node(&k, "Tanh", 1, &b));
    }
    plan_case_ready(&k);
    assert_ok(plan_memo_create(k.graph, &memo));
    k.c.memo = memo;
    for (int64_t length = 5; length < 8; length++) {
        for (size_t i = 0; i < 6; i++) k.inputs[i].dims.dims[0] = length;
        plan_case_plan(&k);
        const plan_segment *root = k.plan->root;
        assert_int_equal(root->n_steps, 6);
        for (size_t i = 2; i < 6; i++)
            assert_ptr_equal(root->steps[i].what, root->steps[i - 2].what);
        assert_ptr_not_equal(root->steps[0].what, root->steps[1].what);
    }
    plan_memo_free(memo);
    k.c.memo = NULL;
    plan_case_check(&k, NULL, NULL);
    plan_case_end(&k);
}

/* What a run was given, such as texts, does not stay in memory once its plan is gone. */
TEST(memo__texts_of_runs_go_with_their_plan)
{
    const shape one = {.rank = 1, .dims = {1}};
    plan_case k;
    plan_memo *memo;
    tensor *text;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    assert_ok(graph_set_opset(k.graph, "", 20));
    const value_id x = plan_case_input(&k, "x", CLG_STRING, 1, (int64_t[]){1});
    value_id both[] = {x, x};
    plan_case_output(&k, plan_case_node(&k, "StringConcat", 2, both));
    plan_case_ready(&k);
    assert_ok(plan_memo_create(k.graph, &memo));
    k.c.memo = memo;
    assert_ok(tensor_create(CLG_STRING, &one, &text));
    assert_ok(tensor_set_string(text, 0, "one", 3));
    k.inputs[0].known = text;
    plan_case_plan(&k);
    tensor *result = tensor_retain((tensor *)k.plan->root->outputs[0].known);
    assert_string_equal(tensor_get_string(result, 0), "oneone");
    plan_free(k.plan);
    k.plan = NULL;
    assert_false(refcount_is_shared(&result->refs));
    tensor_free(result);
    tensor_free(text);
    plan_memo_free(memo);
    k.c.memo = NULL;
    plan_case_end(&k);
}

/* ---- failing allocations --------------------------------------------------------------------- */

/* Plans three times with a memo. */
static clg_status plan_with_memo(void *user)
{
    plan_case *k = user;
    clg_status status = plan_memo_create(k->graph, &k->c.memo);
    for (int i = 0; i < 3 && status == CLG_OK; i++) {
        plan *p = NULL;
        bool needed[PLAN_CASE_INPUTS];
        status = plan_create(&k->c, k->inputs, NULL, needed, &p);
        plan_free(p);
    }
    plan_memo_free(k->c.memo);
    k->c.memo = NULL;
    step_texts_deinit(&k->texts);
    return status;
}

TEST(memo__survives_every_failing_allocation)
{
    const random_graph_options o = {.n_nodes = 16};
    failing_alloc_install();
    for (uint64_t seed = 1; seed <= 4; seed++) {
        plan_case k;
        plan_case_start(&k, seed % 2 ? CLG_KERNELS_SIMD : CLG_KERNELS_SIMT);
        random_graph_make(&k, seed, &o);
        plan_case_ready(&k);
        assert_true(fault_loop(plan_with_memo, &k) > 50);
        plan_case_end(&k);
    }
    assert_int_equal(failing_alloc_n_live(), 0);
    failing_alloc_remove();
}
