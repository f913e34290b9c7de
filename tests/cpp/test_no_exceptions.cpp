/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that return results, in a program without exceptions: compiled with
 * -fno-exceptions. Callbacks return errors; the functions that throw are not declared.
 */
#include "check.hpp"
#include "models.hpp"

#include <array>

static_assert(CLGRAPH_EXCEPTIONS == 0, "the build of this test has no exceptions");

template <class T, class = void> struct has_run : std::false_type {
};
template <class T>
struct has_run<T, std::void_t<decltype(std::declval<T &>().run())>> : std::true_type {
};
static_assert(!has_run<clgraph::session>::value, "what throws is not declared");

TEST(results__of_a_prediction)
{
    auto context = clgraph::context::try_create();
    CHECK(context);
    const clgraph::model model = models::linear();
    auto session = clgraph::session::try_create(*context, model);
    CHECK(session);
    const std::array<float, 2> x = {1, 1};
    CHECK(session->try_set_input("x", {1, 2}, x));
    CHECK(session->try_run());
    auto y = session->try_get_output("y");
    CHECK(y);
    auto elements = y->try_data<float>();
    CHECK(elements && (*elements)[0] == 14.0f);
    CHECK_EQ(y->try_data<int>().status(), CLG_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(session->try_set_input("z", {1, 2}, x).status(), CLG_ERROR_NOT_FOUND);
    auto run = session->try_run_async();
    CHECK(run && run->try_wait());
    auto clone = session->try_clone();
    CHECK(clone && clone->try_set_input("x", *y));
}

TEST(results__of_callbacks)
{
    auto context = clgraph::context::try_create();
    auto session = clgraph::session::try_create(*context, models::linear());
    auto stream = clgraph::stream::try_create(*session);
    CHECK(stream);
    std::size_t left = 5;
    double sum = 0;
    const auto read = [&](clgraph::batch &b) -> clgraph::result<std::size_t> {
        auto rows = b.try_rows<float>(0);
        if (!rows) return rows.error();
        for (float &x : *rows) x = 1;
        return std::exchange(left, 0);
    };
    CHECK(stream->try_run(read, [&](clgraph::batch &b) -> clgraph::result<void> {
        auto rows = b.try_rows<float>(0);
        if (!rows) return rows.error();
        for (const float y : *rows) sum += y;
        return {};
    }));
    CHECK_EQ(sum, 5 * 40.0);
    left = 5;
    const auto failed = stream->try_run(read, [](clgraph::batch &b) -> clgraph::result<void> {
        auto rows = b.try_rows<int>(0);
        return rows ? clgraph::result<void>() : rows.error();
    });
    CHECK_EQ(failed.status(), CLG_ERROR_INVALID_ARGUMENT);
    CHECK(!failed.error().cause());
    clgraph::set_log([](clg_log_level, std::string_view) {});
    clgraph::set_log(nullptr);
}
