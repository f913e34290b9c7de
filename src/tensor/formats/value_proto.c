/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses ONNX's SequenceProto, OptionalProto and MapProto into values, recursively. See
 * value_proto.h.
 */
#include "tensor/formats/value_proto.h"

#include "base/files.h"
#include "tensor/formats/tensor_proto.h"

#include <string.h>

/* Field numbers of SequenceProto (repeated) and OptionalProto (one of them, once). */
enum { FIELD_TENSOR = 3, FIELD_SPARSE = 4, FIELD_SEQUENCE = 5, FIELD_MAP = 6, FIELD_OPTIONAL = 7 };

static clg_status read_tensor(const wire_cursor *message, clg_value **out_value)
{
    tensor_proto proto;
    tensor *t;
    CLG_TRY(tensor_proto_parse(message, &proto));
    CLG_TRY(tensor_proto_to_tensor(&proto, NULL, &t));
    clg_status status = value_create_host(t, out_value);
    tensor_free(t);
    return status;
}

static clg_status read_value(const wire_cursor *message, clg_value_kind kind, int depth,
                             clg_value **out_value);

/* Reads the value in a field of a sequence or optional; *out_value is NULL for other fields. */
static clg_status read_item(wire_cursor *c, const wire_field *field, int depth,
                            clg_value **out_value)
{
    wire_cursor inner;
    clg_value_kind kind = CLG_VALUE_TENSOR;
    *out_value = NULL;
    switch (field->number) {
    case FIELD_TENSOR: break;
    case FIELD_SEQUENCE: kind = CLG_VALUE_SEQUENCE; break;
    case FIELD_OPTIONAL: kind = CLG_VALUE_OPTIONAL; break;
    case FIELD_MAP: kind = CLG_VALUE_MAP; break;
    case FIELD_SPARSE: return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "it holds sparse tensors");
    default: return CLG_OK;
    }
    CLG_TRY(wire_get_message(c, field, &inner));
    return read_value(&inner, kind, depth + 1, out_value);
}

static clg_status read_sequence(wire_cursor c, int depth, clg_value *sequence)
{
    while (!wire_at_end(&c)) {
        wire_field field;
        clg_value *item;
        CLG_TRY(wire_next(&c, &field));
        CLG_TRY(read_item(&c, &field, depth, &item));
        if (!item) continue;
        if (sequence->dtype == CLG_DTYPE_NONE) sequence->dtype = item->dtype;
        clg_status status = value_append(sequence, item);
        value_free(item);
        CLG_TRY(status);
    }
    return CLG_OK;
}

static clg_status read_optional(wire_cursor c, int depth, clg_value **out_value)
{
    clg_value *item = NULL;
    clg_status status = CLG_OK;
    while (!wire_at_end(&c) && status == CLG_OK) {
        wire_field field;
        clg_value *found = NULL;
        status = wire_next(&c, &field);
        if (status == CLG_OK) status = read_item(&c, &field, depth, &found);
        if (!found) continue;
        value_free(item); /* a repeated field: the last one counts */
        item = found;
    }
    if (status == CLG_OK)
        status = value_create_optional(item ? item->dtype : CLG_DTYPE_NONE, item, out_value);
    value_free(item);
    return status;
}

/* Field numbers of MapProto: it has a list of keys and a SequenceProto of as many values. */
enum { MAP_KEY_TYPE = 2, MAP_INTS = 3, MAP_STRINGS = 4, MAP_VALUES = 5 };

/* Reads the keys in one occurrence of a key field into `keys`, from index *at on; advances *at. */
static clg_status read_keys_in(const wire_cursor *c, const wire_field *field, tensor *keys,
                               int64_t *at)
{
    wire_cursor elements;
    if (field->number == MAP_STRINGS) {
        wire_bytes bytes;
        CLG_TRY(wire_get_bytes(field, &bytes));
        return tensor_set_string(keys, (*at)++, bytes.data, bytes.size_bytes);
    }
    CLG_TRY(wire_get_elements(c, field, WIRE_VARINT, &elements));
    while (!wire_at_end(&elements)) {
        uint64_t number;
        CLG_TRY(wire_next_varint(&elements, &number));
        tensor_set_int(keys, (*at)++, (int64_t)number);
    }
    return CLG_OK;
}

static clg_status read_keys(const wire_cursor *message, int64_t type, int64_t n, tensor **out_keys)
{
    const uint32_t wanted = type == CLG_STRING ? MAP_STRINGS : MAP_INTS;
    const shape dims = {.rank = 1, .dims = {n}};
    wire_cursor c = *message;
    int64_t at = 0;
    CLG_TRY(tensor_create((clg_dtype)type, &dims, out_keys));
    clg_status status = CLG_OK;
    while (!wire_at_end(&c) && status == CLG_OK) {
        wire_field field;
        status = wire_next(&c, &field);
        if (status == CLG_OK && field.number == wanted)
            status = read_keys_in(&c, &field, *out_keys, &at);
    }
    if (status == CLG_OK) return CLG_OK;
    tensor_free(*out_keys);
    return status;
}

/* Sets *out_type to the type of a MapProto's keys, *out_n to their number, and *out_values, which
 * is NULL before, to the values as a sequence, if there are any. */
static clg_status look_at_map(wire_cursor c, int depth, int64_t *out_type, size_t *out_n,
                              clg_value **out_values)
{
    size_t n_ints = 0, n_strings = 0;
    *out_type = 0;
    while (!wire_at_end(&c)) {
        wire_field field;
        wire_cursor inner;
        CLG_TRY(wire_next(&c, &field));
        n_strings += field.number == MAP_STRINGS;
        if (field.number == MAP_KEY_TYPE) CLG_TRY(wire_get_int(&field, out_type));
        if (field.number == MAP_INTS) {
            CLG_TRY(wire_get_elements(&c, &field, WIRE_VARINT, &inner));
            n_ints += wire_n_elements(&inner, WIRE_VARINT);
        }
        if (field.number == MAP_VALUES && !*out_values) {
            CLG_TRY(wire_get_message(&c, &field, &inner));
            CLG_TRY(read_value(&inner, CLG_VALUE_SEQUENCE, depth + 1, out_values));
        }
    }
    *out_n = *out_type == CLG_STRING ? n_strings : n_ints;
    if (*out_type != CLG_STRING && *out_type != CLG_INT64)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                         "a map's keys are of element type %lld; supported are int64 and string",
                         (long long)*out_type);
    if (*out_type == CLG_STRING ? n_ints > 0 : n_strings > 0)
        return error_set(CLG_ERROR_INVALID_MODEL, "a map has keys that are not of its key type");
    return CLG_OK;
}

static clg_status put_value(tensor *values, int64_t i, const clg_value *item)
{
    if (item->kind != CLG_VALUE_TENSOR || item->n_elements != 1 || item->dtype != values->dtype ||
        (dtype_size(values->dtype) == 0 && values->dtype != CLG_STRING))
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                         "a map's values are not single numbers or strings of one type");
    if (values->dtype == CLG_STRING) {
        const char *s = tensor_get_string(item->host, 0);
        return tensor_set_string(values, i, s, strlen(s));
    }
    const size_t size = dtype_size(values->dtype);
    memcpy((char *)values->data + (size_t)i * size, item->host->data, size);
    return CLG_OK;
}

/* Joins the scalars of a sequence into a tensor of shape [n]; dtype float32 if n is 0. sequence:
 * NULL for none. */
static clg_status join_values(const clg_value *sequence, size_t n, clg_value **out_value)
{
    const shape dims = {.rank = 1, .dims = {(int64_t)n}};
    tensor *t;
    if (n != (sequence ? value_length(sequence) : 0))
        return error_set(CLG_ERROR_INVALID_MODEL, "a map has %zu keys and %zu values", n,
                         sequence ? value_length(sequence) : 0);
    CLG_TRY(tensor_create(n ? value_get(sequence, 0)->dtype : CLG_FLOAT32, &dims, &t));
    clg_status status = CLG_OK;
    for (size_t i = 0; i < n && status == CLG_OK; i++)
        status = put_value(t, (int64_t)i, value_get(sequence, i));
    if (status == CLG_OK) status = value_create_host(t, out_value);
    tensor_free(t);
    return status;
}

static clg_status read_map(const wire_cursor *message, int depth, clg_value **out_value)
{
    int64_t type;
    size_t n;
    tensor *t = NULL;
    clg_value *sequence = NULL, *values = NULL, *keys = NULL;
    clg_status status = look_at_map(*message, depth, &type, &n, &sequence);
    if (status == CLG_OK) status = join_values(sequence, n, &values);
    if (status == CLG_OK) status = read_keys(message, type, (int64_t)n, &t);
    if (status == CLG_OK) {
        status = value_create_host(t, &keys);
        tensor_free(t);
    }
    if (status == CLG_OK) status = value_create_map(keys, values, out_value);
    value_free(keys);
    value_free(values);
    value_free(sequence);
    return status;
}

static clg_status read_value(const wire_cursor *message, clg_value_kind kind, int depth,
                             clg_value **out_value)
{
    *out_value = NULL;
    if (depth >= VALUE_MAX_DEPTH && kind != CLG_VALUE_TENSOR)
        return error_set(CLG_ERROR_INVALID_MODEL, "values are nested more than %d deep",
                         VALUE_MAX_DEPTH);
    if (kind == CLG_VALUE_TENSOR) return read_tensor(message, out_value);
    if (kind == CLG_VALUE_OPTIONAL) return read_optional(*message, depth, out_value);
    if (kind == CLG_VALUE_MAP) return read_map(message, depth, out_value);
    CLG_TRY(value_create_sequence(CLG_DTYPE_NONE, out_value));
    clg_status status = read_sequence(*message, depth, *out_value);
    if (status == CLG_OK) return CLG_OK;
    value_free(*out_value);
    *out_value = NULL;
    return status;
}

clg_status value_proto_read(const wire_cursor *message, clg_value_kind kind, clg_value **out_value)
{
    return read_value(message, kind, 0, out_value);
}

clg_status value_proto_load(const char *path, clg_value_kind kind, clg_value **out_value)
{
    file_view view = {0};
    *out_value = NULL;
    CLG_TRY(file_view_open(path, 0, &view));
    wire_cursor c = wire_open(view.data, view.size_bytes);
    clg_status status = value_proto_read(&c, kind, out_value);
    file_view_close(&view);
    return status == CLG_OK ? status : error_prefix(status, "'%s'", path);
}
