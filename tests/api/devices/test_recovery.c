/* SPDX-License-Identifier: Apache-2.0
 *
 * What clg_context_recover promises after a loss of the device (tests/layers/opencl_lost.c): the
 * same bits as before, from sessions, clones and streams, also of several threads; what remains set
 * and what is lost; a device that is gone; an OpenCL context of the application. test_lost_device.c
 * loses the device at each call.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fakes/opencl_lost.h"
#include "support/fixtures/build_session.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/stream_rows.h"
#include "support/literals.h"

#include "base/memory.h"
#include "base/threads.h"

#include <clgraph/inspect.h>
#include <clgraph/opencl.h>

#include <string.h>

enum { K = 24, ROWS = 5 };

static opencl_lost lost;
static float x[ROWS * K];

/* Creates a session of y = x (2 w) + b, whose weight is computed on the device, and of z = -x. */
static clg_session *make_session(void)
{
    static const float two = 2;
    float w[K * K], b[K];
    clg_builder *g = start_graph();
    for (int i = 0; i < K * K; i++) w[i] = (float)((i * 7) % 13 - 6) * 0.37f;
    for (int i = 0; i < K; i++) b[i] = (float)i * 0.11f;
    for (int i = 0; i < ROWS * K; i++) x[i] = (float)((i * 5) % 17 - 8) * 0.23f;
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, K), NULL));
    assert_ok(sized_constant(g, "c", CLG_FLOAT32, 2, DIMS(K, K), w));
    assert_ok(sized_constant(g, "b", CLG_FLOAT32, 1, DIMS(K), b));
    assert_ok(sized_constant(g, "two", CLG_FLOAT32, 0, NULL, &two));
    assert_ok(clg_builder_node(g, NULL, "Mul", "", 2, NAMES("c", "two"), 1, NAMES("w")));
    assert_ok(clg_builder_node(g, NULL, "MatMul", "", 2, NAMES("x", "w"), 1, NAMES("p")));
    assert_ok(clg_builder_node(g, NULL, "Add", "", 2, NAMES("p", "b"), 1, NAMES("y")));
    assert_ok(clg_builder_node(g, NULL, "Neg", "", 1, NAMES("x"), 1, NAMES("z")));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_output(g, "z"));
    return build_session(context, g, NULL);
}

static void set_x(clg_session *s)
{
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(ROWS, K), x));
}

static clg_status run(clg_session *s, float *y)
{
    CLG_TRY(clg_session_run(s));
    return clg_session_get_output_data(s, "y", y, ROWS * K * sizeof *y);
}

/* Loses the device by a run of s. */
static void lose(clg_session *s)
{
    lost.arm(OPENCL_LOST_WAITS, 0, CL_OUT_OF_RESOURCES);
    assert_error(clg_session_run(s), CLG_ERROR_DEVICE_LOST, "CL_OUT_OF_RESOURCES");
    assert_non_null(strstr(clg_last_hint(), "clg_context_recover"));
    assert_true(lost.has_fired());
    lost.arm(OPENCL_LOST_WAITS, -1, 0);
}

static int open_group(void **state) { return opencl_lost_open(&lost) ? open_context(state) : -1; }

static int close_group(void **state)
{
    const int code = close_context(state);
    return lost.n_live() == 0 && memory_n_live() == 0 ? code : -1;
}

TEST_GROUP(open_group, close_group)

/* ---- sessions -------------------------------------------------------------------------------- */

TEST(recovery__does_nothing_while_the_device_answers)
{
    const cl_context before = clg_context_opencl(context);
    assert_ok(clg_context_recover(context));
    assert_ptr_equal(clg_context_opencl(context), before);
    assert_error(clg_context_recover(NULL), CLG_ERROR_INVALID_ARGUMENT, "context");
}

TEST(recovery__gives_the_same_bits_in_sessions_and_clones)
{
    float before[ROWS * K], after[ROWS * K];
    clg_session *s = make_session(), *clone, *late;
    const clg_device_info *info = clg_context_device(context);
    set_x(s);
    assert_ok(clg_session_clone(s, &clone));
    set_x(clone);
    assert_ok(run(s, before));
    assert_ok(run(clone, after));
    for (int round = 0; round < 3; round++) {
        const cl_context old = clg_context_opencl(context);
        lose(round % 2 ? clone : s);
        assert_error(run(s, after), CLG_ERROR_DEVICE_LOST, "was lost");
        assert_error(run(clone, after), CLG_ERROR_DEVICE_LOST, "was lost");
        assert_ok(clg_context_recover(context));
        assert_ptr_not_equal(clg_context_opencl(context), old);
        assert_ptr_equal(clg_context_device(context), info);
        memset(after, 0, sizeof after);
        assert_ok(clg_session_clone(s, &late)); /* of a session that is not rebuilt yet */
        set_x(late);
        assert_ok(run(late, after));
        assert_memory_equal(before, after, sizeof before);
        clg_session_free(late);
        assert_ok(run(s, after)); /* x is still set */
        assert_memory_equal(before, after, sizeof before);
        memset(after, 0, sizeof after);
        assert_ok(run(clone, after));
        assert_memory_equal(before, after, sizeof before);
        assert_int_equal(lost.n_touches(), 0);
        assert_int_equal(lost.n_lost(), 0);
    }
    clg_session_free(s);
    clg_session_free(clone);
}

TEST(recovery__is_not_needed_to_free_everything)
{
    clg_session *s = make_session(), *clone;
    clg_value *v;
    set_x(s);
    assert_ok(clg_session_clone(s, &clone));
    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 1, DIMS(3), &v));
    lose(s);
    clg_session_free(s);
    clg_value_free(v);
    clg_session_free(clone);
    assert_int_equal(lost.n_touches(), 0);
    assert_ok(clg_context_recover(context));
    assert_int_equal(lost.n_lost(), 0);
}

TEST(recovery__prepares_keeps_values_and_reports_memory)
{
    float y[ROWS * K], p[ROWS * K];
    clg_memory_estimate m = CLG_MEMORY_ESTIMATE_INIT;
    clg_session *s = make_session();
    set_x(s);
    lose(s);
    assert_error(clg_session_prepare(s, NULL, NULL), CLG_ERROR_DEVICE_LOST, "was lost");
    assert_error(clg_session_memory(s, &m), CLG_ERROR_DEVICE_LOST, "was lost");
    assert_ok(clg_context_recover(context));
    assert_ok(clg_session_prepare(s, NULL, NULL));
    lose(s);
    assert_ok(clg_context_recover(context));
    assert_ok(clg_session_memory(s, &m));
    assert_true(m.slab_bytes + m.io_bytes > 0);
    lose(s);
    assert_error(clg_session_keep_values(s, NAMES("p"), 1), CLG_ERROR_DEVICE_LOST, "was lost");
    assert_ok(clg_context_recover(context));
    assert_ok(clg_session_keep_values(s, NAMES("p"), 1));
    assert_ok(run(s, y));
    lose(s);
    assert_ok(clg_context_recover(context)); /* p is still kept */
    assert_ok(run(s, y));
    assert_ok(clg_session_get_output_data(s, "p", p, sizeof p));
    clg_session_free(s);
}

TEST(recovery__of_a_session_that_ran_asynchronously)
{
    float before[ROWS * K], after[ROWS * K];
    cl_event event;
    clg_session *s = make_session();
    set_x(s);
    assert_ok(run(s, before));
    lost.arm(OPENCL_LOST_LAUNCHES, 0, OPENCL_LOST_MIXED);
    assert_ok(clg_session_run_async(s));
    assert_error(clg_session_wait(s), CLG_ERROR_DEVICE_LOST, "CL_INVALID_COMMAND_QUEUE");
    assert_error(clg_session_event(s, &event), CLG_ERROR_DEVICE_LOST, "was lost");
    assert_null(event);
    assert_ok(clg_session_run_async(s));
    assert_error(clg_session_wait(s), CLG_ERROR_DEVICE_LOST, "was lost");
    assert_ok(clg_context_recover(context));
    assert_ok(clg_session_event(s, &event));
    assert_int_equal(clReleaseEvent(event), CL_SUCCESS);
    assert_ok(clg_session_run_async(s));
    assert_ok(clg_session_wait(s));
    assert_ok(clg_session_get_output_data(s, "y", after, sizeof after));
    assert_memory_equal(before, after, sizeof before);
    clg_session_free(s);
}

/* ---- what is lost ---------------------------------------------------------------------------- */

TEST(recovery__values_in_device_memory_are_lost)
{
    float y[ROWS * K], before[ROWS * K];
    clg_session *s = make_session();
    clg_value *in, *out, *host, *fresh;
    set_x(s);
    assert_ok(run(s, before));
    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 2, DIMS(ROWS, K), &in));
    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 2, DIMS(ROWS, K), &out));
    assert_ok(clg_value_write(in, x, sizeof x));
    assert_ok(clg_session_set_input(s, "x", in));
    assert_ok(clg_session_bind_output(s, "y", out));
    lose(s);
    assert_error(clg_value_read(in, y, sizeof y), CLG_ERROR_DEVICE_LOST, "was lost");
    assert_non_null(strstr(clg_last_hint(), "call clg_context_recover"));
    assert_error(clg_value_write(in, x, sizeof x), CLG_ERROR_DEVICE_LOST, "was lost");
    assert_error(clg_value_to_host(in, &host), CLG_ERROR_DEVICE_LOST, "was lost");
    assert_error(clg_value_create_device(context, CLG_FLOAT32, 0, NULL, &fresh),
                 CLG_ERROR_DEVICE_LOST, "was lost");
    assert_ok(clg_context_recover(context));
    assert_error(clg_value_read(in, y, sizeof y), CLG_ERROR_DEVICE_LOST, "was lost");
    assert_non_null(strstr(clg_last_hint(), "create values again"));
    assert_error(clg_session_run(s), CLG_ERROR_NOT_FOUND, "input 'x' is not set");
    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 2, DIMS(ROWS, K), &fresh));
    assert_ok(clg_value_write(fresh, x, sizeof x));
    assert_ok(clg_session_set_input(s, "x", fresh));
    clg_value_free(fresh);
    assert_error(clg_session_run(s), CLG_ERROR_INVALID_ARGUMENT, "output 'y'");
    assert_error(clg_session_bind_output(s, "y", out), CLG_ERROR_INVALID_ARGUMENT,
                 "device of another context");
    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 2, DIMS(ROWS, K), &fresh));
    assert_ok(clg_session_bind_output(s, "y", fresh));
    assert_ok(clg_session_run(s));
    assert_ok(clg_value_read(fresh, y, sizeof y));
    assert_memory_equal(before, y, sizeof y);
    assert_int_equal(lost.n_touches(), 0);
    clg_value_free(fresh);
    clg_value_free(in);
    clg_value_free(out);
    assert_int_equal(lost.n_lost(), 0);
    clg_session_free(s);
}

TEST(recovery__mapped_inputs_and_linked_state_are_set_again)
{
    float z[ROWS * K];
    void *mapped;
    clg_session *s = make_session();
    assert_ok(clg_session_map_input(s, "x", 2, DIMS(ROWS, K), &mapped));
    memcpy(mapped, x, sizeof x);
    assert_ok(clg_session_run(s));
    lose(s);
    assert_error(clg_session_map_input(s, "x", 2, DIMS(ROWS, K), &mapped), CLG_ERROR_DEVICE_LOST,
                 "was lost");
    assert_ok(clg_context_recover(context));
    assert_error(clg_session_run(s), CLG_ERROR_NOT_FOUND, "input 'x' is not set");
    assert_ok(clg_session_map_input(s, "x", 2, DIMS(ROWS, K), &mapped));
    memcpy(mapped, x, sizeof x);
    assert_ok(clg_session_run(s));

    set_x(s);
    assert_ok(clg_session_link(s, "z", "x")); /* x becomes -x in each run */
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_run(s));
    lose(s);
    assert_ok(clg_context_recover(context));
    assert_error(clg_session_run(s), CLG_ERROR_NOT_FOUND, "input 'x' is not set");
    set_x(s);
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "z", z, sizeof z));
    assert_memory_equal(x, z, sizeof z); /* twice, so the link is still there */
    clg_session_free(s);
}

TEST(recovery__inputs_may_be_set_before_and_after_it)
{
    float y[ROWS * K], before[ROWS * K];
    void *mapped;
    clg_session *s = make_session();
    clg_value *bound;
    set_x(s);
    assert_ok(run(s, before));
    assert_ok(clg_value_create(CLG_FLOAT32, 2, DIMS(ROWS, K), &bound));
    assert_ok(clg_session_bind_output(s, "y", bound));
    lose(s);
    set_x(s); /* host memory: nothing reaches the driver */
    assert_ok(clg_context_recover(context));
    assert_ok(clg_session_run(s));
    assert_memory_equal(clg_value_data(bound), before, sizeof before);
    assert_ok(clg_session_map_input(s, "x", 2, DIMS(ROWS, K), &mapped));
    lost.arm(OPENCL_LOST_WRITES, 0, CL_OUT_OF_RESOURCES);
    clg_value *v;
    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 0, NULL, &v));
    assert_error(clg_value_write(v, x, sizeof *x), CLG_ERROR_DEVICE_LOST, "clEnqueueWriteBuffer");
    lost.arm(OPENCL_LOST_WRITES, -1, 0);
    clg_value_free(v);
    assert_ok(clg_context_recover(context));
    set_x(s); /* in place of the lost, mapped memory */
    assert_ok(clg_session_bind_output(s, "y", NULL));
    assert_ok(run(s, y));
    assert_memory_equal(y, before, sizeof before);
    assert_int_equal(lost.n_touches(), 0);
    clg_value_free(bound);
    clg_session_free(s);
}

/* ---- devices that are gone, and the application's ------------------------------------------- */

TEST(recovery__of_a_device_that_is_gone)
{
    float before[ROWS * K], after[ROWS * K];
    clg_session *s = make_session();
    set_x(s);
    assert_ok(run(s, before));
    lose(s);
    lost.hide(true);
    for (int i = 0; i < 2; i++) {
        assert_error(clg_context_recover(context), CLG_ERROR_NO_DEVICE, "no driver lists it");
        assert_non_null(strstr(clg_last_hint(), "clg_context_recover"));
        assert_error(run(s, after), CLG_ERROR_DEVICE_LOST, "was lost");
    }
    assert_non_null(clg_context_device(context)->name);
    lost.hide(false);
    assert_ok(clg_context_recover(context));
    assert_ok(run(s, after));
    assert_memory_equal(before, after, sizeof before);
    assert_int_equal(lost.n_touches(), 0);
    clg_session_free(s);
}

TEST(recovery__cannot_replace_the_applications_opencl_context)
{
    cl_int code;
    cl_device_id device = clg_context_opencl_device(context);
    cl_context theirs = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    clg_context *shared, *ours = context;
    float y[ROWS * K];
    assert_int_equal(code, CL_SUCCESS);
    assert_ok(clg_context_create_opencl(theirs, device, NULL, NULL, &shared));
    context = shared;
    clg_session *s = make_session();
    context = ours;
    set_x(s);
    assert_ok(run(s, y));
    assert_ok(clg_context_recover(shared)); /* not lost */
    lose(s);
    assert_error(clg_context_recover(shared), CLG_ERROR_INVALID_ARGUMENT, "application");
    assert_error(run(s, y), CLG_ERROR_DEVICE_LOST, "was lost");
    clg_session_free(s);
    clg_context_free(shared);
    assert_int_equal(clReleaseContext(theirs), CL_SUCCESS);
    assert_ok(clg_context_recover(context)); /* all that existed was lost */
    assert_int_equal(lost.n_lost(), 0);
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = 3, RUNS = 40 };

typedef struct runner {
    clg_session *session;
    const float *expected;
    long n_lost, n_wrong;
    clg_status status; /* the first other error */
} runner;

/* Runs again and again, and recovers whenever the device is lost. */
static void *keep_running(void *argument)
{
    runner *r = argument;
    float y[ROWS * K];
    for (int i = 0; i < RUNS && r->status == CLG_OK; i++) {
        clg_status status = run(r->session, y);
        if (status == CLG_ERROR_DEVICE_LOST) {
            r->n_lost++;
            status = clg_context_recover(context);
        } else if (status == CLG_OK && memcmp(y, r->expected, sizeof y) != 0) {
            r->n_wrong++;
        }
        /* A loss during the recovery of another thread may look like a lack of memory. */
        if (status != CLG_OK && status != CLG_ERROR_OUT_OF_DEVICE_MEMORY) r->status = status;
    }
    return NULL;
}

TEST(recovery__by_several_threads_in_the_middle_of_runs)
{
    float before[ROWS * K];
    clg_session *s = make_session();
    runner runners[THREADS] = {{0}};
    thread threads[THREADS];
    long n_lost = 0;
    set_x(s);
    assert_ok(run(s, before));
    for (int i = 0; i < THREADS; i++) {
        if (i == 0)
            runners[i].session = s;
        else
            assert_ok(clg_session_clone(s, &runners[i].session));
        set_x(runners[i].session);
        runners[i].expected = before;
    }
    for (long round = 0; round < 12; round++) {
        lost.arm((opencl_lost_kind)(round % OPENCL_LOST_CALLS), 1 + 3 * round, CL_OUT_OF_RESOURCES);
        for (int i = 0; i < THREADS; i++)
            assert_ok(thread_start(&threads[i], keep_running, &runners[i]));
        for (int i = 0; i < THREADS; i++) thread_join(threads[i]);
        /* A thread may be between its check and a call of the driver; and one call explains an
         * error. */
        assert_true(lost.n_touches() <= 4 * THREADS);
    }
    lost.arm(OPENCL_LOST_CALLS, -1, 0);
    assert_ok(clg_context_recover(context));
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(runners[i].status, CLG_OK);
        assert_int_equal(runners[i].n_wrong, 0);
        n_lost += runners[i].n_lost;
        assert_ok(run(runners[i].session, before));
    }
    assert_true(n_lost > 0);
    assert_int_equal(lost.n_lost(), 0);
    for (int i = 0; i < THREADS; i++) clg_session_free(runners[i].session);
}

TEST(recovery__of_a_stream_over_two_sessions)
{
    clg_session *s[2];
    clg_model *model = stream_rows_model(-1);
    for (int i = 0; i < 2; i++) s[i] = stream_rows_session_of(context, model);
    clg_stream *stream = stream_rows_make(s, 2, 4, 3, STREAM_MEMORY_STAGED);
    for (int i = 0; i < 2; i++) clg_session_free(s[i]);
    clg_model_free(model);
    for (long n = 0; n < 8; n++) {
        stream_rows rows = {.n_rows = 60, .stream = stream};
        lost.arm(OPENCL_LOST_LAUNCHES, n, CL_OUT_OF_RESOURCES);
        assert_int_equal(clg_stream_run(stream, stream_rows_give, stream_rows_take, &rows),
                         CLG_ERROR_DEVICE_LOST);
        lost.arm(OPENCL_LOST_LAUNCHES, -1, 0);
        assert_int_equal(clg_stream_run(stream, stream_rows_give, stream_rows_take, &rows),
                         CLG_ERROR_DEVICE_LOST);
        assert_int_equal(lost.n_touches(), 0);
        assert_ok(clg_context_recover(context));
        stream_rows_run(stream, 60, 0);
    }
    assert_int_equal(lost.n_lost(), 0);
    clg_stream_free(stream);
}
