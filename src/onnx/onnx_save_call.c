/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes nodes whose operator set version is not the one that the model imports: nodes of inlined
 * functions, which had imports of their own. A model has one version of each domain, but each of
 * its functions may import another; so such a node becomes the only node of a function. Loading
 * inlines it again. This file writes the calls, onnx_save_function.c the functions.
 */
#include "onnx/onnx_save_internal.h"

#include <stdio.h>

void save_function_name(onnx_saver *s, uint32_t number, const node *n, size_t index)
{
    char name[NAME_TEXT_BYTES];
    (void)snprintf(name, sizeof name, "%.60s_%zu", n->op_type, index);
    wire_put_string(&s->w, number, name);
}

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

void save_call_outputs(onnx_saver *s, const saved_call *call, uint32_t number)
{
    for (size_t i = 0; i < call->node->n_outputs; i++)
        if (call->node->outputs[i] != VALUE_NONE)
            wire_put_string(&s->w, number, call->scope->names[call->node->outputs[i]]);
}

void save_call(onnx_saver *s, const save_scope *scope, const node *n, const char *name)
{
    saved_call call = {.scope = scope, .node = n};
    wire_fail(&s->w, find_inputs(s, &call));
    if (s->w.status == CLG_OK)
        wire_fail(&s->w, MEMORY_RESERVE(s->calls, s->calls_capacity, s->n_calls + 1));
    if (s->w.status != CLG_OK) return;
    for (size_t i = 0; i < call.n_inputs; i++) wire_put_string(&s->w, NODE_INPUT, call.inputs[i]);
    save_call_outputs(s, &call, NODE_OUTPUT);
    if (name[0]) wire_put_string(&s->w, NODE_NAME, name);
    save_function_name(s, NODE_OP_TYPE, n, s->n_calls);
    wire_put_string(&s->w, NODE_DOMAIN, INLINED_DOMAIN);
    s->calls[s->n_calls++] = call;
}
