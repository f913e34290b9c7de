/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts ONNX's TensorProto (initializers, constant attributes, .pb files) to tensors and back.
 * All fields that may hold the data are supported. Sizes are checked against the data present
 * before memory is allocated. Errors are CLG_ERROR_INVALID_MODEL and name the tensor.
 */
#ifndef CLG_TENSOR_TENSOR_PROTO_H
#define CLG_TENSOR_TENSOR_PROTO_H

#include "base/wire/wire.h"
#include "base/wire/wire_write.h"
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
/* Prepends the tensor's name to the message of an error; returns status, which may be CLG_OK. */
clg_status tensor_proto_error(const tensor_proto *proto, clg_status status);
/* Checks the offset and length of external data and computes the tensor's bytes. */
clg_status tensor_proto_external_bytes(const tensor_proto *proto, size_t *out_size_bytes);
/* As tensor_proto_to_tensor, for external data; `data`: the tensor's own, of exactly its bytes. */
clg_status tensor_proto_from_external(const tensor_proto *proto, const void *data,
                                      const tensor_owner *owner, tensor **out_tensor);
/* As tensor_proto_to_tensor, for external data. file_data: the whole file that location names. */
clg_status tensor_proto_resolve(const tensor_proto *proto, const void *file_data,
                                size_t file_size_bytes, const tensor_owner *owner,
                                tensor **out_tensor);

/* Loads a .pb file with one TensorProto. out_name may be NULL; the caller frees *out_name with
 * memory_free. */
clg_status tensor_proto_load(const char *path, char **out_name, tensor **out_tensor);
/* The place of a tensor in a file of external data. */
typedef struct tensor_proto_place {
    const char *location;
    uint64_t offset_bytes;
} tensor_proto_place;
/* Writes the fields of a TensorProto, numbers as raw_data, which is borrowed: t must live as long
 * as the writer. external: where the data is instead, not for strings; NULL for data in the
 * message. */
void tensor_proto_put(wire_writer *w, const char *name, const tensor *t,
                      const tensor_proto_place *external);
/* Writes a .pb file of a TensorProto. INVALID_ARGUMENT above 2 GiB. */
clg_status tensor_proto_save(const char *path, const char *name, const tensor *t);

#endif
