/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests saving models: every kind of attribute, dtype and declared type, names of subgraphs, nodes
 * of another operator set version, external data, files, and failures.
 */
#include "support/fakes/failing_alloc.h"
#include "support/fixtures/onnx_writer.h"
#include "support/fixtures/same_graph.h"
#include "support/platform.h"
#include "support/scratch.h"
#include "support/unit.h"

#include "base/files.h"
#include "base/memory.h"
#include "onnx/onnx.h"
#include "session/exec/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static clg_model *load_bytes(const void *data, size_t size_bytes)
{
    clg_model_options options = CLG_MODEL_OPTIONS_INIT;
    clg_model *model;
    options.allow_unsupported = true;
    assert_ok(clg_model_load_memory(data, size_bytes, &options, &model));
    return model;
}

static clg_model *load(ow_model *m)
{
    ow_bytes file = ow_finish(m);
    clg_model *model = load_bytes(file.data, file.n);
    ow_free(&file);
    return model;
}

/* Saves a model to memory and loads it; checks that the same bytes come of the loaded one. */
static clg_model *again(const clg_model *model)
{
    void *data, *other;
    size_t size_bytes, other_bytes;
    assert_ok(clg_model_save_memory(model, NULL, &data, &size_bytes));
    clg_model *loaded = load_bytes(data, size_bytes);
    assert_ok(clg_model_save_memory(loaded, NULL, &other, &other_bytes));
    assert_int_equal(size_bytes, other_bytes);
    assert_memory_equal(data, other, size_bytes);
    clg_bytes_free(other);
    clg_bytes_free(data);
    return loaded;
}

/* Checks that a model stays the same; frees it. */
static void expect_kept(clg_model *model, const char *what)
{
    clg_model *loaded = again(model);
    assert_same_graph(model->graph, loaded->graph, what);
    assert_int_equal(model->graph->ir_version, loaded->graph->ir_version);
    assert_int_equal(model->graph->n_opsets, loaded->graph->n_opsets);
    clg_model_free(loaded);
    clg_model_free(model);
}

static ow_model start(void)
{
    ow_model m = {.ir_version = 8, .opset = 17};
    ow_opset(&m, "my", 3);
    ow_input(&m, "x", CLG_FLOAT32, 2, (const int64_t[]){-1, 4}, "N");
    return m;
}

/* Appends an attribute of a type that no operator has, as field `number`. */
static void odd_attribute(ow_bytes *node, const char *name, int type, unsigned number,
                          ow_bytes message)
{
    ow_bytes a = {0};
    ow_put_string(&a, 1, name);
    ow_put_message(&a, number, message);
    ow_put_int(&a, 20, type);
    ow_put_message(node, 5, a);
}

static ow_bytes sparse(ow_bytes values)
{
    ow_bytes s = {0};
    ow_put_message(&s, 1, values);
    ow_put_message(&s, 2,
                   ow_tensor_raw("", CLG_INT64, 1, (const int64_t[]){1}, (const int64_t[]){2}, 8));
    ow_put_packed_ints(&s, 3, 1, (const int64_t[]){5});
    return s;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

TEST(save__keeps_every_kind_of_attribute)
{
    static const float floats[] = {1.5f, -0.0f, 3e38f};
    static const int64_t ints[] = {0, -1, INT64_MIN, INT64_MAX};
    static const char *const strings[] = {"", "two words", "\xc3\xa9"};
    ow_model m = start(), body = {0};
    ow_bytes n = ow_node("Odd", "a node", "x,,x", ",y");
    ow_put_string(&n, 7, "my");
    ow_attribute_float(&n, "f", -0.0f);
    ow_attribute_int(&n, "i", INT64_MIN);
    ow_attribute_string(&n, "s", "text");
    ow_attribute_string(&n, "empty", "");
    ow_attribute_floats(&n, "fs", 3, floats);
    ow_attribute_floats(&n, "no_floats", 0, NULL);
    ow_attribute_ints(&n, "is", 4, ints);
    ow_attribute_strings(&n, "ss", 3, strings);
    ow_attribute_tensor(&n, "t",
                        ow_tensor_raw("", CLG_FLOAT32, 1, (const int64_t[]){3}, floats, 12));
    ow_simple_node(&body, "Neg", "inner", "x", "z");
    ow_output(&body, "z", CLG_FLOAT32);
    ow_attribute_graph(&n, "g", body.graph);
    odd_attribute(&n, "type", 13, 14, ow_type_list(OW_OPTIONAL, ow_type_tensor(CLG_FLOAT32)));
    odd_attribute(&n, "tensors", 9, 10, ow_tensor_raw("", CLG_INT8, 0, NULL, "a", 1));
    odd_attribute(&n, "sparse", 11, 22,
                  sparse(ow_tensor_raw("", CLG_FLOAT32, 1, (const int64_t[]){1}, floats, 4)));
    ow_add_node(&m, n);
    ow_output(&m, "y", CLG_FLOAT32);
    clg_model *model = load(&m);
    const node *made = &model->graph->nodes[0];
    assert_int_equal(made->n_attributes, 13);
    assert_int_equal(node_attribute(made, "type")->type, ATTRIBUTE_NONE);
    assert_true(node_attribute(made, "type")->count > 0);
    expect_kept(model, "attributes");
}

/* What cannot be written: graphs in lists, and tensors in files beside the original. */
TEST(save__refuses_attributes_that_it_cannot_keep)
{
    static const int64_t one[] = {1};
    const struct {
        int type;
        unsigned field;
        ow_bytes message;
        const char *words;
    } rows[] = {
        {10, 11, {0}, "node 'odd' (my.Odd, opset 3): attribute 'a': lists of graphs"},
        {9, 10, ow_tensor_external("", CLG_INT8, 1, one, "file", "0", NULL), "have external data"},
        {11, 22, sparse(ow_tensor_external("", CLG_INT8, 1, one, "file", "0", NULL)),
         "have external data"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ow_model m = start();
        void *data;
        size_t size_bytes;
        ow_bytes n = ow_node("Odd", "odd", "x", "y");
        ow_put_string(&n, 7, "my");
        odd_attribute(&n, "a", rows[i].type, rows[i].field, rows[i].message);
        ow_add_node(&m, n);
        ow_output(&m, "y", 0);
        clg_model *model = load(&m);
        assert_error(clg_model_save_memory(model, NULL, &data, &size_bytes),
                     CLG_ERROR_UNSUPPORTED_ATTRIBUTE, rows[i].words);
        assert_null(data);
        assert_int_equal(size_bytes, 0);
        clg_model_free(model);
    }
}

/* ---- weights and types ----------------------------------------------------------------------- */

/* Adds an initializer of a dtype with fifteen elements, all bits in use. */
static void add_weight(ow_model *m, const char *name, clg_dtype dtype)
{
    const int64_t dims[] = {3, 5};
    const shape s = {.rank = 2, .dims = {3, 5}};
    char bytes[15 * 16];
    size_t size_bytes = 0;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(dtype == CLG_BOOL ? i % 2 : 37 * i);
    ow_bytes t = ow_tensor(name, dtype, 2, dims);
    if (dtype != CLG_STRING) assert_ok(tensor_bytes_of(dtype, &s, &size_bytes));
    for (int i = 0; dtype == CLG_STRING && i < 15; i++)
        ow_put_bytes(&t, 6, "some strings", (size_t)i % 9);
    if (dtype != CLG_STRING) ow_put_bytes(&t, 9, bytes, size_bytes);
    ow_initializer(m, t);
}

static clg_model *weights_of_all_dtypes(void)
{
    ow_model m = start();
    char name[16];
    for (int d = CLG_FLOAT32; d <= CLG_INT2; d++) {
        (void)snprintf(name, sizeof name, "w%d", d);
        add_weight(&m, name, (clg_dtype)d);
        ow_output(&m, name, 0);
    }
    ow_initializer(&m, ow_tensor("none", CLG_FLOAT32, 2, (const int64_t[]){0, 7}));
    ow_output(&m, "none", 0);
    return load(&m);
}

TEST(save__keeps_weights_of_every_dtype) { expect_kept(weights_of_all_dtypes(), "weights"); }

TEST(save__keeps_declared_types)
{
    ow_model m = start();
    ow_bytes optional =
        ow_type_list(OW_OPTIONAL, ow_type_list(OW_SEQUENCE, ow_type_tensor(CLG_INT32)));
    ow_bytes maps = ow_type_list(OW_SEQUENCE, ow_type_map(CLG_STRING, ow_type_tensor(CLG_FLOAT32)));
    ow_put_message(&m.graph, 11, ow_info("o", optional));
    ow_put_message(&m.graph, 11, ow_info("m", maps));
    ow_input(&m, "scalar", CLG_INT64, 0, NULL, NULL);
    ow_input(&m, "any", CLG_FLOAT64, SIZE_MAX, NULL, NULL);
    ow_input(&m, "free", CLG_BOOL, 3, (const int64_t[]){-1, 2, -1}, "batch");
    ow_simple_node(&m, "Identity", "", "o", "p");
    ow_simple_node(&m, "Neg", "", "x", "between");
    ow_simple_node(&m, "Neg", "", "between", "y");
    ow_put_message(&m.graph, 13,
                   ow_value_info("between", CLG_FLOAT32, 2, (const int64_t[]){-1, 4}, "N"));
    optional = ow_type_list(OW_OPTIONAL, ow_type_list(OW_SEQUENCE, ow_type_tensor(CLG_INT32)));
    ow_put_message(&m.graph, 12, ow_info("p", optional));
    ow_output(&m, "y", CLG_FLOAT32);
    clg_model *model = load(&m), *loaded = again(model);
    const clg_port *p = clg_model_output(loaded, 0), *maps_port = clg_model_input(loaded, 2);
    assert_int_equal(p->kind, CLG_VALUE_OPTIONAL);
    assert_int_equal(maps_port->kind, CLG_VALUE_SEQUENCE);
    assert_int_equal(maps_port->key_dtype, CLG_STRING);
    assert_string_equal(clg_model_input(loaded, 5)->dim_names[0], "batch");
    clg_model_free(loaded);
    expect_kept(model, "types");
}

/* Outputs without a declared type get the inferred one, but for optional values: what these hold is
 * not known. */
TEST(save__undeclared_outputs_get_inferred_types)
{
    ow_model m = start();
    ow_put_message(&m.graph, 11, ow_info("s", ow_type_list(OW_SEQUENCE, ow_type_tensor(CLG_INT8))));
    ow_put_message(&m.graph, 11, ow_info("m", ow_type_map(CLG_INT64, ow_type_tensor(CLG_FLOAT32))));
    ow_put_message(&m.graph, 11, ow_info("o", ow_type_list(OW_OPTIONAL, ow_type_tensor(CLG_INT8))));
    for (const char *at = "xsmo"; *at; at++) {
        const char in[] = {*at, '\0'}, out[] = {*at, '2', '\0'};
        ow_simple_node(&m, "Identity", "", in, out);
        ow_output(&m, out, 0);
    }
    clg_model *model = load(&m), *loaded = again(model);
    const value *v = loaded->graph->values;
    const value_id *outputs = loaded->graph->outputs;
    assert_int_equal(v[outputs[0]].dims.rank, 2);
    assert_true(v[outputs[0]].dims.dims[0] == DIM_UNKNOWN && v[outputs[0]].dims.dims[1] == 4);
    assert_int_equal(v[outputs[1]].kind, CLG_VALUE_SEQUENCE);
    assert_int_equal(v[outputs[1]].dtype, CLG_INT8);
    assert_int_equal(v[outputs[2]].kind, CLG_VALUE_MAP);
    assert_int_equal(v[outputs[2]].key_dtype, CLG_INT64);
    assert_null(v[outputs[3]].type_message);
    clg_model_free(loaded);
    clg_model_free(model);
}

/* ---- models of builders ---------------------------------------------------------------------- */

TEST(save__builders_models_get_types_and_a_fitting_ir_version)
{
    static const struct {
        int64_t opset, ir_version;
    } rows[] = {{7, 4}, {9, 4}, {11, 6}, {13, 7}, {17, 8}, {20, 9}, {22, 10}, {23, 11}, {25, 13}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        clg_builder *b;
        clg_model *model;
        assert_ok(clg_builder_create(rows[i].opset, &b));
        assert_ok(clg_builder_input(b, "x", CLG_FLOAT32, 2, (const int64_t[]){-1, 3},
                                    (const char *[]){"rows", NULL}));
        assert_ok(clg_builder_constant(b, "w", CLG_FLOAT32, 2, (const int64_t[]){3, 2},
                                       (const float[]){1, 2, 3, 4, 5, 6}, 24));
        assert_ok(clg_builder_node(b, NULL, "MatMul", NULL, 2, (const char *[]){"x", "w"}, 1,
                                   (const char *[]){"y"}));
        assert_ok(clg_builder_output(b, "y"));
        assert_ok(clg_builder_build(b, &model));
        clg_builder_free(b);
        clg_model *loaded = again(model);
        assert_int_equal(loaded->graph->ir_version, rows[i].ir_version);
        assert_int_equal(graph_opset(loaded->graph, ""), rows[i].opset);
        const value *y = &loaded->graph->values[loaded->graph->outputs[0]];
        assert_int_equal(y->dtype, CLG_FLOAT32);
        assert_int_equal(y->dims.rank, 2);
        assert_true(y->dims.dims[0] == DIM_UNKNOWN && y->dims.dims[1] == 2);
        assert_string_equal(loaded->graph->producer, "clgraph 0.1.0");
        clg_model_free(loaded);
        clg_model_free(model);
    }
}

TEST(save__producer)
{
    clg_model_save_options options = CLG_MODEL_SAVE_OPTIONS_INIT;
    ow_model m = start();
    void *data;
    size_t size_bytes;
    ow_output(&m, "x", CLG_FLOAT32);
    clg_model *model = load(&m);
    options.producer = "my trainer";
    assert_ok(clg_model_save_memory(model, &options, &data, &size_bytes));
    clg_model *loaded = load_bytes(data, size_bytes);
    assert_string_equal(loaded->graph->producer, "my trainer");
    clg_bytes_free(data);
    clg_model_free(loaded);
    clg_model_free(model);
}

/* ---- functions ------------------------------------------------------------------------------- */

/* Writes a function of the domain "my" that imports an opset: its inputs a and b, its output r. */
static ow_bytes function(const char *name, int64_t opset)
{
    ow_bytes f = {0}, import = {0};
    ow_put_string(&f, 1, name);
    ow_put_string(&f, 4, "a");
    ow_put_string(&f, 4, "b");
    ow_put_string(&f, 5, "r");
    ow_put_int(&import, 2, opset);
    ow_put_message(&f, 9, import);
    ow_put_string(&f, 10, "my");
    return f;
}

static void add_call(ow_model *m, const char *op, const char *name, const char *inputs,
                     const char *outputs)
{
    ow_bytes n = ow_node(op, name, inputs, outputs);
    ow_put_string(&n, 7, "my");
    ow_add_node(m, n);
}

/* An inlined node of opset 11 in a model of opset 17: ReduceSum took its axes as an attribute. */
TEST(save__nodes_of_another_version_become_functions)
{
    ow_model m = start();
    ow_bytes f = function("sum", 11), n = ow_node("ReduceSum", "", "a", "r");
    ow_attribute_ints(&n, "axes", 1, (const int64_t[]){1});
    ow_put_message(&f, 7, n);
    ow_put_message(&m.extra, 25, f);
    add_call(&m, "sum", "first", "x,", "y");
    ow_simple_node(&m, "Neg", "neg", "y", "z");
    ow_output(&m, "z", CLG_FLOAT32);
    clg_model *model = load(&m), *loaded = again(model);
    assert_int_equal(model->graph->nodes[0].opset, 11);
    assert_same_graph(model->graph, loaded->graph, "functions");
    assert_int_equal(loaded->graph->nodes[0].opset, 11);
    assert_int_equal(loaded->graph->nodes[1].opset, 17);
    clg_model_free(loaded);
    clg_model_free(model);
}

/* Nodes of an inlined function that had no names have that of the call: each gets another. */
TEST(save__names_of_nodes_are_distinct)
{
    ow_model m = start();
    ow_bytes f = function("twice", 17);
    ow_put_message(&f, 7, ow_node("Neg", "", "a", "t"));
    ow_put_message(&f, 7, ow_node("Neg", "", "t", "r"));
    ow_put_message(&m.extra, 25, f);
    ow_simple_node(&m, "Neg", "call#1", "x", "w");
    add_call(&m, "twice", "call", "w,", "y");
    ow_output(&m, "y", CLG_FLOAT32);
    clg_model *model = load(&m), *loaded = again(model);
    assert_string_equal(loaded->graph->nodes[0].name, "call#1");
    assert_string_equal(loaded->graph->nodes[1].name, "call");
    assert_string_equal(loaded->graph->nodes[2].name, "call#2");
    clg_model_free(loaded);
    clg_model_free(model);
}

/* Adds to a function a node If(b) whose branches compute `result` of a. */
static void add_choice(ow_bytes *f, const char *result)
{
    ow_bytes choice = ow_node("If", "", "b", "r");
    static const char *const branches[] = {"then_branch", "else_branch"};
    for (int i = 0; i < 2; i++) {
        ow_model branch = {0};
        ow_simple_node(&branch, i ? "Abs" : "Neg", "", "a", "t");
        ow_simple_node(&branch, "Exp", "", "t", result);
        ow_output(&branch, result, CLG_FLOAT32);
        ow_attribute_graph(&choice, branches[i], branch.graph);
    }
    ow_put_message(f, 7, choice);
}

/* Checks that the first node of the branch reads the value outside and the last does not write
 * it. */
static void check_branch(const graph *g, const char *branch)
{
    const graph *inner = node_attribute(&g->nodes[1], branch)->as.graph;
    const value *read = &inner->values[inner->nodes[0].inputs[0]];
    assert_true(read->is_outer);
    assert_string_equal(read->name, "y");
    assert_int_equal(read->outer, graph_find_value(g, "y"));
    assert_string_equal(inner->values[inner->outputs[0]].name, "y#1");
}

/* A branch of a function's body has a value with the name that a value captured by it has outside.
 * In the file, where there are no functions, one of them must change. */
TEST(save__names_of_branches_do_not_clash)
{
    for (int64_t opset = 13; opset <= 17; opset += 4) {
        ow_model m = start();
        ow_bytes f = function("choose", opset);
        add_choice(&f, "y");
        ow_put_message(&m.extra, 25, f);
        ow_input(&m, "c", CLG_BOOL, 0, NULL, NULL);
        ow_simple_node(&m, "Sqrt", "", "x", "y");
        add_call(&m, "choose", "call", "y,c", "z");
        ow_output(&m, "z", CLG_FLOAT32);
        clg_model *model = load(&m), *loaded = again(model);
        assert_int_equal(loaded->graph->nodes[1].opset, opset);
        if (opset == 17) {
            check_branch(loaded->graph, "then_branch");
            check_branch(loaded->graph, "else_branch");
        }
        clg_model_free(loaded);
        clg_model_free(model);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static const clg_model_save_options with_data = {sizeof with_data, 16, NULL};

TEST(save__external_data_is_beside_the_file)
{
    const char *path = scratch_path("folder.onnx"), *data = scratch_path("folder.onnx.data");
    clg_model *model = weights_of_all_dtypes(), *loaded;
    clg_model_options lenient = CLG_MODEL_OPTIONS_INIT;
    file_view view;
    size_t n_external = 0;
    assert_ok(clg_model_save(model, path, &with_data));
    assert_ok(clg_model_load_file(path, NULL, &loaded));
    assert_same_graph(model->graph, loaded->graph, "external");
    assert_ok(file_view_open(data, 0, &view));
    for (size_t i = 0; i < loaded->graph->n_values; i++) {
        const tensor *t = loaded->graph->values[i].constant;
        n_external += t && t->dtype != CLG_STRING && t->size_bytes >= 16;
    }
    assert_true(n_external > 10);
    assert_int_equal((view.size_bytes + 4095) / 4096, n_external); /* one page each */
    file_view_close(&view);
    clg_model_free(loaded);
    /* Over the files that a model is mapped from, and again without external data. */
    assert_ok(clg_model_load_file(path, NULL, &loaded));
    if (platform_keeps_mapped_files)
        assert_error(clg_model_save(loaded, path, &with_data), CLG_ERROR_IO, "cannot be replaced");
    else
        assert_ok(clg_model_save(loaded, path, &with_data));
    assert_same_graph(model->graph, loaded->graph, "overwritten");
    if (!platform_keeps_mapped_files) assert_ok(clg_model_save(loaded, path, NULL));
    clg_model_free(loaded);
    if (platform_keeps_mapped_files) assert_ok(clg_model_save(model, path, NULL));
    assert_ok(file_remove(data));
    assert_ok(clg_model_load_file(path, NULL, &loaded));
    assert_same_graph(model->graph, loaded->graph, "in one file");
    clg_model_free(loaded);
    /* Nothing is as large as this: there is no second file. */
    clg_model_save_options large = with_data;
    large.external_bytes = 1000;
    assert_ok(clg_model_save(model, path, &large));
    assert_false(file_exists(data));
    /* A model that was loaded without its data cannot be saved. */
    assert_ok(clg_model_save(model, path, &with_data));
    assert_ok(file_remove(data));
    lenient.allow_external_data_missing = true;
    assert_ok(clg_model_load_file(path, &lenient, &loaded));
    assert_error(clg_model_save(loaded, path, NULL), CLG_ERROR_NOT_FOUND, "folder.onnx.data");
    clg_model_free(loaded);
    clg_model_free(model);
}

static size_t n_files(void)
{
    file_entry *entries;
    size_t n;
    assert_ok(file_list(scratch_path("saving"), &entries, &n));
    file_list_free(entries, n);
    return n;
}

TEST(save__failures_leave_files_as_they_were)
{
    clg_model *model = weights_of_all_dtypes(), *loaded;
    const char *path = scratch_path("saving/m.onnx");
    assert_error(clg_model_save(model, path, NULL), CLG_ERROR_IO, "saving/m.onnx");
    assert_ok(file_make_folders(scratch_path("saving")));
    assert_error(clg_model_save(model, scratch_path("saving"), NULL), CLG_ERROR_IO, "is a folder");
    assert_int_equal(n_files(), 0);
    assert_ok(clg_model_save(model, path, NULL));
    assert_ok(file_make_folders(scratch_path("saving/m.onnx.data")));
    assert_error(clg_model_save(model, path, &with_data), CLG_ERROR_IO, "m.onnx.data' is a folder");
    assert_int_equal(n_files(), 2);
    assert_ok(clg_model_load_file(path, NULL, &loaded));
    assert_same_graph(model->graph, loaded->graph, "kept");
    clg_model_free(loaded);
    if (file_exists("/dev/full")) /* a full disk */
        assert_error(clg_model_save(model, "/dev/full", NULL), CLG_ERROR_IO, "/dev/full");
    clg_model_free(model);
}

TEST(save__arguments_are_checked)
{
    clg_model *model = weights_of_all_dtypes();
    clg_model_save_options options = CLG_MODEL_SAVE_OPTIONS_INIT;
    void *data = model;
    size_t size_bytes = 1;
    assert_error(clg_model_save(NULL, "x", NULL), CLG_ERROR_INVALID_ARGUMENT, "model is NULL");
    assert_error(clg_model_save(model, NULL, NULL), CLG_ERROR_INVALID_ARGUMENT, "path is NULL");
    assert_error(clg_model_save_memory(NULL, NULL, &data, &size_bytes), CLG_ERROR_INVALID_ARGUMENT,
                 "model is NULL");
    assert_null(data);
    assert_int_equal(size_bytes, 0);
    assert_error(clg_model_save_memory(model, NULL, NULL, &size_bytes), CLG_ERROR_INVALID_ARGUMENT,
                 "out_data is NULL");
    assert_error(clg_model_save_memory(model, NULL, &data, NULL), CLG_ERROR_INVALID_ARGUMENT,
                 "out_size_bytes is NULL");
    assert_error(clg_model_save_memory(model, &with_data, &data, &size_bytes),
                 CLG_ERROR_INVALID_ARGUMENT, "external_bytes is 16");
    options.struct_size = 0;
    assert_error(clg_model_save(model, "x", &options), CLG_ERROR_INVALID_ARGUMENT, "struct_size");
    clg_bytes_free(NULL);
    clg_model_free(model);
}

/* Two weights of 1.5 GiB in address space that is never read: too much for one file. */
TEST(save__more_than_2_gib_is_refused)
{
    graph *g;
    tensor *t;
    value_id v;
    void *data;
    size_t size_bytes;
    const char byte = 0;
    const shape s = {.rank = 1, .dims = {(int64_t)3 << 29}};
    const onnx_save_options options = {0};
    assert_ok(graph_create("", &g));
    assert_ok(graph_set_opset(g, "", 17));
    assert_ok(tensor_wrap(CLG_INT8, &s, (void *)(uintptr_t)&byte, NULL, NULL, &t));
    assert_ok(graph_add_constant(g, "a", t, &v));
    assert_ok(graph_add_constant(g, "b", t, &v));
    assert_ok(graph_add_output(g, v));
    tensor_free(t);
    assert_error(onnx_save_memory(g, &options, &data, &size_bytes), CLG_ERROR_INVALID_ARGUMENT,
                 "2 GiB");
    assert_string_equal(clg_last_hint(), "store the weights in a file of external data");
    assert_error(onnx_save_file(g, scratch_path("large.onnx"), &options),
                 CLG_ERROR_INVALID_ARGUMENT, "2 GiB");
    assert_false(file_exists(scratch_path("large.onnx")));
    graph_free(g);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static clg_status save_both(void *user)
{
    void *data;
    size_t size_bytes;
    clg_status status = clg_model_save_memory(user, NULL, &data, &size_bytes);
    clg_bytes_free(data);
    if (status == CLG_OK) status = clg_model_save(user, scratch_path("fault.onnx"), &with_data);
    return status;
}

TEST(save__failing_allocations)
{
    failing_alloc_install();
    ow_model m = start();
    ow_bytes f = function("choose", 13);
    add_choice(&f, "y");
    ow_put_message(&m.extra, 25, f);
    ow_input(&m, "c", CLG_BOOL, 0, NULL, NULL);
    ow_simple_node(&m, "Sqrt", "", "x", "y");
    add_call(&m, "choose", "call", "y,c", "z");
    add_weight(&m, "w", CLG_FLOAT32);
    ow_simple_node(&m, "Identity", "", "w", "v");
    ow_output(&m, "z", CLG_FLOAT32);
    ow_output(&m, "v", CLG_FLOAT32);
    clg_model *model = load(&m);
    assert_true(fault_loop(save_both, model) > 20);
    clg_model_free(model);
    failing_alloc_remove();
}
