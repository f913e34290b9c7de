/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates models (clg_model) from imported or built graphs: checks the graph, resolves its
 * operators and infers the outputs, once, so that sessions need not check again.
 */
#include "session/exec/model.h"

#include "ops/core/op.h"

static void fill_port(clg_port *port, const value *v, clg_value_kind kind, clg_dtype dtype,
                      const shape *dims)
{
    *port = (clg_port){.name = v->name,
                       .kind = kind,
                       .dtype = dtype,
                       .rank = dims->rank,
                       .key_dtype = v->key_dtype};
    for (int i = 0; i < CLG_MAX_RANK; i++) {
        bool is_axis = i < dims->rank;
        bool is_symbol = is_axis && dims->dims[i] == DIM_UNKNOWN && v->dims.rank == dims->rank &&
                         v->dim_names[i];
        port->dims[i] = is_axis ? dims->dims[i] : 0;
        port->dim_names[i] = is_symbol ? v->dim_names[i] : "";
    }
}

/* Fills in an output port from the inferred fact, completed by the model's declaration. Returns
 * INVALID_MODEL if dtypes contradict each other. */
static clg_status output_port(clg_port *port, const value *v, const value_fact *fact)
{
    char shown[NAME_TEXT_BYTES];
    if (v->dtype != CLG_DTYPE_NONE && fact->dtype != CLG_DTYPE_NONE && v->dtype != fact->dtype) {
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "the output '%s' is declared as %s, but its node gives %s",
                         name_text(v->name, shown), dtype_name(v->dtype), dtype_name(fact->dtype));
    }
    if (v->key_dtype != CLG_DTYPE_NONE && fact->key_dtype != CLG_DTYPE_NONE &&
        v->key_dtype != fact->key_dtype) {
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "the output '%s' is declared with keys of %s, but its node gives %s",
                         name_text(v->name, shown), dtype_name(v->key_dtype),
                         dtype_name(fact->key_dtype));
    }
    shape dims = fact->dims.rank == RANK_UNKNOWN ? v->dims : fact->dims;
    for (int i = 0; i < dims.rank && v->dims.rank == dims.rank; i++) {
        if (dims.dims[i] == DIM_UNKNOWN) dims.dims[i] = v->dims.dims[i];
    }
    fill_port(port, v, fact->kind, fact->dtype == CLG_DTYPE_NONE ? v->dtype : fact->dtype, &dims);
    if (fact->key_dtype != CLG_DTYPE_NONE) port->key_dtype = fact->key_dtype;
    return CLG_OK;
}

/* Returns whether the model has the value from its file: passes and rules make unnamed ones. */
static bool is_initializer(const value *v)
{
    return v->name[0] && (v->constant || v->missing_file);
}

static clg_status make_initializers(clg_model *m)
{
    const graph *g = m->graph;
    size_t n = 0;
    for (value_id v = 0; v < g->n_values; v++) n += is_initializer(&g->values[v]);
    m->initializers = memory_zalloc(n, sizeof *m->initializers);
    m->initializer_ids = memory_zalloc(n, sizeof *m->initializer_ids);
    if (!m->initializers || !m->initializer_ids) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (value_id v = 0; v < g->n_values; v++) {
        const value *from = &g->values[v];
        if (!is_initializer(from)) continue;
        fill_port(&m->initializers[m->n_initializers], from, CLG_VALUE_TENSOR, from->dtype,
                  &from->dims);
        m->initializer_ids[m->n_initializers++] = v;
    }
    return CLG_OK;
}

/* Allocates the ports and fills them in as the model declares them. */
static clg_status make_ports(clg_model *m)
{
    const graph *g = m->graph;
    CLG_TRY(make_initializers(m));
    m->inputs = memory_zalloc(g->n_inputs, sizeof *m->inputs);
    m->outputs = memory_zalloc(g->n_outputs, sizeof *m->outputs);
    if (!m->inputs || !m->outputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < g->n_inputs; i++) {
        const value *v = &g->values[g->inputs[i]];
        fill_port(&m->inputs[i], v, v->kind, v->dtype, &v->dims);
    }
    for (size_t i = 0; i < g->n_outputs; i++) {
        const value *v = &g->values[g->outputs[i]];
        fill_port(&m->outputs[i], v, v->kind, v->dtype, &v->dims);
    }
    return CLG_OK;
}

static clg_status infer_outputs(clg_model *m)
{
    const graph *g = m->graph;
    value_fact *facts;
    CLG_TRY(ops_infer_graph(g, NULL, &facts));
    clg_status status = CLG_OK;
    for (size_t i = 0; i < g->n_outputs && status == CLG_OK; i++) {
        status = output_port(&m->outputs[i], &g->values[g->outputs[i]], &facts[g->outputs[i]]);
    }
    ops_facts_free(facts, g->n_values);
    return status;
}

/* Records an "unsupported" error in the model, instead of returning it, if the model is loaded for
 * inspection only. */
static clg_status tolerate(clg_model *m, bool allow_unsupported, clg_status status)
{
    if (!allow_unsupported || !error_is_unsupported(status)) return status;
    if (m->refusal) return CLG_OK; /* keep the first error */
    m->refusal = memory_alloc(sizeof *m->refusal);
    if (!m->refusal) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    error_save(status, m->refusal);
    return CLG_OK;
}

clg_status model_create(graph *g, bool allow_unsupported, clg_model **out_model)
{
    *out_model = NULL;
    clg_model *m = memory_zalloc(1, sizeof *m);
    if (!m) {
        graph_free(g);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    refcount_init(&m->refs);
    m->graph = g;
    clg_status status = graph_check(g);
    if (status == CLG_OK) status = make_ports(m);
    if (status == CLG_OK) status = tolerate(m, allow_unsupported, ops_resolve(g));
    if (status == CLG_OK) status = tolerate(m, allow_unsupported, infer_outputs(m));
    if (status != CLG_OK) {
        model_free(m);
        return status;
    }
    *out_model = m;
    return CLG_OK;
}

clg_model *model_retain(clg_model *m)
{
    if (m) refcount_retain(&m->refs);
    return m;
}

void model_free(clg_model *m)
{
    if (!m || !refcount_release(&m->refs)) return;
    memory_free(m->refusal);
    memory_free(m->initializer_ids);
    memory_free(m->initializers);
    memory_free(m->outputs);
    memory_free(m->inputs);
    graph_free(m->graph);
    memory_budget_free(m->budget);
    memory_free(m);
}

clg_status model_require_data(const clg_model *m)
{
    char shown[NAME_TEXT_BYTES], file[NAME_TEXT_BYTES];
    if (m->refusal) return error_restore(m->refusal);
    for (size_t i = 0; i < m->graph->n_values; i++) {
        const value *v = &m->graph->values[i];
        if (!v->missing_file) continue;
        return error_set(CLG_ERROR_NOT_FOUND,
                         "the data of '%s' is in the file '%s', which was not there at loading",
                         name_text(v->name, shown), name_text(v->missing_file, file));
    }
    return CLG_OK;
}
