/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_session_call: marks the session as busy, and calls src/session.
 */
#include "api/arguments.h"
#include "session/session.h"

static void clear_results(clg_call_output *outputs, size_t n_outputs)
{
    for (size_t i = 0; outputs && i < n_outputs; i++)
        outputs[i] = (clg_call_output){.name = outputs[i].name,
                                       .data = outputs[i].data,
                                       .capacity_bytes = outputs[i].capacity_bytes};
}

clg_status clg_session_call(clg_session *session, const clg_call_input *inputs, size_t n_inputs,
                            clg_call_output *outputs, size_t n_outputs)
{
    limits_scope scope;
    clear_results(outputs, n_outputs);
    API_REQUIRE_DEVICE(session);
    if (n_inputs > 0) API_REQUIRE(inputs);
    if (n_outputs > 0) API_REQUIRE(outputs);
    CLG_TRY(session_enter(session));
    limits_enter(&scope, NULL, session->exec->budget, LIMIT_COMPILE);
    clg_status status = session_call(session, inputs, n_inputs, outputs, n_outputs);
    status = limits_leave(&scope, status);
    session_leave(session);
    return status;
}
