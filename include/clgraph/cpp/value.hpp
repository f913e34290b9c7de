/* SPDX-License-Identifier: Apache-2.0
 *
 * Values: tensors in host or device memory, sequences, optionals and maps (clgraph/value.h), and
 * tensors in files. clgraph.hpp includes this header.
 */
#ifndef CLGRAPH_CPP_VALUE_HPP
#define CLGRAPH_CPP_VALUE_HPP

#include <clgraph/cpp/context.hpp>
#include <clgraph/cpp/dtype.hpp>

#include <cstdlib>
#include <new>

namespace clgraph
{

namespace detail
{

/* The elements of a container, array or view, writable if they are. */
template <class Range> auto elements_of(Range &&range) noexcept
{
    using element = std::remove_pointer_t<decltype(std::data(range))>;
    return view<element>(std::data(range), std::size(range));
}
template <class Range>
using element =
    std::remove_cv_t<std::remove_pointer_t<decltype(std::data(std::declval<Range &>()))>>;

template <class C, class Handle> std::vector<C *> pointers_of(view<const Handle> handles)
{
    std::vector<C *> pointers;
    pointers.reserve(handles.size());
    for (const Handle &h : handles) pointers.push_back(h.get());
    return pointers;
}

inline error wrong_dtype(const char *whose, clg_dtype is, clg_dtype given)
{
    std::string message(whose);
    message.append(" dtype is ").append(clg_dtype_name(is));
    message.append(", not ").append(clg_dtype_name(given));
    return error(CLG_ERROR_INVALID_ARGUMENT, message, "value::cast converts");
}

} // namespace detail

/* A reference to a value. Copies refer to the same elements and cost a count. */
class value : public handle<clg_value, clg_value_free>
{
  public:
    using handle::handle;
    value() noexcept = default; /* empty */
    value(value &&) noexcept = default;
    value &operator=(value &&) noexcept = default;
    value(const value &other) noexcept : handle(clg_value_retain(other.get())) {}
    value &operator=(const value &other) noexcept
    {
        reset(clg_value_retain(other.get()));
        return *this;
    }
    /* A further reference to a value of the C interface, which stays as it is. */
    static value share(clg_value *borrowed) noexcept { return value(clg_value_retain(borrowed)); }

    /* ---- making values ------------------------------------------------------------------- */

    /* A tensor of zeros in host memory. */
    static result<value> try_create(clg_dtype dtype, dims_view dims)
    {
        return detail::take<value>([&](clg_value **out) {
            return clg_value_create(dtype, dims.size(), dims.data(), out);
        });
    }
    /* A tensor in host memory with a copy of the elements of `data`, row-major. */
    template <class Range> static result<value> try_copy_of(dims_view dims, const Range &data)
    {
        const auto from = detail::elements_of(data);
        result<value> made = try_create(dtype_v<detail::element<Range>>, dims);
        if (!made) return made;
        if (auto written = made->try_write(from); !written) return written.error();
        return made;
    }
    /* A tensor over the caller's memory, which is not copied and must outlive the value and all
     * runs with it. */
    template <class Range> static result<value> try_wrap(dims_view dims, Range &data)
    {
        const auto memory = detail::elements_of(data);
        return detail::take<value>([&](clg_value **out) {
            return clg_value_wrap(dtype_v<detail::element<Range>>, dims.size(), dims.data(),
                                  const_cast<void *>(static_cast<const void *>(memory.data())),
                                  memory.size_bytes(), nullptr, nullptr, out);
        });
    }
    /* A tensor in the memory of a container (std::vector, a smart array with data() and size()),
     * which moves into the value. */
    template <class Container> static result<value> try_adopt(dims_view dims, Container &&data)
    {
        static_assert(!std::is_reference_v<Container>, "adopt(dims, std::move(container))");
        auto *owned = new Container(std::move(data));
        const auto memory = detail::elements_of(*owned);
        result<value> made = detail::take<value>([&](clg_value **out) {
            return clg_value_wrap(
                dtype_v<detail::element<Container>>, dims.size(), dims.data(),
                const_cast<void *>(static_cast<const void *>(memory.data())), memory.size_bytes(),
                [](void *user) { delete static_cast<Container *>(user); }, owned, out);
        });
        if (!made) delete owned;
        return made;
    }
    /* A tensor of strings, which are copied. */
    static result<value> try_strings(dims_view dims, const names &strings)
    {
        std::size_t n_chars = 0;
        for (std::size_t i = 0; i < strings.size(); i++)
            n_chars += std::strlen(strings.data()[i]) + 1;
        const std::size_t pointer_bytes = strings.size() * sizeof(char *);
        char **elements =
            static_cast<char **>(::operator new(pointer_bytes + n_chars + 1, std::nothrow));
        if (!elements) return error(CLG_ERROR_OUT_OF_HOST_MEMORY, "no memory for strings");
        char *to = reinterpret_cast<char *>(elements) + pointer_bytes;
        for (std::size_t i = 0; i < strings.size(); i++) {
            const std::size_t size = std::strlen(strings.data()[i]) + 1;
            std::memcpy(to, strings.data()[i], size);
            elements[i] = to;
            to += size;
        }
        result<value> made = detail::take<value>([&](clg_value **out) {
            return clg_value_wrap(
                CLG_STRING, dims.size(), dims.data(), elements, pointer_bytes,
                [](void *user) { ::operator delete(user); }, elements, out);
        });
        if (!made) ::operator delete(elements);
        return made;
    }
    /* A tensor in device memory; its elements are undefined until they are written. */
    static result<value> try_create_device(const context &device, clg_dtype dtype, dims_view dims)
    {
        return detail::take<value>([&](clg_value **out) {
            return clg_value_create_device(device.get(), dtype, dims.size(), dims.data(), out);
        });
    }
    /* A sequence, which refers to its items. CLG_DTYPE_NONE: the dtype of the first. */
    static result<value> try_sequence(view<const value> items, clg_dtype dtype = CLG_DTYPE_NONE)
    {
        const std::vector<clg_value *> pointers = detail::pointers_of<clg_value>(items);
        return detail::take<value>([&](clg_value **out) {
            return clg_value_create_sequence(dtype, pointers.size(), pointers.data(), out);
        });
    }
    /* An optional that refers to `item`, empty if that is. */
    static result<value> try_optional(const value &item, clg_dtype dtype = CLG_DTYPE_NONE)
    {
        return detail::take<value>(
            [&](clg_value **out) { return clg_value_create_optional(dtype, item.get(), out); });
    }
    /* A map from keys, a tensor [n] of int64 or strings, to values, a tensor [n]. */
    static result<value> try_map(const value &keys, const value &values)
    {
        return detail::take<value>(
            [&](clg_value **out) { return clg_value_create_map(keys.get(), values.get(), out); });
    }
    /* A tensor from .npy or .pb. */
    static result<value> try_load(const zstring &path)
    {
        return detail::take<value>(
            [&](clg_value **out) { return clg_value_load(path.c_str(), out); });
    }
    /* A value of any kind from .pb, which does not say what it holds. */
    static result<value> try_load_kind(const zstring &path, clg_value_kind kind)
    {
        return detail::take<value>(
            [&](clg_value **out) { return clg_value_load_kind(path.c_str(), kind, out); });
    }

    /* ---- what it is; an empty handle counts as a tensor of rank 0 without dtype ------------ */

    clg_value_kind kind() const noexcept { return clg_value_get_kind(get()); }
    clg_dtype dtype() const noexcept { return clg_value_dtype(get()); }
    std::size_t rank() const noexcept { return clg_value_rank(get()); }
    dims_view dims() const noexcept { return {clg_value_dims(get()), rank()}; }
    std::int64_t n_elements() const noexcept { return clg_value_n_elements(get()); }
    std::size_t size_bytes() const noexcept { return clg_value_size_bytes(get()); }
    bool is_on_host() const noexcept { return clg_value_data(get()) || size_bytes() == 0; }

    /* ---- elements ---------------------------------------------------------------------------- */

    /* The elements of a host tensor in place. INVALID_ARGUMENT: another dtype than that of T, not
     * a tensor, on a device. Write only while no run uses the value. */
    template <class T> result<view<T>> try_data() const
    {
        if (kind() != CLG_VALUE_TENSOR || dtype() != dtype_v<T>)
            return detail::wrong_dtype("the value's", dtype(), dtype_v<T>);
        if (!is_on_host())
            return error(CLG_ERROR_INVALID_ARGUMENT, "the value is on a device",
                         "to_host() or read() copies it to the host");
        return view<T>(static_cast<T *>(clg_value_data(get())),
                       static_cast<std::size_t>(n_elements()));
    }
    /* Element i of a host tensor of strings; "" for other values, and if i is out of range. */
    std::string_view string_at(std::size_t i) const noexcept
    {
        if (dtype() != CLG_STRING || !clg_value_data(get()) ||
            i >= static_cast<std::size_t>(n_elements()))
            return {};
        const char *s = static_cast<char *const *>(clg_value_data(get()))[i];
        return s ? std::string_view(s) : std::string_view();
    }
    /* Element i of a host tensor of numbers as a double; 0 for others, and out of range. */
    double get_double(std::int64_t i) const noexcept { return clg_value_get_double(get(), i); }
    /* Copies elements into the tensor, on host or device. The dtypes and numbers must agree. */
    template <class Range> result<void> try_write(const Range &data)
    {
        const auto from = detail::elements_of(data);
        if (dtype() != dtype_v<detail::element<Range>>)
            return detail::wrong_dtype("the value's", dtype(), dtype_v<detail::element<Range>>);
        return detail::check(clg_value_write(get(), from.data(), from.size_bytes()));
    }
    /* Copies the elements of the tensor to the caller's memory. */
    template <class Range> result<void> try_read(Range &&data) const
    {
        const auto to = detail::elements_of(data);
        if (dtype() != dtype_v<detail::element<Range>>)
            return detail::wrong_dtype("the value's", dtype(), dtype_v<detail::element<Range>>);
        return detail::check(clg_value_read(get(), to.data(), to.size_bytes()));
    }
    /* A copy of the elements. */
    template <class T> result<std::vector<T>> try_to_vector() const
    {
        std::vector<T> elements(static_cast<std::size_t>(n_elements()));
        if (auto r = try_read(elements); !r) return r.error();
        return result<std::vector<T>>(std::move(elements));
    }
    /* Copies the elements to another tensor of the same dtype and number of elements; within one
     * context not through the host. */
    result<void> try_copy_to(value &to) const
    {
        return detail::check(clg_value_copy(get(), to.get()));
    }
    /* A host copy; another reference to this value if it is on the host. */
    result<value> try_to_host() const
    {
        return detail::take<value>([&](clg_value **out) { return clg_value_to_host(get(), out); });
    }
    /* The tensor in another numeric type, as ONNX's Cast. *exact, if given, becomes true if no
     * element changed its value. */
    result<value> try_cast(clg_dtype dtype, bool *exact = nullptr) const
    {
        return detail::take<value>(
            [&](clg_value **out) { return clg_value_cast(get(), dtype, out, exact); });
    }
    /* Saves a tensor to .npy or .pb. */
    result<void> try_save(const zstring &path) const
    {
        return detail::check(clg_value_save(get(), path.c_str()));
    }

    /* ---- items of sequences and optionals, maps ---------------------------------------------- */

    std::size_t n_items() const noexcept { return clg_value_n_items(get()); }
    /* References; empty handles when i is out of range, or the value is not a map. */
    value item(std::size_t i) const noexcept { return share(clg_value_item(get(), i)); }
    value map_keys() const noexcept { return share(clg_value_map_keys(get())); }
    value map_values() const noexcept { return share(clg_value_map_values(get())); }

#if CLGRAPH_EXCEPTIONS
    /* The same, with exceptions. */
    static value create(clg_dtype dtype, dims_view dims) { return try_create(dtype, dims).value(); }
    template <class Range> static value copy_of(dims_view dims, const Range &data)
    {
        return try_copy_of(dims, data).value();
    }
    template <class Range> static value wrap(dims_view dims, Range &data)
    {
        return try_wrap(dims, data).value();
    }
    template <class Container> static value adopt(dims_view dims, Container &&data)
    {
        return try_adopt(dims, std::move(data)).value();
    }
    static value strings(dims_view dims, const names &strings)
    {
        return try_strings(dims, strings).value();
    }
    static value create_device(const context &device, clg_dtype dtype, dims_view dims)
    {
        return try_create_device(device, dtype, dims).value();
    }
    static value sequence(view<const value> items, clg_dtype dtype = CLG_DTYPE_NONE)
    {
        return try_sequence(items, dtype).value();
    }
    static value optional(const value &item, clg_dtype dtype = CLG_DTYPE_NONE)
    {
        return try_optional(item, dtype).value();
    }
    static value map(const value &keys, const value &values)
    {
        return try_map(keys, values).value();
    }
    static value load(const zstring &path) { return try_load(path).value(); }
    static value load_kind(const zstring &path, clg_value_kind kind)
    {
        return try_load_kind(path, kind).value();
    }
    template <class T> view<T> data() const { return try_data<T>().value(); }
    template <class Range> void write(const Range &data) { try_write(data).value(); }
    template <class Range> void read(Range &&data) const { try_read(data).value(); }
    template <class T> std::vector<T> to_vector() const { return try_to_vector<T>().value(); }
    void copy_to(value &to) const { try_copy_to(to).value(); }
    value to_host() const { return try_to_host().value(); }
    value cast(clg_dtype dtype, bool *exact = nullptr) const
    {
        return try_cast(dtype, exact).value();
    }
    void save(const zstring &path) const { try_save(path).value(); }
#endif
};

} // namespace clgraph

#endif
