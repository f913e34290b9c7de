/* SPDX-License-Identifier: Apache-2.0
 *
 * An OpenCL layer (OPENCL_LAYERS of ocl-icd) that runs the commands of some queues as late as the
 * specification allows, so that a program that does not order the commands of two queues gives
 * wrong results on every driver. CLG_DELAY selects these queues when they are created: `all`,
 * `even`, `odd`, `random:SEED`, or the index of one queue in the order of creation, from 0.
 *
 * A delayed command is passed to the driver only when something waits for it:
 *
 *   - clWaitForEvents, or a command of another queue, waits for its event or for that of a later
 *     command of its queue
 *   - clFinish of its queue
 *   - a blocking read or map in its queue
 *   - the release of the queue
 *
 * A blocking write captures its data and returns before it is executed, as on Intel's CPU runtime.
 * clFlush starts no command. The layer counts waits of other queues for commands that were not
 * flushed, since a driver may never start those.
 *
 * Maps use memory of the layer, which is copied at map and written back at unmap, as on a device
 * with separate memory; buffers with the application's memory (CL_MEM_USE_HOST_PTR) are mapped in
 * place. CLG_DELAY_REPORT=1 prints the counters to stderr at the end of the process.
 */
#define LAYER_NAME "clgraph's late commands"

#include "support/fakes/opencl_delay.h"

#include "layers/opencl_delay/late.h"

#include "opencl_layer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SHADOW_ALIGN 4096

typedef struct kernel_record {
    cl_kernel handle;
    kernel_arg args[MAX_ARGS];
    struct kernel_record *next;
} kernel_record;

/* The layer's copy of a mapped region, whose address the application gets. */
typedef struct shadow {
    void *data;
    cl_mem memory;
    size_t offset, size;
    bool is_written_back;
    struct shadow *next;
} shadow;

static kernel_record *kernels; /* guarded by late_lock, as are the following variables */
static shadow *shadows;
static unsigned n_queues; /* created since the start of the process, or since the last restart */

/* ---- for the tests --------------------------------------------------------------------------- */

static long counted(const long *counter)
{
    pthread_mutex_lock(&late_lock);
    const long n = *counter;
    pthread_mutex_unlock(&late_lock);
    return n;
}

long opencl_delay_n_late(void) { return counted(&late_n_run); }

long opencl_delay_n_unflushed(void) { return counted(&late_n_unflushed); }

void opencl_delay_restart(void)
{
    pthread_mutex_lock(&late_lock);
    n_queues = 0;
    pthread_mutex_unlock(&late_lock);
}

__attribute__((destructor)) static void report(void)
{
    if (getenv("CLG_DELAY_REPORT"))
        fprintf(stderr, "late commands: %ld, waited for without a flush: %ld\n", late_n_run,
                late_n_unflushed);
}

#define RELEASE(name, type, what)                                                                  \
    static cl_int CL_API_CALL wrap_##name(type object) { return late_release(what, object); }

RELEASE(clReleaseMemObject, cl_mem, RELEASE_MEMORY)
RELEASE(clReleaseKernel, cl_kernel, RELEASE_KERNEL)
RELEASE(clReleaseProgram, cl_program, RELEASE_PROGRAM)
RELEASE(clReleaseContext, cl_context, RELEASE_CONTEXT)

/* ---- transfers and launches ------------------------------------------------------------------ */

static cl_int CL_API_CALL wrap_clEnqueueWriteBuffer(cl_command_queue handle, cl_mem buffer,
                                                    cl_bool blocking, size_t offset, size_t size,
                                                    const void *data, cl_uint n,
                                                    const cl_event *waits, cl_event *event)
{
    command c = {.kind = WRITE, .handle = handle, .a = buffer, .offset_a = offset, .size = size};
    c.data = (void *)(uintptr_t)data;
    if (blocking) c.data = c.owned = late_copy(data, size);
    pthread_mutex_lock(&late_lock);
    const cl_int code = late_submit(&c, n, waits, event);
    queue *q = late_find_queue(handle);
    if (q && blocking) late_mark_flushed(q);
    pthread_mutex_unlock(&late_lock);
    if (q || !blocking || code != CL_SUCCESS) return code;
    return next->clFinish(handle);
}

static cl_int CL_API_CALL wrap_clEnqueueReadBuffer(cl_command_queue handle, cl_mem buffer,
                                                   cl_bool blocking, size_t offset, size_t size,
                                                   void *data, cl_uint n, const cl_event *waits,
                                                   cl_event *event)
{
    command c = {.kind = READ, .handle = handle, .a = buffer, .offset_a = offset, .size = size};
    c.data = data;
    return blocking ? late_submit_and_wait(&c, n, waits, event)
                    : late_submit_locked(&c, n, waits, event);
}

static cl_int CL_API_CALL wrap_clEnqueueCopyBuffer(cl_command_queue handle, cl_mem from, cl_mem to,
                                                   size_t from_offset, size_t to_offset,
                                                   size_t size, cl_uint n, const cl_event *waits,
                                                   cl_event *event)
{
    command c = {.kind = COPY, .handle = handle, .a = from, .b = to, .size = size};
    c.offset_a = from_offset;
    c.offset_b = to_offset;
    return late_submit_locked(&c, n, waits, event);
}

static cl_int CL_API_CALL wrap_clEnqueueFillBuffer(cl_command_queue handle, cl_mem buffer,
                                                   const void *pattern, size_t pattern_size,
                                                   size_t offset, size_t size, cl_uint n,
                                                   const cl_event *waits, cl_event *event)
{
    command c = {.kind = FILL, .handle = handle, .a = buffer, .offset_a = offset, .size = size};
    if (pattern_size > sizeof c.pattern) return CL_INVALID_VALUE;
    memcpy(c.pattern, pattern, pattern_size);
    c.pattern_size = pattern_size;
    return late_submit_locked(&c, n, waits, event);
}

static kernel_record *record_of(cl_kernel kernel)
{
    kernel_record *k = kernels;
    while (k && k->handle != kernel) k = k->next;
    if (k) return k;
    k = late_alloc(sizeof *k);
    k->handle = kernel;
    k->next = kernels;
    kernels = k;
    return k;
}

static cl_kernel CL_API_CALL wrap_clCreateKernel(cl_program program, const char *name,
                                                 cl_int *error)
{
    cl_kernel kernel = next->clCreateKernel(program, name, error);
    if (!kernel) return NULL;
    pthread_mutex_lock(&late_lock);
    kernel_record *k =
        record_of(kernel); /* may have the arguments of a released kernel with this handle */
    for (cl_uint i = 0; i < MAX_ARGS; i++) {
        free(k->args[i].data);
        k->args[i] = (kernel_arg){0};
    }
    pthread_mutex_unlock(&late_lock);
    return kernel;
}

static cl_int CL_API_CALL wrap_clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size,
                                              const void *value)
{
    pthread_mutex_lock(&late_lock);
    const cl_int code = next->clSetKernelArg(kernel, index, size, value);
    if (code == CL_SUCCESS && index < MAX_ARGS) {
        kernel_arg *a = &record_of(kernel)->args[index];
        free(a->data);
        *a = (kernel_arg){size, value ? late_copy(value, size) : NULL, true};
    } else if (code == CL_SUCCESS) {
        late_give_up("a kernel has too many arguments", (cl_int)index);
    }
    pthread_mutex_unlock(&late_lock);
    return code;
}

static cl_int CL_API_CALL wrap_clEnqueueNDRangeKernel(cl_command_queue handle, cl_kernel kernel,
                                                      cl_uint n_dims, const size_t *offset,
                                                      const size_t *global, const size_t *local,
                                                      cl_uint n, const cl_event *waits,
                                                      cl_event *event)
{
    command c = {.kind = LAUNCH, .handle = handle, .kernel = kernel, .n_dims = n_dims};
    if (n_dims < 1 || n_dims > 3 || !global) return CL_INVALID_VALUE;
    c.has_offset = offset != NULL;
    c.has_local = local != NULL;
    memcpy(c.global, global, n_dims * sizeof *global);
    if (offset) memcpy(c.offset, offset, n_dims * sizeof *offset);
    if (local) memcpy(c.local, local, n_dims * sizeof *local);
    pthread_mutex_lock(&late_lock);
    const kernel_record *k = record_of(kernel);
    for (cl_uint i = 0; i < MAX_ARGS; i++) {
        c.args[i] = k->args[i];
        if (k->args[i].data) c.args[i].data = late_copy(k->args[i].data, k->args[i].size);
    }
    const cl_int code = late_submit(&c, n, waits, event);
    pthread_mutex_unlock(&late_lock);
    return code;
}

static cl_int CL_API_CALL wrap_clEnqueueMarkerWithWaitList(cl_command_queue handle, cl_uint n,
                                                           const cl_event *waits, cl_event *event)
{
    command c = {.kind = MARKER, .handle = handle};
    return late_submit_locked(&c, n, waits, event);
}

static cl_int CL_API_CALL wrap_clEnqueueBarrierWithWaitList(cl_command_queue handle, cl_uint n,
                                                            const cl_event *waits, cl_event *event)
{
    command c = {.kind = BARRIER, .handle = handle};
    return late_submit_locked(&c, n, waits, event);
}

/* ---- maps ------------------------------------------------------------------------------------ */

static bool has_host_memory(cl_mem buffer)
{
    cl_mem_flags flags = 0;
    (void)next->clGetMemObjectInfo(buffer, CL_MEM_FLAGS, sizeof flags, &flags, NULL);
    return (flags & CL_MEM_USE_HOST_PTR) != 0;
}

static void *map_in_place(cl_command_queue handle, cl_mem buffer, cl_bool blocking,
                          cl_map_flags flags, size_t offset, size_t size, cl_uint n,
                          const cl_event *waits, cl_event *event, cl_int *error)
{
    command c = {.kind = BARRIER, .handle = handle};
    const cl_int code = late_submit_and_wait(&c, n, waits, NULL);
    if (code == CL_SUCCESS)
        return next->clEnqueueMapBuffer(handle, buffer, blocking, flags, offset, size, 0, NULL,
                                        event, error);
    if (error) *error = code;
    return NULL;
}

static void *CL_API_CALL wrap_clEnqueueMapBuffer(cl_command_queue handle, cl_mem buffer,
                                                 cl_bool blocking, cl_map_flags flags,
                                                 size_t offset, size_t size, cl_uint n,
                                                 const cl_event *waits, cl_event *event,
                                                 cl_int *error)
{
    if (has_host_memory(buffer))
        return map_in_place(handle, buffer, blocking, flags, offset, size, n, waits, event, error);
    const bool is_read = !(flags & CL_MAP_WRITE_INVALIDATE_REGION);
    shadow *s = late_alloc(sizeof *s);
    *s = (shadow){NULL, buffer, offset, size, (flags & ~(cl_map_flags)CL_MAP_READ) != 0, NULL};
    if (posix_memalign(&s->data, SHADOW_ALIGN, size ? size : 1)) late_give_up("out of memory", 0);
    memset(s->data, 0xA5, size);
    command c = {.kind = is_read ? READ : MARKER, .handle = handle, .a = buffer};
    c.offset_a = offset;
    c.size = size;
    c.data = s->data;
    const cl_int code = blocking ? late_submit_and_wait(&c, n, waits, event)
                                 : late_submit_locked(&c, n, waits, event);
    if (error) *error = code;
    if (code != CL_SUCCESS) {
        free(s->data);
        free(s);
        return NULL;
    }
    pthread_mutex_lock(&late_lock);
    void *data = s->data;
    s->next = shadows;
    shadows = s;
    pthread_mutex_unlock(&late_lock);
    return data;
}

static cl_int CL_API_CALL wrap_clEnqueueUnmapMemObject(cl_command_queue handle, cl_mem memory,
                                                       void *data, cl_uint n, const cl_event *waits,
                                                       cl_event *event)
{
    command c = {.kind = UNMAP, .handle = handle, .a = memory, .data = data};
    pthread_mutex_lock(&late_lock);
    shadow **link = &shadows;
    while (*link && ((*link)->data != data || (*link)->memory != memory)) link = &(*link)->next;
    shadow *s = *link;
    if (s) {
        *link = s->next;
        c.kind = s->is_written_back ? WRITE : MARKER;
        c.offset_a = s->offset;
        c.size = s->size;
        c.owned = data;
        free(s);
    }
    const cl_int code = late_submit(&c, n, waits, event);
    pthread_mutex_unlock(&late_lock);
    return code;
}

/* ---- events and waiting ---------------------------------------------------------------------- */

static cl_int CL_API_CALL wrap_clRetainEvent(cl_event handle)
{
    pthread_mutex_lock(&late_lock);
    late_event *e = late_find_event(handle);
    if (e) e->references++;
    pthread_mutex_unlock(&late_lock);
    return e ? CL_SUCCESS : next->clRetainEvent(handle);
}

static cl_int CL_API_CALL wrap_clReleaseEvent(cl_event handle)
{
    pthread_mutex_lock(&late_lock);
    late_event *e = late_find_event(handle);
    if (e) late_put_event(e);
    pthread_mutex_unlock(&late_lock);
    return e ? CL_SUCCESS : next->clReleaseEvent(handle);
}

static cl_int CL_API_CALL wrap_clWaitForEvents(cl_uint n, const cl_event *handles)
{
    cl_event real[MAX_WAITS];
    if (n > MAX_WAITS) late_give_up("too many events", (cl_int)n);
    pthread_mutex_lock(&late_lock);
    for (cl_uint i = 0; i < n; i++) real[i] = late_realize(handles[i]);
    pthread_mutex_unlock(&late_lock);
    return next->clWaitForEvents(n, real);
}

static cl_int CL_API_CALL wrap_clSetEventCallback(
    cl_event handle, cl_int state, void(CL_CALLBACK *notify)(cl_event, cl_int, void *), void *user)
{
    pthread_mutex_lock(&late_lock);
    cl_event real = late_realize(handle);
    pthread_mutex_unlock(&late_lock);
    return next->clSetEventCallback(real, state, notify, user);
}

static cl_int CL_API_CALL wrap_clGetEventInfo(cl_event handle, cl_event_info what, size_t size,
                                              void *value, size_t *out_size)
{
    static const cl_int queued = CL_QUEUED;
    pthread_mutex_lock(&late_lock);
    const late_event *e = late_find_event(handle);
    const bool is_pending = e && e->pending;
    if (e && e->real) handle = e->real;
    pthread_mutex_unlock(&late_lock);
    if (is_pending && what == CL_EVENT_COMMAND_EXECUTION_STATUS)
        return answer(&queued, sizeof queued, size, value, out_size);
    return next->clGetEventInfo(handle, what, size, value, out_size);
}

static cl_int CL_API_CALL wrap_clGetEventProfilingInfo(cl_event handle, cl_profiling_info what,
                                                       size_t size, void *value, size_t *out_size)
{
    pthread_mutex_lock(&late_lock);
    const late_event *e = late_find_event(handle);
    if (e && e->real) handle = e->real;
    pthread_mutex_unlock(&late_lock);
    return next->clGetEventProfilingInfo(handle, what, size, value, out_size);
}

static cl_int CL_API_CALL wrap_clFlush(cl_command_queue handle)
{
    pthread_mutex_lock(&late_lock);
    queue *q = late_find_queue(handle);
    if (q) late_mark_flushed(q);
    pthread_mutex_unlock(&late_lock);
    return next->clFlush(handle);
}

static cl_int CL_API_CALL wrap_clFinish(cl_command_queue handle)
{
    pthread_mutex_lock(&late_lock);
    queue *q = late_find_queue(handle);
    if (q) {
        late_mark_flushed(q);
        late_run_until(q, NULL);
    }
    pthread_mutex_unlock(&late_lock);
    return next->clFinish(handle);
}

/* ---- queues ---------------------------------------------------------------------------------- */

static bool is_late(unsigned number)
{
    const char *which = getenv("CLG_DELAY");
    if (!which || !*which) return false;
    if (strcmp(which, "all") == 0) return true;
    if (strcmp(which, "even") == 0) return number % 2 == 0;
    if (strcmp(which, "odd") == 0) return number % 2 != 0;
    if (strncmp(which, "random:", 7) == 0) {
        const uint64_t seed = strtoul(which + 7, NULL, 10) + 1;
        return ((number + 1) * seed * 0x9e3779b97f4a7c15u >> 40) % 2 != 0;
    }
    return *which >= '0' && *which <= '9' && strtoul(which, NULL, 10) == number;
}

static cl_command_queue CL_API_CALL wrap_clCreateCommandQueue(
    cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int *error)
{
    cl_command_queue handle = next->clCreateCommandQueue(context, device, properties, error);
    if (!handle) return NULL;
    pthread_mutex_lock(&late_lock);
    if (is_late(n_queues++)) late_add_queue(handle, context);
    pthread_mutex_unlock(&late_lock);
    return handle;
}

static cl_int CL_API_CALL wrap_clRetainCommandQueue(cl_command_queue handle)
{
    late_retain_queue(handle);
    return next->clRetainCommandQueue(handle);
}

static cl_int CL_API_CALL wrap_clReleaseCommandQueue(cl_command_queue handle)
{
    late_release_queue(handle);
    return next->clReleaseCommandQueue(handle);
}

/* ---- the layer ------------------------------------------------------------------------------- */

#define USE(name) table.name = wrap_##name

static void fill(void)
{
    late_driver = next;
    USE(clReleaseMemObject), USE(clReleaseKernel), USE(clReleaseProgram), USE(clReleaseContext);
    USE(clEnqueueWriteBuffer), USE(clEnqueueReadBuffer), USE(clEnqueueCopyBuffer);
    USE(clEnqueueFillBuffer), USE(clEnqueueNDRangeKernel), USE(clCreateKernel), USE(clSetKernelArg);
    USE(clEnqueueMarkerWithWaitList), USE(clEnqueueBarrierWithWaitList);
    USE(clEnqueueMapBuffer), USE(clEnqueueUnmapMemObject);
    USE(clRetainEvent), USE(clReleaseEvent), USE(clWaitForEvents), USE(clSetEventCallback);
    USE(clGetEventInfo), USE(clGetEventProfilingInfo), USE(clFlush), USE(clFinish);
    USE(clCreateCommandQueue), USE(clRetainCommandQueue), USE(clReleaseCommandQueue);
}
