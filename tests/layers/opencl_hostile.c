/* SPDX-License-Identifier: Apache-2.0
 *
 * An OpenCL layer (OPENCL_LAYERS of ocl-icd) that stands for a driver which answers nonsense: calls
 * succeed, and what they say is not true. layers/opencl_faults.c has calls that fail,
 * layers/opencl_device.c devices that are small and true.
 *
 *   CLG_HOSTILE          words, separated by commas:
 *     sizes              the size of every text and list is 2^63 bytes; what is written is right
 *     texts              no text ends with a NUL; what is behind it in the buffer is overwritten
 *     many               clGetDeviceIDs counts 1000 devices, and writes those that there are
 *     build              clBuildProgram fails with CL_BUILD_PROGRAM_FAILURE
 *     log                build logs have 8 MiB and no line ends
 *     no-binary, huge-binary, longer-binary, wrong-binary
 *                        the size of a program's binary is 0; 2^64 - 1; a MiB more than is
 *                        written; its bytes are random
 *     times              time stamps are random
 *     status, failed     the status of an event is 1234; is -9999
 *     late               events are queued for 3 ms from the first question for one on, and every
 *                        wait takes 3 ms
 *   CLG_HOSTILE_NUMBERS  NAME=NUMBER, separated by commas: what a device reports for `units`,
 *                        `clock`, `memory`, `alloc`, `local`, `cache`, `line`, `align`,
 *                        `group`, `dims`, `items` (each of the work-item sizes), `vector`, or what
 *                        a kernel reports for `kernel-group`, `kernel-local`; `all`: for each; the
 *                        number may be -1
 *   CLG_HOSTILE_GONE     devices:N or platforms:N: there are none from the N-th call for them on,
 *                        from 0
 *   CLG_HOSTILE_HANG     a file: waits do not end while there is one, as during a long kernel
 *   CLG_HOSTILE_REPORT   1: prints "hostile driver: N answers" to stderr at the end
 *
 * The variables are read at each call, so a test may change them.
 */
#define _GNU_SOURCE
#define LAYER_NAME "clgraph's hostile driver"
#include "opencl_layer.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LOG_BYTES ((size_t)8 << 20)
#define LONGER_BYTES ((size_t)1 << 20)
#define HUGE_BYTES ((size_t)1 << 63)
#define LATE_NS 3000000L
#define N_MANY 1000

static atomic_long n_answers; /* nonsense, so far */

long opencl_hostile_n_answers(void); /* for tests, by dlsym */

long opencl_hostile_n_answers(void) { return atomic_load(&n_answers); }

static void note(void) { (void)atomic_fetch_add(&n_answers, 1); }

/* ---- variables ------------------------------------------------------------------------------- */

/* Returns what follows a name in a list of words, one of `ends` or the list's end; or NULL. */
static const char *find(const char *variable, const char *name, const char *ends)
{
    const size_t n = strlen(name);
    for (const char *at = getenv(variable); at && *at; at++) {
        if (strncmp(at, name, n) == 0 && strchr(ends, at[n])) return at + n;
        at += strcspn(at, ",");
        if (!*at) break;
    }
    return NULL;
}

static bool has(const char *word) { return find("CLG_HOSTILE", word, ",") != NULL; }

/* Sets *out to a number that is to be reported. */
static bool number_of(const char *name, uint64_t *out)
{
    const char *at = find("CLG_HOSTILE_NUMBERS", name, "=");
    if (!at) at = find("CLG_HOSTILE_NUMBERS", "all", "=");
    if (!at) return false;
    *out = at[1] == '-' ? UINT64_MAX : strtoull(at + 1, NULL, 10);
    return true;
}

/* Returns whether the calls for a kind of object have no result any more. */
static bool is_gone(const char *kind, atomic_long *n_calls)
{
    const char *at = find("CLG_HOSTILE_GONE", kind, ":");
    const bool gone = at && atomic_fetch_add(n_calls, 1) >= strtol(at + 1, NULL, 10);
    if (gone) note();
    return gone;
}

static uint64_t random_bits(void)
{
    static atomic_uint_fast64_t state = 88172645463325252u;
    uint64_t x = atomic_load(&state);
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    atomic_store(&state, x);
    return x;
}

static void sleep_late(void)
{
    const struct timespec t = {.tv_nsec = LATE_NS};
    (void)nanosleep(&t, NULL);
}

static bool is_hanging(void)
{
    const char *path = getenv("CLG_HOSTILE_HANG");
    return path && access(path, F_OK) == 0;
}

/* Delays a wait as CLG_HOSTILE and CLG_HOSTILE_HANG say. */
static void wait_late(void)
{
    if (!has("late") && !is_hanging()) return;
    do sleep_late();
    while (is_hanging());
    note();
}

/* ---- texts, lists and numbers ---------------------------------------------------------------- */

/* Alters the answer to a query for a text. */
static void spoil_text(size_t n, size_t size, char *value)
{
    if (!has("texts") || !value || n == 0 || size < n) return;
    memset(value + n - 1, 'x', size - (n - 1));
    note();
}

/* Alters the size of a text or list. */
static void spoil_size(size_t *out_size)
{
    if (!has("sizes") || !out_size) return;
    *out_size = HUGE_BYTES;
    note();
}

static cl_int answer_number(uint64_t number, size_t n, size_t size, void *value, size_t *out_size)
{
    const cl_uint word = (cl_uint)number;
    note();
    return n == sizeof word ? answer(&word, sizeof word, size, value, out_size)
                            : answer(&number, sizeof number, size, value, out_size);
}

static const struct {
    const char *name;
    cl_device_info what;
    size_t n_bytes;
} numbers[] = {
    {"units", CL_DEVICE_MAX_COMPUTE_UNITS, 4},
    {"clock", CL_DEVICE_MAX_CLOCK_FREQUENCY, 4},
    {"memory", CL_DEVICE_GLOBAL_MEM_SIZE, 8},
    {"alloc", CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8},
    {"local", CL_DEVICE_LOCAL_MEM_SIZE, 8},
    {"cache", CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, 8},
    {"line", CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, 4},
    {"align", CL_DEVICE_MEM_BASE_ADDR_ALIGN, 4},
    {"group", CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t)},
    {"dims", CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, 4},
    {"vector", CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, 4},
    {"vector", CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT, 4},
};

static bool is_text(cl_device_info what)
{
    return what == CL_DEVICE_NAME || what == CL_DEVICE_VENDOR || what == CL_DEVICE_VERSION ||
           what == CL_DRIVER_VERSION || what == CL_DEVICE_OPENCL_C_VERSION ||
           what == CL_DEVICE_EXTENSIONS || what == CL_DEVICE_PROFILE;
}

static cl_int CL_API_CALL wrap_clGetDeviceInfo(cl_device_id device, cl_device_info what,
                                               size_t size, void *value, size_t *out_size)
{
    uint64_t number;
    size_t n = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].what == what && number_of(numbers[i].name, &number))
            return answer_number(number, numbers[i].n_bytes, size, value, out_size);
    if (what == CL_DEVICE_MAX_WORK_ITEM_SIZES && number_of("items", &number)) {
        const size_t sizes[3] = {(size_t)number, (size_t)number, (size_t)number};
        note();
        return answer(sizes, sizeof sizes, size, value, out_size);
    }
    const cl_int code = next->clGetDeviceInfo(device, what, size, value, &n);
    if (out_size) *out_size = n;
    if (code != CL_SUCCESS || !is_text(what)) return code;
    spoil_text(n, size, value);
    spoil_size(out_size);
    return code;
}

static cl_int CL_API_CALL wrap_clGetPlatformInfo(cl_platform_id platform, cl_platform_info what,
                                                 size_t size, void *value, size_t *out_size)
{
    size_t n = 0;
    const cl_int code = next->clGetPlatformInfo(platform, what, size, value, &n);
    if (out_size) *out_size = n;
    if (code != CL_SUCCESS) return code;
    spoil_text(n, size, value);
    spoil_size(out_size);
    return code;
}

static cl_int CL_API_CALL wrap_clGetContextInfo(cl_context context, cl_context_info what,
                                                size_t size, void *value, size_t *out_size)
{
    const cl_int code = next->clGetContextInfo(context, what, size, value, out_size);
    if (code == CL_SUCCESS && what == CL_CONTEXT_DEVICES) spoil_size(out_size);
    return code;
}

static cl_int CL_API_CALL wrap_clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                                        cl_kernel_work_group_info what, size_t size,
                                                        void *value, size_t *out_size)
{
    uint64_t number;
    const char *name = what == CL_KERNEL_WORK_GROUP_SIZE  ? "kernel-group"
                       : what == CL_KERNEL_LOCAL_MEM_SIZE ? "kernel-local"
                                                          : NULL;
    if (name && number_of(name, &number))
        return answer_number(number, sizeof number, size, value, out_size);
    return next->clGetKernelWorkGroupInfo(kernel, device, what, size, value, out_size);
}

/* ---- devices --------------------------------------------------------------------------------- */

static cl_int CL_API_CALL wrap_clGetPlatformIDs(cl_uint n, cl_platform_id *platforms,
                                                cl_uint *out_n)
{
    static atomic_long n_calls;
    if (!is_gone("platforms", &n_calls)) return next->clGetPlatformIDs(n, platforms, out_n);
    if (out_n) *out_n = 0;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL wrap_clGetDeviceIDs(cl_platform_id platform, cl_device_type type,
                                              cl_uint n, cl_device_id *devices, cl_uint *out_n)
{
    static atomic_long n_calls;
    if (is_gone("devices", &n_calls)) {
        if (out_n) *out_n = 0;
        return CL_SUCCESS;
    }
    const cl_int code = next->clGetDeviceIDs(platform, type, n, devices, out_n);
    if (code == CL_SUCCESS && out_n && has("many")) {
        *out_n = N_MANY;
        note();
    }
    return code;
}

/* ---- programs -------------------------------------------------------------------------------- */

static cl_int CL_API_CALL wrap_clBuildProgram(cl_program program, cl_uint n,
                                              const cl_device_id *devices, const char *options,
                                              void(CL_CALLBACK *notify)(cl_program, void *),
                                              void *user)
{
    if (!has("build")) return next->clBuildProgram(program, n, devices, options, notify, user);
    note();
    return CL_BUILD_PROGRAM_FAILURE;
}

static cl_int CL_API_CALL wrap_clGetProgramBuildInfo(cl_program program, cl_device_id device,
                                                     cl_program_build_info what, size_t size,
                                                     void *value, size_t *out_size)
{
    size_t n = 0;
    if (what == CL_PROGRAM_BUILD_LOG && has("log")) {
        if (value && size < LOG_BYTES) return CL_INVALID_VALUE;
        if (value) memset(value, 'l', LOG_BYTES);
        if (value && !has("texts")) ((char *)value)[LOG_BYTES - 1] = '\0';
        if (out_size) *out_size = LOG_BYTES;
        note();
        return CL_SUCCESS;
    }
    const cl_int code = next->clGetProgramBuildInfo(program, device, what, size, value, &n);
    if (out_size) *out_size = n;
    if (code != CL_SUCCESS || what != CL_PROGRAM_BUILD_LOG) return code;
    spoil_text(n, size, value);
    spoil_size(out_size);
    return code;
}

/* Alters the sizes of a program's binaries. */
static void spoil_binary_sizes(size_t *sizes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const size_t right = sizes[i];
        if (has("no-binary")) sizes[i] = 0;
        if (has("huge-binary")) sizes[i] = SIZE_MAX;
        if (has("longer-binary")) sizes[i] += LONGER_BYTES;
        if (sizes[i] != right) note();
    }
}

static void spoil_binaries(cl_program program, unsigned char **binaries, size_t n)
{
    size_t sizes[64];
    if (!has("wrong-binary") || n > 64 ||
        next->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof sizes, sizes, NULL) !=
            CL_SUCCESS)
        return;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; binaries[i] && k < sizes[i]; k++)
            binaries[i][k] = (unsigned char)random_bits();
        if (binaries[i]) note();
    }
}

static cl_int CL_API_CALL wrap_clGetProgramInfo(cl_program program, cl_program_info what,
                                                size_t size, void *value, size_t *out_size)
{
    size_t n = 0;
    const cl_int code = next->clGetProgramInfo(program, what, size, value, &n);
    if (out_size) *out_size = n;
    if (code != CL_SUCCESS) return code;
    if (value && what == CL_PROGRAM_BINARY_SIZES) spoil_binary_sizes(value, n / sizeof(size_t));
    if (value && what == CL_PROGRAM_BINARIES) spoil_binaries(program, value, n / sizeof(void *));
    if (what == CL_PROGRAM_DEVICES || what == CL_PROGRAM_BINARY_SIZES) spoil_size(out_size);
    return code;
}

/* ---- events ---------------------------------------------------------------------------------- */

static cl_int CL_API_CALL wrap_clGetEventProfilingInfo(cl_event event, cl_profiling_info what,
                                                       size_t size, void *value, size_t *out_size)
{
    const cl_int code = next->clGetEventProfilingInfo(event, what, size, value, out_size);
    if (code == CL_SUCCESS && value && size >= sizeof(cl_ulong) && has("times")) {
        const cl_ulong ns = random_bits();
        memcpy(value, &ns, sizeof ns);
        note();
    }
    return code;
}

static int64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Returns whether an event is still to be queued: one at a time is remembered. */
static bool is_still_queued(cl_event event)
{
    static _Atomic(cl_event) asked;
    static _Atomic(int64_t) since_ns;
    if (is_hanging()) return true;
    if (!has("late")) return false;
    if (atomic_exchange(&asked, event) != event) atomic_store(&since_ns, now_ns());
    return now_ns() - atomic_load(&since_ns) < LATE_NS;
}

static cl_int CL_API_CALL wrap_clGetEventInfo(cl_event event, cl_event_info what, size_t size,
                                              void *value, size_t *out_size)
{
    const cl_int code = next->clGetEventInfo(event, what, size, value, out_size);
    if (code != CL_SUCCESS || !value || what != CL_EVENT_COMMAND_EXECUTION_STATUS) return code;
    cl_int state, right;
    memcpy(&state, value, sizeof state);
    right = state;
    if (has("status")) state = 1234;
    if (has("failed")) state = -9999;
    if (is_still_queued(event)) state = CL_QUEUED;
    if (state != right) note();
    memcpy(value, &state, sizeof state);
    return code;
}

static cl_int CL_API_CALL wrap_clFinish(cl_command_queue queue)
{
    wait_late();
    return next->clFinish(queue);
}

static cl_int CL_API_CALL wrap_clWaitForEvents(cl_uint n, const cl_event *events)
{
    wait_late();
    return next->clWaitForEvents(n, events);
}

/* ---- the layer ------------------------------------------------------------------------------- */

static void report(void)
{
    (void)fprintf(stderr, "hostile driver: %ld answers\n", atomic_load(&n_answers));
}

#define USE(name) table.name = wrap_##name

static void fill(void)
{
    USE(clGetDeviceInfo), USE(clGetPlatformInfo), USE(clGetContextInfo);
    USE(clGetKernelWorkGroupInfo), USE(clGetPlatformIDs), USE(clGetDeviceIDs);
    USE(clBuildProgram), USE(clGetProgramBuildInfo), USE(clGetProgramInfo);
    USE(clGetEventProfilingInfo), USE(clGetEventInfo), USE(clFinish), USE(clWaitForEvents);
    if (getenv("CLG_HOSTILE_REPORT")) (void)atexit(report);
}
