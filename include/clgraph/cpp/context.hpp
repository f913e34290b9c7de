/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices, contexts on them, tokens that cancel work, limits, and the log (clgraph/context.h and
 * others). clgraph.hpp includes this header.
 */
#ifndef CLGRAPH_CPP_CONTEXT_HPP
#define CLGRAPH_CPP_CONTEXT_HPP

#include <clgraph/cpp/handle.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace clgraph
{

/* The version of the library that is running, "0.1.0". */
inline std::string_view version() noexcept { return clg_version(); }
inline const char *status_name(clg_status status) noexcept { return clg_status_name(status); }

/* ---- tokens and limits ----------------------------------------------------------------------- */

/* A token that cancels what it was given to in options (clgraph/cancel.h). */
class cancel_token : public handle<clg_cancel, clg_cancel_free>
{
  public:
    using handle::handle;
    static result<cancel_token> try_create()
    {
        return detail::take<cancel_token>([](clg_cancel **out) { return clg_cancel_create(out); });
    }
    /* Any thread, and signal handlers. */
    void trigger() noexcept { clg_cancel_trigger(get()); }
    void reset_trigger() noexcept { clg_cancel_reset(get()); }
    bool is_triggered() const noexcept { return clg_cancel_is_triggered(get()); }

#if CLGRAPH_EXCEPTIONS
    /* The same, with exceptions. */
    static cancel_token create() { return try_create().value(); }
#endif
};

/* Limits for models: no limit in each member that is 0 (clgraph/limits.h). */
struct limits {
    std::uint64_t max_memory_bytes = 0;
    std::uint64_t max_steps = 0;
    std::uint64_t max_compile_ms = 0;
    std::uint64_t max_run_ms = 0;

    /* For models from anywhere: CLG_LIMITS_UNTRUSTED. */
    static limits untrusted() noexcept
    {
        const clg_limits c = CLG_LIMITS_UNTRUSTED;
        return {c.max_memory_bytes, c.max_steps, c.max_compile_ms, c.max_run_ms};
    }
    clg_limits c_struct() const noexcept
    {
        clg_limits c = CLG_LIMITS_INIT;
        c.max_memory_bytes = max_memory_bytes;
        c.max_steps = max_steps;
        c.max_compile_ms = max_compile_ms;
        c.max_run_ms = max_run_ms;
        return c;
    }
};

/* ---- devices --------------------------------------------------------------------------------- */

using device_list = list<clg_device_info, clg_device_list_free>;
using selftest_list = list<clg_selftest_case, clg_selftest_free>;

/* Called repeatedly by what can take a second, on the calling thread: `done` of `total` steps of
 * `what` are complete. Returning false, or throwing, cancels the call. */
using progress_callback =
    std::function<bool(std::string_view what, std::size_t done, std::size_t total)>;

namespace detail
{

/* The progress callback during one call of the C interface. */
struct progress_call {
    const progress_callback &callback;
    callback_guard guard;

    explicit progress_call(const progress_callback &f) noexcept : callback(f) {}
    clg_progress_callback function() const noexcept { return callback ? &report : nullptr; }
    static bool report(void *user, const char *what, std::size_t done, std::size_t total)
    {
        auto *self = static_cast<progress_call *>(user);
        const result<bool> go_on =
            self->guard.call([&]() -> result<bool> { return self->callback(what, done, total); });
        return go_on && *go_on;
    }
};

} // namespace detail

/* Lists every OpenCL device of the machine, in platform order. */
inline result<device_list> try_list_devices()
{
    return detail::take_list<device_list>(
        [](clg_device_info **devices, std::size_t *n) { return clg_device_list(devices, n); });
}
/* Indices into the list of devices that a selector ("gpu,cpu", "all") chooses, the best first.
 * fallback, if not nullptr: what to choose when nothing matches. */
inline result<std::vector<std::size_t>> try_select_devices(const zstring &selector,
                                                           const zstring &fallback = nullptr)
{
    struct owner {
        std::size_t *indices = nullptr;
        ~owner() { clg_indices_free(indices); }
    } owned;
    std::size_t n = 0;
    const clg_status status =
        clg_device_select(selector.c_str(), fallback.c_str(), &owned.indices, &n);
    if (status != CLG_OK) return error::last(status);
    return std::vector<std::size_t>(owned.indices, owned.indices + n);
}
/* Fills in what probes find out, in an element of the list. */
inline result<void> try_probe(clg_device_info &device)
{
    return detail::check(clg_device_probe(&device));
}
/* The state of OpenCL on this machine, as text for a bug report. */
inline result<std::string> try_diagnose()
{
    return detail::take_text([](char **text) { return clg_diagnose(text); });
}

struct selftest_counts {
    std::size_t n_passed, n_failed;
};
/* Results of self-tests that the cache has for a device. */
inline result<selftest_counts> try_count_selftests(const clg_device_info &device,
                                                   const zstring &cache_dir = nullptr)
{
    selftest_counts counts{};
    const clg_status status =
        clg_device_selftests(&device, cache_dir.c_str(), &counts.n_passed, &counts.n_failed);
    return detail::check(status, counts);
}

inline const char *device_kind_name(clg_device_kind kind) noexcept
{
    return clg_device_kind_name(kind);
}

/* The name of an implementation of operators, in alphabetical order; nullptr behind the last. */
inline const char *implementation_name(std::size_t index) noexcept
{
    return clg_implementation_name(index);
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* Members as in clg_context_options. */
struct context_options {
    std::optional<std::string> fallback;
    std::optional<std::string> cache_dir;
    std::uint32_t cpu_threads = 0;
    bool profiling = false;
    clg_selftest selftest = CLG_SELFTEST_DEFAULT;
    std::optional<std::string> compile_helper;
    std::uint32_t compile_limit_s = 0;
    std::uint32_t compile_limit_mib = 0;
    std::uint32_t max_launch_ms = 0;
    clg_compilation compilation = CLG_COMPILATION_DEFAULT;

    /* The C struct, which points into this object. */
    clg_context_options c_struct() const noexcept
    {
        clg_context_options c = CLG_CONTEXT_OPTIONS_INIT;
        c.fallback = fallback ? fallback->c_str() : nullptr;
        c.cache_dir = cache_dir ? cache_dir->c_str() : nullptr;
        c.cpu_threads = cpu_threads;
        c.profiling = profiling;
        c.selftest = selftest;
        c.compile_helper = compile_helper ? compile_helper->c_str() : nullptr;
        c.compile_limit_s = compile_limit_s;
        c.compile_limit_mib = compile_limit_mib;
        c.max_launch_ms = max_launch_ms;
        c.compilation = compilation;
        return c;
    }
};

/* A device, with programs and memory. May be shared between threads. */
class context : public handle<clg_context, clg_context_free>
{
  public:
    using handle::handle;
    /* Opens the best device that the selector matches; nullptr: $CLG_DEVICE, else "auto". */
    static result<context> try_create(const zstring &selector = nullptr,
                                      const context_options &options = {})
    {
        const clg_context_options c = options.c_struct();
        return detail::take<context>(
            [&](clg_context **out) { return clg_context_create(selector.c_str(), &c, out); });
    }
    /* Opens each device of a list, "gpu,cpu" or "all". */
    static result<std::vector<context>> try_create_list(const zstring &selector,
                                                        const context_options &options = {})
    {
        struct owner {
            clg_context **contexts = nullptr;
            std::size_t n = 0;
            ~owner() { clg_context_list_free(contexts, n); }
        } owned;
        const clg_context_options c = options.c_struct();
        const clg_status status =
            clg_context_create_list(selector.c_str(), &c, &owned.contexts, &owned.n);
        if (status != CLG_OK) return error::last(status);
        std::vector<context> contexts;
        contexts.reserve(owned.n);
        for (std::size_t i = 0; i < owned.n; i++)
            contexts.emplace_back(std::exchange(owned.contexts[i], nullptr));
        return result<std::vector<context>>(std::move(contexts));
    }

    /* The device, probed; lives as long as the context. The handle must not be empty. */
    const clg_device_info &device() const noexcept { return *clg_context_device(get()); }
    /* Opens the device again if it was lost. Any thread. */
    result<void> try_recover() { return detail::check(clg_context_recover(get())); }
    /* Measures the device's peak performance, in about a second. */
    result<clg_measurement> try_measure()
    {
        clg_measurement m = CLG_MEASUREMENT_INIT;
        const clg_status status = clg_context_measure(get(), &m);
        return detail::check(status, m);
    }
    /* Counters since the context was made. Any thread. */
    result<clg_counters> try_counters() const
    {
        clg_counters counters = CLG_COUNTERS_INIT;
        const clg_status status = clg_context_counters(get(), &counters);
        return detail::check(status, counters);
    }
    /* Adds measured choices of implementations, lines as `cltool tune` writes them. */
    result<void> try_add_choices(const zstring &lines)
    {
        return detail::check(clg_context_add_choices(get(), lines.c_str()));
    }
    /* All choices, in that format. */
    result<std::string> try_choices() const
    {
        return detail::take_text([&](char **text) { return clg_context_choices(get(), text); });
    }
    /* Tests kernels against the host's results; `all`: every kernel that has a reference. */
    result<selftest_list> try_selftest(bool all = false,
                                       clg_kernel_class kernels = CLG_KERNELS_AUTO,
                                       const progress_callback &progress = {})
    {
        detail::progress_call call(progress);
        clg_selftest_case *cases = nullptr;
        std::size_t n = 0;
        const clg_status status =
            clg_context_selftest(get(), kernels, all, call.function(), &call, &cases, &n);
        if (status != CLG_OK) return call.guard.finish(status);
        return selftest_list(cases, n);
    }

#if CLGRAPH_EXCEPTIONS
    /* The same, with exceptions. */
    /* As create(). */
    explicit context(const zstring &selector, const context_options &options = {})
        : context(create(selector, options))
    {
    }
    static context create(const zstring &selector = nullptr, const context_options &options = {})
    {
        return try_create(selector, options).value();
    }
    static std::vector<context> create_list(const zstring &selector,
                                            const context_options &options = {})
    {
        return try_create_list(selector, options).value();
    }
    void recover() { try_recover().value(); }
    clg_measurement measure() { return try_measure().value(); }
    clg_counters counters() const { return try_counters().value(); }
    void add_choices(const zstring &lines) { try_add_choices(lines).value(); }
    std::string choices() const { return try_choices().value(); }
    selftest_list selftest(bool all = false, clg_kernel_class kernels = CLG_KERNELS_AUTO,
                           const progress_callback &progress = {})
    {
        return try_selftest(all, kernels, progress).value();
    }
#endif
};

/* ---- the log and the allocator, process-wide ------------------------------------------------- */

using log_callback = std::function<void(clg_log_level level, std::string_view message)>;
using compile_callback = std::function<void(std::string_view kernel, bool has_ended)>;

namespace detail
{

/* The process-wide callback of a kind. Never destroyed: threads may call it while the process
 * ends. */
template <class Callback> struct callback_slot {
    std::mutex mutex;
    std::unique_ptr<Callback> callback;
    static callback_slot &instance()
    {
        static callback_slot *slot = new callback_slot;
        return *slot;
    }
    /* Calls it; its exceptions are dropped, since the library that calls cannot take them. */
    template <class... Arguments> static void call(void *user, Arguments... arguments) noexcept
    {
#if CLGRAPH_EXCEPTIONS
        try {
            (*static_cast<Callback *>(user))(arguments...);
        } catch (...) { /* dropped */
        }
#else
        (*static_cast<Callback *>(user))(arguments...);
#endif
    }
    /* Replaces it: set(user) hands the new one, NULL for none, to the library. */
    template <class Set> static void replace(Callback callback, Set &&set)
    {
        callback_slot &slot = instance();
        auto next = callback ? std::make_unique<Callback>(std::move(callback)) : nullptr;
        const std::lock_guard<std::mutex> lock(slot.mutex);
        set(static_cast<void *>(next.get()));
        slot.callback = std::move(next);
    }
};
using log_slot = callback_slot<log_callback>;
using compile_slot = callback_slot<compile_callback>;
inline void write_log(void *user, clg_log_level level, const char *message) noexcept
{
    log_slot::call(user, level, message);
}
inline void see_compile(void *user, const char *kernel, bool has_ended) noexcept
{
    compile_slot::call(user, kernel, has_ended);
}

} // namespace detail

/* Sends messages up to `level` to the callback, one call at a time, from any thread; an empty one
 * silences the log. Exceptions of the callback are dropped. When this returns, the callback before
 * no longer runs, and is destroyed: it must not set the log itself. */
inline void set_log(log_callback callback, clg_log_level level = CLG_LOG_INFO)
{
    detail::log_slot::replace(std::move(callback), [level](void *user) {
        clg_set_log(user ? &detail::write_log : nullptr, user, level);
    });
}
/* Calls the callback whenever the driver's compiler starts on a kernel or has ended; an empty one
 * ends that. The rules of set_log apply. */
inline void set_compile_callback(compile_callback callback)
{
    detail::compile_slot::replace(std::move(callback), [](void *user) {
        clg_set_compile_callback(user ? &detail::see_compile : nullptr, user);
    });
}
/* Returns whether the process has a log callback, of this interface or another. */
inline bool has_log() noexcept { return clg_get_log(nullptr) != nullptr; }

/* Sets the process-wide allocator, which is copied. Only while no object of the library exists. */
inline result<void> try_set_allocator(const clg_allocator &allocator)
{
    return detail::check(clg_set_allocator(&allocator));
}
/* Back to malloc. */
inline result<void> try_reset_allocator() { return detail::check(clg_set_allocator(nullptr)); }

/* Whether a pattern matches a whole name: '*' matches any characters or none, '?' one byte. */
inline bool name_matches(const zstring &pattern, const zstring &name) noexcept
{
    return clg_name_matches(pattern.c_str(), name.c_str());
}

#if CLGRAPH_EXCEPTIONS
/* The same, with exceptions. */
inline device_list list_devices() { return try_list_devices().value(); }
inline std::vector<std::size_t> select_devices(const zstring &selector,
                                               const zstring &fallback = nullptr)
{
    return try_select_devices(selector, fallback).value();
}
inline void probe(clg_device_info &device) { try_probe(device).value(); }
inline std::string diagnose() { return try_diagnose().value(); }
inline selftest_counts count_selftests(const clg_device_info &device,
                                       const zstring &cache_dir = nullptr)
{
    return try_count_selftests(device, cache_dir).value();
}
inline void set_allocator(const clg_allocator &allocator) { try_set_allocator(allocator).value(); }
inline void reset_allocator() { try_reset_allocator().value(); }
#endif

} // namespace clgraph

#endif
