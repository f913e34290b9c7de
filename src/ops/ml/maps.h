/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts maps to tensors, on the host: DictVectorizer and CastMap (ai.onnx.ml 1).
 */
#ifndef CLG_OPS_MAPS_H
#define CLG_OPS_MAPS_H

#include "ops/core/op.h"

/* Converts a map as the node specifies: keys and values of one length, or both NULL for an empty
 * map. */
clg_status maps_to_tensor(const node *n, const tensor *keys, const tensor *values,
                          tensor **out_tensor);

#endif
