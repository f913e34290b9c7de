/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts maps to tensors on the host: DictVectorizer and CastMap (ai.onnx.ml 1).
 */
#ifndef CLG_OPS_MAPS_H
#define CLG_OPS_MAPS_H

#include "ops/core/op.h"

/* Converts a map to *out_tensor as the node specifies. keys and values have the same length; both
 * are NULL for an empty map. */
clg_status maps_to_tensor(const node *n, const tensor *keys, const tensor *values,
                          tensor **out_tensor);

#endif
