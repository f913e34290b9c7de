/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a node of any entry of the operator table, with random dtypes, shapes, elements, omitted
 * inputs and attributes, for tests of all entries. The same seed gives the same node. Most nodes
 * are invalid in one way or another: shapes that do not fit, say.
 *
 *     random_node k;
 *     random_node_make(&k, row, seed, RANDOM_NODE_MIXED);
 *     status = random_node_infer(&k);
 *     random_node_end(&k);
 */
#ifndef CLG_TESTS_RANDOM_NODE_H
#define CLG_TESTS_RANDOM_NODE_H

#include "ops/core/op.h"

#define RANDOM_NODE_VALUES 12 /* inputs, and outputs */

typedef enum random_node_inputs {
    RANDOM_NODE_MIXED,    /* elements known or not, dimensions too */
    RANDOM_NODE_CONSTANT, /* all elements are known */
    RANDOM_NODE_BARE      /* no attributes, no optional inputs or outputs; as MIXED otherwise */
} random_node_inputs;

typedef struct random_node {
    const op_row *row;
    graph *graph;
    node *node;
    value_fact inputs[RANDOM_NODE_VALUES], outputs[RANDOM_NODE_VALUES];
    uint64_t state; /* of random_node_draw */
} random_node;

/* Optional inputs are omitted by the bits of seed: seeds 0 to 2^k - 1 omit k of them in all
 * combinations. */
void random_node_make(random_node *k, const op_row *row, uint64_t seed, random_node_inputs inputs);
void random_node_end(random_node *k);
/* Checks the node (ops_check_node) and infers its outputs (ops_infer_node). */
clg_status random_node_infer(random_node *k);
/* Returns a random number from 0 to n - 1. */
uint64_t random_node_draw(random_node *k, uint64_t n);
/* Calls body with each entry of the operator table. */
void random_node_each_row(void (*body)(const op_row *row));

#endif
