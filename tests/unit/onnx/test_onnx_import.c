/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the graphs that the importer makes of valid files. Invalid files are in
 * test_onnx_hostile.c.
 */
#include "support/fakes/failing_alloc.h"
#include "support/fixtures/onnx_writer.h"
#include "support/scratch.h"
#include "support/unit.h"

#include "base/files.h"
#include "base/strbuf.h"
#include "onnx/onnx.h"

#include <stdio.h>
#include <string.h>

static graph *load(ow_model *m)
{
    graph *g;
    ow_bytes file = ow_finish(m);
    assert_ok(onnx_load_memory(file.data, file.n, 0, NULL, &g));
    ow_free(&file);
    assert_ok(graph_check(g));
    return g;
}

static const value *find(const graph *g, const char *name)
{
    value_id v = graph_find_value(g, name);
    if (v == VALUE_NONE) fail_msg("no value %s", name);
    return &g->values[v];
}

TEST(import__reads_the_frame)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_opset(&m, "com.example", 3);
    ow_put_string(&m.extra, 3, "2.1");
    ow_put_string(&m.graph, 2, "tiny");
    ow_input(&m, "x", CLG_FLOAT32, 3, (int64_t[]){-1, 3, -1}, "N");
    ow_simple_node(&m, "Relu", "act", "x", "y");
    ow_output(&m, "y", CLG_FLOAT32);
    graph *g = load(&m);
    assert_string_equal(g->name, "tiny");
    assert_string_equal(g->producer, "test 2.1");
    assert_int_equal(g->ir_version, 8);
    assert_int_equal(graph_opset(g, ""), 13);
    assert_int_equal(graph_opset(g, "ai.onnx"), 13);
    assert_int_equal(graph_opset(g, "com.example"), 3);
    assert_int_equal(graph_opset(g, "absent"), 0);
    assert_int_equal(g->n_inputs, 1);
    const value *x = find(g, "x");
    assert_true(x->is_input);
    assert_int_equal(x->dtype, CLG_FLOAT32);
    assert_int_equal(x->dims.rank, 3);
    assert_int_equal(x->dims.dims[0], DIM_UNKNOWN);
    assert_int_equal(x->dims.dims[1], 3);
    assert_string_equal(x->dim_names[0], "N");
    assert_null(x->dim_names[1]);
    assert_null(x->dim_names[2]); /* free, without a symbol */
    assert_int_equal(g->n_nodes, 1);
    assert_string_equal(g->nodes[0].op_type, "Relu");
    assert_string_equal(g->nodes[0].name, "act");
    assert_int_equal(g->nodes[0].opset, 13);
    assert_int_equal(g->values[g->outputs[0]].producer, 0);
    graph_free(g);
}

/* Checks that initializers have the same values in every way in which a file may store them. */
TEST(import__initializers_in_every_form)
{
    const int64_t dims[1] = {3}, ints[3] = {1, -2, 3}, bits[3] = {0x3c00, 0xc000, 0x4200};
    const float floats[3] = {1, -2, 3};
    const int32_t words[3] = {1, -2, 3};
    const double doubles[3] = {1, -2, 3};
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_initializer(&m, ow_tensor_raw("raw32", CLG_FLOAT32, 1, dims, floats, sizeof floats));
    ow_initializer(&m, ow_tensor_raw("raw_i32", CLG_INT32, 1, dims, words, sizeof words));
    ow_bytes t = ow_tensor("packed", CLG_FLOAT32, 1, dims);
    ow_put_packed_floats(&t, 4, 3, floats);
    ow_initializer(&m, t);
    t = ow_tensor("single", CLG_FLOAT32, 1, dims);
    for (int i = 0; i < 3; i++) ow_put_float(&t, 4, floats[i]);
    ow_initializer(&m, t);
    t = ow_tensor("i64", CLG_INT64, 1, dims);
    ow_put_packed_ints(&t, 7, 3, ints);
    ow_initializer(&m, t);
    t = ow_tensor("i8", CLG_INT8, 1, dims);
    ow_put_packed_ints(&t, 5, 3, ints);
    ow_initializer(&m, t);
    t = ow_tensor("f16", CLG_FLOAT16, 1, dims);
    ow_put_packed_ints(&t, 5, 3, bits);
    ow_initializer(&m, t);
    t = ow_tensor("f64", CLG_FLOAT64, 1, dims);
    ow_put_bytes(&t, 10, doubles, sizeof doubles);
    ow_initializer(&m, t);
    ow_input(&m, "x", CLG_FLOAT32, 0, NULL, NULL);
    ow_output(&m, "raw32", 0);
    graph *g = load(&m);
    size_t n = 0;
    for (size_t i = 0; i < g->n_values; i++) {
        const tensor *c = g->values[i].constant;
        if (!c) continue;
        n++;
        for (int k = 0; k < 3; k++) assert_true(tensor_get_float(c, k) == floats[k]);
    }
    assert_int_equal(n, 8);
    graph_free(g);
}

TEST(import__initializers_are_not_inputs)
{
    const int64_t dims[1] = {2};
    const float data[2] = {1, 2};
    ow_model m = {.ir_version = 3, .opset = 7};
    ow_input(&m, "x", CLG_FLOAT32, 1, dims, NULL);
    ow_input(&m, "w", CLG_FLOAT32, 1, dims, NULL);
    ow_simple_node(&m, "Add", "", "x,w", "y");
    ow_output(&m, "y", CLG_FLOAT32);
    ow_initializer(&m, ow_tensor_raw("w", CLG_FLOAT32, 1, dims, data, sizeof data));
    graph *g = load(&m);
    assert_int_equal(g->n_inputs, 1);
    assert_non_null(find(g, "w")->constant);
    assert_false(find(g, "w")->is_input);
    graph_free(g);
}

TEST(import__nodes_in_any_order)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_simple_node(&m, "C", "c", "b", "y");
    ow_simple_node(&m, "B", "b", "a", "b");
    ow_simple_node(&m, "A", "a", "x", "a");
    ow_input(&m, "x", CLG_FLOAT32, 0, NULL, NULL);
    ow_output(&m, "y", 0);
    graph *g = load(&m);
    assert_string_equal(g->nodes[0].op_type, "A");
    assert_string_equal(g->nodes[1].op_type, "B");
    assert_string_equal(g->nodes[2].op_type, "C");
    graph_free(g);
}

TEST(import__inputs_left_out)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_simple_node(&m, "Clip", "clip", "x,,top,", "y,,"); /* trailing empty names are dropped */
    ow_input(&m, "x", CLG_FLOAT32, 0, NULL, NULL);
    ow_input(&m, "top", CLG_FLOAT32, 0, NULL, NULL);
    ow_output(&m, "y", 0);
    graph *g = load(&m);
    assert_int_equal(g->nodes[0].n_inputs, 3);
    assert_int_equal(g->nodes[0].inputs[1], VALUE_NONE);
    assert_int_equal(g->nodes[0].n_outputs, 1);
    graph_free(g);
}

TEST(import__attributes_of_every_type)
{
    const int64_t ints[3] = {-1, 0, INT64_MAX};
    const float floats[2] = {0.5f, -2};
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_bytes n = ow_node("Thing", "t", "x", "y");
    ow_attribute_int(&n, "i", -7);
    ow_attribute_float(&n, "f", 1.5f);
    ow_attribute_string(&n, "s", "words");
    ow_attribute_ints(&n, "is", 3, ints);
    ow_attribute_floats(&n, "fs", 2, floats);
    ow_attribute_tensor(&n, "t",
                        ow_tensor_raw("", CLG_FLOAT32, 1, (int64_t[]){2}, floats, sizeof floats));
    ow_bytes a = {0};
    ow_put_string(&a, 1, "untyped"); /* IR version 1 wrote no types of attributes */
    ow_put_packed_ints(&a, 8, 3, ints);
    ow_put_message(&n, 5, a);
    a = (ow_bytes){0};
    ow_put_string(&a, 1, "words");
    ow_put_int(&a, 20, 8);
    ow_put_string(&a, 9, "one");
    ow_put_string(&a, 9, "");
    ow_put_message(&n, 5, a);
    a = (ow_bytes){0};
    ow_put_string(&a, 1, "sparse");
    ow_put_int(&a, 20, 11);
    ow_put_message(&n, 5, a);
    a = (ow_bytes){0};
    ow_put_string(&a, 1, "zero"); /* writers may omit zeros */
    ow_put_int(&a, 20, 2);
    ow_put_message(&n, 5, a);
    ow_add_node(&m, n);
    ow_input(&m, "x", CLG_FLOAT32, 0, NULL, NULL);
    ow_output(&m, "y", 0);
    graph *g = load(&m);
    const node *t = &g->nodes[0];
    size_t count;
    assert_int_equal(t->n_attributes, 10);
    assert_int_equal(node_int(t, "i", 0), -7);
    assert_true(node_float(t, "f", 0) == 1.5f);
    assert_string_equal(node_string(t, "s", ""), "words");
    assert_memory_equal(node_ints(t, "is", &count), ints, sizeof ints);
    assert_int_equal(count, 3);
    assert_memory_equal(node_floats(t, "fs", &count), floats, sizeof floats);
    assert_true(tensor_get_float(node_attribute(t, "t")->as.tensor, 1) == -2);
    assert_memory_equal(node_ints(t, "untyped", &count), ints, sizeof ints);
    assert_int_equal(node_attribute(t, "words")->count, 2);
    assert_string_equal(node_attribute(t, "words")->as.strings[0], "one");
    assert_int_equal(node_attribute(t, "sparse")->type, ATTRIBUTE_NONE);
    assert_int_equal(node_int(t, "zero", 5), 0);
    assert_int_equal(node_int(t, "absent", 5), 5);
    graph_free(g);
}

/* Writes a graph with one node, "inner", which computes `result` from `reads`, a value of an outer
 * graph. */
static ow_bytes body(const char *reads, const char *result)
{
    ow_bytes g = {0};
    ow_put_message(&g, 1, ow_node("Neg", "inner", reads, result));
    ow_put_message(&g, 12, ow_value_info(result, 0, SIZE_MAX, NULL, NULL));
    return g;
}

TEST(import__subgraphs_see_what_is_around_them)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_bytes outer = ow_node("If", "outer", "c", "y"), inner = ow_node("If", "middle", "c", "z"),
             middle = {0};
    ow_attribute_graph(&inner, "then_branch", body("late", "r"));
    ow_put_message(&middle, 1, inner);
    ow_put_message(&middle, 12, ow_value_info("z", 0, SIZE_MAX, NULL, NULL));
    ow_attribute_graph(&outer, "then_branch", middle);
    ow_add_node(&m, outer); /* before the node that produces the value read in its subgraph */
    ow_simple_node(&m, "Abs", "abs", "x", "late");
    ow_input(&m, "c", CLG_BOOL, 0, NULL, NULL);
    ow_input(&m, "x", CLG_FLOAT32, 0, NULL, NULL);
    ow_output(&m, "y", 0);
    graph *g = load(&m);
    assert_string_equal(g->nodes[0].op_type, "Abs");
    const graph *sub = node_attribute(&g->nodes[1], "then_branch")->as.graph;
    const value *captured = find(sub, "late");
    assert_true(captured->is_outer);
    assert_int_equal(captured->outer, graph_find_value(g, "late"));
    assert_int_equal(graph_opset(sub, ""), 13);
    const graph *deepest = node_attribute(&sub->nodes[0], "then_branch")->as.graph;
    assert_int_equal(find(deepest, "late")->outer, graph_find_value(sub, "late"));
    uint32_t *counts;
    assert_ok(graph_count_uses(g, &counts));
    assert_int_equal(counts[graph_find_value(g, "late")], 1);
    memory_free(counts);
    graph_free(g);
}

TEST(import__the_last_constant_of_a_name_counts)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    for (int i = 0; i < 2; i++) {
        ow_bytes n = ow_node("Constant", NULL, NULL, "k");
        ow_attribute_int(&n, "value_int", i);
        ow_add_node(&m, n);
    }
    ow_input(&m, "x", CLG_FLOAT32, 0, NULL, NULL);
    ow_output(&m, "k", 0);
    graph *g = load(&m);
    assert_int_equal(g->n_nodes, 1);
    assert_int_equal(node_int(&g->nodes[0], "value_int", 7), 1);
    graph_free(g);
}

TEST(import__declared_types)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_put_message(&m.graph, 11,
                   ow_info("s", ow_type_list(OW_SEQUENCE, ow_type_tensor(CLG_INT64))));
    ow_input(&m, "any", CLG_FLOAT32, SIZE_MAX, NULL, NULL);
    ow_simple_node(&m, "A", "", "any", "mid");
    ow_simple_node(&m, "A", "", "mid,s", "y");
    ow_put_message(&m.graph, 13, ow_value_info("mid", CLG_UINT8, 1, (int64_t[]){4}, NULL));
    ow_put_message(&m.graph, 13, ow_value_info("gone", CLG_UINT8, 1, (int64_t[]){4}, NULL));
    ow_output(&m, "y", CLG_INT32);
    graph *g = load(&m);
    assert_int_equal(find(g, "s")->kind, CLG_VALUE_SEQUENCE);
    assert_int_equal(find(g, "s")->dtype, CLG_INT64);
    assert_int_equal(find(g, "any")->dims.rank, RANK_UNKNOWN);
    assert_int_equal(find(g, "mid")->dtype, CLG_UINT8);
    assert_int_equal(find(g, "mid")->dims.dims[0], 4);
    assert_int_equal(graph_find_value(g, "gone"), VALUE_NONE);
    assert_int_equal(find(g, "y")->dtype, CLG_INT32);
    graph_free(g);
}

/* ---- external data --------------------------------------------------------------------------- */

/* Loads a model file with one external tensor of two floats, stored at the given location, offset
 * and length. Returns the status. */
static clg_status load_external(const char *location, const char *offset, const char *length,
                                unsigned flags, graph **out_graph)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_initializer(
        &m, ow_tensor_external("w", CLG_FLOAT32, 1, (int64_t[]){2}, location, offset, length));
    ow_input(&m, "x", CLG_FLOAT32, 0, NULL, NULL);
    ow_output(&m, "w", 0);
    ow_bytes file = ow_finish(&m);
    const char *path = scratch_file("external.onnx", file.data, file.n);
    ow_free(&file);
    return onnx_load_file(path, flags, NULL, out_graph);
}

TEST(external__reads_what_is_beside_the_model)
{
    const float data[4] = {1, 2, 3, 4};
    graph *g;
    (void)scratch_file("weights.bin", data, sizeof data);
    assert_ok(load_external("weights.bin", "8", "8", 0, &g));
    assert_true(tensor_get_float(find(g, "w")->constant, 0) == 3);
    graph *copy;
    assert_ok(graph_clone(g, &copy));
    graph_free(g);
    assert_true(tensor_get_float(find(copy, "w")->constant, 1) ==
                4); /* the tensor keeps the file mapped */
    graph_free(copy);
    assert_ok(load_external("./weights.bin", NULL, NULL, 0, &g));
    assert_true(tensor_get_float(find(g, "w")->constant, 0) == 1);
    graph_free(g);
}

TEST(external__checks_offset_and_length)
{
    const float data[2] = {1, 2};
    graph *g;
    (void)scratch_file("weights.bin", data, sizeof data);
    assert_error(load_external("weights.bin", "4", "8", 0, &g), CLG_ERROR_INVALID_MODEL, "'w'");
    assert_null(g);
    assert_error(load_external("weights.bin", "0", "4", 0, &g), CLG_ERROR_INVALID_MODEL, "'w'");
    assert_error(load_external("weights.bin", "18446744073709551615", "8", 0, &g),
                 CLG_ERROR_INVALID_MODEL, "not a number");
    assert_error(load_external("weights.bin", "-1", "8", 0, &g), CLG_ERROR_INVALID_MODEL,
                 "not a number");
    assert_error(load_external(NULL, "0", "8", 0, &g), CLG_ERROR_INVALID_MODEL, "location");
}

TEST(external__never_leaves_the_folder)
{
    graph *g;
    assert_error(load_external("../weights.bin", NULL, NULL, 0, &g), CLG_ERROR_INVALID_MODEL,
                 "outside");
    assert_error(load_external("a/../../weights.bin", NULL, NULL, 0, &g), CLG_ERROR_INVALID_MODEL,
                 "outside");
    assert_error(load_external("/etc/passwd", NULL, NULL, 0, &g), CLG_ERROR_INVALID_MODEL,
                 "outside");
    assert_error(load_external("C:\\data", NULL, NULL, 0, &g), CLG_ERROR_INVALID_MODEL, "outside");
    /* The location is also checked when loading does not need the data. */
    assert_error(load_external("../weights.bin", NULL, NULL, ONNX_ALLOW_MISSING_DATA, &g),
                 CLG_ERROR_INVALID_MODEL, "outside");
}

TEST(external__missing_file)
{
    graph *g;
    assert_error(load_external("absent.bin", NULL, NULL, 0, &g), CLG_ERROR_IO, "absent.bin");
    assert_ok(load_external("absent.bin", NULL, NULL, ONNX_ALLOW_MISSING_DATA, &g));
    assert_ok(graph_check(g));
    const value *w = find(g, "w");
    assert_null(w->constant);
    assert_string_equal(w->missing_file, "absent.bin");
    assert_int_equal(w->dims.dims[0], 2);
    graph *copy;
    assert_ok(graph_clone(g, &copy));
    assert_string_equal(find(copy, "w")->missing_file, "absent.bin");
    graph_free(copy);
    graph_free(g);
}

TEST(external__not_from_memory)
{
    graph *g;
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_initializer(
        &m, ow_tensor_external("w", CLG_FLOAT32, 1, (int64_t[]){2}, "weights.bin", NULL, NULL));
    ow_output(&m, "w", 0);
    ow_bytes file = ow_finish(&m);
    assert_error(onnx_load_memory(file.data, file.n, 0, NULL, &g), CLG_ERROR_IO, "memory");
    ow_free(&file);
}

/* ---- out of memory --------------------------------------------------------------------------- */

static clg_status load_and_free(void *user)
{
    const ow_bytes *file = user;
    graph *g, *copy = NULL;
    clg_status status = onnx_load_memory(file->data, file->n, 0, NULL, &g);
    if (status == CLG_OK) status = graph_check(g);
    if (status == CLG_OK) status = graph_clone(g, &copy);
    strbuf t;
    strbuf_init(&t, 0);
    if (status == CLG_OK) {
        graph_dump(copy, &t);
        graph_dump_dot(copy, &t);
        status = t.status;
    }
    strbuf_deinit(&t);
    graph_free(copy);
    graph_free(g);
    return status;
}

TEST(import__survives_every_failed_allocation)
{
    const float floats[2] = {0.5f, -2};
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_bytes n = ow_node("If", "outer", "c,,x", "y");
    ow_attribute_graph(&n, "then_branch", body("x", "r"));
    ow_attribute_floats(&n, "fs", 2, floats);
    ow_attribute_string(&n, "s", "words");
    ow_attribute_tensor(&n, "t",
                        ow_tensor_raw("", CLG_FLOAT32, 1, (int64_t[]){2}, floats, sizeof floats));
    ow_add_node(&m, n);
    ow_initializer(&m, ow_tensor_raw("x", CLG_FLOAT32, 1, (int64_t[]){2}, floats, sizeof floats));
    ow_input(&m, "c", CLG_BOOL, 1, (int64_t[]){-1}, "N");
    ow_output(&m, "y", 0);
    ow_bytes file = ow_finish(&m);
    failing_alloc_install();
    size_t n_allocations = fault_loop(load_and_free, &file);
    failing_alloc_remove();
    assert_true(n_allocations > 20);
    ow_free(&file);
}

/* ---- real files ------------------------------------------------------------------------------ */

/* Loads each FOLDER/NAME/model.onnx, if FOLDER exists: $CLG_TEST_MODELS, else CLG_TEST_MODELS. */
TEST(import__takes_real_files)
{
    const char *given = env_get("CLG_TEST_MODELS"), *folder = given ? given : CLG_TEST_MODELS;
    file_entry *entries;
    size_t n, n_read = 0;
    if (!file_exists(folder)) {
        print_message("skipped: there is no %s\n", folder);
        skip();
    }
    assert_ok(file_list(folder, &entries, &n));
    for (size_t i = 0; i < n; i++) {
        char path[1024];
        graph *g;
        (void)snprintf(path, sizeof path, "%s/%s/model.onnx", folder, entries[i].name);
        if (!file_exists(path)) continue;
        clg_status status = onnx_load_file(path, 0, NULL, &g);
        if (status == CLG_OK) status = graph_check(g);
        if (status != CLG_OK) fail_msg("%s: %s", path, error_text());
        graph_free(g);
        n_read++;
    }
    file_list_free(entries, n);
    print_message("%zu models read\n", n_read);
    assert_true(n_read > 0);
}
