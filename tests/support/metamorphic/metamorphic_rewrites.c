/* SPDX-License-Identifier: Apache-2.0
 *
 * Edits clones of models' graphs. See metamorphic_rewrites.h.
 */
#include "support/metamorphic/metamorphic_rewrites.h"

#include "base/memory.h"
#include "session/exec/model.h"

#include <stdio.h>
#include <string.h>

/* Adds an output NAME.SUFFIX of the graph, computed by a node of one input. */
static clg_status add_output(graph *g, const char *op_type, value_id from, const char *name,
                             const char *suffix, value_id *out_value)
{
    char text[512];
    node_id n;
    (void)snprintf(text, sizeof text, "%.400s.%s", name, suffix);
    CLG_TRY(graph_add_value(g, text, out_value));
    g->values[*out_value].kind = g->values[from].kind;
    return graph_add_node(g, "", op_type, "", 1, &from, 1, out_value, &n);
}

/* ---- each node twice ------------------------------------------------------------------------- */

/* Sets copies[v] to the copy of value v, VALUE_NONE where it has none: node n + i is the copy of
 * node i. */
static void find_copies(const graph *g, size_t n, value_id *copies)
{
    for (size_t v = 0; v < g->n_values; v++) copies[v] = VALUE_NONE;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < g->nodes[i].n_outputs; k++)
            if (g->nodes[i].outputs[k] != VALUE_NONE)
                copies[g->nodes[i].outputs[k]] = g->nodes[n + i].outputs[k];
}

/* Makes the copies read the constants of the originals: the pass `common` merges nodes that read
 * the same values. */
static void share_constants(graph *g, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < g->nodes[i].n_inputs; k++)
            if (node_has_input(&g->nodes[i], k) && g->values[g->nodes[i].inputs[k]].constant)
                graph_set_input(g, (node_id)(n + i), k, g->nodes[i].inputs[k]);
}

/* Makes every second reader of a value read the other copy. */
static void interleave(graph *g, size_t n, const value_id *copies)
{
    size_t turn = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < g->nodes[i].n_inputs; k++) {
            const value_id v = g->nodes[i].inputs[k];
            if (v == VALUE_NONE || copies[v] == VALUE_NONE || turn++ % 2 == 0) continue;
            graph_set_input(g, (node_id)i, k, copies[v]);
            graph_set_input(g, (node_id)(n + i), k, v);
        }
    }
}

static clg_status duplicate(graph *g, const graph *model, bool interleaved)
{
    value_id *outputs = memory_zalloc(g->n_outputs + 1, sizeof *outputs), *copies = NULL;
    const size_t n = g->n_nodes, n_outputs = g->n_outputs;
    if (!outputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = graph_inline(g, model, g->inputs, outputs);
    if (status == CLG_OK) share_constants(g, n);
    if (status == CLG_OK && interleaved) {
        copies = memory_zalloc(g->n_values, sizeof *copies);
        if (!copies) status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    if (copies) {
        find_copies(g, n, copies);
        interleave(g, n, copies);
    }
    for (size_t i = 0; i < n_outputs && status == CLG_OK; i++) {
        value_id v;
        const char *name = g->values[g->outputs[i]].name;
        status = add_output(g, "Identity", outputs[i], name, "copy", &v);
        if (status == CLG_OK) status = graph_add_output(g, v);
    }
    memory_free(outputs);
    memory_free(copies);
    return status;
}

clg_status meta_duplicate(const clg_model *model, bool interleaved, clg_model **out_model)
{
    graph *g;
    *out_model = NULL;
    CLG_TRY(graph_clone(model->graph, &g));
    clg_status status = graph_compact(g);
    if (status == CLG_OK && g->n_nodes != model->graph->n_nodes)
        status = error_set(CLG_ERROR_INVALID_MODEL, "the model's graph is not compact");
    if (status == CLG_OK) status = duplicate(g, model->graph, interleaved);
    if (status == CLG_OK) return model_create(g, false, out_model);
    graph_free(g);
    return status;
}

/* ---- other layouts of inputs and outputs ----------------------------------------------------- */

static bool is_tensor(const value *v)
{
    return v->kind == CLG_VALUE_TENSOR && v->dtype != CLG_STRING;
}

/* Makes input i of the graph the Transpose of a new input NAME.reversed. */
static clg_status reverse_input(graph *g, size_t i)
{
    const value_id old = g->inputs[i];
    value_id input;
    node_id n;
    char text[512];
    if (!is_tensor(&g->values[old]) || g->values[old].dims.rank < 0) return CLG_OK;
    (void)snprintf(text, sizeof text, "%.400s.reversed", g->values[old].name);
    CLG_TRY(graph_add_value(g, text, &input));
    value *from = &g->values[old], *to = &g->values[input];
    to->dtype = from->dtype;
    to->dims = from->dims;
    for (int d = 0; d < from->dims.rank; d++) {
        to->dims.dims[d] = from->dims.dims[from->dims.rank - 1 - d];
        to->dim_names[d] = from->dim_names[from->dims.rank - 1 - d];
    }
    from->is_input = false;
    to->is_input = true;
    g->inputs[i] = input;
    return graph_add_node(g, "", "Transpose", "", 1, &input, 1, &old, &n);
}

static clg_status reverse_output(graph *g, size_t i, clg_value_kind kind)
{
    const value_id old = g->outputs[i];
    value_id v;
    if (kind != CLG_VALUE_TENSOR) return CLG_OK;
    CLG_TRY(add_output(g, "Transpose", old, g->values[old].name, "reversed", &v));
    g->values[old].is_output = false;
    g->values[v].is_output = true;
    g->outputs[i] = v;
    return CLG_OK;
}

clg_status meta_transpose(const clg_model *model, clg_model **out_model)
{
    graph *g;
    *out_model = NULL;
    CLG_TRY(graph_clone(model->graph, &g));
    clg_status status = CLG_OK;
    for (size_t i = 0; i < g->n_inputs && status == CLG_OK; i++) status = reverse_input(g, i);
    for (size_t i = 0; i < g->n_outputs && status == CLG_OK; i++)
        status = reverse_output(g, i, model->outputs[i].kind);
    if (status == CLG_OK) return model_create(g, false, out_model);
    graph_free(g);
    return status;
}
