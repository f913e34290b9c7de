/* SPDX-License-Identifier: Apache-2.0
 *
 * Random small graphs of pointwise, data-moving and matrix nodes, for tests of planning and of sessions. The same
 * seed gives the same graph.
 */
#ifndef CLG_TESTS_RANDOM_GRAPH_H
#define CLG_TESTS_RANDOM_GRAPH_H

#include "support/plan_case.h"

typedef struct random_graph_options {
    size_t n_nodes; /* about so many */
    bool
        data_dependent; /* some shapes are computed on the device; such a shape is one number, -1 fits */
    bool repeated_outputs; /* a value may be an output twice: of a plan, not of a model */
} random_graph_options;

uint64_t random_next(uint64_t *state); /* 31 bits */

/* Fills k's graph, which has inputs "x" and "y". */
void random_graph_make(plan_case *k, uint64_t seed, const random_graph_options *options);

#endif
