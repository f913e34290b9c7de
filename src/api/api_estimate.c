/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_model_flops, clg_model_memory, clg_model_node_estimates and clg_model_batch: what
 * follows from the shapes of a model's graph as loaded, without a device.
 */
#include "api/arguments.h"
#include "base/memory.h"
#include "ops/batch/batch_axes.h"
#include "ops/core/flops.h"
#include "session/exec/model.h"

#include <clgraph/inspect.h>

#include <stddef.h>
#include <string.h>

static clg_status find_input(const graph *g, const char *name, size_t *out_index)
{
    char shown[NAME_TEXT_BYTES];
    for (size_t i = 0; i < g->n_inputs; i++) {
        if (strcmp(g->values[g->inputs[i]].name, name) != 0) continue;
        *out_index = i;
        return CLG_OK;
    }
    return error_set(CLG_ERROR_NOT_FOUND, "the model has no input '%s'", name_text(name, shown));
}

/* Sets the dimensions of the input that is named, of dims by input. */
static clg_status override_shape(const graph *g, const clg_shape_override *given, shape *dims_of)
{
    size_t i;
    shape dims;
    char shown[NAME_TEXT_BYTES], words[SHAPE_TEXT_BYTES];
    API_REQUIRE(given->input);
    CLG_TRY(find_input(g, given->input, &i));
    CLG_TRY(shape_make(given->rank, given->dims, &dims));
    const value *v = &g->values[g->inputs[i]];
    bool fits =
        shape_is_known(&dims) && (v->dims.rank == RANK_UNKNOWN || v->dims.rank == dims.rank);
    for (int d = 0; fits && d < v->dims.rank; d++) {
        fits = v->dims.dims[d] == DIM_UNKNOWN || v->dims.dims[d] == dims.dims[d];
    }
    if (!fits) {
        char declared[SHAPE_TEXT_BYTES];
        return error_set(CLG_ERROR_SHAPE, "input '%s' is declared as %s, it cannot be %s",
                         name_text(given->input, shown), shape_text(&v->dims, declared),
                         shape_text(&dims, words));
    }
    dims_of[i] = dims;
    return CLG_OK;
}

/* Returns the dimensions of the inputs as declared, but for those given. */
static clg_status input_shapes(const graph *g, const clg_shape_override *given, size_t n_given,
                               shape **out_dims)
{
    clg_status status = CLG_OK;
    shape *dims = memory_zalloc(g->n_inputs, sizeof *dims);
    *out_dims = dims;
    if (!dims) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < g->n_inputs; i++) dims[i] = g->values[g->inputs[i]].dims;
    for (size_t i = 0; i < n_given && status == CLG_OK; i++)
        status = override_shape(g, &given[i], dims);
    return status;
}

/* Infers dtypes, shapes and known elements of all values from the given input shapes; other free
 * dimensions are 1. */
static clg_status infer(const graph *g, const clg_shape_override *shapes, size_t n_shapes,
                        value_fact **out_facts)
{
    *out_facts = NULL;
    shape *dims;
    value_fact *inputs = memory_zalloc(g->n_inputs, sizeof *inputs);
    clg_status status = input_shapes(g, shapes, n_shapes, &dims);
    if (!inputs) status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < g->n_inputs && status == CLG_OK; i++) {
        const value *v = &g->values[g->inputs[i]];
        fact_set(&inputs[i], v->dtype, &dims[i]);
        inputs[i].kind = v->kind;
        inputs[i].key_dtype = v->key_dtype;
        for (int d = 0; d < dims[i].rank; d++)
            if (dims[i].dims[d] == DIM_UNKNOWN) inputs[i].dims.dims[d] = 1;
    }
    if (status == CLG_OK) status = ops_infer_graph(g, inputs, out_facts);
    memory_free(inputs);
    memory_free(dims);
    return status;
}

clg_status clg_model_flops(const clg_model *model, const clg_shape_override *shapes,
                           size_t n_shapes, double *out_flops)
{
    API_REQUIRE(out_flops);
    *out_flops = 0;
    API_REQUIRE(model);
    if (n_shapes > 0) API_REQUIRE(shapes);
    const graph *g = model->graph;
    value_fact *facts;
    CLG_TRY(infer(g, shapes, n_shapes, &facts));
    for (size_t i = 0; i < g->n_nodes; i++) *out_flops += flops_of_node(&g->nodes[i], facts);
    ops_facts_free(facts, g->n_values);
    return CLG_OK;
}

/* State of a walk over the nodes in execution order. A value is live from its producer to its last
 * consumer. */
typedef struct lifetimes {
    const graph *graph;
    const value_fact *facts;
    value_id *root;   /* for views: the value whose memory they share */
    size_t *last_use; /* 1 + index of the last consumer; SIZE_MAX: no longer live */
    uint64_t live_bytes, peak_bytes;
} lifetimes;

static uint64_t value_bytes(const lifetimes *l, value_id v)
{
    int64_t n;
    size_t bytes;
    const value_fact *f = &l->facts[v];
    if (!shape_is_known(&f->dims) || shape_n_elements(&f->dims, &n) != CLG_OK ||
        !dtype_bytes(f->dtype, n, &bytes)) {
        return 0;
    }
    return bytes;
}

static bool is_view(const char *op_type)
{
    static const char *const names[] = {"Reshape",   "Flatten",  "Squeeze",
                                        "Unsqueeze", "Identity", "Dropout"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(op_type, names[i]) == 0) return true;
    }
    return false;
}

/* Returns whether a value is stored in device memory during a run only: it is not a constant, input
 * or output, and its elements are not known from shapes. */
static bool is_intermediate(const lifetimes *l, value_id v)
{
    return v != VALUE_NONE && l->graph->values[v].producer != NODE_NONE &&
           !l->graph->values[v].is_output && !l->facts[v].known;
}

static void find_roots(lifetimes *l)
{
    for (value_id v = 0; v < l->graph->n_values; v++) l->root[v] = v;
    for (size_t i = 0; i < l->graph->n_nodes; i++) {
        const node *n = &l->graph->nodes[i];
        if (is_view(n->op_type) && n->n_inputs > 0 && n->inputs[0] != VALUE_NONE &&
            n->n_outputs > 0 && n->outputs[0] != VALUE_NONE) {
            l->root[n->outputs[0]] = l->root[n->inputs[0]];
        }
        for (size_t k = 0; k < n->n_inputs; k++) {
            if (n->inputs[k] != VALUE_NONE) l->last_use[l->root[n->inputs[k]]] = i + 1;
        }
    }
}

static void walk(lifetimes *l)
{
    for (size_t i = 0; i < l->graph->n_nodes; i++) {
        const node *n = &l->graph->nodes[i];
        for (size_t k = 0; k < n->n_outputs; k++) {
            value_id v = n->outputs[k];
            if (is_intermediate(l, v) && l->root[v] == v && l->last_use[v] > 0)
                l->live_bytes += value_bytes(l, v);
        }
        if (l->live_bytes > l->peak_bytes) l->peak_bytes = l->live_bytes;
        for (size_t k = 0; k < n->n_inputs; k++) {
            value_id v = n->inputs[k] == VALUE_NONE ? VALUE_NONE : l->root[n->inputs[k]];
            if (!is_intermediate(l, v) || l->last_use[v] != i + 1) continue;
            l->live_bytes -= value_bytes(l, v);
            l->last_use[v] = SIZE_MAX; /* freed once, even if the node uses it twice */
        }
    }
}

static clg_status estimate(const graph *g, const value_fact *facts,
                           clg_memory_estimate *out_estimate)
{
    lifetimes l = {.graph = g, .facts = facts};
    l.root = memory_zalloc(g->n_values, sizeof *l.root);
    l.last_use = memory_zalloc(g->n_values, sizeof *l.last_use);
    clg_status status = l.root && l.last_use ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK) {
        find_roots(&l);
        walk(&l);
        out_estimate->slab_bytes = out_estimate->live_bytes = l.peak_bytes;
    }
    for (value_id v = 0; v < g->n_values && status == CLG_OK; v++) {
        const value *at = &g->values[v];
        uint64_t bytes = at->constant ? at->constant->size_bytes : value_bytes(&l, v);
        if (at->constant) out_estimate->weight_bytes += bytes;
        if (at->is_input || at->is_output) out_estimate->io_bytes += bytes;
        if (bytes > out_estimate->largest_buffer_bytes) out_estimate->largest_buffer_bytes = bytes;
    }
    memory_free(l.root);
    memory_free(l.last_use);
    return status;
}

clg_status clg_model_memory(const clg_model *model, const clg_shape_override *shapes,
                            size_t n_shapes, clg_memory_estimate *out_estimate)
{
    API_REQUIRE(out_estimate);
    API_REQUIRE(model);
    if (n_shapes > 0) API_REQUIRE(shapes);
    value_fact *facts;
    CLG_TRY(infer(model->graph, shapes, n_shapes, &facts));
    clg_memory_estimate ours = CLG_MEMORY_ESTIMATE_INIT;
    clg_status status = estimate(model->graph, facts, &ours);
    ops_facts_free(facts, model->graph->n_values);
    return status == CLG_OK ? api_write_result(__func__, &ours, sizeof ours, out_estimate) : status;
}

/* ---- each node ------------------------------------------------------------------------------- */

/* The list that callers get: they see `items`, whose ports are in `memory`. */
typedef struct estimate_list {
    arena memory;
    clg_node_estimate items[];
} estimate_list;

static estimate_list *list_of(clg_node_estimate *items)
{
    return (estimate_list *)(void *)((char *)items - offsetof(estimate_list, items));
}

void clg_node_estimate_list_free(clg_node_estimate *estimates, size_t n_estimates)
{
    (void)n_estimates;
    if (!estimates) return;
    arena_deinit(&list_of(estimates)->memory);
    memory_free(list_of(estimates));
}

static clg_port describe_output(const graph *g, const value_fact *facts, value_id v)
{
    clg_port port = {.name = "", .rank = RANK_UNKNOWN};
    for (int d = 0; d < CLG_MAX_RANK; d++) port.dim_names[d] = "";
    if (v == VALUE_NONE) return port;
    port.name = g->values[v].name;
    port.kind = facts[v].kind;
    port.dtype = facts[v].dtype;
    port.key_dtype = facts[v].key_dtype;
    port.rank = facts[v].dims.rank;
    for (int d = 0; d < port.rank; d++) {
        const int64_t dim = facts[v].dims.dims[d];
        port.dims[d] = dim == DIM_UNKNOWN ? -1 : dim;
    }
    return port;
}

static clg_status estimate_node(arena *memory, const graph *g, const node *n,
                                const value_fact *facts, clg_node_estimate *out)
{
    clg_port *outputs = arena_alloc(memory, n->n_outputs, sizeof *outputs);
    if (!outputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n->n_outputs; i++) outputs[i] = describe_output(g, facts, n->outputs[i]);
    *out = (clg_node_estimate){
        .flops = flops_of_node(n, facts), .outputs = outputs, .n_outputs = n->n_outputs};
    for (size_t i = 0; i < n->n_inputs; i++) {
        const tensor *t = n->inputs[i] == VALUE_NONE ? NULL : g->values[n->inputs[i]].constant;
        if (!t) continue;
        out->parameter_bytes += t->size_bytes;
        if (dtype_is_float(t->dtype)) out->n_parameters += t->n_elements;
    }
    return CLG_OK;
}

clg_status clg_model_node_estimates(const clg_model *model, const clg_shape_override *shapes,
                                    size_t n_shapes, clg_node_estimate **out_estimates,
                                    size_t *out_n_estimates)
{
    API_REQUIRE(out_estimates);
    API_REQUIRE(out_n_estimates);
    *out_estimates = NULL;
    *out_n_estimates = 0;
    API_REQUIRE(model);
    if (n_shapes > 0) API_REQUIRE(shapes);
    const graph *g = model->graph;
    value_fact *facts;
    CLG_TRY(infer(g, shapes, n_shapes, &facts));
    estimate_list *list = memory_zalloc(1, sizeof *list + g->n_nodes * sizeof(clg_node_estimate));
    clg_status status = list ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < g->n_nodes && status == CLG_OK; i++)
        status = estimate_node(&list->memory, g, &g->nodes[i], facts, &list->items[i]);
    ops_facts_free(facts, g->n_values);
    if (status == CLG_OK) {
        *out_estimates = list->items;
        *out_n_estimates = g->n_nodes;
    } else if (list) {
        clg_node_estimate_list_free(list->items, g->n_nodes);
    }
    return status;
}

/* ---- the batch ------------------------------------------------------------------------------- */

clg_status clg_model_batch(const clg_model *model, const clg_batch_options *options,
                           int *out_input_axes, int *out_output_axes)
{
    clg_batch_options o = CLG_BATCH_OPTIONS_INIT;
    shape *dims;
    API_REQUIRE(model);
    API_OPTIONS(options, o);
    if (o.n_shapes > 0 && !o.shapes)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: shapes is NULL", __func__);
    if (model->refusal) return error_restore(model->refusal);
    clg_status status = input_shapes(model->graph, o.shapes, o.n_shapes, &dims);
    const batch_request request = {.input_axes = o.input_axes, .input_dims = dims};
    if (status == CLG_OK)
        status = batch_find(model->graph, &request, out_input_axes, out_output_axes);
    memory_free(dims);
    return status;
}
