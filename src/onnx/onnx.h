/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX to the IR. Nothing is rewritten on the way: nodes stay what the file says, in its order, and what is
 * wrong with names or order is left to graph_check. Weights are not copied where their bytes are aligned:
 * tensors keep the mapped file alive.
 */
#ifndef CLG_ONNX_ONNX_H
#define CLG_ONNX_ONNX_H

#include "graph/graph.h"

/* A constant whose external file is not there becomes a value with missing_file set. */
#define ONNX_ALLOW_MISSING_DATA 1u

/* Errors: IO; INVALID_MODEL; UNSUPPORTED_OPERATOR for model-local functions; UNSUPPORTED_DTYPE for sparse
 * initializers and unknown dtypes of inputs; OUT_OF_HOST_MEMORY. */
clg_status onnx_load_file(const char *path, unsigned flags, graph **out_graph);
/* The bytes are copied. External data cannot be found from memory. */
clg_status onnx_load_memory(const void *data, size_t size_bytes, unsigned flags, graph **out_graph);

#endif
