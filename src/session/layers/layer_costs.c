/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the costs of a graph's nodes and of the cuts between them.
 *
 * A value crosses all cuts from its producer to its last consumer, where captures of a node's
 * subgraphs are uses by the node. Inputs of the model do not cross: the host has them. Sequences,
 * optionals and maps never cross, nor values of unknown dtype: cuts are elsewhere.
 */
#include "session/layers/layer_costs.h"

#include "ops/core/flops.h"

#include <string.h>

/* Operations that take as long as the transfer of a byte between a device and its memory, and
 * between it and the host: of CPUs; GPUs have other rates, but about the same ratios. */
#define WORK_PER_BYTE 10.0
#define WORK_PER_CROSSING_BYTE 60.0
#define NODE_WORK 10000.0 /* of a launch */
/* A node with fewer operations for each of its bytes is likely to be computed together with its
 * producer: a cut between them costs the fusion. */
#define FUSED_INTENSITY 8.0
#define FUSED_HARM 2.0
#define NO_CUT UINT64_MAX

/* ---- values ---------------------------------------------------------------------------------- */

typedef struct costing {
    const graph *g;
    const value_fact *facts;
    layer_costs *c;
    node_id *first, *last; /* by value: first and last node that has it, or NODE_NONE */
    uint64_t *live;        /* by node: bytes of values that live while it runs */
    uint64_t *crossing;    /* by node: of the cut before it; NO_CUT: not there */
    uint32_t *n_barred;    /* by node: values that forbid the cut before it */
    double *work;          /* by node */
    uint64_t *inner_bytes; /* by node: constants in its subgraphs */
    value_id *constants;   /* of the nodes, one node after the other */
    size_t *constants_end; /* by node: where its constants end */
    size_t n_constants, constants_capacity;
    node_id node;      /* for note_use */
    clg_status status; /* of note_use */
} costing;

static uint64_t bytes_of(const costing *k, value_id v)
{
    const value_fact *f = &k->facts[v];
    const tensor *t = k->g->values[v].constant;
    int64_t n;
    size_t bytes;
    if (t) return t->size_bytes;
    if (f->dtype == CLG_DTYPE_NONE || !shape_is_known(&f->dims) ||
        shape_n_elements(&f->dims, &n) != CLG_OK || !dtype_bytes(f->dtype, n, &bytes))
        return 0;
    return bytes;
}

static bool is_constant(const costing *k, value_id v)
{
    const value *x = &k->g->values[v];
    return x->constant || (x->producer != NODE_NONE && k->c->is_apart[x->producer]);
}

static bool has_body(const node *n)
{
    for (size_t i = 0; i < n->n_attributes; i++)
        if (n->attributes[i].type == ATTRIBUTE_GRAPH) return true;
    return false;
}

static void find_constant_nodes(costing *k)
{
    for (size_t i = 0; i < k->g->n_nodes; i++) {
        const node *n = &k->g->nodes[i];
        bool folds = op_folds(n) && !has_body(n);
        for (size_t a = 0; a < n->n_inputs && folds; a++)
            folds = n->inputs[a] == VALUE_NONE || is_constant(k, n->inputs[a]);
        k->c->is_apart[i] = folds;
    }
}

static void mark_use(void *used, value_id v) { ((bool *)used)[v] = true; }

/* Adds the nodes on which no output depends to those that belong to no block. */
static clg_status find_dead_nodes(costing *k)
{
    const graph *g = k->g;
    bool *used = memory_zalloc(g->n_values + 1, sizeof *used);
    if (!used) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < g->n_outputs; i++) used[g->outputs[i]] = true;
    for (size_t i = g->n_nodes; i-- > 0;) {
        const node *n = &g->nodes[i];
        bool is_used = false;
        for (size_t o = 0; o < n->n_outputs; o++)
            is_used |= n->outputs[o] != VALUE_NONE && used[n->outputs[o]];
        if (is_used)
            node_visit_uses(n, mark_use, used);
        else
            k->c->is_apart[i] = true;
    }
    memory_free(used);
    return CLG_OK;
}

/* Notes that node k->node uses v. */
static void note_use(void *user, value_id v)
{
    costing *k = user;
    if (k->status != CLG_OK) return;
    if (is_constant(k, v)) {
        k->status = MEMORY_RESERVE(k->constants, k->constants_capacity, k->n_constants + 1);
        if (k->status == CLG_OK) k->constants[k->n_constants++] = v;
        return;
    }
    if (k->first[v] == NODE_NONE) k->first[v] = k->node;
    k->last[v] = k->node;
}

/* Returns the bytes of the constants in the node's subgraphs. */
static uint64_t inner_bytes(const node *n)
{
    uint64_t bytes = 0;
    for (size_t a = 0; a < n->n_attributes; a++) {
        if (n->attributes[a].type != ATTRIBUTE_GRAPH) continue;
        const graph *body = n->attributes[a].as.graph;
        for (size_t v = 0; v < body->n_values; v++)
            if (body->values[v].constant) bytes += body->values[v].constant->size_bytes;
        for (size_t i = 0; i < body->n_nodes; i++) bytes += inner_bytes(&body->nodes[i]);
    }
    return bytes;
}

static clg_status note_node(costing *k, node_id i)
{
    const node *n = &k->g->nodes[i];
    uint64_t bytes = 0;
    k->node = i;
    node_visit_uses(n, note_use, k);
    k->inner_bytes[i] = inner_bytes(n);
    const bool looks_up = strncmp(n->op_type, "Gather", 6) == 0; /* reads a part of input 0 */
    for (size_t a = looks_up; a < n->n_inputs; a++)
        if (n->inputs[a] != VALUE_NONE) bytes += bytes_of(k, n->inputs[a]);
    for (size_t o = 0; o < n->n_outputs; o++) {
        const value_id v = n->outputs[o];
        if (v == VALUE_NONE) continue;
        k->first[v] = k->last[v] = i;
        bytes += bytes_of(k, v);
    }
    k->work[i] = NODE_WORK + flops_of_node(n, k->facts) + WORK_PER_BYTE * (double)bytes;
    return k->status;
}

static clg_status note_nodes(costing *k)
{
    find_constant_nodes(k);
    CLG_TRY(find_dead_nodes(k));
    for (size_t v = 0; v < k->g->n_values; v++) k->first[v] = k->last[v] = NODE_NONE;
    for (node_id i = 0; i < k->g->n_nodes; i++) {
        if (!k->c->is_apart[i]) CLG_TRY(note_node(k, i));
        k->constants_end[i] = k->n_constants;
    }
    return CLG_OK;
}

/* Adds up what lives at each node, and crosses before it, from where each value begins and ends:
 * unsigned numbers wrap on purpose. */
static void sum_up(costing *k)
{
    const size_t n = k->g->n_nodes;
    for (value_id v = 0; v < k->g->n_values; v++) {
        const value *x = &k->g->values[v];
        if (k->first[v] == NODE_NONE) continue;
        const uint64_t bytes = bytes_of(k, v);
        k->live[k->first[v]] += bytes;
        k->live[k->last[v] + 1] -= bytes;
        if (x->producer == NODE_NONE || k->first[v] == k->last[v]) continue;
        const bool may_cross =
            k->facts[v].kind == CLG_VALUE_TENSOR && k->facts[v].dtype != CLG_DTYPE_NONE;
        k->crossing[k->first[v] + 1] += bytes;
        k->crossing[k->last[v] + 1] -= bytes;
        if (may_cross) continue;
        k->n_barred[k->first[v] + 1]++;
        k->n_barred[k->last[v] + 1]--;
    }
    for (size_t i = 1; i <= n; i++) {
        k->live[i] += k->live[i - 1];
        k->crossing[i] += k->crossing[i - 1];
        k->n_barred[i] += k->n_barred[i - 1];
    }
    for (size_t i = 1; i < n; i++)
        if (k->n_barred[i]) k->crossing[i] = NO_CUT;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Returns what a cut before node i costs, as operations. */
static double cut_work(const costing *k, size_t i)
{
    const double crossing = (double)k->crossing[i] * WORK_PER_CROSSING_BYTE;
    const node *n = &k->g->nodes[i];
    double bytes = 1;
    for (size_t o = 0; o < n->n_outputs; o++)
        if (n->outputs[o] != VALUE_NONE) bytes += (double)bytes_of(k, n->outputs[o]);
    const bool fuses = flops_of_node(n, k->facts) < FUSED_INTENSITY * bytes;
    return fuses ? FUSED_HARM * crossing + NODE_WORK : crossing;
}

/* Chooses the cuts: all that are possible, or the best one of each window of nodes. A cut before a
 * node that depends on constants only would be that before the next one. */
static void choose_cuts(costing *k)
{
    layer_costs *c = k->c;
    const size_t n = k->g->n_nodes, window = n / LAYER_MAX_BLOCKS + 1;
    c->starts[0] = 0;
    for (size_t from = 0; from < n; from += window) {
        const size_t to = from + window < n ? from + window : n;
        size_t best = n;
        for (size_t i = from ? from : 1; i < to; i++) {
            if (c->is_apart[i] || k->crossing[i] == NO_CUT) continue;
            if (best == n || cut_work(k, i) < cut_work(k, best)) best = i;
        }
        if (best == n) continue;
        bool has_nodes = false; /* in the block that ends here */
        for (size_t i = c->starts[c->n_blocks]; i < best; i++) has_nodes |= !c->is_apart[i];
        if (has_nodes) c->starts[++c->n_blocks] = (node_id)best;
    }
    c->starts[++c->n_blocks] = (node_id)n;
}

static void fill_blocks(costing *k)
{
    layer_costs *c = k->c;
    for (size_t b = 0; b < c->n_blocks; b++) {
        for (size_t i = c->starts[b]; i < c->starts[b + 1]; i++) c->work[b] += k->work[i];
        if (b == 0) continue;
        c->crossing[b] = k->crossing[c->starts[b]];
        c->cut_work[b] = cut_work(k, c->starts[b]);
    }
}

/* Fills the tables of memory: for each first block, adds the following nodes one by one. */
static clg_status fill_memory(costing *k)
{
    layer_costs *c = k->c;
    size_t *seen_from = memory_zalloc(k->g->n_values + 1, sizeof *seen_from);
    if (!seen_from) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t first = 0; first < c->n_blocks; first++) {
        uint64_t weights = 0, peak = 0;
        for (size_t b = first; b < c->n_blocks; b++) {
            for (size_t i = c->starts[b]; i < c->starts[b + 1]; i++) {
                for (size_t j = i ? k->constants_end[i - 1] : 0;
                     k->constants && j < k->constants_end[i]; j++) {
                    const value_id v = k->constants[j];
                    if (seen_from[v] == first + 1) continue;
                    seen_from[v] = first + 1;
                    weights += bytes_of(k, v);
                }
                weights += k->inner_bytes[i];
                if (!c->is_apart[i] && k->live[i] > peak) peak = k->live[i];
            }
            c->weight_bytes[layer_index(c, first, b + 1)] = weights;
            c->part_bytes[layer_index(c, first, b + 1)] = weights + peak;
        }
    }
    memory_free(seen_from);
    return CLG_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static clg_status allocate(costing *k)
{
    const size_t n = k->g->n_nodes + 2, n_values = k->g->n_values + 1;
    k->first = memory_zalloc(n_values, sizeof *k->first);
    k->last = memory_zalloc(n_values, sizeof *k->last);
    k->live = memory_zalloc(n, sizeof *k->live);
    k->crossing = memory_zalloc(n, sizeof *k->crossing);
    k->n_barred = memory_zalloc(n, sizeof *k->n_barred);
    k->work = memory_zalloc(n, sizeof *k->work);
    k->inner_bytes = memory_zalloc(n, sizeof *k->inner_bytes);
    k->constants_end = memory_zalloc(n, sizeof *k->constants_end);
    k->c->is_apart = memory_zalloc(n, sizeof *k->c->is_apart);
    k->c->starts = memory_zalloc(LAYER_MAX_BLOCKS + 3, sizeof *k->c->starts);
    return k->first && k->last && k->live && k->crossing && k->n_barred && k->work &&
                   k->inner_bytes && k->constants_end && k->c->is_apart && k->c->starts
               ? CLG_OK
               : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

static clg_status allocate_blocks(layer_costs *c)
{
    const size_t n = c->n_blocks + 1;
    c->work = memory_zalloc(n, sizeof *c->work);
    c->crossing = memory_zalloc(n, sizeof *c->crossing);
    c->cut_work = memory_zalloc(n, sizeof *c->cut_work);
    c->weight_bytes = memory_zalloc(n * n, sizeof *c->weight_bytes);
    c->part_bytes = memory_zalloc(n * n, sizeof *c->part_bytes);
    return c->work && c->crossing && c->cut_work && c->weight_bytes && c->part_bytes
               ? CLG_OK
               : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

clg_status layer_costs_create(const graph *g, const value_fact *facts, layer_costs *out_costs)
{
    costing k = {.g = g, .facts = facts, .c = out_costs};
    *out_costs = (layer_costs){0};
    clg_status status = allocate(&k);
    if (status == CLG_OK) status = note_nodes(&k);
    if (status == CLG_OK) {
        sum_up(&k);
        choose_cuts(&k);
        status = allocate_blocks(out_costs);
    }
    if (status == CLG_OK) {
        fill_blocks(&k);
        status = fill_memory(&k);
    }
    memory_free(k.first);
    memory_free(k.last);
    memory_free(k.live);
    memory_free(k.crossing);
    memory_free(k.n_barred);
    memory_free(k.work);
    memory_free(k.inner_bytes);
    memory_free(k.constants);
    memory_free(k.constants_end);
    if (status != CLG_OK) layer_costs_deinit(out_costs);
    return status;
}

void layer_costs_deinit(layer_costs *c)
{
    memory_free(c->starts);
    memory_free(c->work);
    memory_free(c->crossing);
    memory_free(c->cut_work);
    memory_free(c->weight_bytes);
    memory_free(c->part_bytes);
    memory_free(c->is_apart);
    *c = (layer_costs){0};
}

double layer_work(const layer_costs *c, size_t first, size_t end)
{
    double sum = 0;
    for (size_t b = first; b < end; b++) sum += c->work[b];
    return sum;
}
