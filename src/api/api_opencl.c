/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clgraph/opencl.h, which shares OpenCL contexts, queues, buffers and events with the
 * application.
 */
#include "api/arguments.h"
#include "api/context_settings.h"
#include "session/session.h"

#include <clgraph/opencl.h>

clg_status clg_context_create_opencl(cl_context context, cl_device_id device,
                                     cl_command_queue queue, const clg_context_options *options,
                                     clg_context **out_context)
{
    clg_context_options o = CLG_CONTEXT_OPTIONS_INIT;
    ocl_context *ocl;
    API_REQUIRE(out_context);
    *out_context = NULL;
    API_REQUIRE_DEVICE(context);
    API_REQUIRE(device);
    API_OPTIONS(options, o);
    ocl_context_options below = api_ocl_options(&o);
    below.cpu_threads = 0;
    CLG_TRY(ocl_context_wrap(context, device, queue, &below, &ocl));
    return api_context_open(ocl, &below, &o, true, out_context);
}

cl_context clg_context_opencl(const clg_context *context)
{
    if (!context) return NULL;
    device_context *current = context_handle_current(context);
    cl_context handle = ocl_context_handle(current->ocl);
    context_free(current);
    return handle;
}

cl_device_id clg_context_opencl_device(const clg_context *context)
{
    if (!context) return NULL;
    device_context *current = context_handle_current(context);
    cl_device_id device = ocl_context_device_handle(current->ocl);
    context_free(current);
    return device;
}

cl_command_queue clg_session_opencl_queue(const clg_session *session)
{
    return session && session->frame ? ocl_queue_handle(session->frame->queue) : NULL;
}

clg_status clg_value_create_opencl(clg_context *context, cl_mem memory, size_t offset_bytes,
                                   clg_dtype dtype, size_t rank, const int64_t *dims,
                                   clg_value **out_value)
{
    shape s;
    int64_t n;
    size_t size_bytes;
    ocl_buffer *b;
    API_REQUIRE(out_value);
    *out_value = NULL;
    API_REQUIRE_DEVICE(context);
    API_REQUIRE(memory);
    CLG_TRY(shape_make_known(rank, dims, &s));
    CLG_TRY(shape_n_elements(&s, &n));
    const dtype_info *info = dtype_find(dtype);
    const size_t unit = info && info->bits > 0 && info->bits < 8 ? 1 : dtype_size(dtype);
    if (unit == 0 || offset_bytes % unit != 0)
        return error_set(
            CLG_ERROR_INVALID_ARGUMENT,
            "clg_value_create_opencl: offset %zu is not a multiple of the element size of %s",
            offset_bytes, dtype_name(dtype));
    device_context *current = context_handle_current(context);
    const clg_status wrapped = ocl_buffer_wrap(current->ocl, memory, &b);
    if (wrapped != CLG_OK) {
        context_free(current);
        return wrapped;
    }
    if (!dtype_bytes(dtype, n, &size_bytes) || offset_bytes > ocl_buffer_size(b) ||
        size_bytes > ocl_buffer_size(b) - offset_bytes) {
        clg_status status = error_set(
            CLG_ERROR_INVALID_ARGUMENT,
            "clg_value_create_opencl: the buffer of %zu bytes is too small for the tensor",
            ocl_buffer_size(b));
        ocl_buffer_free(b);
        context_free(current);
        return status;
    }
    const clg_status status = context_wrap_buffer(current, b, offset_bytes, dtype, &s, out_value);
    context_free(current);
    return status;
}

clg_status clg_value_opencl(const clg_value *value, cl_mem *out_memory, size_t *out_offset_bytes)
{
    device_context *context;
    API_REQUIRE(out_memory);
    API_REQUIRE(out_offset_bytes);
    *out_memory = NULL;
    *out_offset_bytes = 0;
    API_REQUIRE_DEVICE(value);
    ocl_buffer *b = value_buffer(value, &context);
    if (!b)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "clg_value_opencl: the value is not on a device");
    *out_memory = ocl_buffer_handle(b);
    *out_offset_bytes = value->offset_bytes;
    return CLG_OK;
}

clg_status clg_session_wait_for_events(clg_session *session, cl_uint n_events,
                                       const cl_event *events)
{
    API_REQUIRE_DEVICE(session);
    if (n_events == 0) return CLG_OK;
    API_REQUIRE(events);
    CLG_TRY(session_enter(session));
    clg_status status = session_renew(session);
    if (status == CLG_OK)
        status = ocl_queue_wait_for(session->frame->queue, n_events, (void *const *)events);
    session_leave(session);
    return status;
}

clg_status clg_session_event(clg_session *session, cl_event *out_event)
{
    void *event = NULL;
    API_REQUIRE(out_event);
    *out_event = NULL;
    API_REQUIRE_DEVICE(session);
    clg_status status = session_event(session, &event);
    *out_event = event;
    return status;
}
