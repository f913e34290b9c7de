/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps OpenCL's error codes to names and statuses. OpenCL 1.2 has no code for a lost device.
 * Drivers report a crashed kernel or a lost device from a later call, as CL_OUT_OF_RESOURCES,
 * CL_INVALID_COMMAND_QUEUE, CL_INVALID_CONTEXT, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, or a
 * code that no standard knows, such as NVIDIA's -9999. The library never passes an invalid queue or
 * context; but from a call that may allocate, CL_OUT_OF_RESOURCES keeps OpenCL's meaning.
 */
#include "ocl/cl_api.h"

#include <CL/cl_ext.h>

#include <string.h>

#ifndef CL_PLATFORM_NOT_FOUND_KHR
#define CL_PLATFORM_NOT_FOUND_KHR (-1001)
#endif

typedef struct error_row {
    cl_int code;
    const char *name;
    clg_status status;
} error_row;

#define MEMORY CLG_ERROR_OUT_OF_DEVICE_MEMORY
#define BUILD CLG_ERROR_KERNEL_BUILD
#define LOST CLG_ERROR_DEVICE_LOST
#define UNSUPPORTED CLG_ERROR_UNSUPPORTED_DEVICE
#define DEFECT CLG_ERROR_INTERNAL
#define ROW(code, status)                                                                          \
    {                                                                                              \
        code, #code, status                                                                        \
    }

static const error_row rows[] = {
    ROW(CL_DEVICE_NOT_FOUND, CLG_ERROR_NO_DEVICE),
    ROW(CL_DEVICE_NOT_AVAILABLE, LOST),
    ROW(CL_COMPILER_NOT_AVAILABLE, UNSUPPORTED),
    ROW(CL_MEM_OBJECT_ALLOCATION_FAILURE, MEMORY),
    ROW(CL_OUT_OF_RESOURCES, MEMORY),
    ROW(CL_OUT_OF_HOST_MEMORY, CLG_ERROR_OUT_OF_HOST_MEMORY),
    ROW(CL_PROFILING_INFO_NOT_AVAILABLE, UNSUPPORTED),
    ROW(CL_MEM_COPY_OVERLAP, DEFECT),
    ROW(CL_IMAGE_FORMAT_MISMATCH, DEFECT),
    ROW(CL_IMAGE_FORMAT_NOT_SUPPORTED, UNSUPPORTED),
    ROW(CL_BUILD_PROGRAM_FAILURE, BUILD),
    ROW(CL_MAP_FAILURE, MEMORY),
    ROW(CL_MISALIGNED_SUB_BUFFER_OFFSET, DEFECT),
    ROW(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, LOST),
    ROW(CL_COMPILE_PROGRAM_FAILURE, BUILD),
    ROW(CL_LINKER_NOT_AVAILABLE, UNSUPPORTED),
    ROW(CL_LINK_PROGRAM_FAILURE, BUILD),
    ROW(CL_DEVICE_PARTITION_FAILED, UNSUPPORTED),
    ROW(CL_KERNEL_ARG_INFO_NOT_AVAILABLE, UNSUPPORTED),
    ROW(CL_INVALID_VALUE, DEFECT),
    ROW(CL_INVALID_DEVICE_TYPE, DEFECT),
    ROW(CL_INVALID_PLATFORM, DEFECT),
    ROW(CL_INVALID_DEVICE, DEFECT),
    ROW(CL_INVALID_CONTEXT, LOST),
    ROW(CL_INVALID_QUEUE_PROPERTIES, UNSUPPORTED),
    ROW(CL_INVALID_COMMAND_QUEUE, LOST),
    ROW(CL_INVALID_HOST_PTR, DEFECT),
    ROW(CL_INVALID_MEM_OBJECT, DEFECT),
    ROW(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, DEFECT),
    ROW(CL_INVALID_IMAGE_SIZE, DEFECT),
    ROW(CL_INVALID_SAMPLER, DEFECT),
    ROW(CL_INVALID_BINARY, BUILD),
    ROW(CL_INVALID_BUILD_OPTIONS, BUILD),
    ROW(CL_INVALID_PROGRAM, DEFECT),
    ROW(CL_INVALID_PROGRAM_EXECUTABLE, BUILD),
    ROW(CL_INVALID_KERNEL_NAME, BUILD), /* the text has the kernel: its compiler lost it */
    ROW(CL_INVALID_KERNEL_DEFINITION, DEFECT),
    ROW(CL_INVALID_KERNEL, DEFECT),
    ROW(CL_INVALID_ARG_INDEX, DEFECT),
    ROW(CL_INVALID_ARG_VALUE, DEFECT),
    ROW(CL_INVALID_ARG_SIZE, DEFECT),
    ROW(CL_INVALID_KERNEL_ARGS, DEFECT),
    ROW(CL_INVALID_WORK_DIMENSION, DEFECT),
    ROW(CL_INVALID_WORK_GROUP_SIZE, UNSUPPORTED),
    ROW(CL_INVALID_WORK_ITEM_SIZE, UNSUPPORTED),
    ROW(CL_INVALID_GLOBAL_OFFSET, DEFECT),
    ROW(CL_INVALID_EVENT_WAIT_LIST, DEFECT),
    ROW(CL_INVALID_EVENT, DEFECT),
    ROW(CL_INVALID_OPERATION, UNSUPPORTED),
    ROW(CL_INVALID_GL_OBJECT, DEFECT),
    ROW(CL_INVALID_BUFFER_SIZE, MEMORY),
    ROW(CL_INVALID_MIP_LEVEL, DEFECT),
    ROW(CL_INVALID_GLOBAL_WORK_SIZE, DEFECT),
    ROW(CL_INVALID_PROPERTY, DEFECT),
    ROW(CL_INVALID_IMAGE_DESCRIPTOR, DEFECT),
    ROW(CL_INVALID_COMPILER_OPTIONS, BUILD),
    ROW(CL_INVALID_LINKER_OPTIONS, BUILD),
    ROW(CL_INVALID_DEVICE_PARTITION_COUNT, UNSUPPORTED),
    ROW(CL_PLATFORM_NOT_FOUND_KHR, CLG_ERROR_NO_OPENCL),
};

static const error_row *row_of(cl_int code)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == code) return &rows[i];
    return NULL;
}

const char *cl_error_name(cl_int code)
{
    const error_row *row = row_of(code);
    return row ? row->name : code == CL_SUCCESS ? "CL_SUCCESS" : "unknown OpenCL error";
}

/* Returns whether a call may allocate, so that its CL_OUT_OF_RESOURCES means a lack of memory. */
static bool call_takes_memory(const char *call)
{
    return strncmp(call, "clCreate", 8) == 0 || strcmp(call, "clEnqueueNDRangeKernel") == 0 ||
           strcmp(call, "clBuildProgram") == 0 || strncmp(call, "CLBlast", 7) == 0;
}

static clg_status status_of(cl_int code, const char *call)
{
    if (code == CL_OUT_OF_RESOURCES && !call_takes_memory(call)) return LOST;
    const error_row *row = row_of(code);
    return row ? row->status : LOST; /* not a code of OpenCL: taken for a driver failure */
}

clg_status cl_check(cl_int code, const char *call, const char *device)
{
    if (code == CL_SUCCESS) return CLG_OK;
    clg_status status = status_of(code, call);
    if (device)
        error_set(status, "%s failed on '%s': %s (%d)", call, device, cl_error_name(code),
                  (int)code);
    else
        error_set(status, "%s failed: %s (%d)", call, cl_error_name(code), (int)code);
    if (status == LOST) error_hint(CL_LOST_HINT);
    return status;
}
