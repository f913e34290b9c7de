/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles a group of nodes: writes it as a model, loads that, creates the first session, and notes
 * how the inputs and outputs of the fused node correspond to the model's.
 */
#include "ep_program.h"

#include "base/hash_map.h"
#include "ep_sessions.h"

#include <string.h>

static clg_status read_fused(const ep_host *host, const OrtNode *fused, arena *memory, ep_node *out)
{
    const OrtApi *api = host->api;
    size_t n = 0;
    EP_TRY_ORT(host, api->Node_GetName(fused, &out->name));
    EP_TRY_ORT(host, api->Node_GetNumInputs(fused, &n));
    out->inputs = (ep_values){arena_alloc(memory, n + 1, sizeof(void *)), n};
    if (out->inputs.items == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    EP_TRY_ORT(host, api->Node_GetInputs(fused, out->inputs.items, n));
    EP_TRY_ORT(host, api->Node_GetNumOutputs(fused, &n));
    out->outputs = (ep_values){arena_alloc(memory, n + 1, sizeof(void *)), n};
    if (out->outputs.items == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    return ep_from_ort(host, api->Node_GetOutputs(fused, out->outputs.items, n));
}

/* ---- inputs -------------------------------------------------------------------------------- */

static clg_status map_inputs(ep_program *p, const ep_node *fused)
{
    const ep_host *host = &p->provider->host;
    hash_map indices = {0};
    clg_status status = CLG_OK;
    for (size_t i = 0; i < fused->inputs.count && status == CLG_OK; i++) {
        const char *name = NULL;
        status = ep_value_name(host, fused->inputs.items[i], &name);
        if (status == CLG_OK) status = hash_map_set_string(&indices, name, i);
    }
    p->n_inputs = clg_model_n_inputs(p->model);
    p->inputs = arena_alloc(&p->names, p->n_inputs + 1, sizeof *p->inputs);
    if (p->inputs == NULL) status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < p->n_inputs && status == CLG_OK; i++) {
        const char *name = clg_model_input(p->model, i)->name; /* lives as long as the model */
        p->inputs[i] = (ep_input){name, hash_map_get_string(&indices, name)};
        if (p->inputs[i].index == HASH_MAP_NONE)
            status =
                error_set(CLG_ERROR_INTERNAL,
                          "ONNX Runtime's node '%s' has no input '%s' of its group", p->name, name);
    }
    hash_map_deinit(&indices);
    return status;
}

/* ---- outputs ------------------------------------------------------------------------------- */

/* An output's shape is known before a run if the library infers all of it from the graph: what the
 * model declares was not written, since it may be wrong. */
static clg_status describe_outputs(ep_program *p, const ep_node *fused)
{
    hash_map indices = {0};
    clg_status status = CLG_OK;
    p->n_outputs = fused->outputs.count;
    p->outputs = arena_alloc(&p->names, p->n_outputs + 1, sizeof *p->outputs);
    if (p->outputs == NULL) status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < clg_model_n_outputs(p->model) && status == CLG_OK; i++)
        status = hash_map_set_string(&indices, clg_model_output(p->model, i)->name, i);
    for (size_t o = 0; o < p->n_outputs && status == CLG_OK; o++) {
        ep_output *output = &p->outputs[o];
        const char *name = NULL;
        CLG_TRY_GOTO(ep_value_name(&p->provider->host, fused->outputs.items[o], &name), end);
        size_t index = hash_map_get_string(&indices, name);
        if (index == HASH_MAP_NONE) {
            status = error_set(CLG_ERROR_INTERNAL,
                               "the group of ONNX Runtime's node '%s' has no output '%s'", p->name,
                               name);
            break;
        }
        const clg_port *port = clg_model_output(p->model, index);
        output->name = port->name; /* lives as long as the model */
        output->dtype = port->dtype;
        output->known = port->kind == CLG_VALUE_TENSOR && port->dtype != CLG_STRING &&
                        port->dtype != CLG_DTYPE_NONE && port->rank > 0;
        output->rank = output->known ? (size_t)port->rank : 0;
        for (size_t a = 0; a < output->rank; a++) {
            output->dims[a] = port->dims[a];
            if (port->dims[a] < 0) output->known = false;
        }
    }
end:
    hash_map_deinit(&indices);
    return status;
}

/* ---- compiling ----------------------------------------------------------------------------- */

static void release_weights(void *weights) { ep_weights_release(weights); }

static clg_status load_group(ep_program *p, const OrtGraph *graph)
{
    const ep_host *host = &p->provider->host;
    ep_graph group;
    ep_onnx onnx = {0};
    arena memory = {0};
    clg_status status = ep_graph_read(host, graph, &memory, &group);
    if (status == CLG_OK) status = ep_onnx_write(host, &group, NULL, &memory, &onnx);
    if (status == CLG_OK) status = ep_weights_copy(host, &onnx, &p->provider->options, &p->weights);
    if (status == CLG_OK) {
        refcount_retain(&p->weights->users);
        status = ep_onnx_load(&onnx, p->weights->items, release_weights, p->weights, &p->model);
    }
    ep_onnx_deinit(&onnx);
    arena_deinit(&memory);
    return status;
}

static clg_status start_sessions(ep_program *p)
{
    const ep_options *given = &p->provider->options;
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    options.precision = given->precision;
    options.kernels = given->kernels;
    options.strict = given->strict;
    clg_session *session = NULL;
    EP_TRY_CLG(clg_session_create(p->provider->context, p->model, &options, &session));
    ep_weights_unload(p->weights);
    return ep_sessions_add(p, session);
}

static OrtStatus *ORT_API_CALL create_state(OrtNodeComputeInfo *this_ptr,
                                            OrtNodeComputeContext *context, void **state)
{
    (void)context;
    *state = this_ptr;
    return NULL;
}

static OrtStatus *ORT_API_CALL compute(OrtNodeComputeInfo *this_ptr, void *state,
                                       OrtKernelContext *context)
{
    (void)state;
    ep_program *p = (ep_program *)this_ptr;
    return ep_to_ort(&p->provider->host, ep_program_compute(p, context));
}

static void ORT_API_CALL release_state(OrtNodeComputeInfo *this_ptr, void *state)
{
    (void)this_ptr, (void)state;
}

clg_status ep_program_create(ep_provider *provider, const OrtGraph *graph, const OrtNode *fused,
                             ep_program **out_program)
{
    ep_program *p = memory_zalloc(1, sizeof *p);
    if (p == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    ep_node node = {0};
    arena memory = {0};
    p->info = (OrtNodeComputeInfo){EP_API_VERSION, create_state, compute, release_state};
    p->provider = provider;
    atomic_init(&p->lost, false);
    clg_status status = mutex_init(&p->lock);
    if (status != CLG_OK) {
        memory_free(p);
        return status;
    }
    status = condition_init(&p->returned);
    if (status != CLG_OK) {
        mutex_deinit(&p->lock);
        memory_free(p);
        return status;
    }
    CLG_TRY_GOTO(read_fused(&provider->host, fused, &memory, &node), failed);
    p->name = memory_strdup(node.name);
    if (p->name == NULL) status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status != CLG_OK) goto failed;
    CLG_TRY_GOTO(load_group(p, graph), failed);
    CLG_TRY_GOTO(map_inputs(p, &node), failed);
    CLG_TRY_GOTO(describe_outputs(p, &node), failed);
    CLG_TRY_GOTO(start_sessions(p), failed);
    arena_deinit(&memory);
    *out_program = p;
    return CLG_OK;
failed:
    arena_deinit(&memory);
    ep_program_free(p);
    return status;
}

void ep_program_free(ep_program *program)
{
    if (program == NULL) return;
    ep_sessions_deinit(program);
    clg_model_free(program->model);
    ep_weights_release(program->weights);
    arena_deinit(&program->names);
    memory_free(program->name);
    condition_deinit(&program->returned);
    mutex_deinit(&program->lock);
    memory_free(program);
}
