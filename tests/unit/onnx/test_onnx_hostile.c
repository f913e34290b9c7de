/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests damaged, invalid and malicious model files: loading must end with an error message, and
 * leak nothing. Random cases print their seed; CLG_TEST_SEED sets it.
 */
#include "support/bytes.h"
#include "support/fixtures/onnx_writer.h"
#include "support/unit.h"

#include "base/files.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "onnx/onnx.h"
#include "ops/core/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Loads a model and does all that needs no device: checks, dumps and resolves it, and infers
 * shapes. */
static clg_status load_wholly(const void *data, size_t n)
{
    graph *g;
    value_fact *facts;
    CLG_TRY(onnx_load_memory(data, n, 0, NULL, &g));
    clg_status status = graph_check(g);
    if (status == CLG_OK) {
        strbuf t;
        strbuf_init(&t, 0);
        graph_dump(g, &t);
        graph_dump_dot(g, &t);
        strbuf_deinit(&t);
    }
    if (status == CLG_OK) status = ops_resolve(g);
    if (status == CLG_OK) status = ops_infer_graph(g, NULL, &facts);
    if (status == CLG_OK) ops_facts_free(facts, g->n_values);
    graph_free(g);
    return status;
}

static clg_status load_model(ow_model *m)
{
    ow_bytes file = ow_finish(m);
    clg_status status = load_wholly(file.data, file.n);
    ow_free(&file);
    return status;
}

/* Writes a model with all kinds of attributes, a subgraph, shapes and constants. */
static ow_bytes rich_model(void)
{
    const float floats[4] = {1, 2, 3, 4};
    const int64_t ints[2] = {2, -1};
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_put_string(&m.graph, 2, "rich");
    ow_input(&m, "x", CLG_FLOAT32, 2, (int64_t[]){-1, 4}, "N");
    ow_initializer(&m, ow_tensor_raw("w", CLG_FLOAT32, 1, (int64_t[]){4}, floats, sizeof floats));
    ow_bytes t = ow_tensor("to", CLG_INT64, 1, (int64_t[]){2});
    ow_put_packed_ints(&t, 7, 2, ints);
    ow_initializer(&m, t);
    ow_simple_node(&m, "Reshape", "r", "x,to", "a");
    ow_simple_node(&m, "Shape", "s", "a", "b");
    ow_bytes n = ow_node("Constant", "c", NULL, "k");
    ow_attribute_tensor(&n, "value", ow_tensor_raw("", CLG_FLOAT32, 1, (int64_t[]){2}, floats, 8));
    ow_add_node(&m, n);
    ow_bytes sub = {0};
    ow_put_message(&sub, 1, ow_node("Identity", "", "a", "inner"));
    ow_put_message(&sub, 12, ow_value_info("inner", 0, SIZE_MAX, NULL, NULL));
    n = ow_node("Flatten", "f", "a", "y");
    ow_attribute_int(&n, "axis", 1);
    ow_add_node(&m, n);
    n = ow_node("Weird", "q", "a,,k", "z");
    ow_attribute_graph(&n, "body", sub);
    ow_attribute_floats(&n, "fs", 4, floats);
    ow_attribute_ints(&n, "is", 2, ints);
    ow_attribute_string(&n, "s", "str");
    ow_attribute_float(&n, "f", 1);
    ow_add_node(&m, n);
    ow_put_message(&m.graph, 13, ow_value_info("a", CLG_FLOAT32, 2, (int64_t[]){2, 2}, NULL));
    ow_output(&m, "y", CLG_FLOAT32);
    ow_output(&m, "b", CLG_INT64);
    ow_output(&m, "z", 0);
    return ow_finish(&m);
}

/* Checks that loading the data terminates, sets a message when it fails, and leaks no memory. */
static void check_any(void *user, const uint8_t *data, size_t n)
{
    (void)user;
    size_t n_live = memory_n_live();
    (void)error_set(CLG_OK, "%s", "");
    clg_status status = load_wholly(data, n);
    if (status != CLG_OK && error_text()[0] == '\0')
        fail_msg("%s without a message", status_name(status));
    assert_int_equal(memory_n_live(), n_live);
}

static void check_refused(void *user, const uint8_t *data, size_t n)
{
    check_any(user, data, n);
    assert_true(load_wholly(data, n) != CLG_OK);
}

TEST(hostile__truncated_anywhere)
{
    ow_bytes file = rich_model();
    assert_error(load_wholly(file.data, file.n), CLG_ERROR_UNSUPPORTED_OPERATOR,
                 "Weird (opset 13: node 'q')");
    bytes_each_prefix(file.data, file.n, check_refused, NULL);
    ow_free(&file);
}

TEST(hostile__damaged_anywhere)
{
    ow_bytes file = rich_model();
    bytes_each_damage(file.data, file.n, check_any, NULL);
    ow_free(&file);
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u); /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t seed(void)
{
    const char *given = env_get("CLG_TEST_SEED");
    uint64_t s = given ? strtoull(given, NULL, 0) : 20240611;
    print_message("CLG_TEST_SEED=%llu\n", (unsigned long long)s);
    return s;
}

TEST(hostile__random_bytes)
{
    uint64_t random = seed();
    for (int i = 0; i < 3000; i++) {
        uint8_t bytes[256];
        size_t n = next_random(&random) % sizeof bytes;
        for (size_t k = 0; k < n; k++) {
            /* Half of the bytes are small: as tags and lengths, they are parsed further. */
            uint64_t r = next_random(&random);
            bytes[k] = (uint8_t)(r & 0x100 ? r : r % 48);
        }
        check_refused(NULL, bytes, n);
    }
}

/* Flips several bits at once, and copies pieces of the file over others. */
TEST(hostile__random_damage)
{
    uint64_t random = seed();
    ow_bytes file = rich_model();
    uint8_t *damaged = malloc(file.n);
    assert_non_null(damaged);
    for (int i = 0; i < 3000; i++) {
        memcpy(damaged, file.data, file.n);
        for (uint64_t k = next_random(&random) % 6; k > 0; k--) {
            damaged[next_random(&random) % file.n] ^= (uint8_t)(1u << next_random(&random) % 8);
        }
        if (i % 3 == 0) {
            size_t n = next_random(&random) % 40, from = next_random(&random) % (file.n - 40);
            memmove(damaged + next_random(&random) % (file.n - 40), damaged + from, n);
        }
        check_any(NULL, damaged, file.n);
    }
    free(damaged);
    ow_free(&file);
}

/* ---- depth and size -------------------------------------------------------------------------- */

/* Writes nested graphs, each with one output. */
static ow_bytes nested(int depth)
{
    ow_bytes g = {0};
    ow_put_message(&g, 1, ow_node("Identity", "", "c", "y"));
    ow_put_message(&g, 12, ow_value_info("y", 0, SIZE_MAX, NULL, NULL));
    for (int i = 0; i < depth; i++) {
        ow_bytes around = {0}, n = ow_node("If", "", "c", "y");
        ow_attribute_graph(&n, "then_branch", g);
        ow_put_message(&around, 1, n);
        ow_put_message(&around, 12, ow_value_info("y", 0, SIZE_MAX, NULL, NULL));
        g = around;
    }
    return g;
}

TEST(hostile__nested_graphs)
{
    const int depths[] = {1, GRAPH_MAX_DEPTH, GRAPH_MAX_DEPTH + 1, 3000};
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        ow_model m = {.ir_version = 8, .opset = 13, .graph = nested(depths[i])};
        ow_input(&m, "c", CLG_BOOL, 0, NULL, NULL);
        ow_bytes file = ow_finish(&m);
        graph *g;
        if (depths[i] <= GRAPH_MAX_DEPTH) {
            assert_ok(onnx_load_memory(file.data, file.n, 0, NULL, &g));
            assert_ok(graph_check(g));
            graph_free(g);
        } else {
            assert_error(onnx_load_memory(file.data, file.n, 0, NULL, &g), CLG_ERROR_INVALID_MODEL,
                         "deeper than 64");
        }
        ow_free(&file);
    }
}

TEST(hostile__nested_types)
{
    ow_bytes type = {0}, info = {0};
    for (int i = 0; i < 5000; i++) {
        ow_bytes around = {0}, sequence = {0};
        ow_put_message(&sequence, 1, type);
        ow_put_message(&around, 4, sequence);
        type = around;
    }
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_put_string(&info, 1, "x");
    ow_put_message(&info, 2, type);
    ow_put_message(&m.graph, 11, info);
    assert_error(load_model(&m), CLG_ERROR_INVALID_MODEL, "input 'x': a type is nested deeper");
}

/* Checks that captures are limited: a value read in a deeply nested graph is added to each graph
 * around it, and too many would exhaust memory. */
TEST(hostile__captures_are_bounded)
{
    ow_bytes g = {0};
    ow_model m = {.ir_version = 8, .opset = 13};
    char name[16];
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(name, sizeof name, "v%d", i);
        ow_simple_node(&m, "Identity", "", "c", name);
        ow_put_message(&g, 1, ow_node("Neg", "", name, ""));
    }
    for (int i = 0; i < 60; i++) {
        ow_bytes around = {0}, n = ow_node("If", "", "c", "");
        ow_attribute_graph(&n, "then_branch", g);
        ow_put_message(&around, 1, n);
        g = around;
    }
    ow_bytes n = ow_node("If", "", "c", "y");
    ow_attribute_graph(&n, "then_branch", g);
    ow_add_node(&m, n);
    ow_input(&m, "c", CLG_BOOL, 0, NULL, NULL);
    ow_output(&m, "y", 0);
    assert_error(load_model(&m), CLG_ERROR_INVALID_MODEL, "around them");
}

TEST(hostile__absurd_dimensions)
{
    const int64_t huge[3] = {INT64_MAX / 2, 4, 4}, negative[1] = {-5},
                  many[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_input(&m, "x", CLG_FLOAT32, 3, huge, NULL);
    ow_output(&m, "x", 0);
    assert_error(load_model(&m), CLG_ERROR_INVALID_MODEL, "input 'x'");
    ow_input(&m, "x", CLG_FLOAT32, 9, many, NULL);
    m.ir_version = m.opset = 8;
    assert_error(load_model(&m), CLG_ERROR_INVALID_MODEL, "rank 9");
    m = (ow_model){.ir_version = 8, .opset = 13};
    ow_bytes dim = {0}, shape = {0}, tensor = {0}, type = {0}, info = {0};
    ow_put_int(&dim, 1, -5);
    ow_put_message(&shape, 1, dim);
    ow_put_int(&tensor, 1, CLG_FLOAT32);
    ow_put_message(&tensor, 2, shape);
    ow_put_message(&type, 1, tensor);
    ow_put_string(&info, 1, "x");
    ow_put_message(&info, 2, type);
    ow_put_message(&m.graph, 11, info);
    assert_error(load_model(&m), CLG_ERROR_INVALID_MODEL, "input 'x': dimension 0 is negative: -5");
    m = (ow_model){.ir_version = 8, .opset = 13};
    ow_initializer(&m, ow_tensor_raw("w", CLG_FLOAT32, 1, negative, "", 0));
    assert_error(load_model(&m), CLG_ERROR_INVALID_MODEL,
                 "tensor 'w': dimension 0 is negative: -5");
    m = (ow_model){.ir_version = 8, .opset = 13};
    ow_initializer(&m, ow_tensor_raw("w", CLG_FLOAT32, 3, huge, "", 0));
    assert_error(load_model(&m), CLG_ERROR_INVALID_MODEL, "'w'");
    m = (ow_model){.ir_version = 8, .opset = 13};
    ow_initializer(&m, ow_tensor_raw("w", CLG_FLOAT32, 1, (int64_t[]){1000000000000}, "abcd", 4));
    assert_error(load_model(&m), CLG_ERROR_INVALID_MODEL, "'w'");
}

/* Checks that impossible shapes in shape arithmetic are rejected before memory is allocated. */
TEST(hostile__absurd_shape_arithmetic)
{
    const int64_t ints[3] = {INT64_MAX, INT64_MAX, 2};
    const struct {
        const char *op_type, *inputs;
    } cases[] = {{"ConstantOfShape", "to"}, {"Reshape", "x,to"}};
    for (size_t i = 0; i < 2; i++) {
        ow_model m = {.ir_version = 8, .opset = 13};
        ow_input(&m, "x", CLG_FLOAT32, 1, (int64_t[]){4}, NULL);
        ow_initializer(&m, ow_tensor_raw("to", CLG_INT64, 1, (int64_t[]){3}, ints, sizeof ints));
        ow_simple_node(&m, cases[i].op_type, "n", cases[i].inputs, "y");
        ow_output(&m, "y", CLG_FLOAT32);
        assert_error(load_model(&m), CLG_ERROR_SHAPE, "node 'n'");
    }
}

/* ---- single faults --------------------------------------------------------------------------- */

TEST(hostile__not_a_model)
{
    assert_error(load_wholly("", 0), CLG_ERROR_INVALID_MODEL, "not an ONNX model");
    assert_error(load_wholly("PK\003\004 something else", 20), CLG_ERROR_INVALID_MODEL,
                 "field number");
    ow_model m = {.opset = 13};
    ow_output(&m, "y", 0);
    assert_error(load_model(&m), CLG_ERROR_INVALID_MODEL, "no IR version");
    m = (ow_model){.ir_version = 8, .opset = 13};
    ow_put_string(&m.extra, 7, "");
    assert_error(load_model(&m), CLG_ERROR_INVALID_MODEL, "two graphs");
}

TEST(hostile__sparse_initializers_are_refused)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_bytes sparse = {0};
    ow_put_message(&sparse, 1, ow_tensor_raw("thin", CLG_FLOAT32, 1, (int64_t[]){1}, "abcd", 4));
    ow_put_message(&m.graph, 15, sparse);
    assert_error(load_model(&m), CLG_ERROR_UNSUPPORTED_DTYPE, "'thin'");
}

TEST(hostile__internal_operators_are_refused)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_bytes n = ow_node("Pointwise", "p", "x", "y");
    ow_put_string(&n, 7, "clgraph");
    ow_add_node(&m, n);
    ow_opset(&m, "clgraph", 1);
    assert_error(load_model(&m), CLG_ERROR_INVALID_MODEL, "'clgraph'");
}

TEST(hostile__names_with_nul)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_bytes n = {0};
    ow_put_bytes(&n, 1, "a\0b", 3);
    ow_put_string(&n, 4, "Neg");
    ow_add_node(&m, n);
    assert_error(load_model(&m), CLG_ERROR_INVALID_MODEL, "NUL");
}

TEST(hostile__names_are_shown_safely)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_simple_node(&m, "Bad\x1b[31m\xff\n", "n", "x", "y");
    ow_input(&m, "x", CLG_FLOAT32, 0, NULL, NULL);
    ow_output(&m, "y", 0);
    assert_error(load_model(&m), CLG_ERROR_UNSUPPORTED_OPERATOR, "Bad?[31m??");
}

TEST(hostile__faulty_types)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_input(&m, "x", 0, 1, (int64_t[]){1}, NULL);
    assert_error(load_model(&m), CLG_ERROR_INVALID_MODEL, "input 'x': it has no element type");
    m = (ow_model){.ir_version = 8, .opset = 13};
    ow_input(&m, "x", 99, 1, (int64_t[]){1}, NULL);
    assert_error(load_model(&m), CLG_ERROR_UNSUPPORTED_DTYPE, "element type 99");
    m = (ow_model){.ir_version = 8, .opset = -3};
    ow_output(&m, "x", 0);
    assert_error(load_model(&m), CLG_ERROR_INVALID_MODEL, "version -3");
}

TEST(hostile__faulty_attributes)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    ow_bytes n = ow_node("Flatten", "f", "x", "y"), a = {0};
    ow_attribute_int(&n, "axis", 1);
    ow_attribute_int(&n, "axis", 2);
    ow_input(&m, "x", CLG_FLOAT32, 0, NULL, NULL);
    ow_add_node(&m, n);
    assert_error(load_model(&m), CLG_ERROR_INVALID_MODEL,
                 "node 'f' (Flatten, opset 13): the attribute 'axis' is given twice");
    m = (ow_model){.ir_version = 8, .opset = 13};
    n = ow_node("Flatten", "f", NULL, "y");
    ow_put_string(&a, 1, "floats");
    ow_put_int(&a, 20, 6);
    ow_put_bytes(&a, 7, "abc", 3); /* three quarters of a float */
    ow_put_message(&n, 5, a);
    ow_add_node(&m, n);
    assert_error(load_model(&m), CLG_ERROR_INVALID_MODEL, "attribute 'floats'");
    m = (ow_model){.ir_version = 8, .opset = 13};
    n = ow_node("Flatten", "f", NULL, "y");
    a = (ow_bytes){0};
    ow_put_string(&a, 1, "ref");
    ow_put_string(&a, 21, "outer");
    ow_put_int(&a, 20, 2);
    ow_put_message(&n, 5, a);
    ow_add_node(&m, n);
    assert_error(load_model(&m), CLG_ERROR_INVALID_MODEL, "outside of a function");
}
