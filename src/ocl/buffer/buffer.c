/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocates device memory. Buffers are reference-counted and keep their context alive.
 */
#include "ocl/buffer/buffer_pages.h"

#include "base/memory.h"

#define SMALLEST_BYTES 64

struct ocl_buffer {
    refcount references;
    ocl_context *context;
    cl_mem handle;
    uint64_t serial;
    size_t size_bytes;
    memory_budget *budget; /* in which they count, too; a reference; NULL: none */
    size_t counted_bytes;  /* counted in the context; 0 for the caller's memory and drafts */
};

/* Adds to the context's bytes in use; returns false, and adds nothing, if they would exceed the
 * device's memory. */
static bool take_bytes(ocl_context *ocl, size_t size_bytes)
{
    const uint64_t limit = context_record(ocl)->global_mem_bytes;
    uint64_t used = atomic_load(&ocl->buffer_bytes), after;
    do {
        after = used + size_bytes;
        if (after < used || (limit > 0 && after > limit)) return false;
    } while (!atomic_compare_exchange_weak(&ocl->buffer_bytes, &used, after));
    uint64_t peak = atomic_load(&ocl->buffer_bytes_peak);
    while (peak < after && !atomic_compare_exchange_weak(&ocl->buffer_bytes_peak, &peak, after))
        continue;
    return true;
}

static clg_status too_much(const ocl_context *ocl, size_t size_bytes, const char *why)
{
    const device_record *r = context_record(ocl);
    const double mib = 1.0 / (1024.0 * 1024.0);
    clg_status status =
        error_set(CLG_ERROR_OUT_OF_DEVICE_MEMORY,
                  "device '%s' has no room for a buffer of %.1f MiB: %.1f MiB are in use, the "
                  "device has %.1f MiB, the "
                  "largest single buffer is %.1f MiB%s%s",
                  r->name, (double)size_bytes * mib, (double)atomic_load(&ocl->buffer_bytes) * mib,
                  (double)r->global_mem_bytes * mib, (double)r->max_alloc_bytes * mib,
                  why ? "; " : "", why ? why : "");
    error_hint("use a smaller batch or input, or a device with more memory");
    return status;
}

static ocl_buffer *allocate(ocl_context *ocl)
{
    ocl_buffer *b = memory_zalloc(1, sizeof *b);
    if (!b) return NULL;
    refcount_init(&b->references);
    b->context = ocl_context_retain(ocl);
    b->serial = atomic_fetch_add(&ocl->n_buffers, 1) + 1;
    return b;
}

/* Creates the cl_mem in memory that the driver allocates. */
static clg_status create_by_driver(ocl_buffer *b, ocl_buffer_flags flags)
{
    cl_mem_flags cl_flags = CL_MEM_READ_WRITE;
    if (flags & OCL_BUFFER_HOST_VISIBLE) cl_flags |= CL_MEM_ALLOC_HOST_PTR;
    cl_int code;
    b->handle = cl.CreateBuffer(b->context->handle, cl_flags, b->size_bytes, NULL, &code);
    const clg_status status = context_check(b->context, code, "clCreateBuffer");
    return status == CLG_ERROR_OUT_OF_DEVICE_MEMORY
               ? too_much(b->context, b->size_bytes, cl_error_name(code))
               : status;
}

clg_status ocl_buffer_create(ocl_context *ocl, size_t size_bytes, ocl_buffer_flags flags,
                             ocl_buffer **out_buffer)
{
    *out_buffer = NULL;
    if (size_bytes < SMALLEST_BYTES) size_bytes = SMALLEST_BYTES;
    const uint64_t largest = context_record(ocl)->max_alloc_bytes;
    if (largest > 0 && size_bytes > largest) return too_much(ocl, size_bytes, NULL);
    CLG_TRY(ocl_context_require(ocl));
    ocl_buffer *b = allocate(ocl);
    if (!b) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = memory_budget_take(memory_budget_current(), size_bytes);
    if (status == CLG_OK && !take_bytes(ocl, size_bytes)) {
        memory_budget_give(memory_budget_current(), size_bytes);
        status = too_much(ocl, size_bytes, NULL);
    }
    if (status != CLG_OK) goto failed;
    b->budget = memory_budget_retain(memory_budget_current());
    b->size_bytes = b->counted_bytes = size_bytes;
    status = buffer_pages_create(ocl, size_bytes, &b->handle);
    if (status == CLG_OK && !b->handle) status = create_by_driver(b, flags);
    if (status == CLG_OK) {
        *out_buffer = b;
        return CLG_OK;
    }
failed:
    ocl_buffer_free(b);
    return status;
}

clg_status ocl_buffer_zero_copy(ocl_context *ocl, const void *data, size_t size_bytes,
                                ocl_buffer **out_buffer)
{
    *out_buffer = NULL;
    CLG_TRY(ocl_context_require(ocl));
    ocl_buffer *b = allocate(ocl);
    if (!b) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    cl_int code;
    b->size_bytes = size_bytes;
    b->handle = cl.CreateBuffer(ocl->handle, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, size_bytes,
                                (void *)(uintptr_t)data, &code);
    const clg_status status = context_check(ocl, code, "clCreateBuffer");
    if (status != CLG_OK) {
        ocl_buffer_free(b);
        return status;
    }
    *out_buffer = b;
    return CLG_OK;
}

clg_status ocl_buffer_create_draft(ocl_context *ocl, size_t size_bytes, ocl_buffer **out_buffer)
{
    *out_buffer = allocate(ocl);
    if (!*out_buffer) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    (*out_buffer)->size_bytes = size_bytes;
    return CLG_OK;
}

clg_status ocl_buffer_wrap(ocl_context *ocl, void *memory, ocl_buffer **out_buffer)
{
    *out_buffer = NULL;
    cl_context context = NULL;
    size_t size_bytes = 0;
    CL_TRY(ocl, GetMemObjectInfo, (memory, CL_MEM_CONTEXT, sizeof context, &context, NULL));
    CL_TRY(ocl, GetMemObjectInfo, (memory, CL_MEM_SIZE, sizeof size_bytes, &size_bytes, NULL));
    if (context != ocl->handle)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "the cl_mem belongs to another OpenCL context");
    ocl_buffer *b = allocate(ocl);
    if (!b) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = CONTEXT_DO(ocl, RetainMemObject, (memory));
    if (status != CLG_OK) {
        ocl_buffer_free(b);
        return status;
    }
    b->handle = memory;
    b->size_bytes = size_bytes;
    *out_buffer = b;
    return CLG_OK;
}

ocl_buffer *ocl_buffer_retain(ocl_buffer *b)
{
    refcount_retain(&b->references);
    return b;
}

void ocl_buffer_free(ocl_buffer *b)
{
    if (!b || !refcount_release(&b->references)) return;
    if (b->handle) (void)cl.ReleaseMemObject(b->handle);
    atomic_fetch_sub(&b->context->buffer_bytes, b->counted_bytes);
    memory_budget_give(b->budget, b->counted_bytes);
    memory_budget_free(b->budget);
    ocl_context_free(b->context);
    memory_free(b);
}

size_t ocl_buffer_size(const ocl_buffer *b) { return b->size_bytes; }

void *ocl_buffer_handle(const ocl_buffer *b) { return b->handle; }
uint64_t ocl_buffer_serial(const ocl_buffer *b) { return b->serial; }

bool ocl_buffer_is_shared(const ocl_buffer *b) { return refcount_is_shared(&b->references); }

bool ocl_buffer_is_callers(const ocl_buffer *b) { return b->counted_bytes == 0; }
