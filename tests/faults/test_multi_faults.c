/* SPDX-License-Identifier: Apache-2.0
 *
 * Fails each allocation and each OpenCL call in turn during the creation and the runs of a session
 * over several devices: an error with a message or a right result, no leak, and a right result of
 * the next run.
 */
#include "support/unit.h"

#include "support/fixtures/multi/faulty_devices.h"
#include "support/fixtures/multi/multi_model.h"

#include <clgraph/opencl.h>

/* There is one set of numbers. */
static void set(clg_session *s, int64_t n_rows, int what)
{
    (void)what;
    multi_set(s, 0, n_rows);
}

static void expect(clg_session *s, int64_t n_rows, int what)
{
    (void)what;
    multi_results r;
    multi_results_make(n_rows, &r);
    multi_fetch(s, n_rows, &r);
    multi_expect(n_rows, &r);
    multi_results_free(&r);
}

static int open_group(void **state)
{
    const faulty_sessions sessions = {2, CLG_SPLIT_ROWS, multi_model, set, expect, 6};
    (void)state;
    return open_faulty_devices(&sessions);
}

static int close_group(void **state)
{
    (void)state;
    return close_faulty_devices();
}

TEST_GROUP(open_group, close_group)

TEST(multi_faults__each_allocation_of_a_creation_fails)
{
    assert_true(fail_each_of_a_creation() > 10);
}

TEST(multi_faults__each_allocation_of_a_run_fails)
{
    assert_true(fail_each_allocation_of_runs().n_failed > 5);
}

TEST(multi_faults__each_opencl_call_of_a_run_fails)
{
    assert_true(fail_each_call_of_runs(CL_OUT_OF_HOST_MEMORY, 1).n_failed > 5);
}
