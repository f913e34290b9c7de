/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests tokens (clg_cancel): a token that is triggered at any of its checks ends loading, the
 * creation of a session, preparations and runs with CANCELLED; afterwards the same work succeeds,
 * and runs give the same bits. The token triggers itself at the N-th check, so that nothing depends
 * on time; that there are as many checks as nodes or steps shows that none takes long to be heard.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/large_models.h"
#include "support/fixtures/pocl_context.h"

#include "base/cancel.h"
#include "session/session.h"

#include <clgraph/inspect.h>

#include <string.h>

TEST_GROUP(open_context, close_context)

enum { N_NODES = 40, NEVER = 1 << 30 };

static const float x_floats[2] = {0.5F, -2.0F};
static const int64_t x_int = 3; /* of the kinds with a scalar */

/* ---- phases ---------------------------------------------------------------------------------- */

/* The work that is cancelled: each phase frees what it makes. */
typedef struct work {
    const large_model *kind;
    clg_model *model;
    clg_session *session;
    clg_cancel *token;
} work;

static clg_status load(work *w)
{
    clg_model_options options = CLG_MODEL_OPTIONS_INIT;
    clg_model *model;
    options.cancel = w->token;
    const clg_status status = large_model_load(w->kind, N_NODES, &options, &model);
    clg_model_free(model);
    return status;
}

static clg_status create(work *w)
{
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    clg_session *session;
    options.cancel = w->token;
    const clg_status status = clg_session_create(context, w->model, &options, &session);
    clg_session_free(session);
    return status;
}

/* Plans without kernels and plans: exec_forget_plans makes each call plan again. */
static clg_status plan_it(work *w)
{
    clg_memory_estimate memory = CLG_MEMORY_ESTIMATE_INIT;
    exec_forget_plans(w->session->exec);
    return clg_session_memory(w->session, &memory);
}

static clg_status prepare(work *w)
{
    exec_forget_plans(w->session->exec);
    return clg_session_prepare(w->session, NULL, NULL);
}

static clg_status run(work *w) { return clg_session_run(w->session); }

static clg_status run_async(work *w)
{
    clg_status status = clg_session_run_async(w->session);
    return status == CLG_OK ? clg_session_wait(w->session) : status;
}

/* Runs by clg_session_call, which must return nothing when it is cancelled. */
static clg_status call(work *w)
{
    const int64_t dims[] = {2};
    float y[2];
    const clg_call_input in = {"x", CLG_FLOAT32, 1, dims, x_floats, sizeof x_floats, NULL};
    clg_call_output out = {.name = "y", .data = y, .capacity_bytes = sizeof y};
    const clg_status status = clg_session_call(w->session, &in, 1, &out, 1);
    assert_null(out.value);
    assert_int_equal(out.size_bytes, status == CLG_OK ? sizeof y : 0);
    assert_int_equal(out.rank, status == CLG_OK ? 1 : 0);
    return status;
}

/* Runs a phase with a token that triggers itself at a check; returns the number of checks. */
static size_t count_checks(clg_status (*phase)(work *w), work *w, size_t at, clg_status *out_status)
{
    clg_cancel_reset(w->token);
    atomic_store(&w->token->checks_left, at);
    *out_status = phase(w);
    return at - atomic_load(&w->token->checks_left);
}

/* Cancels a phase at each of its first checks, and at ever later ones up to the last, which then is
 * made once more without; returns the number of checks. */
static size_t cancel_everywhere(const char *name, clg_status (*phase)(work *w), work *w)
{
    clg_status status;
    (void)count_checks(phase, w, NEVER, &status); /* compiles and tests kernels: more checks */
    const size_t n = count_checks(phase, w, NEVER, &status);
    if (status != CLG_OK) print_message("%s of %s: %s\n", name, w->kind->name, clg_last_error());
    assert_int_equal(status, CLG_OK);
    for (size_t at = 1; at <= n; at += at < 8 ? 1 : at / 2) {
        (void)count_checks(phase, w, at, &status);
        if (status != CLG_ERROR_CANCELLED)
            print_message("%s of %s, cancelled at check %zu of %zu: %s\n", name, w->kind->name, at,
                          n, clg_last_error());
        assert_int_equal(status, CLG_ERROR_CANCELLED);
        assert_non_null(strstr(clg_last_error(), "cancelled"));
        assert_true(clg_cancel_is_triggered(w->token));
    }
    (void)count_checks(phase, w, NEVER, &status);
    assert_int_equal(status, CLG_OK);
    return n;
}

static void open_work(const char *kind, work *out_work)
{
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    const int64_t dims[] = {2};
    *out_work = (work){.kind = large_model_find(kind)};
    assert_non_null(out_work->kind);
    assert_ok(clg_cancel_create(&out_work->token));
    assert_ok(large_model_load(out_work->kind, N_NODES, NULL, &out_work->model));
    options.cancel = out_work->token;
    assert_ok(clg_session_create(context, out_work->model, &options, &out_work->session));
    assert_ok(sized_input(out_work->session, "x", out_work->kind->dtype, out_work->kind->rank, dims,
                          out_work->kind->rank > 0 ? (const void *)x_floats : &x_int));
}

static void close_work(work *w)
{
    clg_session_free(w->session);
    clg_model_free(w->model);
    clg_cancel_free(w->token);
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(cancel__loading_ends_at_any_node)
{
    work w;
    open_work("layers", &w);
    assert_true(cancel_everywhere("loading", load, &w) > (size_t)2 * N_NODES);
    close_work(&w);
}

TEST(cancel__creating_a_session_ends_at_any_node)
{
    static const char *const kinds[] = {"chain", "pointwise", "constants"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        work w;
        open_work(kinds[i], &w);
        clg_session_free(w.session); /* else the new one shares what it has made */
        w.session = NULL;
        assert_true(cancel_everywhere("creating", create, &w) > (size_t)4 * N_NODES);
        close_work(&w);
    }
}

TEST(cancel__planning_ends_at_any_step)
{
    static const char *const kinds[] = {"layers", "live", "loop", "nested"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        work w;
        open_work(kinds[i], &w);
        /* each step is planned, placed, written and ordered */
        assert_true(cancel_everywhere("planning", plan_it, &w) > (size_t)4 * N_NODES);
        close_work(&w);
    }
}

TEST(cancel__preparing_ends_at_any_step)
{
    work w;
    open_work("layers", &w);
    assert_true(cancel_everywhere("preparing", prepare, &w) > (size_t)6 * N_NODES);
    close_work(&w);
}

/* A part of a phase that goes through all nodes or steps: what its messages say, and how many
 * checks it makes for each. */
typedef struct cancelled_part {
    const char *phase;
    clg_status (*work)(work *w);
    bool is_first; /* no session is there before */
    const char *message;
    size_t n_each;
} cancelled_part;

static const cancelled_part parts[] = {
    {"loading", load, false, "loading the model was cancelled", 3}, /* read, checked twice */
    {"loading", load, false, "sorting the graph was cancelled", 1},
    {"loading", load, false, "checking the graph was cancelled", 1},
    {"loading", load, false, "inferring shapes was cancelled", 1},
    {"creating", create, true, "copying the graph was cancelled", 2}, /* values and nodes */
    {"creating", create, true, "graph pass 'common': optimising the graph was cancelled", 1},
    {"creating", create, true, "graph pass 'pointwise': optimising the graph was cancelled", 1},
    {"planning", plan_it, false, "planning was cancelled", 4},
    {"preparing", prepare, false, "compiling kernels was cancelled", 2},
    {"preparing", prepare, false, "the run was cancelled", 6}};

/* The number of checks of a whole phase does not show that each of its parts makes them. */
TEST(cancel__each_part_of_a_phase_checks_at_each_node)
{
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const cancelled_part *p = &parts[i];
        work w;
        clg_status status;
        size_t n_checks = 0;
        open_work("layers", &w);
        if (p->is_first) clg_session_free(w.session);
        if (p->is_first) w.session = NULL;
        (void)count_checks(p->work, &w, NEVER, &status);
        const size_t n = count_checks(p->work, &w, NEVER, &status);
        for (size_t at = 1; at <= n; at++) {
            (void)count_checks(p->work, &w, at, &status);
            assert_int_equal(status, CLG_ERROR_CANCELLED);
            n_checks += strstr(clg_last_error(), p->message) != NULL;
        }
        if (n_checks < p->n_each * N_NODES)
            fail_msg("%s: '%s' for %zu of %zu checks of %d nodes", p->phase, p->message, n_checks,
                     n, N_NODES);
        close_work(&w);
    }
}

static void run_with(work *w, const float *x, float y[2])
{
    assert_ok(sized_input(w->session, "x", CLG_FLOAT32, 1, (int64_t[]){2}, x));
    assert_ok(clg_session_run(w->session));
    assert_ok(clg_session_get_output_data(w->session, "y", y, 2 * sizeof *y));
}

/* What is cancelled has other inputs, so that nothing of it may be left in the next result. */
TEST(cancel__a_run_ends_before_any_launch_and_the_next_one_is_right)
{
    static clg_status (*const phases[])(work * w) = {run, run_async, call, plan_it};
    static const char *const kinds[] = {"live", "equal", "constants"};
    static const float others[2] = {7.0F, 0.25F};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        work w;
        float before[2], after[2];
        open_work(kinds[i], &w);
        for (size_t k = 0; k < sizeof phases / sizeof *phases; k++) {
            run_with(&w, x_floats, before);
            run_with(&w, others, after);
            assert_memory_not_equal(before, after, sizeof before);
            const size_t n = cancel_everywhere("running", phases[k], &w);
            if (i == 0) assert_true(n >= N_NODES);
            run_with(&w, x_floats, after);
            assert_memory_equal(before, after, sizeof before);
        }
        close_work(&w);
    }
}

TEST(cancel__a_clone_obeys_the_token_of_its_origin)
{
    work w;
    clg_session *clone;
    const int64_t dims[] = {2};
    open_work("layers", &w);
    assert_ok(clg_session_clone(w.session, &clone));
    assert_ok(sized_input(clone, "x", CLG_FLOAT32, 1, dims, x_floats));
    clg_session_free(w.session);
    w.session = NULL;
    clg_cancel_trigger(w.token);
    assert_int_equal(clg_session_run(clone), CLG_ERROR_CANCELLED);
    clg_cancel_reset(w.token);
    clg_cancel_free(w.token); /* the clone keeps it alive */
    w.token = NULL;
    assert_ok(clg_session_run(clone));
    clg_session_free(clone);
    close_work(&w);
}

/* Checks that runs with a token queue at most 100 ms of estimated work, where each launch counts 20
 * us or more: with a device that is believed to be slow, they wait between steps, which a test of
 * the queue's flag shows. */
TEST(cancel__a_run_with_a_token_limits_the_work_in_the_queue)
{
    work w;
    open_work("layers", &w);
    w.session->frame->limit.budget.rates = (device_rates){1e30, 1e30, 1};
    assert_ok(clg_session_run(w.session));
    assert_true(w.session->frame->queued_ns >= N_NODES * 2e4);
    assert_true(w.session->frame->queued_ns < N_NODES * 4e4);
    w.session->frame->limit.budget.rates = (device_rates){1e-7, 1e-7, 1}; /* 10 ms a byte */
    assert_ok(clg_session_run(w.session));
    /* of N_NODES steps only the last one or some are left in the queue */
    assert_true(w.session->frame->longest_node != NODE_NONE);
    assert_true(w.session->frame->queued_ns <=
                (w.session->frame->longest_ns > 1e8 ? w.session->frame->longest_ns : 1e8));
    close_work(&w);
}

/* The inputs of one node: shapes are inferred, the node is planned, its steps are emitted. */
TEST(cancel__a_node_of_many_inputs_is_checked_within)
{
    enum { N = 3 * 4096 };
    clg_model *model;
    clg_session *session;
    clg_cancel *token;
    clg_status status = CLG_OK;
    clg_memory_estimate memory = CLG_MEMORY_ESTIMATE_INIT;
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    assert_ok(clg_cancel_create(&token));
    options.cancel = token;
    assert_ok(large_model_load(large_model_find("wide"), N, NULL, &model));
    assert_ok(clg_session_create(context, model, &options, &session));
    assert_ok(sized_input(session, "x", CLG_FLOAT32, 1, (int64_t[]){2}, x_floats));
    assert_ok(clg_session_memory(session, &memory));
    exec_forget_plans(session->exec);
    atomic_store(&token->checks_left, NEVER);
    assert_ok(clg_session_memory(session, &memory));
    const size_t n = NEVER - atomic_load(&token->checks_left);
    print_message("%zu checks for %d inputs\n", n, N);
    assert_true(n > (size_t)8 * (N / 16)); /* a step has 16 inputs at most */
    for (size_t at = 1; at <= 6; at++) {
        exec_forget_plans(session->exec);
        clg_cancel_reset(token);
        atomic_store(&token->checks_left, at);
        status = clg_session_memory(session, &memory);
        assert_int_equal(status, CLG_ERROR_CANCELLED);
    }
    clg_session_free(session);
    clg_model_free(model);
    clg_cancel_free(token);
}

TEST(cancel__steps_of_a_loop_check_now_and_then)
{
    cancel_scope scope;
    clg_cancel token;
    cancel_init(&token);
    cancel_trigger(&token);
    cancel_enter(&scope, &token);
    for (size_t i = 0; i < 4095; i++) assert_ok(cancel_check_step(i, "the loop"));
    assert_error(cancel_check_step(4095, "the loop"), CLG_ERROR_CANCELLED, "the loop was");
    cancel_leave(&scope);
}

TEST(cancel__null_tokens_do_nothing)
{
    clg_cancel_trigger(NULL);
    clg_cancel_reset(NULL);
    clg_cancel_free(NULL);
    assert_false(clg_cancel_is_triggered(NULL));
    assert_int_equal(clg_cancel_create(NULL), CLG_ERROR_INVALID_ARGUMENT);
}
