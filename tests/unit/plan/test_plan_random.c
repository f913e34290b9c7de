/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans random graphs, and checks that no step overwrites data that a later step reads. Also plans
 * with each allocation failing in turn.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"
#include "support/fixtures/random_graph.h"

#define N_SEEDS 200

static tensor *minus_one(void *user, const plan_port *read)
{
    tensor *t;
    (void)user;
    assert_int_equal(read->dtype, CLG_INT64);
    assert_ok(tensor_create(read->dtype, &read->dims, &t));
    for (int64_t i = 0; i < t->n_elements; i++) tensor_set_int(t, i, -1);
    return t;
}

static void add_counts(plan_check_counts *sum, const plan_check_counts *one)
{
    sum->n_steps += one->n_steps;
    sum->n_views += one->n_views;
    sum->n_joined += one->n_joined;
    sum->n_known += one->n_known;
    sum->n_copies += one->n_copies;
    sum->n_bytes_read += one->n_bytes_read;
}

static plan_check_counts check_seeds(clg_kernel_class kernels, bool allow_blas,
                                     random_graph_options o)
{
    plan_check_counts sum = {0};
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        plan_case k;
        plan_case_start(&k, kernels);
        k.c.allow_blas = allow_blas;
        o.n_nodes = 4 + seed % 40;
        random_graph_make(&k, seed, &o);
        if (seed % 5 == 0) k.caps.max_alloc_bytes = 4096; /* several slabs */
        plan_case_plan(&k);
        plan_check_counts counts = plan_case_check(&k, minus_one, NULL);
        add_counts(&sum, &counts);
        plan_case_end(&k);
    }
    print_message(
        "%zu steps, %zu copies, %zu views, %zu joined, %zu known, %zu bytes of slabs read\n",
        sum.n_steps, sum.n_copies, sum.n_views, sum.n_joined, sum.n_known, sum.n_bytes_read);
    return sum;
}

TEST(random__plans_keep_what_is_read_later)
{
    const random_graph_options o = {.repeated_outputs = true};
    for (int round = 0; round < 3; round++) {
        plan_check_counts n =
            check_seeds(round ? CLG_KERNELS_SIMT : CLG_KERNELS_SIMD, round == 2, o);
        assert_true(n.n_steps > 1000 && n.n_views > 500 && n.n_copies > 100 && n.n_joined > 50);
        assert_true(n.n_bytes_read > 100000);
    }
}

TEST(random__segments_keep_it_too)
{
    const random_graph_options o = {.repeated_outputs = true, .data_dependent = true};
    for (int round = 0; round < 2; round++) {
        plan_check_counts n = check_seeds(round ? CLG_KERNELS_SIMT : CLG_KERNELS_SIMD, round, o);
        assert_true(n.n_steps > 1000);
    }
}

/* ---- failing allocations --------------------------------------------------------------------- */

/* Plans all segments in order, as a run would. */
static clg_status plan_all(void *user)
{
    plan_case *k = user;
    plan *p = NULL;
    bool needed[PLAN_CASE_INPUTS];
    clg_status status = plan_create(&k->c, k->inputs, NULL, needed, &p);
    plan_segment *at = status == CLG_OK ? plan_segment_retain(p->root) : NULL;
    while (status == CLG_OK && !at->last) {
        tensor *contents[OP_MAX_INTS] = {NULL};
        plan_segment *child = NULL;
        for (size_t i = 0; i < at->n_reads && status == CLG_OK; i++) {
            status = tensor_create(at->reads[i].dtype, &at->reads[i].dims, &contents[i]);
            if (status == CLG_OK) tensor_set_int(contents[i], 0, -1);
        }
        if (status == CLG_OK) status = plan_continue(&k->c, at, contents, &child);
        for (size_t i = 0; i < OP_MAX_INTS; i++) tensor_free(contents[i]);
        plan_segment_free(at);
        at = child;
    }
    plan_segment_free(at);
    plan_free(p);
    step_texts_deinit(&k->texts); /* a session would keep them for its next plan */
    return status;
}

TEST(random__planning_survives_every_failing_allocation)
{
    const random_graph_options o = {.n_nodes = 24, .data_dependent = true};
    failing_alloc_install();
    for (uint64_t seed = 1; seed <= 8; seed++) {
        plan_case k;
        plan_case_start(&k, seed % 2 ? CLG_KERNELS_SIMD : CLG_KERNELS_SIMT);
        random_graph_make(&k, seed, &o);
        plan_case_ready(&k);
        assert_true(fault_loop(plan_all, &k) > 50);
        plan_case_end(&k);
    }
    assert_int_equal(failing_alloc_n_live(), 0);
    failing_alloc_remove();
}
