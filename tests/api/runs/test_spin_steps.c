/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the kernel that keeps threads of the driver awake between the launches of a run (decision
 * 93): that it runs where it gains and no other queue works, that results stay right, also beside
 * launches which are new to the driver, and that a failure of any of its calls or allocations fails
 * no run and leaks nothing. It is forced here, or switched off, so that no result depends on how
 * fast the machine is. On drivers that gain nothing it must not run at all.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"
#include "support/fakes/opencl_faults.h"
#include "support/fixtures/build_session.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/fixtures/sized_data.h"
#include "support/literals.h"

#include "ocl/queue/queue.h"
#include "session/context_handle.h"
#include "session/run/frame.h"
#include "session/session.h"

#include <pthread.h>
#include <string.h>

/* Runs before the kernel is built, runs in which it is used, rows of x, and columns of x and of
 * each matrix. */
enum { N_BEFORE = 4, N_AFTER = 6, ROWS = 130, COLUMNS = 70, N_MATRICES = 3, N_THREADS = 3 };

static opencl_faults faults;
static float x[2 * ROWS][COLUMNS], matrices[N_MATRICES][COLUMNS][COLUMNS], y[2 * ROWS][COLUMNS];
static double expected[2 * ROWS][COLUMNS];

/* Fills with whole numbers, so that every sum is exact in any order; and computes x (A (B C)),
 * where the model has ((x A) B) C. */
static void fill(void)
{
    static double product[COLUMNS][COLUMNS], next[COLUMNS][COLUMNS];
    for (int i = 0; i < 2 * ROWS; i++)
        for (int k = 0; k < COLUMNS; k++) x[i][k] = (float)((i * 3 + k * 5) % 7 - 3);
    for (int m = 0; m < N_MATRICES; m++)
        for (int i = 0; i < COLUMNS; i++)
            for (int k = 0; k < COLUMNS; k++) matrices[m][i][k] = (float)((i * i + m * k) % 3 - 1);
    for (int i = 0; i < COLUMNS; i++) product[i][i] = 1;
    for (int m = N_MATRICES; m-- > 0;) {
        for (int i = 0; i < COLUMNS; i++)
            for (int k = 0; k < COLUMNS; k++) {
                next[i][k] = 0;
                for (int j = 0; j < COLUMNS; j++)
                    next[i][k] += (double)matrices[m][i][j] * product[j][k];
            }
        memcpy(product, next, sizeof product);
    }
    for (int i = 0; i < 2 * ROWS; i++)
        for (int k = 0; k < COLUMNS; k++)
            for (int j = 0; j < COLUMNS; j++) expected[i][k] += (double)x[i][j] * product[j][k];
}

/* y = ((x A) B) C, with rows of any number */
static clg_session *open_session(clg_context *context)
{
    const char *const names[] = {"a", "b", "c"}, *const between[] = {"x", "xa", "xab", "y"};
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, COLUMNS), NULL));
    for (int m = 0; m < N_MATRICES; m++) {
        assert_ok(sized_constant(g, names[m], CLG_FLOAT32, 2, DIMS(COLUMNS, COLUMNS), matrices[m]));
        assert_ok(clg_builder_node(g, "", "MatMul", "", 2, NAMES(between[m], names[m]), 1,
                                   NAMES(between[m + 1])));
    }
    assert_ok(clg_builder_output(g, "y"));
    return build_session(context, g, NULL);
}

static clg_status run_into(clg_session *s, int rows, float (*out)[COLUMNS])
{
    CLG_TRY(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(rows, COLUMNS), x));
    CLG_TRY(clg_session_run(s));
    CLG_TRY(clg_session_get_output_data(s, "y", out, (size_t)rows * sizeof *out));
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < COLUMNS; k++) assert_true(out[i][k] == (float)expected[i][k]);
    return CLG_OK;
}

static clg_status run(clg_session *s) { return run_into(s, ROWS, y); }

static ocl_counters counters_of(const clg_context *context)
{
    ocl_counters counters;
    ocl_context_counters(context->current->ocl, &counters);
    return counters;
}

static uint64_t n_spins(const clg_context *context) { return counters_of(context).step_spins; }

static bool gains(const clg_context *context)
{
    return ocl_context_threads_sleep(context->current->ocl);
}

TEST(launches__are_accompanied_where_it_gains)
{
    const ocl_spin_mode modes[] = {OCL_SPIN_NEVER, OCL_SPIN_ALWAYS};
    for (int m = 0; m < 2; m++) {
        ocl_spin_use(modes[m]);
        clg_context *context = ocl_platforms_open_stored();
        clg_session *s = open_session(context);
        for (int i = 0; i < N_BEFORE; i++) assert_ok(run(s));
        assert_int_equal(n_spins(context), 0);
        for (int i = 0; i < N_AFTER; i++) assert_ok(run(s));
        if (m == 1 && gains(context))
            assert_true(n_spins(context) > 0 && n_spins(context) <= N_AFTER * (N_MATRICES - 1));
        else
            assert_int_equal(n_spins(context), 0);
        clg_session_free(s);
        clg_context_free(context);
    }
}

/* A preparation builds the kernel, too: no run after it compiles anything. */
TEST(launches__are_accompanied_soon_after_a_preparation)
{
    ocl_spin_use(OCL_SPIN_ALWAYS);
    clg_context *context = ocl_platforms_open_stored();
    clg_session *s = open_session(context);
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(ROWS, COLUMNS), x));
    assert_ok(clg_session_prepare(s, NULL, NULL));
    const ocl_counters before = counters_of(context);
    for (int i = 0; i < N_BEFORE; i++) assert_ok(run(s));
    assert_true(n_spins(context) > 0 || !gains(context));
    for (int i = 0; i < N_AFTER; i++) assert_ok(run(s));
    assert_int_equal(counters_of(context).programs_compiled, before.programs_compiled);
    assert_int_equal(counters_of(context).programs_loaded, before.programs_loaded);
    clg_session_free(s);
    clg_context_free(context);
}

TEST(launches__are_not_accompanied_while_another_queue_works)
{
    ocl_spin_use(OCL_SPIN_ALWAYS);
    clg_context *context = ocl_platforms_open_stored();
    clg_session *s = open_session(context), *other = open_session(context);
    for (int i = 0; i < N_BEFORE + N_AFTER; i++) assert_ok(run(s));
    assert_ok(run(other));
    const uint64_t n = n_spins(context);
    queue_set_working(other->frame->queue, true);
    assert_ok(run(s));
    assert_int_equal(n_spins(context), n);
    queue_set_working(other->frame->queue, false);
    assert_ok(run(s));
    assert_true(!gains(context) || n_spins(context) > n);
    clg_session_free(s);
    clg_session_free(other);
    clg_context_free(context);
}

/* On drivers of which the launch guard keeps a table, every launch is new after this. */
static void forget_launches(void)
{
    const guard_place place = launch_guard_enter(NULL);
    launch_guard_learn(NULL);
    launch_guard_leave(place, true);
}

TEST(launches__are_accompanied_again_when_all_are_new_to_the_driver)
{
    ocl_spin_use(OCL_SPIN_ALWAYS);
    clg_context *context = ocl_platforms_open_stored();
    clg_session *s = open_session(context);
    for (int i = 0; i < N_BEFORE + N_AFTER; i++) assert_ok(run(s));
    forget_launches();
    const uint64_t n = n_spins(context);
    for (int i = 0; i < N_AFTER; i++) assert_ok(run(s));
    assert_true(!gains(context) || n_spins(context) > n);
    clg_session_free(s);
    clg_context_free(context);
}

/* Each new number of rows plans again and may launch what the driver has not had, alone. */
TEST(new_launches__run_beside_sessions_that_keep_threads_awake)
{
    ocl_spin_use(OCL_SPIN_ALWAYS);
    clg_context *context = ocl_platforms_open_stored();
    clg_session *s = open_session(context), *other = open_session(context);
    for (int i = 0; i < N_BEFORE + N_AFTER; i++) assert_ok(run(s));
    for (int i = 0; i < 12; i++) {
        assert_ok(run_into(other, 20 + 17 * i, y));
        assert_ok(run(s));
    }
    clg_session_free(s);
    clg_session_free(other);
    clg_context_free(context);
}

static void *run_many(void *user)
{
    static _Thread_local float out[2 * ROWS][COLUMNS];
    clg_session *s = user;
    for (int i = 0; i < 60; i++)
        if (run_into(s, i % 9 == 0 ? ROWS + i : ROWS, out) != CLG_OK) return s;
    return NULL;
}

TEST(threads__run_sessions_that_keep_threads_awake)
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
    clg_context_free(context);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Runs until the kernel is in use, or its creation has failed; returns how many runs fail. */
static size_t run_until_it_spins(clg_session *s)
{
    size_t n_failed = 0;
    for (int i = 0; i < 3; i++) n_failed += run(s) != CLG_OK;
    return n_failed;
}

/* Fails the n-th call or allocation, from the last run before the kernel is built on. `arm` makes
 * it fail, `has_failed` says whether it did, `disarm` ends that. */
static void check_failures(void (*arm)(long n), bool (*has_failed)(void), void (*disarm)(void))
{
    ocl_spin_use(OCL_SPIN_ALWAYS);
    clg_context *context = ocl_platforms_open_stored();
    clg_session *warm = open_session(context);
    for (int i = 0; i < N_BEFORE + N_AFTER; i++) assert_ok(run(warm));
    clg_session_free(warm);
    const long n_live = opencl_faults_total_live(&faults);
    size_t n_swallowed = 0;
    bool was_reached = true;
    for (long n = 0; was_reached; n++) {
        clg_session *s = open_session(context);
        for (int i = 0; i < N_BEFORE - 1; i++) assert_ok(run(s));
        arm(n);
        const size_t n_failed = run_until_it_spins(s);
        was_reached = has_failed();
        disarm();
        assert_true(n_failed <= 1);
        n_swallowed += was_reached && n_failed == 0;
        assert_ok(run(s));
        clg_session_free(s);
        assert_int_equal(opencl_faults_total_live(&faults), n_live);
    }
    if (gains(context)) assert_true(n_swallowed > 0);
    clg_context_free(context);
}

static void arm_calls(long n) { faults.arm(n, -6 /* CL_OUT_OF_HOST_MEMORY */); }
static bool call_has_failed(void) { return faults.has_fired(); }
static void disarm_calls(void) { faults.arm(-1, 0); }

TEST(opencl_calls__that_fail_leave_runs_right)
{
    check_failures(arm_calls, call_has_failed, disarm_calls);
}

static void arm_allocations(long n) { failing_alloc_arm((size_t)n); }
static void disarm_allocations(void) { failing_alloc_arm(SIZE_MAX); }

TEST(allocations__that_fail_leave_runs_right)
{
    failing_alloc_install();
    check_failures(arm_allocations, failing_alloc_has_failed, disarm_allocations);
    failing_alloc_remove();
}

int main(void)
{
    if (!opencl_faults_open(&faults)) return 1;
    fill();
    return test_run_all();
}
