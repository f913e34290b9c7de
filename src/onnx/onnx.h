/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads ONNX models into graphs (graph.h), and saves graphs as ONNX models. Nodes are kept as they
 * are in the file, in its order, except that model-local functions are inlined; graph_check reports
 * undefined names and cycles. Weights whose bytes are aligned are not copied: tensors keep the
 * mapped file alive.
 */
#ifndef CLG_ONNX_ONNX_H
#define CLG_ONNX_ONNX_H

#include "graph/graph.h"

/* Flag: a constant whose external file is missing is not an error; its value has missing_file
 * set. */
#define ONNX_ALLOW_MISSING_DATA 1u
/* Flag: files are read into memory, not mapped. */
#define ONNX_READ_FILES 2u

/* External data in memory of the application's. Reference-counted: each tensor in it holds one. */
typedef struct onnx_memory onnx_memory;
typedef struct onnx_memory_callbacks {
    clg_external_data_callback get;
    clg_release_callback release; /* may be NULL, as unload */
    clg_unload_callback unload;
    void *user;
} onnx_memory_callbacks;
/* release is called once: when the last reference is released, or by this call if it fails. */
clg_status onnx_memory_create(const onnx_memory_callbacks *callbacks, onnx_memory **out_memory);
void onnx_memory_release(onnx_memory *memory); /* accepts NULL */

/* In the functions below, `external` gives the external data, and no file with data is looked for;
 * NULL: files beside the model have it. */
/* Loads a model file. Errors: IO; INVALID_MODEL; UNSUPPORTED_ATTRIBUTE for strings with a NUL byte
 * in lists and for graphs passed to functions; UNSUPPORTED_DTYPE for sparse initializers and
 * unknown dtypes of inputs; OUT_OF_HOST_MEMORY; what the callback of `external` returns. */
clg_status onnx_load_file(const char *path, unsigned flags, onnx_memory *external,
                          graph **out_graph);
/* Loads a model from memory, which is copied; errors as for onnx_load_file. External data files are
 * not found. */
clg_status onnx_load_memory(const void *data, size_t size_bytes, unsigned flags,
                            onnx_memory *external, graph **out_graph);

/* How a graph is saved; all zeros are valid. */
typedef struct onnx_save_options {
    const clg_port *outputs; /* the types of outputs that declare none, by output; or NULL */
    const char *producer, *producer_version; /* NULL: not written */
    /* Numeric initializers of at least this size go to the file PATH.data; 0: all stay inside. */
    size_t external_bytes;
} onnx_save_options;

/* Write a graph that graph_check has accepted as a ModelProto, to a file or to memory, which the
 * caller frees with memory_free. Nodes whose version of their operator set is not the graph's
 * import, as inlined functions leave them, are written as calls of functions that import it.
 * Errors: NOT_FOUND for constants whose data was missing at loading; UNSUPPORTED_ATTRIBUTE for
 * lists of graphs and for external data inside of attributes that no operator has;
 * INVALID_ARGUMENT for more than 2 GiB; IO; OUT_OF_HOST_MEMORY. */
clg_status onnx_save_file(const graph *g, const char *path, const onnx_save_options *options);
clg_status onnx_save_memory(const graph *g, const onnx_save_options *options, void **out_data,
                            size_t *out_size_bytes);

#endif
