/* SPDX-License-Identifier: Apache-2.0
 *
 * What a graph costs if it is cut into contiguous parts in topological order: work, memory, and
 * bytes that cross each cut; and the best cuts for given devices. Pure host code.
 */
#ifndef CLG_SESSION_LAYER_COSTS_H
#define CLG_SESSION_LAYER_COSTS_H

#include "ops/core/op.h"

/* The cuts that are considered divide the nodes into at most so many blocks. */
#define LAYER_MAX_BLOCKS 256

/* Nodes that depend on constants only belong to no block: each part that uses their results has
 * copies of them. Nor do nodes on which no output depends. */
typedef struct layer_costs {
    size_t n_blocks;
    node_id *starts;    /* n_blocks + 1: block i has the nodes starts[i] to starts[i + 1] - 1 */
    double *work;       /* n_blocks: operations, and memory traffic as operations */
    uint64_t *crossing; /* n_blocks + 1: bytes that cross the cut before block i */
    double *cut_work; /* n_blocks + 1: of the transfer, as operations, and what a cut there harms */
    /* (n_blocks + 1)^2, at [first * (n_blocks + 1) + end]: bytes of the constants of blocks first
     * to end - 1, each counted once; and with the values that are live at their peak. */
    uint64_t *weight_bytes, *part_bytes;
    bool *is_apart; /* by node: it belongs to no block */
} layer_costs;

/* A device, as far as cuts depend on it. */
typedef struct layer_device {
    double speed;         /* work a second, or relative to the other devices; 0: gets nothing */
    uint64_t limit_bytes; /* of memory */
} layer_device;

/* Computes the costs of a graph that ops_resolve accepted. facts: of its values, by id; what is not
 * known counts as nothing. */
clg_status layer_costs_create(const graph *g, const value_fact *facts, layer_costs *out_costs);
void layer_costs_deinit(layer_costs *c);

static inline size_t layer_index(const layer_costs *c, size_t first, size_t end)
{
    return first * (c->n_blocks + 1) + end;
}
/* Returns the work of blocks first to end - 1. */
double layer_work(const layer_costs *c, size_t first, size_t end);

/* Gives device i the blocks out_first[i] to out_first[i + 1] - 1 (n + 1 entries), so that the time
 * of the slowest device is about minimal and each device has enough memory. Each device with a
 * speed gets a block as far as there are cuts. Returns OUT_OF_DEVICE_MEMORY if the constants do not
 * fit; the message names a node that fits no device. Values of runs count as far as they leave a
 * choice: estimates of them are not sharp enough to refuse a model. */
clg_status layer_cut(const layer_costs *c, const graph *g, const layer_device *devices, size_t n,
                     size_t *out_first);

#endif
