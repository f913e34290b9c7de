/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests clg_model_extract: where parts end, what they keep, and what is refused; a model's
 * initializers; and builders that begin with a model.
 */
#include "support/fakes/failing_alloc.h"
#include "support/fixtures/graph_text.h"
#include "support/literals.h"
#include "support/unit.h"

#include "session/exec/model.h"

#include <string.h>

static void expect_port(const clg_port *port, const char *name, clg_dtype dtype, int rank,
                        const int64_t *dims)
{
    assert_non_null(port);
    assert_string_equal(port->name, name);
    assert_int_equal(port->dtype, dtype);
    assert_int_equal(port->rank, rank);
    for (int i = 0; i < rank; i++) assert_int_equal(port->dims[i], dims[i]);
}

static bool has_node(const clg_model *m, const char *op_type)
{
    for (size_t i = 0; i < m->graph->n_nodes; i++)
        if (strcmp(m->graph->nodes[i].op_type, op_type) == 0) return true;
    return false;
}

static clg_model *layers(void)
{
    return graph_text_model(13, "x: f32[2,3]; z: f32[2,4]; w = f32[3,4]; k = [2,4]; b = f32[4]; "
                                "h = MatMul(x, w); r = Reshape(h, k); s = Add(r, b); "
                                "t = Tanh(s); y = Mul(t, z); e = Exp(t); out y e");
}

TEST(extract__ends_at_results_and_initializers)
{
    clg_model *m = layers(), *part;
    assert_ok(clg_model_extract(m, NAMES("b", "h"), 2, NAMES("y"), 1, &part));
    assert_int_equal(clg_model_n_inputs(m), 2);
    clg_model_free(m); /* the part does not need it */
    assert_int_equal(clg_model_n_inputs(part), 3);
    expect_port(clg_model_input(part, 0), "z", CLG_FLOAT32, 2, DIMS(2, 4)); /* the model's first */
    expect_port(clg_model_input(part, 1), "b", CLG_FLOAT32, 1, DIMS(4));
    expect_port(clg_model_input(part, 2), "h", CLG_FLOAT32, 2, DIMS(2, 4));
    assert_int_equal(clg_model_n_outputs(part), 1);
    expect_port(clg_model_output(part, 0), "y", CLG_FLOAT32, 2, DIMS(2, 4));
    assert_int_equal(part->graph->n_nodes, 4);
    assert_false(has_node(part, "MatMul") || has_node(part, "Exp"));
    assert_int_equal(clg_model_n_initializers(part), 1); /* the shape stays a constant */
    expect_port(clg_model_initializer(part, 0), "k", CLG_INT64, 1, DIMS(2));
    clg_model_free(part);
}

TEST(extract__of_no_inputs_is_what_outputs_need)
{
    clg_model *m = layers(), *part;
    assert_ok(clg_model_extract(m, NULL, 0, NAMES("s", "x"), 2, &part));
    assert_int_equal(clg_model_n_inputs(part), 1);
    expect_port(clg_model_input(part, 0), "x", CLG_FLOAT32, 2, DIMS(2, 3));
    assert_int_equal(part->graph->n_nodes, 3);
    clg_model_free(part);
    /* an input on which nothing depends is left out, one of the model may be named */
    assert_ok(clg_model_extract(m, NAMES("e", "x", "s", "s"), 4, NAMES("t"), 1, &part));
    assert_int_equal(clg_model_n_inputs(part), 1);
    expect_port(clg_model_input(part, 0), "s", CLG_FLOAT32, 2, DIMS(2, 4));
    clg_model_free(part);
    clg_model_free(m);
}

/* A node stays whose other result is needed. */
TEST(extract__cuts_one_result_of_several)
{
    clg_model *m = graph_text_model(13, "x: f32[4]; k = [2,2]; a, b = Split(x, k); "
                                        "y = Mul(a, b); out y"),
              *part;
    assert_ok(clg_model_extract(m, NAMES("a"), 1, NAMES("y"), 1, &part));
    assert_int_equal(clg_model_n_inputs(part), 2);
    expect_port(clg_model_input(part, 0), "x", CLG_FLOAT32, 1, DIMS(4));
    expect_port(clg_model_input(part, 1), "a", CLG_FLOAT32, 1, DIMS(2));
    assert_true(has_node(part, "Split"));
    clg_model_free(part);
    clg_model_free(m);
}

TEST(extract__refuses)
{
    clg_model *m = layers(), *part;
    assert_error(clg_model_extract(m, NAMES("v"), 1, NAMES("y"), 1, &part), CLG_ERROR_NOT_FOUND,
                 "no value 'v'");
    assert_null(part);
    assert_error(clg_model_extract(m, NAMES("h"), 1, NAMES("v"), 1, &part), CLG_ERROR_NOT_FOUND,
                 "no value 'v'");
    assert_error(clg_model_extract(m, NULL, 0, NULL, 0, &part), CLG_ERROR_INVALID_ARGUMENT,
                 "outputs is NULL");
    assert_error(clg_model_extract(m, NULL, 0, NAMES("y"), 0, &part), CLG_ERROR_INVALID_ARGUMENT,
                 "outputs");
    assert_error(clg_model_extract(m, NAMES(NULL), 1, NAMES("y"), 1, &part),
                 CLG_ERROR_INVALID_ARGUMENT, "inputs[0] is NULL");
    assert_error(clg_model_extract(m, NULL, 1, NAMES("y"), 1, &part), CLG_ERROR_INVALID_ARGUMENT,
                 "inputs is NULL");
    assert_error(clg_model_extract(m, NULL, 0, NAMES("y", "y"), 2, &part),
                 CLG_ERROR_INVALID_ARGUMENT, "outputs[1] is named twice");
    assert_error(clg_model_extract(NULL, NULL, 0, NAMES("y"), 1, &part), CLG_ERROR_INVALID_ARGUMENT,
                 "model");
    clg_model_free(m);
    m = graph_text_model(13, "x: f32[4]; s = SequenceConstruct(x, x); k = 0; "
                             "y = SequenceAt(s, k); out y");
    assert_error(clg_model_extract(m, NAMES("s"), 1, NAMES("y"), 1, &part),
                 CLG_ERROR_UNSUPPORTED_DTYPE, "'s' cannot be an input: it is not a tensor, or");
    clg_model_free(m);
}

static clg_status extract(void *user)
{
    clg_model *part = NULL;
    const clg_status status =
        clg_model_extract(user, NAMES("b", "h"), 2, NAMES("y", "e"), 2, &part);
    assert_int_equal(status == CLG_OK, part != NULL);
    clg_model_free(part);
    return status;
}

static clg_status extend(void *user)
{
    clg_builder *b = NULL;
    clg_model *longer = NULL;
    clg_value *w = NULL;
    clg_status status = clg_model_initializer_value(user, 0, &w);
    clg_value_free(w);
    if (status == CLG_OK) status = clg_builder_create_from_model(user, 18, &b);
    if (status == CLG_OK) status = clg_builder_node(b, "", "Neg", "", 1, NAMES("y"), 1, NAMES("n"));
    if (status == CLG_OK) status = clg_builder_output(b, "n");
    if (status == CLG_OK) status = clg_builder_build(b, &longer);
    clg_builder_free(b);
    clg_model_free(longer);
    return status;
}

TEST(extract__survives_failing_allocations)
{
    failing_alloc_install();
    clg_model *m = layers();
    assert_true(fault_loop(extract, m) > 20);
    assert_true(fault_loop(extend, m) > 10);
    clg_model_free(m);
    failing_alloc_remove();
}

TEST(initializers__are_listed_and_copied)
{
    clg_model *m = layers();
    clg_value *value;
    assert_int_equal(clg_model_n_initializers(m), 3);
    expect_port(clg_model_initializer(m, 0), "w", CLG_FLOAT32, 2, DIMS(3, 4));
    expect_port(clg_model_initializer(m, 1), "k", CLG_INT64, 1, DIMS(2));
    expect_port(clg_model_initializer(m, 2), "b", CLG_FLOAT32, 1, DIMS(4));
    assert_null(clg_model_initializer(m, 3));
    assert_int_equal(clg_model_n_initializers(NULL), 0);
    assert_ok(clg_model_initializer_value(m, 1, &value));
    assert_int_equal(clg_value_dtype(value), CLG_INT64);
    assert_memory_equal(clg_value_data(value), ((const int64_t[]){2, 4}), 16);
    ((int64_t *)clg_value_data(value))[0] = 7; /* a copy: the model keeps its own */
    clg_value_free(value);
    assert_ok(clg_model_initializer_value(m, 1, &value));
    assert_memory_equal(clg_value_data(value), ((const int64_t[]){2, 4}), 16);
    clg_value_free(value);
    assert_error(clg_model_initializer_value(m, 3, &value), CLG_ERROR_INVALID_ARGUMENT,
                 "3 of 3 initializers");
    assert_null(value);
    clg_model_free(m);
}

TEST(builder__begins_with_a_model)
{
    clg_model *m = layers(), *longer;
    clg_builder *b;
    assert_ok(clg_builder_create_from_model(m, 18, &b));
    clg_model_free(m); /* the builder does not need it */
    assert_ok(clg_builder_node(b, "", "ReduceMean", "mean", 1, NAMES("y"), 1, NAMES("loss")));
    assert_ok(clg_builder_attribute_int(b, "keepdims", 0));
    assert_error(clg_builder_input(b, "w", CLG_FLOAT32, 0, NULL, NULL), CLG_ERROR_INVALID_MODEL,
                 "'w'");
    assert_ok(clg_builder_output(b, "loss"));
    assert_ok(clg_builder_build(b, &longer));
    clg_builder_free(b);
    assert_int_equal(clg_model_n_outputs(longer), 3);
    expect_port(clg_model_output(longer, 2), "loss", CLG_FLOAT32, 0, NULL);
    const graph *g = longer->graph;
    for (size_t i = 0; i < g->n_nodes; i++)
        assert_int_equal(g->nodes[i].opset, strcmp(g->nodes[i].name, "mean") == 0 ? 18 : 13);
    clg_model_free(longer);
}

TEST(builder__begins_with_a_models_opset)
{
    clg_model *m = layers(), *longer;
    clg_builder *b;
    assert_ok(clg_builder_create_from_model(m, 0, &b));
    assert_ok(clg_builder_node(b, "", "Neg", "", 1, NAMES("y"), 1, NAMES("n")));
    assert_ok(clg_builder_output(b, "n"));
    assert_ok(clg_builder_build(b, &longer));
    assert_int_equal(graph_opset(longer->graph, ""), 13);
    clg_builder_free(b);
    clg_model_free(longer);
    assert_error(clg_builder_create_from_model(m, -1, &b), CLG_ERROR_INVALID_ARGUMENT, "-1");
    assert_error(clg_builder_create_from_model(NULL, 0, &b), CLG_ERROR_INVALID_ARGUMENT, "model");
    clg_model_free(m);
}
