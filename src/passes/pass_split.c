/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits operators whose constant weights exceed the device's largest buffer: each part has some of
 * the weights' output channels, and Concat joins the results. An embedding table (Gather along its
 * first axis) is split by rows: each part looks up the indices that are its own, and Where chooses
 * between the results. Parts along the first axis share the model's memory. See decision 41.
 */
#include "passes/rewrite.h"

#include <string.h>

/* Rows of a part are a multiple of this where there are as many, so that parts fill whole tiles. */
#define ROWS_UNIT 64
/* A part leaves this fraction of the largest buffer free: kernels pack weights into whole tiles. */
#define SPARE_FRACTION 8
#define NO_AXIS (-1)
#define MAX_COMPANIONS 4
#define MAX_INPUTS 8

/* An operator whose weights are split by output channel. */
typedef struct split_rule {
    const char *domain, *op_type;
    int (*axis)(const node *n, const shape *w); /* the weights' axis, or NO_AXIS */
    int64_t output_axis;
    /* Other inputs with elements for each output channel along the first axis, or, if `last`, the
     * last one; 0 ends the list. */
    size_t companions[MAX_COMPANIONS];
    bool last;
    const char *count; /* attribute that is the number of output channels, or NULL */
} split_rule;

/* The state of the pass for one node; rows are indices along the weights' axis. */
typedef struct splitting {
    graph_info *info;
    graph *graph;
    node_id node;
    const split_rule *rule;
    int axis;
    int64_t rows, rows_per_part;
} splitting;

/* ---- operators ------------------------------------------------------------------------------- */

static int axis_of_matmul(const node *n, const shape *w)
{
    (void)n;
    return w->rank == 2 ? 1 : NO_AXIS;
}

static int axis_of_gemm(const node *n, const shape *w)
{
    return w->rank == 2 ? node_int(n, "transB", 0) == 0 : NO_AXIS;
}

static int axis_of_conv(const node *n, const shape *w)
{
    (void)w;
    return node_int(n, "group", 1) == 1 ? 0 : NO_AXIS;
}

static int axis_of_nbits(const node *n, const shape *w)
{
    (void)w;
    return node_has_input(n, 4) ? NO_AXIS : 0; /* input 4 reorders the other axis */
}

static const split_rule rules[] = {
    {"", "MatMul", axis_of_matmul, -1, {0}, false, NULL},
    {"", "Gemm", axis_of_gemm, 1, {2}, true, NULL},
    {"", "Conv", axis_of_conv, 1, {2}, false, NULL},
    {"com.microsoft", "MatMulNBits", axis_of_nbits, -1, {2, 3, 5}, false, "N"},
};

static const split_rule *find_rule(const node *n)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!n->removed && strcmp(n->domain, rules[i].domain) == 0 &&
            strcmp(n->op_type, rules[i].op_type) == 0)
            return &rules[i];
    return NULL;
}

/* ---- parts of constants ---------------------------------------------------------------------- */

static void retain(void *t) { (void)tensor_retain(t); }
static void release(void *t) { tensor_free(t); }
static void unload(void *t, const void *data, size_t size_bytes)
{
    const tensor *whole = t;
    tensor_unload(whole, (size_t)((const char *)data - (const char *)whole->data), size_bytes);
}

/* Creates the tensor of `n` indices from `start` along an axis: a view of the same memory if these
 * are consecutive bytes, else a copy. */
static clg_status slice_tensor(tensor *t, int axis, int64_t start, int64_t n, tensor **out_part)
{
    const size_t row_bytes =
        (size_t)shape_product(&t->dims, axis + 1, t->dims.rank) * dtype_size(t->dtype);
    const size_t all_bytes = (size_t)t->dims.dims[axis] * row_bytes;
    const int64_t n_outer = shape_product(&t->dims, 0, axis);
    const char *from = (const char *)t->data + (size_t)start * row_bytes;
    shape dims = t->dims;
    dims.dims[axis] = n;
    if (n_outer == 1)
        return tensor_from_bytes(t->dtype, &dims, from, (size_t)n * row_bytes,
                                 &(tensor_owner){retain, release, t, unload}, out_part);
    CLG_TRY(tensor_create(t->dtype, &dims, out_part));
    for (int64_t i = 0; i < n_outer; i++)
        memcpy((char *)(*out_part)->data + (size_t)i * (size_t)n * row_bytes,
               from + (size_t)i * all_bytes, (size_t)n * row_bytes);
    return CLG_OK;
}

/* Returns the Transpose of a constant that computes this value, or NULL. */
static const node *transpose_of(const graph *g, value_id v)
{
    const node_id producer = g->values[v].producer;
    const node *n = producer == NODE_NONE ? NULL : &g->nodes[producer];
    return n && node_is(n, "Transpose") && g->values[n->inputs[0]].constant ? n : NULL;
}

/* Returns the tensor that holds the value's elements, in another order if it is transposed; NULL if
 * it cannot be sliced. */
static tensor *stored(const graph *g, value_id v)
{
    const node *n = transpose_of(g, v);
    tensor *t = g->values[n ? n->inputs[0] : v].constant;
    return t && dtype_size(t->dtype) > 0 ? t : NULL;
}

/* Adds the value of `n` indices from `start` along an axis of a constant. */
static clg_status slice_value(splitting *s, value_id v, int axis, int64_t start, int64_t n,
                              value_id *out_part)
{
    graph *g = s->graph;
    const node *moved = transpose_of(g, v);
    tensor *t = stored(g, v), *part;
    size_t count = 0;
    const int64_t *perm = moved ? node_ints(moved, "perm", &count) : NULL;
    const node_id producer = g->values[v].producer;
    const int rank = t->dims.rank;
    int from = axis;
    if (moved) from = count == (size_t)rank ? (int)perm[axis] : rank - 1 - axis;
    CLG_TRY(slice_tensor(t, from, start, n, &part));
    const clg_status status = graph_add_constant(g, "", part, out_part);
    tensor_free(part);
    CLG_TRY(status);
    if (!moved) return CLG_OK;
    CLG_TRY(rewrite_part(g, s->node, "", "Transpose", moved->opset, 1, out_part, out_part));
    return rewrite_attributes(g, producer, g->values[*out_part].producer);
}

/* ---- output channels ------------------------------------------------------------------------- */

static int companion_axis(const splitting *s, const shape *dims)
{
    return s->rule->last ? dims->rank - 1 : 0;
}

/* Returns whether each output channel has different elements of this input, all as many. */
static bool is_split(const splitting *s, const shape *dims)
{
    const int axis = companion_axis(s, dims);
    return dims->rank > 0 && dims->dims[axis] % s->rows == 0 && dims->dims[axis] > 0;
}

/* Returns whether this input can be given to the parts: it is absent, the same for all output
 * channels, or a constant to be sliced. */
static bool allows(const splitting *s, const node *n, size_t input)
{
    if (!node_has_input(n, input)) return true;
    const shape *dims = &s->info->facts[n->inputs[input]].dims;
    if (!shape_is_known(dims)) return false;
    if (is_split(s, dims)) return stored(s->graph, n->inputs[input]) != NULL;
    return s->rule->last && (dims->rank == 0 || dims->dims[dims->rank - 1] == 1);
}

static bool allows_all(const splitting *s, const node *n)
{
    for (size_t i = 0; i < MAX_COMPANIONS && s->rule->companions[i] > 0; i++)
        if (!allows(s, n, s->rule->companions[i])) return false;
    return true;
}

/* Adds the operator for `n` rows from `start`. */
static clg_status add_channels(splitting *s, int64_t start, int64_t n, value_id *out_value)
{
    graph *g = s->graph;
    const node whole = g->nodes[s->node];
    value_id in[MAX_INPUTS] = {0};
    for (size_t i = 0; i < whole.n_inputs; i++) in[i] = whole.inputs[i];
    CLG_TRY(slice_value(s, in[1], s->axis, start, n, &in[1]));
    for (size_t i = 0; i < MAX_COMPANIONS && s->rule->companions[i] > 0; i++) {
        const size_t k = s->rule->companions[i];
        if (!node_has_input(&whole, k)) continue;
        const shape *dims = &s->info->facts[in[k]].dims;
        if (!is_split(s, dims)) continue;
        const int axis = companion_axis(s, dims);
        const int64_t each = dims->dims[axis] / s->rows;
        CLG_TRY(slice_value(s, in[k], axis, start * each, n * each, &in[k]));
    }
    CLG_TRY(rewrite_part(g, s->node, whole.domain, whole.op_type, whole.opset, whole.n_inputs, in,
                         out_value));
    const node_id part = g->values[*out_value].producer;
    CLG_TRY(rewrite_attributes(g, s->node, part));
    return s->rule->count ? node_set_int(g, part, s->rule->count, n) : CLG_OK;
}

static clg_status split_channels(splitting *s, value_id *parts)
{
    size_t count = 0;
    for (int64_t at = 0; at < s->rows; at += s->rows_per_part) {
        const int64_t left = s->rows - at;
        CLG_TRY(add_channels(s, at, left < s->rows_per_part ? left : s->rows_per_part,
                             &parts[count++]));
    }
    CLG_TRY(rewrite_become(s->graph, s->node, "", "Concat", 13, count, parts));
    return node_set_int(s->graph, s->node, "axis", s->rule->output_axis);
}

/* ---- embedding tables ------------------------------------------------------------------------ */

static bool is_lookup(const graph_info *s, const node *n)
{
    return node_is(n, "Gather") && node_int(n, "axis", 0) == 0 &&
           s->facts[n->inputs[1]].dims.rank >= 0 &&
           s->facts[n->inputs[0]].dims.rank + s->facts[n->inputs[1]].dims.rank <= CLG_MAX_RANK;
}

/* Adds an integer scalar of the indices' dtype. */
static clg_status add_index(splitting *s, int64_t number, value_id *out_value)
{
    const clg_dtype dtype = s->info->facts[s->graph->nodes[s->node].inputs[1]].dtype;
    return graph_add_int(s->graph, dtype, number, out_value);
}

/* Adds a node of the default domain that applies op_type to x and a number. */
static clg_status apply(splitting *s, const char *op_type, value_id x, int64_t number,
                        value_id *out_value)
{
    value_id in[2] = {x};
    CLG_TRY(add_index(s, number, &in[1]));
    return rewrite_part(s->graph, s->node, "", op_type, 13, 2, in, out_value);
}

/* Adds the indices with those counted from the end made positive. */
static clg_status add_wrapped(splitting *s, value_id *out_value)
{
    const value_id indices = s->graph->nodes[s->node].inputs[1];
    value_id in[3] = {0, 0, indices};
    CLG_TRY(apply(s, "Less", indices, 0, &in[0]));
    CLG_TRY(apply(s, "Add", indices, s->rows, &in[1]));
    return rewrite_part(s->graph, s->node, "", "Where", 13, 3, in, out_value);
}

/* Adds the condition index >= start, with a dimension of 1 for each of a row's. */
static clg_status add_condition(splitting *s, value_id indices, int64_t start, value_id *out_value)
{
    int64_t axes[CLG_MAX_RANK];
    value_id in[2];
    const int n = s->info->facts[s->graph->nodes[s->node].inputs[0]].dims.rank - 1;
    CLG_TRY(apply(s, "GreaterOrEqual", indices, start, &in[0]));
    if (n == 0) {
        *out_value = in[0];
        return CLG_OK;
    }
    for (int i = 0; i < n; i++) axes[i] = i - n;
    CLG_TRY(graph_add_ints(s->graph, (size_t)n, axes, &in[1]));
    return rewrite_part(s->graph, s->node, "", "Unsqueeze", 13, 2, in, out_value);
}

/* Adds the rows that a part of the table has for the indices; for those of other parts, its first
 * or last row. */
static clg_status add_rows(splitting *s, value_id indices, int64_t start, int64_t n,
                           value_id *out_value)
{
    value_id in[2], at;
    CLG_TRY(slice_value(s, s->graph->nodes[s->node].inputs[0], 0, start, n, &in[0]));
    CLG_TRY(apply(s, "Sub", indices, start, &at));
    CLG_TRY(apply(s, "Max", at, 0, &at));
    CLG_TRY(apply(s, "Min", at, n - 1, &in[1]));
    return rewrite_part(s->graph, s->node, "", "Gather", 13, 2, in, out_value);
}

static clg_status split_table(splitting *s)
{
    value_id indices, found, in[3];
    CLG_TRY(add_wrapped(s, &indices));
    CLG_TRY(add_rows(s, indices, 0, s->rows_per_part, &found));
    for (int64_t at = s->rows_per_part; at < s->rows; at += s->rows_per_part) {
        const int64_t left = s->rows - at;
        in[2] = found;
        CLG_TRY(add_condition(s, indices, at, &in[0]));
        CLG_TRY(
            add_rows(s, indices, at, left < s->rows_per_part ? left : s->rows_per_part, &in[1]));
        if (left <= s->rows_per_part)
            return rewrite_become(s->graph, s->node, "", "Where", 13, 3, in);
        CLG_TRY(rewrite_part(s->graph, s->node, "", "Where", 13, 3, in, &found));
    }
    return CLG_OK;
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* Sets rows and rows_per_part. Returns false if the weights fit or a single row does not. */
static bool exceeds(splitting *s, const value_fact *w, uint64_t max_bytes)
{
    size_t size_bytes;
    int64_t n;
    if (!shape_is_known(&w->dims) || shape_n_elements(&w->dims, &n) != CLG_OK || n <= 0 ||
        !dtype_bytes(w->dtype, n, &size_bytes) || size_bytes <= max_bytes)
        return false;
    s->rows = w->dims.dims[s->axis];
    const uint64_t row_bytes = size_bytes / (uint64_t)s->rows,
                   usable = max_bytes - max_bytes / SPARE_FRACTION;
    s->rows_per_part = row_bytes > 0 ? (int64_t)(usable / row_bytes) : 0;
    if (s->rows_per_part > ROWS_UNIT) s->rows_per_part -= s->rows_per_part % ROWS_UNIT;
    return s->rows_per_part > 0 && s->rows_per_part < s->rows;
}

static clg_status split_node(splitting *s, uint64_t max_bytes)
{
    const node *n = &s->graph->nodes[s->node];
    s->rule = find_rule(n);
    if (is_lookup(s->info, n)) {
        s->axis = 0;
        if (!stored(s->graph, n->inputs[0]) ||
            !exceeds(s, &s->info->facts[n->inputs[0]], max_bytes))
            return CLG_OK;
        return split_table(s);
    }
    if (!s->rule || n->n_inputs > MAX_INPUTS || !node_has_input(n, 1)) return CLG_OK;
    const value_fact *w = &s->info->facts[n->inputs[1]];
    if (w->dims.rank < 1 || !stored(s->graph, n->inputs[1])) return CLG_OK;
    s->axis = s->rule->axis(n, &w->dims);
    if (s->axis == NO_AXIS || !exceeds(s, w, max_bytes) || !allows_all(s, n)) return CLG_OK;
    value_id *parts = memory_zalloc((size_t)(s->rows / s->rows_per_part) + 1, sizeof *parts);
    if (!parts) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const clg_status status = split_channels(s, parts);
    memory_free(parts);
    return status;
}

/* Returns whether any constant is that large; for most models there is nothing to analyse. */
static bool has_larger(const graph *g, uint64_t max_bytes)
{
    for (size_t v = 0; v < g->n_values; v++)
        if (g->values[v].constant && g->values[v].constant->size_bytes > max_bytes) return true;
    return false;
}

clg_status pass_split(graph *g, const pass_options *options)
{
    graph_info info;
    if (options->max_buffer_bytes == 0 || !has_larger(g, options->max_buffer_bytes)) return CLG_OK;
    CLG_TRY(graph_info_make(g, &info));
    clg_status status = CLG_OK;
    const size_t n_nodes = g->n_nodes;
    for (node_id i = 0; i < n_nodes && status == CLG_OK; i++) {
        splitting s = {.info = &info, .graph = g, .node = i};
        status = split_node(&s, options->max_buffer_bytes);
    }
    graph_info_deinit(&info);
    return status;
}
