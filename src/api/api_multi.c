/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_session_create_multi and clg_session_parts.
 */
#include "api/arguments.h"
#include "api/session_settings.h"
#include "ops/batch/batch_axes.h"
#include "session/layers/layers.h"
#include "session/multi/multi.h"

#include <clgraph/multi.h>

static clg_status check_contexts(clg_context *const *contexts, size_t n)
{
    if (n == 0)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "clg_session_create_multi: no context");
    for (size_t i = 0; i < n; i++) {
        if (!contexts[i])
            return error_set(CLG_ERROR_INVALID_ARGUMENT,
                             "clg_session_create_multi: context %zu is NULL", i);
        for (size_t k = 0; k < i; k++)
            if (contexts[k] == contexts[i])
                return error_set(CLG_ERROR_INVALID_ARGUMENT,
                                 "clg_session_create_multi: context %zu is given twice", i);
    }
    return CLG_OK;
}

static clg_status create_parts(clg_context *const *contexts, size_t n, clg_model *model,
                               const clg_session_options *options, clg_session **parts)
{
    for (size_t i = 0; i < n; i++) {
        const clg_status status = clg_session_create(contexts[i], model, options, &parts[i]);
        if (status != CLG_OK)
            return error_prefix(status, "device %s", clg_context_device(contexts[i])->selector);
    }
    return CLG_OK;
}

/* Refuses inputs whose batch is not their first dimension: their rows are no whole pieces. */
static clg_status check_axes(const graph *g, const int *axes)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (axes[i] > 0)
            return error_set(CLG_ERROR_UNSUPPORTED_OPERATOR,
                             "input '%s' carries the batch in dimension %d; among devices only the "
                             "first one is divided",
                             g->values[g->inputs[i]].name, axes[i]);
    return CLG_OK;
}

static clg_status divide_rows(clg_context *const *contexts, size_t n, clg_model *model,
                              const clg_session_options *options, const clg_multi_options *multi,
                              int *axes, clg_session **parts, clg_session **out_session)
{
    int *output_axes = axes + model->graph->n_inputs;
    CLG_TRY(batch_find(model->graph, NULL, axes, output_axes));
    CLG_TRY(check_axes(model->graph, axes));
    const clg_status status = create_parts(contexts, n, model, options, parts);
    if (status == CLG_OK)
        return multi_create(parts, n, axes, output_axes, multi->hang_ms, out_session);
    for (size_t i = 0; i < n; i++) session_free(parts[i]);
    return status;
}

static clg_status create_rows(clg_context *const *contexts, size_t n, clg_model *model,
                              const clg_session_options *options, const clg_multi_options *multi,
                              clg_session **out_session)
{
    const graph *g = model->graph;
    int *axes = memory_zalloc(g->n_inputs + g->n_outputs + 1, sizeof *axes);
    clg_session **parts = memory_zalloc(n, sizeof *parts);
    const clg_status status =
        axes && parts ? divide_rows(contexts, n, model, options, multi, axes, parts, out_session)
                      : CLG_ERROR_OUT_OF_HOST_MEMORY;
    memory_free(axes);
    memory_free(parts);
    return status;
}

/* Decides the options of the sessions on each device. */
static clg_status read_options(clg_context *const *contexts, size_t n,
                               const clg_session_options *given, exec_options *out_options)
{
    for (size_t i = 0; i < n; i++) {
        device_context *now = context_handle_current(contexts[i]);
        clg_status status = ocl_context_require(now->ocl);
        if (status == CLG_OK) status = api_session_options(now, given, &out_options[i]);
        context_free(now);
        if (status != CLG_OK)
            return error_prefix(status, "device %s", clg_context_device(contexts[i])->selector);
    }
    return CLG_OK;
}

static clg_status create_layers(clg_context *const *contexts, size_t n, clg_model *model,
                                const clg_session_options *options, const clg_multi_options *multi,
                                clg_session **out_session)
{
    clg_session_options o = CLG_SESSION_OPTIONS_INIT;
    API_OPTIONS(options, o);
    if (multi->hang_ms)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "hang_ms is for the rows of a batch: with layers a device that hangs is "
                         "waited for");
    exec_options *decided = memory_zalloc(n, sizeof *decided);
    clg_status status =
        decided ? read_options(contexts, n, &o, decided) : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK)
        status = layers_create(contexts, n, model, decided, o.cancel, o.progress, o.progress_user,
                               out_session);
    memory_free(decided);
    return status;
}

clg_status clg_session_create_multi(clg_context *const *contexts, size_t n_contexts,
                                    clg_model *model, const clg_session_options *options,
                                    const clg_multi_options *multi_options,
                                    clg_session **out_session)
{
    clg_multi_options multi = CLG_MULTI_OPTIONS_INIT;
    API_REQUIRE(out_session);
    *out_session = NULL;
    API_REQUIRE_DEVICE(contexts);
    API_REQUIRE(model);
    API_OPTIONS(multi_options, multi);
    CLG_TRY(check_contexts(contexts, n_contexts));
    switch (multi.split) {
    case CLG_SPLIT_ROWS:
        return create_rows(contexts, n_contexts, model, options, &multi, out_session);
    case CLG_SPLIT_LAYERS:
        return create_layers(contexts, n_contexts, model, options, &multi, out_session);
    default:
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "clg_session_create_multi: unknown split %d",
                         (int)multi.split);
    }
}

clg_status clg_session_parts(clg_session *session, clg_session_part **out_parts,
                             size_t *out_n_parts)
{
    API_REQUIRE(out_parts);
    API_REQUIRE(out_n_parts);
    *out_parts = NULL;
    *out_n_parts = 0;
    API_REQUIRE_DEVICE(session);
    CLG_TRY(session_enter(session));
    const session_several *several = session->multi ? session->several : NULL;
    const size_t n = several ? several->n_parts(session->multi) : 1;
    clg_session_part *parts = memory_zalloc(n, sizeof *parts);
    if (!parts) {
        session_leave(session);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    for (size_t i = 0; several && i < n; i++) several->describe(session->multi, i, &parts[i]);
    if (!several)
        parts[0] = (clg_session_part){session->owner->info, session, .share = 1, .first_node = "",
                                      .last_node = ""};
    session_leave(session);
    *out_parts = parts;
    *out_n_parts = n;
    return CLG_OK;
}

void clg_session_parts_free(clg_session_part *parts, size_t n_parts)
{
    (void)n_parts;
    memory_free(parts);
}
