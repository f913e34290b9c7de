/* SPDX-License-Identifier: Apache-2.0
 *
 * Differentiates a clone of a model's graph, whose outputs become the gradients.
 */
#include "base/strbuf.h"
#include "ops/grad/grad.h"
#include "session/exec/model.h"

#include <string.h>

static clg_status find_value(const graph *g, const char *name, value_id *out)
{
    char shown[NAME_TEXT_BYTES];
    *out = graph_find_value(g, name);
    if (*out != VALUE_NONE) return CLG_OK;
    return error_set(CLG_ERROR_NOT_FOUND, "the model has no value '%s'", name_text(name, shown));
}

static clg_status find_values(const graph *g, const char *const *xs, size_t n, value_id *out)
{
    char shown[NAME_TEXT_BYTES];
    for (size_t i = 0; i < n; i++) {
        if (!xs[i])
            return error_set(CLG_ERROR_INVALID_ARGUMENT, "clg_model_gradient: xs[%zu] is NULL", i);
        CLG_TRY(find_value(g, xs[i], &out[i]));
        for (size_t k = 0; k < i; k++)
            if (out[k] == out[i])
                return error_set(CLG_ERROR_INVALID_ARGUMENT, "the value '%s' is named twice",
                                 name_text(xs[i], shown));
    }
    return CLG_OK;
}

/* Adds an output with the elements of `gradient`, called after the value x. */
static clg_status add_output(graph *g, value_id x, value_id gradient)
{
    value_id out = VALUE_NONE;
    node_id n;
    strbuf name;
    strbuf_init(&name, SIZE_MAX);
    strbuf_printf(&name, "%s_grad", g->values[x].name);
    clg_status status = name.status;
    if (status == CLG_OK) status = graph_add_named(g, strbuf_data(&name), &out);
    strbuf_deinit(&name);
    CLG_TRY(status);
    CLG_TRY(graph_add_node(g, "", "Identity", "", 1, &gradient, 1, &out, &n));
    return graph_add_output(g, out);
}

/* values: room for 2 n_xs, and the outputs of g. */
static clg_status differentiate(graph *g, const char *y, const char *const *xs, size_t n_xs,
                                bool keeps_outputs, value_id *values)
{
    value_id result, *gradients = values + n_xs, *outputs = gradients + n_xs;
    const size_t n_outputs = keeps_outputs ? g->n_outputs : 0;
    for (size_t i = 0; i < n_outputs; i++) outputs[i] = g->outputs[i];
    CLG_TRY(find_value(g, y, &result));
    CLG_TRY(find_values(g, xs, n_xs, values));
    CLG_TRY(ops_resolve(g));
    CLG_TRY(grad_build(g, result, VALUE_NONE, values, n_xs, gradients));
    graph_clear_outputs(g);
    for (size_t i = 0; i < n_xs; i++) CLG_TRY(add_output(g, values[i], gradients[i]));
    CLG_TRY(graph_add_output(g, result));
    for (size_t i = 0; i < n_outputs; i++)
        if (outputs[i] != result) CLG_TRY(graph_add_output(g, outputs[i]));
    return graph_name_values(g, "gradient");
}

clg_status model_gradient(const clg_model *m, const char *y, const char *const *xs, size_t n_xs,
                          bool keeps_outputs, clg_model **out_model)
{
    graph *g;
    CLG_TRY(model_require_data(m));
    CLG_TRY(graph_clone(m->graph, &g));
    value_id *values = memory_zalloc(2 * n_xs + g->n_outputs + 1, sizeof *values);
    clg_status status = values ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK) status = differentiate(g, y, xs, n_xs, keeps_outputs, values);
    memory_free(values);
    if (status != CLG_OK) {
        graph_free(g);
        return status;
    }
    return model_create(g, false, out_model);
}
