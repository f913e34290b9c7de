/* SPDX-License-Identifier: Apache-2.0
 *
 * Views, texts, lists of names, dtypes, errors and results of the C++ interface; no device.
 */
#include "check.hpp"

#include <array>
#include <filesystem>
#if defined(__cpp_lib_span)
#include <span>
#endif

using clgraph::names;
using clgraph::view;
using clgraph::zstring;

static std::size_t n_of(view<const float> v) { return v.size(); }
static std::int64_t product(clgraph::dims_view dims)
{
    std::int64_t p = 1;
    for (const std::int64_t d : dims) p *= d;
    return p;
}

TEST(view__is_made_from_containers)
{
    std::vector<float> vector(3);
    const std::vector<float> constant(4);
    std::array<float, 5> array{};
    float raw[6] = {0};
    CHECK_EQ(n_of(vector), 3u);
    CHECK_EQ(n_of(constant), 4u);
    CHECK_EQ(n_of(array), 5u);
    CHECK_EQ(n_of(raw), 6u);
    CHECK_EQ(n_of({1.0f, 2.0f}), 2u);
    CHECK_EQ(n_of({}), 0u);
    const view<float> writable = vector;
    writable[1] = 7;
    CHECK_EQ(vector[1], 7.0f);
    const view<const float> from_view = writable;
    CHECK(from_view.data() == vector.data());
    CHECK_EQ(from_view.size_bytes(), 12u);
    CHECK_EQ(from_view.sub(1, 2).front(), 7.0f);
    CHECK_EQ(product({2, 3, 4}), 24);
    static_assert(!std::is_convertible_v<const std::vector<float> &, view<float>>,
                  "constants are not writable");
    static_assert(!std::is_convertible_v<std::vector<double> &, view<const float>>, "other type");
    static_assert(!std::is_convertible_v<std::vector<bool> &, view<const bool>>, "bits");
#if defined(__cpp_lib_span)
    const std::span<float> span(vector);
    CHECK_EQ(n_of(span), 3u);
    const std::span<const float> back(from_view);
    CHECK_EQ(back.size(), 3u);
#endif
}

TEST(zstring__ends_a_view_of_text)
{
    const std::string owned = "model.onnx";
    const zstring same(owned);
    CHECK(same.c_str() == owned.c_str()); /* not copied */
    const zstring part(std::string_view("model.onnx").substr(0, 5));
    CHECK_EQ(std::string(part.c_str()), "model");
    const std::filesystem::path path = "folder/x.npy";
    CHECK_EQ(std::string(zstring(path).c_str()), "folder/x.npy");
    CHECK(zstring(nullptr).c_str() == nullptr);
    clg_port port{};
    port.name = "image";
    CHECK(zstring(port).c_str() == port.name);
}

static std::string joined(const names &list)
{
    std::string text;
    for (std::size_t i = 0; i < list.size(); i++) text.append(list.data()[i]).append(",");
    return text;
}

TEST(names__are_made_from_lists)
{
    CHECK_EQ(joined({"a", "b", "c"}), "a,b,c,");
    CHECK_EQ(joined({"a"}), "a,");
    CHECK_EQ(joined({}), "");
    CHECK_EQ(joined(std::vector<std::string>{"x", "y"}), "x,y,");
    const std::string_view text = "one two";
    CHECK_EQ(joined(std::vector<std::string_view>{text.substr(0, 3), text.substr(4)}), "one,two,");
    CHECK_EQ(joined(std::array<const char *, 2>{"p", "q"}), "p,q,");
}

TEST(dtype__follows_from_the_type)
{
    CHECK_EQ(clgraph::dtype_v<float>, CLG_FLOAT32);
    CHECK_EQ(clgraph::dtype_v<const double>, CLG_FLOAT64);
    CHECK_EQ(clgraph::dtype_v<bool>, CLG_BOOL);
    CHECK_EQ(clgraph::dtype_v<std::int8_t>, CLG_INT8);
    CHECK_EQ(clgraph::dtype_v<std::uint16_t>, CLG_UINT16);
    CHECK_EQ(clgraph::dtype_v<int>, CLG_INT32);
    CHECK_EQ(clgraph::dtype_v<long long>, CLG_INT64);
    CHECK_EQ(clgraph::dtype_v<std::int64_t>, CLG_INT64);
    CHECK_EQ(clgraph::dtype_v<std::uint64_t>, CLG_UINT64);
    CHECK_EQ(clgraph::dtype_v<std::complex<float>>, CLG_COMPLEX64);
    CHECK_EQ(clgraph::dtype_v<clgraph::float16>, CLG_FLOAT16);
    CHECK_EQ(clgraph::dtype_v<clgraph::bfloat16>, CLG_BFLOAT16);
    CHECK_EQ(clgraph::dtype_v<clgraph::float8e4m3fn>, CLG_FLOAT8E4M3FN);
    CHECK_EQ(sizeof(clgraph::bfloat16), clgraph::dtype_size(CLG_BFLOAT16));
    CHECK_EQ(std::string(clgraph::dtype_name(clgraph::dtype_v<float>)), "float32");
}

TEST(error__keeps_its_text)
{
    const clgraph::result<clgraph::model> missing = clgraph::model::try_load("no/such/file.onnx");
    CHECK(!missing);
    const clgraph::error kept = missing.error();
    CHECK_EQ(kept.status(), CLG_ERROR_IO);
    CHECK(check::has(kept.message(), "no/such/file.onnx"));
    CHECK(!clgraph::value::try_create(CLG_FLOAT32, {-1})); /* another error of this thread */
    CHECK(check::has(kept.what(), "no/such/file.onnx"));
    clgraph::error other(CLG_ERROR_BUSY, "message", "hint");
    other = kept;
    CHECK(other.message() == kept.message()); /* one copy of the text */
    CHECK_EQ(other.status(), CLG_ERROR_IO);
    CHECK_EQ(std::string(clgraph::error(CLG_ERROR_BUSY, "m", "h").hint()), "h");
    CHECK(!kept.cause());
}

TEST(result__is_a_value_or_an_error)
{
    clgraph::result<int> five = 5;
    CHECK(five.has_value());
    CHECK_EQ(*five, 5);
    CHECK_EQ(five.status(), CLG_OK);
    const clgraph::result<int> none = clgraph::error(CLG_ERROR_LIMIT, "too much");
    CHECK(!none);
    CHECK_EQ(none.status(), CLG_ERROR_LIMIT);
    CHECK_EQ(clgraph::result<int>(none).value_or(7), 7);
    CHECK_EQ(std::move(five).value_or(7), 5);
    CHECK(clgraph::result<void>());
}

TEST(handle__frees_and_moves)
{
    clgraph::value a;
    CHECK(!a && a.rank() == 0 && a.n_elements() == 0 && a.dtype() == CLG_DTYPE_NONE);
    auto made = clgraph::value::try_create(CLG_FLOAT32, {2, 3});
    CHECK(made);
    a = *made; /* a second reference */
    CHECK(a.get() == made->get());
    clgraph::value b = std::move(a);
    CHECK(!a && b.n_elements() == 6);
    b = *&b;
    CHECK_EQ(b.n_elements(), 6);
    clg_value *raw = b.release();
    CHECK(!b);
    const clgraph::value again(raw);
    CHECK_EQ(again.size_bytes(), 24u);
    static_assert(!std::is_copy_constructible_v<clgraph::session>, "sessions are not copied");
    static_assert(std::is_nothrow_move_constructible_v<clgraph::session>, "they move");
    static_assert(std::is_copy_constructible_v<clgraph::value>, "values are references");
}

#if CLGRAPH_EXCEPTIONS
TEST(exceptions__follow_from_the_status)
{
    using check::throws;
    const auto fails_with = [](clg_status s) {
        return [s] { clgraph::raise(clgraph::error(s, "m")); };
    };
    CHECK((throws<clgraph::invalid_argument>(fails_with(CLG_ERROR_SHAPE), CLG_ERROR_SHAPE)));
    CHECK((throws<clgraph::invalid_model>(fails_with(CLG_ERROR_INVALID_MODEL),
                                          CLG_ERROR_INVALID_MODEL)));
    CHECK((throws<clgraph::unsupported>(fails_with(CLG_ERROR_UNSUPPORTED_DTYPE),
                                        CLG_ERROR_UNSUPPORTED_DTYPE)));
    CHECK((throws<clgraph::no_device>(fails_with(CLG_ERROR_NO_OPENCL), CLG_ERROR_NO_OPENCL)));
    CHECK((throws<clgraph::out_of_memory>(fails_with(CLG_ERROR_OUT_OF_HOST_MEMORY),
                                          CLG_ERROR_OUT_OF_HOST_MEMORY)));
    CHECK((throws<clgraph::device_lost>(fails_with(CLG_ERROR_DEVICE_LOST), CLG_ERROR_DEVICE_LOST)));
    CHECK((throws<clgraph::cancelled>(fails_with(CLG_ERROR_CANCELLED), CLG_ERROR_CANCELLED)));
    CHECK((throws<clgraph::limit_exceeded>(fails_with(CLG_ERROR_LIMIT), CLG_ERROR_LIMIT)));
    CHECK((throws<clgraph::busy>(fails_with(CLG_ERROR_BUSY), CLG_ERROR_BUSY)));
    CHECK(throws(fails_with(CLG_ERROR_IO), CLG_ERROR_IO));
    CHECK((throws<clgraph::error>([] { clgraph::model("no/such/file.onnx"); }, CLG_ERROR_IO)));
    clgraph::result<int> none = clgraph::error(CLG_ERROR_BUSY, "m");
    CHECK((throws<clgraph::busy>([&] { (void)none.value(); }, CLG_ERROR_BUSY)));
}
#endif
