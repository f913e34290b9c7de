/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares limits and helper functions that the files of src/graph share; private to this folder.
 */
#ifndef CLG_GRAPH_GRAPH_INTERNAL_H
#define CLG_GRAPH_GRAPH_INTERNAL_H

#include "graph/graph.h"

typedef struct graph_uses graph_uses;

#define GRAPH_MAX_OPSETS 64
/* Maximum number of attributes of a node; no operator has nearly as many. */
#define NODE_MAX_ATTRIBUTES 256

/* Frees the index of uses, which the next graph_replace_uses makes again. */
void graph_drop_uses(graph *g);
/* Returns a copy of the name in the arena, "" for NULL; NULL when out of memory. */
char *graph_copy_name(graph *g, const char *name);
/* Releases the node's attributes, with their tensors and subgraphs. */
void node_release(node *n);
/* Appends a copy of an attribute of another graph's node; a subgraph is cloned. */
clg_status node_copy_attribute(graph *g, node_id n, const graph_attribute *a);
/* Appends a copy of a value of another graph, with all its members but the name; the constant is
 * shared. */
clg_status graph_copy_value(graph *to, const value *v, const char *name, value_id *out_value);

#endif
