/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions: a model on a device, or on several, its inputs, runs and outputs (clgraph/session.h,
 * call.h, multi.h, inspect.h). clgraph.hpp includes this header.
 */
#ifndef CLGRAPH_CPP_SESSION_HPP
#define CLGRAPH_CPP_SESSION_HPP

#include <clgraph/call.h>
#include <clgraph/cpp/model.hpp>
#include <clgraph/multi.h>

namespace clgraph
{

using profile_list = list<clg_step_profile, clg_session_profile_free>;
using part_list = list<clg_session_part, clg_session_parts_free>;

/* Members as in clg_session_options. */
struct session_options {
    clg_kernel_class kernels = CLG_KERNELS_AUTO;
    bool no_blas = false;
    bool strict = false;
    std::vector<std::string> disabled_passes;
    progress_callback progress; /* while the session is created */
    std::vector<std::string> preferred_impls;
    clg_precision precision = CLG_PRECISION_FP32;
    std::vector<std::string> keep_fp32;
    std::uint64_t max_iterations = 0;
    const cancel_token *cancel = nullptr;
    std::optional<clgraph::limits> limits;
};

/* Over several devices: members as in clg_multi_options. */
struct multi_options {
    std::uint32_t hang_ms = 0;
    clg_split split = CLG_SPLIT_ROWS;
};

namespace detail
{

/* The C struct for session options, and what it points to. */
struct session_options_call {
    progress_call progress;
    names disabled_passes, preferred_impls, keep_fp32;
    clg_limits limits = CLG_LIMITS_INIT;
    clg_session_options c = CLG_SESSION_OPTIONS_INIT;

    explicit session_options_call(const session_options &o)
        : progress(o.progress), disabled_passes(o.disabled_passes),
          preferred_impls(o.preferred_impls), keep_fp32(o.keep_fp32)
    {
        c.kernels = o.kernels;
        c.no_blas = o.no_blas;
        c.strict = o.strict;
        c.disabled_passes = disabled_passes.data();
        c.n_disabled_passes = disabled_passes.size();
        c.progress = progress.function();
        c.progress_user = &progress;
        c.preferred_impls = preferred_impls.data();
        c.n_preferred_impls = preferred_impls.size();
        c.precision = o.precision;
        c.keep_fp32 = keep_fp32.data();
        c.n_keep_fp32 = keep_fp32.size();
        c.max_iterations = o.max_iterations;
        c.cancel = o.cancel ? o.cancel->get() : nullptr;
        if (o.limits) {
            limits = o.limits->c_struct();
            c.limits = &limits;
        }
    }
    session_options_call(const session_options_call &) = delete;
    session_options_call &operator=(const session_options_call &) = delete;
};

} // namespace detail

/* A run that was started. Destroying it waits for the run, and drops an error of it. Must not
 * outlive the session. */
class async_run
{
  public:
    explicit async_run(clg_session *session) noexcept : session_(session) {}
    async_run(async_run &&other) noexcept : session_(std::exchange(other.session_, nullptr)) {}
    async_run &operator=(async_run &&other) noexcept
    {
        std::swap(session_, other.session_);
        return *this;
    }
    ~async_run()
    {
        if (session_ && clg_session_wait(session_) != CLG_OK) return; /* nobody asked */
    }
    /* Waits for the run, whose error this returns. INVALID_ARGUMENT the second time. */
    result<void> try_wait()
    {
        if (!session_) return error(CLG_ERROR_INVALID_ARGUMENT, "the run was waited for before");
        return detail::check(clg_session_wait(std::exchange(session_, nullptr)));
    }

#if CLGRAPH_EXCEPTIONS
    /* The same, with exceptions. */
    void wait() { try_wait().value(); }
#endif

  private:
    clg_session *session_;
};

/* An input of session::call: memory of the caller, only read during the call, or a value. */
class call_input
{
  public:
    template <class Range>
    call_input(const zstring &name, dims_view dims, const Range &data) noexcept
    {
        const auto elements = detail::elements_of(data);
        c_.name = name.c_str();
        c_.dtype = dtype_v<detail::element<const Range>>;
        c_.rank = dims.size();
        c_.dims = dims.data();
        c_.data = elements.data();
        c_.size_bytes = elements.size_bytes();
    }
    call_input(const zstring &name, const value &v) noexcept
    {
        c_.name = name.c_str();
        c_.value = v.get();
    }
    const clg_call_input &c_struct() const noexcept { return c_; }

  private:
    clg_call_input c_{};
};

/* An output of session::call: memory of the caller for a tensor, or none. */
class call_output
{
  public:
    explicit call_output(std::string name) : name_(std::move(name)) {}
    template <class Range>
    call_output(std::string name, Range &&memory)
        : name_(std::move(name)), wanted_(dtype_v<detail::element<Range>>)
    {
        const auto elements = detail::elements_of(memory);
        c_.data = elements.data();
        c_.capacity_bytes = elements.size_bytes();
    }

    /* After a call: the value, where the output is not in the caller's memory; else empty. */
    const value &get_value() const noexcept { return value_; }
    bool in_memory() const noexcept { return !value_; }
    clg_value_kind kind() const noexcept { return c_.kind; }
    clg_dtype dtype() const noexcept { return c_.dtype; }
    dims_view dims() const noexcept { return {c_.dims, c_.rank}; }
    std::size_t size_bytes() const noexcept { return c_.size_bytes; }

  private:
    friend class session;
    std::string name_;
    value value_;
    clg_dtype wanted_ = CLG_DTYPE_NONE; /* of the caller's memory */
    clg_call_output c_{};
};

/* A model on a device. One request at a time: BUSY for others; clone() makes one for another
 * thread. Where a name is wanted, a port of the model may be given: set_input(model.inputs()[0],
 * dims, data). */
class session : public handle<clg_session, clg_session_free>
{
  public:
    using handle::handle;
    static result<session> try_create(const context &device, const model &graph,
                                      const session_options &options = {})
    {
        detail::session_options_call o(options);
        clg_session *created = nullptr;
        const clg_status status = clg_session_create(device.get(), graph.get(), &o.c, &created);
        if (status != CLG_OK) return o.progress.guard.finish(status);
        return session(created);
    }
    /* Over several devices, which divide the rows of the batch or the model's nodes. */
    static result<session> try_create_multi(view<const context> devices, const model &graph,
                                            const session_options &options = {},
                                            const multi_options &multi = {})
    {
        detail::session_options_call o(options);
        clg_multi_options m = CLG_MULTI_OPTIONS_INIT;
        m.hang_ms = multi.hang_ms;
        m.split = multi.split;
        const std::vector<clg_context *> contexts = detail::pointers_of<clg_context>(devices);
        clg_session *created = nullptr;
        const clg_status status = clg_session_create_multi(contexts.data(), contexts.size(),
                                                           graph.get(), &o.c, &m, &created);
        if (status != CLG_OK) return o.progress.guard.finish(status);
        return session(created);
    }
    /* Another session over the same weights and programs, with nothing set. */
    result<session> try_clone() const
    {
        return detail::take<session>(
            [&](clg_session **out) { return clg_session_clone(get(), out); });
    }
    clg_precision precision() const noexcept { return clg_session_precision(get()); }

    /* ---- inputs -------------------------------------------------------------------------- */

    /* Sets an input to a copy of row-major elements. */
    template <class Range>
    result<void> try_set_input(const zstring &name, dims_view dims, const Range &data)
    {
        const auto elements = detail::elements_of(data);
        return detail::check(clg_session_set_input_data(
            get(), name.c_str(), dtype_v<detail::element<const Range>>, dims.size(), dims.data(),
            elements.data(), elements.size_bytes()));
    }
    /* Sets an input to a value, of which the session keeps a reference; nothing is copied here. */
    result<void> try_set_input(const zstring &name, const value &v)
    {
        return detail::check(clg_session_set_input(get(), name.c_str(), v.get()));
    }
    result<void> try_unset_input(const zstring &name)
    {
        return detail::check(clg_session_set_input(get(), name.c_str(), nullptr));
    }
    /* Memory of the driver to fill instead of a copy, valid until the next run starts. port: an
     * input of the session's model, which must have the dtype of T. */
    template <class T> result<view<T>> try_map_input(const clg_port &port, dims_view dims)
    {
        if (port.dtype != dtype_v<T>)
            return detail::wrong_dtype("the input's", port.dtype, dtype_v<T>);
        void *data = nullptr;
        const clg_status status =
            clg_session_map_input(get(), port.name, dims.size(), dims.data(), &data);
        if (status != CLG_OK) return error::last(status);
        std::size_t n = 1;
        for (const std::int64_t d : dims) n *= static_cast<std::size_t>(d);
        return view<T>(static_cast<T *>(data), n);
    }
    /* Sets the shape of an input for prepare(), memory() and plans. */
    result<void> try_set_input_shape(const zstring &name, dims_view dims)
    {
        return detail::check(
            clg_session_set_input_shape(get(), name.c_str(), dims.size(), dims.data()));
    }
    /* Plans, compiles and runs once on zeros, so that runs of these shapes compile nothing. */
    result<void> try_prepare(const progress_callback &progress = {})
    {
        detail::progress_call call(progress);
        const clg_status status = clg_session_prepare(get(), call.function(), &call);
        if (status != CLG_OK) return call.guard.finish(status);
        return {};
    }

    /* ---- state on the device ----------------------------------------------------------------- */

    /* Feeds a run's output to this input of the next run. */
    result<void> try_link(const zstring &output, const zstring &input)
    {
        return detail::check(clg_session_link(get(), output.c_str(), input.c_str()));
    }
    result<void> try_unlink(const zstring &input)
    {
        return detail::check(clg_session_link(get(), nullptr, input.c_str()));
    }
    /* Writes an output of the next runs into this value, of which the session keeps a
     * reference. */
    result<void> try_bind_output(const zstring &name, const value &v)
    {
        return detail::check(clg_session_bind_output(get(), name.c_str(), v.get()));
    }
    result<void> try_unbind_output(const zstring &name)
    {
        return detail::check(clg_session_bind_output(get(), name.c_str(), nullptr));
    }

    /* ---- runs ---------------------------------------------------------------------------- */

    /* Runs with the inputs that are set, and waits. */
    result<void> try_run() { return detail::check(clg_session_run(get())); }
    /* Starts a run; until the result was waited for, inputs and bound outputs must be left
     * alone. */
    result<async_run> try_run_async()
    {
        const clg_status status = clg_session_run_async(get());
        if (status != CLG_OK) return error::last(status);
        return async_run(get());
    }
    /* Ends the run or preparation in progress with CANCELLED. Any thread. */
    void cancel() noexcept { clg_session_cancel(get()); }
    /* A whole run in one call: see clg_session_call. Outputs are written into their memory if they
     * fit, and are values otherwise. INVALID_ARGUMENT after the run if an output that was written
     * has another dtype than its memory. */
    result<void> try_call(view<const call_input> inputs, view<call_output> outputs)
    {
        std::vector<clg_call_input> in;
        std::vector<clg_call_output> out;
        in.reserve(inputs.size());
        out.reserve(outputs.size());
        for (const call_input &i : inputs) in.push_back(i.c_struct());
        for (call_output &o : outputs) {
            clg_call_output c{};
            c.name = o.name_.c_str();
            c.data = o.c_.data;
            c.capacity_bytes = o.c_.capacity_bytes;
            out.push_back(c);
        }
        const clg_status status =
            clg_session_call(get(), in.data(), in.size(), out.data(), out.size());
        const call_output *wrong = nullptr;
        for (std::size_t i = 0; i < outputs.size(); i++) {
            call_output &o = outputs[i];
            o.c_ = out[i];
            o.value_.reset(out[i].value);
            if (o.in_memory() && o.wanted_ != CLG_DTYPE_NONE && o.wanted_ != o.dtype()) wrong = &o;
        }
        if (status != CLG_OK) return error::last(status);
        if (wrong) return detail::wrong_dtype("the output's", wrong->dtype(), wrong->wanted_);
        return {};
    }

    /* ---- outputs of the last run --------------------------------------------------------- */

    /* An output in host memory that later runs do not change. */
    result<value> try_get_output(const zstring &name)
    {
        return detail::take<value>(
            [&](clg_value **out) { return clg_session_get_output(get(), name.c_str(), out); });
    }
    /* The session's device memory, which the next run overwrites. */
    result<value> try_get_output_device(const zstring &name)
    {
        return detail::take<value>([&](clg_value **out) {
            return clg_session_get_output_device(get(), name.c_str(), out);
        });
    }
    /* Copies an output to the caller's memory, which must have its size in bytes. The dtype is not
     * checked: the session does not tell it. */
    template <class Range> result<void> try_read_output(const zstring &name, Range &&data)
    {
        const auto to = detail::elements_of(data);
        return detail::check(
            clg_session_get_output_data(get(), name.c_str(), to.data(), to.size_bytes()));
    }

    /* ---- plans and profiles ------------------------------------------------------------------ */

    result<clg_memory_estimate> try_memory()
    {
        clg_memory_estimate estimate = CLG_MEMORY_ESTIMATE_INIT;
        const clg_status status = clg_session_memory(get(), &estimate);
        return detail::check(status, estimate);
    }
    /* The nodes, with the place where each is computed. */
    result<node_list> try_nodes()
    {
        return detail::take_list<node_list>([&](clg_node_info **nodes, std::size_t *n) {
            return clg_session_nodes(get(), nodes, n);
        });
    }
    result<std::string> try_plan_text()
    {
        return detail::take_text([&](char **text) { return clg_session_plan_text(get(), text); });
    }
    /* The steps of the last run; of a context with profiling. */
    result<profile_list> try_profile()
    {
        return detail::take_list<profile_list>([&](clg_step_profile **steps, std::size_t *n) {
            return clg_session_profile(get(), steps, n);
        });
    }
    /* The devices and their shares of the last run; borrowed<session>(part.session) uses one. */
    result<part_list> try_parts()
    {
        return detail::take_list<part_list>([&](clg_session_part **parts, std::size_t *n) {
            return clg_session_parts(get(), parts, n);
        });
    }
    /* Makes intermediate values of the next runs available to get_output; {}: none. */
    result<void> try_keep_values(const names &values)
    {
        static const char *const none[] = {nullptr};
        return detail::check(
            clg_session_keep_values(get(), values.size() ? values.data() : none, values.size()));
    }
    result<void> try_keep_all_values()
    {
        return detail::check(clg_session_keep_values(get(), nullptr, 0));
    }

#if CLGRAPH_EXCEPTIONS
    /* The same, with exceptions. */
    session(const context &device, const model &graph, const session_options &options = {})
        : session(create(device, graph, options))
    {
    }
    session(view<const context> devices, const model &graph, const session_options &options = {},
            const multi_options &multi = {})
        : session(create_multi(devices, graph, options, multi))
    {
    }
    static session create(const context &device, const model &graph,
                          const session_options &options = {})
    {
        return try_create(device, graph, options).value();
    }
    static session create_multi(view<const context> devices, const model &graph,
                                const session_options &options = {},
                                const multi_options &multi = {})
    {
        return try_create_multi(devices, graph, options, multi).value();
    }
    session clone() const { return try_clone().value(); }
    template <class Range> void set_input(const zstring &name, dims_view dims, const Range &data)
    {
        try_set_input(name, dims, data).value();
    }
    void set_input(const zstring &name, const value &v) { try_set_input(name, v).value(); }
    void unset_input(const zstring &name) { try_unset_input(name).value(); }
    template <class T> view<T> map_input(const clg_port &port, dims_view dims)
    {
        return try_map_input<T>(port, dims).value();
    }
    void set_input_shape(const zstring &name, dims_view dims)
    {
        try_set_input_shape(name, dims).value();
    }
    void prepare(const progress_callback &progress = {}) { try_prepare(progress).value(); }
    void link(const zstring &output, const zstring &input) { try_link(output, input).value(); }
    void unlink(const zstring &input) { try_unlink(input).value(); }
    void bind_output(const zstring &name, const value &v) { try_bind_output(name, v).value(); }
    void unbind_output(const zstring &name) { try_unbind_output(name).value(); }
    void run() { try_run().value(); }
    async_run run_async() { return try_run_async().value(); }
    void call(view<const call_input> inputs, view<call_output> outputs)
    {
        try_call(inputs, outputs).value();
    }
    value get_output(const zstring &name) { return try_get_output(name).value(); }
    value get_output_device(const zstring &name) { return try_get_output_device(name).value(); }
    template <class Range> void read_output(const zstring &name, Range &&data)
    {
        try_read_output(name, data).value();
    }
    clg_memory_estimate memory() { return try_memory().value(); }
    node_list nodes() { return try_nodes().value(); }
    std::string plan_text() { return try_plan_text().value(); }
    profile_list profile() { return try_profile().value(); }
    part_list parts() { return try_parts().value(); }
    void keep_values(const names &values) { try_keep_values(values).value(); }
    void keep_all_values() { try_keep_all_values().value(); }
#endif
};

} // namespace clgraph

#endif
