/* SPDX-License-Identifier: Apache-2.0
 *
 * Uses one context for a long time: random models and shapes, sessions that come and go, clones,
 * failing allocations, failing OpenCL calls, tokens and calls that cancel, limits; in the second
 * half of the rounds, lost devices. After each failure the same work must give the same bits as
 * ever. Now and then all sessions are freed, each model runs once, and the process is measured:
 * there must be as many OpenCL objects, threads, descriptors and child processes as after the
 * warm-up, on one device as many blocks, and resident memory must not grow. The models are the same
 * throughout, since drivers keep what they compiled.
 *
 * CLG_TEST_ROUNDS (4000; 600 under a sanitizer) is how long, CLG_TEST_SEED the seed. CLG_TEST_PLANT
 * plants a fault that the test must find: memory, descriptor, thread, process, block, bits.
 * tests/faults/soak.sh runs this for hours.
 */
/* ctest: label slow timeout 900 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"
#include "support/fakes/opencl_faults.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/fixtures/random_graph.h"
#include "support/fixtures/session_life/session_life.h"
#include "support/fixtures/soak_models.h"
#include "support/process_use.h"
#include "support/trend.h"

#include "base/cancel.h"
#include "ocl/helper/helper.h"

#include <clgraph/inspect.h>
#include <clgraph/limits.h>
#include <clgraph/opencl.h>

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    N_RANDOM = 6,
    N_MODELS = SOAK_MODELS + N_RANDOM,
    N_LIVING = 6,
    WARM_UP_WINDOWS = 2,
    MIN_WINDOWS = 6,     /* of a phase, after the warm-up */
    WINDOW_ROUNDS = 250, /* where that gives more windows */
    MAX_WINDOWS = TREND_MAX
};

/* Resident memory leaks if its trend exceeds these bytes a round and these in all. Heaps of the C
 * library and of the driver fragment. A device that is opened again costs more: PoCL keeps memory
 * of each OpenCL context. */
#define MAX_BYTES_A_ROUND 200.0
#define MAX_BYTES_A_DEVICE (2048.0 * 1024.0)
#define MAX_BYTES_IN_ALL (3.0 * 1024.0 * 1024.0) /* heaps fragment so much in a short run */
#define MAX_BLOCKS_A_DEVICE 0.5
#define MAX_BLOCKS_IN_ALL 200.0 /* a cold cache: what later devices read of it */

typedef enum phase {
    PHASE_KEPT, /* no failure is that of a lost device */
    PHASE_LOST, /* some are; each measurement is after one */
    N_PHASES
} phase;

static opencl_faults faults;
static clg_context *context;
static clg_cancel *token; /* of every session */
static soak_model models[N_MODELS];
static const char stale[] = "the message of an earlier error";

/* What a session computes, and which: the living one of a slot, a clone of it, or a new one. */
typedef struct job {
    const session_life *life; /* NULL: a model */
    size_t model, set;
    clg_session *session; /* NULL: created and freed by the job */
    bool as_clone;
    const clg_limits *limits;
} job;

static struct {
    size_t model;
    clg_session *session; /* NULL: none lives in the slot */
} living[N_LIVING];

typedef enum action {
    ACT_RUN,
    ACT_ALLOCATION, /* an allocation fails */
    ACT_CALL,       /* an OpenCL call fails */
    ACT_TOKEN,      /* the token triggers itself */
    ACT_THREAD,     /* another thread cancels */
    ACT_LIMIT,
    N_ACTIONS
} action;
static const char *const action_names[] = {"runs",       "failed allocations", "failed calls",
                                           "by a token", "by a thread",        "limits"};

static size_t n_done[N_ACTIONS], n_ended[N_ACTIONS]; /* begun, and ended by the failure */
static size_t n_jobs, n_sessions, n_recovered, n_rounds;
static uint64_t random_state;
static const char *plant;
static phase current;

static size_t below(size_t n) { return (size_t)random_next(&random_state) % n; }

/* Returns a number below 2^max_bits; each order of magnitude is as frequent. */
static size_t any_magnitude(size_t max_bits) { return below((size_t)1 << (1 + below(max_bits))); }

/* Returns whether this is the moment to plant a fault of this kind: each `every` rounds. */
static bool plants(const char *kind, size_t every)
{
    return plant && strcmp(plant, kind) == 0 && n_rounds % every == every - 1;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static clg_status open_session(size_t m, const clg_limits *limits, clg_session **out_session)
{
    clg_model *model;
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    options.kernels = m % 2 ? CLG_KERNELS_SIMT : CLG_KERNELS_SIMD;
    options.cancel = token;
    options.limits = limits;
    *out_session = NULL;
    CLG_TRY(soak_model_load(&models[m], &model));
    const clg_status status = clg_session_create(context, model, &options, out_session);
    clg_model_free(model);
    n_sessions += status == CLG_OK;
    return status;
}

/* Runs a set; its results must be those of its first run, SHAPE where a random graph computed a
 * dimension of 0. */
static clg_status run_set(const job *j, clg_session *session)
{
    soak_model *m = &models[j->model];
    uint64_t digest;
    clg_status status = soak_model_run(m, j->set, session, &digest);
    if (status == CLG_ERROR_SHAPE && m->kept) {
        digest = UINT64_MAX;
        status = CLG_OK;
    }
    if (status != CLG_OK) return status;
    n_jobs++;
    if (plants("bits", 500)) digest ^= 2;
    if (m->digests[j->set] == 0) m->digests[j->set] = digest;
    if (m->digests[j->set] != digest)
        fail_msg("round %zu: %s gives other results than before for its inputs %zu", n_rounds,
                 m->name, j->set);
    return CLG_OK;
}

static clg_status do_job(const job *j)
{
    clg_session *own = NULL;
    clg_status status = CLG_OK;
    if (j->life) return session_life_lead(j->life, context);
    if (!j->session)
        status = open_session(j->model, j->limits, &own);
    else if (j->as_clone)
        status = clg_session_clone(j->session, &own);
    if (status == CLG_OK) status = run_set(j, own ? own : j->session);
    clg_session_free(own);
    return status;
}

static job any_job(void)
{
    const size_t slot = below(2 * N_LIVING);
    job j = {.model = below(N_MODELS), .set = below(SOAK_SETS)};
    if (slot < N_LIVING && living[slot].session) {
        j.model = living[slot].model;
        j.session = living[slot].session;
        j.as_clone = below(4) == 0;
    } else if (below(6) == 0) {
        j.life = &session_lives[below(n_session_lives)];
    }
    return j;
}

static void free_slot(size_t slot)
{
    clg_session_free(living[slot].session);
    living[slot].session = NULL;
}

/* Replaces the session of a slot by a new one or by a clone of another slot's. */
static void renew_slot(void)
{
    const size_t slot = below(N_LIVING), other = below(N_LIVING);
    free_slot(slot);
    if (living[other].session && below(2)) {
        assert_ok(clg_session_clone(living[other].session, &living[slot].session));
        living[slot].model = living[other].model;
        return;
    }
    living[slot].model = below(N_MODELS);
    assert_ok(open_session(living[slot].model, NULL, &living[slot].session));
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Does the job with the n-th allocation failing. */
static clg_status with_failing_allocation(const job *j)
{
    failing_alloc_arm(any_magnitude(12));
    const clg_status status = do_job(j);
    const bool failed = failing_alloc_has_failed();
    failing_alloc_arm(SIZE_MAX);
    if (!failed) assert_ok(status);
    return status;
}

/* Does the job with the n-th OpenCL call failing, and opens the device again if that was a loss. */
static clg_status with_failing_call(const job *j)
{
    static const int codes[N_PHASES][2] = {
        {CL_OUT_OF_HOST_MEMORY, CL_MEM_OBJECT_ALLOCATION_FAILURE},
        {CL_OUT_OF_RESOURCES, CL_INVALID_COMMAND_QUEUE}};
    const cl_context before = clg_context_opencl(context);
    faults.arm((long)any_magnitude(8), codes[current][below(2)]);
    const clg_status status = do_job(j);
    const bool failed = faults.has_fired();
    faults.arm(-1, 0);
    if (!failed) assert_ok(status);
    assert_ok(clg_context_recover(context));
    n_recovered += clg_context_opencl(context) != before;
    return status;
}

static clg_status with_token_at_check(const job *j)
{
    atomic_store(&token->checks_left, any_magnitude(9));
    const clg_status status = do_job(j);
    atomic_store(&token->checks_left, 0);
    clg_cancel_reset(token);
    if (status != CLG_ERROR_CANCELLED) assert_ok(status);
    return status;
}

typedef struct canceller {
    size_t n_yields;
    clg_session *session; /* NULL: the token */
} canceller;

static void *cancel_later(void *argument)
{
    const canceller *c = argument;
    for (size_t i = 0; i < c->n_yields; i++) (void)sched_yield();
    if (c->session)
        clg_session_cancel(c->session);
    else
        clg_cancel_trigger(token);
    return NULL;
}

static clg_status with_cancelling_thread(const job *j)
{
    pthread_t thread;
    canceller c = {any_magnitude(10), j->as_clone || below(2) ? NULL : j->session};
    assert_int_equal(pthread_create(&thread, NULL, cancel_later, &c), 0);
    const clg_status status = do_job(j);
    assert_int_equal(pthread_join(thread, NULL), 0);
    clg_cancel_reset(token);
    if (status != CLG_ERROR_CANCELLED) assert_ok(status);
    return status;
}

static clg_status with_limits(const job *j)
{
    clg_limits limits = CLG_LIMITS_INIT;
    job limited = *j;
    limited.session = NULL;
    limited.limits = &limits;
    if (below(2))
        limits.max_memory_bytes = 1 + any_magnitude(20);
    else
        limits.max_steps = 1 + below(8);
    const clg_status status = do_job(&limited);
    if (status != CLG_ERROR_LIMIT) assert_ok(status);
    return status;
}

static clg_status run_only(const job *j)
{
    assert_ok(do_job(j));
    return CLG_OK;
}

/* Does a random job with a random failure, and again without. */
static void do_round(void)
{
    static clg_status (*const acts[])(const job *) = {run_only,
                                                      with_failing_allocation,
                                                      with_failing_call,
                                                      with_token_at_check,
                                                      with_cancelling_thread,
                                                      with_limits};
    const action a = (action)(below(2) ? ACT_RUN : below(N_ACTIONS));
    if (below(8) == 0) renew_slot();
    const job j = any_job();
    (void)error_set(CLG_ERROR_INTERNAL, "%s", stale);
    n_done[a]++;
    const clg_status status = acts[a](&j);
    if (status == CLG_OK) return;
    n_ended[a]++;
    if (status > 0 || error_text()[0] == '\0' || strcmp(error_text(), stale) == 0)
        fail_msg("round %zu, %s: status %d without a message", n_rounds, action_names[a], status);
    assert_ok(do_job(&j));
}

/* ---- faults that the test must find ---------------------------------------------------------- */

static void *wait_forever(void *unused)
{
    for (;;) (void)pause();
    return unused;
}

static void plant_faults(void)
{
    pthread_t thread;
    if (plants("memory", 1)) memset(malloc(4000), 1, 4000);
    if (plants("descriptor", 500)) assert_true(dup(STDIN_FILENO) >= 0);
    if (plants("thread", 500)) (void)pthread_create(&thread, NULL, wait_forever, NULL);
    if (plants("process", 1) && fork() == 0) _exit(0);
    if (plants("block", 500)) (void)memory_strdup("lost");
}

/* ---- measurements ---------------------------------------------------------------------------- */

typedef struct use {
    size_t blocks, threads, descriptors, children;
    long objects;
    double bytes;
} use;

static void lose_device(void)
{
    faults.arm(0, CL_DEVICE_NOT_AVAILABLE);
    assert_error(do_job(&(job){0}), CLG_ERROR_DEVICE_LOST, "CL_DEVICE_NOT_AVAILABLE");
    faults.arm(-1, 0);
    assert_ok(clg_context_recover(context));
    n_recovered++;
}

/* Frees all sessions and does each job once, so that nothing depends on what was last. */
static void come_to_rest(void)
{
    for (size_t slot = 0; slot < N_LIVING; slot++) free_slot(slot);
    if (current == PHASE_LOST) lose_device();
    for (size_t m = 0; m < N_MODELS; m++) assert_ok(do_job(&(job){.model = m}));
    for (size_t i = 0; i < n_session_lives; i++)
        assert_ok(do_job(&(job){.life = &session_lives[i]}));
}

/* max_threads: waits where there are more, since joined threads end a little later. */
static use measure(size_t max_threads)
{
    const struct timespec pause = {0, 10000000};
    use u = {.blocks = failing_alloc_n_live(), .objects = opencl_faults_total_live(&faults)};
    (void)malloc_trim(0);
    for (int i = 0; i < 100 && process_use_threads() > max_threads; i++)
        (void)nanosleep(&pause, NULL);
    u.threads = process_use_threads();
    u.children = process_use_children();
    u.descriptors = process_use_descriptors();
    u.bytes = (double)process_use_bytes();
    print_message("%7zu rounds: %9.2f MiB, %zu blocks, %ld objects, %zu threads, %zu descriptors, "
                  "%zu child processes, %zu devices opened again\n",
                  n_rounds, u.bytes / 1048576.0, u.blocks, u.objects, u.threads, u.descriptors,
                  u.children, n_recovered);
    return u;
}

/* Blocks are as many only on one device: one that was opened again has read what the cache on the
 * disk has by then. */
static void expect_same(const use *before, const use *now)
{
    if (current == PHASE_KEPT) assert_int_equal(now->blocks, before->blocks);
    assert_int_equal(now->objects, before->objects);
    assert_int_equal(now->threads, before->threads);
    /* a compile helper, which has a descriptor, ends when it has been idle for a time */
    assert_true(now->children <= helper_n_parallel());
    assert_true(now->descriptors - now->children <= before->descriptors - before->children);
}

/* Fails if blocks or resident memory grow over the windows of a phase. */
static void expect_flat(const double *bytes, const double *blocks, size_t n_windows, size_t window,
                        size_t n_devices)
{
    const double slope = trend_slope(bytes, n_windows),
                 more_blocks = trend_slope(blocks, n_windows) * (double)n_windows;
    const double devices = (double)n_devices / (double)n_windows; /* a window */
    if (more_blocks > MAX_BLOCKS_A_DEVICE * (double)n_devices && more_blocks > MAX_BLOCKS_IN_ALL)
        fail_msg("%.0f more blocks of memory", more_blocks);
    print_message("resident memory grows by %.1f bytes a round", slope / (double)window);
    if (n_devices) print_message(", %.1f KiB a device", slope / devices / 1024);
    print_message("\n");
    if (CLG_TEST_SANITIZED) return; /* the sanitizer keeps freed memory */
    if (slope > MAX_BYTES_A_ROUND * (double)window + MAX_BYTES_A_DEVICE * devices &&
        slope * (double)n_windows > MAX_BYTES_IN_ALL)
        fail_msg("resident memory grows");
}

/* ---- the test -------------------------------------------------------------------------------- */

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text && text[0] ? strtoull(text, NULL, 10) : otherwise;
}

static void open_models(uint64_t seed)
{
    for (size_t m = 0; m < SOAK_MODELS; m++) assert_ok(soak_model_own(m, &models[m]));
    for (size_t m = SOAK_MODELS; m < N_MODELS; m++)
        soak_model_random(seed % 1000 + m, m % 3 == 0, &models[m]);
}

static void report(uint64_t seed)
{
    print_message("soak: seed %llu, %zu rounds, %zu jobs, %zu sessions, %zu devices opened again",
                  (unsigned long long)seed, n_rounds, n_jobs, n_sessions, n_recovered);
    for (size_t a = ACT_ALLOCATION; a < N_ACTIONS; a++)
        print_message(", %s %zu/%zu", action_names[a], n_ended[a], n_done[a]);
    print_message("\n");
}

/* Runs each model with each of its sets, and what fails while it has never run. */
static void warm_up(void)
{
    for (size_t m = 0; m < N_MODELS; m++) {
        job j = {.model = m};
        assert_ok(open_session(m, NULL, &j.session));
        for (j.set = 0; j.set < SOAK_SETS; j.set++) assert_ok(do_job(&j));
        clg_session_free(j.session);
    }
}

/* Does the rounds of a phase. */
static void do_phase(size_t rounds)
{
    size_t window = rounds / (WARM_UP_WINDOWS + MIN_WINDOWS), n_windows = 0, n_devices = 0;
    double bytes[MAX_WINDOWS], blocks[MAX_WINDOWS];
    use first = {.threads = SIZE_MAX};
    if (window > WINDOW_ROUNDS) window = WINDOW_ROUNDS;
    if (window < rounds / MAX_WINDOWS + 1) window = rounds / MAX_WINDOWS + 1;
    for (size_t i = 1; i <= rounds; i++) {
        do_round();
        plant_faults();
        n_rounds++;
        if (i % window != 0) continue;
        come_to_rest();
        const use now = measure(first.threads);
        if (i / window == WARM_UP_WINDOWS) {
            first = now;
            n_devices = n_recovered;
        }
        if (i / window <= WARM_UP_WINDOWS) continue;
        expect_same(&first, &now);
        blocks[n_windows] = (double)now.blocks;
        bytes[n_windows++] = now.bytes;
    }
    assert_true(n_windows > 2);
    if (current == PHASE_KEPT) assert_int_equal(n_recovered, 0);
    expect_flat(bytes, blocks, n_windows, window, n_recovered - n_devices);
}

TEST(soak__nothing_grows_and_results_stay_the_same)
{
    const uint64_t seed = number_of("CLG_TEST_SEED", (uint64_t)time(NULL) % 1000000);
    const size_t rounds = (size_t)number_of("CLG_TEST_ROUNDS", CLG_TEST_SANITIZED ? 600 : 4000);
    print_message("CLG_TEST_SEED=%llu\n", (unsigned long long)seed);
    random_state = seed;
    plant = getenv("CLG_TEST_PLANT");
    failing_alloc_install();
    assert_ok(clg_context_create(ocl_platforms_test_device(), NULL, &context));
    assert_ok(clg_cancel_create(&token));
    open_models(seed);
    warm_up();
    for (current = PHASE_KEPT; current < N_PHASES; current++) do_phase(rounds / N_PHASES);
    report(seed);
    for (size_t a = 0; a < N_ACTIONS; a++) assert_true(n_done[a] > 0);
    for (size_t a = ACT_ALLOCATION; a < N_ACTIONS; a++) assert_true(n_ended[a] > 0);
    for (size_t slot = 0; slot < N_LIVING; slot++) free_slot(slot);
    for (size_t m = 0; m < N_MODELS; m++) soak_model_close(&models[m]);
    clg_cancel_free(token);
    clg_context_free(context);
    assert_int_equal(opencl_faults_total_live(&faults), 0);
    assert_int_equal(failing_alloc_n_live(), 0);
    failing_alloc_remove();
}

int main(void)
{
    ocl_platforms_show_pocl();
    if (!opencl_faults_open(&faults)) return 1;
    return test_run_all();
}
