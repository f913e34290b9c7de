/* SPDX-License-Identifier: Apache-2.0
 *
 * Rejects concurrent requests: a session serves one at a time, others get BUSY.
 */
#include "session/session.h"

clg_status session_enter(clg_session *s)
{
    CLG_TRY(fork_check());
    if (atomic_exchange(&s->busy, true))
        return error_set(CLG_ERROR_BUSY,
                         "the session is working on another request: wait for it, or use a clone");
    cancel_reset(&s->cancel);
    if (s->multi) s->several->begin(s->multi);
    return CLG_OK;
}

void session_cancel(clg_session *s)
{
    cancel_trigger(&s->cancel);
    if (s->multi) s->several->cancel(s->multi);
}

void session_leave(clg_session *s) { atomic_store(&s->busy, false); }

clg_status session_refuse_several(const char *what)
{
    const clg_status status =
        error_set(CLG_ERROR_UNSUPPORTED_DEVICE, "a session over several devices does not %s", what);
    error_hint("use a session on one device, or those of clg_session_parts");
    return status;
}

clg_status session_refuse_lost(void)
{
    const clg_status status =
        error_set(CLG_ERROR_DEVICE_LOST, "all devices of the session are lost");
    error_hint("open them again by clg_context_recover, and run again");
    return status;
}
