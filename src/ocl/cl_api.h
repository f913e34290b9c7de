/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares a table of libOpenCL's functions, filled when the library is opened (`cl.Finish(queue)`
 * calls clFinish), and the check that converts an OpenCL error to a status and a message.
 *
 * The table has only functions of OpenCL 1.2, which every supported driver has.
 */
#ifndef CLG_OCL_CL_API_H
#define CLG_OCL_CL_API_H

#include "base/error.h"
#include "ocl/library/opencl_library.h"

#include <clgraph/opencl.h>

/* Every OpenCL function that the library calls; all are required. */
#define CL_API_FUNCTIONS(X)                                                                        \
    X(GetPlatformIDs)                                                                              \
    X(GetPlatformInfo)                                                                             \
    X(GetDeviceIDs)                                                                                \
    X(GetDeviceInfo)                                                                               \
    X(CreateSubDevices)                                                                            \
    X(RetainDevice)                                                                                \
    X(ReleaseDevice)                                                                               \
    X(CreateContext)                                                                               \
    X(RetainContext)                                                                               \
    X(ReleaseContext)                                                                              \
    X(GetContextInfo)                                                                              \
    X(CreateCommandQueue)                                                                          \
    X(RetainCommandQueue)                                                                          \
    X(ReleaseCommandQueue)                                                                         \
    X(GetCommandQueueInfo)                                                                         \
    X(CreateBuffer)                                                                                \
    X(RetainMemObject)                                                                             \
    X(ReleaseMemObject)                                                                            \
    X(SetMemObjectDestructorCallback)                                                              \
    X(GetMemObjectInfo)                                                                            \
    X(CreateProgramWithSource)                                                                     \
    X(CreateProgramWithBinary)                                                                     \
    X(BuildProgram)                                                                                \
    X(GetProgramInfo)                                                                              \
    X(GetProgramBuildInfo)                                                                         \
    X(ReleaseProgram)                                                                              \
    X(CreateKernel)                                                                                \
    X(ReleaseKernel)                                                                               \
    X(SetKernelArg)                                                                                \
    X(GetKernelWorkGroupInfo)                                                                      \
    X(EnqueueNDRangeKernel)                                                                        \
    X(EnqueueReadBuffer)                                                                           \
    X(EnqueueWriteBuffer)                                                                          \
    X(EnqueueCopyBuffer)                                                                           \
    X(EnqueueFillBuffer)                                                                           \
    X(EnqueueMapBuffer)                                                                            \
    X(EnqueueUnmapMemObject)                                                                       \
    X(EnqueueMarkerWithWaitList)                                                                   \
    X(EnqueueBarrierWithWaitList)                                                                  \
    X(Flush)                                                                                       \
    X(WaitForEvents)                                                                               \
    X(Finish)                                                                                      \
    X(GetEventInfo)                                                                                \
    X(GetEventProfilingInfo)                                                                       \
    X(CreateUserEvent)                                                                             \
    X(SetUserEventStatus)                                                                          \
    X(RetainEvent)                                                                                 \
    X(ReleaseEvent)

typedef struct cl_api {
#define CL_API_MEMBER(name) __typeof__(&cl##name) name;
    CL_API_FUNCTIONS(CL_API_MEMBER)
#undef CL_API_MEMBER
} cl_api;

/* Valid once cl_api_load returned CLG_OK, for the life of the process. */
extern cl_api cl;

/* Opens libOpenCL once per process; later calls repeat the first result. NO_OPENCL: the library or
 * one of its functions is missing; the hint says what to install. */
clg_status cl_api_load(void);
/* Returns the names that cl_api_load tried, in order. None where the process had loaded the library
 * already, or is linked with it. */
const opencl_attempts *cl_api_attempts(void);

/* Returns a code's name, e.g. "CL_OUT_OF_RESOURCES", or "unknown OpenCL error". Never NULL. */
const char *cl_error_name(cl_int code);
/* What to try after a loss of the device. */
#define CL_LOST_HINT                                                                               \
    "call clg_context_recover: sessions of the context can then run again. The system's log may "  \
    "tell why the device or its driver failed"
/* Returns CLG_OK for CL_SUCCESS, else records "clFinish failed on 'device': CL_OUT_OF_RESOURCES
 * (-5)" and returns the matching status. device may be NULL. */
clg_status cl_check(cl_int code, const char *call, const char *device);

/* Calls an OpenCL function and returns cl_check of its result: CL_DO(device, Finish, (queue)). */
#define CL_DO(device, function, arguments) cl_check(cl.function arguments, "cl" #function, (device))

#endif
