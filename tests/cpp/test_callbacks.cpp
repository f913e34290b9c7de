/* SPDX-License-Identifier: Apache-2.0
 *
 * Callbacks of the C++ interface: log, progress, external data, streams, cancel tokens, and the
 * exceptions that they throw.
 */
#include "check.hpp"
#include "folder.hpp"
#include "models.hpp"

#include <fstream>
#include <stdexcept>

using check::throws;

namespace
{

struct own_exception : std::runtime_error {
    own_exception() : std::runtime_error("of the test") {}
};

template <class F> bool throws_own(F &&f)
{
    try {
        f();
    } catch (const own_exception &) {
        return true;
    }
    return false;
}

} // namespace

TEST(log__goes_to_a_callback)
{
    std::vector<std::string> messages;
    auto counted = std::make_shared<int>(0);
    clgraph::set_log(
        [&, counted](clg_log_level, std::string_view message) {
            messages.emplace_back(message);
            throw own_exception(); /* dropped */
        },
        CLG_LOG_DEBUG);
    CHECK(clgraph::has_log());
    CHECK_EQ(counted.use_count(), 2);
    clgraph::builder b = clgraph::builder::create_from(models::linear());
    b.node("Softmax", {"y"}, {"p"});
    b.output("p");
    clgraph::loss_options loss;
    loss.kind = CLG_LOSS_CROSS_ENTROPY;
    loss.output = "p";
    (void)clgraph::add_loss(b.build(), loss); /* it says that it takes the scores */
    clgraph::set_log(nullptr);
    CHECK(!clgraph::has_log());
    CHECK_EQ(counted.use_count(), 1); /* the callback is destroyed */
    CHECK(!messages.empty());
}

TEST(compile_callback__starts_and_ends)
{
    int n_starts = 0, n_ends = 0;
    clgraph::set_compile_callback([&](std::string_view kernel, bool has_ended) {
        (has_ended ? n_ends : n_starts) += !kernel.empty();
        throw own_exception(); /* dropped */
    });
    clgraph::context_options options;
    options.cache_dir = ""; /* so that there is something to compile */
    clgraph::session session(clgraph::context::create(nullptr, options), models::linear());
    session.set_input("x", {1, 2}, std::vector<float>{1, 2});
    session.run();
    clgraph::set_compile_callback(nullptr);
    CHECK(n_starts > 0);
    CHECK_EQ(n_starts, n_ends);
}

TEST(progress__cancels_and_throws)
{
    const auto context = clgraph::context::create();
    const clgraph::model model = models::linear();
    clgraph::session session(context, model);
    session.set_input_shape("x", {3, 2});
    std::size_t n = 0;
    session.prepare([&](std::string_view what, std::size_t done, std::size_t total) {
        n += !what.empty() && done <= total;
        return true;
    });
    CHECK(n > 0);
    session.set_input_shape("x", {5, 2});
    CHECK(throws<clgraph::cancelled>(
        [&] { session.prepare([](std::string_view, std::size_t, std::size_t) { return false; }); },
        CLG_ERROR_CANCELLED));
    const auto throwing = [](std::string_view, std::size_t, std::size_t) -> bool {
        throw own_exception();
    };
    CHECK(throws_own([&] { session.prepare(throwing); }));
    const clgraph::result<void> r = session.try_prepare(throwing);
    CHECK(!r && r.error().cause());
    CHECK(check::has(r.error().message(), "exception"));
    session.prepare(); /* the session can go on */
}

TEST(cancel_token__ends_work)
{
    auto token = clgraph::cancel_token::create();
    clgraph::session_options options;
    options.cancel = &token;
    clgraph::session session(clgraph::context::create(), models::linear(), options);
    session.set_input("x", {1, 2}, std::vector<float>(2));
    token.trigger();
    CHECK(token.is_triggered());
    CHECK(throws<clgraph::cancelled>([&] { session.run(); }, CLG_ERROR_CANCELLED));
    token.reset_trigger();
    session.run();
}

TEST(external_data__comes_from_memory)
{
    /* A model whose weights are a file, which is then removed. */
    const scratch_folder folder("external");
    models::linear().save(folder / "m.onnx", 1);
    std::ifstream in(folder / "m.onnx.data", std::ios::binary);
    const std::string data((std::istreambuf_iterator<char>(in)), {});
    std::filesystem::remove(folder / "m.onnx.data");

    int released = 0;
    clgraph::model_options options;
    options.external_data =
        clgraph::external_data{[&](std::string_view location, std::uint64_t offset,
                                   std::uint64_t length) -> clgraph::result<clgraph::bytes_view> {
                                   CHECK_EQ(std::string(location), "m.onnx.data");
                                   const auto *memory =
                                       reinterpret_cast<const std::byte *>(data.data());
                                   return clgraph::bytes_view(memory + offset, length);
                               },
                               [&] { released++; },
                               {}};
    {
        clgraph::session session(clgraph::context::create(),
                                 clgraph::model(folder / "m.onnx", options));
        session.set_input("x", {1, 2}, std::vector<float>{1, 1});
        session.run();
        CHECK_EQ(session.get_output("y").get_double(0), 14.0);
        CHECK_EQ(released, 0);
    }
    CHECK_EQ(released, 1);

    options.external_data->find = [](std::string_view, std::uint64_t,
                                     std::uint64_t) -> clgraph::result<clgraph::bytes_view> {
        throw own_exception();
    };
    CHECK(throws_own([&] { clgraph::model(folder / "m.onnx", options); }));
    CHECK_EQ(released, 2);
    options.external_data->find = [](std::string_view, std::uint64_t,
                                     std::uint64_t) -> clgraph::result<clgraph::bytes_view> {
        return clgraph::error(CLG_ERROR_IO, "the key is missing", "unlock it");
    };
    const auto refused = clgraph::model::try_load(folder / "m.onnx", options);
    CHECK(!refused && refused.status() == CLG_ERROR_IO);
    CHECK(check::has(refused.error().message(), "the key is missing"));
    options.external_data->find = [](std::string_view, std::uint64_t, std::uint64_t) {
        return clgraph::bytes_view(); /* too short */
    };
    CHECK(throws([&] { clgraph::model(folder / "m.onnx", options); }, CLG_ERROR_INVALID_ARGUMENT));
    CHECK_EQ(released, 4);
}

TEST(stream__reads_and_writes_rows)
{
    clgraph::session session(clgraph::context::create(), models::linear());
    clgraph::stream_options options;
    options.batch = 4;
    clgraph::stream stream(session, options);
    std::size_t left = 10, written = 0;
    double sum = 0;
    const auto read = [&](clgraph::batch &b) {
        const std::size_t n = left < b.n_rows() ? left : b.n_rows();
        for (float &x : b.rows<float>(0)) x = 1;
        left -= n;
        return n;
    };
    stream.run(read, [&](clgraph::batch &b) {
        CHECK_EQ(b.first_row(), written);
        CHECK_EQ(b.tensors()[0].rank, 2u);
        for (const float y : b.rows<float>(0)) sum += y;
        written += b.n_rows();
    });
    CHECK_EQ(written, 10u);
    CHECK_EQ(sum, 10 * (14.0 + 26.0));
    CHECK_EQ(stream.stats().rows, 10u);

    left = 100;
    CHECK(throws_own([&] { stream.run(read, [](clgraph::batch &) { throw own_exception(); }); }));
    CHECK(throws_own([&] {
        stream.run([](clgraph::batch &) -> std::size_t { throw own_exception(); },
                   [](clgraph::batch &) {});
    }));
    CHECK(throws([&] { stream.run(read, [](clgraph::batch &b) { (void)b.rows<int>(0); }); },
                 CLG_ERROR_INVALID_ARGUMENT));
    const clgraph::result<void> r =
        stream.try_run(read, [](clgraph::batch &) -> clgraph::result<void> {
            return clgraph::error(CLG_ERROR_IO, "the disk is full");
        });
    CHECK(!r && r.status() == CLG_ERROR_IO);
    CHECK(check::has(r.error().message(), "the disk is full"));
    stream.cancel(); /* nothing is running */
}

TEST(trainer__makes_the_loss_smaller)
{
    const auto context = clgraph::context::create();
    clgraph::train_options options;
    options.loss.kind = CLG_LOSS_MSE;
    options.optimizer = CLG_OPTIMIZER_ADAM;
    options.schedule = 0.1;
    const clgraph::model start = models::linear();
    clgraph::trainer trainer(context, start, options);
    CHECK_EQ(trainer.parameters().size(), 2u);
    trainer.set_input("x", {2, 2}, std::vector<float>{1, 0, 0, 1});
    trainer.set_input("target", {2, 2}, std::vector<float>{0, 0, 0, 0});
    const double before = trainer.evaluate();
    CHECK_EQ(trainer.measure().loss, before);
    CHECK(trainer.memory().weight_bytes > 0);
    trainer.check_parts();
    clg_train_stats stats = trainer.step();
    for (int i = 0; i < 20; i++) stats = trainer.step();
    CHECK_EQ(stats.step, 21u);
    CHECK(trainer.evaluate() < before);
    CHECK_EQ(trainer.n_steps(), 21u);
    CHECK_EQ(trainer.get_gradient("W").n_elements(), 4);

    const clgraph::value w = trainer.get_parameter("W");
    CHECK(w.get_double(0) < 1.0);
    const scratch_folder folder("train");
    trainer.save(folder / "checkpoint.npz");
    trainer.set_parameter("W", clgraph::value::create(CLG_FLOAT32, {2, 2}));
    CHECK_EQ(trainer.get_parameter("W").get_double(0), 0.0);
    trainer.load(folder / "checkpoint.npz");
    CHECK_EQ(trainer.get_parameter("W").get_double(0), w.get_double(0));

    clgraph::session live = trainer.session();
    live.set_input("x", {1, 2}, std::vector<float>{1, 1});
    live.run();
    clgraph::session frozen(context, trainer.model());
    frozen.set_input("x", {1, 2}, std::vector<float>{1, 1});
    frozen.run();
    CHECK(std::fabs(live.get_output("y").get_double(0) - frozen.get_output("y").get_double(0)) <
          1e-4);
    CHECK_EQ(std::string(clgraph::add_loss(start, options.loss).outputs()[0].name), "loss");
    CHECK(clgraph::train_row(1, 0, 10, 3) < 10);
    trainer.cancel(); /* nothing in progress */
    options.train = {"no such*"};
    CHECK(throws([&] { clgraph::trainer(context, start, options); }, CLG_ERROR_INVALID_ARGUMENT));
}
