/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the public functions that inspect a session: where nodes run, the plan, the profile of
 * the last run.
 */
#include "api/arguments.h"
#include "base/strbuf.h"
#include "session/session.h"

#include <string.h>

const char *clg_place_name(clg_place place)
{
    static const char *const names[] = {"device", "load", "shape", "view", "host", "fused"};
    return (unsigned)place < sizeof names / sizeof names[0] ? names[place] : "unknown place";
}

clg_status clg_session_plan_text(clg_session *session, char **out_text)
{
    plan *p = NULL;
    strbuf t;
    API_REQUIRE(out_text);
    *out_text = NULL;
    API_REQUIRE_DEVICE(session);
    CLG_TRY(session_enter(session));
    strbuf_init(&t, 0);
    clg_status status = session_refresh(session);
    if (status == CLG_OK) status = session_plan(session, &p);
    if (status == CLG_OK) exec_dump_plan(session->exec, p, &t);
    session_leave(session);
    plan_free(p);
    if (status == CLG_OK) status = strbuf_take(&t, out_text);
    strbuf_deinit(&t);
    return status;
}

/* Returns the node of the session's optimised graph that has the same first output as n, a node of
 * the model; NODE_NONE if n was fused into another node or removed. */
static node_id counterpart(const session_exec *e, const graph *model, const node *n)
{
    for (size_t i = 0; i < n->n_outputs; i++) {
        if (n->outputs[i] == VALUE_NONE) continue;
        value_id v = graph_find_value(e->graph, model->values[n->outputs[i]].name);
        return v == VALUE_NONE ? NODE_NONE : e->graph->values[v].producer;
    }
    return NODE_NONE;
}

static const char *reason_for(const session_exec *e, const node *n, node_id found, clg_place place)
{
    switch (place) {
    case CLG_PLACE_DEVICE:
        return found != NODE_NONE && strcmp(e->graph->nodes[found].op_type, n->op_type) != 0
                   ? "part of a fused kernel"
                   : "runs as kernels";
    case CLG_PLACE_LOAD:
        return "depends on constants only: computed once, on the device, when the session is made";
    case CLG_PLACE_SHAPE:
        return "arithmetic on shapes and other small known numbers, done at planning";
    case CLG_PLACE_VIEW: return "moves nothing: another view of its input's memory";
    case CLG_PLACE_HOST:
        return "strings, branches and loops are the host's; what is computed inside runs on the "
               "device";
    case CLG_PLACE_FUSED: return "merged into another node's kernel or removed";
    }
    return "";
}

static clg_status list_nodes(clg_session *session, const plan *p, clg_node_info **out_nodes,
                             size_t *out_n_nodes)
{
    const session_exec *e = session->exec;
    const graph *model = e->model->graph;
    CLG_TRY(clg_model_nodes(e->model, out_nodes, out_n_nodes));
    for (size_t i = 0; i < *out_n_nodes; i++) {
        const node *n = &model->nodes[i];
        node_id found = counterpart(e, model, n);
        (*out_nodes)[i].place =
            found == NODE_NONE ? CLG_PLACE_FUSED : exec_node_place(session->exec, p, found);
        (*out_nodes)[i].reason = reason_for(e, n, found, (*out_nodes)[i].place);
    }
    return CLG_OK;
}

clg_status clg_session_nodes(clg_session *session, clg_node_info **out_nodes, size_t *out_n_nodes)
{
    plan *p = NULL;
    API_REQUIRE(out_nodes);
    API_REQUIRE(out_n_nodes);
    *out_nodes = NULL;
    *out_n_nodes = 0;
    API_REQUIRE_DEVICE(session);
    CLG_TRY(session_enter(session));
    clg_status status = session_refresh(session);
    if (status == CLG_OK) status = session_plan(session, &p);
    if (status == CLG_OK) status = list_nodes(session, p, out_nodes, out_n_nodes);
    plan_free(p);
    session_leave(session);
    return status;
}

clg_status clg_session_keep_values(clg_session *session, const char *const *names, size_t n_names)
{
    static const char *const none[] = {""};
    API_REQUIRE_DEVICE(session);
    if (n_names && !names)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "clg_session_keep_values: names is NULL");
    CLG_TRY(session_enter(session));
    clg_status status = session_renew(session);
    if (status == CLG_OK)
        status = session_keep_values(session, n_names == 0 && names ? none : names, n_names);
    session_leave(session);
    return status;
}

/* Returns the i-th session whose steps are the profile of s: of a device that took part in the last
 * run of a session over several, or s itself; NULL for one that took no part. */
static const clg_session *profiled_session(const clg_session *s, size_t i)
{
    return s->multi ? s->several->ran(s->multi, i) : s;
}

/* Copies the profiles of the last run, device after device. */
static clg_status copy_profiles(const clg_session *s, clg_step_profile **out_steps, size_t *out_n)
{
    const size_t n_sessions = s->multi ? s->several->n_parts(s->multi) : 1;
    size_t n = 0;
    for (size_t i = 0; i < n_sessions; i++) {
        const clg_session *one = profiled_session(s, i);
        if (one && !one->exec->context->profiling)
            return error_set(CLG_ERROR_INVALID_ARGUMENT,
                             "clg_session_profile: the context was made without profiling");
        n += one ? one->n_profile : 0;
    }
    clg_step_profile *steps = memory_zalloc(n + 1, sizeof *steps);
    if (!steps) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    *out_n = 0;
    for (size_t i = 0; i < n_sessions; i++) {
        const clg_session *one = profiled_session(s, i);
        if (!one || one->n_profile == 0) continue;
        memcpy(steps + *out_n, one->profile, one->n_profile * sizeof *steps);
        *out_n += one->n_profile;
    }
    *out_steps = steps;
    return CLG_OK;
}

clg_status clg_session_profile(clg_session *session, clg_step_profile **out_steps,
                               size_t *out_n_steps)
{
    API_REQUIRE(out_steps);
    API_REQUIRE(out_n_steps);
    *out_steps = NULL;
    *out_n_steps = 0;
    API_REQUIRE_DEVICE(session);
    CLG_TRY(session_enter(session));
    const clg_status status = copy_profiles(session, out_steps, out_n_steps);
    session_leave(session);
    return status;
}

void clg_session_profile_free(clg_step_profile *steps, size_t n_steps)
{
    (void)n_steps;
    memory_free(steps);
}
