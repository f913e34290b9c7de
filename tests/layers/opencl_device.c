/* SPDX-License-Identifier: Apache-2.0
 *
 * An OpenCL layer (OPENCL_LAYERS of ocl-icd) that reports other device limits than the driver:
 *
 *   CLG_DEVICE_FLOATS  native vector width in floats
 *   CLG_DEVICE_UNITS   number of compute units
 *   CLG_DEVICE_MHZ     clock
 *   CLG_DEVICE_ORIGIN  1: launches begin at 0, whatever their global offset is
 *   CLG_DEVICE_NS      nanoseconds that every command takes, as its time stamps say
 *   CLG_DEVICE_ITEMS   maximum work-group size; launches of larger groups are rejected
 *   CLG_KERNEL_ITEMS   maximum work-group size of every kernel, while the device reports more, as
 *                      on devices with few registers; launches of larger groups are rejected
 *
 * The variables are read at each call, so a test may change them. CLG_DEVICE_FLOATS=8 is for
 * valgrind, which hides AVX-512 from drivers and makes compiling take many minutes: programs that
 * were compiled without valgrind, with POCL_KERNELLIB_NAME=avx2, are then found in the cache.
 */
#define LAYER_NAME "clgraph's other device"
#include "opencl_layer.h"

#include <stdint.h>
#include <stdlib.h>

static size_t number_of(const char *variable, size_t otherwise)
{
    const char *number = getenv(variable);
    return number ? strtoul(number, NULL, 10) : otherwise;
}

static size_t max_items(void)
{
    const size_t device = number_of("CLG_DEVICE_ITEMS", SIZE_MAX),
                 kernel = number_of("CLG_KERNEL_ITEMS", SIZE_MAX);
    return device < kernel ? device : kernel;
}

static cl_int CL_API_CALL wrap_clGetDeviceInfo(cl_device_id device, cl_device_info what,
                                               size_t size, void *value, size_t *out_size)
{
    const cl_uint floats = (cl_uint)number_of("CLG_DEVICE_FLOATS", 0),
                  units = (cl_uint)number_of("CLG_DEVICE_UNITS", 0),
                  mhz = (cl_uint)number_of("CLG_DEVICE_MHZ", 0);
    const size_t items = number_of("CLG_DEVICE_ITEMS", 0), sizes[3] = {items, items, items};
    switch (what) {
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT:
        if (floats > 0) return answer(&floats, sizeof floats, size, value, out_size);
        break;
    case CL_DEVICE_MAX_COMPUTE_UNITS:
        if (units > 0) return answer(&units, sizeof units, size, value, out_size);
        break;
    case CL_DEVICE_MAX_CLOCK_FREQUENCY:
        if (mhz > 0) return answer(&mhz, sizeof mhz, size, value, out_size);
        break;
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        if (items > 0) return answer(&items, sizeof items, size, value, out_size);
        break;
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
        if (items > 0) return answer(sizes, sizeof sizes, size, value, out_size);
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
    if (code != CL_SUCCESS || what != CL_KERNEL_WORK_GROUP_SIZE || !value) return code;
    memcpy(&items, value, sizeof items);
    if (items > max_items()) items = max_items();
    memcpy(value, &items, sizeof items);
    return CL_SUCCESS;
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
    if (number_of("CLG_DEVICE_ORIGIN", 0) > 0) offset = NULL;
    return next->clEnqueueNDRangeKernel(queue, kernel, n_dims, offset, global, local, n_events,
                                        events, event);
}

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

static void fill(void)
{
    table.clGetDeviceInfo = wrap_clGetDeviceInfo;
    table.clGetKernelWorkGroupInfo = wrap_clGetKernelWorkGroupInfo;
    table.clGetEventProfilingInfo = wrap_clGetEventProfilingInfo;
    table.clEnqueueNDRangeKernel = wrap_clEnqueueNDRangeKernel;
}
