/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes AttributeProto, in the order of its fields. Attributes of types that no operator has are
 * written as they were read.
 */
#include "base/wire/wire.h"
#include "onnx/onnx_save_internal.h"
#include "tensor/formats/tensor_proto.h"

/* AttributeProto.AttributeType, by attribute_type. */
static const int type_numbers[] = {
    [ATTRIBUTE_NONE] = 0,   [ATTRIBUTE_FLOAT] = 1,  [ATTRIBUTE_INT] = 2,
    [ATTRIBUTE_STRING] = 3, [ATTRIBUTE_TENSOR] = 4, [ATTRIBUTE_GRAPH] = 5,
    [ATTRIBUTE_FLOATS] = 6, [ATTRIBUTE_INTS] = 7,   [ATTRIBUTE_STRINGS] = 8};

/* ---- attributes that were kept encoded ------------------------------------------------------- */

/* Rejects data in a file: its place is relative to the file that the model was loaded from. */
static clg_status check_tensor(const wire_cursor *message)
{
    tensor_proto proto;
    CLG_TRY(tensor_proto_parse(message, &proto));
    if (!proto.is_external) return CLG_OK;
    return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "its tensors have external data");
}

static clg_status check_sparse(const wire_cursor *message)
{
    wire_cursor c = *message, inner;
    while (!wire_at_end(&c)) {
        wire_field field;
        CLG_TRY(wire_next(&c, &field));
        if (field.number != SPARSE_VALUES && field.number != SPARSE_INDICES) continue;
        CLG_TRY(wire_get_message(&c, &field, &inner));
        CLG_TRY(check_tensor(&inner));
    }
    return CLG_OK;
}

static clg_status check_field(const wire_cursor *c, const wire_field *field)
{
    wire_cursor message;
    switch (field->number) {
    case ATTR_GRAPHS:
        return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "lists of graphs are not supported");
    case ATTR_TENSORS: CLG_TRY(wire_get_message(c, field, &message)); return check_tensor(&message);
    case ATTR_SPARSE_TENSOR:
    case ATTR_SPARSE_TENSORS:
        CLG_TRY(wire_get_message(c, field, &message));
        return check_sparse(&message);
    default: return CLG_OK;
    }
}

/* Writes the fields but the name: a function's attribute may have given the value to another. */
static clg_status put_encoded(wire_writer *w, const graph_attribute *a)
{
    wire_cursor c = wire_open(a->as.message, a->count);
    while (!wire_at_end(&c)) {
        const uint8_t *start = c.at;
        wire_field field;
        CLG_TRY(wire_next(&c, &field));
        CLG_TRY(check_field(&c, &field));
        if (field.number == ATTR_NAME || field.number == ATTR_REF_ATTR_NAME) continue;
        wire_put_encoded(w, start, (size_t)(c.at - start));
    }
    return CLG_OK;
}

/* ---- all attributes -------------------------------------------------------------------------- */

static void put_graph(onnx_saver *s, const save_scope *scope, const graph *g)
{
    const save_scope *inner = save_scope_create(s, g, scope);
    if (!inner) return;
    wire_begin(&s->w, ATTR_G);
    save_graph(s, inner);
    wire_end(&s->w);
}

void save_attribute(onnx_saver *s, const save_scope *scope, const node *n, const graph_attribute *a)
{
    char shown[NAME_TEXT_BYTES], node_shown[NODE_TEXT_BYTES];
    wire_writer *w = &s->w;
    clg_status status = CLG_OK;
    wire_put_string(w, ATTR_NAME, a->name);
    switch (a->type) {
    case ATTRIBUTE_NONE: status = put_encoded(w, a); break;
    case ATTRIBUTE_FLOAT: wire_put_float(w, ATTR_F, a->as.f); break;
    case ATTRIBUTE_INT: wire_put_int(w, ATTR_I, a->as.i); break;
    case ATTRIBUTE_STRING: wire_put_bytes(w, ATTR_S, a->as.s, a->count); break;
    case ATTRIBUTE_TENSOR:
        wire_begin(w, ATTR_T);
        tensor_proto_put(w, "", a->as.tensor, NULL);
        wire_end(w);
        break;
    case ATTRIBUTE_GRAPH: put_graph(s, scope, a->as.graph); break;
    case ATTRIBUTE_FLOATS:
        for (size_t i = 0; i < a->count; i++) wire_put_float(w, ATTR_FLOATS, a->as.floats[i]);
        break;
    case ATTRIBUTE_INTS:
        for (size_t i = 0; i < a->count; i++) wire_put_int(w, ATTR_INTS, a->as.ints[i]);
        break;
    case ATTRIBUTE_STRINGS:
        for (size_t i = 0; i < a->count; i++) wire_put_string(w, ATTR_STRINGS, a->as.strings[i]);
        break;
    }
    if (a->type != ATTRIBUTE_NONE) wire_put_int(w, ATTR_TYPE, type_numbers[a->type]);
    if (status != CLG_OK)
        wire_fail(w, error_prefix(status, "%s: attribute '%s'", node_text(n, node_shown),
                                  name_text(a->name, shown)));
}
