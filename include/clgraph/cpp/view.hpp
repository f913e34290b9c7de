/* SPDX-License-Identifier: Apache-2.0
 *
 * Views of contiguous elements, and arguments that are text: what functions of the C++ interface
 * take in place of a pointer with a length. clgraph.hpp includes this header.
 */
#ifndef CLGRAPH_CPP_VIEW_HPP
#define CLGRAPH_CPP_VIEW_HPP

#include <clgraph/model.h>

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace clgraph
{

/* Pointer and number of elements, as std::span of C++20: copies nothing, owns nothing. Made without
 * a cast from std::vector, std::array, std::span, std::string, arrays, and (views of constants)
 * braced lists, which live until the end of the full expression. */
template <class T> class view
{
    template <class Range> using element_pointer = decltype(std::data(std::declval<Range &>()));
    template <class Range, class = void> struct is_range : std::false_type {
    };
    template <class Range>
    struct is_range<
        Range, std::enable_if_t<std::is_convertible_v<
                                    std::remove_pointer_t<element_pointer<Range>> (*)[], T (*)[]> &&
                                !std::is_same_v<std::remove_cv_t<Range>, view>>> : std::true_type {
    };

  public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;
    using iterator = T *;

    constexpr view() noexcept = default;
    constexpr view(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    /* Of an object that has data and size, which must outlive the view. */
    template <class Range, class = std::enable_if_t<is_range<Range>::value>>
    constexpr view(Range &range) noexcept : data_(std::data(range)), size_(std::size(range))
    {
    }
    template <class Range, class U = T,
              class = std::enable_if_t<std::is_const_v<U> && is_range<const Range>::value>>
    constexpr view(const Range &range) noexcept : data_(std::data(range)), size_(std::size(range))
    {
    }
    /* Of a braced list. Not to be kept: use it as an argument only. */
    template <class U = T, class = std::enable_if_t<std::is_const_v<U>>>
    constexpr view(std::initializer_list<value_type> list) noexcept
        : data_(std::data(list)), size_(list.size())
    {
    }

    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    /* Not checked, as in std::span. */
    constexpr T &operator[](std::size_t i) const noexcept { return data_[i]; }
    constexpr T &front() const noexcept { return data_[0]; }
    constexpr T &back() const noexcept { return data_[size_ - 1]; }
    /* The n elements from `first` on; both must lie in the view. */
    constexpr view sub(std::size_t first, std::size_t n) const noexcept
    {
        return {data_ + first, n};
    }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

/* Dimensions of a tensor: `{1, 3, 224, 224}`. */
using dims_view = view<const int64_t>;

/* An argument that the C interface wants NUL-terminated: a name, path or selector. Made without a
 * cast from what has a c_str() (std::string, std::filesystem::path on POSIX systems), from const
 * char * and from a port of a model, whose name it is: none of them is copied. std::string_view is
 * copied, since no NUL need follow it. The text ends at its first NUL. Only for arguments. */
class zstring
{
  public:
    zstring(std::nullptr_t) noexcept {}
    zstring(const char *text) noexcept : text_(text) {}
    zstring(const clg_port &port) noexcept : text_(port.name) {}
    template <class Text, class = std::enable_if_t<std::is_convertible_v<
                              decltype(std::declval<const Text &>().c_str()), const char *>>>
    zstring(const Text &text) noexcept : text_(text.c_str())
    {
    }
    zstring(std::string_view text) : copy_(text), text_(copy_.c_str()) {}
    zstring(const zstring &) = delete;
    zstring &operator=(const zstring &) = delete;

    const char *c_str() const noexcept { return text_; }

  private:
    std::string copy_;
    const char *text_ = nullptr;
};

/* An argument that is a list of names. A braced list of literals is not copied; of other lists
 * (std::vector<std::string>, of std::string_view, ...) the pointers are, and names that are
 * std::string_view with their text. Only for arguments. */
class names
{
    template <class Text> static const char *pointer(const Text &text) noexcept
    {
        if constexpr (std::is_convertible_v<const Text &, const char *>)
            return text;
        else
            return text.c_str();
    }

  public:
    names() noexcept = default;
    names(std::initializer_list<const char *> list) noexcept
        : data_(std::data(list)), size_(list.size())
    {
    }
    template <class List, class = decltype(std::size(std::declval<const List &>()))>
    names(const List &list)
    {
        using text = std::decay_t<decltype(*std::begin(list))>;
        pointers_.reserve(std::size(list));
        if constexpr (std::is_same_v<text, std::string_view>) {
            copies_.assign(std::begin(list), std::end(list));
            for (const std::string &s : copies_) pointers_.push_back(s.c_str());
        } else {
            for (const auto &s : list) pointers_.push_back(pointer(s));
        }
        data_ = pointers_.data();
        size_ = pointers_.size();
    }
    names(const names &) = delete;
    names &operator=(const names &) = delete;

    const char *const *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }

  private:
    std::vector<std::string> copies_;
    std::vector<const char *> pointers_;
    const char *const *data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace clgraph

#endif
