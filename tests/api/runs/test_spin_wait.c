/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the kernel that keeps a thread of the driver awake between runs (decision 90): that it runs
 * where runs follow each other, that results stay right, that launches which are new to the driver
 * run beside it, and that a failure of any of its calls or allocations fails no run and leaks
 * nothing. It is forced here, or switched off, so that no result depends on how fast the machine
 * is. On drivers that gain nothing it must not run at all.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"
#include "support/fakes/opencl_faults.h"
#include "support/fixtures/build_session.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/literals.h"

#include "ocl/queue/queue.h"
#include "session/context_handle.h"
#include "session/run/frame.h"
#include "session/session.h"

#include <pthread.h>
#include <string.h>

enum { N = 17, N_RUNS = 40, N_THREADS = 4 };

static opencl_faults faults;

/* y = x + x * x */
static clg_session *open_session(clg_context *context)
{
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 1, DIMS(-1), NULL));
    assert_ok(clg_builder_node(g, "", "Mul", "", 2, NAMES("x", "x"), 1, NAMES("square")));
    assert_ok(clg_builder_node(g, "", "Add", "", 2, NAMES("x", "square"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    return build_session(context, g, NULL);
}

static clg_status run_with(clg_session *s, size_t n, float first)
{
    float x[512], y[512];
    assert_true(n <= 512);
    for (size_t i = 0; i < n; i++) x[i] = first + (float)i;
    CLG_TRY(clg_session_set_input_data(s, "x", CLG_FLOAT32, 1, DIMS((int64_t)n), x, n * sizeof *x));
    CLG_TRY(clg_session_run(s));
    CLG_TRY(clg_session_get_output_data(s, "y", y, n * sizeof *y));
    for (size_t i = 0; i < n; i++) assert_true(y[i] == x[i] + x[i] * x[i]);
    return CLG_OK;
}

static uint64_t n_spins(const clg_context *context)
{
    ocl_counters counters;
    ocl_context_counters(context->current->ocl, &counters);
    return counters.spins;
}

static bool gains(const clg_context *context)
{
    const device_caps *caps = ocl_context_caps(context->current->ocl);
    return caps->family == PLATFORM_POCL && caps->kind == CLG_DEVICE_CPU &&
           caps->zero_copy_align_bytes > 0;
}

/* Returns how often the kernel was enqueued in n runs of a new session. */
static uint64_t spins_of(ocl_spin_mode mode, int n_runs, bool *out_gains)
{
    ocl_spin_use(mode);
    clg_context *context = ocl_platforms_open_stored();
    clg_session *s = open_session(context);
    for (int i = 0; i < n_runs; i++) assert_ok(run_with(s, N, (float)i));
    const uint64_t n = n_spins(context);
    *out_gains = gains(context);
    clg_session_free(s);
    clg_context_free(context);
    return n;
}

TEST(runs__are_followed_by_the_kernel_where_it_gains)
{
    bool gains_here;
    assert_int_equal(spins_of(OCL_SPIN_NEVER, N_RUNS, &gains_here), 0);
    assert_int_equal(spins_of(OCL_SPIN_ALWAYS, 16, &gains_here), 0);
    const uint64_t n = spins_of(OCL_SPIN_ALWAYS, N_RUNS, &gains_here);
    if (gains_here)
        assert_true(n > 0 && n <= N_RUNS - 16);
    else
        assert_int_equal(n, 0);
}

/* A launch, or a build, that must run alone begins when no such kernel is in flight. */
TEST(launch_guard__ends_all_before_it_admits_a_queue_alone)
{
    ocl_spin_use(OCL_SPIN_ALWAYS);
    clg_context *context = ocl_platforms_open_stored();
    clg_session *s = open_session(context);
    for (int i = 0; i < N_RUNS; i++) assert_ok(run_with(s, N, (float)i));
    const queue_spin *spin = &s->frame->queue->spin;
    if (gains(context)) assert_non_null(spin->last);
    const guard_place place = launch_guard_enter(NULL);
    const bool is_over = !spin->last;
    launch_guard_leave(place, true); /* before a failure ends the test */
    assert_true(is_over);
    clg_session_free(s);
    clg_context_free(context);
}

/* Each new length plans again and may launch what the driver has not had, alone. */
TEST(new_launches__run_beside_sessions_that_spin)
{
    ocl_spin_use(OCL_SPIN_ALWAYS);
    clg_context *context = ocl_platforms_open_stored();
    clg_session *first = open_session(context), *second = open_session(context);
    for (int i = 0; i < 20; i++) {
        assert_ok(run_with(first, N, (float)i));
        assert_ok(run_with(second, N, (float)i));
    }
    for (int i = 0; i < 30; i++) {
        assert_ok(run_with(first, N, (float)i));
        assert_ok(run_with(second, 20 + 16 * (size_t)i, (float)i));
    }
    /* Freed while its kernel may still run. */
    assert_ok(run_with(first, N, 1));
    clg_session_free(first);
    assert_ok(run_with(second, N, 1));
    clg_session_free(second);
    clg_context_free(context);
}

static void *run_many(void *user)
{
    clg_session *s = user;
    for (int i = 0; i < 200; i++) {
        const clg_status status = run_with(s, N + (size_t)(i % 7 == 0 ? i : 0), (float)i);
        if (status != CLG_OK) return s;
    }
    return NULL;
}

TEST(threads__run_sessions_that_spin_at_once)
{
    ocl_spin_use(OCL_SPIN_ALWAYS);
    clg_context *context = ocl_platforms_open_stored();
    clg_session *s[N_THREADS];
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) s[i] = open_session(context);
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, s[i]), 0);
    for (int i = 0; i < N_THREADS; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    for (int i = 0; i < N_THREADS; i++) clg_session_free(s[i]);
    if (gains(context)) assert_true(n_spins(context) > 0);
    clg_context_free(context);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Runs a session until the kernel is in use, or its creation has failed, with the mode that forces
 * it, and counts the runs that fail. */
static size_t run_until_it_spins(clg_session *s)
{
    size_t n_failed = 0;
    for (int i = 0; i < 24; i++) n_failed += run_with(s, N, (float)i) != CLG_OK;
    return n_failed;
}

/* Fails the n-th call from the end of the first 16 runs on, which are known to work. A call of the
 * run itself fails that run alone; one of the kernel fails none. */
TEST(opencl_calls__that_fail_leave_runs_right)
{
    clg_context *context = ocl_platforms_open_stored();
    size_t n_swallowed = 0;
    ocl_spin_use(OCL_SPIN_ALWAYS);
    clg_session *warm = open_session(context);
    (void)run_until_it_spins(warm);
    clg_session_free(warm);
    const long n_live = opencl_faults_total_live(&faults);
    bool has_fired = true;
    for (long n = 0; has_fired; n++) {
        clg_session *s = open_session(context);
        for (int i = 0; i < 16; i++) assert_ok(run_with(s, N, (float)i));
        faults.arm(n, -6 /* CL_OUT_OF_HOST_MEMORY */);
        const size_t n_failed = run_until_it_spins(s);
        has_fired = faults.has_fired();
        faults.arm(-1, 0);
        assert_true(n_failed <= 1);
        n_swallowed += has_fired && n_failed == 0;
        assert_ok(run_with(s, N, 3));
        clg_session_free(s);
        assert_int_equal(opencl_faults_total_live(&faults), n_live);
    }
    if (gains(context)) assert_true(n_swallowed > 0);
    clg_context_free(context);
}

TEST(allocations__that_fail_leave_runs_right)
{
    failing_alloc_install();
    ocl_spin_use(OCL_SPIN_ALWAYS);
    clg_context *context = ocl_platforms_open_stored();
    size_t n_swallowed = 0;
    bool has_failed = true;
    for (size_t n = 0; has_failed; n++) {
        clg_session *s = open_session(context);
        for (int i = 0; i < 16; i++) assert_ok(run_with(s, N, (float)i));
        failing_alloc_arm(n);
        const size_t n_failed = run_until_it_spins(s);
        has_failed = failing_alloc_has_failed();
        failing_alloc_arm(SIZE_MAX);
        assert_true(n_failed <= 1);
        n_swallowed += has_failed && n_failed == 0;
        assert_ok(run_with(s, N, 3));
        clg_session_free(s);
    }
    if (gains(context)) assert_true(n_swallowed > 0);
    clg_context_free(context);
    failing_alloc_remove();
}

int main(void)
{
    if (!opencl_faults_open(&faults)) return 1;
    return test_run_all();
}
