/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes attributes, tensors and types of ONNX Runtime in ONNX's format.
 */
#ifndef CLG_ONNXRUNTIME_EP_ATTRIBUTES_H
#define CLG_ONNXRUNTIME_EP_ATTRIBUTES_H

#include "base/wire/wire_write.h"
#include "ep_graph.h"

/* Appends the attributes of a node but those that are graphs. */
clg_status ep_write_attributes(const ep_host *host, const OrtNode *node, arena *memory,
                               wire_writer *w);
/* Appends dims, dtype and elements of a tensor: the fields of a TensorProto but its name. With
 * out_data the elements of a tensor of more than inline_bytes are not written but returned. */
clg_status ep_write_tensor(const ep_host *host, const OrtValue *tensor, arena *memory,
                           size_t inline_bytes, const void **out_data, size_t *out_size_bytes,
                           wire_writer *w);
/* Appends a TypeProto's fields, those of a tensor's shape on request; nothing for a type that is
 * not known. */
clg_status ep_write_type(const ep_host *host, const OrtTypeInfo *type, bool with_shape,
                         wire_writer *w);

#endif
