/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of strings between ONNX Runtime, whose strings have lengths, and the library, whose
 * strings end with NUL.
 */
#ifndef CLG_ONNXRUNTIME_EP_STRINGS_H
#define CLG_ONNXRUNTIME_EP_STRINGS_H

#include "ep_host.h"

/* Copies a tensor of n strings into a new value. INVALID_ARGUMENT if one contains NUL. */
clg_status ep_strings_read(const ep_host *host, const OrtValue *tensor, size_t n, size_t rank,
                           const int64_t *dims, clg_value **out_value);
/* Copies a value's strings into a tensor of the same shape. */
clg_status ep_strings_write(const ep_host *host, const clg_value *value, OrtValue *tensor);

#endif
