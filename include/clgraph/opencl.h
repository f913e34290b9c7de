/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares OpenCL objects with an application that uses OpenCL itself: contexts, queues, memory,
 * events. clgraph retains objects given to it; objects taken from it are borrowed unless said
 * otherwise.
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

/* Creates a clgraph context over the caller's, which must have the device. queue may be NULL; if
 * given, the first session of the context works in it (it must be in order), so that a run sees the
 * results of kernels that the caller enqueued before. options may be NULL; fallback and cpu_threads
 * have no effect. Errors: INVALID_ARGUMENT (objects that do not belong together, an out-of-order
 * queue), NO_OPENCL, UNSUPPORTED_DEVICE, OUT_OF_DEVICE_MEMORY, DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_context_create_opencl(cl_context context, cl_device_id device,
                                                          cl_command_queue queue,
                                                          const clg_context_options *options,
                                                          clg_context **out_context);
/* Return the context and device in use; borrowed, NULL for NULL. */
CLG_API cl_context clg_context_opencl(const clg_context *context);
CLG_API cl_device_id clg_context_opencl_device(const clg_context *context);
/* Returns the queue in which the session works; borrowed, in order. NULL for NULL. */
CLG_API cl_command_queue clg_session_opencl_queue(const clg_session *session);

/* Creates a dense, row-major device tensor over the caller's buffer, which is retained, starting at
 * offset_bytes (a multiple of the element size). The caller orders what its own queues do with the
 * buffer: by clg_session_wait_for_events, or by clFinish before clgraph uses it; a blocking call
 * orders nothing in other queues. A run, and clg_value_write, have completed their writes when they
 * return. Errors: INVALID_ARGUMENT (offset, dims, too small, another context). */
CLG_API CLG_MUST_USE clg_status clg_value_create_opencl(clg_context *context, cl_mem memory,
                                                        size_t offset_bytes, clg_dtype dtype,
                                                        size_t rank, const int64_t *dims,
                                                        clg_value **out_value);
/* Returns the buffer of a device tensor, borrowed; *out_offset_bytes is where the tensor starts.
 * Errors: INVALID_ARGUMENT when the value is not on a device. */
CLG_API CLG_MUST_USE clg_status clg_value_opencl(const clg_value *value, cl_mem *out_memory,
                                                 size_t *out_offset_bytes);

/* Makes the next run start its work on the device after these events, which are retained. events
 * may be NULL when n_events is 0. Errors: BUSY, DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_session_wait_for_events(clg_session *session, cl_uint n_events,
                                                            const cl_event *events);
/* Returns an event that completes with the last run started, which may still be in flight; the
 * caller releases it. Errors: BUSY, OUT_OF_DEVICE_MEMORY, DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_session_event(clg_session *session, cl_event *out_event);

#ifdef __cplusplus
}
#endif
#endif
