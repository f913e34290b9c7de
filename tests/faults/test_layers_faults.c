/* SPDX-License-Identifier: Apache-2.0
 *
 * Fails each allocation and each OpenCL call in turn during the creation and the runs of a session
 * that divides nodes among devices: an error with a message or a right result, no leak, and a right
 * result of the next run.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"
#include "support/fixtures/layers/layers_model.h"
#include "support/fixtures/multi/faulty_devices.h"

#include <clgraph/opencl.h>

enum { ROWS = 3 };

static int open_group(void **state)
{
    const faulty_sessions sessions = {3,          CLG_SPLIT_LAYERS, layers_model,
                                      layers_set, layers_expect,    ROWS};
    (void)state;
    return open_faulty_devices(&sessions);
}

static int close_group(void **state)
{
    (void)state;
    return close_faulty_devices();
}

TEST_GROUP(open_group, close_group)

TEST(layers_faults__each_allocation_of_a_creation_fails)
{
    assert_true(fail_each_of_a_creation() > 100);
}

static clg_status clone_and_free(void *user)
{
    clg_session *clone = NULL;
    const clg_status status = clg_session_clone(user, &clone);
    assert_int_equal(status == CLG_OK, clone != NULL);
    clg_session_free(clone);
    return status;
}

TEST(layers_faults__each_allocation_of_a_clone_fails)
{
    clg_session *s = open_faulty();
    assert_true(fault_loop(clone_and_free, s) > 10);
    layers_set(s, ROWS, 1);
    assert_ok(clg_session_run(s));
    layers_expect(s, ROWS, 1);
    clg_session_free(s);
}

TEST(layers_faults__each_allocation_of_a_run_fails)
{
    assert_true(fail_each_allocation_of_runs().n_failed > 5);
}

TEST(layers_faults__each_opencl_call_of_a_run_fails)
{
    assert_true(fail_each_call_of_runs(CL_OUT_OF_HOST_MEMORY, 1).n_failed > 5);
}

/* The model is divided again then. */
TEST(layers_faults__each_opencl_call_of_a_run_finds_no_device_memory)
{
    assert_true(fail_each_call_of_runs(CL_MEM_OBJECT_ALLOCATION_FAILURE, 3).n_right > 0);
}
