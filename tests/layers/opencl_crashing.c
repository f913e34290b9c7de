/* SPDX-License-Identifier: Apache-2.0
 *
 * An OpenCL layer (OPENCL_LAYERS of ocl-icd) that simulates a driver whose compiler crashes, in any
 * process. It is controlled by environment variables:
 *
 *   CLG_CRASH_IN     crash on programs whose source contains this string; if unset, on none
 *   CLG_CRASH_AND    if set, only on programs that also contain this string
 *   CLG_CRASH_NOT    if set, only on programs that do not contain this string
 *   CLG_CRASH_OPTIMIZING  1: only in builds with optimisation, 0: without; not at launches
 *   CLG_CRASH_AT     "build"; "launch", where PoCL compiles as well; or "create": of a kernel
 *   CLG_CRASH_BY     abort, fault, exit, loop, memory, kill; error: at a build the driver gets an
 *                    option with which nothing compiles, and reports the error, and a kernel is not
 *                    found in its program; or crowd: other processes keep the processor busy for
 *                    CROWD_MS, then it goes on
 *   CLG_CRASH_LOG    a file, to which each crash appends a byte
 *   CLG_CRASH_TIMES  if set, crash only until the log has this many bytes
 */
#define _GNU_SOURCE /* CPU_SET */
#define LAYER_NAME "clgraph's crashing compiler"
#include "opencl_layer.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PIECE_BYTES ((size_t)16 << 20)
#define N_CROWD 4
#define CROWD_MS 5500

static int is(const char *variable, const char *value)
{
    const char *found = getenv(variable);
    return found && strcmp(found, value) == 0;
}

/* Appends a byte to the log; returns the log's length before, which is the number of crashes. */
static long note(void)
{
    const char *path = getenv("CLG_CRASH_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (!log) return 0;
    const long before = fseek(log, 0, SEEK_END) == 0 ? ftell(log) : 0;
    (void)fputc('x', log);
    (void)fclose(log);
    return before;
}

/* Returns whether the compiler must fail once more; logs the failure. */
static int is_due(void)
{
    const char *times = getenv("CLG_CRASH_TIMES");
    return note() < (times ? atol(times) : 1L << 30);
}

static long now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Computes for CROWD_MS on one processor, which N_CROWD other processes share. */
static void be_in_crowd(void)
{
    cpu_set_t all, one;
    pid_t crowd[N_CROWD];
    int first = 0;
    if (sched_getaffinity(0, sizeof all, &all) != 0) abort();
    while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &all)) first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) abort();
    const long end = now_ms() + CROWD_MS;
    for (int i = 0; i < N_CROWD; i++) {
        crowd[i] = fork();
        if (crowd[i] != 0) continue;
        while (now_ms() < end) continue;
        _exit(0);
    }
    while (now_ms() < end) continue;
    for (int i = 0; i < N_CROWD; i++)
        if (crowd[i] > 0) (void)waitpid(crowd[i], NULL, 0);
    (void)sched_setaffinity(0, sizeof all, &all);
}

static void die(void)
{
    if (is("CLG_CRASH_BY", "crowd")) {
        be_in_crowd();
        return;
    }
    fputs("crashing compiler: it happens now\n", stderr);
    if (is("CLG_CRASH_BY", "fault")) (void)raise(SIGSEGV);
    if (is("CLG_CRASH_BY", "exit")) exit(1);
    if (is("CLG_CRASH_BY", "kill")) (void)raise(SIGKILL);
    while (is("CLG_CRASH_BY", "loop")) (void)pause();
    while (is("CLG_CRASH_BY", "memory")) {
        volatile char *piece = malloc(PIECE_BYTES);
        for (size_t i = 0; piece && i < PIECE_BYTES; i += 1024) piece[i] = 1;
        (void)usleep(1000);
    }
    abort();
}

/* Returns whether to crash on this program. */
static int is_meant(cl_program program)
{
    const char *in = getenv("CLG_CRASH_IN"), *and = getenv("CLG_CRASH_AND"),
               *not = getenv("CLG_CRASH_NOT");
    size_t n = 0;
    if (!in || next->clGetProgramInfo(program, CL_PROGRAM_SOURCE, 0, NULL, &n) != CL_SUCCESS)
        return 0;
    char *text = calloc(n + 1, 1);
    const int found =
        text && next->clGetProgramInfo(program, CL_PROGRAM_SOURCE, n, text, NULL) == CL_SUCCESS &&
        strstr(text, in) != NULL && (!and || strstr(text, and)) && !(not &&strstr(text, not ));
    free(text);
    return found;
}

static cl_int CL_API_CALL wrap_clBuildProgram(
    cl_program program, cl_uint n_devices, const cl_device_id *devices, const char *options,
    void(CL_CALLBACK *notify)(cl_program program, void *user), void *user)
{
    const char *only = getenv("CLG_CRASH_OPTIMIZING");
    const int optimizes = !(options && strstr(options, "-cl-opt-disable"));
    if ((!only || (*only == '1') == optimizes) && is("CLG_CRASH_AT", "build") &&
        is_meant(program) && is_due()) {
        if (!is("CLG_CRASH_BY", "error")) die();
        options = "-D__kernel=@"; /* nothing compiles with that */
    }
    return next->clBuildProgram(program, n_devices, devices, options, notify, user);
}

static cl_int CL_API_CALL wrap_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
                                                      cl_uint n_dims, const size_t *offset,
                                                      const size_t *global, const size_t *local,
                                                      cl_uint n_wait, const cl_event *wait,
                                                      cl_event *event)
{
    cl_program program;
    if (is("CLG_CRASH_AT", "launch") &&
        next->clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof program, &program, NULL) ==
            CL_SUCCESS &&
        is_meant(program) && is_due())
        die();
    return next->clEnqueueNDRangeKernel(queue, kernel, n_dims, offset, global, local, n_wait, wait,
                                        event);
}

static cl_kernel CL_API_CALL wrap_clCreateKernel(cl_program program, const char *name, cl_int *code)
{
    if (is("CLG_CRASH_AT", "create") && is_meant(program) && is_due()) {
        if (!is("CLG_CRASH_BY", "error")) die();
        if (code) *code = CL_INVALID_KERNEL_NAME;
        return NULL;
    }
    return next->clCreateKernel(program, name, code);
}

static void fill(void)
{
    table.clCreateKernel = wrap_clCreateKernel;
    table.clBuildProgram = wrap_clBuildProgram;
    table.clEnqueueNDRangeKernel = wrap_clEnqueueNDRangeKernel;
}
