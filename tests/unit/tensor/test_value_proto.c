/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the reader of SequenceProto, OptionalProto and MapProto: valid and damaged messages.
 */
#include "support/unit.h"

#include "support/bytes.h"
#include "support/fixtures/onnx_writer.h"
#include "tensor/formats/value_proto.h"

#include <string.h>

enum { TENSOR = 3, SEQUENCE = 5, MAP = 6, OPTIONAL = 7 };

static ow_bytes two_floats(float first)
{
    const float data[] = {first, first + 1};
    return ow_tensor_raw("", CLG_FLOAT32, 1, (const int64_t[]){2}, data, sizeof data);
}

/* Writes an optional of a sequence of two tensors. */
static ow_bytes nested(void)
{
    ow_bytes sequence = {0}, optional = {0};
    ow_put_string(&sequence, 1, "a name");
    ow_put_int(&sequence, 2, 1);
    ow_put_message(&sequence, TENSOR, two_floats(1));
    ow_put_message(&sequence, TENSOR, two_floats(5));
    ow_put_message(&optional, SEQUENCE, sequence);
    return optional;
}

static clg_status read(const ow_bytes *b, clg_value_kind kind, clg_value **out_value)
{
    wire_cursor c = wire_open(b->data, b->n);
    return value_proto_read(&c, kind, out_value);
}

TEST(value_proto__nested)
{
    clg_value *v;
    ow_bytes b = nested();
    assert_ok(read(&b, CLG_VALUE_OPTIONAL, &v));
    assert_int_equal(v->kind, CLG_VALUE_OPTIONAL);
    assert_int_equal(v->dtype, CLG_FLOAT32);
    assert_int_equal(value_length(v), 1);
    const clg_value *sequence = value_get(v, 0);
    assert_int_equal(sequence->kind, CLG_VALUE_SEQUENCE);
    assert_int_equal(value_length(sequence), 2);
    assert_true(tensor_get_float(value_get(sequence, 1)->host, 1) == 6);
    value_free(v);
    ow_free(&b);
}

TEST(value_proto__empty)
{
    clg_value *v;
    ow_bytes b = {0};
    for (int kind = CLG_VALUE_SEQUENCE; kind <= CLG_VALUE_OPTIONAL; kind++) {
        assert_ok(read(&b, kind, &v));
        assert_int_equal(v->kind, kind);
        assert_int_equal(value_length(v), 0);
        value_free(v);
    }
}

/* ---- maps ------------------------------------------------------------------------------------ */

enum { KEY_TYPE = 2, INT_KEYS = 3, STRING_KEYS = 4, VALUES = 5 };

/* Writes a sequence of n scalars: 0.5, 1.5, ... */
static ow_bytes scalars(size_t n)
{
    ow_bytes sequence = {0};
    for (size_t i = 0; i < n; i++) {
        const float x = (float)i + 0.5f;
        ow_put_message(&sequence, TENSOR, ow_tensor_raw("", CLG_FLOAT32, 0, NULL, &x, sizeof x));
    }
    return sequence;
}

static ow_bytes int_map(size_t n_keys, size_t n_values)
{
    const int64_t keys[] = {4, -7, 1000000};
    ow_bytes map = {0};
    ow_put_int(&map, KEY_TYPE, CLG_INT64);
    ow_put_packed_ints(&map, INT_KEYS, n_keys, keys);
    ow_put_message(&map, VALUES, scalars(n_values));
    return map;
}

static ow_bytes word_map(void)
{
    ow_bytes map = {0};
    ow_put_message(&map, VALUES, scalars(2)); /* in any order */
    ow_put_string(&map, STRING_KEYS, "yes");
    ow_put_int(&map, KEY_TYPE, CLG_STRING);
    ow_put_string(&map, STRING_KEYS, "");
    return map;
}

TEST(value_proto__maps)
{
    clg_value *v;
    ow_bytes b = int_map(3, 3), list = {0};
    assert_ok(read(&b, CLG_VALUE_MAP, &v));
    assert_int_equal(v->kind, CLG_VALUE_MAP);
    assert_int_equal(v->dtype, CLG_FLOAT32);
    assert_int_equal(tensor_get_int(value_get(v, VALUE_KEYS)->host, 1), -7);
    assert_true(tensor_get_float(value_get(v, VALUE_VALUES)->host, 2) == 2.5);
    value_free(v);
    ow_put_message(&list, MAP, b);
    ow_put_message(&list, MAP, word_map());
    assert_ok(read(&list, CLG_VALUE_SEQUENCE, &v));
    assert_int_equal(value_length(v), 2);
    assert_int_equal(v->dtype, CLG_FLOAT32);
    const clg_value *words = value_get(value_get(v, 1), VALUE_KEYS);
    assert_int_equal(words->dtype, CLG_STRING);
    assert_string_equal(tensor_get_string(words->host, 0), "yes");
    assert_string_equal(tensor_get_string(words->host, 1), "");
    value_free(v);
    ow_free(&list);
    b = int_map(0, 0);
    assert_ok(read(&b, CLG_VALUE_MAP, &v));
    assert_int_equal(value_get(v, VALUE_KEYS)->n_elements, 0);
    value_free(v);
    ow_free(&b);
}

static void expect_refused(ow_bytes map, clg_status status, const char *words)
{
    clg_value *v;
    ow_bytes list = {0};
    ow_put_message(&list, MAP, map);
    assert_error(read(&list, CLG_VALUE_SEQUENCE, &v), status, words);
    assert_null(v);
    ow_free(&list);
}

TEST(value_proto__refuses_bad_maps)
{
    expect_refused(int_map(3, 2), CLG_ERROR_INVALID_MODEL, "3 keys and 2 values");
    expect_refused(int_map(1, 2), CLG_ERROR_INVALID_MODEL, "1 keys and 2 values");
    ow_bytes b = {0};
    ow_put_packed_ints(&b, INT_KEYS, 2, (const int64_t[]){1, 2});
    ow_put_int(&b, KEY_TYPE, CLG_INT64);
    expect_refused(b, CLG_ERROR_INVALID_MODEL, "2 keys and 0 values");
    expect_refused((ow_bytes){0}, CLG_ERROR_UNSUPPORTED_DTYPE, "element type 0");
    b = int_map(2, 2);
    ow_put_int(&b, KEY_TYPE, CLG_FLOAT32);
    expect_refused(b, CLG_ERROR_UNSUPPORTED_DTYPE, "element type 1;");
    b = int_map(2, 2);
    ow_put_int(&b, KEY_TYPE, CLG_STRING);
    expect_refused(b, CLG_ERROR_INVALID_MODEL, "key type");
    b = int_map(2, 2);
    ow_put_string(&b, STRING_KEYS, "yes");
    expect_refused(b, CLG_ERROR_INVALID_MODEL, "key type");
    b = word_map();
    ow_put_bytes(&b, STRING_KEYS, "a\0b", 3);
    ow_bytes more = scalars(3);
    ow_put_message(&b, VALUES, more); /* a second field, which is ignored */
    expect_refused(b, CLG_ERROR_INVALID_MODEL, "3 keys and 2 values");
}

TEST(value_proto__refuses_maps_of_tensors)
{
    ow_bytes b = {0}, list = {0};
    ow_put_int(&b, KEY_TYPE, CLG_INT64);
    ow_put_int(&b, INT_KEYS, 5);
    ow_put_message(&list, TENSOR, two_floats(1));
    ow_put_message(&b, VALUES, list);
    expect_refused(b, CLG_ERROR_UNSUPPORTED_DTYPE, "single");
    b = (ow_bytes){0};
    list = scalars(1);
    const int64_t number = 3;
    ow_put_message(&list, TENSOR, ow_tensor_raw("", CLG_INT64, 0, NULL, &number, sizeof number));
    ow_put_int(&b, KEY_TYPE, CLG_INT64);
    ow_put_packed_ints(&b, INT_KEYS, 2, (const int64_t[]){1, 2});
    ow_put_message(&b, VALUES, list);
    expect_refused(b, CLG_ERROR_UNSUPPORTED_DTYPE, "of one type");
    b = (ow_bytes){0};
    list = (ow_bytes){0};
    ow_put_message(&list, MAP, int_map(1, 1));
    ow_put_int(&b, KEY_TYPE, CLG_INT64);
    ow_put_int(&b, INT_KEYS, 5);
    ow_put_message(&b, VALUES, list);
    expect_refused(b, CLG_ERROR_UNSUPPORTED_DTYPE, "single");
}

/* ---- damage ---------------------------------------------------------------------------------- */

TEST(value_proto__refuses_deep_ones)
{
    clg_value *v;
    ow_bytes b = {0};
    for (int i = 0; i < 1000; i++) {
        ow_bytes outer = {0};
        ow_put_message(&outer, OPTIONAL, b);
        b = outer;
    }
    assert_error(read(&b, CLG_VALUE_OPTIONAL, &v), CLG_ERROR_INVALID_MODEL, "nested");
    ow_free(&b);
}

/* Reads damaged bytes: the result must be a value or an error. */
static void survive(void *user, const uint8_t *data, size_t n)
{
    (void)user;
    clg_value *v;
    wire_cursor c = wire_open(data, n);
    if (value_proto_read(&c, CLG_VALUE_OPTIONAL, &v) == CLG_OK)
        value_free(v);
    else
        assert_null(v);
}

TEST(value_proto__survives_damage)
{
    ow_bytes b = nested();
    bytes_each_prefix(b.data, b.n, survive, NULL);
    bytes_each_damage(b.data, b.n, survive, NULL);
    ow_free(&b);
    ow_put_message(&b, MAP, int_map(2, 2));
    bytes_each_prefix(b.data, b.n, survive, NULL);
    bytes_each_damage(b.data, b.n, survive, NULL);
    ow_free(&b);
    b = (ow_bytes){0};
    ow_put_message(&b, MAP, word_map());
    bytes_each_prefix(b.data, b.n, survive, NULL);
    bytes_each_damage(b.data, b.n, survive, NULL);
    ow_free(&b);
}
