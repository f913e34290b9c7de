/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares OpenCL objects with an application that uses OpenCL itself (clgraph/opencl.h, whose rules
 * apply). Not included by clgraph.hpp: it includes OpenCL's headers.
 */
#ifndef CLGRAPH_CPP_OPENCL_HPP
#define CLGRAPH_CPP_OPENCL_HPP

#include <clgraph/clgraph.hpp>
#include <clgraph/opencl.h>

namespace clgraph
{
namespace opencl
{

/* A context on the caller's OpenCL context, in the caller's queue if there is one. */
inline result<context> try_create_context(cl_context c, cl_device_id device,
                                          cl_command_queue queue = nullptr,
                                          const context_options &options = {})
{
    const clg_context_options o = options.c_struct();
    return detail::take<context>(
        [&](clg_context **out) { return clg_context_create_opencl(c, device, queue, &o, out); });
}
/* Borrowed; nullptr for empty handles. */
inline cl_context context_of(const context &c) noexcept { return clg_context_opencl(c.get()); }
inline cl_device_id device_of(const context &c) noexcept
{
    return clg_context_opencl_device(c.get());
}
inline cl_command_queue queue_of(const session &s) noexcept
{
    return clg_session_opencl_queue(s.get());
}

/* A tensor over the caller's buffer, which is retained. */
inline result<value> try_wrap(const context &c, cl_mem memory, clg_dtype dtype, dims_view dims,
                              std::size_t offset_bytes = 0)
{
    return detail::take<value>([&](clg_value **out) {
        return clg_value_create_opencl(c.get(), memory, offset_bytes, dtype, dims.size(),
                                       dims.data(), out);
    });
}
struct buffer {
    cl_mem memory; /* borrowed */
    std::size_t offset_bytes;
};
/* The buffer of a device tensor. */
inline result<buffer> try_buffer_of(const value &v)
{
    buffer b{};
    const clg_status status = clg_value_opencl(v.get(), &b.memory, &b.offset_bytes);
    return detail::check(status, b);
}
/* Makes the next run wait for these events, which are retained. */
inline result<void> try_wait_for_events(session &s, view<const cl_event> events)
{
    return detail::check(
        clg_session_wait_for_events(s.get(), static_cast<cl_uint>(events.size()), events.data()));
}
/* An event of the last run that was started; the caller releases it. */
inline result<cl_event> try_event_of(session &s)
{
    cl_event event = nullptr;
    const clg_status status = clg_session_event(s.get(), &event);
    return detail::check(status, event);
}

#if CLGRAPH_EXCEPTIONS
/* The same, with exceptions. */
inline context create_context(cl_context c, cl_device_id device, cl_command_queue queue = nullptr,
                              const context_options &options = {})
{
    return try_create_context(c, device, queue, options).value();
}
inline value wrap(const context &c, cl_mem memory, clg_dtype dtype, dims_view dims,
                  std::size_t offset_bytes = 0)
{
    return try_wrap(c, memory, dtype, dims, offset_bytes).value();
}
inline buffer buffer_of(const value &v) { return try_buffer_of(v).value(); }
inline void wait_for_events(session &s, view<const cl_event> events)
{
    try_wait_for_events(s, events).value();
}
inline cl_event event_of(session &s) { return try_event_of(s).value(); }
#endif

} // namespace opencl
} // namespace clgraph

#endif
