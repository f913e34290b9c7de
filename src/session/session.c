/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates, clones and frees sessions, and changes the set of values that a session keeps as
 * outputs.
 */
#include "session/session.h"

static clg_status init_worker(session_worker *w)
{
    CLG_TRY(mutex_init(&w->lock));
    clg_status status = condition_init(&w->changed);
    if (status != CLG_OK) mutex_deinit(&w->lock);
    return status;
}

static void free_inputs(clg_session *s)
{
    for (size_t i = 0; s->inputs && i < s->n_inputs; i++) {
        (void)session_unmap(s, i);
        value_free(s->inputs[i].value);
        tensor_free(s->inputs[i].content);
    }
    memory_free(s->inputs);
}

static void free_outputs(session_output *outputs, size_t n)
{
    for (size_t i = 0; outputs && i < n; i++) {
        value_free(outputs[i].bound);
        value_free(outputs[i].host);
        tensor_free(outputs[i].known);
    }
    memory_free(outputs);
}

static clg_status make_outputs(size_t n, session_output **out_outputs)
{
    session_output *outputs = memory_zalloc(n + 1, sizeof *outputs);
    if (!outputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n; i++) outputs[i].link = SIZE_MAX;
    *out_outputs = outputs;
    return CLG_OK;
}

static clg_status make_io(clg_session *s)
{
    s->n_inputs = s->exec->graph->n_inputs;
    s->n_outputs = s->exec->graph->n_outputs;
    s->inputs = memory_zalloc(s->n_inputs + 1, sizeof *s->inputs);
    if (!s->inputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    CLG_TRY(make_outputs(s->n_outputs, &s->outputs));
    for (size_t i = 0; i < s->n_inputs; i++) {
        s->inputs[i].hint = shape_unknown();
        s->inputs[i].link = SIZE_MAX;
    }
    return frame_create(s->exec, s->n_inputs, s->n_outputs, &session_frame_owner, &s->frame);
}

static clg_status make_session(clg_context *owner, session_exec *e, clg_cancel *token,
                               clg_session **out_session)
{
    clg_session *s = memory_zalloc(1, sizeof *s);
    clg_status status = s ? init_worker(&s->worker) : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status != CLG_OK) {
        memory_free(s);
        exec_free(e);
        return status;
    }
    atomic_init(&s->busy, false);
    cancel_init(&s->cancel);
    s->token = cancel_retain(token);
    s->owner = context_handle_retain(owner);
    s->exec = e;
    status = make_io(s);
    if (status != CLG_OK) {
        session_free(s);
        return status;
    }
    *out_session = s;
    return CLG_OK;
}

/* Creates a session that uses exec e, and counts in its budget. Takes ownership of the reference to
 * e, also on failure. */
static clg_status session_over(clg_context *owner, session_exec *e, clg_cancel *token,
                               clg_session **out_session)
{
    memory_budget *before = memory_budget_set(e->budget);
    const clg_status status = make_session(owner, e, token, out_session);
    (void)memory_budget_set(before);
    return status;
}

clg_status session_create(clg_context *owner, device_context *context, clg_model *model,
                          const exec_options *options, clg_cancel *token,
                          clg_progress_callback progress, void *user, clg_session **out_session)
{
    session_exec *e;
    limits_scope scope;
    clg_status status;
    *out_session = NULL;
    limits_enter(&scope, &options->limits, NULL, LIMIT_COMPILE);
    CANCEL_WITHIN(status, token, NULL, exec_get(context, model, options, progress, user, &e));
    if (status == CLG_OK) status = session_over(owner, e, token, out_session);
    return limits_leave(&scope, status);
}

clg_status session_clone(clg_session *s, clg_session **out_session)
{
    if (s->multi) return s->several->clone(s, out_session);
    session_exec *old = session_hold_exec(s), *e;
    limits_scope scope;
    *out_session = NULL;
    limits_enter(&scope, &old->options.limits, NULL, LIMIT_COMPILE);
    clg_status status = session_exec_now(s->owner, old, &e);
    if (status == CLG_OK) status = session_over(s->owner, e, s->token, out_session);
    status = limits_leave(&scope, status);
    exec_free(old);
    return status;
}

void session_free(clg_session *s)
{
    if (!s || fork_is_child()) return; /* its worker and its device are the parent's */
    session_stop_worker(s);
    if (s->multi) s->several->release(s->multi);
    free_inputs(s);
    free_outputs(s->outputs, s->n_outputs);
    frame_free(s->frame);
    memory_free(s->profile);
    cancel_free(s->token);
    condition_deinit(&s->worker.changed);
    mutex_deinit(&s->worker.lock);
    exec_free(s->exec);
    context_handle_free(s->owner);
    memory_free(s);
}

void session_set_seed(clg_session *s, uint64_t seed)
{
    if (!s->frame) return; /* a rebuild has failed: a run fails too */
    s->frame->seed = seed;
    s->frame->n_draws = 0;
}

/* ---- keeping values -------------------------------------------------------------------------- */

/* Moves the bound values and links of the model's own outputs to the new outputs; those of kept
 * values are dropped. */
static void move_outputs(clg_session *s, session_output *to)
{
    size_t n = s->exec->model->graph->n_outputs;
    for (size_t i = 0; i < s->n_inputs; i++)
        if (s->inputs[i].link != SIZE_MAX && s->inputs[i].link >= n) (void)session_unlink(s, i);
    for (size_t i = 0; i < n && i < s->n_outputs; i++) {
        to[i].bound = s->outputs[i].bound;
        to[i].link = s->outputs[i].link;
        s->outputs[i].bound = NULL;
    }
}

/* Switches the session to this exec, frame and outputs, and takes ownership of them. */
static void change_exec(clg_session *s, session_exec *e, frame *f, session_output *outputs)
{
    move_outputs(s, outputs);
    free_outputs(s->outputs, s->n_outputs);
    frame_free(s->frame);
    s->frame = f;
    session_set_exec(s, e);
    s->outputs = outputs;
    s->n_outputs = e->graph->n_outputs;
}

clg_status session_keep_values(clg_session *s, const char *const *names, size_t n_names)
{
    if (s->multi) return session_refuse_several("keep values");
    exec_options options = s->exec->options;
    session_exec *e;
    frame *f = NULL;
    session_output *outputs = NULL;
    options.keep_all = n_names == 0 && names == NULL;
    options.keep = (name_list){names, n_names};
    clg_status status;
    limits_scope scope;
    limits_enter(&scope, &options.limits, NULL, LIMIT_COMPILE);
    CANCEL_WITHIN(status, s->token, &s->cancel,
                  exec_get(s->exec->context, s->exec->model, &options, NULL, NULL, &e));
    CLG_TRY(limits_leave(&scope, status));
    status = make_outputs(e->graph->n_outputs, &outputs);
    if (status == CLG_OK)
        status = frame_create(e, s->n_inputs, e->graph->n_outputs, &session_frame_owner, &f);
    if (status == CLG_OK) status = frame_take_over(f, s->frame);
    if (status != CLG_OK) {
        frame_free(f);
        memory_free(outputs);
        exec_free(e);
        return status;
    }
    change_exec(s, e, f, outputs);
    return CLG_OK;
}
