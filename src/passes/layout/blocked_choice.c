/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the nodes that compute in channel-blocked layout: finds all that can, then the connected
 * regions of these nodes, and keeps the regions that save more time than the transposes at their
 * borders cost.
 */
#include "ops/conv/conv_blocked.h"
#include "ops/conv/conv_transpose.h"
#include "ops/pointwise/pointwise.h"
#include "passes/layout/blocked.h"

/* Cost model of the channel-blocked layout. A transpose at a region's border takes, per element,
 * the time that the layout saves in this many operations of convolutions. An estimate from profiles
 * of ResNet-50 (`cltool profile`), not tuned, on x86-64 with AVX-512 (vectors of 16 lanes), PoCL
 * 3.1, 2026-11-22 (decision 30). Checked by:
 *     cltool bench MODEL, and again with --disable-pass blocked */
#define OPERATIONS_OF_ELEMENT 1200.0
/* Operations that a depthwise convolution is assumed to save per output element: half as many,
 * since memory limits it more than arithmetic. Estimated, not measured. */
#define OPERATIONS_OF_DEPTHWISE (OPERATIONS_OF_ELEMENT / 2)

#define MAX_PLANES 4 /* most channels of an NCHW input that a ROLE_CONV reads: images */

/* ---- nodes that can be channel-blocked ------------------------------------------------------- */

/* Kernels count channels, and elements of one block of channels, in 32 bits. */
#define MAX_CHANNELS ((int64_t)1 << 30)
#define MAX_PIXELS ((int64_t)1 << 24)

static bool is_known(const shape *x)
{
    return x->dims[1] > 0 && x->dims[1] <= MAX_CHANNELS && x->dims[2] > 0 && x->dims[3] > 0 &&
           x->dims[2] <= MAX_PIXELS / x->dims[3];
}

static bool is_float_map(const blocking *b, value_id v)
{
    if (v == VALUE_NONE || b->info.constant[v]) return false;
    const value_fact *f = &b->info.facts[v];
    return f->dtype == CLG_FLOAT32 && f->dims.rank == 4 && is_known(&f->dims);
}

static bool fills_blocks(const blocking *b, value_id v)
{
    return b->info.facts[v].dims.dims[1] % b->lanes == 0;
}

int64_t blocked_count(const blocking *b, value_id v)
{
    return (b->info.facts[v].dims.dims[1] + b->lanes - 1) / b->lanes;
}

bool blocked_is_eligible(const blocking *b, node_id n)
{
    return n != NODE_NONE && b->roles[n] != ROLE_NONE;
}

/* Returns whether v is a feature map that can be channel-blocked, whichever node produces it: its
 * last block of channels is full. */
static bool is_map(const blocking *b, value_id v)
{
    return is_float_map(b, v) && fills_blocks(b, v);
}

/* As is_map, but the last block may be padded with lanes of zeros. Convolutions write such zeros,
 * and sums, means and maxima of zeros over pixels are zeros too. */
static bool is_filled_map(const blocking *b, value_id v)
{
    if (!is_float_map(b, v)) return false;
    if (fills_blocks(b, v) || b->in_blocks[v] != VALUE_NONE) return true;
    const node_id from = b->graph->values[v].producer;
    return from != NODE_NONE && (b->roles[from] == ROLE_CONV || b->roles[from] == ROLE_TRANSPOSED ||
                                 b->roles[from] == ROLE_POOL || b->roles[from] == ROLE_REDUCE);
}

/* Returns whether padding lanes cost little: they are at most half as many as the channels, or the
 * feature map has a single pixel. */
static bool is_worth_filling(const blocking *b, value_id v)
{
    const int64_t *d = b->info.facts[v].dims.dims;
    return d[2] * d[3] == 1 || 2 * blocked_count(b, v) * b->lanes <= 3 * d[1];
}

static int64_t window_at(const node *n, const char *name, size_t i)
{
    size_t count;
    const int64_t *values = node_ints(n, name, &count);
    return i < count ? values[i] : 1;
}

static bool is_image(const blocking *b, value_id v)
{
    const value_fact *f = &b->info.facts[v];
    return f->dtype == CLG_FLOAT32 && f->dims.rank == 4 && is_known(&f->dims) &&
           f->dims.dims[1] <= MAX_PLANES;
}

/* Returns whether the convolution's groups are supported: one group, or a depthwise convolution
 * with one output channel per input channel. */
static bool groups_can(const blocking *b, const node *n, const shape *w)
{
    const int64_t groups = node_int(n, "group", 1);
    if (groups == 1) return is_filled_map(b, n->inputs[0]) || is_image(b, n->inputs[0]);
    return w->dims[1] == 1 && w->dims[0] == groups && is_filled_map(b, n->inputs[0]);
}

static bool conv_can(const blocking *b, const node *n)
{
    if (!node_is_conv(n) || n->inputs[1] == VALUE_NONE || !is_worth_filling(b, n->outputs[0]))
        return false;
    const value_fact *w = &b->info.facts[n->inputs[1]];
    if (!b->info.constant[n->inputs[1]] || w->dtype != CLG_FLOAT32 || w->dims.rank != 4 ||
        !groups_can(b, n, &w->dims))
        return false;
    for (size_t i = 0; i < 2; i++) {
        const int64_t side = w->dims.dims[2 + i];
        if (side < 1 || side > BLOCKED_MAX_SIDE ||
            (side - 1) * window_at(n, "dilations", i) >= BLOCKED_MAX_SIDE ||
            window_at(n, "strides", i) > BLOCKED_MAX_STRIDE)
            return false;
    }
    return !node_has_input(n, 3) || is_filled_map(b, n->inputs[3]);
}

/* Returns whether the node is a ConvTranspose of one group with constant weights whose phases are
 * convolutions. */
static bool transposed_can(const blocking *b, const node *n)
{
    if (!node_is(n, "ConvTranspose") || n->n_inputs < 2 || n->inputs[1] == VALUE_NONE ||
        node_int(n, "group", 1) != 1 || !is_filled_map(b, n->inputs[0]) ||
        !is_worth_filling(b, n->outputs[0]))
        return false;
    const value_fact *x = &b->info.facts[n->inputs[0]], *w = &b->info.facts[n->inputs[1]];
    window_desc win;
    return b->info.constant[n->inputs[1]] && w->dtype == CLG_FLOAT32 && w->dims.rank == 4 &&
           shape_is_known(&w->dims) && conv_transpose_read(n, &x->dims, &w->dims, &win) == CLG_OK &&
           conv_blocked_has_phases(&win);
}

/* Returns whether each window of a max pool contains a pixel. The maximum of an empty window is the
 * lowest number, but padding lanes must stay zero. */
static bool windows_have_pixels(const node *n)
{
    size_t n_pads;
    const int64_t *pads = node_ints(n, "pads", &n_pads);
    for (size_t i = 0; i < n_pads; i++)
        if (pads[i] >= window_at(n, "kernel_shape", i % 2)) return false;
    return window_at(n, "dilations", 0) == 1 && window_at(n, "dilations", 1) == 1;
}

static bool pool_can(const blocking *b, const node *n)
{
    return node_is(n, "AveragePool") ||
           (node_is(n, "MaxPool") && n->n_outputs == 1 &&
            (fills_blocks(b, n->outputs[0]) || windows_have_pixels(n)));
}

/* Returns whether the node reduces over all pixels by mean or maximum, the only reductions that are
 * supported. */
static bool reduce_can(const node *n)
{
    if (node_is(n, "GlobalAveragePool") || node_is(n, "GlobalMaxPool")) return true;
    size_t count;
    const int64_t *axes = node_ints(n, "axes", &count);
    return (node_is(n, "ReduceMean") || node_is(n, "ReduceMax")) && n->n_inputs == 1 &&
           count == 2 && node_int(n, "keepdims", 1) != 0 &&
           ((axes[0] == 2 && axes[1] == 3) || (axes[0] == -2 && axes[1] == -1));
}

/* Returns whether v is a constant that is a scalar or has one value per channel. */
static bool is_by_channel(const blocking *b, value_id v)
{
    const shape *x = &b->info.facts[v].dims;
    if (!b->info.constant[v] || x->rank < 0 || x->rank > 4) return false;
    for (int i = 0; i < x->rank; i++)
        if (x->dims[i] != 1 && (i != x->rank - 3 || x->dims[i] % b->lanes != 0)) return false;
    return true;
}

/* Returns whether a pointwise node can be channel-blocked: each input is a feature map with the
 * output's channels, perhaps of a single pixel (squeeze and excitation), or a constant that is a
 * scalar or has one value per channel. */
static bool pointwise_can(const blocking *b, const node *n)
{
    if (!pointwise_is(n) || n->n_outputs != 1 || !is_map(b, n->outputs[0])) return false;
    const shape *y = &b->info.facts[n->outputs[0]].dims;
    for (size_t i = 0; i < n->n_inputs; i++) {
        if (n->inputs[i] == VALUE_NONE || is_by_channel(b, n->inputs[i])) continue;
        if (!is_map(b, n->inputs[i])) return false;
        const shape *x = &b->info.facts[n->inputs[i]].dims;
        if (x->dims[1] != y->dims[1]) return false;
    }
    return true;
}

static bool batchnorm_can(const blocking *b, const node *n)
{
    if (!node_is(n, "BatchNormalization") || n->n_outputs != 1 || n->n_inputs != 5) return false;
    for (size_t i = 1; i < 5; i++)
        if (n->inputs[i] == VALUE_NONE || !b->info.constant[n->inputs[i]] ||
            b->info.facts[n->inputs[i]].dims.rank != 1 ||
            b->info.facts[n->inputs[i]].dtype != CLG_FLOAT32)
            return false;
    return true;
}

static bool concat_can(const blocking *b, const node *n)
{
    const int64_t axis = node_int(n, "axis", 1);
    if (!node_is(n, "Concat") || (axis != 1 && axis != -3)) return false;
    for (size_t i = 0; i < n->n_inputs; i++)
        if (!is_map(b, n->inputs[i])) return false;
    return true;
}

static blocked_role role_of(const blocking *b, const node *n)
{
    if (n->removed || n->n_inputs == 0 || n->inputs[0] == VALUE_NONE || n->n_outputs < 1 ||
        n->outputs[0] == VALUE_NONE || !is_float_map(b, n->outputs[0]))
        return ROLE_NONE;
    if (conv_can(b, n)) return ROLE_CONV;
    if (transposed_can(b, n)) return ROLE_TRANSPOSED;
    if (pointwise_can(b, n)) return ROLE_POINTWISE;
    if (!is_filled_map(b, n->inputs[0])) return ROLE_NONE;
    if (pool_can(b, n)) return ROLE_POOL;
    if (reduce_can(n)) return ROLE_REDUCE;
    if (!fills_blocks(b, n->outputs[0])) return ROLE_NONE;
    if (batchnorm_can(b, n)) return ROLE_BATCHNORM;
    return concat_can(b, n) ? ROLE_CONCAT : ROLE_NONE;
}

bool blocked_reads(const blocking *b, node_id id, size_t i)
{
    const value_id v = b->graph->nodes[id].inputs[i];
    if (v == VALUE_NONE) return false;
    switch (b->roles[id]) {
    case ROLE_CONV: return (i == 0 || i == 3) && is_filled_map(b, v);
    case ROLE_TRANSPOSED: return i == 0;
    case ROLE_POOL:
    case ROLE_REDUCE: return is_filled_map(b, v);
    default: return is_map(b, v);
    }
}

/* Sets the role of each node that can be channel-blocked. Convolutions can be so by themselves,
 * other nodes only if their inputs are already. */
static void find_roles(blocking *b)
{
    for (node_id i = 0; i < b->graph->n_nodes; i++) {
        const node *n = &b->graph->nodes[i];
        b->roles[i] = role_of(b, n);
        for (size_t k = 0; b->roles[i] > ROLE_CONV && k < n->n_inputs; k++) {
            if (!blocked_reads(b, i, k)) continue;
            const node_id from = b->graph->values[n->inputs[k]].producer;
            if (from == NODE_NONE || b->roles[from] == ROLE_NONE) b->roles[i] = ROLE_NONE;
        }
    }
}

/* ---- regions --------------------------------------------------------------------------------- */

static node_id region_of(blocking *b, node_id n)
{
    while (b->region[n] != n) {
        b->region[n] = b->region[b->region[n]];
        n = b->region[n];
    }
    return n;
}

/* Returns an array [value]: how often nodes with a role read the value in blocked layout. The
 * caller frees it with memory_free. NULL if memory is exhausted. */
static uint32_t *count_readings(const blocking *b)
{
    uint32_t *count = memory_zalloc(b->info.n_values + 1, sizeof *count);
    for (node_id i = 0; count && i < b->graph->n_nodes; i++)
        for (size_t k = 0; blocked_is_eligible(b, i) && k < b->graph->nodes[i].n_inputs; k++)
            if (blocked_reads(b, i, k)) count[b->graph->nodes[i].inputs[k]]++;
    return count;
}

/* Returns the number of elements per image that a transpose of v moves; 0 for a feature map of one
 * pixel, which is the same in both layouts. */
static double transposed_elements(const blocking *b, value_id v)
{
    const int64_t *d = b->info.facts[v].dims.dims;
    return d[2] * d[3] == 1 ? 0 : (double)d[1] * (double)d[2] * (double)d[3];
}

/* Returns the number of operations per image of a convolution; for a depthwise one, what it is
 * assumed to save. */
static double conv_operations(const blocking *b, const node *n)
{
    if (node_int(n, "group", 1) > 1)
        return OPERATIONS_OF_DEPTHWISE * transposed_elements(b, n->outputs[0]);
    const int64_t *w = b->info.facts[n->inputs[1]].dims.dims,
                  *y = b->info.facts[n->outputs[0]].dims.dims;
    if (node_is(n, "ConvTranspose")) y = b->info.facts[n->inputs[0]].dims.dims;
    return 2.0 * (double)(w[0] * w[1]) * (double)(w[2] * w[3]) * (double)(y[2] * y[3]);
}

/* Removes regions whose operations save less than the transposes at their borders cost. */
static clg_status find_costs(blocking *b)
{
    uint32_t *readings = count_readings(b);
    if (!readings) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (node_id i = 0; i < b->graph->n_nodes; i++) b->region[i] = i;
    for (node_id i = 0; i < b->graph->n_nodes; i++)
        for (size_t k = 0; blocked_is_eligible(b, i) && k < b->graph->nodes[i].n_inputs; k++) {
            const node *n = &b->graph->nodes[i];
            if (!blocked_reads(b, i, k)) continue;
            const node_id from = b->graph->values[n->inputs[k]].producer;
            if (blocked_is_eligible(b, from)) b->region[region_of(b, i)] = region_of(b, from);
        }
    for (node_id i = 0; i < b->graph->n_nodes; i++) {
        if (!blocked_is_eligible(b, i)) continue;
        const node *n = &b->graph->nodes[i];
        double *saved = &b->saved[region_of(b, i)];
        if (b->roles[i] == ROLE_CONV || b->roles[i] == ROLE_TRANSPOSED)
            *saved += conv_operations(b, n);
        if (readings[n->outputs[0]] < b->info.uses[n->outputs[0]])
            *saved -= OPERATIONS_OF_ELEMENT * transposed_elements(b, n->outputs[0]);
        for (size_t k = 0; k < n->n_inputs; k++) {
            if (!blocked_reads(b, i, k)) continue;
            const value_id v = n->inputs[k];
            if (!blocked_is_eligible(b, b->graph->values[v].producer))
                *saved -= OPERATIONS_OF_ELEMENT * transposed_elements(b, v) / (double)readings[v];
        }
    }
    memory_free(readings);
    for (node_id i = 0; i < b->graph->n_nodes; i++)
        if (blocked_is_eligible(b, i) && b->saved[region_of(b, i)] <= 0) b->roles[i] = ROLE_NONE;
    return CLG_OK;
}

clg_status blocked_choose(blocking *b)
{
    find_roles(b);
    return find_costs(b);
}
