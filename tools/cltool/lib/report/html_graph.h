/* SPDX-License-Identifier: Apache-2.0
 *
 * A model's graph as SVG in a page: inputs above, outputs below, nodes coloured by their share of
 * the work.
 */
#ifndef CLTOOL_HTML_GRAPH_H
#define CLTOOL_HTML_GRAPH_H

#include "html_page.h"

#include <clgraph/inspect.h>

typedef struct html_graph {
    const clg_model *model;
    const clg_node_info *nodes; /* as clg_model_nodes or clg_session_nodes list them */
    size_t n_nodes;
    const clg_node_estimate *estimates; /* of the nodes; NULL: none */
    const double *us;                   /* device time of each node; NULL: colours show FLOPs */
    size_t max_nodes;                   /* drawn at most; 0: HTML_GRAPH_MAX_NODES */
} html_graph;
#define HTML_GRAPH_MAX_NODES 2000

/* Appends the section of the graph: what is left out, controls, the drawing. Nodes that depend on
 * constants only are left out. */
void html_add_graph(text_buffer *b, const html_graph *g);
/* Returns "float32 [1,64,56,56]", or without its dtype; free(). */
char *html_type_text(const clg_port *port, bool with_dtype);

#endif
