/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes GraphProto and NodeProto, in the order of their fields.
 */
#include "base/checked.h"
#include "onnx/onnx_save_internal.h"
#include "tensor/formats/tensor_proto.h"

/* ---- nodes ----------------------------------------------------------------------------------- */

static void put_names(onnx_saver *s, const save_scope *scope, uint32_t number, const value_id *ids,
                      size_t n)
{
    for (size_t i = 0; i < n; i++)
        wire_put_string(&s->w, number, ids[i] == VALUE_NONE ? "" : scope->names[ids[i]]);
}

void save_node(onnx_saver *s, const save_scope *scope, const node *n, const char *name)
{
    wire_writer *w = &s->w;
    put_names(s, scope, NODE_INPUT, n->inputs, n->n_inputs);
    put_names(s, scope, NODE_OUTPUT, n->outputs, n->n_outputs);
    if (name[0]) wire_put_string(w, NODE_NAME, name);
    wire_put_string(w, NODE_OP_TYPE, n->op_type);
    for (size_t i = 0; i < n->n_attributes && w->status == CLG_OK; i++) {
        wire_begin(w, NODE_ATTRIBUTE);
        save_attribute(s, scope, n, &n->attributes[i]);
        wire_end(w);
    }
    if (n->domain[0]) wire_put_string(w, NODE_DOMAIN, n->domain);
}

static void put_node(onnx_saver *s, const save_scope *scope, const node *n)
{
    wire_begin(&s->w, GRAPH_NODE);
    if (n->opset == save_opset(scope, n->domain))
        save_node(s, scope, n, n->name);
    else
        save_call(s, scope, n);
    wire_end(&s->w);
}

/* ---- initializers ---------------------------------------------------------------------------- */

/* Reserves a place in the file of external data; returns whether the tensor goes there. */
static bool place_external(onnx_saver *s, const tensor *t, tensor_proto_place *out_place)
{
    if (!s->location || t->dtype == CLG_STRING || t->size_bytes < s->options->external_bytes)
        return false;
    uint64_t end;
    const uint64_t start = save_aligned(s->external_end);
    if (start < s->external_end || !checked_add_u64(start, t->size_bytes, &end)) {
        wire_fail(&s->w, error_set(CLG_ERROR_INVALID_ARGUMENT, "the model has too much data"));
        return false;
    }
    wire_fail(&s->w, MEMORY_RESERVE(s->external, s->external_capacity, s->n_external + 1));
    if (s->w.status != CLG_OK) return false;
    s->external[s->n_external++] = t;
    s->external_end = end;
    *out_place = (tensor_proto_place){.location = s->location, .offset_bytes = start};
    return true;
}

static void put_initializer(onnx_saver *s, const char *name, const value *v)
{
    char shown[NAME_TEXT_BYTES], file[NAME_TEXT_BYTES];
    tensor_proto_place place;
    if (v->missing_file) {
        wire_fail(&s->w,
                  error_set(CLG_ERROR_NOT_FOUND,
                            "the data of '%s' is in the file '%s', which was not there at loading",
                            name_text(v->name, shown), name_text(v->missing_file, file)));
        return;
    }
    const bool is_external = place_external(s, v->constant, &place);
    wire_begin(&s->w, GRAPH_INITIALIZER);
    tensor_proto_put(&s->w, name, v->constant, is_external ? &place : NULL);
    wire_end(&s->w);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static void put_info(onnx_saver *s, const save_scope *scope, uint32_t number, value_id v,
                     const clg_port *port)
{
    wire_begin(&s->w, number);
    save_value_info(s, scope->names[v], &scope->graph->values[v], port);
    wire_end(&s->w);
}

/* Returns whether a type was declared for a value that is neither an input nor an output. */
static bool has_info(const value *v)
{
    return v->producer != NODE_NONE && !v->is_output &&
           (v->dtype != CLG_DTYPE_NONE || v->dims.rank != RANK_UNKNOWN || v->type_message);
}

void save_graph(onnx_saver *s, const save_scope *scope)
{
    const graph *g = scope->graph;
    const wire_writer *w = &s->w;
    const clg_port *ports = s->outermost == scope ? s->options->outputs : NULL;
    for (size_t i = 0; i < g->n_nodes && w->status == CLG_OK; i++)
        if (!g->nodes[i].removed) put_node(s, scope, &g->nodes[i]);
    wire_put_string(&s->w, GRAPH_NAME, g->name[0] ? g->name : "graph");
    for (size_t i = 0; i < g->n_values && w->status == CLG_OK; i++)
        if (g->values[i].constant || g->values[i].missing_file)
            put_initializer(s, scope->names[i], &g->values[i]);
    for (size_t i = 0; i < g->n_inputs; i++) put_info(s, scope, GRAPH_INPUT, g->inputs[i], NULL);
    for (size_t i = 0; i < g->n_outputs; i++)
        put_info(s, scope, GRAPH_OUTPUT, g->outputs[i], ports ? &ports[i] : NULL);
    for (size_t i = 0; i < g->n_values && w->status == CLG_OK; i++)
        if (has_info(&g->values[i])) put_info(s, scope, GRAPH_VALUE_INFO, (value_id)i, NULL);
}
