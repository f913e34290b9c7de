/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests drivers whose compiler crashes, hangs or reports an error on a kernel only when it
 * optimises it, or only when it does not (simulated by layers/opencl_crashing.c). In tiers
 * (decision 94) the kernel without optimisation gives results by then, and stays in use; or the
 * optimised one is used from the start.
 */
#include "support/fixtures/ocl_platforms.h"
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fakes/crashing_driver.h"
#include "support/fakes/wrong_driver.h"
#include "support/fixtures/build_session.h"
#include "support/literals.h"

#include "base/clock.h"
#include "session/context_handle.h"
#include "session/session.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

enum { N = 7, N_RUNS = 5 };
/* Background compiling that takes longer fails the test. */
#define PATIENCE_NS UINT64_C(120000000000)

/* Returns Softmax(x) of [1,N], which no other implementation computes. */
static clg_session *open_softmax(clg_context *context)
{
    static float x[N];
    for (int i = 0; i < N; i++) x[i] = (float)(i * 3 % 5);
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(1, N), NULL));
    assert_ok(clg_builder_node(g, NULL, "Softmax", "", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    clg_session *s = build_session(context, g, NULL);
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(1, N), x));
    return s;
}

static void expect_softmax(clg_session *s)
{
    float y[N];
    double sum = 0;
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
    for (int i = 0; i < N; i++) sum += exp((double)(i * 3 % 5));
    for (int i = 0; i < N; i++)
        assert_true(fabs((double)y[i] - exp((double)(i * 3 % 5)) / sum) < 1e-6);
}

/* Runs until the compiler has failed in the background as often as it will, then some more. */
static void run_beside(clg_session *s, long n_failures)
{
    const uint64_t start = time_now_ns();
    while (cd_n_crashes() < n_failures) {
        expect_softmax(s);
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        assert_true(time_now_ns() - start < PATIENCE_NS);
    }
    for (int i = 0; i < N_RUNS; i++) expect_softmax(s);
}

/* Two contexts, which stand for two processes: the second remembers the failure if it may. */
static void fail_by(const char *by, long n_failures, bool is_remembered)
{
    char store[32];
    (void)snprintf(store, sizeof store, "optimizing %s", by);
    cd_dies("void softmax", "build", by, NULL);
    wd_set_or_clear("CLG_CRASH_OPTIMIZING", "1");
    wd_set_or_clear("CLG_COMPILATION", "tiered");
    clg_context *context = cd_context(store, NULL);
    if (!ocl_builds_in_tiers(context->current->ocl)) { /* the simulated driver is not such a one */
        clg_context_free(context);
        skip();
    }
    clg_session *s = open_softmax(context);
    run_beside(s, n_failures);
    clg_session_free(s);
    clg_context_free(context);
    assert_true(cd_n_crashes() == n_failures);
    context = cd_context(store, NULL);
    s = open_softmax(context);
    for (int i = 0; i < N_RUNS; i++) expect_softmax(s);
    clg_session_free(s);
    clg_context_free(context);
    assert_int_equal(cd_n_crashes() == n_failures, is_remembered);
    assert_int_equal(cd_here_lines, 0); /* nothing of this in the application's process */
}

TEST(optimizer__aborts) { fail_by("abort", 2, true); }
TEST(optimizer__hangs) { fail_by("loop", 1, false); }
/* Built with our declarations, then with the driver's. */
TEST(optimizer__reports_an_error) { fail_by("error", 2, false); }

TEST(baseline__aborts)
{
    cd_dies("void softmax", "build", "abort", NULL);
    wd_set_or_clear("CLG_CRASH_OPTIMIZING", "0");
    wd_set_or_clear("CLG_COMPILATION", "tiered");
    clg_context *context = cd_context("without optimisation", NULL);
    const bool in_tiers = ocl_builds_in_tiers(context->current->ocl);
    clg_session *s = open_softmax(context);
    for (int i = 0; i < N_RUNS; i++) expect_softmax(s);
    assert_int_equal(cd_n_crashes(), in_tiers ? 2 : 0);
    clg_session_free(s);
    clg_context_free(context);
}

TEST_GROUP(cd_begin, NULL)

int main(void) { return test_run_all(); }
