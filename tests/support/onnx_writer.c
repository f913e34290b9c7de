/* SPDX-License-Identifier: Apache-2.0
 *
 * A writer of protobuf's wire format, and the messages of onnx.proto by field number.
 */
#include "support/onnx_writer.h"

#include <stdlib.h>
#include <string.h>

/* ---- protobuf --------------------------------------------------------------------------------------------- */

void ow_free(ow_bytes *b)
{
    free(b->data);
    *b = (ow_bytes){0};
}

static void append(ow_bytes *b, const void *data, size_t n)
{
    if (b->n + n > b->capacity) {
        b->capacity = 2 * (b->n + n) + 64;
        b->data = realloc(b->data, b->capacity);
        if (!b->data) abort();
    }
    if (n > 0) memcpy(b->data + b->n, data, n);
    b->n += n;
}

static void put_varint(ow_bytes *b, uint64_t value)
{
    uint8_t bytes[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) bytes[n++] = (uint8_t)(value | 0x80);
    bytes[n++] = (uint8_t)value;
    append(b, bytes, n);
}

void ow_put_int(ow_bytes *b, unsigned field, int64_t value)
{
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, (uint64_t)value);
}

void ow_put_float(ow_bytes *b, unsigned field, float value)
{
    put_varint(b, (uint64_t)field << 3 | 5);
    append(b, &value, sizeof value);
}

void ow_put_bytes(ow_bytes *b, unsigned field, const void *data, size_t n)
{
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, n);
    append(b, data, n);
}

void ow_put_string(ow_bytes *b, unsigned field, const char *string)
{
    ow_put_bytes(b, field, string, strlen(string));
}

void ow_put_message(ow_bytes *b, unsigned field, ow_bytes message)
{
    ow_put_bytes(b, field, message.data, message.n);
    ow_free(&message);
}

void ow_put_packed_ints(ow_bytes *b, unsigned field, size_t n, const int64_t *values)
{
    ow_bytes list = {0};
    for (size_t i = 0; i < n; i++) put_varint(&list, (uint64_t)values[i]);
    ow_put_message(b, field, list);
}

void ow_put_packed_floats(ow_bytes *b, unsigned field, size_t n, const float *values)
{
    ow_put_bytes(b, field, values, n * sizeof *values);
}

/* ---- TensorProto, ValueInfoProto ---------------------------------------------------------------------------- */

ow_bytes ow_tensor(const char *name, int dtype, size_t rank, const int64_t *dims)
{
    ow_bytes t = {0};
    for (size_t i = 0; i < rank; i++) ow_put_int(&t, 1, dims[i]);
    ow_put_int(&t, 2, dtype);
    ow_put_string(&t, 8, name);
    return t;
}

ow_bytes ow_tensor_raw(const char *name, int dtype, size_t rank, const int64_t *dims,
                       const void *data, size_t n)
{
    ow_bytes t = ow_tensor(name, dtype, rank, dims);
    ow_put_bytes(&t, 9, data, n);
    return t;
}

static void put_entry(ow_bytes *t, const char *key, const char *value)
{
    if (!value) return;
    ow_bytes entry = {0};
    ow_put_string(&entry, 1, key);
    ow_put_string(&entry, 2, value);
    ow_put_message(t, 13, entry);
}

ow_bytes ow_tensor_external(const char *name, int dtype, size_t rank, const int64_t *dims,
                            const char *location, const char *offset, const char *length)
{
    ow_bytes t = ow_tensor(name, dtype, rank, dims);
    put_entry(&t, "location", location);
    put_entry(&t, "offset", offset);
    put_entry(&t, "length", length);
    ow_put_int(&t, 14, 1);
    return t;
}

ow_bytes ow_value_info(const char *name, int dtype, size_t rank, const int64_t *dims,
                       const char *symbols)
{
    ow_bytes shape = {0}, tensor = {0}, type = {0}, info = {0};
    for (size_t i = 0; rank != SIZE_MAX && i < rank; i++) {
        ow_bytes dim = {0};
        size_t word = symbols ? strcspn(symbols, " ") : 0;
        if (dims[i] >= 0) ow_put_int(&dim, 1, dims[i]);
        if (dims[i] < 0 && word > 0) {
            ow_put_bytes(&dim, 2, symbols, word);
            symbols += word + (symbols[word] == ' ');
        }
        ow_put_message(&shape, 1, dim);
    }
    if (dtype) ow_put_int(&tensor, 1, dtype);
    if (rank != SIZE_MAX) ow_put_message(&tensor, 2, shape);
    ow_put_message(&type, 1, tensor);
    ow_put_string(&info, 1, name);
    if (dtype || rank != SIZE_MAX) {
        ow_put_message(&info, 2, type);
    } else {
        ow_free(&type);
    }
    return info;
}

ow_bytes ow_type_tensor(int64_t dtype)
{
    ow_bytes tensor = {0}, type = {0};
    ow_put_int(&tensor, 1, dtype);
    ow_put_message(&type, 1, tensor);
    return type;
}

ow_bytes ow_type_list(unsigned kind, ow_bytes item)
{
    ow_bytes list = {0}, type = {0};
    ow_put_message(&list, 1, item);
    ow_put_message(&type, kind, list);
    return type;
}

ow_bytes ow_type_map(int64_t keys, ow_bytes values)
{
    ow_bytes map = {0}, type = {0};
    ow_put_int(&map, 1, keys);
    ow_put_message(&map, 2, values);
    ow_put_message(&type, 5, map);
    return type;
}

ow_bytes ow_info(const char *name, ow_bytes type)
{
    ow_bytes info = {0};
    ow_put_string(&info, 1, name);
    ow_put_message(&info, 2, type);
    return info;
}

/* ---- NodeProto ------------------------------------------------------------------------------------------------ */

static void put_names(ow_bytes *node, unsigned field, const char *names)
{
    for (const char *at = names; at;) {
        size_t n = strcspn(at, ",");
        ow_put_bytes(node, field, at, n);
        at = at[n] ? at + n + 1 : NULL;
    }
}

ow_bytes ow_node(const char *op_type, const char *name, const char *inputs, const char *outputs)
{
    ow_bytes node = {0};
    put_names(&node, 1, inputs);
    put_names(&node, 2, outputs);
    if (name) ow_put_string(&node, 3, name);
    ow_put_string(&node, 4, op_type);
    return node;
}

static ow_bytes begin_attribute(const char *name, int type)
{
    ow_bytes a = {0};
    ow_put_string(&a, 1, name);
    ow_put_int(&a, 20, type);
    return a;
}

void ow_attribute_int(ow_bytes *node, const char *name, int64_t value)
{
    ow_bytes a = begin_attribute(name, 2);
    ow_put_int(&a, 3, value);
    ow_put_message(node, 5, a);
}

void ow_attribute_float(ow_bytes *node, const char *name, float value)
{
    ow_bytes a = begin_attribute(name, 1);
    ow_put_float(&a, 2, value);
    ow_put_message(node, 5, a);
}

void ow_attribute_string(ow_bytes *node, const char *name, const char *value)
{
    ow_bytes a = begin_attribute(name, 3);
    ow_put_string(&a, 4, value);
    ow_put_message(node, 5, a);
}

void ow_attribute_ints(ow_bytes *node, const char *name, size_t n, const int64_t *values)
{
    ow_bytes a = begin_attribute(name, 7);
    for (size_t i = 0; i < n; i++) ow_put_int(&a, 8, values[i]);
    ow_put_message(node, 5, a);
}

void ow_attribute_floats(ow_bytes *node, const char *name, size_t n, const float *values)
{
    ow_bytes a = begin_attribute(name, 6);
    for (size_t i = 0; i < n; i++) ow_put_float(&a, 7, values[i]);
    ow_put_message(node, 5, a);
}

void ow_attribute_strings(ow_bytes *node, const char *name, size_t n, const char *const *values)
{
    ow_bytes a = begin_attribute(name, 8);
    for (size_t i = 0; i < n; i++) ow_put_string(&a, 9, values[i]);
    ow_put_message(node, 5, a);
}

void ow_attribute_tensor(ow_bytes *node, const char *name, ow_bytes tensor)
{
    ow_bytes a = begin_attribute(name, 4);
    ow_put_message(&a, 5, tensor);
    ow_put_message(node, 5, a);
}

void ow_attribute_graph(ow_bytes *node, const char *name, ow_bytes graph)
{
    ow_bytes a = begin_attribute(name, 5);
    ow_put_message(&a, 6, graph);
    ow_put_message(node, 5, a);
}

/* ---- the model -------------------------------------------------------------------------------------------------- */

void ow_input(ow_model *m, const char *name, int dtype, size_t rank, const int64_t *dims,
              const char *symbols)
{
    ow_put_message(&m->graph, 11, ow_value_info(name, dtype, rank, dims, symbols));
}

void ow_output(ow_model *m, const char *name, int dtype)
{
    ow_put_message(&m->graph, 12, ow_value_info(name, dtype, SIZE_MAX, NULL, NULL));
}

void ow_add_node(ow_model *m, ow_bytes node) { ow_put_message(&m->graph, 1, node); }

void ow_simple_node(ow_model *m, const char *op_type, const char *name, const char *inputs,
                    const char *outputs)
{
    ow_add_node(m, ow_node(op_type, name, inputs, outputs));
}

void ow_initializer(ow_model *m, ow_bytes tensor) { ow_put_message(&m->graph, 5, tensor); }

void ow_opset(ow_model *m, const char *domain, int64_t version)
{
    ow_bytes import = {0};
    ow_put_string(&import, 1, domain);
    ow_put_int(&import, 2, version);
    ow_put_message(&m->extra, 8, import);
}

ow_bytes ow_finish(ow_model *m)
{
    ow_bytes file = {0};
    if (m->ir_version) ow_put_int(&file, 1, m->ir_version);
    ow_put_string(&file, 2, "test");
    ow_put_message(&file, 7, m->graph);
    if (m->opset) ow_opset(m, "", m->opset);
    append(&file, m->extra.data, m->extra.n);
    ow_free(&m->extra);
    *m = (ow_model){0};
    return file;
}
