/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests transfers and queues that wait for events instead of calling clFinish, as on drivers with
 * the quirk finished-queue-used. The test sets the quirk on every OpenCL platform of the machine.
 * Also tests waits that end with a failed event.
 */
#include "support/unit.h"

#include "support/fixtures/ocl_platforms.h"

#include "ocl/queue/queue.h"

#include <string.h>

enum { N = 96 };

static size_t n_refused, n_finished;

static cl_int CL_API_CALL finish_well(cl_command_queue queue)
{
    n_finished++;
    return clFinish(queue);
}

static cl_int CL_API_CALL refuse_to_wait(cl_uint n, const cl_event *events)
{
    (void)n, (void)events;
    n_refused++;
    return CL_OUT_OF_HOST_MEMORY;
}

/* Checks that transfers and waits do not call clFinish, except once for each event wait that fails.
 * Restores the driver's own functions before any check. */
static void check_waits_by_event(ocl_context *ocl, void *user)
{
    (void)user;
    float x[N], y[N] = {0}, z[N] = {0};
    void *mapped;
    ocl_queue *q;
    ocl_buffer *b;
    for (int i = 0; i < N; i++) x[i] = (float)i;
    ocl->machine.caps[ocl->index].quirks |= (uint32_t)QUIRK_FINISHED_QUEUE_USED;
    assert_ok(ocl_queue_create(ocl, &q));
    assert_ok(ocl_buffer_create(ocl, sizeof x, OCL_BUFFER_HOST_VISIBLE, &b));
    const cl_api drivers = cl;
    n_refused = n_finished = 0;
    cl.Finish = finish_well;
    clg_status status = ocl_queue_write(q, b, 0, x, sizeof x, true);
    if (status == CLG_OK) status = ocl_queue_read(q, b, 0, y, sizeof y, true);
    if (status == CLG_OK) status = ocl_queue_map(q, b, 0, sizeof x, false, true, &mapped);
    if (status == CLG_OK) status = ocl_queue_unmap(q, b, mapped);
    if (status == CLG_OK) status = ocl_queue_finish(q);
    const size_t n_without = n_finished;
    cl.WaitForEvents = refuse_to_wait;
    if (status == CLG_OK) status = ocl_queue_read(q, b, 0, z, sizeof z, true);
    if (status == CLG_OK) status = ocl_queue_finish(q);
    cl = drivers;
    assert_ok(status);
    assert_int_equal(n_without, 0);
    assert_int_equal(n_refused, 2);
    assert_int_equal(n_finished, 2);
    assert_memory_equal(x, y, sizeof x);
    assert_memory_equal(x, z, sizeof x);
    assert_ok(ocl_platforms_axpy(ocl, q, "waits", 1.0f, N, 8, x));
    for (int i = 0; i < N; i++) assert_true(x[i] == (float)i + 5.0f);
    ocl_buffer_free(b);
    ocl_queue_free(q);
}

TEST_WITH(queue_waits__by_events_without_a_finish, NULL, ocl_platforms_leaks)
{
    (void)ocl_platforms_each(&(ocl_context_options){.cache_dir = NULL}, check_waits_by_event, NULL);
}

/* Waits, and fails with the error of a command that waits for an event that failed. */
static cl_int CL_API_CALL finish_after_failed_event(cl_command_queue queue)
{
    (void)clFinish(queue);
    return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
}

/* A failed event is a loss of the device only if it cannot be the application's. */
static void check_failed_events(ocl_context *ocl, void *user)
{
    (void)user;
    const float x = 1;
    float y[N];
    ocl_queue *q;
    ocl_buffer *b;
    ocl->machine.caps[ocl->index].quirks &= ~(uint32_t)QUIRK_FINISHED_QUEUE_USED;
    assert_ok(ocl_queue_create(ocl, &q));
    assert_ok(ocl_buffer_create(ocl, sizeof x, OCL_BUFFER_DEVICE, &b));
    for (int i = 0; i < 2; i++) {
        q->waits_for_others = i == 0;
        assert_ok(ocl_queue_write(q, b, 0, &x, sizeof x, false));
        const cl_api drivers = cl;
        cl.Finish = finish_after_failed_event;
        const clg_status status = ocl_queue_finish(q);
        cl = drivers;
        assert_error(status, CLG_ERROR_DEVICE_LOST, "EVENTS_IN_WAIT_LIST");
        assert_int_equal(ocl_context_is_lost(ocl), i == 1);
    }
    assert_error(ocl_queue_finish(q), CLG_ERROR_DEVICE_LOST, "was lost");
    atomic_store(&ocl->lost_code, CL_SUCCESS);
    assert_ok(ocl_queue_finish(q));
    memset(y, 0, sizeof y);
    assert_ok(ocl_platforms_axpy(ocl, q, "events", 1.0f, N, 8, y));
    ocl_buffer_free(b);
    ocl_queue_free(q);
}

TEST_WITH(queue__a_failed_event_of_the_application_is_not_a_loss, NULL, ocl_platforms_leaks)
{
    (void)ocl_platforms_each(&(ocl_context_options){.cache_dir = NULL}, check_failed_events, NULL);
}
