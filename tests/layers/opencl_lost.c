/* SPDX-License-Identifier: Apache-2.0
 *
 * An OpenCL layer (OPENCL_LAYERS of ocl-icd) in which a device is lost, as by a reset of its
 * driver: from the N-th call of a kind on, every call with an object that exists then fails as real
 * drivers do, until contexts are created anew: their objects work. It counts the calls with lost
 * objects: after it has seen the loss, the library should make none but releases, and one clFinish
 * of each queue with commands in flight, which write to memory of the application. That one waits
 * before it fails. CLBlast's calls pass through the layer as well.
 *
 * Tests find the exported functions with dlsym (support/fakes/opencl_lost.h). For a whole process,
 * CLG_LOST=KIND:N:CODE:TIMES:NEXT is read at start: KIND is launches, writes, reads, waits, calls
 * or kernels; after a loss the layer counts from 0 to NEXT (N where it is left out), TIMES times in
 * all (1). With CLG_LOST_REPORT set, "lost TIMES, touched N" is printed at the end; with
 * CLG_LOST_TRACE, the names of those calls.
 */
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define LAYER_NAME "clgraph's lost device"

#include "support/fakes/opencl_lost.h"

#include "opencl_layer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_OBJECTS 16384 /* live at a time; half of them is plenty for the tests */

typedef struct object {
    const void *handle;  /* NULL: a free place */
    const void *context; /* in which it was made; of a context itself; NULL: unknown */
    long n_references;
    bool is_lost;
    bool in_flight; /* of a queue: commands were enqueued since the last clFinish */
} object;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all of the following */
static object objects[MAX_OBJECTS];
static long n_calls[OPENCL_LOST_KINDS];
static opencl_lost_kind lost_kind;
static long lose_at = -1, lose_next = -1, n_times = 1, n_losses, n_touches;
static cl_int lost_code, fired_code;
static bool has_fired, is_hidden, traces, is_alone, is_stalling, is_late;
static pthread_cond_t go_on = PTHREAD_COND_INITIALIZER, touched = PTHREAD_COND_INITIALIZER;

/* ---- for the tests --------------------------------------------------------------------------- */

void opencl_lost_arm(opencl_lost_kind kind, long n, int code)
{
    pthread_mutex_lock(&lock);
    memset(n_calls, 0, sizeof n_calls);
    lose_at = n;
    if (n >= 0) { /* else lost objects go on to fail as they do */
        lost_kind = kind;
        lost_code = code;
    }
    n_times = 1;
    n_losses = n_touches = 0;
    has_fired = false;
    fired_code = CL_SUCCESS;
    pthread_mutex_unlock(&lock);
}

void opencl_lost_alone(bool alone)
{
    pthread_mutex_lock(&lock);
    is_alone = alone;
    pthread_mutex_unlock(&lock);
}

void opencl_lost_late(bool late)
{
    pthread_mutex_lock(&lock);
    is_late = late;
    pthread_mutex_unlock(&lock);
}

void opencl_lost_release(void)
{
    pthread_mutex_lock(&lock);
    is_stalling = false;
    pthread_cond_broadcast(&go_on);
    pthread_mutex_unlock(&lock);
}

void opencl_lost_hide(bool hides)
{
    pthread_mutex_lock(&lock);
    is_hidden = hides;
    pthread_mutex_unlock(&lock);
}

static long locked(const long *counter)
{
    pthread_mutex_lock(&lock);
    const long n = *counter;
    pthread_mutex_unlock(&lock);
    return n;
}

bool opencl_lost_has_fired(void)
{
    pthread_mutex_lock(&lock);
    const bool fired = has_fired;
    pthread_mutex_unlock(&lock);
    return fired;
}

int opencl_lost_fired_code(void)
{
    pthread_mutex_lock(&lock);
    const int code = fired_code;
    pthread_mutex_unlock(&lock);
    return code;
}

long opencl_lost_n_calls(opencl_lost_kind kind) { return locked(&n_calls[kind]); }

long opencl_lost_n_touches(void) { return locked(&n_touches); }

static long count_live(bool only_lost)
{
    long n = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < MAX_OBJECTS; i++)
        if (objects[i].handle && (objects[i].is_lost || !only_lost)) n++;
    pthread_mutex_unlock(&lock);
    return n;
}

long opencl_lost_n_live(void) { return count_live(false); }

long opencl_lost_n_lost(void) { return count_live(true); }

/* ---- objects: call with the lock held -------------------------------------------------------- */

static size_t first_place(const void *handle)
{
    return (((size_t)handle >> 4) * 2654435761u) % MAX_OBJECTS;
}

/* Returns the place of an object, or the free one where it would be. */
static object *place_of(const void *handle)
{
    const size_t first = first_place(handle);
    for (size_t i = 0; i < MAX_OBJECTS; i++) {
        object *o = &objects[(first + i) % MAX_OBJECTS];
        if (!o->handle || o->handle == handle) return o;
    }
    abort(); /* more objects than any test has */
}

/* Removes an object, and moves those that follow it up, so that searches find them. */
static void remove_object(object *o)
{
    size_t hole = (size_t)(o - objects);
    objects[hole].handle = NULL;
    for (size_t at = (hole + 1) % MAX_OBJECTS; objects[at].handle; at = (at + 1) % MAX_OBJECTS) {
        const object moved = objects[at];
        objects[at].handle = NULL;
        *place_of(moved.handle) = moved;
    }
}

static bool is_lost(const void *handle)
{
    if (!handle) return false;
    const object *o = place_of(handle);
    return o->handle && o->is_lost;
}

/* Loses all objects, or those of the context of `handle`. */
static void lose_objects(const void *handle)
{
    const void *context = is_alone && handle ? place_of(handle)->context : NULL;
    for (size_t i = 0; i < MAX_OBJECTS; i++)
        if (objects[i].handle && (!context || objects[i].context == context))
            objects[i].is_lost = true;
    has_fired = true;
    n_losses++;
    lose_at = n_losses < n_times ? lose_next : -1;
    if (lose_at >= 0) memset(n_calls, 0, sizeof n_calls);
}

/* Waits until the test goes on. Releases the lock meanwhile. */
static void stall(void)
{
    has_fired = is_stalling = true;
    lose_at = -1;
    while (is_stalling) pthread_cond_wait(&go_on, &lock);
}

/* Waits until another thread's call fails, for 20 ms at most. Releases the lock meanwhile. */
static void come_late(void)
{
    struct timespec until;
    (void)timespec_get(&until, TIME_UTC);
    until.tv_nsec += 20000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    while (n_touches == 0 && pthread_cond_timedwait(&touched, &lock, &until) == 0) continue;
}

/* Counts a call with an object; returns whether it loses the device. */
static bool loses(opencl_lost_kind kind, const void *handle)
{
    const long n = n_calls[OPENCL_LOST_CALLS]++;
    const long n_kind = kind == OPENCL_LOST_CALLS ? n : n_calls[kind]++;
    if (lose_at < 0 || (lost_kind == OPENCL_LOST_CALLS ? n : n_kind) != lose_at) return false;
    if (lost_kind != OPENCL_LOST_CALLS && lost_kind != kind) return false;
    if (lost_code == OPENCL_LOST_STALL) {
        stall();
        return false;
    }
    lose_objects(handle);
    if (is_late) come_late();
    return true;
}

static cl_int code_of(cl_int mixed) { return lost_code == OPENCL_LOST_MIXED ? mixed : lost_code; }

/* ---- what every wrapper does ----------------------------------------------------------------- */

/* Counts a call with a lost object; prints its name if CLG_LOST_TRACE is set. */
static void touch(const char *name)
{
    n_touches++;
    pthread_cond_broadcast(&touched);
    if (traces) (void)fprintf(stderr, "%s touches a lost object\n", name);
}

/* Returns the error of a call with two objects (NULL: none): CL_SUCCESS if none is lost. */
static cl_int check(const char *name, opencl_lost_kind kind, const void *a, const void *b,
                    cl_int mixed)
{
    cl_int code = CL_SUCCESS;
    pthread_mutex_lock(&lock);
    if (is_lost(a) || is_lost(b)) {
        touch(name);
        code = code_of(mixed);
    } else if (loses(kind, a)) {
        code = fired_code = code_of(mixed);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* Adds references to an object; `parent` (NULL: none, or not new) is the one in which a new object
 * is made. */
static void refer(const void *handle, const void *parent, long n)
{
    pthread_mutex_lock(&lock);
    const void *context = parent ? place_of(parent)->context : handle;
    object *o = place_of(handle);
    if (!o->handle) *o = (object){.handle = handle, .context = context};
    o->n_references += n;
    if (o->n_references <= 0) remove_object(o);
    pthread_mutex_unlock(&lock);
}

static void note_command(const void *queue)
{
    pthread_mutex_lock(&lock);
    place_of(queue)->in_flight = true;
    pthread_mutex_unlock(&lock);
}

/* Defines the wrapper of a function that returns a status and has the objects a and b. */
#define CALL(kind, name, params, args, a, b, mixed)                                                \
    static cl_int CL_API_CALL wrap_##name params                                                   \
    {                                                                                              \
        const cl_int code = check(#name, OPENCL_LOST_##kind, a, b, mixed);                         \
        return code == CL_SUCCESS ? next->name args : code;                                        \
    }

/* Defines a command whose last argument receives its event. */
#define COMMAND(kind, name, params, args, object, mixed)                                           \
    static cl_int CL_API_CALL wrap_##name params                                                   \
    {                                                                                              \
        cl_int code = check(#name, OPENCL_LOST_##kind, queue, object, mixed);                      \
        if (code != CL_SUCCESS) return code;                                                       \
        note_command(queue);                                                                       \
        code = next->name args;                                                                    \
        if (code == CL_SUCCESS && event) refer(*event, queue, 1);                                  \
        return code;                                                                               \
    }

/* Defines the wrapper of a function that creates an object of `parent`; `error` is its last
 * parameter. */
#define MAKER(kind, type, name, parent, mixed, params, args)                                       \
    static type CL_API_CALL wrap_##name params                                                     \
    {                                                                                              \
        const cl_int code = check(#name, OPENCL_LOST_##kind, parent, NULL, mixed);                 \
        if (code != CL_SUCCESS) {                                                                  \
            if (error) *error = code;                                                              \
            return NULL;                                                                           \
        }                                                                                          \
        type made = next->name args;                                                               \
        if (made) refer(made, parent, 1);                                                          \
        return made;                                                                               \
    }

#define REFERENCES(what, type)                                                                     \
    static cl_int CL_API_CALL wrap_clRetain##what(type object)                                     \
    {                                                                                              \
        const cl_int code = next->clRetain##what(object);                                          \
        if (code == CL_SUCCESS) refer(object, NULL, 1);                                            \
        return code;                                                                               \
    }                                                                                              \
    static cl_int CL_API_CALL wrap_clRelease##what(type object)                                    \
    {                                                                                              \
        refer(object, NULL, -1); /* before: the address may be used again at once */               \
        return next->clRelease##what(object);                                                      \
    }

REFERENCES(Context, cl_context)
REFERENCES(CommandQueue, cl_command_queue)
REFERENCES(MemObject, cl_mem)
REFERENCES(Program, cl_program)
REFERENCES(Kernel, cl_kernel)
REFERENCES(Event, cl_event)

/* ---- devices and contexts -------------------------------------------------------------------- */

static bool hidden(void)
{
    pthread_mutex_lock(&lock);
    const bool hides = is_hidden;
    pthread_mutex_unlock(&lock);
    return hides;
}

static cl_int CL_API_CALL wrap_clGetDeviceIDs(cl_platform_id platform, cl_device_type type,
                                              cl_uint n, cl_device_id *devices, cl_uint *out_n)
{
    return hidden() ? CL_DEVICE_NOT_FOUND : next->clGetDeviceIDs(platform, type, n, devices, out_n);
}

static cl_context CL_API_CALL wrap_clCreateContext(
    const cl_context_properties *properties, cl_uint n, const cl_device_id *devices,
    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user,
    cl_int *error)
{
    const cl_int code =
        hidden() ? CL_DEVICE_NOT_AVAILABLE
                 : check("clCreateContext", OPENCL_LOST_CALLS, NULL, NULL, CL_DEVICE_NOT_AVAILABLE);
    if (code != CL_SUCCESS) {
        if (error) *error = code;
        return NULL;
    }
    cl_context made = next->clCreateContext(properties, n, devices, notify, user, error);
    if (made) refer(made, NULL, 1);
    return made;
}

/* ---- what is made in a context --------------------------------------------------------------- */

MAKER(CALLS, cl_command_queue, clCreateCommandQueue, context, CL_INVALID_CONTEXT,
      (cl_context context, cl_device_id device, cl_command_queue_properties properties,
       cl_int *error),
      (context, device, properties, error))
MAKER(CALLS, cl_mem, clCreateBuffer, context, CL_OUT_OF_RESOURCES,
      (cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *error),
      (context, flags, size, host, error))
MAKER(CALLS, cl_program, clCreateProgramWithSource, context, CL_INVALID_CONTEXT,
      (cl_context context, cl_uint n, const char **strings, const size_t *lengths, cl_int *error),
      (context, n, strings, lengths, error))
MAKER(CALLS, cl_program, clCreateProgramWithBinary, context, CL_INVALID_CONTEXT,
      (cl_context context, cl_uint n, const cl_device_id *devices, const size_t *lengths,
       const unsigned char **binaries, cl_int *states, cl_int *error),
      (context, n, devices, lengths, binaries, states, error))
MAKER(CALLS, cl_event, clCreateUserEvent, context, CL_OUT_OF_RESOURCES,
      (cl_context context, cl_int *error), (context, error))
MAKER(KERNELS, cl_kernel, clCreateKernel, program, CL_OUT_OF_RESOURCES,
      (cl_program program, const char *name, cl_int *error), (program, name, error))

/* ---- queries --------------------------------------------------------------------------------- */

CALL(CALLS, clGetContextInfo,
     (cl_context context, cl_context_info what, size_t size, void *value, size_t *out_size),
     (context, what, size, value, out_size), context, NULL, CL_OUT_OF_RESOURCES)
CALL(CALLS, clGetCommandQueueInfo,
     (cl_command_queue queue, cl_command_queue_info what, size_t size, void *value,
      size_t *out_size),
     (queue, what, size, value, out_size), queue, NULL, CL_INVALID_COMMAND_QUEUE)
CALL(CALLS, clGetMemObjectInfo,
     (cl_mem memory, cl_mem_info what, size_t size, void *value, size_t *out_size),
     (memory, what, size, value, out_size), memory, NULL, CL_OUT_OF_RESOURCES)
CALL(CALLS, clGetProgramInfo,
     (cl_program program, cl_program_info what, size_t size, void *value, size_t *out_size),
     (program, what, size, value, out_size), program, NULL, CL_OUT_OF_RESOURCES)
CALL(CALLS, clGetProgramBuildInfo,
     (cl_program program, cl_device_id device, cl_program_build_info what, size_t size, void *value,
      size_t *out_size),
     (program, device, what, size, value, out_size), program, NULL, CL_OUT_OF_RESOURCES)
CALL(CALLS, clGetKernelWorkGroupInfo,
     (cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what, size_t size,
      void *value, size_t *out_size),
     (kernel, device, what, size, value, out_size), kernel, NULL, CL_OUT_OF_RESOURCES)
CALL(CALLS, clGetEventInfo,
     (cl_event event, cl_event_info what, size_t size, void *value, size_t *out_size),
     (event, what, size, value, out_size), event, NULL, CL_OUT_OF_RESOURCES)
CALL(CALLS, clGetEventProfilingInfo,
     (cl_event event, cl_profiling_info what, size_t size, void *value, size_t *out_size),
     (event, what, size, value, out_size), event, NULL, CL_OUT_OF_RESOURCES)

/* ---- programs and waits ---------------------------------------------------------------------- */

CALL(CALLS, clBuildProgram,
     (cl_program program, cl_uint n, const cl_device_id *devices, const char *options,
      void(CL_CALLBACK *notify)(cl_program, void *), void *user),
     (program, n, devices, options, notify, user), program, NULL, CL_OUT_OF_RESOURCES)
CALL(CALLS, clFlush, (cl_command_queue queue), (queue), queue, NULL, CL_INVALID_COMMAND_QUEUE)
CALL(WAITS, clWaitForEvents, (cl_uint n, const cl_event *events), (n, events),
     n > 0 ? (const void *)events[0] : NULL, NULL, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)

/* An argument may be a buffer of a lost context in a kernel of a new one, which would be a defect
 * of the library. */
static cl_int CL_API_CALL wrap_clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size,
                                              const void *value)
{
    const void *buffer = NULL;
    if (value && size == sizeof buffer) memcpy(&buffer, value, sizeof buffer);
    const cl_int code =
        check("clSetKernelArg", OPENCL_LOST_CALLS, kernel, buffer, CL_OUT_OF_RESOURCES);
    return code == CL_SUCCESS ? next->clSetKernelArg(kernel, index, size, value) : code;
}

static cl_int CL_API_CALL wrap_clFinish(cl_command_queue queue)
{
    cl_int code = CL_SUCCESS;
    pthread_mutex_lock(&lock);
    object *o = place_of(queue);
    const bool was_lost = is_lost(queue), in_flight = o->in_flight;
    o->in_flight = false;
    if (was_lost && !in_flight) touch("clFinish");
    const bool loses_now = !was_lost && loses(OPENCL_LOST_WAITS, queue);
    if (was_lost || loses_now) code = code_of(CL_OUT_OF_RESOURCES);
    if (loses_now) fired_code = code;
    pthread_mutex_unlock(&lock);
    const cl_int real = next->clFinish(queue);
    return code == CL_SUCCESS ? real : code;
}

/* ---- commands -------------------------------------------------------------------------------- */

COMMAND(READS, clEnqueueReadBuffer,
        (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
         void *data, cl_uint n, const cl_event *waits, cl_event *event),
        (queue, buffer, blocking, offset, size, data, n, waits, event), buffer, CL_OUT_OF_RESOURCES)
COMMAND(WRITES, clEnqueueWriteBuffer,
        (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
         const void *data, cl_uint n, const cl_event *waits, cl_event *event),
        (queue, buffer, blocking, offset, size, data, n, waits, event), buffer, CL_OUT_OF_RESOURCES)
COMMAND(CALLS, clEnqueueCopyBuffer,
        (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
         size_t size, cl_uint n, const cl_event *waits, cl_event *event),
        (queue, from, to, from_offset, to_offset, size, n, waits, event), from,
        CL_INVALID_COMMAND_QUEUE)
COMMAND(CALLS, clEnqueueFillBuffer,
        (cl_command_queue queue, cl_mem buffer, const void *pattern, size_t pattern_size,
         size_t offset, size_t size, cl_uint n, const cl_event *waits, cl_event *event),
        (queue, buffer, pattern, pattern_size, offset, size, n, waits, event), buffer,
        CL_INVALID_COMMAND_QUEUE)
COMMAND(CALLS, clEnqueueUnmapMemObject,
        (cl_command_queue queue, cl_mem memory, void *data, cl_uint n, const cl_event *waits,
         cl_event *event),
        (queue, memory, data, n, waits, event), memory, CL_INVALID_COMMAND_QUEUE)
COMMAND(LAUNCHES, clEnqueueNDRangeKernel,
        (cl_command_queue queue, cl_kernel kernel, cl_uint n_dims, const size_t *offset,
         const size_t *global, const size_t *local, cl_uint n, const cl_event *waits,
         cl_event *event),
        (queue, kernel, n_dims, offset, global, local, n, waits, event), kernel,
        CL_INVALID_COMMAND_QUEUE)
COMMAND(CALLS, clEnqueueMarkerWithWaitList,
        (cl_command_queue queue, cl_uint n, const cl_event *waits, cl_event *event),
        (queue, n, waits, event), NULL, CL_INVALID_COMMAND_QUEUE)
COMMAND(CALLS, clEnqueueBarrierWithWaitList,
        (cl_command_queue queue, cl_uint n, const cl_event *waits, cl_event *event),
        (queue, n, waits, event), NULL, CL_INVALID_COMMAND_QUEUE)

static void *CL_API_CALL wrap_clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer,
                                                 cl_bool blocking, cl_map_flags flags,
                                                 size_t offset, size_t size, cl_uint n,
                                                 const cl_event *waits, cl_event *event,
                                                 cl_int *error)
{
    const cl_int code =
        check("clEnqueueMapBuffer", OPENCL_LOST_READS, queue, buffer, CL_OUT_OF_RESOURCES);
    if (code != CL_SUCCESS) {
        if (error) *error = code;
        return NULL;
    }
    note_command(queue);
    void *data = next->clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, size, n, waits,
                                          event, error);
    if (data && event) refer(*event, queue, 1);
    return data;
}

/* ---- the layer ------------------------------------------------------------------------------- */

static void report(void) { (void)fprintf(stderr, "lost %ld, touched %ld\n", n_losses, n_touches); }

/* Reads CLG_LOST. */
static void configure(void)
{
    static const char *const kinds[] = {"launches", "writes", "reads", "waits", "calls", "kernels"};
    const char *text = getenv("CLG_LOST");
    char kind[16];
    long n, code = CL_OUT_OF_RESOURCES, times = 1, next_n = -1;
    if (getenv("CLG_LOST_REPORT")) (void)atexit(report);
    traces = getenv("CLG_LOST_TRACE") != NULL;
    if (!text || sscanf(text, "%15[a-z]:%ld:%ld:%ld:%ld", kind, &n, &code, &times, &next_n) < 2)
        return;
    for (int i = 0; i < OPENCL_LOST_KINDS; i++)
        if (strcmp(kind, kinds[i]) == 0) opencl_lost_arm((opencl_lost_kind)i, n, (int)code);
    n_times = times;
    lose_next = next_n >= 0 ? next_n : n;
}

#define OBJECT(what)                                                                               \
    table.clRetain##what = wrap_clRetain##what, table.clRelease##what = wrap_clRelease##what
#define USE(name) table.name = wrap_##name

static void fill(void)
{
    OBJECT(Context), OBJECT(CommandQueue), OBJECT(MemObject), OBJECT(Program), OBJECT(Kernel);
    OBJECT(Event);
    USE(clGetDeviceIDs), USE(clCreateContext), USE(clCreateCommandQueue), USE(clCreateBuffer);
    USE(clCreateProgramWithSource), USE(clCreateProgramWithBinary), USE(clCreateUserEvent);
    USE(clCreateKernel), USE(clGetContextInfo), USE(clGetCommandQueueInfo);
    USE(clGetMemObjectInfo), USE(clGetProgramInfo), USE(clGetProgramBuildInfo);
    USE(clGetKernelWorkGroupInfo), USE(clGetEventInfo), USE(clGetEventProfilingInfo);
    USE(clBuildProgram), USE(clFlush), USE(clWaitForEvents), USE(clSetKernelArg), USE(clFinish);
    USE(clEnqueueReadBuffer), USE(clEnqueueWriteBuffer), USE(clEnqueueCopyBuffer);
    USE(clEnqueueFillBuffer), USE(clEnqueueUnmapMemObject), USE(clEnqueueNDRangeKernel);
    USE(clEnqueueMarkerWithWaitList), USE(clEnqueueBarrierWithWaitList), USE(clEnqueueMapBuffer);
    configure();
}
