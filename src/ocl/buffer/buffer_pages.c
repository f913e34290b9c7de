/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements buffer_pages.h. The memory is zero-copy memory of OpenCL (CL_MEM_USE_HOST_PTR). The
 * driver says when it no longer needs it, which may be after the last reference is released, since
 * commands may still use it: from one of its threads, so that the library must stay loaded
 * (cmake/Library.cmake).
 */
#include "ocl/buffer/buffer_pages.h"

#include "base/error.h"
#include "base/system.h"

/* A huge page on x86-64, and on AArch64 with pages of 4 KiB. Smaller buffers have none. */
#define MIN_BYTES ((size_t)2 << 20)

static atomic_size_t use_from = MIN_BYTES, n_live;

void buffer_pages_use_from(size_t min_bytes)
{
    atomic_store(&use_from, min_bytes > 0 ? min_bytes : MIN_BYTES);
}

size_t buffer_pages_n_live(void) { return atomic_load(&n_live); }

/* Only drivers with which models and tests were run so. */
static bool is_used_by(const device_caps *caps)
{
    return caps->kind == CLG_DEVICE_CPU && caps->zero_copy_align_bytes > 0 &&
           (caps->family == PLATFORM_POCL || caps->family == PLATFORM_INTEL_CPU);
}

static void CL_CALLBACK release(cl_mem handle, void *memory)
{
    (void)handle; /* deleted */
    sys_unmap_huge(memory);
    atomic_fetch_sub(&n_live, 1);
}

/* Creates the cl_mem. *out_handle stays NULL if a call fails. */
static clg_status create_in(ocl_context *ocl, void *memory, size_t size_bytes, cl_mem *out_handle)
{
    cl_int code;
    cl_mem handle = cl.CreateBuffer(ocl->handle, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                    size_bytes, memory, &code);
    CLG_TRY(context_check(ocl, code, "clCreateBuffer"));
    const clg_status status =
        CONTEXT_DO(ocl, SetMemObjectDestructorCallback, (handle, release, memory));
    if (status == CLG_OK)
        *out_handle = handle;
    else
        (void)cl.ReleaseMemObject(handle);
    return status;
}

clg_status buffer_pages_create(ocl_context *ocl, size_t size_bytes, cl_mem *out_handle)
{
    *out_handle = NULL;
    if (size_bytes < atomic_load(&use_from) || !is_used_by(context_caps(ocl))) return CLG_OK;
    void *memory = sys_map_huge(size_bytes);
    if (!memory) return CLG_OK;
    error_record before;
    error_save(CLG_OK, &before);
    atomic_fetch_add(&n_live, 1);
    const clg_status status = create_in(ocl, memory, size_bytes, out_handle);
    if (status == CLG_OK) return CLG_OK;
    sys_unmap_huge(memory);
    atomic_fetch_sub(&n_live, 1);
    return status == CLG_ERROR_DEVICE_LOST ? status : error_restore(&before);
}
