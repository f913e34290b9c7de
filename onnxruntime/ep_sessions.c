/* SPDX-License-Identifier: Apache-2.0
 *
 * A list of idle sessions under a lock. Clones are made outside of it, from a session that lives as
 * long as the program: cloning is allowed while that one runs.
 */
#include "ep_sessions.h"

static void free_session(ep_session *s)
{
    if (s == NULL) return;
    clg_session_free(s->session);
    memory_free(s->inputs);
    memory_free(s->dims);
    memory_free(s->outputs);
    memory_free(s->bound);
    memory_free(s->verified_ranks);
    memory_free(s->verified_dims);
    memory_free(s);
}

static clg_status create_session(const ep_program *program, clg_session *session,
                                 ep_session **out_session)
{
    size_t n_in = program->n_inputs + 1, n_out = program->n_outputs + 1;
    ep_session *s = memory_zalloc(1, sizeof *s);
    if (s == NULL) {
        clg_session_free(session);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    s->session = session;
    s->inputs = memory_zalloc(n_in, sizeof *s->inputs);
    s->dims = memory_zalloc(n_in, sizeof *s->dims);
    s->outputs = memory_zalloc(n_out, sizeof *s->outputs);
    s->bound = memory_zalloc(n_out, sizeof *s->bound);
    s->verified_ranks = memory_zalloc(n_in, sizeof *s->verified_ranks);
    s->verified_dims = memory_zalloc(n_in, sizeof *s->verified_dims);
    if (s->inputs == NULL || s->dims == NULL || s->outputs == NULL || s->bound == NULL ||
        s->verified_ranks == NULL || s->verified_dims == NULL) {
        free_session(s);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    for (size_t i = 0; i < program->n_inputs; i++) s->inputs[i].name = program->inputs[i].name;
    for (size_t i = 0; i < program->n_outputs; i++) s->outputs[i].name = program->outputs[i].name;
    *out_session = s;
    return CLG_OK;
}

clg_status ep_sessions_add(ep_program *program, clg_session *session)
{
    CLG_TRY(create_session(program, session, &program->idle));
    program->origin = session;
    program->n_sessions = 1;
    return CLG_OK;
}

clg_status ep_sessions_acquire(ep_program *program, ep_session **out_session)
{
    mutex_lock(&program->lock);
    while (program->idle == NULL && program->n_sessions == EP_MAX_SESSIONS)
        condition_wait(&program->returned, &program->lock);
    ep_session *s = program->idle;
    if (s != NULL)
        program->idle = s->next;
    else
        program->n_sessions++;
    mutex_unlock(&program->lock);
    *out_session = s;
    if (s != NULL) return CLG_OK;
    clg_session *clone = NULL;
    clg_status status = ep_from_clg(clg_session_clone(program->origin, &clone));
    if (status == CLG_OK) status = create_session(program, clone, out_session);
    if (status != CLG_OK) {
        mutex_lock(&program->lock);
        program->n_sessions--;
        condition_broadcast(&program->returned);
        mutex_unlock(&program->lock);
    }
    return status;
}

void ep_sessions_release(ep_program *program, ep_session *session)
{
    mutex_lock(&program->lock);
    session->next = program->idle;
    program->idle = session;
    condition_broadcast(&program->returned);
    mutex_unlock(&program->lock);
}

void ep_sessions_deinit(ep_program *program)
{
    while (program->idle != NULL) {
        ep_session *s = program->idle;
        program->idle = s->next;
        free_session(s);
    }
}
