/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the state of the pass `blocked`: the nodes that it rewrites to channel-blocked layout
 * (blocked_choice.c), and the rewritten values (pass_blocked.c).
 */
#ifndef CLG_PASSES_BLOCKED_H
#define CLG_PASSES_BLOCKED_H

#include "passes/rewrite.h"

/* How a node is rewritten to channel-blocked layout; ROLE_NONE: not at all. */
typedef enum blocked_role {
    ROLE_NONE,
    ROLE_TRANSPOSED, /* ConvTranspose */
    ROLE_CONV,
    ROLE_POOL,
    ROLE_REDUCE,
    ROLE_POINTWISE,
    ROLE_BATCHNORM,
    ROLE_CONCAT
} blocked_role;

/* The state of the pass. Arrays [node] and [value] are indexed by node_id and value_id. lanes:
 * channels per block. */
typedef struct blocking {
    graph *graph;
    graph_info info;
    int64_t lanes;
    blocked_role *roles; /* [node]; ROLE_NONE if it is not rewritten */
    value_id *in_blocks; /* [value]: the same in blocked layout, or VALUE_NONE */
    value_id *plain;     /* [node]: its output before it was rewritten */
    uint32_t *region;    /* [node]: parent in a union-find forest; a root is its own */
    double *saved;       /* [root]: what its region saves, in operations */
} blocking;

/* Sets roles: finds the nodes that can be channel-blocked, and keeps those connected regions that
 * save more time than the transposes at their borders cost. */
clg_status blocked_choose(blocking *b);
/* Returns whether node n has a role; false for NODE_NONE. */
bool blocked_is_eligible(const blocking *b, node_id n);
/* Returns whether node `id`, which has a role, reads input i in channel-blocked layout. */
bool blocked_reads(const blocking *b, node_id id, size_t i);
/* Returns whether a node of the rewritten graph is a BlockedConv of one convolution, not of two
 * that are fused. */
bool blocked_is_conv(const node *n);
/* Returns whether a node of the rewritten graph is a channel-blocked 1x1 convolution of one group
 * with strides of 1 and no padding (auto_pad adds none then), not one of two that are fused. */
bool blocked_is_point(const graph_info *s, const node *n);
/* Returns the number of channel blocks of a feature map; the last one may be padded. */
int64_t blocked_count(const blocking *b, value_id v);

#endif
