/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_model_extract, and the functions of a model's initializers.
 */
#include "api/arguments.h"
#include "session/exec/model.h"
#include "tensor/value.h"

#include <string.h>

size_t clg_model_n_initializers(const clg_model *model)
{
    return model ? model->n_initializers : 0;
}

const clg_port *clg_model_initializer(const clg_model *model, size_t index)
{
    return index < clg_model_n_initializers(model) ? &model->initializers[index] : NULL;
}

static clg_status copy_elements(const tensor *from, tensor *to)
{
    if (from->dtype != CLG_STRING) {
        if (from->size_bytes > 0) memcpy(to->data, from->data, from->size_bytes);
        return CLG_OK;
    }
    for (int64_t i = 0; i < from->n_elements; i++) {
        const char *text = tensor_get_string(from, i);
        CLG_TRY(tensor_set_string(to, i, text, strlen(text)));
    }
    return CLG_OK;
}

clg_status clg_model_initializer_value(const clg_model *model, size_t index, clg_value **out_value)
{
    char shown[NAME_TEXT_BYTES];
    tensor *copy;
    API_REQUIRE(out_value);
    *out_value = NULL;
    API_REQUIRE(model);
    if (index >= model->n_initializers)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: index is %zu of %zu initializers",
                         __func__, index, model->n_initializers);
    const value *v = &model->graph->values[model->initializer_ids[index]];
    if (!v->constant)
        return error_set(CLG_ERROR_NOT_FOUND, "the model was loaded without the data of '%s'",
                         name_text(v->name, shown));
    CLG_TRY(tensor_create(v->constant->dtype, &v->constant->dims, &copy));
    clg_status status = copy_elements(v->constant, copy);
    if (status == CLG_OK) status = value_create_host(copy, out_value);
    tensor_free(copy);
    return status;
}

clg_status clg_model_extract(const clg_model *model, const char *const *inputs, size_t n_inputs,
                             const char *const *outputs, size_t n_outputs, clg_model **out_model)
{
    API_REQUIRE(out_model);
    *out_model = NULL;
    API_REQUIRE(model);
    if (n_inputs > 0) API_REQUIRE(inputs);
    API_REQUIRE(outputs);
    if (n_outputs == 0)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: a model has outputs", __func__);
    return model_extract(model, inputs, n_inputs, outputs, n_outputs, out_model);
}

clg_status clg_model_replace_initializers(const clg_model *model, const char *const *names,
                                          clg_value *const *values, size_t n, clg_model **out_model)
{
    API_REQUIRE(out_model);
    *out_model = NULL;
    API_REQUIRE(model);
    if (n > 0) {
        API_REQUIRE(names);
        API_REQUIRE(values);
    }
    for (size_t i = 0; i < n; i++) {
        API_REQUIRE(names[i]);
        API_REQUIRE(values[i]);
    }
    return model_replace_initializers(model, names, values, n, out_model);
}
