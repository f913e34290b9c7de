/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions over several devices of which one is lost, or hangs, at any call of a run: the output is
 * complete and right, and the device takes part again once it was opened anew. The devices are
 * contexts on one, of which tests/layers/opencl_lost.c loses a single one.
 */
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/multi/lost_devices.h"
#include "support/fixtures/multi/multi_model.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/literals.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"

#include <clgraph/multi.h>
#include <clgraph/opencl.h>

#include <string.h>
#include <unistd.h>

enum { N = 24, HANG_MS = 3000, COMPILE_LIMIT_S = 2 };

TEST_GROUP(open_lost_devices, close_lost_devices)

static clg_session *open_multi_on(clg_context **contexts, size_t n, uint32_t hang_ms)
{
    clg_session *s;
    clg_multi_options options = CLG_MULTI_OPTIONS_INIT;
    clg_model *m = multi_model();
    options.hang_ms = hang_ms;
    assert_ok(clg_session_create_multi(contexts, n, m, NULL, &options, &s));
    clg_model_free(m);
    return s;
}

static clg_session *open_multi(uint32_t hang_ms)
{
    return open_multi_on(lost_contexts, LOST_DEVICES, hang_ms);
}

static size_t n_lost_parts(clg_session *s)
{
    clg_session_part *parts;
    size_t n, count = 0;
    uint64_t rows = 0;
    assert_ok(clg_session_parts(s, &parts, &n));
    for (size_t i = 0; i < n; i++) {
        count += parts[i].is_lost;
        rows += parts[i].rows;
    }
    assert_int_equal(rows, N);
    clg_session_parts_free(parts, n);
    return count;
}

static void expect_right(clg_session *s)
{
    multi_results r;
    multi_results_make(N, &r);
    multi_fetch(s, N, &r);
    multi_expect(N, &r);
    multi_results_free(&r);
}

static const lost_checks checks = {expect_right, n_lost_parts};

static void lose_at_each(opencl_lost_kind kind, int code, long step)
{
    clg_session *s = open_multi(0);
    multi_set(s, 0, N);
    for (int run = 0; run < 3; run++) assert_ok(clg_session_run(s));
    lose_at_each_call(s, &checks, kind, code, step);
    clg_session_free(s);
}

TEST(multi_lost__at_each_launch) { lose_at_each(OPENCL_LOST_LAUNCHES, CL_OUT_OF_RESOURCES, 1); }
TEST(multi_lost__at_each_wait) { lose_at_each(OPENCL_LOST_WAITS, OPENCL_LOST_MIXED, 1); }
TEST(multi_lost__at_each_read) { lose_at_each(OPENCL_LOST_READS, OPENCL_LOST_MIXED, 1); }
TEST(multi_lost__at_some_of_all_calls)
{
    lose_at_each(OPENCL_LOST_CALLS, CL_DEVICE_NOT_AVAILABLE, 5);
}

/* A device that is lost during a preparation leaves its rows to the others. */
TEST(multi_lost__in_a_preparation)
{
    clg_session *s = open_multi(0);
    multi_set(s, 0, N);
    for (long n = 0;; n += 3) {
        n_loss_warnings = 0;
        lost.arm(OPENCL_LOST_LAUNCHES, n, CL_OUT_OF_RESOURCES);
        assert_ok(clg_session_prepare(s, NULL, NULL));
        const bool has_fired = lost.has_fired();
        lost.arm(OPENCL_LOST_LAUNCHES, -1, 0);
        assert_int_equal(n_loss_warnings, has_fired);
        assert_ok(clg_session_run(s));
        expect_right(s);
        assert_int_equal(n_lost_parts(s), has_fired);
        if (!has_fired) break;
        recover_lost_devices();
    }
    clg_session_free(s);
}

TEST(multi_lost__one_after_the_other)
{
    clg_session *s = open_multi(0);
    multi_set(s, 0, N);
    lose_one_after_the_other(s, &checks);
    clg_session_free(s);
}

/* ---- devices that hang ----------------------------------------------------------------------- */

/* Lets a device hang in the first call of a kind of a run, which comes before its first launch:
 * PoCL before version 4 runs a new launch only while no other queue has one in flight (decision
 * 15), which a device that hangs in the middle prevents. Returns the run's time. */
static uint64_t run_that_hangs(clg_session *s, opencl_lost_kind kind)
{
    n_loss_warnings = 0;
    lost.arm(kind, 0, OPENCL_LOST_STALL);
    const uint64_t since_ns = time_now_ns();
    assert_ok(clg_session_run(s));
    const uint64_t time_ns = time_now_ns() - since_ns;
    assert_true(lost.has_fired());
    expect_right(s);
    assert_int_equal(n_lost_parts(s), 1);
    assert_int_equal(n_loss_warnings, 1);
    assert_ok(clg_session_run(s)); /* without it */
    expect_right(s);
    lost.release();
    while (n_lost_parts(s) > 0) { /* it comes back, and takes part again */
        (void)usleep(10000);
        assert_ok(clg_session_run(s));
        expect_right(s);
    }
    return time_ns;
}

/* The first call copies w, which is set again, to the device. */
TEST(multi_lost__that_hangs)
{
    clg_session *s = open_multi(HANG_MS);
    multi_set(s, 0, N);
    for (int run = 0; run < 3; run++) assert_ok(clg_session_run(s));
    expect_right(s);
    multi_set(s, 0, N);
    assert_true(run_that_hangs(s, OPENCL_LOST_CALLS) >= HANG_MS * UINT64_C(1000000));
    clg_session_free(s);
}

/* A run of another size is planned and creates kernels, which may take longer. */
TEST(multi_lost__that_hangs_while_it_plans)
{
    clg_context *contexts[2];
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    options.cache_dir = "";
    options.compile_limit_s = COMPILE_LIMIT_S;
    for (size_t i = 0; i < 2; i++)
        assert_ok(clg_context_create(ocl_platforms_test_device(), &options, &contexts[i]));
    clg_session *s = open_multi_on(contexts, 2, HANG_MS);
    multi_set(s, 0, 2 * N);
    assert_ok(clg_session_run(s));
    multi_set_rows(s, 0, N);
    assert_true(run_that_hangs(s, OPENCL_LOST_KERNELS) >=
                (HANG_MS + 5 * COMPILE_LIMIT_S * UINT64_C(1000)) * UINT64_C(1000000));
    clg_session_free(s);
    for (size_t i = 0; i < 2; i++) clg_context_free(contexts[i]);
}

/* The thread that hangs in the driver frees what it uses when it comes back. */
TEST(multi_lost__that_hangs_longer_than_the_session_lives)
{
    clg_session *s = open_multi(HANG_MS);
    const size_t n_live = memory_n_live();
    multi_set(s, 0, N);
    assert_ok(clg_session_run(s));
    multi_set(s, 0, N);
    lost.arm(OPENCL_LOST_CALLS, 0, OPENCL_LOST_STALL);
    assert_ok(clg_session_run(s));
    assert_true(lost.has_fired());
    expect_right(s);
    clg_session_free(s);
    lost.release();
    while (memory_n_live() >= n_live) (void)usleep(1000);
}
