/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads values from ONNX's SequenceProto, OptionalProto, MapProto and TensorProto, as in the .pb
 * files of ONNX's test cases.
 */
#ifndef CLG_TENSOR_VALUE_PROTO_H
#define CLG_TENSOR_VALUE_PROTO_H

#include "base/wire/wire.h"
#include "tensor/value.h"

/* Reads a message of this kind of value. Errors: INVALID_MODEL; UNSUPPORTED_DTYPE for sparse
 * tensors, and for maps with keys that are not int64 or string or values that are not scalars of
 * one dtype. */
clg_status value_proto_read(const wire_cursor *message, clg_value_kind kind, clg_value **out_value);
/* Reads a .pb file with one such message. */
clg_status value_proto_load(const char *path, clg_value_kind kind, clg_value **out_value);

#endif
