/* SPDX-License-Identifier: Apache-2.0
 *
 * Guards a session's exec, which a rebuild or a change of kept values replaces while other threads
 * may clone the session.
 */
#include "session/session.h"

const frame_owner session_frame_owner = {true, exec_weight_buffer};

session_exec *session_hold_exec(clg_session *s)
{
    mutex_lock(&s->worker.lock);
    session_exec *e = exec_retain(s->exec);
    mutex_unlock(&s->worker.lock);
    return e;
}

void session_set_exec(clg_session *s, session_exec *e)
{
    mutex_lock(&s->worker.lock);
    session_exec *old = s->exec;
    s->exec = e;
    mutex_unlock(&s->worker.lock);
    exec_free(old);
    memory_free(s->profile); /* its strings belong to the old graph */
    s->profile = NULL;
    s->n_profile = 0;
}
