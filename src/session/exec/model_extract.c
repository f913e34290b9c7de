/* SPDX-License-Identifier: Apache-2.0
 *
 * Extracts a part of a model: cuts a clone of the graph at values, and copies what is left of it.
 */
#include "base/strbuf.h"
#include "ops/core/op.h"
#include "session/exec/model.h"

typedef struct extraction {
    graph *g;          /* a clone, which is cut */
    value_fact *facts; /* what is known of the values before */
    size_t n_facts;
    value_id *outputs;
    bool *is_needed;   /* by value */
    bool *is_selected; /* by node */
} extraction;

static clg_status find_value(const graph *g, const char *function, const char *list, size_t i,
                             const char *name, value_id *out)
{
    char shown[NAME_TEXT_BYTES];
    if (!name)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: %s[%zu] is NULL", function, list, i);
    *out = graph_find_value(g, name);
    if (*out != VALUE_NONE && value_is_defined(&g->values[*out])) return CLG_OK;
    return error_set(CLG_ERROR_NOT_FOUND, "the model has no value '%s'", name_text(name, shown));
}

/* Makes value v an input. Its dtype and shape are those that follow from the whole graph. */
static clg_status cut(extraction *x, value_id v)
{
    char shown[NAME_TEXT_BYTES];
    value *at = &x->g->values[v];
    if (at->is_input) return CLG_OK;
    const value_fact *f = &x->facts[v];
    if (f->kind != CLG_VALUE_TENSOR || f->dtype == CLG_DTYPE_NONE)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                         "'%s' cannot be an input: it is not a tensor, or its dtype is not known "
                         "before a run",
                         name_text(at->name, shown));
    at->kind = f->kind;
    at->dtype = f->dtype;
    at->dims = f->dims;
    for (size_t d = 0; d < CLG_MAX_RANK; d++) at->dim_names[d] = NULL;
    at->type_message = NULL;
    at->type_bytes = 0;
    return graph_cut(x->g, v);
}

static void need(void *user, value_id v) { ((extraction *)user)->is_needed[v] = true; }

/* Selects the nodes that the outputs, which are marked as needed, depend on. */
static void select_nodes(extraction *x)
{
    for (size_t i = x->g->n_nodes; i-- > 0;) {
        const node *n = &x->g->nodes[i];
        for (size_t k = 0; k < n->n_outputs; k++)
            if (n->outputs[k] != VALUE_NONE && x->is_needed[n->outputs[k]])
                x->is_selected[i] = true;
        if (x->is_selected[i]) node_visit_uses(n, need, x);
    }
}

static clg_status extract(extraction *x, const char *const *inputs, size_t n_inputs,
                          const char *const *outputs, size_t n_outputs, graph **out_part)
{
    const value_id *origins;
    value_id v;
    static const char *const function = "clg_model_extract";
    /* each value that is cut may add one */
    x->is_needed = memory_zalloc(x->g->n_values + n_inputs, sizeof *x->is_needed);
    x->is_selected = memory_zalloc(x->g->n_nodes + 1, sizeof *x->is_selected);
    if (!x->is_needed || !x->is_selected) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n_outputs; i++) {
        CLG_TRY(find_value(x->g, function, "outputs", i, outputs[i], &x->outputs[i]));
        if (x->is_needed[x->outputs[i]])
            return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: outputs[%zu] is named twice",
                             function, i);
        x->is_needed[x->outputs[i]] = true;
    }
    for (size_t i = 0; i < n_inputs; i++) {
        CLG_TRY(find_value(x->g, function, "inputs", i, inputs[i], &v));
        CLG_TRY(cut(x, v));
    }
    graph_clear_outputs(x->g);
    select_nodes(x);
    return graph_part(x->g, x->is_selected, x->outputs, n_outputs, &origins, out_part);
}

clg_status model_extract(const clg_model *m, const char *const *inputs, size_t n_inputs,
                         const char *const *outputs, size_t n_outputs, clg_model **out_model)
{
    graph *part;
    extraction x = {0};
    CLG_TRY(model_require_data(m));
    CLG_TRY(graph_clone(m->graph, &x.g));
    x.n_facts = x.g->n_values;
    x.outputs = memory_zalloc(n_outputs, sizeof *x.outputs);
    clg_status status = x.outputs ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK) status = ops_infer_graph(m->graph, NULL, &x.facts);
    if (status == CLG_OK) status = extract(&x, inputs, n_inputs, outputs, n_outputs, &part);
    if (x.facts) ops_facts_free(x.facts, x.n_facts);
    memory_free(x.is_selected);
    memory_free(x.is_needed);
    memory_free(x.outputs);
    graph_free(x.g);
    return status == CLG_OK ? model_create(part, false, out_model) : status;
}
