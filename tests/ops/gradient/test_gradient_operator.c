/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests ONNX's operator Gradient: at the values of the graph and at others, with values that are
 * held, of higher order, and what is refused.
 */
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include <stdio.h>
#include <string.h>

#define TRAINING "ai.onnx.preview.training"

TEST_GROUP(open_context, close_context)

/* y = a b + sin(a), for a, b, p and q: [N]. */
static clg_builder *start(void)
{
    static const char *const inputs[] = {"a", "b", "p", "q"};
    clg_builder *g = start_graph();
    for (size_t i = 0; i < 4; i++)
        assert_ok(clg_builder_input(g, inputs[i], CLG_FLOAT32, 1, DIMS(-1), NULL));
    assert_ok(clg_builder_node(g, NULL, "Mul", NULL, 2, NAMES("a", "b"), 1, NAMES("ab")));
    assert_ok(clg_builder_node(g, NULL, "Sin", NULL, 1, NAMES("a"), 1, NAMES("s")));
    assert_ok(clg_builder_node(g, NULL, "Add", NULL, 2, NAMES("ab", "s"), 1, NAMES("y")));
    return g;
}

static void add_gradient(clg_builder *g, size_t n, const char *const *inputs, size_t n_xs,
                         const char *const *xs, size_t n_zs, const char *const *zs, const char *y,
                         const char *output)
{
    assert_ok(clg_builder_node(g, TRAINING, "Gradient", "gradient", n, inputs, 1, &output));
    assert_ok(clg_builder_attribute_strings(g, "xs", n_xs, xs));
    if (n_zs > 0) assert_ok(clg_builder_attribute_strings(g, "zs", n_zs, zs));
    assert_ok(clg_builder_attribute_string(g, "y", y));
    assert_ok(clg_builder_output(g, output));
}

/* Runs with a = [1, 2], b = [3, -1], p = [0.5, 4], q = [7, 10]; compares an output. */
static void expect(clg_builder *g, const char *output, float first, float second)
{
    static const float values[4][2] = {{1, 2}, {3, -1}, {0.5f, 4}, {7, 10}};
    static const char *const names[] = {"a", "b", "p", "q"};
    static const int64_t dims[1] = {2};
    clg_session *s = build_session(context, g, NULL);
    clg_call_input in[4];
    float found[2];
    clg_call_output out = {.name = output, .data = found, .capacity_bytes = sizeof found};
    for (size_t i = 0; i < 4; i++)
        in[i] = (clg_call_input){names[i], CLG_FLOAT32, 1, dims, values[i], sizeof values[i], NULL};
    assert_ok(clg_session_call(s, in, 4, &out, 1));
    assert_float_equal(found[0], first, 1e-5);
    assert_float_equal(found[1], second, 1e-5);
    clg_session_free(s);
}

TEST(at_the_values_of_the_graph)
{
    clg_builder *g = start(); /* b + cos(a) */
    add_gradient(g, 2, NAMES("a", "b"), 2, NAMES("a", "b"), 0, NULL, "y", "d");
    expect(g, "d", 3.5403023f, -1.4161468f);
}

TEST(at_other_values)
{
    clg_builder *g = start(); /* q + cos(p) */
    add_gradient(g, 2, NAMES("p", "q"), 2, NAMES("a", "b"), 0, NULL, "y", "d");
    expect(g, "d", 7.8775826f, 9.3463564f);
}

TEST(one_value_in_two_places)
{
    clg_builder *g = start(); /* the derivative by a alone: p + cos(p) */
    add_gradient(g, 2, NAMES("p", "p"), 2, NAMES("a", "b"), 0, NULL, "y", "d");
    expect(g, "d", 1.3775826f, 3.3463564f);
}

/* A value of zs does not change with those of xs, even if the graph computes it from them. */
TEST(held_values)
{
    clg_builder *g = start(); /* y = ab + s, with s held: b */
    add_gradient(g, 2, NAMES("a", "q"), 1, NAMES("a"), 1, NAMES("s"), "y", "d");
    expect(g, "d", 3, -1);
    g = start(); /* y = ab + s at ab = q, which is held: cos(a) */
    add_gradient(g, 2, NAMES("a", "q"), 1, NAMES("a"), 1, NAMES("ab"), "y", "d");
    expect(g, "d", 0.5403023f, -0.4161468f);
}

TEST(of_higher_order)
{
    clg_builder *g = start();
    add_gradient(g, 2, NAMES("a", "b"), 2, NAMES("a", "b"), 0, NULL, "y", "first");
    clg_builder *h = start(); /* -sin(a) */
    assert_ok(clg_builder_node(h, TRAINING, "Gradient", "one", 1, NAMES("a"), 1, NAMES("first")));
    assert_ok(clg_builder_attribute_strings(h, "xs", 1, NAMES("a")));
    assert_ok(clg_builder_attribute_string(h, "y", "y"));
    add_gradient(h, 1, NAMES("a"), 1, NAMES("a"), 0, NULL, "first", "second");
    expect(h, "second", -0.8414710f, -0.9092974f);
    expect(g, "first", 3.5403023f, -1.4161468f);
}

/* Each derivative copies the one before: a small model could ask for any number of nodes. */
TEST(towers_of_derivatives_end)
{
    char names[64][16];
    clg_model *m;
    clg_session *s;
    clg_builder *g = start();
    assert_ok(clg_builder_node(g, NULL, "Tanh", NULL, 1, NAMES("y"), 1, NAMES("t")));
    for (int i = 0; i < 64; i++) {
        (void)snprintf(names[i], sizeof names[i], "d%d", i);
        const char *y = i == 0 ? "t" : names[i - 1], *output = names[i];
        assert_ok(clg_builder_node(g, TRAINING, "Gradient", NULL, 1, NAMES("a"), 1, &output));
        assert_ok(clg_builder_attribute_strings(g, "xs", 1, NAMES("a")));
        assert_ok(clg_builder_attribute_string(g, "y", y));
    }
    assert_ok(clg_builder_output(g, names[63]));
    assert_ok(clg_builder_build(g, &m));
    clg_builder_free(g);
    assert_error(clg_session_create(context, m, NULL, &s), CLG_ERROR_UNSUPPORTED_OPERATOR,
                 "more than 1048576 nodes");
    clg_model_free(m);
}

TEST(what_is_refused)
{
    clg_model *m = NULL;
    clg_session *s;
    clg_builder *g = start();
    add_gradient(g, 2, NAMES("a", "b"), 1, NAMES("a"), 0, NULL, "y", "d");
    assert_error(clg_builder_build(g, &m), CLG_ERROR_INVALID_MODEL,
                 "has 2 inputs and 1 outputs for 1 names in xs and 0 in zs");
    clg_builder_free(g);
    g = start();
    add_gradient(g, 1, NAMES("a"), 1, NAMES("c"), 0, NULL, "y", "d");
    assert_ok(clg_builder_build(g, &m));
    assert_error(clg_session_create(context, m, NULL, &s), CLG_ERROR_INVALID_MODEL,
                 "the graph has no value 'c'");
    clg_model_free(m);
    clg_builder_free(g);
    g = start();
    assert_ok(clg_builder_node(g, NULL, "Unique", "unique", 1, NAMES("a"), 1, NAMES("c")));
    add_gradient(g, 1, NAMES("a"), 1, NAMES("a"), 0, NULL, "c", "d");
    assert_ok(clg_builder_build(g, &m));
    assert_error(clg_session_create(context, m, NULL, &s), CLG_ERROR_UNSUPPORTED_OPERATOR,
                 "(Unique, opset 13): it has no rule yet");
    clg_model_free(m);
    clg_builder_free(g);
}
