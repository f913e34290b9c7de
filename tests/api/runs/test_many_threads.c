/* SPDX-License-Identifier: Apache-2.0
 *
 * 16 threads use the same models, contexts, sessions, values and tokens at once, in every way that
 * the rules of clgraph.h allow, and free them in any order: results must be the bits that a single
 * thread gets, and all memory must be freed. In a build with -DCLG_SANITIZE=thread, ThreadSanitizer
 * looks for races at the same time (tests/tsan.sh).
 *
 * CLG_TEST_ROUNDS (20): what each thread does, in a random order from CLG_TEST_SEED.
 * CLG_TEST_PLANT=race breaks the rules: a value is written while other threads read it.
 */
/* ctest: label slow timeout 900 */
#include "support/unit.h"

#include "support/fakes/counting_alloc.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/fixtures/random_graph.h"
#include "support/fixtures/soak_models.h"

#include "ocl/ocl.h"

#include <clgraph/cancel.h>
#include <clgraph/inspect.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N_THREADS = 16, N_MODELS = SOAK_MODELS, N_SETS = 6, N_CONTEXTS = 2, N_SHARED = 4 };

static soak_model subjects[N_MODELS]; /* with the digests of a single thread; constant */
static clg_model *models[N_MODELS];
static clg_context *contexts[N_CONTEXTS];
static clg_cancel *token; /* triggered now and then */
static bool is_planted;

/* Sessions that all threads use. They have set 0 of their model as inputs. */
static clg_session *shared[N_SHARED];

/* Objects that one thread leaves for another one to free. */
static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    clg_session *session;
    clg_model *model;
    clg_context *context;
} left;

typedef struct worker {
    pthread_t thread;
    uint64_t random;
    size_t n_done, n_busy, n_cancelled;
    clg_status status;
    char text[512];
} worker;

static size_t below(worker *w, size_t n) { return (size_t)random_next(&w->random) % n; }

/* ---- what a thread does ---------------------------------------------------------------------- */

static clg_status check_digest(size_t m, size_t set, uint64_t digest)
{
    if (digest == subjects[m].digests[set]) return CLG_OK;
    return error_set(CLG_ERROR_INTERNAL, "'%s' gave other results than a single thread for set %zu",
                     subjects[m].name, set);
}

static clg_status run_set(size_t m, size_t set, clg_session *session)
{
    uint64_t digest;
    CLG_TRY(soak_model_run(&subjects[m], set, session, &digest));
    return check_digest(m, set, digest);
}

static clg_status run_some(worker *w, size_t m, clg_session *session)
{
    for (size_t i = 0; i < 3; i++) CLG_TRY(run_set(m, below(w, N_SETS), session));
    return CLG_OK;
}

static clg_status create(clg_context *context, clg_model *model, clg_cancel *cancel,
                         clg_session **out_session)
{
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    options.cancel = cancel;
    return clg_session_create(context, model, &options, out_session);
}

static clg_status use_session_with(worker *w, clg_cancel *cancel)
{
    const size_t m = below(w, N_MODELS);
    clg_session *s;
    clg_status status = create(contexts[below(w, N_CONTEXTS)], models[m], cancel, &s);
    if (status == CLG_OK) status = run_some(w, m, s);
    clg_session_free(s);
    return status;
}

static clg_status use_new_session(worker *w) { return use_session_with(w, NULL); }

static clg_status use_cancellable_session(worker *w) { return use_session_with(w, token); }

/* A session that others run and cancel is cloned; its clones are not cancelled with it. */
static clg_status use_clone(worker *w)
{
    const size_t m = below(w, N_SHARED);
    clg_session *s;
    clg_status status = clg_session_clone(shared[m], &s);
    if (status == CLG_OK) status = run_some(w, m, s);
    clg_session_free(s);
    return status;
}

/* Several threads run the session: the others get BUSY, and outputs are those of any run. */
static clg_status run_shared(worker *w)
{
    const size_t m = below(w, N_SHARED);
    clg_value *y;
    CLG_TRY(clg_session_run(shared[m]));
    for (size_t i = 0; i < subjects[m].n_outputs; i++) {
        const clg_status status = clg_session_get_output(shared[m], subjects[m].outputs[i], &y);
        if (status == CLG_ERROR_NOT_FOUND) return CLG_OK; /* a later run was cancelled, or failed */
        if (status != CLG_OK) return status;
        clg_value_free(y);
    }
    return CLG_OK;
}

static clg_status cancel_shared(worker *w)
{
    clg_session_cancel(shared[below(w, N_SHARED)]);
    clg_cancel_trigger(token);
    clg_cancel_reset(token);
    return CLG_OK;
}

/* Frees a session while its run, started in another thread, is in flight. */
static clg_status free_in_flight(worker *w)
{
    const size_t m = below(w, N_MODELS), set = below(w, N_SETS);
    clg_session *s;
    clg_status status = create(contexts[below(w, N_CONTEXTS)], models[m], NULL, &s);
    for (size_t i = 0; i < subjects[m].n_inputs && status == CLG_OK; i++)
        status = clg_session_set_input(s, subjects[m].inputs[i], subjects[m].values[set][i]);
    if (status == CLG_OK) status = clg_session_run_async(s);
    if (status == CLG_OK && below(w, 2)) {
        status = clg_session_wait(s);
        if (status == CLG_OK) status = run_set(m, set, s);
    }
    clg_session_free(s);
    return status;
}

/* Opens a context, a model and a session, frees them in the wrong order and has another thread free
 * the rest. */
static clg_status leave_objects(worker *w)
{
    clg_context *context, *old_context;
    clg_model *model = NULL, *old_model;
    clg_session *s = NULL, *old_session;
    clg_status status = clg_context_create(ocl_platforms_test_device(), NULL, &context);
    if (status == CLG_OK) status = soak_model_load(&subjects[0], &model);
    if (status == CLG_OK) status = create(context, model, NULL, &s);
    if (below(w, 2)) {
        clg_context_free(context);
        context = NULL;
    }
    if (status == CLG_OK) status = run_some(w, 0, s);
    (void)pthread_mutex_lock(&left_lock);
    old_session = left.session, old_model = left.model, old_context = left.context;
    left.session = s, left.model = model, left.context = context;
    (void)pthread_mutex_unlock(&left_lock);
    clg_model_free(old_model);
    clg_context_free(old_context);
    if (old_session && status == CLG_OK) status = run_some(w, 0, old_session);
    clg_session_free(old_session);
    return status;
}

/* References to a value come from several threads. */
static clg_status share_values(worker *w)
{
    const size_t m = below(w, N_MODELS), set = below(w, N_SETS);
    clg_value *v = clg_value_retain(subjects[m].values[set][0]);
    unsigned char first;
    if (clg_value_size_bytes(v) > 0) memcpy(&first, clg_value_data(v), 1);
    clg_value_free(v);
    return use_new_session(w);
}

static clg_status ask(worker *w)
{
    clg_counters counters = CLG_COUNTERS_INIT;
    clg_memory_estimate memory = CLG_MEMORY_ESTIMATE_INIT;
    clg_context *context = contexts[below(w, N_CONTEXTS)];
    char *choices;
    CLG_TRY(clg_context_recover(context)); /* the device answers: nothing happens */
    CLG_TRY(clg_context_counters(context, &counters));
    CLG_TRY(clg_context_choices(context, &choices));
    clg_text_free(choices);
    return clg_session_memory(shared[below(w, N_SHARED)], &memory);
}

static void count_messages(void *user, clg_log_level level, const char *message)
{
    (void)level;
    atomic_fetch_add((atomic_size_t *)user, strlen(message));
}

static clg_status set_log(worker *w)
{
    static atomic_size_t n_bytes;
    clg_set_log(below(w, 3) ? count_messages : NULL, &n_bytes, CLG_LOG_DEBUG);
    return CLG_OK;
}

static clg_status (*const acts[])(worker *) = {
    use_new_session, use_cancellable_session, use_clone,    run_shared, run_shared, cancel_shared,
    free_in_flight,  leave_objects,           share_values, ask,        set_log};
enum { N_ACTS = sizeof acts / sizeof *acts };

static size_t n_rounds;

/* Writes a value that all threads have, which the rules of clg_value_data forbid. Nothing orders
 * the threads yet. */
static clg_status plant_race(void)
{
    float x[8 * 8];
    clg_value *v = subjects[0].values[0][0];
    CLG_TRY(clg_value_read(v, x, sizeof x));
    return clg_value_write(v, x, sizeof x);
}

static void *work(void *argument)
{
    worker *w = argument;
    if (is_planted) w->status = plant_race();
    for (size_t i = 0; i < n_rounds && w->status == CLG_OK; i++) {
        const clg_status status = acts[below(w, N_ACTS)](w);
        w->n_done += status == CLG_OK;
        w->n_busy += status == CLG_ERROR_BUSY;
        w->n_cancelled += status == CLG_ERROR_CANCELLED;
        if (status != CLG_ERROR_BUSY && status != CLG_ERROR_CANCELLED) w->status = status;
    }
    if (w->status != CLG_OK) (void)snprintf(w->text, sizeof w->text, "%s", clg_last_error());
    return NULL;
}

/* ---- the test -------------------------------------------------------------------------------- */

/* Creates the models and computes the digests. */
static void open_subjects(void)
{
    for (size_t m = 0; m < N_MODELS; m++) {
        clg_session *s;
        assert_ok(soak_model_own(m, &subjects[m]));
        assert_ok(soak_model_load(&subjects[m], &models[m]));
        assert_ok(create(contexts[0], models[m], NULL, &s));
        for (size_t set = 0; set < N_SETS; set++)
            assert_ok(soak_model_run(&subjects[m], set, s, &subjects[m].digests[set]));
        clg_session_free(s);
    }
}

static void open_shared(void)
{
    for (size_t m = 0; m < N_SHARED; m++) {
        assert_ok(create(contexts[m % N_CONTEXTS], models[m], NULL, &shared[m]));
        for (size_t i = 0; i < subjects[m].n_inputs; i++)
            assert_ok(
                clg_session_set_input(shared[m], subjects[m].inputs[i], subjects[m].values[0][i]));
    }
}

static void close_all(void)
{
    clg_set_log(NULL, NULL, CLG_LOG_ERROR);
    for (size_t m = 0; m < N_SHARED; m++) clg_session_free(shared[m]);
    clg_session_free(left.session);
    clg_model_free(left.model);
    clg_context_free(left.context);
    for (size_t m = 0; m < N_MODELS; m++) clg_model_free(models[m]);
    for (size_t m = 0; m < N_MODELS; m++) soak_model_close(&subjects[m]);
    clg_cancel_free(token);
    for (size_t i = 0; i < N_CONTEXTS; i++) clg_context_free(contexts[i]);
}

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text && text[0] ? strtoull(text, NULL, 10) : otherwise;
}

TEST(many_threads__everything_at_once)
{
    static worker workers[N_THREADS];
    const uint64_t seed = number_of("CLG_TEST_SEED", (uint64_t)time(NULL) % 1000000);
    size_t n_done = 0, n_busy = 0, n_cancelled = 0;
    ocl_spin_use(OCL_SPIN_ALWAYS);
    n_rounds = (size_t)number_of("CLG_TEST_ROUNDS", 20);
    is_planted = getenv("CLG_TEST_PLANT") != NULL;
    print_message("CLG_TEST_SEED=%llu\n", (unsigned long long)seed);
    assert_ok(counting_alloc_install());
    for (size_t i = 0; i < N_CONTEXTS; i++)
        assert_ok(clg_context_create(ocl_platforms_test_device(), NULL, &contexts[i]));
    assert_ok(clg_cancel_create(&token));
    open_subjects();
    open_shared();
    for (size_t i = 0; i < N_THREADS; i++) {
        workers[i].random = seed * N_THREADS + i;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        n_done += workers[i].n_done;
        n_busy += workers[i].n_busy;
        n_cancelled += workers[i].n_cancelled;
    }
    print_message("%zu done, %zu busy, %zu cancelled\n", n_done, n_busy, n_cancelled);
    for (size_t i = 0; i < N_THREADS; i++)
        if (workers[i].status != CLG_OK)
            fail_msg("thread %zu: %s: %s", i, clg_status_name(workers[i].status), workers[i].text);
    for (size_t m = 0; m < N_SHARED; m++) assert_ok(run_set(m, 1, shared[m]));
    close_all();
    assert_int_equal(counting_alloc_live_bytes(), 0);
    assert_ok(counting_alloc_remove());
}

int main(void)
{
    ocl_platforms_show_pocl();
    return test_run_all();
}
