/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads values from ONNX's SequenceProto, OptionalProto and MapProto, such as .pb files of test
 * cases.
 */
#ifndef CLG_TENSOR_VALUE_PROTO_H
#define CLG_TENSOR_VALUE_PROTO_H

#include "base/wire.h"
#include "tensor/value.h"

/* Reads a message of that kind; kind TENSOR is a TensorProto. Errors: INVALID_MODEL,
 * UNSUPPORTED_DTYPE (sparse tensors, maps of anything but single values under int64 or string
 * keys). */
clg_status value_proto_read(const wire_cursor *message, clg_value_kind kind, clg_value **out_value);
clg_status value_proto_load(const char *path, clg_value_kind kind, clg_value **out_value);

#endif
