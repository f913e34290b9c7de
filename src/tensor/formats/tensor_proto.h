/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts ONNX's TensorProto (initializers, constant attributes, .pb files) to tensors and back.
 * All fields that may hold the data are supported. Sizes are checked against the data present
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
    unsigned storages; /* bit n: field number n has data */
    wire_bytes raw;    /* raw_data */
    /* Data in another file, which the importer opens. location is not empty and has no NUL; the
     * importer checks that it stays in the model's folder. */
    bool is_external;
    wire_bytes location;
    uint64_t external_offset;
    uint64_t external_length; /* TENSOR_PROTO_NO_LENGTH: not given */
} tensor_proto;
#define TENSOR_PROTO_NO_LENGTH UINT64_MAX

/* Parses and checks a message; does not read the data yet. */
clg_status tensor_proto_parse(const wire_cursor *message, tensor_proto *out_proto);

/* Creates the tensor. If `owner` (may be NULL) keeps the message alive and the bytes are stored as
 * in a tensor (raw_data; float_data and double_data in one piece), the tensor shares them, possibly
 * unaligned; else it is a copy. Rejects external data. */
clg_status tensor_proto_to_tensor(const tensor_proto *proto, const tensor_owner *owner,
                                  tensor **out_tensor);
/* As tensor_proto_to_tensor, for external data. file_data: the whole file that location names. */
clg_status tensor_proto_resolve(const tensor_proto *proto, const void *file_data,
                                size_t file_size_bytes, const tensor_owner *owner,
                                tensor **out_tensor);

/* Loads a .pb file with one TensorProto. out_name may be NULL; the caller frees *out_name with
 * memory_free. */
clg_status tensor_proto_load(const char *path, char **out_name, tensor **out_tensor);
/* Writes a .pb file, with numbers as raw_data and strings as string_data. */
clg_status tensor_proto_save(const char *path, const char *name, const tensor *t);

#endif
