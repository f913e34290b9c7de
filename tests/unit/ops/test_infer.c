/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests inference of shapes and dtypes with operator table entries made for these tests: dtypes
 * that must agree (type letters such as T), inputs whose values are needed, evaluation on the host,
 * errors. Also tests lowering.
 */
#include "support/fakes/failing_alloc.h"
#include "support/unit.h"

#include "base/memory.h"
#include "ops/core/op.h"

#include <string.h>

/* ---- operator rows --------------------------------------------------------------------------- */

static clg_status same_dims(op_context *c)
{
    if (c->n_outputs > 0) c->outputs[0].dims = c->inputs[0].dims;
    return CLG_OK;
}

static clg_status asks_for_content(op_context *c)
{
    if (op_need(c, 1)) c->outputs[0].dims = c->inputs[0].dims;
    return CLG_OK;
}

static clg_status decides_nothing(op_context *c)
{
    (void)c;
    return CLG_OK;
}

static clg_status decides_nonsense(op_context *c)
{
    c->outputs[0].dims = (shape){.rank = 2, .dims = {3, -7}};
    return CLG_OK;
}

static clg_status decides_too_much(op_context *c)
{
    c->outputs[0].dims = (shape){.rank = 2, .dims = {INT64_MAX / 2, 16}};
    return CLG_OK;
}

static clg_status too_many_bytes(op_context *c)
{
    c->outputs[0].dims = (shape){.rank = 1, .dims = {INT64_MAX}};
    return CLG_OK;
}

static int n_evals;

static clg_status negate(op_context *c, tensor **out_tensors)
{
    n_evals++;
    CLG_TRY(tensor_create(c->outputs[0].dtype, &c->outputs[0].dims, &out_tensors[0]));
    for (int64_t i = 0; i < out_tensors[0]->n_elements; i++) {
        tensor_set_int(out_tensors[0], i, -tensor_get_int(c->inputs[0].known, i));
    }
    return CLG_OK;
}

static clg_status wrong_shape(op_context *c, tensor **out_tensors)
{
    shape s = {.rank = 1, .dims = {c->inputs[0].known->n_elements + 1}};
    return tensor_create(c->outputs[0].dtype, &s, &out_tensors[0]);
}

static const op_types types[] = {{'T', DTYPES_FLOAT | DTYPE_BIT(CLG_INT64)},
                                 {'I', DTYPES_INTEGER},
                                 {'B', DTYPE_BIT(CLG_BOOL)},
                                 {0, 0}};

#define ROW(...)                                                                                   \
    {                                                                                              \
        .name = "Row", .since = 1, .min_inputs = 1, .max_inputs = OP_ANY_NUMBER, .min_outputs = 1, \
        .max_outputs = 2, .types = types, __VA_ARGS__                                              \
    }

/* ---- one node -------------------------------------------------------------------------------- */

typedef struct fixture {
    graph *graph;
    node *node;
    value_fact inputs[8], outputs[4];
    uint32_t needs;
} fixture;

static void start(fixture *f, const op_row *row, const char *inputs, size_t n_outputs)
{
    value_id ids[8], outputs[4];
    node_id n;
    size_t n_inputs = strlen(inputs);
    shape four = {.rank = 1, .dims = {4}}, unknown = shape_unknown();
    *f = (fixture){0};
    assert_ok(graph_create("", &f->graph));
    assert_ok(graph_set_opset(f->graph, "", 13));
    for (size_t i = 0; i < n_inputs; i++) assert_ok(graph_add_value(f->graph, "", &ids[i]));
    for (size_t i = 0; i < n_outputs; i++) assert_ok(graph_add_value(f->graph, "", &outputs[i]));
    for (size_t i = 0; i < n_inputs; i++) {
        if (inputs[i] == '-') {
            ids[i] = VALUE_NONE;
            fact_set(&f->inputs[i], CLG_DTYPE_NONE, &unknown);
        } else {
            fact_set(&f->inputs[i],
                     inputs[i] == 'l'   ? CLG_INT64
                     : inputs[i] == 'd' ? CLG_FLOAT64
                                        : CLG_FLOAT32,
                     &four);
        }
    }
    assert_ok(graph_add_node(f->graph, "", "Row", "n", n_inputs, ids, n_outputs, outputs, &n));
    f->node = &f->graph->nodes[n];
    f->node->op = row;
}

static clg_status infer(fixture *f)
{
    return ops_infer_node(f->node, f->inputs, f->outputs, &f->needs);
}

static void end(fixture *f)
{
    for (size_t i = 0; i < 4; i++) tensor_free((tensor *)(uintptr_t)f->outputs[i].known);
    graph_free(f->graph);
}

TEST(infer__presets_dtypes_by_letters)
{
    const op_row row = ROW(.input_types = "TI", .output_types = "TB", .infer = same_dims);
    fixture f;
    start(&f, &row, "fl", 2);
    fact_set(&f.outputs[1], CLG_FLOAT64,
             &f.inputs[0].dims); /* the previous value must not matter */
    assert_error(infer(&f), CLG_ERROR_INTERNAL, "did not decide output 1");
    f.node->outputs[1] = VALUE_NONE; /* an omitted output may stay undecided */
    assert_ok(infer(&f));
    assert_int_equal(f.outputs[0].dtype, CLG_FLOAT32);
    assert_int_equal(f.outputs[0].dims.dims[0], 4);
    assert_int_equal(f.outputs[1].dtype, CLG_BOOL); /* the only dtype that its type letter allows */
    assert_int_equal(f.needs, 0);
    end(&f);
}

TEST(infer__checks_dtypes)
{
    const op_row row = ROW(.input_types = "TTI", .output_types = "T", .infer = same_dims);
    fixture f;
    start(&f, &row, "ffl", 1);
    assert_ok(infer(&f));
    f.inputs[1].dtype = CLG_FLOAT64;
    assert_error(infer(&f), CLG_ERROR_INVALID_MODEL,
                 "node 'n' (Row, opset 13): input 1 is float64, but must be float32 as input 0 is");
    f.inputs[1].dtype = CLG_FLOAT32;
    f.inputs[2].dtype = CLG_FLOAT32;
    assert_error(infer(&f), CLG_ERROR_UNSUPPORTED_DTYPE, "input 2 is float32; supported are");
    f.inputs[2].dtype = CLG_STRING;
    assert_error(infer(&f), CLG_ERROR_UNSUPPORTED_DTYPE, "input 2 is string");
    f.inputs[2].dtype = CLG_INT4;
    assert_error(infer(&f), CLG_ERROR_UNSUPPORTED_DTYPE, "input 2 is int4");
    f.inputs[2].dtype = CLG_DTYPE_NONE; /* unknown, as when a model is only inspected */
    assert_ok(infer(&f));
    f.inputs[0].kind = CLG_VALUE_SEQUENCE;
    assert_error(infer(&f), CLG_ERROR_UNSUPPORTED_DTYPE,
                 "input 0 is a sequence; only tensors are supported");
    end(&f);
}

TEST(infer__the_last_letter_repeats)
{
    const op_row row = ROW(.input_types = "IT", .output_types = "T", .infer = decides_nothing);
    fixture f;
    start(&f, &row, "lffd", 1);
    assert_error(infer(&f), CLG_ERROR_INVALID_MODEL,
                 "input 3 is float64, but must be float32 as input 1 is");
    end(&f);
}

TEST(infer__absent_inputs_bind_nothing)
{
    const op_row row = ROW(.input_types = "TTT", .output_types = "T", .infer = same_dims);
    fixture f;
    start(&f, &row, "f-f", 1);
    assert_ok(infer(&f));
    end(&f);
}

TEST(infer__unknown_rank_leaves_outputs_open)
{
    const op_row row = ROW(.input_types = "T", .output_types = "T", .infer = decides_nonsense);
    op_row brave = row;
    fixture f;
    brave.flags = OP_UNKNOWN_RANK;
    brave.infer = same_dims;
    start(&f, &row, "f", 1);
    f.inputs[0].dims = shape_unknown();
    assert_ok(infer(&f));
    assert_int_equal(f.outputs[0].dims.rank, RANK_UNKNOWN);
    assert_int_equal(f.outputs[0].dtype, CLG_FLOAT32);
    f.node->op = &brave;
    assert_ok(infer(&f));
    end(&f);
}

TEST(infer__says_what_content_it_needs)
{
    const op_row row = ROW(.input_types = "TI", .output_types = "T", .infer = asks_for_content);
    fixture f;
    tensor *t;
    start(&f, &row, "fl", 1);
    assert_ok(infer(&f));
    assert_int_equal(f.needs, 1u << 1);
    assert_int_equal(f.outputs[0].dims.rank, RANK_UNKNOWN);
    assert_ok(tensor_create(CLG_INT64, &f.inputs[1].dims, &t));
    f.inputs[1].known = t;
    assert_ok(infer(&f));
    assert_int_equal(f.needs, 0);
    assert_int_equal(f.outputs[0].dims.rank, 1);
    tensor_free(t);
    end(&f);
}

TEST(infer__distrusts_rows)
{
    const struct {
        clg_status (*infer)(op_context *c);
        clg_status status;
        const char *words;
    } cases[] = {{decides_nothing, CLG_ERROR_INTERNAL, "did not decide output 0"},
                 {decides_nonsense, CLG_ERROR_INTERNAL, "did not decide output 0"},
                 {decides_too_much, CLG_ERROR_SHAPE, "node 'n' (Row, opset 13): output 0"},
                 {too_many_bytes, CLG_ERROR_SHAPE, "too large to address"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const op_row row = ROW(.input_types = "T", .output_types = "T", .infer = cases[i].infer);
        fixture f;
        start(&f, &row, "f", 1);
        assert_error(infer(&f), cases[i].status, cases[i].words);
        end(&f);
    }
}

TEST(infer__computes_small_known_contents)
{
    const op_row row =
        ROW(.input_types = "T", .output_types = "T", .infer = same_dims, .eval = negate);
    fixture f;
    tensor *t, *large;
    start(&f, &row, "l", 1);
    shape big = {.rank = 1, .dims = {OP_MAX_KNOWN_ELEMENTS + 1}};
    n_evals = 0;
    assert_ok(infer(&f)); /* the values are not known */
    assert_null(f.outputs[0].known);
    assert_ok(tensor_create(CLG_INT64, &f.inputs[0].dims, &t));
    tensor_set_int(t, 2, 5);
    f.inputs[0].known = t;
    assert_ok(infer(&f));
    assert_int_equal(n_evals, 1);
    assert_int_equal(tensor_get_int(f.outputs[0].known, 2), -5);
    tensor_free((tensor *)(uintptr_t)f.outputs[0].known);
    assert_ok(tensor_create(CLG_INT64, &big, &large));
    f.inputs[0].known = large;
    f.inputs[0].dims = big;
    assert_ok(infer(&f)); /* too large for the host */
    assert_int_equal(n_evals, 1);
    assert_null(f.outputs[0].known);
    tensor_free(large);
    tensor_free(t);
    end(&f);
}

TEST(infer__distrusts_contents)
{
    const op_row row =
        ROW(.input_types = "T", .output_types = "T", .infer = same_dims, .eval = wrong_shape);
    fixture f;
    tensor *t;
    start(&f, &row, "l", 1);
    assert_ok(tensor_create(CLG_INT64, &f.inputs[0].dims, &t));
    f.inputs[0].known = t;
    assert_error(infer(&f), CLG_ERROR_INTERNAL, "content of output 0");
    assert_null(f.outputs[0].known);
    tensor_free(t);
    end(&f);
}

TEST(infer__reads_lists_of_numbers)
{
    const op_row row = ROW(.input_types = "T", .output_types = "T", .infer = same_dims);
    fixture f;
    int64_t values[OP_MAX_INTS];
    size_t n;
    clg_status status = CLG_OK;
    tensor *t;
    start(&f, &row, "fl-", 1);
    op_context c = {.node = f.node, .row = &row, .inputs = f.inputs, .n_inputs = f.node->n_inputs};
    assert_false(op_need_ints(&c, 1, values, &n, &status));
    assert_int_equal(c.needs, 2);
    assert_false(op_need_ints(&c, 2, values, &n, &status)); /* absent */
    assert_false(op_need_ints(&c, 7, values, &n, &status)); /* beyond the end */
    assert_int_equal(c.needs, 2);
    assert_int_equal(status, CLG_OK);
    assert_ok(tensor_create(CLG_INT64, &f.inputs[1].dims, &t));
    tensor_set_int(t, 3, -9);
    f.inputs[1].known = t;
    assert_true(op_need_ints(&c, 1, values, &n, &status));
    assert_int_equal(n, 4);
    assert_int_equal(values[3], -9);
    assert_false(op_need_ints(&c, 0, values, &n, &status));
    assert_error(status, CLG_ERROR_SHAPE, "input 0 must be a list of integers, not float32 [4]");
    tensor_free(t);
    shape many = {.rank = 1, .dims = {OP_MAX_INTS + 1}};
    assert_ok(tensor_create(CLG_INT64, &many, &t));
    f.inputs[1].known = t;
    f.inputs[1].dims = many;
    assert_false(op_need_ints(&c, 1, values, &n, &status));
    assert_error(status, CLG_ERROR_SHAPE, "17 numbers");
    tensor_free(t);
    end(&f);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Makes y = Reshape(w, Shape(x)), x: [N,3], w: [6]. */
static graph *make_graph(void)
{
    graph *g;
    value_id x, w, s, y;
    node_id n;
    shape six = {.rank = 1, .dims = {6}};
    tensor *t;
    assert_ok(graph_create("", &g));
    assert_ok(graph_set_opset(g, "", 13));
    assert_ok(graph_add_value(g, "x", &x));
    assert_ok(graph_add_input(g, x));
    g->values[x].dtype = CLG_FLOAT32;
    g->values[x].dims = (shape){.rank = 2, .dims = {DIM_UNKNOWN, 3}};
    assert_ok(tensor_create(CLG_FLOAT32, &six, &t));
    assert_ok(graph_add_constant(g, "w", t, &w));
    tensor_free(t);
    assert_ok(graph_add_value(g, "s", &s));
    assert_ok(graph_add_value(g, "y", &y));
    assert_ok(graph_add_node(g, "", "Shape", "shape", 1, &x, 1, &s, &n));
    assert_ok(graph_add_node(g, "", "Reshape", "reshape", 2, (value_id[]){w, s}, 1, &y, &n));
    assert_ok(graph_add_output(g, y));
    assert_ok(graph_check(g));
    assert_ok(ops_resolve(g));
    return g;
}

TEST(infer_graph__from_declared_shapes)
{
    graph *g = make_graph();
    value_fact *facts;
    assert_ok(ops_infer_graph(g, NULL, &facts));
    assert_int_equal(facts[graph_find_value(g, "s")].dims.dims[0], 2);
    assert_null(facts[graph_find_value(g, "s")].known);
    const value_fact *y = &facts[graph_find_value(g, "y")];
    assert_int_equal(y->dtype, CLG_FLOAT32);
    assert_int_equal(y->dims.rank, 2);
    assert_int_equal(y->dims.dims[0], DIM_UNKNOWN);
    ops_facts_free(facts, g->n_values);
    graph_free(g);
}

TEST(infer_graph__from_given_shapes)
{
    graph *g = make_graph();
    value_fact *facts, given;
    shape dims = {.rank = 2, .dims = {2, 3}};
    fact_set(&given, CLG_FLOAT32, &dims);
    assert_ok(ops_infer_graph(g, &given, &facts));
    assert_int_equal(tensor_get_int(facts[graph_find_value(g, "s")].known, 0), 2);
    const value_fact *y = &facts[graph_find_value(g, "y")];
    assert_int_equal(y->dims.dims[0], 2);
    assert_int_equal(y->known->n_elements, 6);
    ops_facts_free(facts, g->n_values);
    dims.dims[0] = 5;
    fact_set(&given, CLG_FLOAT32, &dims);
    assert_error(
        ops_infer_graph(g, &given, &facts), CLG_ERROR_SHAPE,
        "node 'reshape' (Reshape, opset 13): an input of shape [6] does not fit into [5,3]");
    assert_null(facts);
    ops_facts_free(NULL, 0);
    graph_free(g);
}

static clg_status infer_once(void *user)
{
    graph *g = user;
    value_fact *facts, given;
    shape dims = {.rank = 2, .dims = {2, 3}};
    fact_set(&given, CLG_FLOAT32, &dims);
    CLG_TRY(ops_infer_graph(g, &given, &facts));
    ops_facts_free(facts, g->n_values);
    return CLG_OK;
}

static clg_status clone_and_infer(void *user)
{
    graph *copy;
    CLG_TRY(graph_clone(user, &copy));
    clg_status status = infer_once(copy);
    graph_free(copy);
    return status;
}

TEST(infer_graph__survives_every_failed_allocation)
{
    graph *g;
    failing_alloc_install();
    g = make_graph();
    assert_true(fault_loop(clone_and_infer, g) > 5);
    graph_free(g);
    failing_alloc_remove();
}

/* ---- lowering -------------------------------------------------------------------------------- */

static clg_status lower_nothing(lower_context *c)
{
    (void)c;
    return CLG_OK;
}

static clg_status lower_badly(lower_context *c)
{
    candidate *one = step_candidate(&c->build, "one");
    (void)step_copy(&c->build, one, operand_input(5), operand_output(0), 4);
    return CLG_OK;
}

TEST(lower__checks_what_rows_do)
{
    op_row row = ROW(.input_types = "T", .output_types = "T", .infer = same_dims);
    fixture f;
    start(&f, &row, "f", 1);
    arena memory = {0};
    lower_operand in = {.dtype = CLG_FLOAT32,
                        .dims = {.rank = 2, .dims = {2, 3}},
                        .strides = {3, 1},
                        .dense = true};
    lower_operand out = in;
    static const device_caps caps = {.compute_units = 2};
    lower_context c = {.node = f.node,
                       .row = &row,
                       .inputs = &in,
                       .outputs = &out,
                       .n_inputs = 1,
                       .n_outputs = 1,
                       .caps = &caps,
                       .kernel_class = CLG_KERNELS_SIMD,
                       .memory = &memory};
    assert_error(ops_lower_node(&c), CLG_ERROR_UNSUPPORTED_OPERATOR,
                 "must be known before the run");
    row.lower = lower_nothing;
    assert_error(ops_lower_node(&c), CLG_ERROR_INTERNAL, "lowering gave nothing");
    assert_int_equal(c.views[0].strides[0], 3);
    row.lower = lower_badly;
    assert_error(ops_lower_node(&c), CLG_ERROR_INTERNAL, "node 'n' (Row, opset 13): a step of one");
    in.dense = false;
    assert_error(ops_lower_node(&c), CLG_ERROR_INTERNAL, "input 0 is not dense");
    assert_true(lower_is_simd(&c));
    assert_true(lower_has_input(&c, 0));
    assert_false(lower_has_input(&c, 1));
    arena_deinit(&memory);
    end(&f);
}
