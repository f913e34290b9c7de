/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `cltool inspect --html`: a model's graph with shapes, dtypes, parameters and FLOPs.
 */
#ifndef CLTOOL_HTML_MODEL_H
#define CLTOOL_HTML_MODEL_H

#include "html_page.h"

#include <clgraph/inspect.h>

typedef struct model_page {
    const char *model_name; /* of the file, without its folder */
    const clg_model *model;
    const clg_model_info *info;
    const clg_node_info *nodes;
    size_t n_nodes;
    const clg_shape_override *shapes; /* of the inputs */
    size_t n_shapes;
    double flops;                      /* of all nodes; 0: not known */
    const clg_memory_estimate *memory; /* NULL: not known */
} model_page;

/* Returns the page in *out_text, which the caller frees with free(). Where shapes are not known,
 * the graph has none. */
int html_model(const model_page *p, char **out_text);

#endif
