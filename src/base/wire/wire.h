/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads protobuf's wire format from memory, without copies, allocation or recursion. Every length
 * is checked against the input; errors are CLG_ERROR_INVALID_MODEL with the byte offset in the
 * file. Callers that walk nested messages limit the depth.
 *
 *     wire_cursor c = wire_open(data, size_bytes);
 *     while (!wire_at_end(&c)) {
 *         wire_field field;
 *         CLG_TRY(wire_next(&c, &field));
 *         switch (field.number) { case 7: CLG_TRY(wire_get_message(&c, &field, &graph)); ... }
 *     }
 */
#ifndef CLG_BASE_WIRE_H
#define CLG_BASE_WIRE_H

#include "base/error.h"

typedef enum wire_type {
    WIRE_VARINT = 0,  /* int32, int64, uint32, uint64, bool, enums */
    WIRE_FIXED64 = 1, /* double */
    WIRE_BYTES = 2,   /* strings, bytes, messages, packed scalars */
    WIRE_FIXED32 = 5  /* float */
} wire_type;

/* A position in a message. */
typedef struct wire_cursor {
    const uint8_t *start; /* of the whole file, for offsets in error messages */
    const uint8_t *at, *end;
} wire_cursor;

/* One field of a message, as encoded. */
typedef struct wire_field {
    uint32_t number;
    wire_type type;
    uint64_t value;      /* VARINT, FIXED32 and FIXED64 */
    const uint8_t *data; /* the payload; for a scalar, its encoded bytes */
    size_t size_bytes;
    size_t offset; /* of the field in the file */
} wire_field;

/* Borrowed bytes of the file; not NUL-terminated. */
typedef struct wire_bytes {
    const char *data;
    size_t size_bytes;
} wire_bytes;

/* Returns a cursor at the start of a message, the whole file. */
wire_cursor wire_open(const void *data, size_t size_bytes);
bool wire_at_end(const wire_cursor *c);
/* Reads the next field and advances the cursor past it. The cursor must not be at the end. */
clg_status wire_next(wire_cursor *c, wire_field *out_field);

/* Store the field's value as the given type; CLG_ERROR_INVALID_MODEL if its wire type differs. */
clg_status wire_get_int(const wire_field *field, int64_t *out_value);
clg_status wire_get_float(const wire_field *field, float *out_value);
clg_status wire_get_bytes(const wire_field *field, wire_bytes *out_bytes);
clg_status wire_get_message(const wire_cursor *c, const wire_field *field,
                            wire_cursor *out_message);
bool wire_bytes_equal(wire_bytes bytes, const char *string);

/* Opens a cursor over the elements of a repeated scalar field, packed or not; element: their wire
 * type. */
clg_status wire_get_elements(const wire_cursor *c, const wire_field *field, wire_type element,
                             wire_cursor *out_elements);
/* Returns the number of elements. A truncated last element is not counted; reading it fails. */
size_t wire_n_elements(const wire_cursor *elements, wire_type element);
/* Read the next element of a cursor of wire_get_elements. */
clg_status wire_next_varint(wire_cursor *elements, uint64_t *out_value);
clg_status wire_next_fixed32(wire_cursor *elements, uint32_t *out_value);
clg_status wire_next_fixed64(wire_cursor *elements, uint64_t *out_value);

#endif
