/* SPDX-License-Identifier: Apache-2.0
 *
 * Loses a real GPU's context, by a kernel that writes to an address of its own in the cl_context of
 * the library, and prints which codes the driver then returns from which calls; then whether
 * clg_context_recover makes the session run again, with the same bits:
 *
 *     build/tests/bench/lost_device [SELECTOR]
 *
 * Not for CPU devices, where such a kernel ends the process.
 */
#include "support/fixtures/sized_data.h"

#include "ocl/cl_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 64 };

#define NEED(call)                                                                                 \
    do {                                                                                           \
        clg_status need_ = (call);                                                                 \
        if (need_ != CLG_OK) {                                                                     \
            (void)printf("%s: %s: %s\n", #call, clg_status_name(need_), clg_last_error());         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static float x[SIDE * SIDE], w[SIDE * SIDE];

static clg_session *make_session(clg_context *context)
{
    static const int64_t dims[2] = {SIDE, SIDE};
    clg_builder *g;
    clg_model *m;
    clg_session *s;
    for (int i = 0; i < SIDE * SIDE; i++) x[i] = (float)(i % 17 - 8) * 0.1f;
    for (int i = 0; i < SIDE * SIDE; i++) w[i] = (float)(i % 23 - 11) * 0.07f;
    NEED(clg_builder_create(13, &g));
    NEED(clg_builder_input(g, "x", CLG_FLOAT32, 2, dims, NULL));
    NEED(sized_constant(g, "w", CLG_FLOAT32, 2, dims, w));
    NEED(clg_builder_node(g, NULL, "MatMul", "", 2, (const char *[]){"x", "w"}, 1,
                          (const char *[]){"y"}));
    NEED(clg_builder_output(g, "y"));
    NEED(clg_builder_build(g, &m));
    NEED(clg_session_create(context, m, NULL, &s));
    NEED(sized_input(s, "x", CLG_FLOAT32, 2, dims, x));
    clg_builder_free(g);
    clg_model_free(m);
    return s;
}

static void say(const char *call, cl_int code) { (void)printf("  %-28s %d\n", call, (int)code); }

/* Runs the faulting kernel, and calls the driver with its context and queue. */
static void lose(clg_context *context)
{
    static const char *const text = "__kernel void f(__global int *y, ulong at)\n"
                                    "{ *(volatile __global int *)(at + (ulong)y[0]) = 1; }\n";
    cl_context handle = clg_context_opencl(context);
    cl_device_id device = clg_context_opencl_device(context);
    const cl_ulong at = 0x10;
    const size_t one = 1;
    const cl_int zero = 0;
    cl_int code, back = 0;
    cl_command_queue q = cl.CreateCommandQueue(handle, device, 0, &code);
    cl_program p = cl.CreateProgramWithSource(handle, 1, (const char **)&text, NULL, &code);
    say("clBuildProgram", cl.BuildProgram(p, 1, &device, "", NULL, NULL));
    cl_kernel k = cl.CreateKernel(p, "f", &code);
    cl_mem y = cl.CreateBuffer(handle, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof zero,
                               (void *)(uintptr_t)&zero, &code);
    (void)cl.SetKernelArg(k, 0, sizeof y, (const void *)&y);
    (void)cl.SetKernelArg(k, 1, sizeof at, &at);
    say("clEnqueueNDRangeKernel",
        cl.EnqueueNDRangeKernel(q, k, 1, NULL, &one, NULL, 0, NULL, NULL));
    say("clFinish", cl.Finish(q));
    (void)printf("after that:\n");
    say("clFinish", cl.Finish(q));
    say("clFlush", cl.Flush(q));
    say("clEnqueueNDRangeKernel",
        cl.EnqueueNDRangeKernel(q, k, 1, NULL, &one, NULL, 0, NULL, NULL));
    say("clEnqueueReadBuffer",
        cl.EnqueueReadBuffer(q, y, CL_TRUE, 0, sizeof back, &back, 0, NULL, NULL));
    say("clEnqueueMarkerWithWaitList", cl.EnqueueMarkerWithWaitList(q, 0, NULL, NULL));
    say("clSetKernelArg", cl.SetKernelArg(k, 1, sizeof at, &at));
    cl_mem z = cl.CreateBuffer(handle, CL_MEM_READ_WRITE, 4096, NULL, &code);
    say("clCreateBuffer", code);
    cl_command_queue r = cl.CreateCommandQueue(handle, device, 0, &code);
    say("clCreateCommandQueue", code);
    if (z) say("clReleaseMemObject", cl.ReleaseMemObject(z));
    if (r) say("clReleaseCommandQueue", cl.ReleaseCommandQueue(r));
    say("clReleaseMemObject", cl.ReleaseMemObject(y));
    say("clReleaseKernel", cl.ReleaseKernel(k));
    say("clReleaseProgram", cl.ReleaseProgram(p));
    say("clReleaseCommandQueue", cl.ReleaseCommandQueue(q));
}

int main(int argc, char **argv)
{
    static float before[SIDE * SIDE], after[SIDE * SIDE];
    clg_context *context;
    NEED(clg_context_create(argc > 1 ? argv[1] : "gpu", NULL, &context));
    const clg_device_info *info = clg_context_device(context);
    (void)printf("%s, driver %s\n", info->name, info->driver);
    if (info->kind == CLG_DEVICE_CPU) return 77;
    clg_session *s = make_session(context);
    NEED(clg_session_run(s));
    NEED(clg_session_get_output_data(s, "y", before, sizeof before));
    lose(context);
    for (int i = 0; i < 2; i++) {
        const clg_status status = clg_session_run(s);
        (void)printf("clg_session_run: %s: %s\n", clg_status_name(status), clg_last_error());
    }
    NEED(clg_context_recover(context));
    NEED(clg_session_run(s));
    NEED(clg_session_get_output_data(s, "y", after, sizeof after));
    (void)printf("recovered: %s\n",
                 memcmp(before, after, sizeof before) ? "other bits" : "the same bits");
    clg_session_free(s);
    clg_context_free(context);
    return 0;
}
