/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices, models, builders and sessions through the C++ interface.
 */
#include "check.hpp"
#include "models.hpp"

#include <array>
#include <thread>

using check::throws;

TEST(devices__are_listed_and_selected)
{
    auto devices = clgraph::list_devices();
    CHECK(!devices.empty());
    const auto chosen = clgraph::select_devices("auto");
    CHECK(chosen.size() == 1 && chosen[0] < devices.size());
    CHECK(throws<clgraph::no_device>([] { (void)clgraph::select_devices("no such device"); },
                                     CLG_ERROR_NO_DEVICE));
    CHECK(!clgraph::select_devices("no such device", "auto").empty());
    clgraph::probe(devices[chosen[0]]);
    CHECK(devices[chosen[0]].probed);
    (void)clgraph::count_selftests(devices[chosen[0]]);
    CHECK(check::has(clgraph::diagnose(), devices[chosen[0]].name));
    CHECK(!std::string(clgraph::device_kind_name(devices[chosen[0]].kind)).empty());
    CHECK(throws<clgraph::no_device>([] { clgraph::context("no such device"); },
                                     CLG_ERROR_NO_DEVICE));
    const auto contexts = clgraph::context::create_list("auto");
    CHECK_EQ(contexts.size(), 1u);
    CHECK(contexts[0].device().probed);
}

TEST(session__runs_by_names_and_ports)
{
    const auto context = clgraph::context::create();
    const clgraph::model model = models::linear();
    CHECK_EQ(model.inputs().size(), 1u);
    CHECK(model.inputs().find("no such input") == nullptr);
    CHECK(model.inputs().find(std::size_t{1}) == nullptr);
    const clg_port &x = model.inputs()[0];
    CHECK_EQ(std::string(x.dim_names[0]), "rows");
    CHECK_EQ(clgraph::dims_of(x)[1], 2);
    std::size_t n = 0;
    for (const clg_port &port : model.outputs()) n += std::string_view("y") == port.name;
    CHECK_EQ(n, 1u);

    clgraph::session session(context, model);
    const std::array<float, 2> row = {1, 1};
    session.set_input("x", {1, 2}, row);
    session.run();
    CHECK_EQ(session.get_output("y").to_vector<float>()[0], 14.0f);

    const std::vector<float> rows = {1, 0, 0, 1, 2, 2}; /* three rows now */
    session.set_input(x, {3, 2}, rows);
    session.run();
    std::vector<float> y(6);
    session.read_output(model.outputs()[0], y);
    CHECK((y == std::vector<float>{11, 22, 13, 24, 18, 32}));
    CHECK_EQ(session.get_output_device("y").dims()[0], 3);
    session.keep_values({});
    session.keep_all_values();
    CHECK(throws<clgraph::invalid_argument>([&] { session.keep_values({"none"}); },
                                            CLG_ERROR_NOT_FOUND));
    CHECK(throws<clgraph::invalid_argument>(
        [&] {
            session.set_input("z", {1, 2}, row);
        },
        CLG_ERROR_NOT_FOUND));
    CHECK(throws<clgraph::invalid_argument>(
        [&] {
            session.set_input("x", {1, 3}, row);
        },
        CLG_ERROR_SHAPE));
    const std::string with_more = "x and more";
    session.set_input(std::string_view(with_more).substr(0, 1), {1, 2}, row);
    session.unset_input("x");
    CHECK(throws([&] { session.run(); }, CLG_ERROR_NOT_FOUND));
}

TEST(session__maps_inputs_with_their_dtype)
{
    const auto context = clgraph::context::create();
    const clgraph::model model = models::linear();
    clgraph::session session(context, model);
    const clgraph::view<float> x = session.map_input<float>(model.inputs()[0], {2, 2});
    CHECK_EQ(x.size(), 4u);
    for (float &element : x) element = 1;
    session.run();
    CHECK_EQ(session.get_output("y").get_double(2), 14.0);
    CHECK(throws(
        [&] {
            (void)session.map_input<double>(model.inputs()[0], {2, 2});
        },
        CLG_ERROR_INVALID_ARGUMENT));
    CHECK(throws(
        [&] {
            (void)session.map_input<float>(model.inputs()[0], {2, -1});
        },
        CLG_ERROR_INVALID_ARGUMENT));
}

TEST(session__call_is_a_run)
{
    const auto context = clgraph::context::create();
    clgraph::session session(context, models::linear());
    const float x[] = {1, 1};
    float y[2] = {0, 0};
    clgraph::call_output out[] = {clgraph::call_output("y", y)};
    session.call({clgraph::call_input("x", {1, 2}, x)}, out);
    CHECK(out[0].in_memory() && out[0].dims().size() == 2 && out[0].size_bytes() == 8);
    CHECK_EQ(y[1], 26.0f);
    clgraph::call_output large[] = {clgraph::call_output("y")};
    session.call({clgraph::call_input("x", clgraph::value::copy_of({1, 2}, x))}, large);
    CHECK(!large[0].in_memory() && large[0].kind() == CLG_VALUE_TENSOR);
    CHECK_EQ(large[0].get_value().get_double(0), 14.0);
    std::int32_t wrong[2];
    clgraph::call_output other[] = {clgraph::call_output("y", wrong)};
    CHECK(throws(
        [&] {
            session.call({clgraph::call_input("x", {1, 2}, x)}, other);
        },
        CLG_ERROR_INVALID_ARGUMENT));
    CHECK(throws([&] { session.call({}, large); }, CLG_ERROR_NOT_FOUND));
    CHECK(!large[0].get_value());
}

TEST(session__asynchronous_runs_links_and_clones)
{
    const auto context = clgraph::context::create();
    clgraph::session session(context, models::counter());
    const std::int32_t zero[] = {0};
    session.set_input("count", {1}, zero);
    session.link("next", "count");
    for (int i = 0; i < 5; i++) {
        clgraph::async_run run = session.run_async();
        run.wait();
        CHECK(throws([&] { run.wait(); }, CLG_ERROR_INVALID_ARGUMENT));
    }
    {
        clgraph::async_run started = session.run_async();
        const clgraph::async_run moved = std::move(started);
    } /* waits */
    CHECK_EQ(session.get_output("next").get_double(0), 6.0);
    session.unlink("count");

    clgraph::session other = session.clone();
    float result = 0;
    std::thread([&] {
        other.set_input("count", {1}, zero);
        other.run();
        result = static_cast<float>(other.get_output("next").get_double(0));
    }).join();
    CHECK_EQ(result, 1.0f);
    session.cancel(); /* nothing in progress */

    clgraph::value bound = clgraph::value::create(CLG_INT32, {1});
    other.bind_output("next", bound);
    other.run();
    CHECK_EQ(bound.get_double(0), 1.0);
    other.unbind_output("next");
}

TEST(session__has_plans_profiles_and_options)
{
    clgraph::context_options with_profile;
    with_profile.profiling = true;
    clgraph::context context = clgraph::context::create(nullptr, with_profile);
    const clgraph::model model = models::linear();
    clgraph::session_options options;
    options.precision = CLG_PRECISION_FP32;
    options.disabled_passes = {"fp16"};
    options.limits = clgraph::limits::untrusted();
    std::size_t reports = 0;
    options.progress = [&](std::string_view, std::size_t, std::size_t) { return ++reports > 0; };
    clgraph::session session(context, model, options);
    CHECK_EQ(session.precision(), CLG_PRECISION_FP32);
    session.set_input_shape("x", {4, 2});
    session.prepare(options.progress);
    CHECK(session.memory().weight_bytes > 0);
    CHECK(check::has(session.plan_text(), "product"));
    bool on_device = false;
    for (const clg_node_info &node : session.nodes())
        on_device |= node.place == CLG_PLACE_DEVICE &&
                     std::string_view(clgraph::place_name(node.place)) == "device";
    CHECK(on_device);
    session.set_input("x", {1, 2}, std::vector<float>(2));
    session.run();
    CHECK(!session.profile().empty());
    CHECK(context.counters().kernels_launched > 0);
    CHECK_EQ(session.parts().size(), 1u);
    CHECK(check::has(context.choices(), "clgraph choices 1"));
    context.add_choices("clgraph choices 1\n");
    CHECK(throws([&] { context.add_choices("nonsense"); }, CLG_ERROR_INVALID_ARGUMENT));
    context.recover(); /* it answers */
    options.disabled_passes = {"no such pass"};
    CHECK(throws([&] { clgraph::session(context, model, options); }, CLG_ERROR_INVALID_ARGUMENT));
}

TEST(session__over_several_devices)
{
    std::vector<clgraph::context> parts;
    parts.push_back(clgraph::context::create());
    parts.push_back(clgraph::context::create());
    clgraph::session rows(parts, models::linear());
    rows.set_input("x", {4, 2}, std::vector<float>(8, 1.0f));
    rows.run();
    CHECK_EQ(rows.get_output("y").get_double(6), 14.0);
    const clgraph::part_list of = rows.parts();
    CHECK_EQ(of.size(), 2u);
    CHECK_EQ(of[0].rows + of[1].rows, 4u);
    for (const clg_session_part &part : of)
        CHECK(clgraph::borrowed<clgraph::session>(part.session)->precision() == CLG_PRECISION_FP32);
    clgraph::multi_options layers;
    layers.split = CLG_SPLIT_LAYERS;
    clgraph::session cut(parts, models::linear(), {}, layers);
    cut.set_input("x", {1, 2}, std::vector<float>(2, 1.0f));
    cut.run();
    CHECK_EQ(cut.get_output("y").get_double(1), 26.0);
}

TEST(model__is_saved_inspected_and_changed)
{
    const clgraph::model model = models::linear();
    const clgraph::bytes file = model.save_memory("test");
    const clgraph::model again = clgraph::model::load_memory(file);
    CHECK_EQ(std::string(again.info().producer), "test");
    CHECK_EQ(again.info().n_nodes, 1u);
    CHECK_EQ(again.nodes().size(), 1u);
    CHECK(check::has(again.dot(), "digraph"));
    const std::vector<clgraph::shape> eight = {{"x", {8, 2}}};
    CHECK(again.flops(eight) > again.flops());
    double flops = 0;
    for (const clg_node_estimate &node : again.node_estimates(eight)) flops += node.flops;
    CHECK(flops == again.flops(eight));
    CHECK(again.memory(eight).io_bytes > 0);
    CHECK_EQ(again.batch().outputs[0], 0);
    CHECK(throws([&] { (void)again.batch({0, 0}); }, CLG_ERROR_INVALID_ARGUMENT));
    CHECK_EQ(again.initializers().size(), 2u);
    CHECK_EQ(again.initializer_value(0).n_elements(), 4);
    const std::vector<clgraph::value> zeros = {clgraph::value::create(CLG_FLOAT32, {2})};
    const clgraph::model replaced = again.replace_initializers({"b"}, zeros);
    CHECK(throws(
        [&] {
            (void)again.replace_initializers({"b", "W"}, zeros);
        },
        CLG_ERROR_INVALID_ARGUMENT));
    const clgraph::model part = replaced.extract({}, {"y"});
    clgraph::session session(clgraph::context::create(), part);
    session.set_input("x", {1, 2}, std::vector<float>{1, 1});
    session.run();
    CHECK_EQ(session.get_output("y").get_double(0), 4.0);
    clgraph::builder more = clgraph::builder::create_from(model);
    more.node("ReduceSum", {"y"}, {"sum"});
    more.attribute_int("keepdims", 0);
    more.output("sum");
    const clgraph::model gradient = more.build().gradient("sum", {"x", "W"});
    CHECK_EQ(std::string(gradient.outputs()[0].name), "x_grad");
    CHECK(!clgraph::list_operators().empty());
    CHECK(throws<clgraph::invalid_model>(
        [] { (void)clgraph::model::load_memory(std::string("not a model")); },
        CLG_ERROR_INVALID_MODEL));
}

TEST(builder__has_all_kinds_of_attributes)
{
    clgraph::builder b(13);
    b.input("x", CLG_FLOAT32, {1, 1, 4, 4});
    b.node("LeakyRelu", {"x"}, {"a"});
    b.attribute_float("alpha", 0.5f);
    b.node("MaxPool", {"a"}, {"p"});
    b.attribute_ints("kernel_shape", {2, 2});
    b.attribute_string("auto_pad", "VALID");
    b.output("p");
    CHECK_EQ(b.build().outputs()[0].dims[2], 3);
    CHECK(throws([&] { b.input("y", CLG_FLOAT32, {1, 2}, {"one"}); }, CLG_ERROR_INVALID_ARGUMENT));
    clgraph::builder lists(13);
    CHECK(throws([&] { lists.attribute_floats("a", {1.0f}); }, CLG_ERROR_INVALID_ARGUMENT));
    CHECK(throws([&] { lists.attribute_strings("a", {"b"}); }, CLG_ERROR_INVALID_ARGUMENT));
}
