/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the reader of protobuf's wire format: field types, packed and repeated numbers, damaged and
 * random input.
 */
#include "support/unit.h"

#include "base/wire/wire.h"

#include <stdlib.h>
#include <string.h>

/* Reads a field; if that succeeds, checks that no bytes follow it. */
static clg_status only_field(const char *bytes, size_t n, wire_field *out_field)
{
    wire_cursor c = wire_open(bytes, n);
    clg_status status = wire_next(&c, out_field);
    if (status == CLG_OK) assert_true(wire_at_end(&c));
    return status;
}
#define FIELD(bytes, out_field) only_field(bytes, sizeof(bytes) - 1, out_field)

TEST(wire__empty_is_at_its_end)
{
    wire_cursor c = wire_open(NULL, 0);
    assert_true(wire_at_end(&c));
}

TEST(wire__reads_each_type)
{
    wire_field f;
    int64_t i;
    float x;
    wire_bytes b;
    assert_ok(FIELD("\x08\x96\x01", &f)); /* 150, the example of protobuf's encoding guide */
    assert_int_equal(f.number, 1);
    assert_ok(wire_get_int(&f, &i));
    assert_int_equal(i, 150);
    assert_ok(FIELD("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", &f));
    assert_ok(wire_get_int(&f, &i));
    assert_true(i == -1);
    assert_ok(FIELD("\x1d\x00\x00\xc0\x3f", &f));
    assert_ok(wire_get_float(&f, &x));
    assert_true(x == 1.5f);
    assert_ok(FIELD("\x21\x01\x02\x03\x04\x05\x06\x07\x08", &f));
    assert_true(f.value == 0x0807060504030201ull);
    assert_ok(FIELD("\x12\x07testing", &f));
    assert_ok(wire_get_bytes(&f, &b));
    assert_true(wire_bytes_equal(b, "testing"));
    assert_false(wire_bytes_equal(b, "test"));
    assert_ok(FIELD("\x12\x00", &f));
    assert_ok(wire_get_bytes(&f, &b));
    assert_true(wire_bytes_equal(b, ""));
    /* The largest field number, and a length padded with zeros. */
    assert_ok(FIELD("\xf8\xff\xff\xff\x0f\x01", &f));
    assert_int_equal(f.number, 536870911);
    assert_ok(FIELD("\x12\x81\x80\x80\x00z", &f));
    assert_int_equal(f.size_bytes, 1);
}

TEST(wire__refuses_what_is_broken)
{
    wire_field f;
    assert_error(FIELD("\x08", &f), CLG_ERROR_INVALID_MODEL, "truncated at byte 1");
    assert_error(FIELD("\x80", &f), CLG_ERROR_INVALID_MODEL, "truncated at byte 0");
    assert_error(FIELD("\x00\x01", &f), CLG_ERROR_INVALID_MODEL, "field number");
    assert_error(FIELD("\x80\x80\x80\x80\x10\x01", &f), CLG_ERROR_INVALID_MODEL, "field number");
    assert_error(FIELD("\x0b", &f), CLG_ERROR_INVALID_MODEL, "group");
    assert_error(FIELD("\x0c", &f), CLG_ERROR_INVALID_MODEL, "group");
    assert_error(FIELD("\x0e", &f), CLG_ERROR_INVALID_MODEL, "wire type");
    assert_error(FIELD("\x0f", &f), CLG_ERROR_INVALID_MODEL, "wire type");
    assert_error(FIELD("\x0d\x00\x00\x00", &f), CLG_ERROR_INVALID_MODEL, "truncated");
    assert_error(FIELD("\x09\x00\x00\x00\x00\x00\x00\x00", &f), CLG_ERROR_INVALID_MODEL,
                 "truncated");
    assert_error(FIELD("\x12\x03\x61\x62", &f), CLG_ERROR_INVALID_MODEL,
                 "length beyond the end at byte 0");
    assert_error(FIELD("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01z", &f),
                 CLG_ERROR_INVALID_MODEL, "length");
    assert_error(FIELD("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", &f), CLG_ERROR_INVALID_MODEL,
                 "64 bits");
    assert_error(FIELD("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", &f),
                 CLG_ERROR_INVALID_MODEL, "64 bits");
}

TEST(wire__types_must_fit)
{
    wire_field f;
    int64_t i;
    float x;
    wire_bytes b;
    wire_cursor c = wire_open("\x08\x01", 2), sub;
    assert_ok(wire_next(&c, &f));
    assert_error(wire_get_bytes(&f, &b), CLG_ERROR_INVALID_MODEL,
                 "field 1 at byte 0 has wire type 0 in place of 2");
    assert_int_equal(b.size_bytes, 0);
    assert_error(wire_get_message(&c, &f, &sub), CLG_ERROR_INVALID_MODEL, "wire type");
    assert_true(wire_at_end(&sub));
    assert_error(wire_get_float(&f, &x), CLG_ERROR_INVALID_MODEL, "wire type");
    assert_error(wire_get_elements(&c, &f, WIRE_FIXED32, &sub), CLG_ERROR_INVALID_MODEL,
                 "wire type");
    assert_ok(FIELD("\x12\x01z", &f));
    assert_error(wire_get_int(&f, &i), CLG_ERROR_INVALID_MODEL, "wire type");
}

TEST(wire__messages_keep_offsets_of_the_file)
{
    static const char bytes[] = "\x08\x01\x12\x03\x08\x02\x80";
    wire_cursor c = wire_open(bytes, sizeof bytes - 1), sub;
    wire_field f;
    assert_ok(wire_next(&c, &f));
    assert_ok(wire_next(&c, &f));
    assert_true(wire_at_end(&c));
    assert_ok(wire_get_message(&c, &f, &sub));
    assert_ok(wire_next(&sub, &f));
    assert_int_equal(f.offset, 4);
    assert_error(wire_next(&sub, &f), CLG_ERROR_INVALID_MODEL, "at byte 6");
}

TEST(wire__repeated_numbers_packed_and_not)
{
    /* Field 1: varints 3 and 270 packed, then 5 alone. Field 2: floats 1 packed and 2 alone. */
    static const char bytes[] =
        "\x0a\x03\x03\x8e\x02\x08\x05\x12\x04\x00\x00\x80\x3f\x15\x00\x00\x00\x40";
    wire_cursor c = wire_open(bytes, sizeof bytes - 1);
    uint64_t sum = 0;
    size_t n = 0, n_floats = 0;
    while (!wire_at_end(&c)) {
        wire_field f;
        wire_cursor elements;
        assert_ok(wire_next(&c, &f));
        wire_type type = f.number == 1 ? WIRE_VARINT : WIRE_FIXED32;
        assert_ok(wire_get_elements(&c, &f, type, &elements));
        *(f.number == 1 ? &n : &n_floats) += wire_n_elements(&elements, type);
        while (!wire_at_end(&elements)) {
            uint64_t value = 0;
            uint32_t bits = 0;
            if (f.number == 1) {
                assert_ok(wire_next_varint(&elements, &value));
            } else {
                assert_ok(wire_next_fixed32(&elements, &bits));
            }
            sum += value + (bits >> 20);
        }
    }
    assert_int_equal(n, 3);
    assert_int_equal(n_floats, 2);
    assert_int_equal(sum, 3 + 270 + 5 + 0x3f8 + 0x400);

    wire_cursor truncated = wire_open("\x01\x80", 2), odd = wire_open("\x00\x00\x80\x3f\x00", 5);
    uint64_t value;
    assert_ok(wire_next_varint(&truncated, &value));
    assert_error(wire_next_varint(&truncated, &value), CLG_ERROR_INVALID_MODEL, "truncated");
    uint32_t bits;
    assert_ok(wire_next_fixed32(&odd, &bits));
    assert_error(wire_next_fixed32(&odd, &bits), CLG_ERROR_INVALID_MODEL, "truncated");
    truncated = wire_open("\x01\x02\x03", 3);
    assert_error(wire_next_fixed64(&truncated, &value), CLG_ERROR_INVALID_MODEL, "truncated");
}

/* Checks that parsing random bytes reaches the end or fails, and that no field extends beyond the
 * end. */
TEST(wire__random_bytes_are_survived)
{
    uint32_t seed = 12345;
    for (int round = 0; round < 20000; round++) {
        size_t n = (size_t)round % 40;
        uint8_t *bytes = malloc(n + 1); /* of exact size, for the address sanitizer */
        bytes = realloc(bytes, n > 0 ? n : 1);
        for (size_t i = 0; i < n; i++) {
            seed = seed * 1664525u + 1013904223u;
            bytes[i] = (uint8_t)(seed >> 24);
        }
        wire_cursor c = wire_open(bytes, n);
        clg_status status = CLG_OK;
        while (status == CLG_OK && !wire_at_end(&c)) {
            wire_field f;
            const uint8_t *before = c.at;
            status = wire_next(&c, &f);
            assert_true(c.at > before && c.at <= c.end);
            if (status == CLG_OK) assert_true(f.data + f.size_bytes <= c.end);
        }
        free(bytes);
    }
}
