/* SPDX-License-Identifier: Apache-2.0
 *
 * Mutates a protobuf message by fields, without its schema: removes, repeats, swaps or changes a
 * field at any depth, and writes the lengths of all messages around it anew. Bytes that parse as a
 * message are treated as one in most cases, else as bytes.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#define MAX_FIELDS 512
#define MAX_DEPTH 12

typedef struct field {
    size_t at, end;      /* the whole field */
    size_t payload;      /* offset of its value */
    unsigned wire_type;  /* 0 varint, 1 fixed64, 2 bytes, 5 fixed32 */
    unsigned tag_number; /* of the field */
} field;

static uint64_t random_next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static int read_varint(const uint8_t *data, size_t n, size_t *at, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && *at < n; shift += 7) {
        const uint8_t byte = data[(*at)++];
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return 1;
    }
    return 0;
}

static size_t write_varint(uint8_t *to, uint64_t value)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) to[n++] = (uint8_t)(value | 0x80);
    to[n++] = (uint8_t)value;
    return n;
}

/* Lists the fields of a message; returns 0 when the bytes are not one, or have too many. */
static size_t list_fields(const uint8_t *data, size_t n, field fields[MAX_FIELDS])
{
    size_t count = 0, at = 0;
    while (at < n) {
        uint64_t tag, length = 0;
        field f = {.at = at};
        if (count == MAX_FIELDS || !read_varint(data, n, &at, &tag) || tag >> 3 == 0) return 0;
        f.wire_type = (unsigned)(tag & 7);
        f.tag_number = (unsigned)(tag >> 3);
        f.payload = at;
        if (f.wire_type == 0) {
            if (!read_varint(data, n, &at, &length)) return 0;
        } else {
            if (f.wire_type == 2 && !read_varint(data, n, &at, &length)) return 0;
            if (f.wire_type == 1) length = 8;
            if (f.wire_type == 5) length = 4;
            if (f.wire_type != 1 && f.wire_type != 2 && f.wire_type != 5) return 0;
            f.payload = at;
            if (length > n - at) return 0;
            at += (size_t)length;
        }
        f.end = at;
        fields[count++] = f;
    }
    return count;
}

static uint64_t interesting(uint64_t *state)
{
    static const uint64_t values[] = {
        0,
        1,
        2,
        3,
        4,
        7,
        8,
        16,
        64,
        255,
        65536,
        0x7fffffff,
        0x80000000,
        0xffffffff,
        UINT64_MAX,
        UINT64_MAX - 1,
        (uint64_t)INT64_MAX,
        (uint64_t)INT64_MAX + 1,
    };
    const uint64_t r = random_next(state);
    return r % 3 ? values[r / 3 % (sizeof values / sizeof *values)] : random_next(state) % 32;
}

static size_t mutate(uint8_t *data, size_t n, size_t max, uint64_t *state, int depth);

/* Changes the value of a field that is stored in value[0..n), at most max bytes; returns its new
 * size. */
static size_t change(const field *f, uint8_t *value, size_t n, size_t max, uint64_t *state,
                     int depth)
{
    if (f->wire_type == 0) {
        uint8_t number[10];
        const size_t size = write_varint(number, interesting(state));
        if (size > max) return n;
        memcpy(value, number, size);
        return size;
    }
    if (f->wire_type == 2) {
        if (random_next(state) % 8 && depth < MAX_DEPTH) return mutate(value, n, max, state, depth);
        return max > 0 ? LLVMFuzzerMutate(value, n, max) : n;
    }
    (void)LLVMFuzzerMutate(value, n, n);
    return n;
}

/* Rewrites one field with a changed value, and what follows it. */
static size_t change_field(uint8_t *data, size_t n, size_t max, const field *f, uint64_t *state,
                           int depth)
{
    const size_t size = f->end - f->payload, others = n - (f->end - f->at);
    if (max < others + 24) return n;
    size_t room = max - others - 20;
    if (room < size) room = size;
    uint8_t *value = malloc(room), *rest = malloc(n - f->end + 1);
    size_t written = n;
    if (value && rest) {
        uint8_t head[20];
        memcpy(value, data + f->payload, size);
        const size_t new_size = change(f, value, size, room, state, depth);
        size_t n_head = write_varint(head, (uint64_t)f->tag_number << 3 | f->wire_type);
        if (f->wire_type == 2) n_head += write_varint(head + n_head, new_size);
        if (others + n_head + new_size <= max) {
            memcpy(rest, data + f->end, n - f->end);
            memcpy(data + f->at, head, n_head);
            memcpy(data + f->at + n_head, value, new_size);
            memcpy(data + f->at + n_head + new_size, rest, n - f->end);
            written = others + n_head + new_size;
        }
    }
    free(value);
    free(rest);
    return written;
}

/* Mutates one message in place; returns its new size. */
static size_t mutate(uint8_t *data, size_t n, size_t max, uint64_t *state, int depth)
{
    field *fields = malloc(MAX_FIELDS * sizeof *fields);
    const size_t count = fields ? list_fields(data, n, fields) : 0;
    if (count == 0) {
        free(fields);
        return max > 0 ? LLVMFuzzerMutate(data, n, max) : n;
    }
    const field f = fields[random_next(state) % count], g = fields[random_next(state) % count];
    const size_t size = f.end - f.at;
    free(fields);
    switch (random_next(state) % 12) {
    case 0: /* remove */ memmove(data + f.at, data + f.end, n - f.end); return n - size;
    case 1: /* repeat, after another field */
        if (size > max - n) return n;
        {
            uint8_t *copy = malloc(size);
            if (!copy) return n;
            memcpy(copy, data + f.at, size);
            memmove(data + g.end + size, data + g.end, n - g.end);
            memcpy(data + g.end, copy, size);
            free(copy);
        }
        return n + size;
    case 2: /* another field number, of one byte */
        if (f.tag_number < 16)
            data[f.at] = (uint8_t)((1 + random_next(state) % 15) << 3 | f.wire_type);
        return n;
    default: return change_field(data, n, max, &f, state, depth + 1);
    }
}

size_t fuzz_mutate_protobuf(uint8_t *data, size_t size_bytes, size_t max_bytes, unsigned seed)
{
    uint64_t state = seed;
    if (random_next(&state) % 16 == 0) return LLVMFuzzerMutate(data, size_bytes, max_bytes);
    for (uint64_t i = random_next(&state) % 3 + 1; i > 0; i--)
        size_bytes = mutate(data, size_bytes, max_bytes, &state, 0);
    return size_bytes;
}
