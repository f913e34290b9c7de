/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph of ONNX Runtime as an ONNX model in memory, and as a model of the library. Weights are
 * not copied: the ONNX model names them as external data. See decision 59.
 */
#ifndef CLG_ONNXRUNTIME_EP_MODEL_H
#define CLG_ONNXRUNTIME_EP_MODEL_H

#include "ep_graph.h"

typedef struct ep_weight {
    const void *data; /* ONNX Runtime's memory */
    size_t size_bytes;
} ep_weight;

/* An ONNX model and the weights it refers to by their indices as locations ("17"). */
typedef struct ep_onnx {
    void *bytes;
    size_t size_bytes;
    ep_weight *weights;
    size_t n_weights, weights_capacity;
} ep_onnx;

/* Writes the nodes of a graph. skipped[i] leaves node i out; NULL: none. Values that a written node
 * reads and none produces become inputs of the model, with their types, constant initializers
 * become weights. Outputs are those of the graph that written nodes produce or, if there are none,
 * of the last written node. Errors: UNSUPPORTED_DTYPE and UNSUPPORTED_ATTRIBUTE (what cannot be
 * written, naming it). */
clg_status ep_onnx_write(const ep_host *host, const ep_graph *graph, const bool *skipped,
                         arena *memory, ep_onnx *out_onnx);
/* Returns whether a node can be written, with its subgraphs; UNSUPPORTED_* if not. */
clg_status ep_onnx_check_node(const ep_host *host, const ep_node *node, arena *memory);
void ep_onnx_deinit(ep_onnx *onnx); /* accepts one of all zeros */

/* Loads the model, whatever of it is not supported. weights[i] is the memory of its i-th weight,
 * which stays valid and unchanged until `release(user)` runs, exactly once, also after a failure;
 * release may be NULL. */
clg_status ep_onnx_load(const ep_onnx *onnx, const ep_weight *weights, clg_release_callback release,
                        void *user, clg_model **out_model);

#endif
