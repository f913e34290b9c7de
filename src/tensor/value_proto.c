/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequences and optionals from ONNX's messages. See value_proto.h.
 */
#include "tensor/value_proto.h"

#include "base/files.h"
#include "tensor/tensor_proto.h"

/* Fields of both messages; an optional has one of them, once. */
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

/* The value in a field; *out_value stays NULL when it is none. */
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
    case FIELD_SPARSE:
    case FIELD_MAP:
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "it holds sparse tensors or maps");
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
        value_free(item); /* the last one counts */
        item = found;
    }
    if (status == CLG_OK)
        status = value_create_optional(item ? item->dtype : CLG_DTYPE_NONE, item, out_value);
    value_free(item);
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
    if (kind != CLG_VALUE_SEQUENCE)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "maps are not read from files");
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
    CLG_TRY(file_view_open(path, &view));
    wire_cursor c = wire_open(view.data, view.size_bytes);
    clg_status status = value_proto_read(&c, kind, out_value);
    file_view_close(&view);
    return status == CLG_OK ? status : error_prefix(status, "'%s'", path);
}
