/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_stream_* of clgraph/stream.h by calls of src/session/stream.
 */
#include "api/arguments.h"
#include "session/stream/stream.h"

clg_status clg_stream_create(clg_session *const *sessions, size_t n_sessions,
                             const clg_stream_options *options, clg_stream **out_stream)
{
    clg_stream_options o = CLG_STREAM_OPTIONS_INIT;
    API_REQUIRE(out_stream);
    *out_stream = NULL;
    API_REQUIRE_DEVICE(sessions);
    API_OPTIONS(options, o);
    if (n_sessions == 0)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "clg_stream_create: there is no session");
    for (size_t i = 0; i < n_sessions; i++) API_REQUIRE(sessions[i]);
    if (!o.outputs && o.n_outputs)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "clg_stream_create: outputs is NULL");
    for (size_t i = 0; i < o.n_outputs; i++) API_REQUIRE(o.outputs[i]);
    const stream_settings settings = {
        .batch = o.batch, .depth = o.depth, .outputs = o.outputs, .n_outputs = o.n_outputs};
    return stream_create(sessions, n_sessions, &settings, out_stream);
}

void clg_stream_free(clg_stream *stream) { stream_free(stream); }

clg_status clg_stream_run(clg_stream *stream, clg_stream_callback read, clg_stream_callback write,
                          void *user)
{
    API_REQUIRE_DEVICE(stream);
    API_REQUIRE(read);
    API_REQUIRE(write);
    return stream_run(stream, read, write, user);
}

void clg_stream_cancel(clg_stream *stream)
{
    if (stream && !fork_is_child()) stream_cancel(stream);
}

clg_status clg_stream_get_stats(clg_stream *stream, clg_stream_stats *out_stats)
{
    clg_stream_stats stats = CLG_STREAM_STATS_INIT;
    API_REQUIRE_DEVICE(stream);
    API_REQUIRE(out_stats);
    stream_get_stats(stream, &stats);
    return api_write_result(__func__, &stats, sizeof stats, out_stats);
}
