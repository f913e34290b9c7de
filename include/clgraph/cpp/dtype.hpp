/* SPDX-License-Identifier: Apache-2.0
 *
 * C++ types of elements, and the dtype of each. clgraph.hpp includes this header.
 */
#ifndef CLGRAPH_CPP_DTYPE_HPP
#define CLGRAPH_CPP_DTYPE_HPP

#include <clgraph/value.h>

#include <complex>
#include <cstdint>
#include <type_traits>

#if defined(__has_include)
#if __has_include(<stdfloat>)
#include <stdfloat>
#endif
#endif

namespace clgraph
{

/* The bits of an element whose type C++17 does not have. Converted by value::cast. */
template <clg_dtype Dtype, class Bits> struct raw {
    Bits bits;
    friend bool operator==(raw a, raw b) noexcept { return a.bits == b.bits; }
    friend bool operator!=(raw a, raw b) noexcept { return a.bits != b.bits; }
};
using float16 = raw<CLG_FLOAT16, std::uint16_t>;
using bfloat16 = raw<CLG_BFLOAT16, std::uint16_t>;
using float8e4m3fn = raw<CLG_FLOAT8E4M3FN, std::uint8_t>;
using float8e4m3fnuz = raw<CLG_FLOAT8E4M3FNUZ, std::uint8_t>;
using float8e5m2 = raw<CLG_FLOAT8E5M2, std::uint8_t>;
using float8e5m2fnuz = raw<CLG_FLOAT8E5M2FNUZ, std::uint8_t>;
using float8e8m0 = raw<CLG_FLOAT8E8M0, std::uint8_t>;

/* dtype_of<T>::value is the dtype of elements of type T. May be specialised for other types of the
 * same size and representation (half of a library, for example). */
template <class T> struct dtype_of;
template <clg_dtype Dtype> using dtype_constant = std::integral_constant<clg_dtype, Dtype>;

template <> struct dtype_of<float> : dtype_constant<CLG_FLOAT32> {
};
template <> struct dtype_of<double> : dtype_constant<CLG_FLOAT64> {
};
template <> struct dtype_of<std::complex<float>> : dtype_constant<CLG_COMPLEX64> {
};
template <> struct dtype_of<std::complex<double>> : dtype_constant<CLG_COMPLEX128> {
};
template <> struct dtype_of<bool> : dtype_constant<CLG_BOOL> {
    static_assert(sizeof(bool) == 1, "elements of type bool have one byte");
};
template <clg_dtype Dtype, class Bits> struct dtype_of<raw<Dtype, Bits>> : dtype_constant<Dtype> {
};
#if defined(__FLT16_MANT_DIG__) && !defined(CLGRAPH_NO_FLOAT16)
#if defined(__clang__) || defined(__GNUC__)
__extension__ typedef _Float16 compiler_float16;
template <> struct dtype_of<compiler_float16> : dtype_constant<CLG_FLOAT16> {
};
#endif
#endif
#if defined(__STDCPP_BFLOAT16_T__)
template <> struct dtype_of<std::bfloat16_t> : dtype_constant<CLG_BFLOAT16> {
};
#endif

namespace detail
{

/* The dtype of integers by size and sign: int, long and long long need not be std::int64_t. */
template <class T> constexpr clg_dtype integer_dtype() noexcept
{
    constexpr bool is_signed = std::is_signed_v<T>;
    switch (sizeof(T)) {
    case 1: return is_signed ? CLG_INT8 : CLG_UINT8;
    case 2: return is_signed ? CLG_INT16 : CLG_UINT16;
    case 4: return is_signed ? CLG_INT32 : CLG_UINT32;
    default: return is_signed ? CLG_INT64 : CLG_UINT64;
    }
}

} // namespace detail

template <class T> struct dtype_of {
    static_assert(std::is_integral_v<T>, "clgraph has no dtype for elements of this type");
    static constexpr clg_dtype value = detail::integer_dtype<T>();
};

template <class T> inline constexpr clg_dtype dtype_v = dtype_of<std::remove_cv_t<T>>::value;

/* Return the name of a dtype, "float32", and the bytes of an element (0: strings, parts of a byte).
 */
inline const char *dtype_name(clg_dtype dtype) noexcept { return clg_dtype_name(dtype); }
inline std::size_t dtype_size(clg_dtype dtype) noexcept { return clg_dtype_size(dtype); }

} // namespace clgraph

#endif
