/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads ONNX models into graphs (graph.h). Nodes are kept as they are in the file, in its order,
 * except that model-local functions are inlined; graph_check reports undefined names and cycles.
 * Weights whose bytes are aligned are not copied: tensors keep the mapped file alive.
 */
#ifndef CLG_ONNX_ONNX_H
#define CLG_ONNX_ONNX_H

#include "graph/graph.h"

/* Flag: a constant whose external file is missing is not an error; its value has missing_file
 * set. */
#define ONNX_ALLOW_MISSING_DATA 1u
/* Flag: files are read into memory, not mapped. */
#define ONNX_READ_FILES 2u

/* Loads a model file. Errors: IO; INVALID_MODEL; UNSUPPORTED_ATTRIBUTE for strings with a NUL byte
 * in lists and for graphs passed to functions; UNSUPPORTED_DTYPE for sparse initializers and
 * unknown dtypes of inputs; OUT_OF_HOST_MEMORY. */
clg_status onnx_load_file(const char *path, unsigned flags, graph **out_graph);
/* Loads a model from memory, which is copied; errors as for onnx_load_file. External data files are
 * not found. */
clg_status onnx_load_memory(const void *data, size_t size_bytes, unsigned flags, graph **out_graph);

#endif
