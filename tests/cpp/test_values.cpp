/* SPDX-License-Identifier: Apache-2.0
 *
 * Values and files of values through the C++ interface; no device but for the device tensor.
 */
#include "check.hpp"
#include "folder.hpp"

#include <fstream>

using check::throws;
using clgraph::value;

TEST(values__copy_wrap_and_adopt)
{
    std::vector<float> x = {1, 2, 3, 4};
    const value copy = value::copy_of({2, 2}, x);
    const value wrapped = value::wrap({4}, x);
    x[0] = 9;
    CHECK_EQ(copy.data<float>()[0], 1.0f);
    CHECK_EQ(wrapped.data<float>()[0], 9.0f);
    CHECK(wrapped.data<float>().data() == x.data());
    const float *elements = x.data();
    const value adopted = value::adopt({4}, std::move(x));
    CHECK(adopted.data<float>().data() == elements); /* moved, not copied */
    CHECK_EQ(adopted.to_vector<float>()[3], 4.0f);
    CHECK_EQ(copy.rank(), 2u);
    CHECK_EQ(copy.dims()[1], 2);
    CHECK(throws([&] { (void)copy.data<double>(); }, CLG_ERROR_INVALID_ARGUMENT));
    CHECK(throws([&] { (void)copy.to_vector<int>(); }, CLG_ERROR_INVALID_ARGUMENT));
    CHECK(throws([&] { (void)value::copy_of({5}, std::vector<float>(4)); },
                 CLG_ERROR_INVALID_ARGUMENT));
    CHECK(throws([&] { (void)value::adopt({5}, std::vector<float>(4)); },
                 CLG_ERROR_INVALID_ARGUMENT));
    value written = value::create(CLG_INT64, {3});
    const std::int64_t three[] = {5, 6, 7};
    written.write(three);
    CHECK_EQ(written.get_double(2), 7.0);
    CHECK(throws([&] { written.write(std::vector<float>(3)); }, CLG_ERROR_INVALID_ARGUMENT));
    bool exact = false;
    const value cast = written.cast(CLG_FLOAT16, &exact);
    CHECK(exact);
    CHECK_EQ(cast.data<clgraph::float16>()[0].bits, 0x4500); /* 5.0 */
    value to = value::create(CLG_INT64, {3});
    written.copy_to(to);
    CHECK_EQ(to.to_vector<std::int64_t>()[1], 6);
}

TEST(values__hold_strings_sequences_and_maps)
{
    const value keys = value::strings({2}, std::vector<std::string_view>{"cat", "dog"});
    CHECK_EQ(std::string(keys.string_at(1)), "dog");
    CHECK(keys.string_at(2).empty());
    const value scores = value::copy_of({2}, std::vector<float>{0.25f, 0.75f});
    const value map = value::map(keys, scores);
    CHECK_EQ(map.kind(), CLG_VALUE_MAP);
    CHECK_EQ(map.map_values().get_double(1), 0.75);
    CHECK_EQ(std::string(map.map_keys().string_at(0)), "cat");
    const value sequence = value::sequence(std::vector<value>{scores, scores});
    CHECK_EQ(sequence.n_items(), 2u);
    CHECK_EQ(sequence.item(1).get_double(0), 0.25);
    CHECK(!sequence.item(2));
    CHECK_EQ(value::optional(value(), CLG_FLOAT32).n_items(), 0u);
    CHECK_EQ(value::optional(scores).n_items(), 1u);
    CHECK(throws([&] { (void)map.data<float>(); }, CLG_ERROR_INVALID_ARGUMENT));
}

TEST(values__are_on_a_device)
{
    const auto context = clgraph::context::create();
    value v = value::create_device(context, CLG_FLOAT32, {3});
    CHECK(!v.is_on_host());
    v.write(std::vector<float>{1, 2, 3});
    CHECK(throws([&] { (void)v.data<float>(); }, CLG_ERROR_INVALID_ARGUMENT));
    CHECK_EQ(v.to_host().data<float>()[2], 3.0f);
    float back[3];
    v.read(back);
    CHECK_EQ(back[1], 2.0f);
}

TEST(files__npy_npz_and_pb)
{
    const scratch_folder folder("files");
    const value x = value::copy_of({2, 2}, std::vector<float>{1, 2, 3, 4});
    x.save(folder / "x.npy");
    CHECK_EQ(value::load(folder / "x.npy").get_double(3), 4.0);
    x.save(folder / "x.pb");
    CHECK_EQ(value::load_kind(folder / "x.pb", CLG_VALUE_TENSOR).get_double(2), 3.0);

    const std::vector<clgraph::named_value> both = {{"a", x}, {"b", x}};
    clgraph::save_npz(folder / "x.npz", both);
    CHECK_EQ(clgraph::load_npz(folder / "x.npz")[1].name, "b");
    const auto npz = clgraph::npz_reader::open(folder / "x.npz");
    CHECK_EQ(npz.n_arrays(), 2u);
    CHECK_EQ(std::string(npz.name(0)), "a");
    CHECK_EQ(npz.header(1).dims.size(), 2u);
    CHECK_EQ(npz.read(1).get_double(0), 1.0);

    auto writer = clgraph::npy_writer::open(folder / "rows.npy", CLG_FLOAT32, {0, 2});
    writer.append(2, std::vector<float>{1, 2, 3, 4});
    CHECK(throws([&] { writer.append(1, std::vector<int>(2)); }, CLG_ERROR_INVALID_ARGUMENT));
    writer.append(1, std::vector<float>{5, 6});
    writer.flush();
    writer.commit();
    auto reader = clgraph::npy_reader::open(folder / "rows.npy");
    CHECK_EQ(reader.dims()[0], 3);
    std::vector<float> rows(2);
    reader.read(2, 1, rows);
    CHECK_EQ(rows[1], 6.0f);
    CHECK(throws([&] { reader.read(0, 1, std::vector<double>(2)); }, CLG_ERROR_INVALID_ARGUMENT));
    const std::int64_t two_rows[] = {2, 2};
    auto part = clgraph::npy_writer::open_part(folder / "part.npy", CLG_FLOAT32, two_rows, 1);
    part.append(1, std::vector<float>{7, 8});
    part.commit();
    CHECK_EQ(value::load(folder / "part.npy").get_double(3), 8.0);
    {
        auto abandoned = clgraph::npy_writer::open(folder / "none.npy", CLG_FLOAT32, {0, 2});
        abandoned.append(1, std::vector<float>{1, 2});
    }
    CHECK(!std::filesystem::exists(folder / "none.npy"));
    clgraph::write_file(folder / "text", std::string("content"));
    std::string content;
    std::getline(std::ifstream(folder / "text"), content);
    CHECK_EQ(content, "content");
}

TEST(files__cache)
{
    const scratch_folder folder("cache");
    clgraph::cache cache((folder / "store").string());
    CHECK_EQ(cache.path(), (folder / "store").string());
    CHECK(cache.entries().empty());
    clgraph::context_options options;
    options.cache_dir = (folder / "store").string();
    {
        const auto context = clgraph::context::create(nullptr, options);
    }
    const std::size_t n = cache.entries().size();
    CHECK(n > 0);
    cache.pack(folder / "packed");
    CHECK_EQ(cache.remove("no such entry"), 0u);
    CHECK_EQ(cache.prune(std::uint64_t{1} << 40), 0u);
    CHECK_EQ(cache.clear(), n);
    CHECK_EQ(cache.unpack(folder / "packed"), n);
    CHECK(
        throws([&] { (void)clgraph::cache(std::string()).entries(); }, CLG_ERROR_INVALID_ARGUMENT));
}

TEST(values__images_become_tensors)
{
    const std::string map = "P6 2 1 255\n\1\2\3\4\5\6";
    const std::vector<unsigned char> file(map.begin(), map.end());
    const clgraph::view<const unsigned char> bytes(file.data(), file.size());
    if (clgraph::result<value> r = clgraph::try_decode_image(bytes);
        !r && r.status() == CLG_ERROR_UNSUPPORTED_OPERATOR)
        return; /* the module is not built */
    CHECK_EQ(clgraph::read_image_header(bytes).width, 2);
    const value image = clgraph::decode_image(bytes);
    CHECK_EQ(image.dims()[2], 3);
    CHECK_EQ(image.data<std::uint8_t>()[5], 6);
    clgraph::image_options options;
    options.channels = 2;
    CHECK(throws([&] { (void)clgraph::decode_image(bytes, options); }, CLG_ERROR_INVALID_ARGUMENT));
    options = {};
    options.max_pixels = 1;
    CHECK(throws([&] { (void)clgraph::decode_image(bytes, options); }, CLG_ERROR_LIMIT));
}
