/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests maps as inputs of models, consumed by DictVectorizer and CastMap.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/onnx_writer.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include <clgraph/inspect.h>

#include <string.h>

#define ML "ai.onnx.ml"

static clg_value *tensor_of(clg_dtype dtype, int64_t n)
{
    clg_value *v;
    assert_ok(clg_value_create(dtype, 1, &n, &v));
    return v;
}

/* Returns a ValueInfoProto of a map. */
static ow_bytes map_info(const char *name, int64_t keys, int64_t values)
{
    return ow_info(name, ow_type_map(keys, ow_type_tensor(values)));
}

/* Loads a model in which `node` maps input x to y. Its outputs are y, z = -y where y is numeric,
 * and `same` = x. Takes ownership of the node. */
static clg_status load_reader(ow_bytes node, int64_t keys, int64_t values, clg_dtype to,
                              clg_session **out_session)
{
    clg_model *model;
    ow_model m = {.ir_version = 8, .opset = 17};
    *out_session = NULL;
    ow_opset(&m, ML, 1);
    ow_put_message(&m.graph, 11, map_info("x", keys, values));
    ow_put_string(&node, 7, ML);
    ow_add_node(&m, node);
    if (to != CLG_STRING) ow_simple_node(&m, "Neg", "", "y", "z");
    ow_simple_node(&m, "Identity", "", "x", "same");
    ow_output(&m, "y", (int)to);
    if (to != CLG_STRING) ow_output(&m, "z", (int)to);
    ow_put_message(&m.graph, 12, map_info("same", keys, values));
    clg_status status = ow_load(&m, &model);
    if (status != CLG_OK) return status;
    status = clg_session_create(context, model, NULL, out_session);
    clg_model_free(model);
    return status;
}

static clg_value *words_of(size_t n, const char *const *words)
{
    clg_value *v;
    const int64_t dims = (int64_t)n;
    assert_ok(sized_wrap(CLG_STRING, 1, &dims, (void *)(uintptr_t)words, NULL, NULL, &v));
    return v;
}

static clg_value *ints_of(size_t n, const int64_t *numbers)
{
    clg_value *v = tensor_of(CLG_INT64, (int64_t)n);
    if (n) memcpy(clg_value_data(v), numbers, n * sizeof *numbers);
    return v;
}

static clg_value *floats_of(size_t n, const float *numbers)
{
    clg_value *v = tensor_of(CLG_FLOAT32, (int64_t)n);
    if (n) memcpy(clg_value_data(v), numbers, n * sizeof *numbers);
    return v;
}

/* Sets input x to a map; takes ownership of keys and values. */
static void give_map(clg_session *s, clg_value *keys, clg_value *values)
{
    clg_value *map;
    assert_ok(clg_value_create_map(keys, values, &map));
    assert_ok(clg_session_set_input(s, "x", map));
    clg_value_free(map);
    clg_value_free(keys);
    clg_value_free(values);
}

static void expect_floats(clg_session *s, const char *name, size_t n, const float *want)
{
    clg_value *got;
    assert_ok(clg_session_get_output(s, name, &got));
    assert_int_equal(clg_value_rank(got), 2);
    assert_int_equal(clg_value_dims(got)[0], 1);
    assert_int_equal(clg_value_dims(got)[1], n);
    for (size_t i = 0; i < n; i++) assert_true(((const float *)clg_value_data(got))[i] == want[i]);
    clg_value_free(got);
}

static ow_bytes word_vectorizer(void)
{
    ow_bytes n = ow_node("DictVectorizer", "dict", "x", "y");
    ow_attribute_strings(&n, "string_vocabulary", 3, NAMES("b", "c", "a"));
    return n;
}

TEST(dictvectorizer__looks_words_up)
{
    clg_session *s;
    clg_value *got;
    assert_ok(load_reader(word_vectorizer(), CLG_STRING, CLG_FLOAT32, CLG_FLOAT32, &s));
    assert_error(clg_session_run(s), CLG_ERROR_NOT_FOUND, "'x' is not set");
    give_map(s, words_of(3, NAMES("a", "nobody", "b")), floats_of(3, (float[]){1, 2, 3}));
    assert_ok(clg_session_run(s));
    expect_floats(s, "y", 3, (float[]){3, 0, 1});
    expect_floats(s, "z", 3, (float[]){-3, 0, -1});
    assert_ok(clg_session_get_output(s, "same", &got));
    assert_int_equal(clg_value_get_kind(got), CLG_VALUE_MAP);
    assert_string_equal(((char **)clg_value_data(clg_value_map_keys(got)))[1], "nobody");
    assert_true(((float *)clg_value_data(clg_value_map_values(got)))[2] == 3);
    clg_value_free(got);
    give_map(s, words_of(0, NULL), floats_of(0, NULL));
    assert_ok(clg_session_run(s));
    expect_floats(s, "y", 3, (float[]){0, 0, 0});
    give_map(s, words_of(1, NAMES("c")), floats_of(1, (float[]){7}));
    assert_ok(clg_session_run(s));
    expect_floats(s, "z", 3, (float[]){0, -7, 0});
    clg_session_free(s);
}

/* A map is set by reference: data written to it between runs take effect. */
TEST(dictvectorizer__sees_what_was_written)
{
    clg_session *s;
    clg_value *keys = ints_of(2, DIMS(5, 6)), *values = floats_of(2, (float[]){1, 2});
    ow_bytes n = ow_node("DictVectorizer", "dict", "x", "y");
    ow_attribute_ints(&n, "int64_vocabulary", 2, DIMS(6, 5));
    assert_ok(load_reader(n, CLG_INT64, CLG_FLOAT32, CLG_FLOAT32, &s));
    give_map(s, clg_value_retain(keys), clg_value_retain(values));
    assert_ok(clg_session_run(s));
    expect_floats(s, "y", 2, (float[]){2, 1});
    ((float *)clg_value_data(values))[0] = 9;
    assert_ok(clg_session_run(s));
    expect_floats(s, "y", 2, (float[]){2, 9});
    ((int64_t *)clg_value_data(keys))[1] = 4;
    assert_ok(clg_session_run(s));
    expect_floats(s, "y", 2, (float[]){0, 9});
    clg_value_free(keys);
    clg_value_free(values);
    clg_session_free(s);
}

TEST(dictvectorizer__takes_values_on_the_device)
{
    clg_session *s;
    clg_value *values;
    assert_ok(load_reader(word_vectorizer(), CLG_STRING, CLG_FLOAT32, CLG_FLOAT32, &s));
    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 1, DIMS(2), &values));
    assert_ok(clg_value_write(values, (float[]){4, 5}, 2 * sizeof(float)));
    give_map(s, words_of(2, NAMES("c", "a")), values);
    assert_ok(clg_session_run(s));
    expect_floats(s, "y", 3, (float[]){0, 4, 5});
    clg_session_free(s);
}

TEST(castmap__orders_and_places)
{
    static const int64_t keys[] = {5, -1, 2};
    static const float values[] = {1.5f, 7, -2.5f};
    for (int sparse = 0; sparse < 2; sparse++) {
        clg_session *s;
        ow_bytes n = ow_node("CastMap", "cast", "x", "y");
        if (sparse) ow_attribute_string(&n, "map_form", "SPARSE");
        if (sparse) ow_attribute_int(&n, "max_map", 4);
        assert_ok(load_reader(n, CLG_INT64, CLG_FLOAT32, CLG_FLOAT32, &s));
        give_map(s, ints_of(3, keys), floats_of(3, values));
        assert_ok(clg_session_run(s));
        if (sparse)
            expect_floats(s, "z", 4, (float[]){0, 0, 2.5f, 0});
        else
            expect_floats(s, "z", 3, (float[]){-7, 2.5f, -1.5f});
        clg_session_free(s);
    }
}

TEST(castmap__casts)
{
    clg_session *s;
    clg_value *got;
    ow_bytes n = ow_node("CastMap", "cast", "x", "y");
    assert_ok(load_reader(n, CLG_INT64, CLG_STRING, CLG_FLOAT32, &s));
    give_map(s, ints_of(2, DIMS(8, 3)), words_of(2, NAMES("1.5", "-2")));
    assert_ok(clg_session_run(s));
    expect_floats(s, "y", 2, (float[]){-2, 1.5f});
    give_map(s, ints_of(2, DIMS(8, 3)), words_of(2, NAMES("1.5", "many")));
    assert_error(clg_session_run(s), CLG_ERROR_DATA, "many");
    clg_session_free(s);
    n = ow_node("CastMap", "cast", "x", "y");
    ow_attribute_string(&n, "cast_to", "TO_INT64");
    assert_ok(load_reader(n, CLG_INT64, CLG_FLOAT32, CLG_INT64, &s));
    give_map(s, ints_of(1, DIMS(8)), floats_of(1, (float[]){-2.75f}));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output(s, "y", &got));
    assert_int_equal(((int64_t *)clg_value_data(got))[0], -2);
    clg_value_free(got);
    clg_session_free(s);
    n = ow_node("CastMap", "cast", "x", "y");
    ow_attribute_string(&n, "cast_to", "TO_STRING");
    assert_ok(load_reader(n, CLG_INT64, CLG_STRING, CLG_STRING, &s));
    give_map(s, ints_of(2, DIMS(8, 7)), words_of(2, NAMES("eight", "seven")));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output(s, "y", &got));
    assert_string_equal(((char **)clg_value_data(got))[0], "seven");
    clg_value_free(got);
    clg_session_free(s);
}

TEST(readers__refuse_what_does_not_fit)
{
    clg_session *s;
    clg_value *keys = ints_of(1, DIMS(1)), *values = floats_of(1, (float[]){1}), *map;
    assert_error(load_reader(word_vectorizer(), CLG_INT64, CLG_FLOAT32, CLG_FLOAT32, &s),
                 CLG_ERROR_INVALID_MODEL, "keys of int64, not of string");
    assert_error(load_reader(ow_node("DictVectorizer", "dict", "x", "y"), CLG_INT64, CLG_FLOAT32,
                             CLG_FLOAT32, &s),
                 CLG_ERROR_INVALID_MODEL, "vocabulary");
    ow_bytes n = ow_node("CastMap", "cast", "x", "y");
    ow_attribute_string(&n, "cast_to", "TO_WORDS");
    assert_error(load_reader(n, CLG_INT64, CLG_FLOAT32, CLG_FLOAT32, &s),
                 CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "'cast_to' is 'TO_WORDS'");
    n = ow_node("CastMap", "cast", "x", "y");
    ow_attribute_string(&n, "map_form", "LOOSE");
    assert_error(load_reader(n, CLG_INT64, CLG_FLOAT32, CLG_FLOAT32, &s),
                 CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "'map_form' is 'LOOSE'");
    n = ow_node("CastMap", "cast", "x", "y");
    ow_attribute_int(&n, "max_map", 0);
    assert_error(load_reader(n, CLG_INT64, CLG_FLOAT32, CLG_FLOAT32, &s), CLG_ERROR_INVALID_MODEL,
                 "'max_map' is 0");
    assert_error(load_reader(word_vectorizer(), CLG_FLOAT32, CLG_FLOAT32, CLG_FLOAT32, &s),
                 CLG_ERROR_UNSUPPORTED_DTYPE, "keys are of element type 1");
    assert_ok(load_reader(word_vectorizer(), CLG_STRING, CLG_FLOAT32, CLG_FLOAT32, &s));
    assert_ok(clg_value_create_map(keys, values, &map));
    assert_error(clg_session_set_input(s, "x", map), CLG_ERROR_UNSUPPORTED_DTYPE,
                 "keys of string in the model, int64 was given");
    assert_error(clg_session_set_input(s, "x", values), CLG_ERROR_INVALID_ARGUMENT, "takes a map");
    clg_value_free(map);
    assert_ok(clg_value_create_map(keys, keys, &map));
    assert_error(clg_session_set_input(s, "x", map), CLG_ERROR_UNSUPPORTED_DTYPE, "keys");
    clg_value_free(map);
    clg_value_free(keys);
    clg_value_free(values);
    clg_session_free(s);
}

TEST_GROUP(open_context, close_host_context)
