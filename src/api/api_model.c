/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_model_load_* and the functions that return a model's inputs and outputs.
 */
#include "api/arguments.h"
#include "base/cancel.h"
#include "onnx/onnx.h"
#include "session/exec/model.h"

static unsigned flags_of(const clg_model_options *options)
{
    return (options->allow_external_data_missing ? ONNX_ALLOW_MISSING_DATA : 0) |
           (options->read_files ? ONNX_READ_FILES : 0);
}

static clg_status load_file(const char *path, const clg_model_options *o, clg_model **out_model)
{
    graph *g;
    CLG_TRY(onnx_load_file(path, flags_of(o), &g));
    clg_status status = model_create(g, o->allow_unsupported, out_model);
    return status == CLG_OK ? status : error_prefix(status, "'%s'", path);
}

clg_status clg_model_load_file(const char *path, const clg_model_options *options,
                               clg_model **out_model)
{
    clg_model_options o = CLG_MODEL_OPTIONS_INIT;
    clg_status status;
    API_REQUIRE(out_model);
    *out_model = NULL;
    API_REQUIRE(path);
    API_OPTIONS(options, o);
    CANCEL_WITHIN(status, o.cancel, NULL, load_file(path, &o, out_model));
    return status;
}

static clg_status load_memory(const void *data, size_t size_bytes, const clg_model_options *o,
                              clg_model **out_model)
{
    graph *g;
    CLG_TRY(onnx_load_memory(data, size_bytes, flags_of(o), &g));
    return model_create(g, o->allow_unsupported, out_model);
}

clg_status clg_model_load_memory(const void *data, size_t size_bytes,
                                 const clg_model_options *options, clg_model **out_model)
{
    clg_model_options o = CLG_MODEL_OPTIONS_INIT;
    clg_status status;
    API_REQUIRE(out_model);
    *out_model = NULL;
    API_REQUIRE(data);
    API_OPTIONS(options, o);
    CANCEL_WITHIN(status, o.cancel, NULL, load_memory(data, size_bytes, &o, out_model));
    return status;
}

void clg_model_free(clg_model *model) { model_free(model); }

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
