/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokenizers through the C++ interface; no device.
 */
#include "check.hpp"
#include "folder.hpp"

#include <fstream>

using check::throws;
using clgraph::token_stream;
using clgraph::tokenizer;

static const char json[] =
    R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},)"
    R"( "decoder": {"type": "Fuse"}, "added_tokens": [{"id": 3, "content": "<s>", "special": true,)"
    R"( "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}]})";

TEST(tokenizers__encode_decode_and_stream)
{
    const scratch_folder folder("tokenizer");
    const std::string path = (folder / "tokenizer.json").string();
    std::ofstream(path) << json;
    std::ofstream(folder / "tokenizer_config.json") << R"({"bos_token": "<s>"})";
    tokenizer t = tokenizer::open(path);
    CHECK_EQ(t.size(), 4u);
    const std::vector<std::int64_t> ids = t.encode("abba<s>");
    CHECK(ids == (std::vector<std::int64_t>{2, 1, 0, 3}));
    CHECK_EQ(t.decode(ids), "abba");
    CHECK_EQ(t.decode(ids, false), "abba<s>");
    CHECK_EQ(t.id("ab"), 2);
    CHECK_EQ(t.special_id("bos"), 3);
    CHECK(t.is_special(3) && !t.is_special(2));
    CHECK_EQ(std::string(t.token(1)), "b");
    CHECK(t.token(4) == nullptr);
    CHECK(t.encode("").empty());
    token_stream stream = token_stream::create(t);
    t = tokenizer(); /* the stream keeps it */
    CHECK_EQ(stream.push(2), "ab");
    CHECK_EQ(stream.push(3), "");
    CHECK_EQ(stream.push(0), "a");
    CHECK_EQ(stream.end(), "");
}

TEST(tokenizers__errors)
{
    const scratch_folder folder("tokenizer");
    const std::string path = (folder / "tokenizer.json").string();
    CHECK(throws([&] { (void)tokenizer::open(path); }, CLG_ERROR_IO));
    std::ofstream(path) << json;
    const tokenizer t = tokenizer::open(path);
    CHECK(throws([&] { (void)t.id("none"); }, CLG_ERROR_NOT_FOUND));
    CHECK_EQ(t.try_special_id("eos").status(), CLG_ERROR_NOT_FOUND);
}
