/* SPDX-License-Identifier: Apache-2.0
 *
 * An OpenCL layer (OPENCL_LAYERS of ocl-icd) that finds accesses outside of device buffers where
 * the device is the host's processor and uses the memory of CL_MEM_USE_HOST_PTR in place, as PoCL
 * does. Each buffer gets memory of its own between two inaccessible areas:
 *
 *   guard | slack | buffer | slack | guard
 *
 *   CLG_GUARD        `after` (default): the buffer ends where the guard begins, or less than
 *                    CLG_GUARD_ALIGN bytes before; `before`: the buffer begins where a guard ends
 *   CLG_GUARD_ALIGN  alignment in bytes of the buffer's address, a power of two: 64 (default) is
 *                    what a float16 needs; a multiple of the size of all types that kernels load
 *   CLG_GUARD_REPORT 1: at the end, prints the numbers of buffers and launches to stderr
 *
 * An access to a guard is a SIGSEGV; the handler prints the buffer, the offset and the kernel that
 * was launched last, and the process ends by the signal. The slack, and every new buffer, has bytes
 * of 0xFF: NaNs, which show in results when they are read, and huge indices. A write to the slack
 * is found after the next launch, at the release of the buffer and at the end of the process, which
 * then ends by abort().
 *
 * Every launch is waited for, so that the last one is the one that faults, except while there are
 * user events that are not complete. Read-only buffers with the application's memory
 * (CL_MEM_USE_HOST_PTR) are guarded copies of it, which a driver may make; writable ones are not
 * guarded. Sub-buffers have the guards of their buffer. See decision 56.
 */
#define _GNU_SOURCE
#define LAYER_NAME "clgraph's guard pages"
#include "opencl_layer.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define GUARD_BYTES ((size_t)1 << 20) /* of addresses, on each side of a buffer */
#define MAX_BUFFERS 16384             /* live at a time */
#define CANARY 0xFF
#define MAX_NAME 128

typedef struct region {
    _Atomic(unsigned char *) base; /* of the first guard; NULL: a free place */
    unsigned char *data, *usable;  /* the buffer; the pages between the guards */
    size_t size, usable_bytes;
    long number; /* in the order of creation, from 1 */
} region;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* writers of regions; n_used */
static region regions[MAX_BUFFERS];
static atomic_size_t n_used; /* places below are free or not, those from it on are free */
static atomic_long n_buffers, n_launches, n_open_events;
static char last_kernel[MAX_NAME] = "none";
static size_t page_bytes, align_bytes = 64;
static bool guards_before;

/* ---- messages -------------------------------------------------------------------------------- */

static size_t add_text(char *line, size_t n, const char *text)
{
    while (*text && n < 500) line[n++] = *text++;
    return n;
}

static size_t add_number(char *line, size_t n, size_t number)
{
    char digits[24];
    size_t k = sizeof digits;
    digits[--k] = '\0';
    do digits[--k] = (char)('0' + number % 10);
    while (number /= 10);
    return add_text(line, n, digits + k);
}

/* Prints what happened to a buffer, by functions that a signal handler may call. */
static void print_finding(const char *what, const region *r, const unsigned char *at)
{
    char line[512];
    const bool is_before = at < r->data;
    size_t n = add_text(line, 0, "guard pages: ");
    n = add_text(line, n, what);
    n = add_text(line, n, " ");
    n = add_number(line, n, is_before ? (size_t)(r->data - at) : (size_t)(at - r->data) - r->size);
    n = add_text(line, n, is_before ? " bytes before buffer " : " bytes after the end of buffer ");
    n = add_number(line, n, (size_t)r->number);
    n = add_text(line, n, " of ");
    n = add_number(line, n, r->size);
    n = add_text(line, n, " bytes; the last launch was of kernel '");
    n = add_text(line, n, last_kernel);
    n = add_text(line, n, "'\n");
    if (write(STDERR_FILENO, line, n) < 0) return;
}

static void print_other(void)
{
    char line[512];
    size_t n = add_text(line, 0,
                        "guard pages: a fault at no buffer, or a vector that needs more than "
                        "CLG_GUARD_ALIGN; the last launch was of kernel '");
    n = add_text(line, n, last_kernel);
    n = add_text(line, n, "'\n");
    if (write(STDERR_FILENO, line, n) < 0) return;
}

static void handle(int signal_number, siginfo_t *info, void *context)
{
    const unsigned char *at = info->si_addr;
    (void)context;
    for (size_t i = 0; i < atomic_load(&n_used); i++) {
        const unsigned char *base = atomic_load(&regions[i].base);
        const region *r = &regions[i];
        if (base && at >= base && at < base + r->usable_bytes + 2 * GUARD_BYTES) {
            print_finding("access", r, at);
            (void)signal(signal_number, SIG_DFL); /* the repeated instruction ends the process */
            return;
        }
    }
    print_other();
    (void)signal(signal_number, SIG_DFL);
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* Returns the first byte of [from, to) that is not as it was filled; NULL: all are. */
static const unsigned char *altered(const unsigned char *from, const unsigned char *to)
{
    for (; from < to; from++)
        if (*from != CANARY) return from;
    return NULL;
}

/* Ends the process if the slack of a buffer was written to. */
static void check(const region *r)
{
    const unsigned char *at = altered(r->usable, r->data);
    if (!at) at = altered(r->data + r->size, r->usable + r->usable_bytes);
    if (!at) return;
    print_finding("write", r, at);
    abort();
}

static void check_all(void)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < atomic_load(&n_used); i++)
        if (atomic_load(&regions[i].base)) check(&regions[i]);
    pthread_mutex_unlock(&lock);
}

static void free_region(region *r)
{
    unsigned char *base = atomic_exchange(&r->base, NULL);
    if (base) (void)munmap(base, r->usable_bytes + 2 * GUARD_BYTES);
}

/* Reserves memory between guards. Returns NULL when there is none. */
static region *new_region(size_t size)
{
    const size_t rounded = (size + align_bytes - 1) / align_bytes * align_bytes;
    const size_t usable_bytes = (rounded + page_bytes - 1) / page_bytes * page_bytes;
    if (size == 0 || usable_bytes < size) return NULL;
    unsigned char *base = mmap(NULL, usable_bytes + 2 * GUARD_BYTES, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return NULL;
    size_t i = 0;
    pthread_mutex_lock(&lock);
    while (i < MAX_BUFFERS && atomic_load(&regions[i].base)) i++;
    if (i == MAX_BUFFERS ||
        mprotect(base + GUARD_BYTES, usable_bytes, PROT_READ | PROT_WRITE) != 0) {
        pthread_mutex_unlock(&lock);
        (void)munmap(base, usable_bytes + 2 * GUARD_BYTES);
        return NULL;
    }
    region *r = &regions[i];
    r->usable = base + GUARD_BYTES;
    r->usable_bytes = usable_bytes;
    r->data = r->usable + (guards_before ? 0 : usable_bytes - rounded);
    r->size = size;
    r->number = atomic_fetch_add(&n_buffers, 1) + 1;
    memset(r->usable, CANARY, (size_t)(r->data - r->usable));
    memset(r->data + size, CANARY, (size_t)(r->usable + usable_bytes - (r->data + size)));
    if (i >= atomic_load(&n_used)) atomic_store(&n_used, i + 1);
    atomic_store(&r->base, base);
    pthread_mutex_unlock(&lock);
    return r;
}

static void CL_CALLBACK destroyed(cl_mem memory, void *user)
{
    (void)memory;
    pthread_mutex_lock(&lock);
    check(user);
    free_region(user);
    pthread_mutex_unlock(&lock);
}

static cl_mem CL_API_CALL wrap_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
                                              void *host, cl_int *out_code)
{
    const cl_mem_flags memory_flags =
        CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR | CL_MEM_ALLOC_HOST_PTR;
    const bool is_callers = flags & CL_MEM_USE_HOST_PTR, copies = flags & CL_MEM_COPY_HOST_PTR;
    const bool is_valid = (is_callers || copies) == (host != NULL);
    region *r = NULL;
    if (is_valid && (!is_callers || (flags & CL_MEM_READ_ONLY))) r = new_region(size);
    if (!r) return next->clCreateBuffer(context, flags, size, host, out_code);
    cl_mem memory = next->clCreateBuffer(context, (flags & ~memory_flags) | CL_MEM_USE_HOST_PTR,
                                         size, r->data, out_code);
    if (!memory) {
        free_region(r);
        return NULL;
    }
    (void)next->clSetMemObjectDestructorCallback(memory, destroyed, r);
    if (host)
        memcpy(r->data, host, size);
    else
        memset(r->data, CANARY, size);
    return memory;
}

/* ---- launches -------------------------------------------------------------------------------- */

static cl_int CL_API_CALL wrap_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
                                                      cl_uint n_dims, const size_t *offset,
                                                      const size_t *global, const size_t *local,
                                                      cl_uint n_events, const cl_event *events,
                                                      cl_event *event)
{
    char name[MAX_NAME];
    if (next->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL) ==
        CL_SUCCESS) {
        pthread_mutex_lock(&lock);
        memcpy(last_kernel, name, sizeof name);
        pthread_mutex_unlock(&lock);
    }
    const cl_int code = next->clEnqueueNDRangeKernel(queue, kernel, n_dims, offset, global, local,
                                                     n_events, events, event);
    if (code == CL_SUCCESS) {
        atomic_fetch_add(&n_launches, 1);
        if (atomic_load(&n_open_events) == 0) (void)next->clFinish(queue);
        check_all();
    }
    return code;
}

static cl_event CL_API_CALL wrap_clCreateUserEvent(cl_context context, cl_int *out_code)
{
    atomic_fetch_add(&n_open_events, 1); /* before a launch can wait for it */
    cl_event event = next->clCreateUserEvent(context, out_code);
    if (!event) atomic_fetch_sub(&n_open_events, 1);
    return event;
}

static cl_int CL_API_CALL wrap_clSetUserEventStatus(cl_event event, cl_int status)
{
    const cl_int code = next->clSetUserEventStatus(event, status);
    if (code == CL_SUCCESS) atomic_fetch_sub(&n_open_events, 1);
    return code;
}

/* ---- the layer ------------------------------------------------------------------------------- */

static void at_end(void)
{
    check_all();
    if (getenv("CLG_GUARD_REPORT"))
        (void)fprintf(stderr, "guard pages: %ld buffers, %ld launches\n", atomic_load(&n_buffers),
                      atomic_load(&n_launches));
}

static void fill(void)
{
    const char *where = getenv("CLG_GUARD"), *align = getenv("CLG_GUARD_ALIGN");
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    guards_before = where && strcmp(where, "before") == 0;
    if (align && atol(align) > 0) align_bytes = (size_t)atol(align);
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGSEGV, &action, NULL);
    (void)sigaction(SIGBUS, &action, NULL);
    (void)atexit(at_end);
    table.clCreateBuffer = wrap_clCreateBuffer;
    table.clEnqueueNDRangeKernel = wrap_clEnqueueNDRangeKernel;
    table.clCreateUserEvent = wrap_clCreateUserEvent;
    table.clSetUserEventStatus = wrap_clSetUserEventStatus;
}
