/* SPDX-License-Identifier: Apache-2.0
 *
 * Small models that several tests build, without exceptions. A failure ends the program.
 */
#ifndef TESTS_CPP_MODELS_HPP
#define TESTS_CPP_MODELS_HPP

#include <clgraph/clgraph.hpp>

#include <cstdio>
#include <cstdlib>

namespace models
{

inline void need(const clgraph::result<void> &r)
{
    if (r) return;
    std::printf("the model of a test: %s\n", r.error().message());
    std::exit(1);
}

/* y = x W + b; x: [rows, 2] float32, W: [[1, 2], [3, 4]], b: [10, 20]. */
inline clgraph::model linear()
{
    auto b = clgraph::builder::try_create(13);
    if (!b) std::exit(1);
    need(b->try_input("x", CLG_FLOAT32, {-1, 2}, {"rows", ""}));
    need(b->try_constant("W", {2, 2}, std::vector<float>{1, 2, 3, 4}));
    need(b->try_constant("b", {2}, std::vector<float>{10, 20}));
    need(b->try_node("Gemm", {"x", "W", "b"}, {"y"}, "product"));
    need(b->try_output("y"));
    auto m = b->try_build();
    if (!m) {
        std::printf("the model of a test: %s\n", m.error().message());
        std::exit(1);
    }
    return std::move(*m);
}

/* next = count + 1; count: [1] int32. */
inline clgraph::model counter()
{
    auto b = clgraph::builder::try_create(13);
    if (!b) std::exit(1);
    need(b->try_input("count", CLG_INT32, {1}));
    need(b->try_constant("one", {1}, std::vector<std::int32_t>{1}));
    need(b->try_node("Add", {"count", "one"}, {"next"}));
    need(b->try_output("next"));
    auto m = b->try_build();
    if (!m) std::exit(1);
    return std::move(*m);
}

} // namespace models

#endif
