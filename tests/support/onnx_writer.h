/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes ONNX models, good and bad, byte by byte: protobuf fields below, ONNX messages on top. Messages are
 * buffers; giving one to another frees it. Running out of memory ends the test program.
 *
 *     ow_model m = {.ir_version = 8, .opset = 13};
 *     ow_input(&m, "x", CLG_FLOAT32, 2, (int64_t[]){-1, 4}, "N");
 *     ow_bytes n = ow_node("Flatten", "flat", "x", "y");
 *     ow_attribute_int(&n, "axis", 1);
 *     ow_add_node(&m, n);
 *     ow_output(&m, "y", CLG_FLOAT32);
 *     ow_bytes file = ow_finish(&m);
 */
#ifndef CLG_TESTS_ONNX_WRITER_H
#define CLG_TESTS_ONNX_WRITER_H

#include <clgraph/clgraph.h>

typedef struct ow_bytes {
    uint8_t *data;
    size_t n, capacity;
} ow_bytes; /* all zeros is empty */
void ow_free(ow_bytes *b);

/* Fields. */
void ow_put_int(ow_bytes *b, unsigned field, int64_t value);
void ow_put_float(ow_bytes *b, unsigned field, float value);
void ow_put_bytes(ow_bytes *b, unsigned field, const void *data, size_t n);
void ow_put_string(ow_bytes *b, unsigned field, const char *string);
void ow_put_message(ow_bytes *b, unsigned field, ow_bytes message); /* frees it */
void ow_put_packed_ints(ow_bytes *b, unsigned field, size_t n, const int64_t *values);
void ow_put_packed_floats(ow_bytes *b, unsigned field, size_t n, const float *values);

/* TensorProto: name, dtype and dims; the data is put by the caller (raw_data is field 9). */
ow_bytes ow_tensor(const char *name, int dtype, size_t rank, const int64_t *dims);
ow_bytes ow_tensor_raw(const char *name, int dtype, size_t rank, const int64_t *dims,
                       const void *data, size_t n);
/* With its data in another file; offset and length as text, NULL to leave out. */
ow_bytes ow_tensor_external(const char *name, int dtype, size_t rank, const int64_t *dims,
                            const char *location, const char *offset, const char *length);
/* ValueInfoProto of a tensor. rank SIZE_MAX: no shape. A negative dimension is the next word of symbols (separated by
 * spaces), or left out when there is none. */
ow_bytes ow_value_info(const char *name, int dtype, size_t rank, const int64_t *dims,
                       const char *symbols);
/* TypeProto: tensors of any shape; sequences or optionals (OW_SEQUENCE, OW_OPTIONAL) of a type; maps of keys to one. They take
 * over what they are made of. ow_info: a ValueInfoProto. */
enum { OW_SEQUENCE = 4, OW_OPTIONAL = 9 };
ow_bytes ow_type_tensor(int64_t dtype);
ow_bytes ow_type_list(unsigned kind, ow_bytes item);
ow_bytes ow_type_map(int64_t keys, ow_bytes values);
ow_bytes ow_info(const char *name, ow_bytes type);

/* NodeProto. Names separated by commas; "a,,b" leaves the second out; NULL for none. */
ow_bytes ow_node(const char *op_type, const char *name, const char *inputs, const char *outputs);
void ow_attribute_int(ow_bytes *node, const char *name, int64_t value);
void ow_attribute_float(ow_bytes *node, const char *name, float value);
void ow_attribute_string(ow_bytes *node, const char *name, const char *value);
void ow_attribute_ints(ow_bytes *node, const char *name, size_t n, const int64_t *values);
void ow_attribute_floats(ow_bytes *node, const char *name, size_t n, const float *values);
void ow_attribute_strings(ow_bytes *node, const char *name, size_t n, const char *const *values);
void ow_attribute_tensor(ow_bytes *node, const char *name, ow_bytes tensor);
void ow_attribute_graph(ow_bytes *node, const char *name, ow_bytes graph);

/* The model. Its graph grows until ow_finish, which empties it and gives the file's bytes. */
typedef struct ow_model {
    int64_t ir_version, opset; /* 0: not written */
    ow_bytes graph, extra;     /* extra: further fields of ModelProto */
} ow_model;
void ow_input(ow_model *m, const char *name, int dtype, size_t rank, const int64_t *dims,
              const char *symbols);
void ow_output(ow_model *m, const char *name, int dtype); /* dtype 0: no type */
void ow_add_node(ow_model *m, ow_bytes node);
void ow_simple_node(ow_model *m, const char *op_type, const char *name, const char *inputs,
                    const char *outputs);
void ow_initializer(ow_model *m, ow_bytes tensor);
void ow_opset(ow_model *m, const char *domain, int64_t version);
ow_bytes ow_finish(ow_model *m);

#endif
