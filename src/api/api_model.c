/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_model_load_*, clg_model_save* and the functions that return a model's inputs and
 * outputs.
 */
#include "api/arguments.h"
#include "base/cancel.h"
#include "onnx/onnx.h"
#include "session/exec/model.h"

#include <string.h>

static unsigned flags_of(const clg_model_options *options)
{
    return (options->allow_external_data_missing ? ONNX_ALLOW_MISSING_DATA : 0) |
           (options->read_files ? ONNX_READ_FILES : 0);
}

/* Where a model is read from. */
typedef struct model_source {
    const char *path; /* NULL: from memory */
    const void *data;
    size_t size_bytes;
    onnx_memory *external; /* may be NULL */
} model_source;

static clg_status load(const model_source *from, const clg_model_options *o, clg_model **out_model)
{
    graph *g;
    if (!from->path) {
        CLG_TRY(onnx_load_memory(from->data, from->size_bytes, flags_of(o), from->external, &g));
        return model_create(g, o->allow_unsupported, out_model);
    }
    CLG_TRY(onnx_load_file(from->path, flags_of(o), from->external, &g));
    clg_status status = model_create(g, o->allow_unsupported, out_model);
    return status == CLG_OK ? status : error_prefix(status, "'%s'", from->path);
}

static clg_status load_within(const model_source *from, const clg_model_options *o,
                              const clg_limits *limits, clg_model **out_model)
{
    memory_budget *budget = NULL;
    limits_scope scope;
    clg_status status = CLG_OK;
    if (limits->max_memory_bytes)
        CLG_TRY(memory_budget_create(limits->max_memory_bytes, 0, &budget));
    limits_enter(&scope, limits, budget, LIMIT_COMPILE);
    CANCEL_WITHIN(status, o->cancel, NULL, load(from, o, out_model));
    status = limits_leave(&scope, status);
    if (*out_model)
        (*out_model)->budget = budget;
    else
        memory_budget_free(budget);
    return status;
}

/* Loads a model for the function named, whose argument `argument` says from where. Releases the
 * caller's external data also if an argument is not valid. */
static clg_status load_checked(const char *function, const char *argument, model_source *from,
                               const clg_model_options *o, clg_model **out_model)
{
    clg_limits limits;
    const bool is_complete = out_model && (from->path || from->data);
    clg_status status = CLG_OK;
    const onnx_memory_callbacks callbacks = {.get = o->external_data,
                                             .release = o->external_release,
                                             .unload = o->external_unload,
                                             .user = o->external_user};
    if (o->external_data) CLG_TRY(onnx_memory_create(&callbacks, &from->external));
    if (!is_complete)
        status = error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function,
                           out_model ? argument : "out_model");
    if (status == CLG_OK) status = api_read_limits(function, o->limits, &limits);
    if (status == CLG_OK) status = load_within(from, o, &limits, out_model);
    onnx_memory_release(from->external);
    return status;
}

clg_status clg_model_load_file(const char *path, const clg_model_options *options,
                               clg_model **out_model)
{
    clg_model_options o = CLG_MODEL_OPTIONS_INIT;
    if (out_model) *out_model = NULL;
    API_OPTIONS(options, o);
    return load_checked(__func__, "path", &(model_source){.path = path}, &o, out_model);
}

clg_status clg_model_load_memory(const void *data, size_t size_bytes,
                                 const clg_model_options *options, clg_model **out_model)
{
    clg_model_options o = CLG_MODEL_OPTIONS_INIT;
    if (out_model) *out_model = NULL;
    API_OPTIONS(options, o);
    return load_checked(__func__, "data", &(model_source){.data = data, .size_bytes = size_bytes},
                        &o, out_model);
}

void clg_model_free(clg_model *model) { model_free(model); }

/* ---- saving ---------------------------------------------------------------------------------- */

/* Refuses a graph with internal nodes, as gradients may have. Nodes of another opset version than
 * the imported one are no obstacle: they become functions. */
static clg_status check_domains(const graph *g)
{
    char text[NODE_TEXT_BYTES];
    for (size_t i = 0; i < g->n_nodes; i++)
        if (strcmp(g->nodes[i].domain, DOMAIN_INTERNAL) == 0)
            return error_set(CLG_ERROR_UNSUPPORTED_OPERATOR,
                             "%s cannot be saved: ONNX does not have this operator",
                             node_text(&g->nodes[i], text));
    return CLG_OK;
}

static onnx_save_options save_options_of(const clg_model *model, const clg_model_save_options *o)
{
    return (onnx_save_options){.outputs = model->outputs,
                               .producer = o->producer ? o->producer : "clgraph",
                               .producer_version = o->producer ? NULL : clg_version(),
                               .external_bytes = o->external_bytes};
}

clg_status clg_model_save(const clg_model *model, const char *path,
                          const clg_model_save_options *options)
{
    clg_model_save_options o = CLG_MODEL_SAVE_OPTIONS_INIT;
    API_REQUIRE(model);
    API_REQUIRE(path);
    API_OPTIONS(options, o);
    CLG_TRY(check_domains(model->graph));
    const onnx_save_options saving = save_options_of(model, &o);
    return onnx_save_file(model->graph, path, &saving);
}

clg_status clg_model_save_memory(const clg_model *model, const clg_model_save_options *options,
                                 void **out_data, size_t *out_size_bytes)
{
    clg_model_save_options o = CLG_MODEL_SAVE_OPTIONS_INIT;
    API_REQUIRE(out_data);
    API_REQUIRE(out_size_bytes);
    *out_data = NULL;
    *out_size_bytes = 0;
    API_REQUIRE(model);
    API_OPTIONS(options, o);
    if (o.external_bytes > 0)
        return error_set(
            CLG_ERROR_INVALID_ARGUMENT,
            "%s: external_bytes is %zu; a model in memory has no file of external data", __func__,
            o.external_bytes);
    CLG_TRY(check_domains(model->graph));
    const onnx_save_options saving = save_options_of(model, &o);
    return onnx_save_memory(model->graph, &saving, out_data, out_size_bytes);
}

void clg_bytes_free(void *data) { memory_free(data); }

/* ---- inputs and outputs ---------------------------------------------------------------------- */

size_t clg_model_n_inputs(const clg_model *model) { return model ? model->graph->n_inputs : 0; }

size_t clg_model_n_outputs(const clg_model *model) { return model ? model->graph->n_outputs : 0; }

const clg_port *clg_model_input(const clg_model *model, size_t index)
{
    return index < clg_model_n_inputs(model) ? &model->inputs[index] : NULL;
}

const clg_port *clg_model_output(const clg_model *model, size_t index)
{
    return index < clg_model_n_outputs(model) ? &model->outputs[index] : NULL;
}
