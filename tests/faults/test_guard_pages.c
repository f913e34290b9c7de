/* SPDX-License-Identifier: Apache-2.0
 *
 * The OpenCL layer with guard pages (tests/layers/opencl_guard.c) finds each access of a kernel
 * outside of its buffer, and changes nothing for kernels that stay inside. Each case is a process
 * of its own, which uses OpenCL directly.
 */
#include "support/unit.h"

#include "support/fixtures/ocl_platforms.h"
#include "support/platform.h"

#include <clgraph/opencl.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 25, BYTES = N * sizeof(cl_int), NO_OPENCL = 77 };

static const char source[] =
    "__kernel void get(__global const int *x, int at, __global int *y) { y[0] = x[at]; }\n"
    "__kernel void put(__global int *x, int at, __global int *y) { x[at] = 5; y[0] = 5; }\n";

/* A program of one launch: x has 25 integers, 0 to 24, and the kernel accesses x[at]. */
typedef struct guard_case {
    const char *where, *align; /* CLG_GUARD, CLG_GUARD_ALIGN */
    const char *kernel;
    cl_int at;
    cl_mem_flags flags;  /* of x */
    bool waits_for_user; /* the launch waits for an event that is completed after it */
    cl_int result;       /* of a process that ends well */
    int signal;          /* that ends the process, or 0 */
    const char *finding; /* what it then prints */
} guard_case;

typedef struct objects {
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    cl_mem x, y;
} objects;

static bool make(const guard_case *c, cl_int *data, objects *o)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_uint n = 0;
    cl_int code;
    const char *text = source;
    if (clGetPlatformIDs(1, &platform, &n) != CL_SUCCESS || n == 0 ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS)
        return false;
    o->context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    if (code == CL_SUCCESS) o->queue = clCreateCommandQueue(o->context, device, 0, &code);
    if (code == CL_SUCCESS)
        o->program = clCreateProgramWithSource(o->context, 1, &text, NULL, &code);
    if (code == CL_SUCCESS) code = clBuildProgram(o->program, 1, &device, "", NULL, NULL);
    if (code == CL_SUCCESS) o->kernel = clCreateKernel(o->program, c->kernel, &code);
    const bool has_host = c->flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR);
    if (code == CL_SUCCESS)
        o->x = clCreateBuffer(o->context, c->flags, BYTES, has_host ? data : NULL, &code);
    if (code == CL_SUCCESS && !has_host)
        code = clEnqueueWriteBuffer(o->queue, o->x, CL_TRUE, 0, BYTES, data, 0, NULL, NULL);
    if (code == CL_SUCCESS)
        o->y = clCreateBuffer(o->context, CL_MEM_READ_WRITE, sizeof(cl_int), NULL, &code);
    return code == CL_SUCCESS;
}

static bool launch(const guard_case *c, const objects *o, cl_int *out_result)
{
    const size_t one = 1;
    cl_int code = clSetKernelArg(o->kernel, 0, sizeof o->x, &o->x);
    cl_event event = NULL;
    if (c->waits_for_user) event = clCreateUserEvent(o->context, NULL);
    code |= clSetKernelArg(o->kernel, 1, sizeof c->at, &c->at);
    code |= clSetKernelArg(o->kernel, 2, sizeof o->y, &o->y);
    code |= clEnqueueNDRangeKernel(o->queue, o->kernel, 1, NULL, &one, &one, event != NULL,
                                   event ? &event : NULL, NULL);
    if (event) code |= clSetUserEventStatus(event, CL_COMPLETE);
    code |= clEnqueueReadBuffer(o->queue, o->y, CL_TRUE, 0, sizeof *out_result, out_result, 0, NULL,
                                NULL);
    if (event) code |= clReleaseEvent(event);
    return code == CL_SUCCESS;
}

static int exit_code;

/* Called after the layer's own function, before those of the parent, which remove its files. */
static void end_child(void) { _exit(exit_code); }

static void end(int code)
{
    exit_code = code;
    exit(code);
}

/* Runs a case and ends the process: 0 when the result is right. */
static void run(const guard_case *c)
{
    cl_int data[N], result = -100;
    objects o = {NULL};
    for (cl_int i = 0; i < N; i++) data[i] = i;
    (void)platform_set_env("CLG_GUARD", c->where);
    (void)platform_set_env("CLG_GUARD_ALIGN", c->align);
    (void)platform_set_env("CLG_GUARD_REPORT", "1");
    (void)atexit(end_child);
    if (!make(c, data, &o)) end(NO_OPENCL);
    if (!launch(c, &o, &result)) end(2);
    (void)clReleaseMemObject(o.x);
    (void)clReleaseMemObject(o.y);
    (void)clReleaseKernel(o.kernel);
    (void)clReleaseProgram(o.program);
    (void)clReleaseCommandQueue(o.queue);
    (void)clReleaseContext(o.context);
    end(result == c->result ? 0 : 1);
}

/* Runs a case in a process; sets its status and what it wrote to stderr. */
static int run_apart(const guard_case *c, char *text, size_t size)
{
    int ends[2], status = 0;
    size_t n = 0;
    assert_int_equal(pipe(ends), 0);
    (void)fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)signal(SIGSEGV, SIG_DFL); /* cmocka's handlers */
        (void)signal(SIGABRT, SIG_DFL);
        if (dup2(ends[1], STDERR_FILENO) < 0) _exit(3);
        (void)close(ends[0]);
        run(c);
    }
    (void)close(ends[1]);
    for (ssize_t got; n < size - 1 && (got = read(ends[0], text + n, size - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = '\0';
    (void)close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void check(const guard_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const guard_case *c = &cases[i];
        char text[8192];
        const int status = run_apart(c, text, sizeof text);
        const int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        if (WIFEXITED(status) && WEXITSTATUS(status) == NO_OPENCL) fail_msg("there is no device");
        if (number != c->signal || (number == 0 && WEXITSTATUS(status) != 0) ||
            !strstr(text, c->signal ? c->finding : "guard pages: 2 buffers, 1 launches\n"))
            fail_msg("%s, %s, %s x[%d]: status %d: %s", c->where, c->align, c->kernel, c->at,
                     status, text);
    }
}

#define CHECK(cases) check(cases, sizeof(cases) / sizeof *(cases))
#define RW CL_MEM_READ_WRITE
#define OF_100(kernel) " buffer 1 of 100 bytes; the last launch was of kernel '" kernel "'\n"

TEST(guard_pages__kernels_that_stay_inside)
{
    static const guard_case cases[] = {
        {"after", "64", "get", 24, RW, false, 24, 0, NULL},
        {"after", "4", "get", 0, RW, false, 0, 0, NULL},
        {"before", "64", "get", 24, RW, false, 24, 0, NULL},
        {"before", "64", "put", 24, RW, false, 5, 0, NULL},
        {"after", "4", "put", 0, RW | CL_MEM_ALLOC_HOST_PTR, false, 5, 0, NULL},
        {"after", "4", "get", 24, RW | CL_MEM_COPY_HOST_PTR, false, 24, 0, NULL},
        {"after", "4", "get", 24, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, false, 24, 0, NULL},
        {"after", "64", "get", 7, RW, true, 7, 0, NULL},
    };
    CHECK(cases);
}

TEST(guard_pages__reads)
{
    static const guard_case cases[] = {
        {"after", "4", "get", 25, RW, false, 0, SIGSEGV,
         "access 0 bytes after the end of" OF_100("get")},
        {"after", "64", "get", 32, RW, false, 0, SIGSEGV,
         "access 28 bytes after the end of" OF_100("get")},
        {"after", "64", "get", 100000, RW, false, 0, SIGSEGV,
         "access 399900 bytes after the end of" OF_100("get")},
        {"before", "64", "get", -1, RW, false, 0, SIGSEGV, "access 4 bytes before" OF_100("get")},
        {"after", "4", "get", 25, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, false, 0, SIGSEGV,
         "access 0 bytes after the end of" OF_100("get")},
        /* In the slack: NaNs and -1. */
        {"after", "64", "get", 25, RW, false, -1, 0, NULL},
        {"after", "64", "get", -1, RW, false, -1, 0, NULL},
    };
    CHECK(cases);
}

TEST(guard_pages__writes)
{
    static const guard_case cases[] = {
        {"after", "4", "put", 25, RW, false, 0, SIGSEGV,
         "access 0 bytes after the end of" OF_100("put")},
        {"after", "64", "put", 25, RW, false, 0, SIGABRT,
         "write 0 bytes after the end of" OF_100("put")},
        {"after", "64", "put", -2, RW, false, 0, SIGABRT, "write 8 bytes before" OF_100("put")},
        {"before", "64", "put", -1, RW, false, 0, SIGSEGV, "access 4 bytes before" OF_100("put")},
        {"before", "64", "put", 900, RW, false, 0, SIGABRT,
         "write 3500 bytes after the end of" OF_100("put")},
        /* Found at the release: the launch was not waited for. */
        {"after", "64", "put", 26, RW, true, 0, SIGABRT,
         "write 4 bytes after the end of" OF_100("put")},
    };
    CHECK(cases);
}

int main(void)
{
    ocl_platforms_show_pocl();
    (void)platform_set_env("OPENCL_LAYERS", CLG_TEST_BUILD_DIR "/tests/layers/opencl_guard.so");
    return test_run_all();
}
