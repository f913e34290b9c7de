/* SPDX-License-Identifier: Apache-2.0
 *
 * Ownership of the C interface's objects, arrays and text, and callbacks through it.
 * clgraph.hpp includes this header.
 */
#ifndef CLGRAPH_CPP_HANDLE_HPP
#define CLGRAPH_CPP_HANDLE_HPP

#include <clgraph/cpp/error.hpp>
#include <clgraph/cpp/view.hpp>
#include <clgraph/inspect.h>

#include <string>
#include <utility>

namespace clgraph
{

/* Owns an object of the C interface: the base of contexts, models, sessions, ... Moves, and does
 * not copy. Objects keep those that they were made from alive: they may be destroyed in any
 * order. */
template <class T, void (*Free)(T *)> class handle
{
  public:
    using c_type = T;
    handle() noexcept = default;
    /* Takes over what a function of the C interface returned. */
    explicit handle(T *owned) noexcept : pointer_(owned) {}
    handle(handle &&other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
    handle &operator=(handle &&other) noexcept
    {
        if (this != &other) reset(std::exchange(other.pointer_, nullptr));
        return *this;
    }
    handle(const handle &) = delete;
    handle &operator=(const handle &) = delete;
    ~handle() { Free(pointer_); }

    /* For functions of the C interface; still owned by the handle. */
    T *get() const noexcept { return pointer_; }
    explicit operator bool() const noexcept { return pointer_ != nullptr; }
    /* Gives up ownership. */
    [[nodiscard]] T *release() noexcept { return std::exchange(pointer_, nullptr); }
    void reset(T *owned = nullptr) noexcept { Free(std::exchange(pointer_, owned)); }

  private:
    T *pointer_ = nullptr;
};

/* Uses an object of the C interface that another one owns: borrowed<session>(p)->run(). */
template <class Handle> class borrowed
{
  public:
    explicit borrowed(typename Handle::c_type *pointer) noexcept : handle_(pointer) {}
    borrowed(borrowed &&) noexcept = default;
    borrowed &operator=(borrowed &&other) noexcept
    {
        (void)handle_.release();
        handle_ = std::move(other.handle_);
        return *this;
    }
    ~borrowed() { (void)handle_.release(); }
    Handle *operator->() noexcept { return &handle_; }
    Handle &operator*() noexcept { return handle_; }
    explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

  private:
    Handle handle_;
};

/* Owns an array that the C interface returned: its elements are not copied, and their strings live
 * as long as the list. */
template <class T, void (*Free)(T *, std::size_t)> class list
{
  public:
    list() noexcept = default;
    list(T *owned, std::size_t size) noexcept : data_(owned), size_(size) {}
    list(list &&other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0))
    {
    }
    list &operator=(list &&other) noexcept
    {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~list() { Free(data_, size_); }

    T *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    T *begin() const noexcept { return data_; }
    T *end() const noexcept { return data_ + size_; }
    /* Not checked. */
    T &operator[](std::size_t i) const noexcept { return data_[i]; }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

namespace detail
{

/* The list that call(&array, &size) returns. */
template <class List, class Call> result<List> take_list(Call &&call)
{
    std::remove_reference_t<decltype(*std::declval<List &>().data())> *array = nullptr;
    std::size_t size = 0;
    const clg_status status = call(&array, &size);
    if (status != CLG_OK) return error::last(status);
    return List(array, size);
}

/* The object that call(&pointer) creates. */
template <class Handle, class Call> result<Handle> take(Call &&call)
{
    typename Handle::c_type *created = nullptr;
    const clg_status status = call(&created);
    if (status != CLG_OK) return error::last(status);
    return Handle(created);
}

/* A copy of the text that call(&text) returns; the text is freed. */
template <class Call> result<std::string> take_text(Call &&call)
{
    struct owner {
        char *text = nullptr;
        ~owner() { clg_text_free(text); }
    } owned;
    const clg_status status = call(&owned.text);
    if (status != CLG_OK) return error::last(status);
    return std::string(owned.text);
}

/* Keeps the first failure of callbacks during a call of the C interface, which must see neither
 * exceptions nor C++ types. One thread at a time. */
class callback_guard
{
  public:
    /* Calls f(), which returns result<R>. After an exception or an error, kept for finish(),
     * returns an error, too. */
    template <class F> auto call(F &&f) noexcept -> decltype(f())
    {
#if CLGRAPH_EXCEPTIONS
        try {
            return keep(f());
        } catch (const error &e) {
            failure_.emplace(e);
        } catch (...) {
            failure_.emplace(CLG_ERROR_CANCELLED, "a callback threw an exception", "",
                             std::current_exception());
        }
        return *failure_;
#else
        return keep(f());
#endif
    }
    const std::optional<error> &failure() const noexcept { return failure_; }
    /* The error of a call that failed: of the callback if that is the reason. */
    error finish(clg_status status) const noexcept
    {
        return failure_ ? *failure_ : error::last(status);
    }

  private:
    template <class R> R keep(R r) noexcept
    {
        if (!r && !failure_) failure_.emplace(r.error());
        return r;
    }
    std::optional<error> failure_;
};

} // namespace detail
} // namespace clgraph

#endif
