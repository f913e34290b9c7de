/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes nodes whose operator set version is not the one that the model imports: nodes of inlined
 * functions, which had imports of their own. A model has one version of each domain, but each of
 * its functions may import another; so such a node becomes the only node of a function. Loading
 * inlines it again.
 */
#include "onnx/onnx_save_internal.h"

#include <stdio.h>
#include <string.h>

void save_import(onnx_saver *s, uint32_t number, const char *domain, int64_t version)
{
    wire_begin(&s->w, number);
    wire_put_string(&s->w, OPSET_DOMAIN, domain);
    wire_put_int(&s->w, OPSET_VERSION, version);
    wire_end(&s->w);
}

/* Writes the name of the function of a call. */
static void put_function_name(onnx_saver *s, uint32_t number, const node *n, size_t index)
{
    char name[NAME_TEXT_BYTES];
    (void)snprintf(name, sizeof name, "%.60s_%zu", n->op_type, index);
    wire_put_string(&s->w, number, name);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static clg_status add_input(saved_call *call, hash_map *seen, const char *name)
{
    if (hash_map_get_string(seen, name) != HASH_MAP_NONE) return CLG_OK;
    CLG_TRY(hash_map_set_string(seen, name, call->n_inputs));
    call->inputs[call->n_inputs++] = name;
    return CLG_OK;
}

/* Returns the graph of attribute i; NULL if it is none. */
static const graph *subgraph(const node *n, size_t i)
{
    return n->attributes[i].type == ATTRIBUTE_GRAPH ? n->attributes[i].as.graph : NULL;
}

/* Collects the names that a node and its subgraphs read, each once. */
static clg_status find_inputs(onnx_saver *s, saved_call *call)
{
    const node *n = call->node;
    size_t n_most = n->n_inputs;
    for (size_t i = 0; i < n->n_attributes; i++)
        if (subgraph(n, i)) n_most += subgraph(n, i)->n_values;
    call->inputs = arena_alloc(&s->memory, n_most + 1, sizeof *call->inputs);
    if (!call->inputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    hash_map seen = {0};
    clg_status status = CLG_OK;
    for (size_t i = 0; i < n->n_inputs && status == CLG_OK; i++)
        if (n->inputs[i] != VALUE_NONE)
            status = add_input(call, &seen, call->scope->names[n->inputs[i]]);
    for (size_t i = 0; i < n->n_attributes; i++) {
        const graph *g = subgraph(n, i);
        for (size_t v = 0; g && v < g->n_values && status == CLG_OK; v++)
            if (g->values[v].is_outer)
                status = add_input(call, &seen, call->scope->names[g->values[v].outer]);
    }
    hash_map_deinit(&seen);
    return status;
}

static void put_outputs(onnx_saver *s, const saved_call *call, uint32_t number)
{
    for (size_t i = 0; i < call->node->n_outputs; i++)
        if (call->node->outputs[i] != VALUE_NONE)
            wire_put_string(&s->w, number, call->scope->names[call->node->outputs[i]]);
}

void save_call(onnx_saver *s, const save_scope *scope, const node *n)
{
    saved_call call = {.scope = scope, .node = n};
    wire_fail(&s->w, find_inputs(s, &call));
    if (s->w.status == CLG_OK)
        wire_fail(&s->w, MEMORY_RESERVE(s->calls, s->calls_capacity, s->n_calls + 1));
    if (s->w.status != CLG_OK) return;
    for (size_t i = 0; i < call.n_inputs; i++) wire_put_string(&s->w, NODE_INPUT, call.inputs[i]);
    put_outputs(s, &call, NODE_OUTPUT);
    if (n->name[0]) wire_put_string(&s->w, NODE_NAME, n->name);
    put_function_name(s, NODE_OP_TYPE, n, s->n_calls);
    wire_put_string(&s->w, NODE_DOMAIN, INLINED_DOMAIN);
    s->calls[s->n_calls++] = call;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* Makes the scope of a function's body: that of the call, with the node's own version. */
static const save_scope *body_scope(onnx_saver *s, const saved_call *call)
{
    const save_scope *scope = call->scope;
    save_scope *body = arena_alloc(&s->memory, 1, sizeof *body);
    opset_import *opsets = arena_alloc(&s->memory, scope->n_opsets + 1, sizeof *opsets);
    if (!body || !opsets) {
        wire_fail(&s->w, CLG_ERROR_OUT_OF_HOST_MEMORY);
        return NULL;
    }
    size_t n = 0;
    for (size_t i = 0; i < scope->n_opsets; i++)
        if (strcmp(scope->opsets[i].domain, call->node->domain) != 0)
            opsets[n++] = scope->opsets[i];
    opsets[n++] = (opset_import){call->node->domain, call->node->opset};
    *body = *scope;
    body->opsets = opsets;
    body->n_opsets = n;
    return body;
}

static void put_function(onnx_saver *s, size_t index)
{
    const saved_call call = s->calls[index]; /* the array grows if the body has calls */
    wire_writer *w = &s->w;
    const save_scope *body = body_scope(s, &call);
    if (!body) return;
    put_function_name(s, FUNCTION_NAME, call.node, index);
    for (size_t i = 0; i < call.n_inputs; i++) wire_put_string(w, FUNCTION_INPUT, call.inputs[i]);
    put_outputs(s, &call, FUNCTION_OUTPUT);
    const size_t n_calls = s->n_calls;
    wire_begin(w, FUNCTION_NODE);
    save_node(s, body, call.node, "");
    wire_end(w);
    for (size_t i = 0; i < body->n_opsets; i++)
        if (strcmp(body->opsets[i].domain, INLINED_DOMAIN) != 0)
            save_import(s, FUNCTION_OPSET_IMPORT, body->opsets[i].domain, body->opsets[i].version);
    if (s->n_calls > n_calls) save_import(s, FUNCTION_OPSET_IMPORT, INLINED_DOMAIN, 1);
    wire_put_string(w, FUNCTION_DOMAIN, INLINED_DOMAIN);
}

void save_functions(onnx_saver *s)
{
    for (size_t i = 0; i < s->n_calls && s->w.status == CLG_OK; i++) {
        wire_begin(&s->w, MODEL_FUNCTIONS);
        put_function(s, i);
        wire_end(&s->w);
    }
}
