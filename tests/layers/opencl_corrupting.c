/* SPDX-License-Identifier: Apache-2.0
 *
 * An OpenCL layer (OPENCL_LAYERS of ocl-icd) that simulates a driver with a wrong kernel: after
 * each launch of one kernel it alters the last element, in memory, that the launch has written and
 * that is not small beside the others; written is what differs from before, and new buffers hold a
 * pattern. Environment variables, read at each launch:
 *
 *   CLG_CORRUPT_KERNEL  the kernel: HASH.NAME, the hash of its program and its name, or NAME alone
 *   CLG_CORRUPT_BY      change: the element is multiplied by 1.01 (integers: at least 1 is added);
 *                       omit: it keeps the value from before the launch;
 *                       swap: it is exchanged with the nearest element before it that differs
 *   CLG_CORRUPT_LOG     a file that gets a line "HASH.NAME" for each kernel that is launched, when
 *                       it is launched first in this process, and "altered" for each alteration,
 *                       "unaltered" for each launch of the kernel without one
 *
 * The hash is that of what the program was created from, source text or binary: list the kernels
 * with a cache that has all programs.
 */
#define LAYER_NAME "clgraph's corrupting driver"
#include "opencl_layer.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ARGS = 64, NAME_BYTES = 96, TYPE_BYTES = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- what objects are ------------------------------------------------------------------------ */

typedef struct kernel_state {
    char id[NAME_BYTES];
    bool logged;
    cl_mem args[MAX_ARGS]; /* NULL: not a buffer */
} kernel_state;

/* An object of OpenCL and what is known of it. Handles that the driver uses again replace earlier
 * entries. */
typedef struct entry {
    const void *handle;
    uint64_t hash;        /* of a program */
    kernel_state *kernel; /* of a kernel */
    bool is_buffer;
} entry;

static entry *entries;
static size_t n_entries, capacity;

/* Returns the entry of a handle, which is added if `add`; else NULL if there is none. */
static entry *find(const void *handle, bool add)
{
    for (size_t i = n_entries; i-- > 0;)
        if (entries[i].handle == handle) return &entries[i];
    if (!add) return NULL;
    if (n_entries == capacity) {
        capacity = capacity ? 2 * capacity : 256;
        entry *more = realloc(entries, capacity * sizeof *more);
        if (!more) abort();
        entries = more;
    }
    entries[n_entries] = (entry){.handle = handle};
    return &entries[n_entries++];
}

static void forget(const void *handle)
{
    pthread_mutex_lock(&lock);
    entry *e = find(handle, false);
    if (e) {
        free(e->kernel);
        *e = entries[--n_entries];
    }
    pthread_mutex_unlock(&lock);
}

static uint64_t hash_of(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < n; i++) h = (h ^ at[i]) * 1099511628211u;
    return h;
}
static const uint64_t HASH_START = 14695981039346656037u;

static void add_program(cl_program p, uint64_t hash)
{
    if (!p) return;
    pthread_mutex_lock(&lock);
    find(p, true)->hash = hash;
    pthread_mutex_unlock(&lock);
}

static cl_program CL_API_CALL wrap_clCreateProgramWithSource(cl_context context, cl_uint n,
                                                             const char **strings,
                                                             const size_t *lengths, cl_int *error)
{
    uint64_t hash = HASH_START;
    for (cl_uint i = 0; strings && i < n; i++)
        if (strings[i])
            hash =
                hash_of(hash, strings[i], lengths && lengths[i] ? lengths[i] : strlen(strings[i]));
    cl_program p = next->clCreateProgramWithSource(context, n, strings, lengths, error);
    add_program(p, hash);
    return p;
}

static cl_program CL_API_CALL wrap_clCreateProgramWithBinary(cl_context context, cl_uint n,
                                                             const cl_device_id *devices,
                                                             const size_t *lengths,
                                                             const unsigned char **binaries,
                                                             cl_int *status, cl_int *error)
{
    const uint64_t hash =
        n && lengths && binaries ? hash_of(HASH_START, binaries[0], lengths[0]) : 0;
    cl_program p =
        next->clCreateProgramWithBinary(context, n, devices, lengths, binaries, status, error);
    add_program(p, hash);
    return p;
}

/* Builds with the option by which a driver tells the types of arguments. */
static cl_int CL_API_CALL wrap_clBuildProgram(cl_program program, cl_uint n,
                                              const cl_device_id *devices, const char *options,
                                              void(CL_CALLBACK *notify)(cl_program, void *),
                                              void *user)
{
    char all[4096];
    const int length = snprintf(all, sizeof all, "%s -cl-kernel-arg-info", options ? options : "");
    return next->clBuildProgram(program, n, devices, length < (int)sizeof all ? all : options,
                                notify, user);
}

static cl_kernel CL_API_CALL wrap_clCreateKernel(cl_program program, const char *name,
                                                 cl_int *error)
{
    cl_kernel k = next->clCreateKernel(program, name, error);
    if (!k) return k;
    pthread_mutex_lock(&lock);
    const entry *p = find(program, false);
    const uint64_t hash = p ? p->hash : 0;
    entry *e = find(k, true);
    free(e->kernel);
    e->kernel = calloc(1, sizeof *e->kernel);
    if (!e->kernel) abort();
    snprintf(e->kernel->id, NAME_BYTES, "%016llx.%s", (unsigned long long)hash, name);
    pthread_mutex_unlock(&lock);
    return k;
}

static cl_int CL_API_CALL wrap_clReleaseKernel(cl_kernel k)
{
    cl_uint count = 0;
    if (next->clGetKernelInfo(k, CL_KERNEL_REFERENCE_COUNT, sizeof count, &count, NULL) ==
            CL_SUCCESS &&
        count == 1)
        forget(k);
    return next->clReleaseKernel(k);
}

static cl_mem add_buffer(cl_mem m)
{
    if (!m) return m;
    pthread_mutex_lock(&lock);
    find(m, true)->is_buffer = true;
    pthread_mutex_unlock(&lock);
    return m;
}

/* Fills a new buffer with a pattern. Drivers hand out memory again: with the results of an earlier
 * run of the same model in it, a launch would seem to have written nothing. */
static cl_mem CL_API_CALL wrap_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
                                              void *host, cl_int *error)
{
    enum { PATTERN = 0xa5 };
    unsigned char *filled = host ? NULL : malloc(size + 1);
    if (!filled) return add_buffer(next->clCreateBuffer(context, flags, size, host, error));
    memset(filled, PATTERN, size);
    cl_mem m = next->clCreateBuffer(context, flags | CL_MEM_COPY_HOST_PTR, size, filled, error);
    free(filled);
    return add_buffer(m);
}

static cl_mem CL_API_CALL wrap_clCreateSubBuffer(cl_mem of, cl_mem_flags flags,
                                                 cl_buffer_create_type type, const void *info,
                                                 cl_int *error)
{
    return add_buffer(next->clCreateSubBuffer(of, flags, type, info, error));
}

static cl_int CL_API_CALL wrap_clReleaseMemObject(cl_mem m)
{
    cl_uint count = 0;
    if (next->clGetMemObjectInfo(m, CL_MEM_REFERENCE_COUNT, sizeof count, &count, NULL) ==
            CL_SUCCESS &&
        count == 1)
        forget(m);
    return next->clReleaseMemObject(m);
}

static cl_int CL_API_CALL wrap_clSetKernelArg(cl_kernel k, cl_uint i, size_t size,
                                              const void *value)
{
    pthread_mutex_lock(&lock);
    entry *e = find(k, false);
    if (e && e->kernel && i < MAX_ARGS) {
        cl_mem m = NULL;
        if (value && size == sizeof m) memcpy(&m, value, sizeof m);
        const entry *b = m ? find(m, false) : NULL;
        e->kernel->args[i] = b && b->is_buffer ? m : NULL;
    }
    pthread_mutex_unlock(&lock);
    return next->clSetKernelArg(k, i, size, value);
}

/* ---- elements -------------------------------------------------------------------------------- */

/* A buffer of a launch, and its contents before and after. */
typedef struct snapshot {
    cl_mem buffer;
    cl_uint arg;
    size_t size;
    unsigned char *before, *after;
} snapshot;

typedef enum element_kind { IS_FLOAT, IS_HALF, IS_DOUBLE, IS_INTEGER } element_kind;

/* Sets kind and size in bytes of the elements to which an argument points; float where the driver
 * does not say. */
static void element_of(cl_kernel k, cl_uint arg, element_kind *kind, size_t *size)
{
    char name[TYPE_BYTES] = "float*";
    (void)next->clGetKernelArgInfo(k, arg, CL_KERNEL_ARG_TYPE_NAME, sizeof name, name, NULL);
    const char *type = name[0] == 'u' ? name + 1 : name;
    *kind = IS_INTEGER;
    if (strncmp(type, "float", 5) == 0) {
        *kind = IS_FLOAT;
        *size = 4;
    } else if (strncmp(type, "double", 6) == 0) {
        *kind = IS_DOUBLE;
        *size = 8;
    } else if (strncmp(type, "half", 4) == 0) {
        *kind = IS_HALF;
        *size = 2;
    } else if (strncmp(type, "char", 4) == 0) {
        *size = 1;
    } else if (strncmp(type, "short", 5) == 0) {
        *size = 2;
    } else {
        *size = strncmp(type, "long", 4) == 0 ? 8 : 4;
    }
}

/* Returns whether an argument points to constant elements; false where the driver does not say. */
static bool is_const(cl_kernel k, cl_uint arg)
{
    cl_kernel_arg_type_qualifier qualifiers = 0;
    (void)next->clGetKernelArgInfo(k, arg, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof qualifiers,
                                   &qualifiers, NULL);
    return (qualifiers & CL_KERNEL_ARG_TYPE_CONST) != 0;
}

/* Returns the magnitude of an element; of a half its bits without the sign, which are in the same
 * order. */
static double magnitude(const unsigned char *at, element_kind kind, size_t size)
{
    uint64_t bits = 0;
    memcpy(&bits, at, size); /* little-endian */
    if (kind == IS_FLOAT) {
        float x;
        memcpy(&x, at, sizeof x);
        return x < 0 ? -(double)x : (double)x;
    }
    if (kind == IS_DOUBLE) {
        double x;
        memcpy(&x, at, sizeof x);
        return x < 0 ? -x : x;
    }
    return kind == IS_HALF ? (double)(bits & 0x7fff) : bits != 0;
}

/* Returns the index of the last written element that is not small beside the largest one written: a
 * change of 1 % of what is nearly zero is within rounding. SIZE_MAX: there is none. */
static size_t last_element(const snapshot *s, element_kind kind, size_t size)
{
    double largest = 0;
    size_t last = SIZE_MAX;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < s->size / size; i++) {
            const unsigned char *at = s->after + i * size;
            const double value = magnitude(at, kind, size);
            if (memcmp(s->before + i * size, at, size) == 0 || !(value < 1e38)) continue;
            if (pass == 0 && value > largest) largest = value;
            if (pass == 1 && value > 0 && value >= largest / 16) last = i;
        }
    return last;
}

/* Changes an element by 1 %. */
static void change(unsigned char *at, element_kind kind, size_t size)
{
    if (kind == IS_FLOAT) {
        float x;
        memcpy(&x, at, sizeof x);
        x *= 1.01f;
        memcpy(at, &x, sizeof x);
    } else if (kind == IS_DOUBLE) {
        double x;
        memcpy(&x, at, sizeof x);
        x *= 1.01;
        memcpy(at, &x, sizeof x);
    } else if (kind == IS_HALF) { /* 10 of 1024 units in the last place, 0.5 to 1 % */
        uint16_t x;
        memcpy(&x, at, sizeof x);
        x = (uint16_t)(x + 10);
        memcpy(at, &x, sizeof x);
    } else {
        uint64_t x = 0;
        memcpy(&x, at, size); /* little-endian */
        x += x / 100 > 0 && size > 1 ? x / 100 : 1;
        memcpy(at, &x, size);
    }
}

/* ---- launches -------------------------------------------------------------------------------- */

static unsigned char *contents(cl_command_queue queue, cl_mem m, size_t size)
{
    unsigned char *bytes = malloc(size + 1);
    if (!bytes ||
        next->clEnqueueReadBuffer(queue, m, CL_TRUE, 0, size, bytes, 0, NULL, NULL) != CL_SUCCESS) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

/* Alters the last written element of a buffer. Returns whether there is one. */
static bool alter(cl_command_queue queue, cl_kernel k, const snapshot *s, const char *by)
{
    element_kind kind;
    size_t size;
    element_of(k, s->arg, &kind, &size);
    const size_t at = last_element(s, kind, size);
    if (at == SIZE_MAX) return false;
    unsigned char *last = s->after + at * size, held[8];
    memcpy(held, last, size);
    if (strcmp(by, "change") == 0) {
        change(last, kind, size);
        if (memcmp(last, held, size) == 0) last[0]++; /* no float, after all */
    } else if (strcmp(by, "omit") == 0) {
        memcpy(last, s->before + at * size, size);
    } else {
        size_t other = at;
        while (other-- > 0)
            if (memcmp(s->before + other * size, s->after + other * size, size) != 0 &&
                memcmp(s->after + other * size, held, size) != 0)
                break;
        if (other == SIZE_MAX) return false;
        memcpy(last, s->after + other * size, size);
        memcpy(s->after + other * size, held, size);
        if (next->clEnqueueWriteBuffer(queue, s->buffer, CL_TRUE, other * size, size,
                                       s->after + other * size, 0, NULL, NULL) != CL_SUCCESS)
            return false;
    }
    return next->clEnqueueWriteBuffer(queue, s->buffer, CL_TRUE, at * size, size, last, 0, NULL,
                                      NULL) == CL_SUCCESS;
}

static void write_log(const char *line)
{
    const char *path = getenv("CLG_CORRUPT_LOG");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f) return;
    fprintf(f, "%s\n", line);
    fclose(f);
}

/* Copies a kernel's state and logs its first launch. Returns false for an unknown kernel. */
static bool state_of(cl_kernel k, kernel_state *out)
{
    pthread_mutex_lock(&lock);
    const entry *e = find(k, false);
    const bool known = e && e->kernel;
    if (known) {
        *out = *e->kernel;
        if (!out->logged) write_log(out->id);
        e->kernel->logged = true;
    }
    pthread_mutex_unlock(&lock);
    return known;
}

static bool is_chosen(const char *id)
{
    const char *chosen = getenv("CLG_CORRUPT_KERNEL"), *name = strchr(id, '.');
    return chosen && (strcmp(chosen, id) == 0 || (name && strcmp(chosen, name + 1) == 0));
}

static cl_int CL_API_CALL wrap_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel k,
                                                      cl_uint n_dims, const size_t *offset,
                                                      const size_t *global, const size_t *local,
                                                      cl_uint n_wait, const cl_event *wait,
                                                      cl_event *event)
{
    kernel_state state;
    const char *by = getenv("CLG_CORRUPT_BY");
    if (!state_of(k, &state) || !by || !is_chosen(state.id))
        return next->clEnqueueNDRangeKernel(queue, k, n_dims, offset, global, local, n_wait, wait,
                                            event);
    snapshot all[MAX_ARGS];
    size_t n = 0, largest = 0;
    if (n_wait) (void)next->clWaitForEvents(n_wait, wait);
    for (cl_uint i = 0; i < MAX_ARGS; i++) {
        snapshot s = {.buffer = state.args[i], .arg = i};
        bool seen = false;
        for (size_t j = 0; j < n; j++)
            if (all[j].buffer == s.buffer) {
                seen = true; /* the type is that of a pointer to which the kernel may write */
                if (!is_const(k, i)) all[j].arg = i;
            }
        if (!s.buffer || seen ||
            next->clGetMemObjectInfo(s.buffer, CL_MEM_SIZE, sizeof s.size, &s.size, NULL) !=
                CL_SUCCESS)
            continue;
        s.before = contents(queue, s.buffer, s.size);
        if (s.before) all[n++] = s;
    }
    const cl_int status =
        next->clEnqueueNDRangeKernel(queue, k, n_dims, offset, global, local, n_wait, wait, event);
    (void)next->clFinish(queue);
    /* the buffer in which most bytes were written has the results */
    for (size_t i = 0, most = 0; i < n; i++) {
        size_t written = 0;
        all[i].after = contents(queue, all[i].buffer, all[i].size);
        for (size_t b = 0; all[i].after && b < all[i].size; b++)
            written += all[i].before[b] != all[i].after[b];
        if (written > most) {
            most = written;
            largest = i;
        }
    }
    const bool altered = n && all[largest].after && alter(queue, k, &all[largest], by);
    write_log(altered ? "altered" : "unaltered");
    for (size_t i = 0; i < n; i++) {
        free(all[i].before);
        free(all[i].after);
    }
    return status;
}

static void fill(void)
{
    table.clCreateProgramWithSource = wrap_clCreateProgramWithSource;
    table.clCreateProgramWithBinary = wrap_clCreateProgramWithBinary;
    table.clBuildProgram = wrap_clBuildProgram;
    table.clCreateKernel = wrap_clCreateKernel;
    table.clReleaseKernel = wrap_clReleaseKernel;
    table.clCreateBuffer = wrap_clCreateBuffer;
    table.clCreateSubBuffer = wrap_clCreateSubBuffer;
    table.clReleaseMemObject = wrap_clReleaseMemObject;
    table.clSetKernelArg = wrap_clSetKernelArg;
    table.clEnqueueNDRangeKernel = wrap_clEnqueueNDRangeKernel;
}
