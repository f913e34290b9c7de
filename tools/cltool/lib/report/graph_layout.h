/* SPDX-License-Identifier: Apache-2.0
 *
 * Places the nodes of an acyclic graph in layers from top to bottom (Sugiyama, Tagawa and Toda,
 * 1981): a layer for each length of the longest path, few crossings by barycenters, and edges that
 * pass between the nodes of the layers that they cross.
 */
#ifndef CLTOOL_GRAPH_LAYOUT_H
#define CLTOOL_GRAPH_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct layout_edge {
    size_t from, to; /* nodes; from < to, else the edge is ignored */
} layout_edge;

/* A node of the graph, or a bend of an edge in a layer that it crosses. */
typedef struct layout_vertex {
    double x, y; /* the centre */
    double width;
    size_t layer;
    bool is_bend;
} layout_vertex;

typedef struct graph_layout {
    layout_vertex *vertices; /* the nodes first, in their order */
    size_t n_vertices;
    layout_edge *links; /* between vertices of neighbouring layers; edges of a node share them */
    size_t n_links;
    double width, height; /* of the drawing, which starts at 0, 0 */
    size_t n_dropped;     /* edges across so many layers that they are not drawn */
} graph_layout;

/* Places n nodes of these widths and of one height, in pixels. max_bends: an upper limit for
 * vertices that are bends; the longest edges are dropped beyond it. */
void graph_layout_make(size_t n_nodes, const double *widths, double height, size_t n_edges,
                       const layout_edge *edges, size_t max_bends, graph_layout *out_layout);
void graph_layout_free(graph_layout *layout);

#endif
