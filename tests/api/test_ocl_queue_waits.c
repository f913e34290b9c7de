/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests transfers and queues that wait for events instead of calling clFinish, as on drivers with
 * the quirk finished-queue-used. The test sets the quirk on every OpenCL platform of the machine.
 * Also tests waits that end with a failed event, and those for a read alone.
 */
#include "support/unit.h"

#include "support/fixtures/ocl_platforms.h"

#include "ocl/queue/queue.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

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
    assert_error(ocl_queue_finish(q), CLG_ERROR_DEVICE_LOST, "was lost: clFinish failed");
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

/* ---- waiting for a read ---------------------------------------------------------------------- */

/* A queue in which a read is followed by a barrier that waits for `gate`, and a write. */
typedef struct gated {
    ocl_queue *q;
    ocl_buffer *b;
    cl_event gate;
    float x[N], y[N], after[N];
} gated;

static void open_gated(ocl_context *ocl, gated *g)
{
    cl_int code;
    *g = (gated){.q = NULL};
    for (int i = 0; i < N; i++) {
        g->x[i] = (float)i;
        g->after[i] = (float)-i;
    }
    assert_ok(ocl_queue_create(ocl, &g->q));
    assert_ok(ocl_buffer_create(ocl, sizeof g->x, OCL_BUFFER_DEVICE, &g->b));
    g->gate = clCreateUserEvent(ocl_context_handle(ocl), &code);
    assert_int_equal(code, CL_SUCCESS);
}

static void enqueue_gated(gated *g)
{
    assert_ok(ocl_queue_write(g->q, g->b, 0, g->x, sizeof g->x, false));
    ocl_queue_keep_read(g->q);
    assert_ok(ocl_queue_read(g->q, g->b, 0, g->y, sizeof g->y, false));
    assert_int_equal(clEnqueueBarrierWithWaitList(g->q->handle, 1, &g->gate, NULL), CL_SUCCESS);
    assert_ok(ocl_queue_write(g->q, g->b, 0, g->after, sizeof g->after, false));
}

static void close_gated(gated *g)
{
    float now[N] = {0};
    assert_ok(ocl_queue_read(g->q, g->b, 0, now, sizeof now, true));
    assert_memory_equal(now, g->after, sizeof now);
    assert_ok(ocl_platforms_axpy(ocl_queue_context(g->q), g->q, "gated", 1.0f, N, 8, now));
    for (int i = 0; i < N; i++) assert_true(now[i] == (float)-i + 5.0f);
    (void)clReleaseEvent(g->gate);
    ocl_buffer_free(g->b);
    ocl_queue_free(g->q);
}

static void check_wait_read(ocl_context *ocl, void *user)
{
    gated g;
    (void)user;
    open_gated(ocl, &g);
    enqueue_gated(&g);
    assert_ok(ocl_queue_wait_read(g.q));
    assert_memory_equal(g.x, g.y, sizeof g.y);
    assert_true(ocl_queue_is_busy(g.q));
    assert_int_equal(clSetUserEventStatus(g.gate, CL_COMPLETE), CL_SUCCESS);
    close_gated(&g);
}

TEST_WITH(queue_waits__for_a_read_and_not_for_what_follows, NULL, ocl_platforms_leaks)
{
    (void)ocl_platforms_each(&(ocl_context_options){.cache_dir = NULL}, check_wait_read, NULL);
}

/* Without a read since ocl_queue_keep_read, and in the application's queue, all is waited for. */
static void check_wait_for_all(ocl_context *ocl, void *user)
{
    gated g;
    (void)user;
    open_gated(ocl, &g);
    assert_int_equal(clSetUserEventStatus(g.gate, CL_COMPLETE), CL_SUCCESS);
    enqueue_gated(&g);
    g.q->is_callers = true;
    assert_ok(ocl_queue_wait_read(g.q));
    assert_false(ocl_queue_is_busy(g.q));
    g.q->is_callers = false;
    ocl_queue_keep_read(g.q);
    assert_ok(ocl_queue_write(g.q, g.b, 0, g.after, sizeof g.after, false));
    assert_ok(ocl_queue_wait_read(g.q));
    assert_false(ocl_queue_is_busy(g.q));
    close_gated(&g);
}

TEST_WITH(queue_waits__for_all_where_a_read_is_not_enough, NULL, ocl_platforms_leaks)
{
    (void)ocl_platforms_each(&(ocl_context_options){.cache_dir = NULL}, check_wait_for_all, NULL);
}

static atomic_bool is_open;

static void *enter_alone(void *user)
{
    bool *was_open = user;
    const guard_place place = launch_guard_enter(NULL);
    *was_open = atomic_load(&is_open);
    launch_guard_leave(place, true);
    return NULL;
}

/* What must run alone waits for the rest of a queue that was left running. */
static void check_alone(ocl_context *ocl, void *user)
{
    static const launch_form form = {.kernel = {UINT64_MAX, 1}, .local = {1, 1, 1}};
    gated g;
    pthread_t id;
    bool was_open = false;
    (void)user;
    guard_place place = launch_guard_enter(&form);
    if (place == GUARD_ALONE) launch_guard_learn(&form);
    launch_guard_leave(place, true);
    open_gated(ocl, &g);
    g.q->place = launch_guard_enter(&form);
    assert_int_equal(g.q->place, GUARD_SHARED);
    enqueue_gated(&g);
    assert_ok(ocl_queue_wait_read(g.q));
    assert_int_equal(g.q->place, GUARD_OUTSIDE);
    atomic_store(&is_open, false);
    assert_int_equal(pthread_create(&id, NULL, enter_alone, &was_open), 0);
    (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    atomic_store(&is_open, true);
    assert_int_equal(clSetUserEventStatus(g.gate, CL_COMPLETE), CL_SUCCESS);
    assert_int_equal(pthread_join(id, NULL), 0);
    assert_true(was_open);
    close_gated(&g);
}

TEST_WITH(queue_waits__alone_means_without_what_was_left_running, NULL, ocl_platforms_leaks)
{
    (void)ocl_platforms_each(&(ocl_context_options){.cache_dir = NULL}, check_alone, NULL);
}
