/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the state of the pass `blocked`: which nodes are in a channel-blocked region
 * (blocked_choice.c), and the blocked form of their values (pass_blocked.c).
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
    blocked_role *roles; /* by node; ROLE_NONE: not rewritten */
    value_id *in_blocks; /* by value: its channel-blocked form, or VALUE_NONE */
    value_id *plain;     /* by node: its output before it was rewritten */
    uint32_t *region;    /* by node: union-find parent within the region, or itself */
    double *saved;       /* by root node of a region: its gain, in operations */
} blocking;

/* Assigns roles to nodes: finds those that can be channel-blocked, and keeps the regions that save
 * more than the transposes at their borders cost. */
clg_status blocked_choose(blocking *b);
/* Returns whether node n is in a region; false for NODE_NONE. */
bool blocked_is_eligible(const blocking *b, node_id n);
/* Returns whether node `id`, which is in a region, reads input i in channel-blocked layout. */
bool blocked_reads(const blocking *b, node_id id, size_t i);
/* Returns the number of channel blocks of a feature map; the last one may be partly filled. */
int64_t blocked_count(const blocking *b, value_id v);

#endif
