/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams: prediction for more rows than fit in memory (clgraph/stream.h). clgraph.hpp includes
 * this header.
 *
 *     clgraph::stream s(session);
 *     s.run([&](clgraph::batch &b) { return read_rows(b.rows<float>(0)); },   // rows read; 0: end
 *           [&](clgraph::batch &b) { use(b.rows<float>(0)); });
 */
#ifndef CLGRAPH_CPP_STREAM_HPP
#define CLGRAPH_CPP_STREAM_HPP

#include <clgraph/cpp/session.hpp>
#include <clgraph/stream.h>

namespace clgraph
{

/* Consecutive rows, valid during the callback that gets them. */
class batch
{
  public:
    explicit batch(clg_stream_batch &c) noexcept : c_(c) {}
    /* Index of the first row in the stream. */
    std::uint64_t first_row() const noexcept { return c_.first_row; }
    /* For the reader the most rows that it may supply, for the writer those there are. */
    std::size_t n_rows() const noexcept { return c_.n_rows; }
    /* The streamed inputs (reader) or the outputs (writer), in the model's order. */
    view<const clg_stream_tensor> tensors() const noexcept { return {c_.tensors, c_.n_tensors}; }
    /* The elements of n_rows rows of tensor i, to be filled in by the reader. INVALID_ARGUMENT:
     * no tensor has this name, or it has another dtype than that of T. */
    template <class T> result<view<T>> try_rows(std::size_t i) const
    {
        if (i >= c_.n_tensors)
            return error(CLG_ERROR_INVALID_ARGUMENT, "the batch has no such tensor");
        const clg_stream_tensor &t = c_.tensors[i];
        if (t.dtype != dtype_v<T>) return detail::wrong_dtype("the tensor's", t.dtype, dtype_v<T>);
        return view<T>(static_cast<T *>(t.data), c_.n_rows * (t.row_bytes / sizeof(T)));
    }

#if CLGRAPH_EXCEPTIONS
    /* The same, with exceptions. */
    template <class T> view<T> rows(std::size_t i) const { return try_rows<T>(i).value(); }
#endif

  private:
    clg_stream_batch &c_;
};

/* Members as in clg_stream_options. */
struct stream_options {
    std::size_t batch = 0;
    std::size_t depth = 0;
    std::vector<std::string> outputs; /* none: all */
};

class stream : public handle<clg_stream, clg_stream_free>
{
  public:
    using handle::handle;
    static result<stream> try_create(const session &s, const stream_options &options = {})
    {
        clg_session *one = s.get();
        return create_from({&one, 1}, options);
    }
    /* Over sessions of one model, on several devices for example. They are cloned. */
    static result<stream> try_create(view<const session> sessions,
                                     const stream_options &options = {})
    {
        const std::vector<clg_session *> pointers = detail::pointers_of<clg_session>(sessions);
        return create_from({pointers.data(), pointers.size()}, options);
    }
    /* Runs until `read` returns 0 rows and all results are written. read(batch &) returns a
     * number of rows, or result<size_t>; it is called on another thread. write(batch &) returns
     * nothing, or result<void>. Exceptions end the stream: run() throws them again, try_run()
     * returns them as the error's cause. */
    template <class Read, class Write> result<void> try_run(Read &&read, Write &&write)
    {
        calls<std::remove_reference_t<Read>, std::remove_reference_t<Write>> c{read, write, {}, {}};
        const clg_status status = clg_stream_run(get(), &c.on_read, &c.on_write, &c);
        if (status == CLG_OK) return {};
        if (c.write_guard.failure()) return *c.write_guard.failure();
        return c.read_guard.finish(status);
    }
    /* Makes a run return CANCELLED. Any thread. */
    void cancel() noexcept { clg_stream_cancel(get()); }
    /* Progress and times of the current run, else of the last one. Any thread. */
    result<clg_stream_stats> try_stats() const
    {
        clg_stream_stats stats = CLG_STREAM_STATS_INIT;
        const clg_status status = clg_stream_get_stats(get(), &stats);
        return detail::check(status, stats);
    }

#if CLGRAPH_EXCEPTIONS
    /* The same, with exceptions. */
    explicit stream(const session &s, const stream_options &options = {})
        : stream(create(s, options))
    {
    }
    static stream create(const session &s, const stream_options &options = {})
    {
        return try_create(s, options).value();
    }
    static stream create(view<const session> sessions, const stream_options &options = {})
    {
        return try_create(sessions, options).value();
    }
    template <class Read, class Write> void run(Read &&read, Write &&write)
    {
        try_run(read, write).value();
    }
    clg_stream_stats stats() const { return try_stats().value(); }
#endif

  private:
    static result<stream> create_from(view<clg_session *const> sessions,
                                      const stream_options &options)
    {
        const names outputs(options.outputs);
        clg_stream_options c = CLG_STREAM_OPTIONS_INIT;
        c.batch = options.batch;
        c.depth = options.depth;
        c.outputs = outputs.size() ? outputs.data() : nullptr;
        c.n_outputs = outputs.size();
        return detail::take<stream>([&](clg_stream **out) {
            return clg_stream_create(sessions.data(), sessions.size(), &c, out);
        });
    }

    /* Both callbacks during one run; each has its own thread, and so its own guard. */
    template <class Read, class Write> struct calls {
        Read &read;
        Write &write;
        detail::callback_guard read_guard, write_guard;

        static clg_status on_read(void *user, clg_stream_batch *c)
        {
            auto *self = static_cast<calls *>(user);
            const auto n = self->read_guard.call([&]() -> result<std::size_t> {
                batch b(*c);
                return self->read(b);
            });
            c->n_rows = n ? *n : 0;
            return n.status();
        }
        static clg_status on_write(void *user, clg_stream_batch *c)
        {
            auto *self = static_cast<calls *>(user);
            const auto done = self->write_guard.call([&]() -> result<void> {
                batch b(*c);
                if constexpr (std::is_void_v<decltype(self->write(b))>) {
                    self->write(b);
                    return {};
                } else {
                    return self->write(b);
                }
            });
            return done.status();
        }
    };
};

} // namespace clgraph

#endif
