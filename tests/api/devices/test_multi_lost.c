/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions over several devices of which one is lost, or hangs, at any call of a run: the output is
 * complete and right, and the device takes part again once it was opened anew. The devices are
 * contexts on one, of which tests/layers/opencl_lost.c loses a single one.
 */
#include "support/unit.h"

#include "support/fakes/opencl_lost.h"
#include "support/fixtures/build_session.h"
#include "support/fixtures/multi/multi_model.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include "base/memory.h"
#include "base/threads.h"

#include <clgraph/inspect.h>
#include <clgraph/multi.h>
#include <clgraph/opencl.h>

#include <string.h>
#include <unistd.h>

enum { N = 24, N_DEVICES = 3, HANG_MS = 3000 };

static opencl_lost lost;
static clg_context *contexts[N_DEVICES];
static int n_warnings;

static void listen(void *user, clg_log_level level, const char *message)
{
    (void)user;
    n_warnings += level <= CLG_LOG_WARNING && strstr(message, "lost") != NULL;
}

static int open_group(void **state)
{
    if (!opencl_lost_open(&lost) || open_context(state) != 0) return -1;
    contexts[0] = context;
    for (size_t i = 1; i < N_DEVICES; i++)
        if (clg_context_create("pocl", NULL, &contexts[i]) != CLG_OK) return -1;
    lost.alone(true);
    clg_set_log(listen, NULL, CLG_LOG_WARNING);
    return 0;
}

static int close_group(void **state)
{
    clg_set_log(NULL, NULL, CLG_LOG_WARNING);
    for (size_t i = 1; i < N_DEVICES; i++) clg_context_free(contexts[i]);
    const int code = close_context(state);
    return lost.n_live() == 0 && memory_n_live() == 0 ? code : -1;
}

TEST_GROUP(open_group, close_group)

static clg_session *open_multi(uint32_t hang_ms)
{
    clg_session *s;
    clg_multi_options options = CLG_MULTI_OPTIONS_INIT;
    clg_model *m = multi_model();
    options.hang_ms = hang_ms;
    assert_ok(clg_session_create_multi(contexts, N_DEVICES, m, NULL, &options, &s));
    clg_model_free(m);
    return s;
}

static void recover_all(void)
{
    for (size_t i = 0; i < N_DEVICES; i++) assert_ok(clg_context_recover(contexts[i]));
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

/* Loses one device at the n-th call of a kind, from the first to the last of a run. */
static void lose_at_each(opencl_lost_kind kind, int code, long step)
{
    clg_session *s = open_multi(0);
    long n_losses = 0;
    multi_set(s, 0, N);
    for (int run = 0; run < 3; run++) assert_ok(clg_session_run(s));
    for (long n = 0;; n += step) {
        n_warnings = 0;
        lost.arm(kind, n, code);
        assert_ok(clg_session_run(s));
        const bool has_fired = lost.has_fired();
        lost.arm(kind, -1, 0);
        expect_right(s);
        if (!has_fired) break;
        n_losses++;
        assert_int_equal(n_lost_parts(s), 1);
        assert_int_equal(n_warnings, 1);
        assert_ok(clg_session_run(s)); /* on those that are left */
        expect_right(s);
        recover_all();
        assert_ok(clg_session_run(s));
        expect_right(s);
        assert_int_equal(n_lost_parts(s), 0);
        assert_int_equal(lost.n_lost(), 0);
    }
    assert_true(n_losses >= 2);
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
        n_warnings = 0;
        lost.arm(OPENCL_LOST_LAUNCHES, n, CL_OUT_OF_RESOURCES);
        assert_ok(clg_session_prepare(s, NULL, NULL));
        const bool has_fired = lost.has_fired();
        lost.arm(OPENCL_LOST_LAUNCHES, -1, 0);
        assert_int_equal(n_warnings, has_fired);
        assert_ok(clg_session_run(s));
        expect_right(s);
        assert_int_equal(n_lost_parts(s), has_fired);
        if (!has_fired) break;
        recover_all();
    }
    clg_session_free(s);
}

TEST(multi_lost__one_after_the_other)
{
    clg_session *s = open_multi(0);
    clg_value *y;
    multi_set(s, 0, N);
    assert_ok(clg_session_run(s));
    for (size_t n = 1; n < N_DEVICES; n++) {
        lost.arm(OPENCL_LOST_LAUNCHES, 0, CL_OUT_OF_RESOURCES);
        assert_ok(clg_session_run(s));
        expect_right(s);
        assert_int_equal(n_lost_parts(s), n);
    }
    lost.arm(OPENCL_LOST_LAUNCHES, 0, CL_OUT_OF_RESOURCES);
    assert_error(clg_session_run(s), CLG_ERROR_DEVICE_LOST, "all devices of the session");
    assert_non_null(strstr(clg_last_hint(), "clg_context_recover"));
    assert_error(clg_session_run(s), CLG_ERROR_DEVICE_LOST, "all devices of the session");
    assert_error(clg_session_prepare(s, NULL, NULL), CLG_ERROR_DEVICE_LOST, "all devices");
    assert_error(clg_session_get_output(s, "y", &y), CLG_ERROR_NOT_FOUND, "'y'");
    lost.arm(OPENCL_LOST_LAUNCHES, -1, 0);
    recover_all();
    assert_ok(clg_session_run(s));
    expect_right(s);
    clg_session_free(s);
}

/* ---- devices that hang ----------------------------------------------------------------------- */

/* The device hangs in a call before its first launch: PoCL before version 4 runs a new launch only
 * while no other queue has one in flight (decision 15), which a device that hangs in the middle
 * prevents. */
TEST(multi_lost__that_hangs)
{

    clg_session *s = open_multi(HANG_MS);
    multi_set(s, 0, N);
    for (int run = 0; run < 3; run++) assert_ok(clg_session_run(s));
    expect_right(s);
    n_warnings = 0;
    lost.arm(OPENCL_LOST_CALLS, 0, OPENCL_LOST_STALL);
    assert_ok(clg_session_run(s));
    assert_true(lost.has_fired());
    expect_right(s);
    assert_int_equal(n_lost_parts(s), 1);
    assert_int_equal(n_warnings, 1);
    assert_ok(clg_session_run(s)); /* without it */
    expect_right(s);
    lost.release();
    while (n_lost_parts(s) > 0) { /* it comes back, and takes part again */
        (void)usleep(10000);
        assert_ok(clg_session_run(s));
        expect_right(s);
    }
    clg_session_free(s);
}

/* The thread that hangs in the driver frees what it uses when it comes back. */
TEST(multi_lost__that_hangs_longer_than_the_session_lives)
{
    clg_session *s = open_multi(HANG_MS);
    const size_t n_live = memory_n_live();
    multi_set(s, 0, N);
    assert_ok(clg_session_run(s));
    lost.arm(OPENCL_LOST_CALLS, 0, OPENCL_LOST_STALL);
    assert_ok(clg_session_run(s));
    assert_true(lost.has_fired());
    expect_right(s);
    clg_session_free(s);
    lost.release();
    while (memory_n_live() >= n_live) (void)usleep(1000);
}
