/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests concurrent use from several threads: sessions of one model created concurrently must share
 * their resources; clones run with changing shapes; contexts are created and freed; and objects
 * freed by one thread may still be in use by another.
 */
#include "support/fixtures/ocl_platforms.h"
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/pocl_context.h"
#include "support/fixtures/session_life/session_life.h"
#include "support/literals.h"

#include "ocl/ocl.h"

#include <clgraph/inspect.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_THREADS = 4 };

/* The arguments of a thread, and its result. */
typedef struct work {
    clg_model *model;
    clg_session *session;
    const session_life *life;
    int index;
    clg_status status;
    char text[512];
} work;

static void run_threads(void *(*body)(void *), work *w, int n)
{
    pthread_t threads[MAX_THREADS];
    for (int i = 0; i < n; i++) {
        w[i].index = i;
        assert_int_equal(pthread_create(&threads[i], NULL, body, &w[i]), 0);
    }
    for (int i = 0; i < n; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < n; i++)
        if (w[i].status != CLG_OK)
            fail_msg("thread %d: %s: %s", i, clg_status_name(w[i].status), w[i].text);
}

static void say(work *w, clg_status status)
{
    w->status = status;
    strncpy(w->text, clg_last_error(), sizeof w->text - 1);
}

/* ---- making sessions ------------------------------------------------------------------------- */

/* Creates y = x W + b, where W and b are computed from constants when the session is created. */
static clg_model *matmul_model(void)
{
    enum { K = 40, N = 30 };
    static float w[K * N], b[N];
    clg_builder *g;
    clg_model *m;
    for (int i = 0; i < K * N; i++) w[i] = (float)(i % 7 - 3);
    for (int i = 0; i < N; i++) b[i] = (float)i;
    assert_ok(clg_builder_create(13, &g));
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, K), NULL));
    assert_ok(sized_constant(g, "w", CLG_FLOAT32, 2, DIMS(K, N), w));
    assert_ok(sized_constant(g, "b", CLG_FLOAT32, 1, DIMS(N), b));
    assert_ok(clg_builder_node(g, NULL, "Neg", "minus", 1, NAMES("w"), 1, NAMES("mw")));
    assert_ok(clg_builder_node(g, NULL, "MatMul", "product", 2, NAMES("x", "mw"), 1, NAMES("p")));
    assert_ok(clg_builder_node(g, NULL, "Add", "sum", 2, NAMES("p", "b"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_build(g, &m));
    clg_builder_free(g);
    return m;
}

static clg_status run_matmul(clg_session *s, int rows, int seed)
{
    enum { K = 40, N = 30 };
    float x[20 * K], y[20 * N];
    for (int i = 0; i < rows * K; i++) x[i] = (float)((i + seed) % 5 - 2);
    CLG_TRY(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(rows, K), x));
    CLG_TRY(clg_session_run(s));
    CLG_TRY(clg_session_get_output_data(s, "y", y, (size_t)(rows * N) * sizeof *y));
    for (int i = 0; i < rows * N; i++) {
        float want = (float)(i % N);
        for (int k = 0; k < K; k++) want -= x[i / N * K + k] * (float)((k * N + i % N) % 7 - 3);
        if (y[i] != want)
            return error_set(CLG_ERROR_INTERNAL, "number %d is %g in place of %g", i, (double)y[i],
                             (double)want);
    }
    return CLG_OK;
}

static void *make_and_run(void *argument)
{
    work *w = argument;
    clg_session *s;
    clg_status status = clg_session_create(context, w->model, NULL, &s);
    for (int i = 0; i < 8 && status == CLG_OK; i++)
        status = run_matmul(s, 1 + (i + w->index) % 4, i);
    clg_session_free(s);
    say(w, status);
    return NULL;
}

TEST(threads__sessions_of_one_model_share_an_exec)
{
    for (int round = 0; round < 4; round++) {
        work w[MAX_THREADS] = {{0}};
        clg_counters before = CLG_COUNTERS_INIT, after = CLG_COUNTERS_INIT;
        clg_model *m = matmul_model();
        /* In odd rounds a session that keeps the exec alive, so that the threads create no new one;
         * in even rounds NULL: the exec may be freed and created again between sessions. */
        clg_session *keeper = NULL;
        if (round % 2) assert_ok(clg_session_create(context, m, NULL, &keeper));
        if (round % 2) assert_ok(run_matmul(keeper, 1, 1));
        assert_ok(clg_context_counters(context, &before));
        for (int i = 0; i < MAX_THREADS; i++) w[i].model = m;
        run_threads(make_and_run, w, MAX_THREADS);
        assert_ok(clg_context_counters(context, &after));
        if (keeper) assert_int_equal(after.weights_packed, before.weights_packed);
        if (keeper) assert_true(after.plans_made - before.plans_made <= 3);
        clg_session_free(keeper);
        clg_model_free(m);
    }
}

TEST(threads__two_at_once_build_once)
{
    work w[2] = {{0}};
    clg_counters before = CLG_COUNTERS_INIT, after = CLG_COUNTERS_INIT;
    clg_model *m = matmul_model();
    clg_session *a, *b;
    assert_ok(clg_context_counters(context, &before));
    assert_ok(clg_session_create(context, m, NULL, &a));
    assert_ok(run_matmul(a, 2, 0));
    assert_ok(clg_context_counters(context, &after));
    uint64_t for_one = after.device_bytes - before.device_bytes;
    w[0].model = w[1].model = m;
    run_threads(make_and_run, w, 2);
    assert_ok(clg_session_create(context, m, NULL, &b));
    assert_ok(run_matmul(b, 2, 0));
    assert_ok(clg_context_counters(context, &after));
    /* the second session has separate inputs and outputs, and shares the weights */
    assert_true(after.device_bytes - before.device_bytes < 2 * for_one);
    clg_session_free(a);
    clg_session_free(b);
    clg_model_free(m);
    assert_ok(clg_context_counters(context, &after));
    assert_int_equal(after.device_bytes, before.device_bytes);
}

static atomic_int n_arrived, n_cancelled;

/* A progress callback that cancels once, while other threads wait for the result. */
static bool refuse_once(void *user, const char *what, size_t done, size_t total)
{
    const struct timespec pause = {0, 50000000};
    (void)what;
    (void)done;
    (void)total;
    if (atomic_fetch_add((atomic_int *)user, 1) != 0) return true;
    while (atomic_load(&n_arrived) < MAX_THREADS) sched_yield();
    (void)nanosleep(&pause, NULL);
    return false;
}

static void *make_with_progress(void *argument)
{
    static atomic_int calls;
    work *w = argument;
    clg_session *s;
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    options.progress = refuse_once;
    options.progress_user = &calls;
    atomic_fetch_add(&n_arrived, 1);
    clg_status status = clg_session_create(context, w->model, &options, &s);
    if (status == CLG_OK) status = run_matmul(s, 3, 0);
    clg_session_free(s);
    if (status == CLG_ERROR_CANCELLED) atomic_fetch_add(&n_cancelled, 1);
    say(w, status == CLG_ERROR_CANCELLED ? CLG_OK : status);
    return NULL;
}

TEST(threads__one_that_cancels_does_not_harm_the_other)
{
    work w[MAX_THREADS] = {{0}};
    clg_model *m = matmul_model();
    for (int i = 0; i < MAX_THREADS; i++) w[i].model = m;
    run_threads(make_with_progress, w, MAX_THREADS);
    assert_int_equal(atomic_load(&n_cancelled), 1);
    clg_model_free(m);
}

/* ---- running --------------------------------------------------------------------------------- */

static void *run_shapes(void *argument)
{
    work *w = argument;
    clg_status status = CLG_OK;
    for (int i = 0; i < 60 && status == CLG_OK; i++)
        status = run_matmul(w->session, 1 + (i * 7 + w->index) % 20, i);
    say(w, status);
    return NULL;
}

TEST(threads__clones_change_shapes_side_by_side)
{
    work w[MAX_THREADS] = {{0}};
    clg_counters before = CLG_COUNTERS_INIT, after = CLG_COUNTERS_INIT;
    clg_model *m = matmul_model();
    assert_ok(clg_session_create(context, m, NULL, &w[0].session));
    clg_model_free(m);
    for (int i = 1; i < MAX_THREADS; i++) assert_ok(clg_session_clone(w[0].session, &w[i].session));
    assert_ok(clg_context_counters(context, &before));
    run_threads(run_shapes, w, MAX_THREADS);
    assert_ok(clg_context_counters(context, &after));
    assert_true(after.plans_made - before.plans_made <= 20);
    for (int i = 0; i < MAX_THREADS; i++) clg_session_free(w[i].session);
}

static void *live_a_life(void *argument)
{
    work *w = argument;
    clg_status status = CLG_OK;
    for (int i = 0; i < 5 && status == CLG_OK; i++) status = w->life->use(context, w->session);
    say(w, status);
    return NULL;
}

TEST(threads__clones_of_every_kind)
{
    ocl_spin_use(OCL_SPIN_ALWAYS);
    for (size_t k = 0; k < n_session_lives; k++) {
        work w[MAX_THREADS] = {{0}};
        assert_ok(session_life_open(&session_lives[k], context, &w[0].session));
        for (int i = 1; i < MAX_THREADS; i++)
            assert_ok(clg_session_clone(w[0].session, &w[i].session));
        for (int i = 0; i < MAX_THREADS; i++) w[i].life = &session_lives[k];
        run_threads(live_a_life, w, MAX_THREADS);
        for (int i = 0; i < MAX_THREADS; i++) clg_session_free(w[i].session);
    }
    ocl_spin_use(OCL_SPIN_NEVER);
}

static atomic_bool stop_cancelling;

static void *cancel_always(void *argument)
{
    while (!atomic_load(&stop_cancelling)) clg_session_cancel(argument);
    return NULL;
}

static bool cancel_here(void *user, const char *what, size_t done, size_t total)
{
    (void)what;
    (void)done;
    (void)total;
    clg_session_cancel(user);
    return true;
}

TEST(threads__cancelling_from_outside)
{
    clg_model *m = matmul_model();
    clg_session *s;
    pthread_t other;
    assert_ok(clg_session_create(context, m, NULL, &s));
    clg_model_free(m);
    assert_ok(run_matmul(s, 4, 0));
    assert_error(clg_session_prepare(s, cancel_here, s), CLG_ERROR_CANCELLED, "cancelled");
    assert_int_equal(pthread_create(&other, NULL, cancel_always, s), 0);
    for (int i = 0; i < 200; i++) {
        clg_status status = clg_session_run(s);
        if (status != CLG_ERROR_CANCELLED) assert_ok(status);
        status = clg_session_prepare(s, NULL, NULL);
        if (status != CLG_ERROR_CANCELLED) assert_ok(status);
    }
    atomic_store(&stop_cancelling, true);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_ok(run_matmul(s, 4, 0));
    clg_session_free(s);
}

/* ---- contexts -------------------------------------------------------------------------------- */

static void *make_contexts(void *argument)
{
    work *w = argument;
    clg_status status = CLG_OK;
    for (int i = 0; i < 6 && status == CLG_OK; i++) {
        clg_context *own;
        clg_session *s = NULL;
        clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
        options.profiling = i % 2;
        status = clg_context_create(ocl_platforms_test_device(), &options, &own);
        if (status == CLG_OK) status = clg_session_create(own, w->model, NULL, &s);
        clg_context_free(own); /* the session keeps it */
        if (status == CLG_OK) status = run_matmul(s, 2 + i % 3, w->index);
        clg_session_free(s);
    }
    say(w, status);
    return NULL;
}

TEST(threads__contexts_come_and_go)
{
    work w[MAX_THREADS] = {{0}};
    clg_model *m = matmul_model();
    for (int i = 0; i < MAX_THREADS; i++) w[i].model = m;
    run_threads(make_contexts, w, MAX_THREADS);
    clg_model_free(m);
}

/* A value of one context is the input of a session in another. */
TEST(threads__values_travel_between_contexts)
{
    clg_context *other;
    clg_model *m = matmul_model();
    clg_session *s;
    clg_value *v;
    float x[40], y[30];
    for (int i = 0; i < 40; i++) x[i] = 1;
    assert_ok(clg_context_create(ocl_platforms_test_device(), NULL, &other));
    assert_ok(clg_value_create_device(other, CLG_FLOAT32, 2, DIMS(1, 40), &v));
    clg_context_free(other);
    assert_ok(clg_value_write(v, x, sizeof x));
    assert_ok(clg_session_create(context, m, NULL, &s));
    clg_model_free(m);
    assert_ok(clg_session_set_input(s, "x", v));
    clg_value_free(v);
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
    float want = 0;
    for (int k = 0; k < 40; k++) want -= (float)((k * 30) % 7 - 3);
    assert_true(y[0] == want);
    clg_session_free(s);
}

TEST_GROUP(open_context, close_context)
