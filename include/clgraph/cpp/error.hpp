/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors of the C++ interface. Each function that can fail exists twice:
 *
 *     session.run();                          // throws clgraph::error
 *     if (auto r = session.try_run(); !r)     // returns result<void>
 *         log(r.error().message());
 *
 * Where the compiler has no exceptions (-fno-exceptions), or CLGRAPH_NO_EXCEPTIONS is defined, the
 * functions that throw are not declared. Besides clgraph::error, both kinds can throw
 * std::bad_alloc, where this interface or the caller's arguments allocate memory.
 * clgraph.hpp includes this header.
 */
#ifndef CLGRAPH_CPP_ERROR_HPP
#define CLGRAPH_CPP_ERROR_HPP

#include <clgraph/base.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#if !defined(CLGRAPH_NO_EXCEPTIONS) && (defined(__cpp_exceptions) || defined(_CPPUNWIND))
#define CLGRAPH_EXCEPTIONS 1
#else
#define CLGRAPH_EXCEPTIONS 0
#endif

namespace clgraph
{

/* What failed: the status of the C interface, its message and its hint, copied when the error was
 * made, so that later errors do not change it. Copies of an error share one block of memory; if
 * there was none for it, message() and hint() are "". */
class error : public std::exception
{
  public:
    error(clg_status status, std::string_view message, std::string_view hint = {},
          std::exception_ptr cause = nullptr) noexcept
        : status_(status), text_(block::create(message, hint, std::move(cause)))
    {
    }
    /* The error of the calling thread's last failed call of the C interface. */
    static error last(clg_status status) noexcept
    {
        return error(status, clg_last_error(), clg_last_hint());
    }
    error(const error &other) noexcept
        : std::exception(other), status_(other.status_), text_(block::share(other.text_))
    {
    }
    error &operator=(const error &other) noexcept
    {
        block *shared = block::share(other.text_);
        block::release(text_);
        status_ = other.status_;
        text_ = shared;
        return *this;
    }
    ~error() override { block::release(text_); }

    clg_status status() const noexcept { return status_; }
    /* What failed, on which node, tensor or device: the same as message(). */
    const char *what() const noexcept override
    {
        return text_ ? text_->chars() : clg_status_name(status_);
    }
    const char *message() const noexcept { return text_ ? text_->chars() : ""; }
    /* What to try; "" when there is no advice. */
    const char *hint() const noexcept { return text_ ? text_->chars() + text_->hint_offset : ""; }
    /* The exception of a callback that ended the call; null for other errors. */
    std::exception_ptr cause() const noexcept
    {
        return text_ ? text_->cause : std::exception_ptr();
    }

  private:
    /* Reference count and cause, followed in memory by message, NUL, hint, NUL. */
    struct block {
        std::atomic<std::size_t> references{1};
        std::size_t hint_offset = 0;
        std::exception_ptr cause;

        char *chars() noexcept { return reinterpret_cast<char *>(this + 1); }
        static block *create(std::string_view message, std::string_view hint,
                             std::exception_ptr cause) noexcept
        {
            void *memory =
                ::operator new(sizeof(block) + message.size() + hint.size() + 2, std::nothrow);
            if (!memory) return nullptr;
            block *b = new (memory) block;
            b->hint_offset = message.size() + 1;
            b->cause = std::move(cause);
            put(b->chars(), message);
            put(b->chars() + b->hint_offset, hint);
            return b;
        }
        static void put(char *to, std::string_view text) noexcept
        {
            if (!text.empty()) std::memcpy(to, text.data(), text.size());
            to[text.size()] = '\0';
        }
        static block *share(block *b) noexcept
        {
            if (b) b->references.fetch_add(1, std::memory_order_relaxed);
            return b;
        }
        static void release(block *b) noexcept
        {
            if (!b || b->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
            b->~block();
            ::operator delete(static_cast<void *>(b));
        }
    };

    clg_status status_;
    block *text_;
};

/* What functions throw for some statuses, so that a catch can choose; all others are
 * clgraph::error. */
class invalid_argument : public error /* INVALID_ARGUMENT, NOT_FOUND, SHAPE, DATA */
{
  public:
    explicit invalid_argument(const error &e) noexcept : error(e) {}
};
class invalid_model : public error /* INVALID_MODEL */
{
  public:
    explicit invalid_model(const error &e) noexcept : error(e) {}
};
class unsupported : public error /* UNSUPPORTED_OPERATOR, _ATTRIBUTE and _DTYPE */
{
  public:
    explicit unsupported(const error &e) noexcept : error(e) {}
};
class no_device : public error /* NO_OPENCL, NO_DEVICE, UNSUPPORTED_DEVICE */
{
  public:
    explicit no_device(const error &e) noexcept : error(e) {}
};
class out_of_memory : public error /* OUT_OF_HOST_MEMORY, OUT_OF_DEVICE_MEMORY */
{
  public:
    explicit out_of_memory(const error &e) noexcept : error(e) {}
};
class device_lost : public error /* DEVICE_LOST */
{
  public:
    explicit device_lost(const error &e) noexcept : error(e) {}
};
class cancelled : public error /* CANCELLED */
{
  public:
    explicit cancelled(const error &e) noexcept : error(e) {}
};
class limit_exceeded : public error /* LIMIT */
{
  public:
    explicit limit_exceeded(const error &e) noexcept : error(e) {}
};
class busy : public error /* BUSY */
{
  public:
    explicit busy(const error &e) noexcept : error(e) {}
};

#if CLGRAPH_EXCEPTIONS
/* Throws what caused the error, if it was an exception of a callback, else the error. */
[[noreturn]] inline void raise(const error &e)
{
    if (std::exception_ptr cause = e.cause()) std::rethrow_exception(std::move(cause));
    switch (e.status()) {
    case CLG_ERROR_INVALID_ARGUMENT:
    case CLG_ERROR_NOT_FOUND:
    case CLG_ERROR_SHAPE:
    case CLG_ERROR_DATA: throw invalid_argument(e);
    case CLG_ERROR_INVALID_MODEL: throw invalid_model(e);
    case CLG_ERROR_UNSUPPORTED_OPERATOR:
    case CLG_ERROR_UNSUPPORTED_ATTRIBUTE:
    case CLG_ERROR_UNSUPPORTED_DTYPE: throw unsupported(e);
    case CLG_ERROR_NO_OPENCL:
    case CLG_ERROR_NO_DEVICE:
    case CLG_ERROR_UNSUPPORTED_DEVICE: throw no_device(e);
    case CLG_ERROR_OUT_OF_HOST_MEMORY:
    case CLG_ERROR_OUT_OF_DEVICE_MEMORY: throw out_of_memory(e);
    case CLG_ERROR_DEVICE_LOST: throw device_lost(e);
    case CLG_ERROR_CANCELLED: throw cancelled(e);
    case CLG_ERROR_LIMIT: throw limit_exceeded(e);
    case CLG_ERROR_BUSY: throw busy(e);
    default: throw error(e);
    }
}
#endif

/* A value or the error for which there is none, as std::expected of C++23. */
template <class T> class [[nodiscard]] result
{
  public:
    using value_type = T;
    template <class U, class = std::enable_if_t<std::is_convertible_v<U &&, T> &&
                                                !std::is_convertible_v<U &&, error>>>
    result(U &&value) : value_(std::forward<U>(value))
    {
    }
    result(const error &e) noexcept : error_(e) {}

    bool has_value() const noexcept { return value_.has_value(); }
    explicit operator bool() const noexcept { return has_value(); }
    /* Not checked: only if there is a value. */
    T &operator*() &noexcept { return *value_; }
    const T &operator*() const &noexcept { return *value_; }
    T &&operator*() &&noexcept { return std::move(*value_); }
    T *operator->() noexcept { return &*value_; }
    const T *operator->() const noexcept { return &*value_; }
    /* Not checked: only if there is none. */
    const clgraph::error &error() const noexcept { return *error_; }
    clg_status status() const noexcept { return has_value() ? CLG_OK : error_->status(); }
    template <class U> T value_or(U &&other) &&
    {
        return has_value() ? std::move(*value_) : static_cast<T>(std::forward<U>(other));
    }
#if CLGRAPH_EXCEPTIONS
    /* Return the value; throw the error if there is none. */
    T &value() &
    {
        if (!has_value()) raise(*error_);
        return *value_;
    }
    T value() &&
    {
        if (!has_value()) raise(*error_);
        return std::move(*value_);
    }
#endif

  private:
    std::optional<T> value_;
    std::optional<clgraph::error> error_;
};

template <> class [[nodiscard]] result<void>
{
  public:
    using value_type = void;
    result() noexcept = default;
    result(const error &e) noexcept : error_(e) {}

    bool has_value() const noexcept { return !error_; }
    explicit operator bool() const noexcept { return has_value(); }
    const clgraph::error &error() const noexcept { return *error_; }
    clg_status status() const noexcept { return has_value() ? CLG_OK : error_->status(); }
#if CLGRAPH_EXCEPTIONS
    /* Throws the error if there is one. */
    void value() const
    {
        if (error_) raise(*error_);
    }
#endif

  private:
    std::optional<clgraph::error> error_;
};

namespace detail
{

/* The result of a call of the C interface that gives nothing but a status. */
inline result<void> check(clg_status status) noexcept
{
    if (status == CLG_OK) return {};
    return error::last(status);
}

/* The same for a call that also gives a value. */
template <class T> result<T> check(clg_status status, T value)
{
    if (status == CLG_OK) return result<T>(std::move(value));
    return error::last(status);
}

} // namespace detail
} // namespace clgraph

#endif
