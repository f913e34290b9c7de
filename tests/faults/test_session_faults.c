/* SPDX-License-Identifier: Apache-2.0
 *
 * Fails each allocation and each OpenCL call in turn (those of CLG_TEST_SHARE), CLBlast's included,
 * during the creation, runs and release of sessions. Each failure must return a negative status
 * with a message and must leak nothing; every handle must remain valid for release; and the next
 * run, in a new session and in the one that failed, must succeed.
 *
 * All sessions are in one context: test_ocl_faults.c injects faults into the creation of contexts.
 * Every second life has all buffers in memory of the process (ocl/buffer/buffer_pages.h).
 *
 * Only CLBlast makes more calls in a new context than in an old one: for it, every call after the
 * creation of the context fails in turn, including those that compile its kernels.
 */
/* ctest: label slow timeout 900 */
#include "support/unit.h"

#include "support/case_share.h"
#include "support/fakes/failing_alloc.h"
#include "support/fakes/opencl_faults.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/fixtures/session_life/session_life.h"
#include "support/scratch.h"

#include "base/memory.h"
#include "ocl/buffer/buffer_pages.h"
#include "session/context_handle.h"

#include <clgraph/inspect.h>
#include <clgraph/opencl.h>

#include <limits.h>
#include <string.h>

enum { SHARE = 4 }; /* see case_share_next */

static opencl_faults faults;
static const char stale[] = "the message of an earlier error";

/* The limit of a launch's time: none; one that no launch exceeds; one that all exceed, so that they
 * are divided as far as possible, and each second run waits for its launches. */
typedef enum job_limit { LIMIT_NONE, LIMIT_LONG, LIMIT_SHORT } job_limit;

typedef struct job {
    const session_life *life;
    clg_context *context; /* NULL: created and freed by each job */
    clg_session *session; /* NULL: created and freed by each job */
    bool profiling;
    job_limit limit; /* of launches; LIMIT_NONE: the context's own */
} job;

static clg_status open_context(bool profiling, clg_context **out_context)
{
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    options.cache_dir = scratch_path("store");
    options.profiling = profiling;
    return clg_context_create(ocl_platforms_test_device(), &options, out_context);
}

static clg_status do_job(void *user)
{
    const job *j = user;
    clg_context *context = j->context;
    if (j->session) return j->life->use(j->context, j->session);
    if (!context) CLG_TRY(open_context(j->profiling, &context));
    clg_status status = session_life_lead(j->life, context);
    if (!j->context) clg_context_free(context);
    return status;
}

static void expect_message(const job *j, const char *what, size_t n, clg_status status)
{
    if (status >= 0) fail_msg("%s: %s %zu failing gave no error", j->life->name, what, n);
    if (error_text()[0] == '\0' || strcmp(error_text(), stale) == 0)
        fail_msg("%s: %s %zu failing left no message", j->life->name, what, n);
}

/* ---- allocations ----------------------------------------------------------------------------- */

/* Runs the job once for each of its allocations of this run's share, which fails. The job must
 * succeed when repeated: in an existing session after each failure, else after every sixteenth.
 * Returns the number of allocations, at most SHARE - 1 too many. */
static size_t fail_allocations(job *j)
{
    size_t n = 0, n_runs = 0;
    assert_ok(do_job(j));
    for (bool failed = true; failed; n = case_share_next(n, SHARE)) {
        size_t live = failing_alloc_n_live();
        (void)error_set(CLG_ERROR_INTERNAL, "%s", stale);
        failing_alloc_arm(n);
        clg_status status = do_job(j);
        failed = failing_alloc_has_failed();
        failing_alloc_arm(SIZE_MAX);
        if (!failed) assert_ok(status);
        if (failed && status != CLG_OK) expect_message(j, "allocation", n, status);
        if (!j->session && failing_alloc_n_live() != live)
            fail_msg("%s: allocation %zu failing leaks: %s", j->life->name, n, error_text());
        if (n_runs++ % 16 == 0 || j->session) assert_ok(do_job(j));
    }
    return n;
}

TEST(faults__every_allocation_of_a_session)
{
    failing_alloc_install();
    for (size_t i = 0; i < n_session_lives; i++) {
        buffer_pages_use_from(i % 2);
        job j = {.life = &session_lives[i]};
        assert_ok(open_context(false, &j.context));
        size_t lives = fail_allocations(&j);
        assert_ok(session_life_open(j.life, j.context, &j.session));
        size_t runs = fail_allocations(&j);
        print_message("%s: %zu allocations of a life, %zu of runs\n", j.life->name, lives, runs);
        assert_true(lives > 100 && runs > 10);
        clg_session_free(j.session);
        clg_context_free(j.context);
        assert_int_equal(failing_alloc_n_live(), 0);
        assert_int_equal(opencl_faults_total_live(&faults), 0);
        ocl_platforms_expect_no_pages();
    }
    failing_alloc_remove();
}

/* ---- launches with a limit of their time ----------------------------------------------------- */

static uint64_t made_up_clock(void)
{
    static uint64_t ns;
    return ns += 1000;
}

static void set_limit(clg_context *context, job_limit limit)
{
    const device_rates fast = {1e30, 1e30, 1}, slow = {1e-9, 1e-9, 1};
    context->current->budget.limit_ns = limit == LIMIT_NONE   ? 0
                                        : limit == LIMIT_LONG ? 1000000000
                                                              : 10;
    context->current->budget.rates = limit == LIMIT_SHORT ? slow : fast;
    context->current->now_ns = made_up_clock;
}

/* ---- OpenCL calls ---------------------------------------------------------------------------- */

/* Finishes uploads: until then the context holds the event of its last upload, which would be
 * counted as a leak. */
static void finish_uploads(clg_context *context)
{
    const float x = 1;
    clg_value *v;
    if (!context) return;
    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 0, NULL, &v));
    assert_ok(clg_value_write(v, &x, sizeof x));
    clg_value_free(v);
}

/* Opens the device again if the failing call was taken for a loss of it. Returns whether it was. */
static bool recover(const job *j)
{
    if (!j->context) return false;
    const cl_context before = clg_context_opencl(j->context);
    assert_ok(clg_context_recover(j->context));
    if (j->limit != LIMIT_NONE) set_limit(j->context, j->limit);
    return clg_context_opencl(j->context) != before;
}

/* Runs the job with call n failing with `code`. Returns false when it made fewer calls. */
static bool fail_call(job *j, long n, int code)
{
    long live = opencl_faults_total_live(&faults);
    size_t blocks = memory_n_live();
    (void)error_set(CLG_ERROR_INTERNAL, "%s", stale);
    faults.arm(n, code);
    clg_status status = do_job(j);
    bool fired = faults.has_fired();
    faults.arm(-1, 0);
    if (!fired) assert_ok(status);
    if (status != CLG_OK) expect_message(j, "OpenCL call", (size_t)n, status);
    const bool was_lost = recover(j);
    if (j->session) return fired;
    finish_uploads(j->context);
    if (opencl_faults_total_live(&faults) > live)
        fail_msg("%s: call %ld failing leaves %ld objects: %s", j->life->name, n,
                 opencl_faults_total_live(&faults) - live, error_text());
    if (memory_n_live() > blocks)
        fail_msg("%s: call %ld failing leaks memory: %s", j->life->name, n, error_text());
    if (was_lost) assert_ok(do_job(j)); /* loads the programs again */
    return fired;
}

static clg_session *open_limited(const session_life *life, clg_context *context, job_limit limit)
{
    clg_session *s;
    set_limit(context, limit);
    assert_ok(session_life_open(life, context, &s));
    assert_ok(life->use(context, s));
    return s;
}

/* Returns the number of calls of a use: the least of two, since the library waits once more where
 * it has forgotten which launches the driver knows (ocl/queue/launch_guard.c). */
static long count_calls(const session_life *life, clg_context *context, clg_session *s)
{
    long least = LONG_MAX;
    for (int i = 0; i < 2; i++) {
        faults.arm(-1, 0);
        assert_ok(life->use(context, s));
        if (faults.n_calls() < least) least = faults.n_calls();
    }
    return least;
}

/* Counts while profiling, and not in streams, since other queues poll before they wait, as often as
 * time permits. */
TEST(faults__a_limit_that_no_launch_exceeds_costs_no_call)
{
    for (size_t i = 0; i < n_session_lives; i++) {
        buffer_pages_use_from(i % 2);
        clg_context *context;
        long n_calls[2];
        if (strstr(session_lives[i].name, "stream")) continue;
        assert_ok(open_context(true, &context));
        for (int k = 0; k < 2; k++) {
            clg_session *s =
                open_limited(&session_lives[i], context, k == 0 ? LIMIT_NONE : LIMIT_LONG);
            n_calls[k] = count_calls(&session_lives[i], context, s);
            clg_session_free(s);
        }
        assert_true(n_calls[0] > 0);
        assert_int_equal(n_calls[0], n_calls[1]);
        clg_context_free(context);
    }
}

static long fail_calls(job *j, long first, int code)
{
    long n = first, n_runs = 0;
    assert_ok(do_job(j));
    for (; fail_call(j, n, code); n = (long)case_share_next((size_t)n, SHARE))
        if (j->session || n_runs++ % 8 == 0) assert_ok(do_job(j));
    assert_ok(do_job(j));
    return n;
}

static void fail_calls_of_life(const session_life *life, bool profiling, int code)
{
    job j = {.life = life, .profiling = profiling};
    clg_counters counters = CLG_COUNTERS_INIT;
    assert_ok(open_context(profiling, &j.context));
    long lives = fail_calls(&j, 0, code);
    assert_ok(session_life_open(life, j.context, &j.session));
    long runs = fail_calls(&j, 0, code);
    print_message("%s: %ld calls of a life, %ld of runs\n", life->name, lives, runs);
    assert_true(lives > 20 && runs > 5);
    assert_ok(clg_context_counters(j.context, &counters));
    if (session_life_uses_blas(life)) assert_true(counters.blas_calls > 0);
    clg_session_free(j.session);
    clg_context_free(j.context);
    assert_int_equal(opencl_faults_total_live(&faults), 0);
    assert_int_equal(memory_n_live(), 0);
}

TEST(faults__every_opencl_call_of_a_session)
{
    for (size_t i = 0; i < n_session_lives; i++)
        fail_calls_of_life(&session_lives[i], false, CL_OUT_OF_RESOURCES);
}

TEST(faults__every_opencl_call_while_profiling)
{
    for (size_t i = 0; i < n_session_lives; i++)
        fail_calls_of_life(&session_lives[i], true, CL_OUT_OF_HOST_MEMORY);
}

/* Fails each call and each allocation of divided runs in turn. */
TEST(faults__every_opencl_call_of_divided_launches)
{
    size_t n_divided = 0;
    for (size_t i = 0; i < n_session_lives; i++) {
        job j = {.life = &session_lives[i], .limit = LIMIT_SHORT};
        assert_ok(open_context(false, &j.context));
        clg_session *whole = open_limited(j.life, j.context, LIMIT_NONE);
        faults.arm(-1, 0);
        assert_ok(j.life->use(j.context, whole));
        const long n_whole = faults.n_calls();
        clg_session_free(whole);
        j.session = open_limited(j.life, j.context, LIMIT_SHORT);
        faults.arm(-1, 0);
        assert_ok(do_job(&j));
        const long n = faults.n_calls();
        (void)fail_calls(&j, 0, CL_OUT_OF_RESOURCES);
        print_message("%s: %ld calls of runs, divided %ld\n", j.life->name, n_whole, n);
        n_divided += n > n_whole;
        clg_session_free(j.session);
        j.session = NULL;
        assert_ok(do_job(&j));
        clg_context_free(j.context);
        assert_int_equal(opencl_faults_total_live(&faults), 0);
        ocl_platforms_expect_no_pages();
    }
    assert_true(n_divided > n_session_lives / 2);
}

TEST(faults__every_opencl_call_of_the_probe_of_parts)
{
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    clg_context *context;
    long n = 0;
    bool works = false;
    options.cache_dir = "";
    assert_ok(clg_context_create(ocl_platforms_test_device(), &options, &context));
    for (bool fired = true; fired; n++) {
        faults.arm(n, CL_OUT_OF_RESOURCES);
        (void)error_set(CLG_ERROR_INTERNAL, "%s", stale);
        const clg_status status = ocl_parts_work(context->current->ocl, &works);
        fired = faults.has_fired();
        faults.arm(-1, 0);
        assert_ok(clg_context_recover(context)); /* some failures are those of a lost device */
        if (status == CLG_OK) assert_true(works);
        if (status != CLG_OK && strcmp(error_text(), stale) == 0)
            fail_msg("call %ld of the probe failing left no message", n);
    }
    assert_true(works);
    print_message("%ld calls of the probe\n", n);
    assert_true(n > 15);
    clg_context_free(context);
    assert_int_equal(opencl_faults_total_live(&faults), 0);
}

TEST(faults__every_call_of_clblast_from_the_first_on)
{
    clg_context *context;
    faults.arm(-1, 0);
    assert_ok(open_context(false, &context));
    const long n_opening = faults.n_calls();
    clg_context_free(context);
    for (size_t i = 0; i < n_session_lives; i++) {
        buffer_pages_use_from(i % 2);
        job j = {.life = &session_lives[i]};
        if (!session_life_uses_blas(j.life)) continue;
        long n = fail_calls(&j, n_opening, CL_MEM_OBJECT_ALLOCATION_FAILURE) - n_opening;
        print_message("%s: %ld calls after the context's %ld\n", j.life->name, n, n_opening);
        assert_true(n > 100);
        assert_int_equal(opencl_faults_total_live(&faults), 0);
        ocl_platforms_expect_no_pages();
    }
}

int main(void)
{
    ocl_platforms_show_pocl();
    if (!opencl_faults_open(&faults)) return 1;
    return test_run_all();
}
