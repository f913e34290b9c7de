/* SPDX-License-Identifier: Apache-2.0
 *
 * Generators through the C++ interface: a model of eight tokens, each followed by the next one.
 */
#include "check.hpp"
#include "folder.hpp"
#include "models.hpp"

#include <fstream>
#include <string>
#include <vector>

using check::throws;

static void write_folder(const scratch_folder &folder)
{
    auto b = clgraph::builder::try_create(13);
    std::vector<float> embed(64, 0.0f), head(64, 0.0f);
    for (std::size_t i = 0; i < 8; i++) embed[9 * i] = head[8 * i + (i + 1) % 8] = 1;
    models::need(b->try_input("input_ids", CLG_INT64, {-1, -1}, {"batch", "tokens"}));
    models::need(b->try_constant("embed", {8, 8}, embed));
    models::need(b->try_constant("head", {8, 8}, head));
    models::need(b->try_node("Gather", {"embed", "input_ids"}, {"x"}, ""));
    models::need(b->try_node("MatMul", {"x", "head"}, {"logits"}, ""));
    models::need(b->try_output("logits"));
    b->try_build()->save((folder / "model.onnx").string());
    std::ofstream(folder / "config.json")
        << R"({"vocab_size": 8, "n_positions": 30, "eos_token_id": 7})";
    std::ofstream(folder / "tokenizer.json")
        << R"({"decoder": {"type": "Fuse"}, "model": {"type": "BPE", "merges": [], "vocab": )"
        << R"({"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 5, "g": 6, "h": 7}}})";
}

TEST(generator__tokens_and_text)
{
    const scratch_folder folder("generate");
    write_folder(folder);
    const auto context = clgraph::context::create();
    clgraph::generator_options options;
    options.max_context = 20;
    clgraph::generator generator(context, folder.folder.string(), options);
    CHECK_EQ(generator.describe().vocabulary, 8u);
    CHECK_EQ(generator.describe().max_context, 20u);

    const std::vector<std::int64_t> prompt = {4, 5};
    generator.append(prompt);
    clgraph::generated made = generator.next();
    CHECK(made.token == 6 && made.end == CLG_END_NONE);
    made = generator.next();
    CHECK(made.token == 7 && made.end == CLG_END_EOS);
    CHECK_EQ(generator.tokens().size(), 4u);

    generator.rewind(0);
    generator.append_text("c");
    generator.set_stops({"fg"});
    std::string text;
    clgraph::generated_text piece;
    while (piece.end == CLG_END_NONE) {
        piece = generator.next_text();
        text += piece.text;
    }
    CHECK(text == "de" && piece.end == CLG_END_STOP);

    std::vector<float> logits(8);
    generator.rewind(1);
    generator.logits(logits);
    CHECK(logits[3] == 1.0f && logits[2] == 0.0f);
    clgraph::sampling s = generator.get_sampling();
    s.max_new = 1;
    generator.set_sampling(s);
    CHECK(generator.next().end == CLG_END_LENGTH);
    generator.reset_sampling();
    CHECK_EQ(generator.get_sampling().max_new, 0u);
    CHECK(generator.stats().n_runs > 3);
    generator.cancel(); /* nothing is in progress */
}

TEST(generator__errors)
{
    const auto context = clgraph::context::create();
    CHECK(throws<clgraph::error>([&] { clgraph::generator g(context, "no such folder"); },
                                 CLG_ERROR_IO));
}
