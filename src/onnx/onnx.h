/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads ONNX into the IR. Nodes stay as in the file, in its order, except that model-local
 * functions are inlined; graph_check reports errors of names or order. Weights are not copied where
 * their bytes are aligned: tensors keep the mapped file alive.
 */
#ifndef CLG_ONNX_ONNX_H
#define CLG_ONNX_ONNX_H

#include "graph/graph.h"

/* Flag: a constant whose external file is missing becomes a value with missing_file set. */
#define ONNX_ALLOW_MISSING_DATA 1u

/* Loads a model. Errors: IO; INVALID_MODEL; UNSUPPORTED_ATTRIBUTE for strings with a NUL byte in
 * lists and for graphs passed to functions; UNSUPPORTED_DTYPE for sparse initializers and unknown
 * dtypes of inputs; OUT_OF_HOST_MEMORY. */
clg_status onnx_load_file(const char *path, unsigned flags, graph **out_graph);
/* Loads from memory; the bytes are copied. External data cannot be found from memory. */
clg_status onnx_load_memory(const void *data, size_t size_bytes, unsigned flags, graph **out_graph);

#endif
