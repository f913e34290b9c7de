/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests sharing OpenCL objects with an application: its context, queue, memory and events must be
 * retained and released, and its kernels before and after a run must be ordered with the run's
 * kernels.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/literals.h"

#include <clgraph/inspect.h>
#include <clgraph/opencl.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { N = 37, OFFSET = 3, TOTAL = 256 };

/* The application's OpenCL objects. */
static cl_platform_id platform;
static cl_device_id device;
static cl_context app;
static cl_command_queue queue;
static cl_kernel fill;
static cl_mem memory; /* TOTAL floats */

static const char fill_text[] = "__kernel void fill(__global float *x, float a)\n"
                                "{\n    const int i = (int)get_global_id(0);\n"
                                "    x[i] = a * (float)(i - 20);\n}\n";

static int open_app(void **state)
{
    const char *text = fill_text;
    cl_int error;
    (void)state;
    ocl_platforms_show_pocl();
    error = clGetPlatformIDs(1, &platform, NULL);
    if (error == CL_SUCCESS) error = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
    if (error == CL_SUCCESS) app = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    if (error == CL_SUCCESS) queue = clCreateCommandQueue(app, device, 0, &error);
    cl_program program = NULL;
    if (error == CL_SUCCESS) program = clCreateProgramWithSource(app, 1, &text, NULL, &error);
    if (error == CL_SUCCESS) error = clBuildProgram(program, 1, &device, "", NULL, NULL);
    if (error == CL_SUCCESS) fill = clCreateKernel(program, "fill", &error);
    if (program) (void)clReleaseProgram(program);
    if (error == CL_SUCCESS)
        memory = clCreateBuffer(app, CL_MEM_READ_WRITE, TOTAL * sizeof(float), NULL, &error);
    return error == CL_SUCCESS ? 0 : -1;
}

static int close_app(void **state)
{
    (void)state;
    (void)clReleaseMemObject(memory);
    (void)clReleaseKernel(fill);
    (void)clReleaseCommandQueue(queue);
    (void)clReleaseContext(app);
    return 0;
}

static void enqueue_fill(cl_command_queue q, float a, const cl_event *after)
{
    const size_t n = TOTAL;
    assert_int_equal(clSetKernelArg(fill, 0, sizeof memory, &memory), CL_SUCCESS);
    assert_int_equal(clSetKernelArg(fill, 1, sizeof a, &a), CL_SUCCESS);
    assert_int_equal(clEnqueueNDRangeKernel(q, fill, 1, NULL, &n, NULL, after ? 1 : 0, after, NULL),
                     CL_SUCCESS);
}

static cl_uint context_references(void)
{
    cl_uint n;
    assert_int_equal(clGetContextInfo(app, CL_CONTEXT_REFERENCE_COUNT, sizeof n, &n, NULL), 0);
    return n;
}

static cl_uint memory_references(void)
{
    cl_uint n;
    assert_int_equal(clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof n, &n, NULL), 0);
    return n;
}

static cl_uint queue_references(void)
{
    cl_uint n;
    assert_int_equal(clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof n, &n, NULL), 0);
    return n;
}

/* Waits up to a second for the reference count: PoCL releases a command's references in another
 * thread, shortly after the command has completed. */
static void expect_references(cl_uint (*references)(void), cl_uint expected)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    for (int i = 0; i < 1000 && references() != expected; i++) (void)nanosleep(&moment, NULL);
    assert_int_equal(references(), expected);
}

/* Creates y = Relu(x), with x of rank 1 and any length. */
static clg_session *relu_session(clg_context *context)
{
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 1, DIMS(-1), NULL));
    assert_ok(clg_builder_node(g, NULL, "Relu", "relu", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    return build_session(context, g, NULL);
}

/* Checks y after a run whose input is memory[OFFSET..OFFSET+N), filled with factor a. */
static void expect_relu(const float *y, float a)
{
    for (int i = 0; i < N; i++) {
        float x = a * (float)(OFFSET + i - 20);
        assert_true(y[i] == (x > 0 ? x : 0));
    }
}

static void set_memory_as_input(clg_context *context, clg_session *s)
{
    clg_value *x;
    assert_ok(clg_value_create_opencl(context, memory, OFFSET * sizeof(float), CLG_FLOAT32, 1,
                                      DIMS(N), &x));
    assert_ok(clg_session_set_input(s, "x", x));
    clg_value_free(x);
}

/* ---- queue and memory ------------------------------------------------------------------------ */

TEST(sharing__kernels_before_a_run_are_seen)
{
    clg_context *context;
    float y[N];
    enqueue_fill(queue, 0,
                 NULL); /* from here on the driver keeps a reference for the kernel's argument */
    assert_int_equal(clFinish(queue), CL_SUCCESS);
    const cl_uint of_context = context_references(), of_memory = memory_references(),
                  of_queue = queue_references();
    assert_ok(clg_context_create_opencl(app, device, queue, NULL, &context));
    assert_ptr_equal(clg_context_opencl(context), app);
    assert_ptr_equal(clg_context_opencl_device(context), device);
    clg_session *s = relu_session(context), *other;
    assert_ptr_equal(clg_session_opencl_queue(s), queue);
    assert_ok(clg_session_clone(s, &other));
    assert_ptr_not_equal(clg_session_opencl_queue(other), queue);
    set_memory_as_input(context, s);
    for (int i = 1; i <= 10; i++) {
        enqueue_fill(queue, (float)i, NULL); /* not waited for */
        assert_ok(clg_session_run(s));
        assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
        expect_relu(y, (float)i);
    }
    clg_context_free(context);
    clg_session_free(other);
    clg_session_free(s);
    expect_references(context_references, of_context);
    expect_references(memory_references, of_memory);
    expect_references(queue_references, of_queue);
}

TEST(sharing__the_queue_stays_when_values_are_kept)
{
    clg_context *context;
    float y[N];
    assert_ok(clg_context_create_opencl(app, device, queue, NULL, &context));
    clg_session *s = relu_session(context);
    set_memory_as_input(context, s);
    assert_ok(clg_session_keep_values(s, NULL, 0));
    assert_ptr_equal(clg_session_opencl_queue(s), queue);
    enqueue_fill(queue, 3, NULL);
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
    expect_relu(y, 3);
    clg_session_free(s);
    clg_context_free(context);
}

/* Checks y = x W where x and y are parts of one buffer of the application. */
static void multiply_within_memory(clg_context *context, clg_kernel_class kernels, bool no_blas)
{
    enum { K = 5, COLUMNS = 4, ROWS = 6, X = 7, Y = 90 };
    float all[TOTAL], w[K * COLUMNS], x[ROWS * K];
    clg_builder *g = start_graph();
    clg_session *s;
    clg_value *in, *out;
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    options.kernels = kernels;
    options.no_blas = no_blas;
    for (int i = 0; i < K * COLUMNS; i++) w[i] = (float)(i % 5 - 2);
    for (int i = 0; i < ROWS * K; i++) x[i] = (float)(i % 7 - 3);
    for (int i = 0; i < TOTAL; i++) all[i] = 1000;
    memcpy(all + X, x, sizeof x);
    assert_int_equal(
        clEnqueueWriteBuffer(queue, memory, CL_TRUE, 0, sizeof all, all, 0, NULL, NULL), 0);
    assert_int_equal(clFinish(queue), CL_SUCCESS); /* the session works in another queue */
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, K), NULL));
    assert_ok(sized_constant(g, "w", CLG_FLOAT32, 2, DIMS(K, COLUMNS), w));
    assert_ok(clg_builder_node(g, NULL, "MatMul", "product", 2, NAMES("x", "w"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    s = build_session(context, g, &options);
    assert_ok(clg_value_create_opencl(context, memory, X * sizeof(float), CLG_FLOAT32, 2,
                                      DIMS(ROWS, K), &in));
    assert_ok(clg_value_create_opencl(context, memory, Y * sizeof(float), CLG_FLOAT32, 2,
                                      DIMS(ROWS, COLUMNS), &out));
    assert_ok(clg_session_set_input(s, "x", in));
    assert_ok(clg_session_bind_output(s, "y", out));
    assert_ok(clg_session_run(s));
    assert_int_equal(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, sizeof all, all, 0, NULL, NULL),
                     0);
    for (int i = 0; i < TOTAL; i++) {
        float want = 1000;
        if (i >= X && i < X + ROWS * K) want = x[i - X];
        if (i >= Y && i < Y + ROWS * COLUMNS) {
            want = 0;
            for (int k = 0; k < K; k++)
                want += x[(i - Y) / COLUMNS * K + k] * w[k * COLUMNS + (i - Y) % COLUMNS];
        }
        if (all[i] != want) fail_msg("memory[%d] is %g, not %g", i, (double)all[i], (double)want);
    }
    clg_value_free(in);
    clg_value_free(out);
    clg_session_free(s);
}

TEST(sharing__parts_of_a_buffer_as_input_and_output)
{
    clg_context *context;
    assert_ok(clg_context_create_opencl(app, device, NULL, NULL, &context));
    multiply_within_memory(context, CLG_KERNELS_SIMD, true);
    multiply_within_memory(context, CLG_KERNELS_SIMT, true);
    multiply_within_memory(context, CLG_KERNELS_SIMT, false);
    clg_context_free(context);
}

TEST(sharing__memory_of_ours_is_seen)
{
    clg_context *context;
    clg_value *y;
    cl_mem seen;
    size_t offset;
    float got[N];
    assert_ok(clg_context_create_opencl(app, device, queue, NULL, &context));
    clg_session *s = relu_session(context);
    set_memory_as_input(context, s);
    enqueue_fill(queue, 2, NULL);
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_device(s, "y", &y));
    assert_ok(clg_value_opencl(y, &seen, &offset));
    assert_int_equal(
        clEnqueueReadBuffer(queue, seen, CL_TRUE, offset, sizeof got, got, 0, NULL, NULL), 0);
    expect_relu(got, 2);
    clg_value_free(y);
    assert_ok(clg_value_create(CLG_FLOAT32, 0, NULL, &y));
    assert_error(clg_value_opencl(y, &seen, &offset), CLG_ERROR_INVALID_ARGUMENT,
                 "not on a device");
    clg_value_free(y);
    clg_session_free(s);
    clg_context_free(context);
}

TEST(sharing__what_does_not_fit_is_refused)
{
    clg_context *context, *none;
    clg_value *v;
    cl_int error;
    const size_t unit = sizeof(float);
    assert_ok(clg_context_create_opencl(app, device, NULL, NULL, &context));
    assert_error(clg_value_create_opencl(context, memory, 2, CLG_FLOAT32, 1, DIMS(4), &v),
                 CLG_ERROR_INVALID_ARGUMENT, "offset 2");
    assert_null(v);
    assert_error(clg_value_create_opencl(context, memory, unit, CLG_FLOAT32, 1, DIMS(TOTAL), &v),
                 CLG_ERROR_INVALID_ARGUMENT, "too small");
    assert_error(
        clg_value_create_opencl(context, memory, unit * TOTAL + unit, CLG_FLOAT32, 0, NULL, &v),
        CLG_ERROR_INVALID_ARGUMENT, "too small");
    assert_error(clg_value_create_opencl(context, memory, 0, CLG_FLOAT32, 1, DIMS(-1), &v),
                 CLG_ERROR_INVALID_ARGUMENT, "negative");
    assert_error(clg_value_create_opencl(context, memory, 0, CLG_STRING, 1, DIMS(1), &v),
                 CLG_ERROR_INVALID_ARGUMENT, "string");
    assert_error(clg_value_create_opencl(context, NULL, 0, CLG_FLOAT32, 1, DIMS(1), &v),
                 CLG_ERROR_INVALID_ARGUMENT, "memory is NULL");
    cl_context stranger = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    cl_mem foreign = clCreateBuffer(stranger, CL_MEM_READ_WRITE, 64, NULL, &error);
    cl_command_queue wild =
        clCreateCommandQueue(app, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &error);
    assert_error(clg_value_create_opencl(context, foreign, 0, CLG_FLOAT32, 1, DIMS(4), &v),
                 CLG_ERROR_INVALID_ARGUMENT, "another OpenCL context");
    assert_error(clg_context_create_opencl(stranger, device, queue, NULL, &none),
                 CLG_ERROR_INVALID_ARGUMENT, "another OpenCL context");
    assert_null(none);
    assert_non_null(wild); /* PoCL has out-of-order queues */
    assert_error(clg_context_create_opencl(app, device, wild, NULL, &none),
                 CLG_ERROR_INVALID_ARGUMENT, "in order");
    (void)clReleaseCommandQueue(wild);
    (void)clReleaseMemObject(foreign);
    (void)clReleaseContext(stranger);
    clg_context_free(context);
}

/* ---- events ---------------------------------------------------------------------------------- */

static cl_int state_of(cl_event event)
{
    cl_int state;
    assert_int_equal(
        clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL), 0);
    return state;
}

TEST(events__a_run_waits_for_the_application)
{
    clg_context *context;
    cl_int error;
    cl_event go, done, marked;
    float y[N];
    assert_ok(clg_context_create_opencl(app, device, NULL, NULL, &context));
    clg_session *s = relu_session(context);
    set_memory_as_input(context, s);
    for (int i = 1; i <= 5; i++) {
        go = clCreateUserEvent(app, &error);
        assert_int_equal(error, CL_SUCCESS);
        assert_ok(clg_session_wait_for_events(s, 1, &go));
        assert_ok(clg_session_run_async(s));
        assert_ok(clg_session_event(s, &done));
        assert_true(state_of(done) > CL_COMPLETE);
        enqueue_fill(queue, (float)i, NULL); /* the run must not have begun before this */
        assert_int_equal(clFinish(queue), CL_SUCCESS);
        assert_true(state_of(done) > CL_COMPLETE);
        assert_int_equal(clSetUserEventStatus(go, CL_COMPLETE), CL_SUCCESS);
        assert_int_equal(clWaitForEvents(1, &done), CL_SUCCESS);
        assert_ok(clg_session_event(s, &marked)); /* both before and after the wait */
        assert_int_equal(clWaitForEvents(1, &marked), CL_SUCCESS);
        (void)clReleaseEvent(marked);
        assert_ok(clg_session_wait(s));
        assert_ok(clg_session_event(s, &marked));
        assert_int_equal(clWaitForEvents(1, &marked), CL_SUCCESS);
        (void)clReleaseEvent(marked);
        assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
        expect_relu(y, (float)i);
        (void)clReleaseEvent(done);
        (void)clReleaseEvent(go);
    }
    clg_session_free(s);
    clg_context_free(context);
}

TEST(events__the_application_waits_for_a_run)
{
    clg_context *context;
    clg_value *out;
    cl_int error;
    cl_event go, done;
    float y[N];
    cl_mem target = clCreateBuffer(app, CL_MEM_READ_WRITE, sizeof y, NULL, &error);
    cl_mem copy = clCreateBuffer(app, CL_MEM_READ_WRITE, sizeof y, NULL, &error);
    assert_int_equal(error, CL_SUCCESS);
    assert_ok(clg_context_create_opencl(app, device, NULL, NULL, &context));
    clg_session *s = relu_session(context);
    set_memory_as_input(context, s);
    assert_ok(clg_value_create_opencl(context, target, 0, CLG_FLOAT32, 1, DIMS(N), &out));
    assert_ok(clg_session_bind_output(s, "y", out));
    clg_value_free(out);
    enqueue_fill(queue, 4, NULL);
    assert_int_equal(clFinish(queue), CL_SUCCESS);
    go = clCreateUserEvent(app, &error);
    assert_ok(clg_session_wait_for_events(s, 1, &go));
    assert_ok(clg_session_run_async(s));
    assert_ok(clg_session_event(s, &done));
    assert_int_equal(clEnqueueCopyBuffer(queue, target, copy, 0, 0, sizeof y, 1, &done, NULL), 0);
    assert_int_equal(clSetUserEventStatus(go, CL_COMPLETE), CL_SUCCESS);
    assert_int_equal(clEnqueueReadBuffer(queue, copy, CL_TRUE, 0, sizeof y, y, 0, NULL, NULL), 0);
    expect_relu(y, 4);
    assert_ok(clg_session_wait(s));
    (void)clReleaseEvent(go);
    (void)clReleaseEvent(done);
    clg_session_free(s);
    clg_context_free(context);
    (void)clReleaseMemObject(target);
    (void)clReleaseMemObject(copy);
}

/* Runs with n elements, more than in any earlier run, so that the launch is new to the driver. */
static void run_wider(clg_session *s, int n)
{
    static float x[1 << 16], y[1 << 16];
    for (int i = 0; i < n; i++) x[i] = (float)(i % 5 - 2);
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 1, DIMS(n), x));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y", y, (size_t)n * sizeof *y));
    for (int i = 0; i < n; i++) assert_true(y[i] == (x[i] > 0 ? x[i] : 0));
}

TEST(events__runs_that_wait_hold_nobody_up)
{
    clg_context *context;
    clg_session *waiting[2], *other;
    cl_int error;
    cl_event go, done[2];
    float y[N];
    assert_ok(clg_context_create_opencl(app, device, queue, NULL, &context));
    waiting[0] = relu_session(context);
    assert_ok(clg_session_clone(waiting[0], &waiting[1]));
    assert_ok(clg_session_clone(waiting[0], &other));
    for (int i = 1; i <= 4; i++) {
        const bool in_queue = i % 2 == 0; /* waits in the application's queue, before the run */
        enqueue_fill(queue, (float)i, NULL);
        assert_int_equal(clFinish(queue), CL_SUCCESS);
        go = clCreateUserEvent(app, &error);
        assert_int_equal(error, CL_SUCCESS);
        for (int k = 0; k < 2; k++) {
            set_memory_as_input(context, waiting[k]);
            if (k == 0 && in_queue)
                assert_int_equal(clEnqueueBarrierWithWaitList(queue, 1, &go, NULL), CL_SUCCESS);
            else
                assert_ok(clg_session_wait_for_events(waiting[k], 1, k ? &done[0] : &go));
            assert_ok(clg_session_run_async(waiting[k]));
            assert_ok(clg_session_event(waiting[k], &done[k]));
        }
        run_wider(other, (1 << 12) * i);
        assert_true(state_of(done[0]) > CL_COMPLETE && state_of(done[1]) > CL_COMPLETE);
        assert_int_equal(clSetUserEventStatus(go, CL_COMPLETE), CL_SUCCESS);
        for (int k = 0; k < 2; k++) {
            assert_ok(clg_session_wait(waiting[k]));
            assert_ok(clg_session_get_output_data(waiting[k], "y", y, sizeof y));
            expect_relu(y, (float)i);
            (void)clReleaseEvent(done[k]);
        }
        (void)clReleaseEvent(go);
    }
    for (int k = 0; k < 2; k++) clg_session_free(waiting[k]);
    clg_session_free(other);
    clg_context_free(context);
}

TEST(events__of_runs_that_fail_complete_too)
{
    clg_context *context;
    cl_int error;
    cl_event go, done, left;
    assert_ok(clg_context_create_opencl(app, device, NULL, NULL, &context));
    clg_session *s = relu_session(context);
    set_memory_as_input(context, s);
    assert_ok(clg_session_run(s));
    clg_status status = CLG_OK;
    for (int i = 0; i < 20 && status == CLG_OK; i++) { /* it may be too late to cancel a run */
        go = clCreateUserEvent(app, &error);
        assert_ok(clg_session_wait_for_events(s, 1, &go));
        assert_ok(clg_session_run_async(s));
        assert_ok(clg_session_event(s, &done));
        clg_session_cancel(s);
        assert_int_equal(clSetUserEventStatus(go, CL_COMPLETE), CL_SUCCESS);
        status = clg_session_wait(s);
        assert_int_equal(state_of(done) < 0, status != CLG_OK);
        (void)clReleaseEvent(done);
        (void)clReleaseEvent(go);
    }
    assert_int_equal(status, CLG_ERROR_CANCELLED);
    go = clCreateUserEvent(app, &error);
    assert_ok(clg_session_wait_for_events(s, 1, &go));
    assert_ok(clg_session_run_async(s));
    assert_ok(clg_session_event(s, &left));
    assert_int_equal(clSetUserEventStatus(go, CL_COMPLETE), CL_SUCCESS);
    clg_session_free(s); /* without waiting */
    assert_true(state_of(left) <= CL_COMPLETE);
    (void)clReleaseEvent(left);
    (void)clReleaseEvent(go);
    clg_context_free(context);
}

TEST_GROUP(open_app, close_app)
