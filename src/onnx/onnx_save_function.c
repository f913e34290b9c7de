/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the functions, of one node each, that onnx_save_call.c has written calls of.
 */
#include "onnx/onnx_save_internal.h"

#include <string.h>

void save_import(onnx_saver *s, uint32_t number, const char *domain, int64_t version)
{
    wire_begin(&s->w, number);
    wire_put_string(&s->w, OPSET_DOMAIN, domain);
    wire_put_int(&s->w, OPSET_VERSION, version);
    wire_end(&s->w);
}

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
    save_function_name(s, FUNCTION_NAME, call.node, index);
    for (size_t i = 0; i < call.n_inputs; i++) wire_put_string(w, FUNCTION_INPUT, call.inputs[i]);
    save_call_outputs(s, &call, FUNCTION_OUTPUT);
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
