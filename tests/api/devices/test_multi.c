/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions over several devices: the bits of single sessions with the same rows, for any number of
 * rows; the caller's memory for results; what is refused; several threads; parts of a CPU. The
 * devices are contexts on one. test_multi_lost.c loses them.
 */
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/multi/bound_outputs.h"
#include "support/fixtures/multi/multi_model.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/sized_data.h"
#include "support/literals.h"

#include "base/threads.h"

#include <clgraph/inspect.h>
#include <clgraph/multi.h>

#include <stdio.h>
#include <string.h>

TEST_GROUP(open_context, close_context)

/* Opens n contexts, of which the first is the group's. */
static void open_contexts(clg_context **contexts, size_t n)
{
    contexts[0] = context;
    for (size_t i = 1; i < n; i++)
        assert_ok(clg_context_create(ocl_platforms_test_device(), NULL, &contexts[i]));
}

static void close_contexts(clg_context **contexts, size_t n)
{
    for (size_t i = 1; i < n; i++) clg_context_free(contexts[i]);
}

static clg_session *open_multi(clg_context *const *contexts, size_t n)
{
    clg_session *s;
    clg_model *m = multi_model();
    assert_ok(clg_session_create_multi(contexts, n, m, NULL, NULL, &s));
    clg_model_free(m);
    return s;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Checks the outputs of the last run of s with n rows: against a reference, and, bit for bit,
 * against a session on one device that runs with the rows of each part. */
static void expect_right(clg_session *s, clg_session *single, int64_t n)
{
    clg_session_part *parts;
    size_t n_parts;
    int64_t first = 0;
    multi_results whole, piece;
    multi_results_make(n, &whole);
    multi_fetch(s, n, &whole);
    multi_expect(n, &whole);
    assert_ok(clg_session_parts(s, &parts, &n_parts));
    for (size_t i = 0; i < n_parts; i++) {
        const int64_t rows = (int64_t)parts[i].rows;
        if (rows == 0) continue;
        multi_results_make(rows, &piece);
        multi_set(single, first, rows);
        assert_ok(clg_session_run(single));
        multi_fetch(single, rows, &piece);
        multi_expect_same(&whole, n, first, &piece, rows);
        multi_results_free(&piece);
        first += rows;
    }
    assert_int_equal(first, n);
    clg_session_parts_free(parts, n_parts);
    multi_results_free(&whole);
}

static void try_rows(size_t n_devices)
{
    static const int64_t counts[] = {1, 2, 3, 5, 17, 64, 64, 64, 64, 9, 1};
    clg_context *contexts[8];
    open_contexts(contexts, n_devices);
    clg_session *s = open_multi(contexts, n_devices), *single = multi_single(context);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        multi_set(s, 0, counts[i]);
        for (int run = 0; run < 3; run++) { /* the first one copies, later ones run in place */
            assert_ok(clg_session_run(s));
            expect_right(s, single, counts[i]);
        }
    }
    clg_session_free(s);
    clg_session_free(single);
    close_contexts(contexts, n_devices);
}

TEST(multi__one_device) { try_rows(1); }
TEST(multi__two_devices) { try_rows(2); }
TEST(multi__three_devices) { try_rows(3); }
TEST(multi__eight_devices) { try_rows(8); }

TEST(multi__no_rows)
{
    clg_context *contexts[2];
    open_contexts(contexts, 2);
    clg_session *s = open_multi(contexts, 2);
    clg_value *y;
    multi_set(s, 0, 0);
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output(s, "y", &y));
    assert_int_equal(clg_value_dims(y)[0], 0);
    clg_value_free(y);
    clg_session_free(s);
    close_contexts(contexts, 2);
}

TEST(multi__calls_write_into_the_callers_memory)
{
    enum { N = 13 };
    clg_context *contexts[3];
    open_contexts(contexts, 3);
    clg_session *s = open_multi(contexts, 3);
    multi_results r;
    multi_results_make(N, &r);
    for (int run = 0; run < 4; run++) {
        const bool is_small = run == 2; /* y does not fit, and comes as a value */
        memset(r.y, 0, MULTI_Y_BYTES(N));
        assert_ok(multi_call(s, N, &r, is_small));
        multi_expect(N, &r);
    }
    multi_results_free(&r);
    clg_session_free(s);
    close_contexts(contexts, 3);
}

TEST(multi__outputs_bound_to_values)
{
    enum { N = 11 };
    clg_context *contexts[2];
    open_contexts(contexts, 2);
    clg_session *s = open_multi(contexts, 2);
    clg_value *y, *got;
    multi_results r;
    multi_results_make(N, &r);
    multi_set(s, 0, N);
    assert_ok(clg_value_create(CLG_FLOAT32, 2, DIMS(N, MULTI_K), &y));
    assert_ok(clg_session_bind_output(s, "y", y));
    for (int run = 0; run < 3; run++) {
        assert_ok(clg_session_run(s));
        multi_fetch(s, N, &r);
        multi_expect(N, &r);
        assert_ok(clg_session_get_output(s, "y", &got));
        assert_ptr_equal(got, y);
        clg_value_free(got);
    }
    expect_bound_outputs_refused(s, context, N, MULTI_K);
    clg_value_free(y);
    multi_results_free(&r);
    clg_session_free(s);
    close_contexts(contexts, 2);
}

/* What one run returned must not change when the next one runs. */
TEST(multi__results_belong_to_their_run)
{
    enum { N = 8 };
    clg_context *contexts[2];
    open_contexts(contexts, 2);
    clg_session *s = open_multi(contexts, 2);
    clg_value *before[3];
    float y[3][N * MULTI_K], again[N * MULTI_K];
    for (int run = 0; run < 3; run++) {
        multi_set(s, run, N);
        assert_ok(clg_session_run(s));
        assert_ok(clg_session_get_output(s, "y", &before[run]));
        assert_ok(clg_value_read(before[run], y[run], sizeof y[run]));
    }
    for (int run = 0; run < 3; run++) {
        assert_ok(clg_value_read(before[run], again, sizeof again));
        assert_memory_equal(again, y[run], sizeof again);
        clg_value_free(before[run]);
    }
    clg_session_free(s);
    close_contexts(contexts, 2);
}

/* An input without a batch is copied to the devices when it is set, even to the same value. */
TEST(multi__an_input_without_a_batch_is_set_again)
{
    enum { N = 6, SIZE = MULTI_K * MULTI_K };
    clg_context *contexts[2];
    open_contexts(contexts, 2);
    clg_session *s = open_multi(contexts, 2);
    clg_value *w;
    float numbers[SIZE], c[SIZE];
    multi_set(s, 0, N);
    assert_ok(clg_value_create(CLG_FLOAT32, 2, DIMS(MULTI_K, MULTI_K), &w));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < SIZE; i++) numbers[i] = (float)(i % 7 + round);
        assert_ok(clg_value_write(w, numbers, sizeof numbers));
        assert_ok(clg_session_set_input(s, "w", w));
        for (int run = 0; run < 2; run++) {
            assert_ok(clg_session_run(s));
            assert_ok(clg_session_get_output_data(s, "c", c, sizeof c));
            for (int i = 0; i < SIZE; i++) assert_true(c[i] == 2 * numbers[i]);
        }
    }
    clg_value_free(w);
    clg_session_free(s);
    close_contexts(contexts, 2);
}

/* ---- preparing, asynchronous runs, clones, mapped inputs ------------------------------------- */

TEST(multi__prepares_and_measures)
{
    enum { N = 32 };
    clg_context *contexts[2];
    clg_session_part *parts;
    size_t n_parts;
    open_contexts(contexts, 2);
    clg_session *s = open_multi(contexts, 2), *single = multi_single(context);
    assert_ok(clg_session_set_input_shape(s, "x", 2, DIMS(N, MULTI_K)));
    assert_ok(clg_session_prepare(s, NULL, NULL));
    assert_ok(clg_session_parts(s, &parts, &n_parts));
    double share = 0;
    for (size_t i = 0; i < n_parts; i++) share += parts[i].share;
    assert_true(share > 0.999 && share < 1.001);
    assert_true(parts[0].rows_per_s > 0 || parts[1].rows_per_s > 0);
    clg_session_parts_free(parts, n_parts);
    multi_set(s, 0, N);
    assert_ok(clg_session_run(s));
    expect_right(s, single, N);
    multi_set(s, 0, 1); /* fewer rows than devices */
    assert_ok(clg_session_prepare(s, NULL, NULL));
    assert_ok(clg_session_parts(s, &parts, &n_parts));
    assert_true((parts[0].share == 1 && parts[1].share == 0) ||
                (parts[0].share == 0 && parts[1].share == 1));
    clg_session_parts_free(parts, n_parts);
    clg_session_free(s);
    clg_session_free(single);
    close_contexts(contexts, 2);
}

TEST(multi__asynchronous_runs_clones_and_mapped_inputs)
{
    enum { N = 10 };
    clg_context *contexts[2];
    clg_session *s, *clone;
    void *data;
    open_contexts(contexts, 2);
    s = open_multi(contexts, 2);
    multi_results r;
    multi_results_make(N, &r);
    assert_ok(clg_session_clone(s, &clone));
    clg_session_free(s);
    multi_set(clone, 0, N);
    for (int run = 0; run < 3; run++) {
        assert_ok(clg_session_map_input(clone, "x", 2, DIMS(N, MULTI_K), &data));
        multi_rows(0, N, data);
        assert_ok(clg_session_run_async(clone));
        assert_ok(clg_session_wait(clone));
        multi_fetch(clone, N, &r);
        multi_expect(N, &r);
    }
    multi_results_free(&r);
    clg_session_free(clone);
    close_contexts(contexts, 2);
}

/* Runs until it is told to stop. */
typedef struct runner {
    clg_session *session;
    atomic_bool stops;
    atomic_size_t n_ended; /* right or cancelled */
    atomic_size_t n_wrong;
} runner;

static void *run_on(void *user)
{
    runner *r = user;
    while (!atomic_load(&r->stops)) {
        const clg_status status = clg_session_run(r->session);
        const bool is_ok = status == CLG_OK || status == CLG_ERROR_CANCELLED;
        atomic_fetch_add(is_ok ? &r->n_ended : &r->n_wrong, 1);
    }
    return NULL;
}

TEST(multi__is_cancelled_by_another_thread)
{
    enum { N = 40, N_CANCELS = 300 };
    clg_context *contexts[3];
    open_contexts(contexts, 3);
    runner r = {.session = open_multi(contexts, 3)};
    clg_session *single = multi_single(context);
    thread t;
    multi_set(r.session, 0, N);
    assert_ok(clg_session_run(r.session));
    assert_ok(thread_start(&t, run_on, &r));
    for (int i = 0; i < N_CANCELS; i++) {
        clg_session_cancel(r.session);
        thread_yield();
    }
    while (atomic_load(&r.n_ended) + atomic_load(&r.n_wrong) == 0) thread_yield();
    atomic_store(&r.stops, true);
    thread_join(t);
    assert_int_equal(atomic_load(&r.n_wrong), 0);
    assert_ok(clg_session_run(r.session));
    expect_right(r.session, single, N);
    clg_session_free(r.session);
    clg_session_free(single);
    close_contexts(contexts, 3);
}

TEST(multi__serves_one_request_at_a_time)
{
    clg_context *contexts[2];
    open_contexts(contexts, 2);
    clg_session *s = open_multi(contexts, 2);
    clg_session_part *parts;
    size_t n_parts;
    multi_set(s, 0, 4);
    assert_ok(clg_session_run_async(s));
    assert_error(clg_session_run(s), CLG_ERROR_BUSY, "another request");
    assert_error(clg_session_parts(s, &parts, &n_parts), CLG_ERROR_BUSY, "another request");
    assert_ok(clg_session_wait(s));
    clg_session_free(s);
    close_contexts(contexts, 2);
}

/* ---- errors ---------------------------------------------------------------------------------- */

TEST(multi__refuses_wrong_arguments)
{
    clg_context *contexts[3];
    clg_session *s;
    open_contexts(contexts, 2);
    contexts[2] = contexts[0];
    clg_model *m = multi_model();
    assert_error(clg_session_create_multi(contexts, 0, m, NULL, NULL, &s),
                 CLG_ERROR_INVALID_ARGUMENT, "no context");
    assert_error(clg_session_create_multi(contexts, 3, m, NULL, NULL, &s),
                 CLG_ERROR_INVALID_ARGUMENT, "context 2 is given twice");
    contexts[2] = NULL;
    assert_error(clg_session_create_multi(contexts, 3, m, NULL, NULL, &s),
                 CLG_ERROR_INVALID_ARGUMENT, "context 2 is NULL");
    assert_error(clg_session_create_multi(NULL, 2, m, NULL, NULL, &s), CLG_ERROR_INVALID_ARGUMENT,
                 "contexts");
    assert_error(clg_session_create_multi(contexts, 2, NULL, NULL, NULL, &s),
                 CLG_ERROR_INVALID_ARGUMENT, "model");
    assert_null(s);
    clg_model_free(m);
    close_contexts(contexts, 2);
}

TEST(multi__refuses_rows_that_depend_on_each_other)
{
    clg_context *contexts[2];
    clg_session *s;
    clg_model *m;
    open_contexts(contexts, 2);
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, 3), NULL));
    assert_ok(clg_builder_node(g, NULL, "Softmax", "over rows", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(clg_builder_attribute_int(g, "axis", 0));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_build(g, &m));
    clg_builder_free(g);
    assert_error(clg_session_create_multi(contexts, 2, m, NULL, NULL, &s),
                 CLG_ERROR_UNSUPPORTED_OPERATOR, "over rows");
    clg_model_free(m);
    close_contexts(contexts, 2);
}

TEST(multi__refuses_what_needs_one_device)
{
    clg_context *contexts[2];
    clg_value *v;
    clg_session_part *parts;
    size_t n_parts;
    float short_rows[3 * MULTI_L] = {0};
    open_contexts(contexts, 2);
    clg_session *s = open_multi(contexts, 2);
    assert_error(clg_session_run(s), CLG_ERROR_NOT_FOUND, "is not set");
    multi_set(s, 0, 4);
    assert_error(clg_session_link(s, "y", "x"), CLG_ERROR_UNSUPPORTED_DEVICE, "several devices");
    assert_error(clg_session_keep_values(s, NAMES("p"), 1), CLG_ERROR_UNSUPPORTED_DEVICE,
                 "several devices");
    assert_ok(clg_session_run(s));
    assert_error(clg_session_get_output_device(s, "y", &v), CLG_ERROR_UNSUPPORTED_DEVICE,
                 "several devices");
    assert_ok(sized_input(s, "u", CLG_FLOAT32, 2, DIMS(3, MULTI_L), short_rows));
    assert_error(clg_session_run(s), CLG_ERROR_SHAPE, "have 4 and 3 rows");
    assert_error(clg_session_get_output(s, "y", &v), CLG_ERROR_NOT_FOUND, "'y'");
    multi_set(s, 0, 4);
    assert_ok(clg_session_run(s));
    clg_session *single = multi_single(context);
    assert_ok(clg_session_parts(single, &parts, &n_parts));
    assert_int_equal(n_parts, 1);
    assert_ptr_equal(parts[0].session, single);
    clg_session_parts_free(parts, n_parts);
    clg_session_free(single);
    clg_session_free(s);
    close_contexts(contexts, 2);
}

/* ---- parts of a CPU -------------------------------------------------------------------------- */

TEST(multi__parts_of_a_cpu_do_not_overlap)
{
    clg_context **contexts;
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    size_t n;
    char beyond[32];
    const unsigned units = clg_context_device(context)->compute_units;
    (void)snprintf(beyond, sizeof beyond, "pocl/%u", units);
    assert_error(clg_context_create_list(beyond, &options, &contexts, &n),
                 CLG_ERROR_UNSUPPORTED_DEVICE, "there is no part");
    assert_null(contexts);
    if (units < 2) skip();
    assert_ok(clg_context_create_list("pocl/0, pocl#0/1,pocl/0", &options, &contexts, &n));
    assert_int_equal(n, 2);
    for (size_t i = 0; i < 2; i++) {
        const char *selector = clg_context_device(contexts[i])->selector;
        assert_int_equal(clg_context_device(contexts[i])->compute_units, 1);
        assert_string_equal(strrchr(selector, '/'), i ? "/1" : "/0");
    }
    clg_session *s = open_multi(contexts, 2), *single = multi_single(contexts[1]);
    for (int64_t rows = 2; rows < 20; rows += 5) {
        multi_set(s, 0, rows);
        assert_ok(clg_session_run(s));
        expect_right(s, single, rows);
    }
    clg_session_free(s);
    clg_session_free(single);
    clg_context_list_free(contexts, n);
}
