/* SPDX-License-Identifier: Apache-2.0
 *
 * Which nodes of a graph can be computed at all: by the library, on the device, through ONNX
 * Runtime's interface.
 */
#ifndef CLG_ONNXRUNTIME_EP_SUPPORT_H
#define CLG_ONNXRUNTIME_EP_SUPPORT_H

#include "ep_graph.h"
#include "ep_provider.h"

typedef struct ep_support {
    bool *supported;      /* of each node */
    const char **reasons; /* why not; NULL if supported */
    bool *heavy;          /* matrix products and the like, also in subgraphs: worth a transfer */
} ep_support;

/* Finds out for each node of the graph. All arrays are of the arena. A node with subgraphs is
 * supported if all nodes in them are. */
clg_status ep_support_find(ep_provider *provider, const ep_graph *graph, arena *memory,
                           ep_support *out_support);

#endif
