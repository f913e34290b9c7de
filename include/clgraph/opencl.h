/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares OpenCL contexts, queues, buffers and events between clgraph and an application that uses
 * OpenCL itself. clgraph retains the objects that it is given. Objects that it returns are borrowed
 * unless a function says otherwise.
 */
#ifndef CLGRAPH_OPENCL_H
#define CLGRAPH_OPENCL_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#ifdef __APPLE__
#include <OpenCL/opencl.h>
#else
#include <CL/cl.h>
#endif

#include <clgraph/clgraph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a clgraph context for a device of the caller's OpenCL context. queue may be NULL. If it
 * is given, it must be in order, and the first session of the context enqueues its commands in it,
 * so that they execute after those that the caller enqueued before. options may be NULL; its
 * fallback and cpu_threads are ignored. Errors: INVALID_ARGUMENT (objects that do not belong
 * together, an out-of-order queue), NO_OPENCL, UNSUPPORTED_DEVICE, OUT_OF_DEVICE_MEMORY,
 * DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_context_create_opencl(cl_context context, cl_device_id device,
                                                          cl_command_queue queue,
                                                          const clg_context_options *options,
                                                          clg_context **out_context);
/* Return the OpenCL context and device of a clgraph context, borrowed; NULL for NULL. */
CLG_API cl_context clg_context_opencl(const clg_context *context);
CLG_API cl_device_id clg_context_opencl_device(const clg_context *context);
/* Returns the in-order queue that the session enqueues its commands in, borrowed; NULL for NULL. */
CLG_API cl_command_queue clg_session_opencl_queue(const clg_session *session);

/* Creates a dense, row-major device tensor over the caller's buffer, which is retained, starting at
 * offset_bytes (a multiple of the element size). If the caller's own queues write the buffer, the
 * caller must synchronise: with clg_session_wait_for_events, or clFinish before clgraph uses it; a
 * blocking call on one queue does not order commands of another. Writes by a run or clg_value_write
 * are complete when the call returns. Errors: INVALID_ARGUMENT (offset, dims, too small, another
 * context). */
CLG_API CLG_MUST_USE clg_status clg_value_create_opencl(clg_context *context, cl_mem memory,
                                                        size_t offset_bytes, clg_dtype dtype,
                                                        size_t rank, const int64_t *dims,
                                                        clg_value **out_value);
/* Returns the buffer of a device tensor, borrowed; *out_offset_bytes is where the tensor starts.
 * Errors: INVALID_ARGUMENT when the value is not on a device. */
CLG_API CLG_MUST_USE clg_status clg_value_opencl(const clg_value *value, cl_mem *out_memory,
                                                 size_t *out_offset_bytes);

/* Makes the commands of the next run wait for these events, which are retained. events may be NULL
 * when n_events is 0. Errors: BUSY, DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_session_wait_for_events(clg_session *session, cl_uint n_events,
                                                            const cl_event *events);
/* Returns an event that completes with the last run started, which may still be in flight; the
 * caller releases it. Errors: BUSY, OUT_OF_DEVICE_MEMORY, DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_session_event(clg_session *session, cl_event *out_event);

#ifdef __cplusplus
}
#endif
#endif
