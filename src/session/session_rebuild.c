/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a session again in the context that clg_context_recover made after a loss of the device
 * (decision 42): at the session's next run or preparation, on its own thread. The old frame and,
 * with the last frame that uses them, the old weights are released first, so that device memory
 * need not hold both. Constants are uploaded again from the model, which the session keeps; those
 * that the device computed are computed again.
 */
#include "session/session.h"

/* ---- what was on the device ------------------------------------------------------------------ */

/* Drops what the session has in the lost device's memory; no call reaches the driver but
 * releases. */
static void strip(clg_session *s)
{
    for (size_t i = 0; i < s->n_inputs; i++) {
        session_input *in = &s->inputs[i];
        in->mapped = NULL;
        in->filled = in->carried = false;
    }
    for (size_t i = 0; i < s->n_outputs; i++) {
        s->outputs[i].mapped = NULL;
        s->outputs[i].valid = false;
    }
    frame_free(s->frame);
    s->frame = NULL;
}

/* Returns an error if an input or bound output is in the memory of a lost device. */
static clg_status check_values(const clg_session *s)
{
    const graph *g = s->exec->graph;
    clg_status status = CLG_OK;
    for (size_t i = 0; i < s->n_inputs && status == CLG_OK; i++)
        if (s->inputs[i].value && value_is_lost(s->inputs[i].value))
            status = error_set(CLG_ERROR_NOT_FOUND,
                               "input '%s' is not set: its value was lost with its device",
                               g->values[g->inputs[i]].name);
    for (size_t i = 0; i < s->n_outputs && status == CLG_OK; i++)
        if (s->outputs[i].bound && value_is_lost(s->outputs[i].bound))
            status = error_set(CLG_ERROR_INVALID_ARGUMENT,
                               "output '%s': the value bound to it was lost with its device",
                               g->values[g->outputs[i]].name);
    if (status != CLG_OK) error_hint("create and set a new value");
    return status;
}

/* ---- rebuilding ------------------------------------------------------------------------------ */

/* Finds or makes the counterpart of e in `now`, the current context. */
static clg_status exec_in(device_context *now, session_exec *e, session_exec **out_exec)
{
    CLG_TRY(ocl_context_require(now->ocl));
    if (now != e->context) return exec_get(now, e->model, &e->options, NULL, NULL, out_exec);
    *out_exec = exec_retain(e);
    return CLG_OK;
}

clg_status session_exec_now(clg_context *owner, session_exec *e, session_exec **out_exec)
{
    *out_exec = NULL;
    if (!owner) return exec_in(e->context, e, out_exec);
    device_context *now = context_handle_current(owner);
    const clg_status status = exec_in(now, e, out_exec);
    context_free(now);
    return status;
}

/* Gives the session an exec and a frame in the current context. After a failure it has no frame,
 * and the next call tries again. */
static clg_status rebuild(clg_session *s, device_context *now)
{
    session_exec *e;
    frame *f;
    strip(s);
    exec_release_lost(s->exec);
    clg_status status;
    limits_scope scope;
    limits_enter(&scope, &s->exec->options.limits, NULL, LIMIT_COMPILE);
    CANCEL_WITHIN(status, s->token, &s->cancel, exec_in(now, s->exec, &e));
    CLG_TRY(limits_leave(&scope, status));
    status = e->graph->n_inputs == s->n_inputs && e->graph->n_outputs == s->n_outputs
                 ? frame_create(e, s->n_inputs, s->n_outputs, &session_frame_owner, &f)
                 : error_set(CLG_ERROR_INTERNAL, "the rebuilt session has other inputs or outputs");
    if (status != CLG_OK) {
        exec_free(e);
        return status;
    }
    s->frame = f;
    session_set_exec(s, e);
    return CLG_OK;
}

bool session_is_stale(const clg_session *s)
{
    if (!s->owner) return false;
    device_context *now = context_handle_current(s->owner);
    const bool is_stale = now != s->exec->context || !s->frame;
    context_free(now);
    return is_stale;
}

clg_status session_renew(clg_session *s)
{
    if (!s->owner) return ocl_context_require(s->exec->context->ocl);
    device_context *now = context_handle_current(s->owner);
    clg_status status = ocl_context_require(now->ocl);
    if (status == CLG_OK && (now != s->exec->context || !s->frame)) status = rebuild(s, now);
    context_free(now);
    return status;
}

clg_status session_renew_front(clg_session *s)
{
    return session_is_stale(s) && !context_handle_is_lost(s->owner) ? session_renew(s) : CLG_OK;
}

clg_status session_refresh(clg_session *s)
{
    CLG_TRY(session_renew(s));
    return check_values(s);
}
