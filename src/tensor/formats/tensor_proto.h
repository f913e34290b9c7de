/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX's TensorProto to tensors and back: initializers, constant attributes and .pb files. All the fields that
 * may hold the data are understood; sizes are checked against the data present before memory is asked for.
 * Errors are CLG_ERROR_INVALID_MODEL and name the tensor.
 */
#ifndef CLG_TENSOR_TENSOR_PROTO_H
#define CLG_TENSOR_TENSOR_PROTO_H

#include "base/wire.h"
#include "tensor/tensor.h"

/* A parsed message: views into its bytes, no memory of its own. */
typedef struct tensor_proto {
    wire_cursor message;
    wire_bytes name;
    clg_dtype dtype;
    shape dims;
    unsigned storages; /* bit n: field n holds data */
    wire_bytes raw;
    /* Data in another file, for the importer to find. location is not empty and has no NUL; whether it stays
     * in the model's folder is not checked here. */
    bool is_external;
    wire_bytes location;
    uint64_t external_offset;
    uint64_t external_length; /* TENSOR_PROTO_NO_LENGTH: not said */
} tensor_proto;
#define TENSOR_PROTO_NO_LENGTH UINT64_MAX

clg_status tensor_proto_parse(const wire_cursor *message, tensor_proto *out_proto);

/* The tensor itself; over the message's memory, at whatever address, where `owner` keeps that alive and the bytes lie
 * there as in a tensor (raw_data; float_data and double_data in one piece), else a copy. owner may be NULL. Refuses
 * external data. */
clg_status tensor_proto_to_tensor(const tensor_proto *proto, const tensor_owner *owner,
                                  tensor **out_tensor);
/* The same for external data, from the whole of the file that location names. */
clg_status tensor_proto_resolve(const tensor_proto *proto, const void *file_data,
                                size_t file_size_bytes, const tensor_owner *owner,
                                tensor **out_tensor);

/* A .pb file that holds one TensorProto. name, freed by memory_free, may be NULL when it is not wanted. */
clg_status tensor_proto_load(const char *path, char **out_name, tensor **out_tensor);
/* Numbers as raw_data, strings as string_data. */
clg_status tensor_proto_save(const char *path, const char *name, const tensor *t);

#endif
