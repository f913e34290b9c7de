/* SPDX-License-Identifier: Apache-2.0
 *
 * What the pass `blocked` knows of a graph: which nodes are in a region (blocked_choice.c), and
 * what becomes of their values (pass_blocked.c).
 */
#ifndef CLG_PASSES_BLOCKED_H
#define CLG_PASSES_BLOCKED_H

#include "passes/rewrite.h"

typedef enum blocked_role {
    ROLE_NONE,
    ROLE_CONV,
    ROLE_POOL,
    ROLE_REDUCE,
    ROLE_POINTWISE,
    ROLE_BATCHNORM,
    ROLE_CONCAT
} blocked_role;

typedef struct blocking {
    graph *graph;
    graph_info info;
    int64_t lanes;
    blocked_role *roles; /* by node; ROLE_NONE: it stays as it is */
    value_id *in_blocks; /* by value: its form in blocks; VALUE_NONE */
    value_id *plain;     /* by node: its output before it was rewritten */
    uint32_t *region;    /* by node: another one of the same region, or itself */
    double *saved;       /* by node that represents its region */
} blocking;

/* Finds the roles: what can be in a region, in regions that save more than their borders cost. */
clg_status blocked_choose(blocking *b);
/* Whether node n is in a region; NODE_NONE does not. */
bool blocked_is_eligible(const blocking *b, node_id n);
/* Whether node `id`, which is in a region, reads input i in blocks. */
bool blocked_reads(const blocking *b, node_id id, size_t i);
/* Blocks that the channels of a feature map fill, the last one perhaps in part. */
int64_t blocked_count(const blocking *b, value_id v);

#endif
