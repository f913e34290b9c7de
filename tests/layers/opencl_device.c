/* SPDX-License-Identifier: Apache-2.0
 *
 * An OpenCL layer (OPENCL_LAYERS of ocl-icd) that makes another, smaller device of the driver's.
 * What it reports:
 *
 *   CLG_DEVICE_FLOATS    native vector width in floats
 *   CLG_DEVICE_UNITS     number of compute units
 *   CLG_DEVICE_MHZ       clock
 *   CLG_DEVICE_ORIGIN    1: launches begin at 0, whatever their global offset is
 *   CLG_DEVICE_NS        nanoseconds that every command takes, as its time stamps say
 *
 * What it reports and enforces, as drivers do (bytes may end in K or M):
 *
 *   CLG_DEVICE_ITEMS     largest work-group; launches of larger ones fail
 *   CLG_KERNEL_ITEMS     largest work-group of every kernel, while the device reports more, as on
 *                        devices with few registers; launches of larger ones fail
 *   CLG_DEVICE_ALLOC     largest buffer; larger ones are not created
 *   CLG_DEVICE_MEMORY    memory; what all buffers of the process together have
 *   CLG_CONTEXT_MEMORY   memory of each OpenCL context: of devices that a process opens several
 *                        times, as if they were several
 *   CLG_DEVICE_LOCAL     local memory of a work-group; launches of kernels that need more fail
 *   CLG_DEVICE_CONSTANT  largest buffer in constant memory; larger arguments are rejected
 *   CLG_DEVICE_BITS      32: get_global_id() and its siblings, and size_t, have 32 bits in
 *                        programs, and all buffers together at most 4 GiB
 *   CLG_DEVICE_OPENCL    1.2: programs for a later OpenCL C do not compile, and a call of a later
 *                        function ends the process, as a null pointer in a driver's table does.
 *                        3.0: a version 3.0 device without optional features: of the later
 *                        functions those are absent that may be, and no extension is there
 *   CLG_DEVICE_LACKS     words: double (programs that use it do not compile), images (a call of a
 *                        function of images ends the process)
 *   CLG_DEVICE_IN_PLACE  only buffers over host memory at multiples of this are in place; others
 *                        are copies, and have zeros, so that a test sees one by its results
 *   CLG_DEVICE_SILENT    1: enforces all that and reports what the driver does, so that a test can
 *                        show that it fails where a limit is not respected
 *
 * The variables are read at each call, so a test may change them; functions become absent when the
 * layer is loaded. CLG_DEVICE_FLOATS=8 is for
 * valgrind, which hides AVX-512 from drivers and makes compiling take many minutes: programs that
 * were compiled without valgrind, with POCL_KERNELLIB_NAME=avx2, are then found in the cache.
 */
#define LAYER_NAME "clgraph's other device"
#include "opencl_layer.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ADDRESSES_32 ((uint64_t)1 << 32)

/* ---- variables ------------------------------------------------------------------------------- */

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *number = getenv(variable);
    char *unit;
    if (!number) return otherwise;
    const uint64_t n = strtoull(number, &unit, 10);
    return *unit == 'K' ? n << 10 : *unit == 'M' ? n << 20 : n;
}

static bool is(const char *variable, const char *value)
{
    const char *found = getenv(variable);
    return found && strcmp(found, value) == 0;
}

static bool lacks(const char *feature)
{
    const char *list = getenv("CLG_DEVICE_LACKS");
    return list && strstr(list, feature);
}

static bool is_silent(void) { return is("CLG_DEVICE_SILENT", "1"); }

static bool has_32_bits(void) { return is("CLG_DEVICE_BITS", "32"); }

static bool is_version(const char *version) { return is("CLG_DEVICE_OPENCL", version); }

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t max_items(void)
{
    return smaller(number_of("CLG_DEVICE_ITEMS", UINT64_MAX),
                   number_of("CLG_KERNEL_ITEMS", UINT64_MAX));
}

static uint64_t max_of_context(void) { return number_of("CLG_CONTEXT_MEMORY", UINT64_MAX); }

static uint64_t max_memory(void)
{
    const uint64_t limit = number_of("CLG_DEVICE_MEMORY", UINT64_MAX);
    return has_32_bits() ? smaller(limit, ADDRESSES_32) : limit;
}

/* ---- what the device reports ----------------------------------------------------------------- */

/* Limits that are the smaller one of the driver's and a variable's. */
static const struct {
    cl_device_info what;
    const char *variable;
    bool is_word; /* a cl_uint, else a cl_ulong or size_t */
} limits[] = {
    {CL_DEVICE_MAX_MEM_ALLOC_SIZE, "CLG_DEVICE_ALLOC", false},
    {CL_DEVICE_GLOBAL_MEM_SIZE, "CLG_DEVICE_MEMORY", false},
    {CL_DEVICE_GLOBAL_MEM_SIZE, "CLG_CONTEXT_MEMORY", false},
    {CL_DEVICE_LOCAL_MEM_SIZE, "CLG_DEVICE_LOCAL", false},
    {CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, "CLG_DEVICE_CONSTANT", false},
    {CL_DEVICE_ADDRESS_BITS, "CLG_DEVICE_BITS", true},
    {CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, "CLG_DEVICE_FLOATS", true},
    {CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT, "CLG_DEVICE_FLOATS", true},
    {CL_DEVICE_MAX_COMPUTE_UNITS, "CLG_DEVICE_UNITS", true},
    {CL_DEVICE_MAX_CLOCK_FREQUENCY, "CLG_DEVICE_MHZ", true},
};

static cl_int answer_limit(const char *variable, bool is_word, size_t size, void *value,
                           size_t *out_size)
{
    const uint64_t wide = number_of(variable, 0);
    const cl_uint word = (cl_uint)wide;
    return is_word ? answer(&word, sizeof word, size, value, out_size)
                   : answer(&wide, sizeof wide, size, value, out_size);
}

static cl_int answer_items(cl_device_info what, size_t size, void *value, size_t *out_size)
{
    const size_t items = number_of("CLG_DEVICE_ITEMS", 0), sizes[3] = {items, items, items};
    return what == CL_DEVICE_MAX_WORK_GROUP_SIZE
               ? answer(&items, sizeof items, size, value, out_size)
               : answer(sizes, sizeof sizes, size, value, out_size);
}

static cl_int answer_text(const char *text, size_t size, void *value, size_t *out_size)
{
    return answer(text, strlen(text) + 1, size, value, out_size);
}

/* Answers with the device's extensions less one. */
static cl_int answer_extensions(cl_device_id device, const char *without, size_t size, void *value,
                                size_t *out_size)
{
    char text[16384] = "";
    const cl_int code =
        next->clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof text, text, NULL);
    if (code != CL_SUCCESS) return code;
    char *at = strstr(text, without);
    if (at) memset(at, ' ', strlen(without));
    return answer_text(text, size, value, out_size);
}

static cl_int CL_API_CALL wrap_clGetDeviceInfo(cl_device_id device, cl_device_info what,
                                               size_t size, void *value, size_t *out_size)
{
    const cl_bool no = CL_FALSE;
    const cl_device_fp_config nothing = 0;
    const bool minimal = is_version("3.0");
    if (is_silent()) return next->clGetDeviceInfo(device, what, size, value, out_size);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].what == what && getenv(limits[i].variable))
            return answer_limit(limits[i].variable, limits[i].is_word, size, value, out_size);
    switch (what) {
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
        if (getenv("CLG_DEVICE_ITEMS")) return answer_items(what, size, value, out_size);
        break;
    case CL_DEVICE_IMAGE_SUPPORT:
        if (minimal || lacks("images")) return answer(&no, sizeof no, size, value, out_size);
        break;
    case CL_DEVICE_DOUBLE_FP_CONFIG:
        if (minimal || lacks("double"))
            return answer(&nothing, sizeof nothing, size, value, out_size);
        break;
    case CL_DEVICE_EXTENSIONS:
        if (minimal) return answer_text("", size, value, out_size);
        if (lacks("double")) return answer_extensions(device, "cl_khr_fp64", size, value, out_size);
        break;
    case CL_DEVICE_VERSION:
        if (is_version("1.2")) return answer_text("OpenCL 1.2 small", size, value, out_size);
        if (minimal) return answer_text("OpenCL 3.0 small", size, value, out_size);
        break;
    case CL_DEVICE_OPENCL_C_VERSION:
        if (minimal || is_version("1.2"))
            return answer_text("OpenCL C 1.2 small", size, value, out_size);
        break;
    default: break;
    }
    return next->clGetDeviceInfo(device, what, size, value, out_size);
}

static cl_int CL_API_CALL wrap_clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                                        cl_kernel_work_group_info what, size_t size,
                                                        void *value, size_t *out_size)
{
    size_t items;
    const cl_int code = next->clGetKernelWorkGroupInfo(kernel, device, what, size, value, out_size);
    if (code != CL_SUCCESS || what != CL_KERNEL_WORK_GROUP_SIZE || !value || is_silent())
        return code;
    memcpy(&items, value, sizeof items);
    if (items > max_items()) items = max_items();
    memcpy(value, &items, sizeof items);
    return CL_SUCCESS;
}

/* ---- memory ---------------------------------------------------------------------------------- */

#define MAX_CONTEXTS 64

/* What the live buffers of a context have. A context's record is that of its address, which a later
 * context may have again. */
typedef struct context_use {
    _Atomic(cl_context) context;
    _Atomic uint64_t bytes;
} context_use;

static context_use uses[MAX_CONTEXTS];
static _Atomic uint64_t used_bytes;

/* A live buffer. */
typedef struct buffer_use {
    uint64_t bytes;
    context_use *context;
} buffer_use;

static context_use *use_of(cl_context context)
{
    for (size_t i = 0; i < MAX_CONTEXTS; i++) {
        cl_context none = NULL;
        if (atomic_load(&uses[i].context) == context ||
            atomic_compare_exchange_strong(&uses[i].context, &none, context) || none == context)
            return &uses[i];
    }
    fprintf(stderr, "opencl_device: more than %d contexts\n", MAX_CONTEXTS);
    abort();
}

static void give_up(buffer_use *use)
{
    atomic_fetch_sub(&used_bytes, use->bytes);
    atomic_fetch_sub(&use->context->bytes, use->bytes);
    free(use);
}

static void CL_CALLBACK give_back(cl_mem memory, void *use)
{
    (void)memory;
    give_up(use);
}

/* Counts a buffer; returns NULL if there is no room for it. */
static buffer_use *take(cl_context context, size_t size)
{
    buffer_use *use = malloc(sizeof *use);
    if (!use) return NULL;
    *use = (buffer_use){size, use_of(context)};
    const uint64_t all = atomic_fetch_add(&used_bytes, size) + size,
                   own = atomic_fetch_add(&use->context->bytes, size) + size;
    if (all <= max_memory() && own <= max_of_context()) return use;
    give_up(use);
    return NULL;
}

static cl_mem CL_API_CALL wrap_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
                                              void *host, cl_int *out_code)
{
    cl_int code = CL_SUCCESS;
    cl_mem memory = NULL;
    buffer_use *use = NULL;
    if (size > number_of("CLG_DEVICE_ALLOC", UINT64_MAX))
        code = CL_INVALID_BUFFER_SIZE;
    else if (!(use = take(context, size)))
        code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    void *zeros = NULL;
    if ((flags & CL_MEM_USE_HOST_PTR) && (uintptr_t)host % number_of("CLG_DEVICE_IN_PLACE", 1)) {
        flags = (flags & ~(cl_mem_flags)CL_MEM_USE_HOST_PTR) | CL_MEM_COPY_HOST_PTR;
        host = zeros = calloc(1, size);
    }
    if (code == CL_SUCCESS) {
        memory = next->clCreateBuffer(context, flags, size, host, &code);
        if (!memory || next->clSetMemObjectDestructorCallback(memory, give_back, use) != CL_SUCCESS)
            give_up(use);
    }
    free(zeros);
    if (out_code) *out_code = code;
    return memory;
}

static cl_int CL_API_CALL wrap_clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size,
                                              const void *value)
{
    const uint64_t most = number_of("CLG_DEVICE_CONSTANT", UINT64_MAX);
    cl_kernel_arg_address_qualifier space = 0;
    size_t bytes = 0;
    if (most < UINT64_MAX && value && size == sizeof(cl_mem) &&
        next->clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space,
                                 &space, NULL) == CL_SUCCESS &&
        space == CL_KERNEL_ARG_ADDRESS_CONSTANT && *(const cl_mem *)value &&
        next->clGetMemObjectInfo(*(const cl_mem *)value, CL_MEM_SIZE, sizeof bytes, &bytes, NULL) ==
            CL_SUCCESS &&
        bytes > most)
        return CL_INVALID_ARG_SIZE;
    return next->clSetKernelArg(kernel, index, size, value);
}

/* ---- launches -------------------------------------------------------------------------------- */

static cl_device_id device_of(cl_command_queue queue)
{
    cl_device_id device = NULL;
    (void)next->clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
    return device;
}

static bool needs_too_much_local_memory(cl_command_queue queue, cl_kernel kernel)
{
    const uint64_t most = number_of("CLG_DEVICE_LOCAL", UINT64_MAX);
    cl_ulong bytes = 0;
    return most < UINT64_MAX &&
           next->clGetKernelWorkGroupInfo(kernel, device_of(queue), CL_KERNEL_LOCAL_MEM_SIZE,
                                          sizeof bytes, &bytes, NULL) == CL_SUCCESS &&
           bytes > most;
}

static cl_int CL_API_CALL wrap_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
                                                      cl_uint n_dims, const size_t *offset,
                                                      const size_t *global, const size_t *local,
                                                      cl_uint n_events, const cl_event *events,
                                                      cl_event *event)
{
    size_t items = 1;
    for (cl_uint i = 0; local && i < n_dims; i++) items *= local[i];
    if (items > max_items()) return CL_INVALID_WORK_GROUP_SIZE;
    for (cl_uint i = 0; has_32_bits() && i < n_dims; i++)
        if (global[i] >= ADDRESSES_32) return CL_INVALID_GLOBAL_WORK_SIZE;
    if (needs_too_much_local_memory(queue, kernel)) return CL_OUT_OF_RESOURCES;
    if (number_of("CLG_DEVICE_ORIGIN", 0) > 0) offset = NULL;
    return next->clEnqueueNDRangeKernel(queue, kernel, n_dims, offset, global, local, n_events,
                                        events, event);
}

/* ---- events ---------------------------------------------------------------------------------- */

static cl_int CL_API_CALL wrap_clGetEventProfilingInfo(cl_event event, cl_profiling_info what,
                                                       size_t size, void *value, size_t *out_size)
{
    const cl_ulong ns = number_of("CLG_DEVICE_NS", 0);
    cl_ulong start;
    if (ns == 0 || what != CL_PROFILING_COMMAND_END)
        return next->clGetEventProfilingInfo(event, what, size, value, out_size);
    const cl_int code = next->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START,
                                                      sizeof start, &start, NULL);
    if (code != CL_SUCCESS) return code;
    start += ns;
    return answer(&start, sizeof start, size, value, out_size);
}

/* ---- programs -------------------------------------------------------------------------------- */

#define NARROW(name) "#define " name "(d) ((uint)" name "(d))\n"

/* Writes what goes in front of a program's text. A macro is not expanded in its own definition. */
static void write_prologue(char out_text[1024])
{
    out_text[0] = '\0';
    if (lacks("double") || is_version("3.0"))
        strcat(out_text, "#undef cl_khr_fp64\n#define double this_device_has_no_double\n");
    if (has_32_bits())
        strcat(out_text, NARROW("get_global_id") NARROW("get_local_id") NARROW("get_group_id")
                             NARROW("get_global_size") NARROW("get_local_size")
                                 NARROW("get_num_groups") "#define size_t uint\n");
    if (out_text[0]) strcat(out_text, "#line 1\n");
}

/* The text goes in front of the last one, since others declare what it defines. */
static cl_program CL_API_CALL wrap_clCreateProgramWithSource(cl_context context, cl_uint n,
                                                             const char **texts,
                                                             const size_t *sizes, cl_int *out_code)
{
    char prologue[1024];
    const char *all_texts[8];
    size_t all_sizes[8] = {0};
    write_prologue(prologue);
    if (!prologue[0] || n == 0 || n > 7)
        return next->clCreateProgramWithSource(context, n, texts, sizes, out_code);
    for (cl_uint i = 0; i < n; i++) {
        const cl_uint at = i + (i == n - 1);
        all_texts[at] = texts[i];
        all_sizes[at] = sizes ? sizes[i] : 0;
    }
    all_texts[n - 1] = prologue;
    all_sizes[n - 1] = strlen(prologue);
    return next->clCreateProgramWithSource(context, n + 1, all_texts, all_sizes, out_code);
}

static cl_int CL_API_CALL wrap_clBuildProgram(cl_program program, cl_uint n_devices,
                                              const cl_device_id *devices, const char *options,
                                              void(CL_CALLBACK *notify)(cl_program, void *),
                                              void *user_data)
{
    char all[4096];
    if ((is_version("1.2") || is_version("3.0")) && options &&
        (strstr(options, "-cl-std=CL2") || strstr(options, "-cl-std=CL3")))
        return CL_INVALID_BUILD_OPTIONS;
    if (!getenv("CLG_DEVICE_CONSTANT"))
        return next->clBuildProgram(program, n_devices, devices, options, notify, user_data);
    (void)snprintf(all, sizeof all, "%s -cl-kernel-arg-info", options ? options : "");
    return next->clBuildProgram(program, n_devices, devices, all, notify, user_data);
}

/* ---- absent functions ------------------------------------------------------------------------ */

static void end_process(const char *name)
{
    fprintf(stderr, "%s is not there on this device\n", name);
    abort();
}

#define LATER(X)                                                                                   \
    X(clCreatePipe)                                                                                \
    X(clGetPipeInfo)                                                                               \
    X(clSVMAlloc)                                                                                  \
    X(clSVMFree)                                                                                   \
    X(clEnqueueSVMFree)                                                                            \
    X(clEnqueueSVMMemcpy)                                                                          \
    X(clEnqueueSVMMemFill)                                                                         \
    X(clEnqueueSVMMap)                                                                             \
    X(clEnqueueSVMUnmap)                                                                           \
    X(clEnqueueSVMMigrateMem)                                                                      \
    X(clSetKernelArgSVMPointer)                                                                    \
    X(clSetKernelExecInfo)                                                                         \
    X(clGetKernelSubGroupInfo)                                                                     \
    X(clSetDefaultDeviceCommandQueue)                                                              \
    X(clGetDeviceAndHostTimer)                                                                     \
    X(clGetHostTimer)                                                                              \
    X(clCreateProgramWithIL)                                                                       \
    X(clSetProgramReleaseCallback)                                                                 \
    X(clSetProgramSpecializationConstant)

/* Those of later versions that a 3.0 device has in any case. */
#define LATER_OF_ALL(X)                                                                            \
    X(clCreateCommandQueueWithProperties)                                                          \
    X(clCreateSamplerWithProperties)                                                               \
    X(clCloneKernel)                                                                               \
    X(clCreateBufferWithProperties)                                                                \
    X(clCreateImageWithProperties)                                                                 \
    X(clSetContextDestructorCallback)

#define IMAGES(X)                                                                                  \
    X(clCreateImage)                                                                               \
    X(clCreateImage2D)                                                                             \
    X(clCreateImage3D)                                                                             \
    X(clGetSupportedImageFormats)                                                                  \
    X(clEnqueueReadImage)                                                                          \
    X(clEnqueueWriteImage)                                                                         \
    X(clEnqueueCopyImage)                                                                          \
    X(clEnqueueFillImage)                                                                          \
    X(clEnqueueMapImage)                                                                           \
    X(clEnqueueCopyImageToBuffer)                                                                  \
    X(clEnqueueCopyBufferToImage)

#define DEFINE(name)                                                                               \
    static void absent_##name(void) { end_process(#name); }
LATER(DEFINE)
LATER_OF_ALL(DEFINE)
IMAGES(DEFINE)

#define REMOVE(name) remove_entry(&table.name, absent_##name);

/* Writes a function of another type into the table: it never returns. */
static void remove_entry(void *entry, void (*function)(void))
{
    memcpy(entry, &function, sizeof function);
}

static void fill(void)
{
    table.clGetDeviceInfo = wrap_clGetDeviceInfo;
    table.clGetKernelWorkGroupInfo = wrap_clGetKernelWorkGroupInfo;
    table.clCreateBuffer = wrap_clCreateBuffer;
    table.clSetKernelArg = wrap_clSetKernelArg;
    table.clGetEventProfilingInfo = wrap_clGetEventProfilingInfo;
    table.clEnqueueNDRangeKernel = wrap_clEnqueueNDRangeKernel;
    table.clCreateProgramWithSource = wrap_clCreateProgramWithSource;
    table.clBuildProgram = wrap_clBuildProgram;
    if (is_version("1.2") || is_version("3.0")) {
        LATER(REMOVE)
    }
    if (is_version("1.2")) {
        LATER_OF_ALL(REMOVE)
    }
    if (lacks("images") || is_version("3.0")) {
        IMAGES(REMOVE)
    }
}
