/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares gradients of a model with differences, node by node: each node through which the
 * gradient passes becomes a separate model, at the values that it has in a run of the whole.
 */
#ifndef CLTOOL_NODE_CHECK_H
#define CLTOOL_NODE_CHECK_H

#include "differences.h"
#include "inputs.h"

#include <clgraph/inspect.h>

/* One float output of a node; the last row is the whole model. */
typedef struct check_row {
    const char *node, *op_type, *output; /* of the list of nodes; of the whole "" */
    check_result result;
} check_row;

typedef struct node_check {
    clg_model *model; /* with its loss */
    const char *y;
    const char *const *xs; /* names of the values by which y is differentiated */
    size_t n_xs;
    const input_set *inputs; /* of the model; `extra` is not among them */
    const char *extra;       /* an input more, NULL: none */
    clg_value *extra_value;
    const clg_node_info *nodes; /* of the model */
    size_t n_nodes;
    check_row *rows;                 /* node_check_free frees them */
    size_t n_rows, n_failed, n_open; /* n_open: not checked */
} node_check;

/* Checks all nodes on the path from xs to y, then the whole. The members before `rows` are set. */
int node_check_run(node_check *c, const options *o, clg_context *context);
void node_check_free(node_check *c);

#endif
