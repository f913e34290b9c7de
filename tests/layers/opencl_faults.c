/* SPDX-License-Identifier: Apache-2.0
 *
 * An OpenCL layer (OPENCL_LAYERS of ocl-icd) that injects faults: it fails the N-th call that may
 * fail, once, and counts the live OpenCL objects. Calls by CLBlast pass through it as well.
 * For a whole process, CLG_FAULTS=CODE:N:K is read at start: the N-th call from 0 fails, and each
 * K-th one after it (0, or left out: none). With CLG_FAULTS_REPORT set, "faults: N calls failed" is
 * printed to stderr at the end.
 *
 * Releases never fail, nor does retaining a queue: CLBlast 1.7 ignores its status and then releases
 * the queue once too often. A clFinish that fails waits first: this simulates a lost device, not
 * memory that is still being written. Tests find the exported functions with dlsym; see
 * support/fakes/opencl_faults.h.
 */
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define LAYER_NAME "clgraph's faults"

#include "support/fakes/opencl_faults.h"

#include "opencl_layer.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_long n_calls;      /* since the layer was armed */
static atomic_long fail_at = -1; /* index of the call to fail; -1: none */
static atomic_long fail_every;   /* after that, each n-th fails; 0: none */
static atomic_long n_failed;     /* since the start of the process */
static atomic_int fail_code;
static atomic_bool has_fired;
static atomic_long n_live[OPENCL_FAULTS_KINDS];

/* ---- for the tests --------------------------------------------------------------------------- */

void opencl_faults_arm(long n, int code)
{
    atomic_store(&n_calls, 0);
    atomic_store(&has_fired, false);
    atomic_store(&fail_every, 0);
    atomic_store(&fail_code, code);
    atomic_store(&fail_at, n);
}

long opencl_faults_n_calls(void) { return atomic_load(&n_calls); }

bool opencl_faults_has_fired(void) { return atomic_load(&has_fired); }

long opencl_faults_n_live(opencl_faults_kind kind) { return atomic_load(&n_live[kind]); }

/* ---- what every wrapper does ----------------------------------------------------------------- */

static cl_int fault(void)
{
    const long i = atomic_fetch_add(&n_calls, 1);
    const long first = atomic_load(&fail_at), every = atomic_load(&fail_every);
    if (first < 0 || i < first) return CL_SUCCESS;
    if (i > first && (every == 0 || (i - first) % every != 0)) return CL_SUCCESS;
    atomic_store(&has_fired, true);
    (void)atomic_fetch_add(&n_failed, 1);
    return atomic_load(&fail_code);
}

static void born(opencl_faults_kind kind) { (void)atomic_fetch_add(&n_live[kind], 1); }

static void gone(opencl_faults_kind kind) { (void)atomic_fetch_sub(&n_live[kind], 1); }

/* Defines the wrapper of an OpenCL function that returns a status. */
#define CALL(name, params, args)                                                                   \
    static cl_int CL_API_CALL wrap_##name params                                                   \
    {                                                                                              \
        const cl_int code = fault();                                                               \
        return code == CL_SUCCESS ? next->name args : code;                                        \
    }

/* Defines a command whose last argument receives its event. */
#define COMMAND(name, params, args)                                                                \
    static cl_int CL_API_CALL wrap_##name params                                                   \
    {                                                                                              \
        cl_int code = fault();                                                                     \
        if (code == CL_SUCCESS) code = next->name args;                                            \
        if (code == CL_SUCCESS && event) born(OPENCL_FAULTS_EVENTS);                               \
        return code;                                                                               \
    }

/* Defines the wrapper of an OpenCL function that creates an object; `error` is its last
 * parameter. */
#define MAKER(type, name, kind, params, args)                                                      \
    static type CL_API_CALL wrap_##name params                                                     \
    {                                                                                              \
        const cl_int code = fault();                                                               \
        if (code != CL_SUCCESS) {                                                                  \
            if (error) *error = code;                                                              \
            return NULL;                                                                           \
        }                                                                                          \
        type made = next->name args;                                                               \
        if (made) born(kind);                                                                      \
        return made;                                                                               \
    }

#define REFERENCES(what, type, kind, may_fail)                                                     \
    static cl_int CL_API_CALL wrap_clRetain##what(type object)                                     \
    {                                                                                              \
        cl_int code = may_fail ? fault() : CL_SUCCESS;                                             \
        if (code == CL_SUCCESS) code = next->clRetain##what(object);                               \
        if (code == CL_SUCCESS) born(kind);                                                        \
        return code;                                                                               \
    }                                                                                              \
    static cl_int CL_API_CALL wrap_clRelease##what(type object)                                    \
    {                                                                                              \
        const cl_int code = next->clRelease##what(object);                                         \
        if (code == CL_SUCCESS) gone(kind);                                                        \
        return code;                                                                               \
    }

/* ---- objects --------------------------------------------------------------------------------- */

REFERENCES(Context, cl_context, OPENCL_FAULTS_CONTEXTS, true)
REFERENCES(CommandQueue, cl_command_queue, OPENCL_FAULTS_QUEUES, false)
REFERENCES(MemObject, cl_mem, OPENCL_FAULTS_BUFFERS, true)
REFERENCES(Program, cl_program, OPENCL_FAULTS_PROGRAMS, true)
REFERENCES(Kernel, cl_kernel, OPENCL_FAULTS_KERNELS, true)
REFERENCES(Event, cl_event, OPENCL_FAULTS_EVENTS, true)
REFERENCES(Device, cl_device_id, OPENCL_FAULTS_SUB_DEVICES, true)

MAKER(cl_context, clCreateContext, OPENCL_FAULTS_CONTEXTS,
      (const cl_context_properties *properties, cl_uint n, const cl_device_id *devices,
       void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user,
       cl_int *error),
      (properties, n, devices, notify, user, error))
MAKER(cl_command_queue, clCreateCommandQueue, OPENCL_FAULTS_QUEUES,
      (cl_context context, cl_device_id device, cl_command_queue_properties properties,
       cl_int *error),
      (context, device, properties, error))
MAKER(cl_mem, clCreateBuffer, OPENCL_FAULTS_BUFFERS,
      (cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *error),
      (context, flags, size, host, error))
CALL(clSetMemObjectDestructorCallback,
     (cl_mem memory, void(CL_CALLBACK *notify)(cl_mem, void *), void *user), (memory, notify, user))
MAKER(cl_program, clCreateProgramWithSource, OPENCL_FAULTS_PROGRAMS,
      (cl_context context, cl_uint n, const char **strings, const size_t *lengths, cl_int *error),
      (context, n, strings, lengths, error))
MAKER(cl_program, clCreateProgramWithBinary, OPENCL_FAULTS_PROGRAMS,
      (cl_context context, cl_uint n, const cl_device_id *devices, const size_t *lengths,
       const unsigned char **binaries, cl_int *states, cl_int *error),
      (context, n, devices, lengths, binaries, states, error))
MAKER(cl_event, clCreateUserEvent, OPENCL_FAULTS_EVENTS, (cl_context context, cl_int *error),
      (context, error))
MAKER(cl_kernel, clCreateKernel, OPENCL_FAULTS_KERNELS,
      (cl_program program, const char *name, cl_int *error), (program, name, error))

static cl_int CL_API_CALL wrap_clCreateSubDevices(cl_device_id device,
                                                  const cl_device_partition_property *properties,
                                                  cl_uint n, cl_device_id *out, cl_uint *out_n)
{
    cl_int code = fault();
    if (code == CL_SUCCESS) code = next->clCreateSubDevices(device, properties, n, out, out_n);
    if (code == CL_SUCCESS && out) born(OPENCL_FAULTS_SUB_DEVICES);
    return code;
}

/* ---- queries --------------------------------------------------------------------------------- */

CALL(clGetPlatformIDs, (cl_uint n, cl_platform_id *platforms, cl_uint *out_n),
     (n, platforms, out_n))
CALL(clGetPlatformInfo,
     (cl_platform_id platform, cl_platform_info what, size_t size, void *value, size_t *out_size),
     (platform, what, size, value, out_size))
CALL(clGetDeviceIDs,
     (cl_platform_id platform, cl_device_type type, cl_uint n, cl_device_id *devices,
      cl_uint *out_n),
     (platform, type, n, devices, out_n))
CALL(clGetDeviceInfo,
     (cl_device_id device, cl_device_info what, size_t size, void *value, size_t *out_size),
     (device, what, size, value, out_size))
CALL(clGetContextInfo,
     (cl_context context, cl_context_info what, size_t size, void *value, size_t *out_size),
     (context, what, size, value, out_size))
CALL(clGetCommandQueueInfo,
     (cl_command_queue queue, cl_command_queue_info what, size_t size, void *value,
      size_t *out_size),
     (queue, what, size, value, out_size))
CALL(clGetMemObjectInfo,
     (cl_mem memory, cl_mem_info what, size_t size, void *value, size_t *out_size),
     (memory, what, size, value, out_size))
CALL(clGetProgramInfo,
     (cl_program program, cl_program_info what, size_t size, void *value, size_t *out_size),
     (program, what, size, value, out_size))
CALL(clGetProgramBuildInfo,
     (cl_program program, cl_device_id device, cl_program_build_info what, size_t size, void *value,
      size_t *out_size),
     (program, device, what, size, value, out_size))
CALL(clGetKernelWorkGroupInfo,
     (cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what, size_t size,
      void *value, size_t *out_size),
     (kernel, device, what, size, value, out_size))
CALL(clGetEventProfilingInfo,
     (cl_event event, cl_profiling_info what, size_t size, void *value, size_t *out_size),
     (event, what, size, value, out_size))

/* ---- programs and commands ------------------------------------------------------------------- */

CALL(clBuildProgram,
     (cl_program program, cl_uint n, const cl_device_id *devices, const char *options,
      void(CL_CALLBACK *notify)(cl_program, void *), void *user),
     (program, n, devices, options, notify, user))
CALL(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t size, const void *value),
     (kernel, index, size, value))
CALL(clFlush, (cl_command_queue queue), (queue))
CALL(clWaitForEvents, (cl_uint n, const cl_event *events), (n, events))

static cl_int CL_API_CALL wrap_clFinish(cl_command_queue queue)
{
    const cl_int code = fault(), real = next->clFinish(queue);
    return code == CL_SUCCESS ? real : code;
}

COMMAND(clEnqueueReadBuffer,
        (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
         void *data, cl_uint n, const cl_event *waits, cl_event *event),
        (queue, buffer, blocking, offset, size, data, n, waits, event))
COMMAND(clEnqueueWriteBuffer,
        (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
         const void *data, cl_uint n, const cl_event *waits, cl_event *event),
        (queue, buffer, blocking, offset, size, data, n, waits, event))
COMMAND(clEnqueueCopyBuffer,
        (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
         size_t size, cl_uint n, const cl_event *waits, cl_event *event),
        (queue, from, to, from_offset, to_offset, size, n, waits, event))
COMMAND(clEnqueueFillBuffer,
        (cl_command_queue queue, cl_mem buffer, const void *pattern, size_t pattern_size,
         size_t offset, size_t size, cl_uint n, const cl_event *waits, cl_event *event),
        (queue, buffer, pattern, pattern_size, offset, size, n, waits, event))
COMMAND(clEnqueueUnmapMemObject,
        (cl_command_queue queue, cl_mem memory, void *data, cl_uint n, const cl_event *waits,
         cl_event *event),
        (queue, memory, data, n, waits, event))
COMMAND(clEnqueueNDRangeKernel,
        (cl_command_queue queue, cl_kernel kernel, cl_uint n_dims, const size_t *offset,
         const size_t *global, const size_t *local, cl_uint n, const cl_event *waits,
         cl_event *event),
        (queue, kernel, n_dims, offset, global, local, n, waits, event))
COMMAND(clEnqueueMarkerWithWaitList,
        (cl_command_queue queue, cl_uint n, const cl_event *waits, cl_event *event),
        (queue, n, waits, event))
COMMAND(clEnqueueBarrierWithWaitList,
        (cl_command_queue queue, cl_uint n, const cl_event *waits, cl_event *event),
        (queue, n, waits, event))

static void *CL_API_CALL wrap_clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer,
                                                 cl_bool blocking, cl_map_flags flags,
                                                 size_t offset, size_t size, cl_uint n,
                                                 const cl_event *waits, cl_event *event,
                                                 cl_int *error)
{
    const cl_int code = fault();
    if (code != CL_SUCCESS) {
        if (error) *error = code;
        return NULL;
    }
    void *data = next->clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, size, n, waits,
                                          event, error);
    if (data && event) born(OPENCL_FAULTS_EVENTS);
    return data;
}

/* ---- the layer ------------------------------------------------------------------------------- */

static void report(void)
{
    (void)fprintf(stderr, "faults: %ld calls failed\n", atomic_load(&n_failed));
}

/* Reads CLG_FAULTS. */
static void configure(void)
{
    const char *text = getenv("CLG_FAULTS");
    long code, n, every = 0;
    if (getenv("CLG_FAULTS_REPORT")) (void)atexit(report);
    if (!text || sscanf(text, "%ld:%ld:%ld", &code, &n, &every) < 2) return;
    opencl_faults_arm(n, (int)code);
    atomic_store(&fail_every, every);
}

#define OBJECT(what)                                                                               \
    table.clRetain##what = wrap_clRetain##what, table.clRelease##what = wrap_clRelease##what
#define USE(name) table.name = wrap_##name

static void fill(void)
{
    OBJECT(Context), OBJECT(CommandQueue), OBJECT(MemObject), OBJECT(Program), OBJECT(Kernel);
    OBJECT(Event), OBJECT(Device);
    USE(clSetMemObjectDestructorCallback);
    USE(clCreateContext), USE(clCreateCommandQueue), USE(clCreateBuffer),
        USE(clCreateProgramWithSource);
    USE(clCreateProgramWithBinary), USE(clCreateUserEvent), USE(clCreateKernel),
        USE(clCreateSubDevices);
    USE(clGetPlatformIDs), USE(clGetPlatformInfo), USE(clGetDeviceIDs), USE(clGetDeviceInfo);
    USE(clGetContextInfo), USE(clGetCommandQueueInfo), USE(clGetMemObjectInfo),
        USE(clGetProgramInfo);
    USE(clGetProgramBuildInfo), USE(clGetKernelWorkGroupInfo), USE(clGetEventProfilingInfo);
    USE(clBuildProgram), USE(clSetKernelArg), USE(clFlush), USE(clWaitForEvents), USE(clFinish);
    USE(clEnqueueReadBuffer), USE(clEnqueueWriteBuffer), USE(clEnqueueCopyBuffer),
        USE(clEnqueueFillBuffer);
    USE(clEnqueueUnmapMemObject), USE(clEnqueueNDRangeKernel), USE(clEnqueueMarkerWithWaitList);
    USE(clEnqueueBarrierWithWaitList), USE(clEnqueueMapBuffer);
    configure();
}
