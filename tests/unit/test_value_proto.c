/* SPDX-License-Identifier: Apache-2.0
 *
 * SequenceProto and OptionalProto: what they hold, and what is damaged in them.
 */
#include "support/unit.h"

#include "support/bytes.h"
#include "support/onnx_writer.h"
#include "tensor/value_proto.h"

#include <string.h>

enum { TENSOR = 3, SEQUENCE = 5, MAP = 6, OPTIONAL = 7 };

static ow_bytes two_floats(float first)
{
    const float data[] = {first, first + 1};
    return ow_tensor_raw("", CLG_FLOAT32, 1, (const int64_t[]){2}, data, sizeof data);
}

/* An optional of a sequence of two tensors. */
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

static void value_proto__nested(void **state)
{
    (void)state;
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

static void value_proto__empty(void **state)
{
    (void)state;
    clg_value *v;
    ow_bytes b = {0};
    for (int kind = CLG_VALUE_SEQUENCE; kind <= CLG_VALUE_OPTIONAL; kind++) {
        assert_ok(read(&b, kind, &v));
        assert_int_equal(v->kind, kind);
        assert_int_equal(value_length(v), 0);
        value_free(v);
    }
}

static void value_proto__refuses_maps(void **state)
{
    (void)state;
    clg_value *v;
    ow_bytes b = {0};
    ow_put_message(&b, MAP, (ow_bytes){0});
    assert_error(read(&b, CLG_VALUE_SEQUENCE, &v), CLG_ERROR_UNSUPPORTED_DTYPE, "maps");
    assert_null(v);
    assert_error(read(&b, CLG_VALUE_MAP, &v), CLG_ERROR_UNSUPPORTED_DTYPE, "maps");
    ow_free(&b);
}

static void value_proto__refuses_deep_ones(void **state)
{
    (void)state;
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

/* Whatever comes: a value or an error, nothing kept, nothing read beyond the end. */
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

static void value_proto__survives_damage(void **state)
{
    (void)state;
    ow_bytes b = nested();
    bytes_each_prefix(b.data, b.n, survive, NULL);
    bytes_each_damage(b.data, b.n, survive, NULL);
    ow_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(value_proto__nested),
        cmocka_unit_test(value_proto__empty),
        cmocka_unit_test(value_proto__refuses_maps),
        cmocka_unit_test(value_proto__refuses_deep_ones),
        cmocka_unit_test(value_proto__survives_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
