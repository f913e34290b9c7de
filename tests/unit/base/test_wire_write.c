/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the writer of protobuf's wire format: the bytes of protobuf's own encoding, nested messages
 * of every length read back by wire.h, sizes at the limit, and failures that are remembered.
 */
#include "support/unit.h"

#include "base/memory.h"
#include "base/wire/wire.h"
#include "base/wire/wire_write.h"
#include "support/fakes/failing_alloc.h"

#include <stdlib.h>
#include <string.h>

/* Checks that the writer's message is exactly these bytes, by wire_writer_take. */
static void assert_bytes(const wire_writer *w, const char *expected, size_t n_expected)
{
    void *data;
    size_t size_bytes;
    assert_ok(wire_writer_take(w, &data, &size_bytes));
    assert_int_equal(size_bytes, n_expected);
    assert_memory_equal(data, expected, n_expected);
    memory_free(data);
}
#define ASSERT_BYTES(w, bytes) assert_bytes((w), bytes, sizeof(bytes) - 1)

TEST(wire_write__writes_protobufs_encoding)
{
    static const int64_t ints[] = {3, 270, 86942}; /* the example of protobuf's encoding guide */
    wire_writer w;
    wire_writer_init(&w);
    wire_put_int(&w, 1, 150);
    wire_put_string(&w, 2, "testing");
    wire_begin(&w, 3);
    wire_put_int(&w, 1, 150);
    wire_end(&w);
    wire_put_packed_ints(&w, 6, ints, 3);
    wire_put_packed_ints(&w, 7, ints, 0);
    ASSERT_BYTES(&w, "\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01\x32\x06\x03\x8e\x02\x9e\xa7"
                     "\x05");
    wire_writer_deinit(&w);
    wire_put_int(&w, 536870911, -1);
    wire_put_float(&w, 3, 1.5f);
    wire_put_double(&w, 4, 1.0);
    wire_put_bytes(&w, 2, NULL, 0);
    wire_begin(&w, 5);
    wire_end(&w);
    ASSERT_BYTES(&w, "\xf8\xff\xff\xff\x0f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                     "\x1d\x00\x00\xc0\x3f\x21\x00\x00\x00\x00\x00\x00\xf0\x3f\x12\x00\x2a\x00");
    wire_writer_deinit(&w);
    wire_put_packed_floats(&w, 1, (const float[]){1.0f, -2.0f}, 2);
    wire_put_packed_doubles(&w, 2, (const double[]){1.0}, 1);
    wire_put_packed_doubles(&w, 2, NULL, 0);
    wire_put_encoded(&w, "\x18\x07", 2);
    ASSERT_BYTES(&w, "\x0a\x08\x00\x00\x80\x3f\x00\x00\x00\xc0\x12\x08\x00\x00\x00\x00\x00\x00\xf0"
                     "\x3f\x18\x07");
    wire_writer_deinit(&w);
    ASSERT_BYTES(&w, "");
}

/* Writes `depth` nested messages, each with n_bytes before and, borrowed, after the one inside. */
static void put_nested(wire_writer *w, const char *bytes, size_t n_bytes, int depth)
{
    wire_put_bytes(w, 1, bytes, n_bytes);
    if (depth > 0) {
        wire_begin(w, 2);
        put_nested(w, bytes, n_bytes, depth - 1);
        wire_end(w);
    }
    wire_put_borrowed(w, 3, bytes, n_bytes);
}

static void check_bytes(const wire_field *field, const char *bytes, size_t n_bytes)
{
    wire_bytes read;
    assert_ok(wire_get_bytes(field, &read));
    assert_int_equal(read.size_bytes, n_bytes);
    if (n_bytes > 0) assert_memory_equal(read.data, bytes, n_bytes);
}

static void check_nested(wire_cursor c, const char *bytes, size_t n_bytes, int depth)
{
    wire_field field;
    assert_ok(wire_next(&c, &field));
    assert_int_equal(field.number, 1);
    check_bytes(&field, bytes, n_bytes);
    if (depth > 0) {
        wire_cursor inner;
        assert_ok(wire_next(&c, &field));
        assert_int_equal(field.number, 2);
        assert_ok(wire_get_message(&c, &field, &inner));
        check_nested(inner, bytes, n_bytes, depth - 1);
    }
    assert_ok(wire_next(&c, &field));
    assert_int_equal(field.number, 3);
    check_bytes(&field, bytes, n_bytes);
    assert_true(wire_at_end(&c));
}

/* Lengths around each size of a varint, at several depths; every length is the shortest: the total
 * is that of the sum. */
TEST(wire_write__nested_messages_are_read_back)
{
    static const size_t sizes[] = {0,   1,   60,   61,   62,    63,    64,
                                   127, 128, 8188, 8192, 16383, 16384, 20000};
    char *bytes = malloc(20000);
    for (size_t i = 0; i < 20000; i++) bytes[i] = (char)(i * 7 + i / 251);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int depth = 0; depth <= 90; depth = depth * 3 + 1) {
            wire_writer w;
            void *data;
            size_t size_bytes, announced;
            wire_writer_init(&w);
            put_nested(&w, bytes, sizes[i], depth);
            assert_ok(wire_writer_size(&w, &announced));
            assert_ok(wire_writer_take(&w, &data, &size_bytes));
            assert_int_equal(size_bytes, announced);
            check_nested(wire_open(data, size_bytes), bytes, sizes[i], depth);
            memory_free(data);
            wire_writer_deinit(&w);
        }
    }
    free(bytes);
}

/* A sink that joins pieces and fails at the n-th. */
typedef struct pieces {
    char data[256];
    size_t size_bytes;
    int n, fail_at;
} pieces;

static clg_status join(void *user, const void *data, size_t size_bytes)
{
    pieces *p = user;
    assert_true(size_bytes > 0 && p->size_bytes + size_bytes <= sizeof p->data);
    if (++p->n == p->fail_at) return error_set(CLG_ERROR_IO, "the disk is full");
    memcpy(p->data + p->size_bytes, data, size_bytes);
    p->size_bytes += size_bytes;
    return CLG_OK;
}

TEST(wire_write__sends_pieces_and_passes_errors_on)
{
    wire_writer w;
    wire_writer_init(&w);
    put_nested(&w, "abcdefghij", 10, 3);
    void *data;
    size_t size_bytes;
    assert_ok(wire_writer_take(&w, &data, &size_bytes));
    pieces whole = {.fail_at = 0};
    assert_ok(wire_writer_send(&w, join, &whole));
    assert_int_equal(whole.size_bytes, size_bytes);
    assert_memory_equal(whole.data, data, size_bytes);
    for (int i = 1; i <= whole.n; i++) {
        pieces part = {.fail_at = i};
        assert_error(wire_writer_send(&w, join, &part), CLG_ERROR_IO, "the disk is full");
        assert_int_equal(part.n, i);
    }
    memory_free(data);
    wire_writer_deinit(&w);
}

/* Borrowed bytes are not read before they are handed over, so that a message of 2 GiB can be
 * counted without them. */
TEST(wire_write__messages_above_2_gib_are_refused)
{
    const char byte = 0;
    wire_writer w;
    size_t size_bytes;
    void *data;
    wire_writer_init(&w);
    wire_begin(&w, 1); /* tag and length: 6 bytes; inside, 6 for the tag and length of the bytes */
    wire_put_borrowed(&w, 9, &byte, WIRE_MAX_BYTES - 12);
    wire_end(&w);
    assert_ok(wire_writer_size(&w, &size_bytes));
    assert_int_equal(size_bytes, WIRE_MAX_BYTES);
    wire_put_bytes(&w, 2, NULL, 0);
    assert_error(wire_writer_size(&w, &size_bytes), CLG_ERROR_INVALID_ARGUMENT, "2 GiB");
    assert_int_equal(size_bytes, 0);
    assert_error(wire_writer_take(&w, &data, &size_bytes), CLG_ERROR_INVALID_ARGUMENT, "2 GiB");
    assert_null(data);
    wire_writer_deinit(&w);
    wire_begin(&w, 1);
    wire_put_borrowed(&w, 9, &byte, WIRE_MAX_BYTES - 11);
    wire_end(&w); /* only its length is too much */
    assert_error(wire_writer_size(&w, &size_bytes), CLG_ERROR_INVALID_ARGUMENT, "2 GiB");
    wire_writer_deinit(&w);
    wire_put_borrowed(&w, 9, &byte, SIZE_MAX);
    assert_error(wire_writer_size(&w, &size_bytes), CLG_ERROR_INVALID_ARGUMENT, "2 GiB");
    wire_writer_deinit(&w);
    wire_put_packed_doubles(&w, 9, (const double *)(const void *)&w, SIZE_MAX / 4);
    assert_error(wire_writer_size(&w, &size_bytes), CLG_ERROR_INVALID_ARGUMENT, "2 GiB");
    wire_writer_deinit(&w);
}

TEST(wire_write__failures_are_remembered)
{
    wire_writer w;
    size_t size_bytes;
    wire_writer_init(&w);
    wire_put_int(&w, 1, 1);
    wire_fail(&w, CLG_OK);
    ASSERT_BYTES(&w, "\x08\x01");
    wire_fail(&w, CLG_ERROR_DATA);
    wire_fail(&w, CLG_ERROR_IO);
    wire_end(&w);
    wire_begin(&w, 1);
    wire_put_int(&w, 1, 1);
    assert_int_equal(wire_writer_size(&w, &size_bytes), CLG_ERROR_DATA);
    wire_writer_deinit(&w);
    wire_begin(&w, 1);
    assert_error(wire_writer_size(&w, &size_bytes), CLG_ERROR_INTERNAL, "no end");
    wire_end(&w);
    assert_ok(wire_writer_size(&w, &size_bytes));
    wire_end(&w);
    assert_error(wire_writer_size(&w, &size_bytes), CLG_ERROR_INTERNAL, "not begun");
    wire_writer_deinit(&w);
    for (int i = 0; i <= WIRE_MAX_NESTING; i++) wire_begin(&w, 1);
    assert_error(wire_writer_size(&w, &size_bytes), CLG_ERROR_INVALID_ARGUMENT, "nested deeper");
    wire_writer_deinit(&w);
}

static clg_status write_and_take(void *user)
{
    wire_writer w;
    void *data;
    size_t size_bytes;
    wire_writer_init(&w);
    put_nested(&w, user, 100, 20);
    const clg_status status = wire_writer_take(&w, &data, &size_bytes);
    memory_free(data);
    wire_writer_deinit(&w);
    return status;
}

TEST(wire_write__failing_allocations)
{
    static char bytes[100];
    (void)fault_loop_alone(write_and_take, bytes);
}
