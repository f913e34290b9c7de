/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts ONNX's TensorProto to tensors and back: initializers, constant attributes and .pb files.
 * All fields that may hold the data are supported; sizes are checked against the data present
 * before memory is allocated. Errors are CLG_ERROR_INVALID_MODEL and name the tensor.
 */
#ifndef CLG_TENSOR_TENSOR_PROTO_H
#define CLG_TENSOR_TENSOR_PROTO_H

#include "base/wire.h"
#include "tensor/tensor.h"

/* A parsed message: views into its bytes, no owned memory. */
typedef struct tensor_proto {
    wire_cursor message;
    wire_bytes name;
    clg_dtype dtype;
    shape dims;
    unsigned storages; /* bit n: field n holds data */
    wire_bytes raw;
    /* Data in another file, which the importer finds. location is not empty and has no NUL; whether
     * it stays in the model's folder is not checked here. */
    bool is_external;
    wire_bytes location;
    uint64_t external_offset;
    uint64_t external_length; /* TENSOR_PROTO_NO_LENGTH: not given */
} tensor_proto;
#define TENSOR_PROTO_NO_LENGTH UINT64_MAX

clg_status tensor_proto_parse(const wire_cursor *message, tensor_proto *out_proto);

/* Returns the tensor; over the message's memory, at any address, if `owner` keeps that alive and
 * the bytes are stored as in a tensor (raw_data; float_data and double_data in one piece), else a
 * copy. owner may be NULL. Rejects external data. */
clg_status tensor_proto_to_tensor(const tensor_proto *proto, const tensor_owner *owner,
                                  tensor **out_tensor);
/* As tensor_proto_to_tensor, for external data, from the whole file that location names. */
clg_status tensor_proto_resolve(const tensor_proto *proto, const void *file_data,
                                size_t file_size_bytes, const tensor_owner *owner,
                                tensor **out_tensor);

/* Loads a .pb file with one TensorProto. out_name (freed by memory_free) may be NULL. */
clg_status tensor_proto_load(const char *path, char **out_name, tensor **out_tensor);
/* Saves numbers as raw_data, strings as string_data. */
clg_status tensor_proto_save(const char *path, const char *name, const tensor *t);

#endif
