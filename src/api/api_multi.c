/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_session_create_multi and clg_session_parts.
 */
#include "api/arguments.h"
#include "ops/batch/batch_axes.h"
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

static clg_status create(clg_context *const *contexts, size_t n, clg_model *model,
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
    const graph *g = model->graph;
    int *axes = memory_zalloc(g->n_inputs + g->n_outputs + 1, sizeof *axes);
    clg_session **parts = memory_zalloc(n_contexts, sizeof *parts);
    const clg_status status = axes && parts ? create(contexts, n_contexts, model, options, &multi,
                                                     axes, parts, out_session)
                                            : CLG_ERROR_OUT_OF_HOST_MEMORY;
    memory_free(axes);
    memory_free(parts);
    return status;
}

/* Describes part i; rows of all parts of a next run are n_rows. */
static void describe(const multi_session *m, size_t i, clg_session_part *out)
{
    const multi_part *part = &m->parts[i];
    *out = (clg_session_part){.device = part->session->owner->info,
                              .session = part->session,
                              .rows = part->rows,
                              .rows_per_s = part->rows_per_s,
                              .busy_s = part->busy_s,
                              .is_lost = part->is_lost};
    if (m->split_of > 0) out->share = (double)m->split[i] / (double)m->split_of;
    if (part->whole_s > 0 && part->busy_s < part->whole_s)
        out->idle_share = 1 - part->busy_s / part->whole_s;
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
    const multi_session *m = session->multi;
    const size_t n = m ? m->n_parts : 1;
    clg_session_part *parts = memory_zalloc(n, sizeof *parts);
    if (!parts) {
        session_leave(session);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    for (size_t i = 0; m && i < n; i++) describe(m, i, &parts[i]);
    if (!m) parts[0] = (clg_session_part){session->owner->info, session, .share = 1};
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
