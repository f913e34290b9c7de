/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses protobuf's wire format (developers.google.com/protocol-buffers/docs/encoding), except
 * groups, which no ONNX message uses.
 */
#include "base/wire/wire.h"

#include <string.h>

wire_cursor wire_open(const void *data, size_t size_bytes)
{
    static const uint8_t nothing[1];
    const uint8_t *start = size_bytes > 0 ? data : nothing;
    return (wire_cursor){.start = start, .at = start, .end = start + size_bytes};
}

bool wire_at_end(const wire_cursor *c) { return c->at == c->end; }

static clg_status broken(const wire_cursor *c, const uint8_t *where, const char *what)
{
    return error_set(CLG_ERROR_INVALID_MODEL, "damaged file: %s at byte %zu", what,
                     (size_t)(where - c->start));
}

/* Reads a varint: at most ten bytes of 7 bits each, of which the tenth holds only bit 63. Accepts
 * encodings that are longer than needed, which writers use to reserve space. */
clg_status wire_next_varint(wire_cursor *elements, uint64_t *out_value)
{
    const uint8_t *first = elements->at;
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (elements->at == elements->end) return broken(elements, first, "a number is truncated");
        uint8_t byte = *elements->at++;
        if (shift == 63 && byte > 1)
            return broken(elements, first, "a number of more than 64 bits");
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out_value = value;
            return CLG_OK;
        }
    }
    return broken(elements, first, "a number of more than 64 bits");
}

static clg_status next_fixed(wire_cursor *c, size_t n_bytes, uint64_t *out_value)
{
    if ((size_t)(c->end - c->at) < n_bytes) return broken(c, c->at, "a number is truncated");
    uint64_t value = 0;
    for (size_t i = 0; i < n_bytes; i++) value |= (uint64_t)c->at[i] << (8 * i);
    c->at += n_bytes;
    *out_value = value;
    return CLG_OK;
}

clg_status wire_next_fixed32(wire_cursor *elements, uint32_t *out_value)
{
    uint64_t value = 0;
    CLG_TRY(next_fixed(elements, 4, &value));
    *out_value = (uint32_t)value;
    return CLG_OK;
}

clg_status wire_next_fixed64(wire_cursor *elements, uint64_t *out_value)
{
    return next_fixed(elements, 8, out_value);
}

clg_status wire_next(wire_cursor *c, wire_field *out_field)
{
    const uint8_t *first = c->at;
    uint64_t tag;
    *out_field = (wire_field){.offset = (size_t)(first - c->start)};
    CLG_TRY(wire_next_varint(c, &tag));
    if (tag > UINT32_MAX || tag >> 3 == 0) return broken(c, first, "an impossible field number");
    out_field->number = (uint32_t)(tag >> 3);
    out_field->data = c->at;
    switch (tag & 7) {
    case WIRE_VARINT:
        out_field->type = WIRE_VARINT;
        CLG_TRY(wire_next_varint(c, &out_field->value));
        break;
    case WIRE_FIXED64:
        out_field->type = WIRE_FIXED64;
        CLG_TRY(next_fixed(c, 8, &out_field->value));
        break;
    case WIRE_FIXED32:
        out_field->type = WIRE_FIXED32;
        CLG_TRY(next_fixed(c, 4, &out_field->value));
        break;
    case WIRE_BYTES: {
        uint64_t length;
        CLG_TRY(wire_next_varint(c, &length));
        if (length > (uint64_t)(c->end - c->at)) return broken(c, first, "a length beyond the end");
        out_field->type = WIRE_BYTES;
        out_field->data = c->at;
        c->at += (size_t)length;
        break;
    }
    case 3:
    case 4: return broken(c, first, "a group, which no ONNX message has,");
    default: return broken(c, first, "an impossible wire type");
    }
    out_field->size_bytes = (size_t)(c->at - out_field->data);
    return CLG_OK;
}

static clg_status expect(const wire_field *field, wire_type type)
{
    if (field->type == type) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL,
                     "damaged file: field %u at byte %zu has wire type %d in place of %d",
                     (unsigned)field->number, field->offset, (int)field->type, (int)type);
}

clg_status wire_get_int(const wire_field *field, int64_t *out_value)
{
    *out_value = 0;
    CLG_TRY(expect(field, WIRE_VARINT));
    *out_value = (int64_t)field->value;
    return CLG_OK;
}

clg_status wire_get_float(const wire_field *field, float *out_value)
{
    *out_value = 0.0f;
    CLG_TRY(expect(field, WIRE_FIXED32));
    uint32_t bits = (uint32_t)field->value;
    memcpy(out_value, &bits, sizeof bits);
    return CLG_OK;
}

clg_status wire_get_bytes(const wire_field *field, wire_bytes *out_bytes)
{
    *out_bytes = (wire_bytes){.data = ""};
    CLG_TRY(expect(field, WIRE_BYTES));
    if (field->size_bytes > 0)
        *out_bytes = (wire_bytes){(const char *)field->data, field->size_bytes};
    return CLG_OK;
}

clg_status wire_get_message(const wire_cursor *c, const wire_field *field, wire_cursor *out_message)
{
    *out_message = wire_open(NULL, 0);
    CLG_TRY(expect(field, WIRE_BYTES));
    *out_message =
        (wire_cursor){.start = c->start, .at = field->data, .end = field->data + field->size_bytes};
    return CLG_OK;
}

bool wire_bytes_equal(wire_bytes bytes, const char *string)
{
    size_t n = strlen(string);
    return n == bytes.size_bytes && (n == 0 || memcmp(bytes.data, string, n) == 0);
}

clg_status wire_get_elements(const wire_cursor *c, const wire_field *field, wire_type element,
                             wire_cursor *out_elements)
{
    *out_elements = wire_open(NULL, 0);
    if (field->type != WIRE_BYTES) CLG_TRY(expect(field, element));
    *out_elements =
        (wire_cursor){.start = c->start, .at = field->data, .end = field->data + field->size_bytes};
    return CLG_OK;
}

size_t wire_n_elements(const wire_cursor *elements, wire_type element)
{
    size_t size_bytes = (size_t)(elements->end - elements->at);
    if (element == WIRE_FIXED32) return size_bytes / 4;
    if (element == WIRE_FIXED64) return size_bytes / 8;
    size_t n = 0; /* every varint ends in a byte without the high bit */
    for (size_t i = 0; i < size_bytes; i++) n += elements->at[i] < 0x80;
    return n;
}
