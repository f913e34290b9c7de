/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions: making, cloning, freeing.
 */
#include "session/session.h"

static clg_status init_worker(session_worker *w)
{
    CLG_TRY(mutex_init(&w->lock));
    clg_status status = condition_init(&w->changed);
    if (status != CLG_OK) mutex_deinit(&w->lock);
    return status;
}

static void free_io(clg_session *s)
{
    for (size_t i = 0; s->inputs && i < s->n_inputs; i++) {
        (void)session_unmap(s, i);
        value_free(s->inputs[i].value);
        tensor_free(s->inputs[i].content);
    }
    for (size_t i = 0; s->outputs && i < s->n_outputs; i++) {
        value_free(s->outputs[i].bound);
        value_free(s->outputs[i].host);
        tensor_free(s->outputs[i].known);
    }
    memory_free(s->inputs);
    memory_free(s->outputs);
    s->inputs = NULL;
    s->outputs = NULL;
}

static clg_status make_io(clg_session *s)
{
    s->n_inputs = s->e->g->n_inputs;
    s->n_outputs = s->e->g->n_outputs;
    s->inputs = memory_zalloc(s->n_inputs + 1, sizeof *s->inputs);
    s->outputs = memory_zalloc(s->n_outputs + 1, sizeof *s->outputs);
    if (!s->inputs || !s->outputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < s->n_inputs; i++) {
        s->inputs[i].hint = shape_unknown();
        s->inputs[i].link = SIZE_MAX;
    }
    for (size_t i = 0; i < s->n_outputs; i++) s->outputs[i].link = SIZE_MAX;
    return frame_create(s->e, s->n_inputs, s->n_outputs, true, &s->f);
}

/* Takes the reference to e over, also on failure. */
static clg_status session_over(exec *e, clg_session **out_session)
{
    clg_session *s = memory_zalloc(1, sizeof *s);
    clg_status status = s ? init_worker(&s->worker) : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status != CLG_OK) {
        memory_free(s);
        exec_free(e);
        return status;
    }
    atomic_init(&s->busy, false);
    atomic_init(&s->cancel, false);
    s->e = e;
    status = make_io(s);
    if (status != CLG_OK) {
        session_free(s);
        return status;
    }
    *out_session = s;
    return CLG_OK;
}

clg_status session_create(clg_context *context, clg_model *model, const exec_options *options,
                          clg_progress_callback progress, void *user, clg_session **out_session)
{
    exec *e;
    *out_session = NULL;
    CLG_TRY(exec_get(context, model, options, progress, user, &e));
    return session_over(e, out_session);
}

clg_status session_clone(clg_session *s, clg_session **out_session)
{
    *out_session = NULL;
    return session_over(exec_retain(s->e), out_session);
}

void session_free(clg_session *s)
{
    if (!s) return;
    session_stop_worker(s);
    free_io(s);
    frame_free(s->f);
    memory_free(s->profile);
    condition_deinit(&s->worker.changed);
    mutex_deinit(&s->worker.lock);
    exec_free(s->e);
    memory_free(s);
}

clg_status session_keep_values(clg_session *s, const char *const *names, size_t n_names)
{
    exec_options options = s->e->options;
    options.keep_all = n_names == 0 && names == NULL;
    options.keep = names;
    options.n_keep = n_names;
    clg_session *fresh;
    CLG_TRY(session_create(s->e->context, s->e->model, &options, NULL, NULL, &fresh));
    for (size_t i = 0; i < s->n_inputs && i < fresh->n_inputs; i++) {
        fresh->inputs[i].value = value_retain(s->inputs[i].value);
        fresh->inputs[i].hint = s->inputs[i].hint;
    }
    /* What makes up the new session moves into the old handle; the old parts are freed with the other. */
    exec *e = s->e;
    frame *f = s->f;
    session_input *inputs = s->inputs;
    session_output *outputs = s->outputs;
    size_t n_inputs = s->n_inputs, n_outputs = s->n_outputs;
    s->e = fresh->e;
    s->f = fresh->f;
    s->inputs = fresh->inputs;
    s->outputs = fresh->outputs;
    s->n_inputs = fresh->n_inputs;
    s->n_outputs = fresh->n_outputs;
    fresh->e = e;
    fresh->f = f;
    fresh->inputs = inputs;
    fresh->outputs = outputs;
    fresh->n_inputs = n_inputs;
    fresh->n_outputs = n_outputs;
    session_free(fresh);
    return CLG_OK;
}

clg_status session_enter(clg_session *s)
{
    if (atomic_exchange(&s->busy, true))
        return error_set(CLG_ERROR_BUSY,
                         "the session is working on another request: wait for it, or use a clone");
    atomic_store(&s->cancel, false);
    return CLG_OK;
}

void session_leave(clg_session *s) { atomic_store(&s->busy, false); }
