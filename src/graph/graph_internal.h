/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations shared by the files of this folder.
 */
#ifndef CLG_GRAPH_GRAPH_INTERNAL_H
#define CLG_GRAPH_GRAPH_INTERNAL_H

#include "graph/graph.h"

#define GRAPH_MAX_OPSETS 64
/* Attributes of one node; no operator has nearly as many. */
#define NODE_MAX_ATTRIBUTES 256

/* Copies a name into the arena; "" needs no memory. NULL when out of memory. */
char *graph_copy_name(graph *g, const char *name);
/* Releases the node's tensors and subgraphs. */
void node_release(node *n);
/* Appends a copy of an attribute of another graph's node; a subgraph is cloned. */
clg_status node_copy_attribute(graph *g, node_id n, const graph_attribute *a);

#endif
