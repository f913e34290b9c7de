/* SPDX-License-Identifier: Apache-2.0
 *
 * Divides the supported nodes of a graph into groups that can each become one node. Plain data: it
 * knows neither ONNX Runtime nor OpenCL.
 */
#ifndef CLG_ONNXRUNTIME_EP_GROUPS_H
#define CLG_ONNXRUNTIME_EP_GROUPS_H

#include "base/error.h"

#define EP_NO_GROUP ((size_t)-1)

/* Edges from a node to the nodes that read its outputs: those of node i are
 * to[first[i]] .. to[first[i + 1] - 1], all greater than i: nodes are in topological order. */
typedef struct ep_edges {
    size_t n_nodes;
    const size_t *first; /* n_nodes + 1 */
    const size_t *to;
} ep_edges;

/* Sets out_group[i] to the group of node i, EP_NO_GROUP if it is not supported; groups have the
 * numbers 0 .. *out_n_groups - 1, in the order of their first nodes. A group is connected and
 * convex: no path between two of its nodes leaves it; and groups that become nodes form no cycle.
 * Time and memory are linear in nodes and edges. */
clg_status ep_groups_find(const ep_edges *edges, const bool *supported, size_t *out_group,
                          size_t *out_n_groups);

#endif
