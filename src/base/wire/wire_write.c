/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements wire_write.h. The encoded size is counted from the first field on, so that a message
 * that is too large is refused before memory is used for it.
 */
#include "base/wire/wire_write.h"

#include "base/checked.h"
#include "base/memory.h"
#include "base/wire/wire.h"

#include <string.h>

#define VARINT_MAX_BYTES 10

void wire_writer_init(wire_writer *w) { *w = (wire_writer){0}; }

void wire_writer_deinit(wire_writer *w)
{
    memory_free(w->open);
    memory_free(w->inserts);
    memory_free(w->content);
    wire_writer_init(w);
}

void wire_fail(wire_writer *w, clg_status status)
{
    if (w->status == CLG_OK) w->status = status;
}

static clg_status refuse_size(void)
{
    (void)error_set(CLG_ERROR_INVALID_ARGUMENT,
                    "a protobuf message of more than %llu bytes (2 GiB) is not possible",
                    (unsigned long long)WIRE_MAX_BYTES);
    error_hint("store the weights in a file of external data");
    return CLG_ERROR_INVALID_ARGUMENT;
}

/* Counts bytes of the encoded message; returns false after a failure. */
static bool count(wire_writer *w, uint64_t n_bytes)
{
    if (w->status != CLG_OK) return false;
    if (n_bytes > WIRE_MAX_BYTES - w->size_bytes) {
        wire_fail(w, refuse_size());
    } else {
        w->size_bytes += n_bytes;
    }
    return w->status == CLG_OK;
}

static void append(wire_writer *w, const void *data, size_t size_bytes)
{
    if (!count(w, size_bytes) || size_bytes == 0) return;
    wire_fail(w, MEMORY_RESERVE(w->content, w->content_capacity, w->content_bytes + size_bytes));
    if (w->status != CLG_OK) return;
    memcpy(w->content + w->content_bytes, data, size_bytes);
    w->content_bytes += size_bytes;
}

static void append_insert(wire_writer *w, uint64_t size_bytes, const void *borrowed)
{
    wire_fail(w, MEMORY_RESERVE(w->inserts, w->inserts_capacity, w->n_inserts + 1));
    if (w->status != CLG_OK) return;
    w->inserts[w->n_inserts++] =
        (wire_insert){.at = w->content_bytes, .size_bytes = size_bytes, .borrowed = borrowed};
}

/* Encodes a varint; returns its size. */
static size_t encode(uint64_t value, uint8_t out[VARINT_MAX_BYTES])
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) out[n++] = (uint8_t)(value | 0x80);
    out[n++] = (uint8_t)value;
    return n;
}

static size_t varint_bytes(uint64_t value)
{
    uint8_t bytes[VARINT_MAX_BYTES];
    return encode(value, bytes);
}

static void append_varint(wire_writer *w, uint64_t value)
{
    uint8_t bytes[VARINT_MAX_BYTES];
    append(w, bytes, encode(value, bytes));
}

static void append_tag(wire_writer *w, uint32_t number, wire_type type)
{
    append_varint(w, (uint64_t)number << 3 | (uint64_t)type);
}

/* Appends the n_bytes least significant bytes of a value, little-endian. */
static void append_fixed(wire_writer *w, uint64_t value, size_t n_bytes)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < n_bytes; i++) bytes[i] = (uint8_t)(value >> (8 * i));
    append(w, bytes, n_bytes);
}

static void append_float(wire_writer *w, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    append_fixed(w, bits, sizeof bits);
}

static void append_double(wire_writer *w, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    append_fixed(w, bits, sizeof bits);
}

void wire_put_int(wire_writer *w, uint32_t number, int64_t value)
{
    append_tag(w, number, WIRE_VARINT);
    append_varint(w, (uint64_t)value);
}

void wire_put_float(wire_writer *w, uint32_t number, float value)
{
    append_tag(w, number, WIRE_FIXED32);
    append_float(w, value);
}

void wire_put_double(wire_writer *w, uint32_t number, double value)
{
    append_tag(w, number, WIRE_FIXED64);
    append_double(w, value);
}

void wire_put_bytes(wire_writer *w, uint32_t number, const void *data, size_t size_bytes)
{
    append_tag(w, number, WIRE_BYTES);
    append_varint(w, size_bytes);
    append(w, data, size_bytes);
}

void wire_put_string(wire_writer *w, uint32_t number, const char *string)
{
    wire_put_bytes(w, number, string, strlen(string));
}

void wire_put_borrowed(wire_writer *w, uint32_t number, const void *data, size_t size_bytes)
{
    append_tag(w, number, WIRE_BYTES);
    append_varint(w, size_bytes);
    if (count(w, size_bytes) && size_bytes > 0) append_insert(w, size_bytes, data);
}

void wire_put_encoded(wire_writer *w, const void *data, size_t size_bytes)
{
    append(w, data, size_bytes);
}

/* Appends the tag and the length of n packed elements of a fixed size; returns false if there are
 * none, or after a failure. */
static bool begin_packed(wire_writer *w, uint32_t number, size_t n, size_t element_bytes)
{
    size_t size_bytes;
    if (n == 0 || w->status != CLG_OK) return false;
    if (!checked_mul_size(n, element_bytes, &size_bytes)) {
        wire_fail(w, refuse_size());
        return false;
    }
    append_tag(w, number, WIRE_BYTES);
    append_varint(w, size_bytes);
    return w->status == CLG_OK;
}

void wire_put_packed_ints(wire_writer *w, uint32_t number, const int64_t *values, size_t n)
{
    if (n == 0) return;
    uint64_t size_bytes = 0;
    for (size_t i = 0; i < n; i++) size_bytes += varint_bytes((uint64_t)values[i]);
    append_tag(w, number, WIRE_BYTES);
    append_varint(w, size_bytes);
    for (size_t i = 0; i < n && w->status == CLG_OK; i++) append_varint(w, (uint64_t)values[i]);
}

void wire_put_packed_floats(wire_writer *w, uint32_t number, const float *values, size_t n)
{
    if (!begin_packed(w, number, n, sizeof(float))) return;
    for (size_t i = 0; i < n && w->status == CLG_OK; i++) append_float(w, values[i]);
}

void wire_put_packed_doubles(wire_writer *w, uint32_t number, const double *values, size_t n)
{
    if (!begin_packed(w, number, n, sizeof(double))) return;
    for (size_t i = 0; i < n && w->status == CLG_OK; i++) append_double(w, values[i]);
}

void wire_begin(wire_writer *w, uint32_t number)
{
    append_tag(w, number, WIRE_BYTES);
    if (w->status != CLG_OK) return;
    if (w->n_open == WIRE_MAX_NESTING) {
        wire_fail(w, error_set(CLG_ERROR_INVALID_ARGUMENT, "messages are nested deeper than %d",
                               WIRE_MAX_NESTING));
        return;
    }
    wire_fail(w, MEMORY_RESERVE(w->open, w->open_capacity, w->n_open + 1));
    const size_t insert = w->n_inserts;
    if (w->status == CLG_OK) append_insert(w, 0, NULL);
    if (w->status != CLG_OK) return;
    w->open[w->n_open++] = (wire_open_message){.insert = insert, .start = w->size_bytes};
}

void wire_end(wire_writer *w)
{
    if (w->status != CLG_OK) return;
    if (w->n_open == 0) {
        wire_fail(w, error_set(CLG_ERROR_INTERNAL, "a message ends that was not begun"));
        return;
    }
    const wire_open_message *message = &w->open[--w->n_open];
    const uint64_t size_bytes = w->size_bytes - message->start;
    w->inserts[message->insert].size_bytes = size_bytes;
    (void)count(w, varint_bytes(size_bytes));
}

/* ---- handing over ---------------------------------------------------------------------------- */

clg_status wire_writer_size(const wire_writer *w, size_t *out_size_bytes)
{
    *out_size_bytes = 0;
    if (w->status != CLG_OK) return w->status;
    if (w->n_open > 0) return error_set(CLG_ERROR_INTERNAL, "%zu messages have no end", w->n_open);
    *out_size_bytes = (size_t)w->size_bytes;
    return CLG_OK;
}

static clg_status send_insert(const wire_insert *insert, wire_sink sink, void *user)
{
    uint8_t length[VARINT_MAX_BYTES];
    if (insert->borrowed) return sink(user, insert->borrowed, (size_t)insert->size_bytes);
    return sink(user, length, encode(insert->size_bytes, length));
}

clg_status wire_writer_send(const wire_writer *w, wire_sink sink, void *user)
{
    size_t size_bytes, done = 0;
    CLG_TRY(wire_writer_size(w, &size_bytes));
    for (size_t i = 0; i < w->n_inserts; i++) {
        const wire_insert *insert = &w->inserts[i];
        if (insert->at > done) CLG_TRY(sink(user, w->content + done, insert->at - done));
        done = insert->at;
        CLG_TRY(send_insert(insert, sink, user));
    }
    return w->content_bytes > done ? sink(user, w->content + done, w->content_bytes - done)
                                   : CLG_OK;
}

static clg_status copy_piece(void *user, const void *data, size_t size_bytes)
{
    char **at = user;
    memcpy(*at, data, size_bytes);
    *at += size_bytes;
    return CLG_OK;
}

clg_status wire_writer_take(const wire_writer *w, void **out_data, size_t *out_size_bytes)
{
    size_t size_bytes;
    *out_data = NULL;
    *out_size_bytes = 0;
    CLG_TRY(wire_writer_size(w, &size_bytes));
    char *data = memory_alloc(size_bytes), *at = data;
    if (!data) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const clg_status status = wire_writer_send(w, copy_piece, &at);
    if (status != CLG_OK) {
        memory_free(data);
        return status;
    }
    *out_data = data;
    *out_size_bytes = size_bytes;
    return CLG_OK;
}
