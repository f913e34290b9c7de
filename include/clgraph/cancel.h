/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens that cancel long work. clgraph.h includes this header, and its rules apply.
 *
 * A triggered token ends with CANCELLED: the loading of a model (clg_model_options.cancel), the
 * creation of a session, and all its preparations and runs, those of its clones and streams too
 * (clg_session_options.cancel). Work in progress stops within 100 ms or at the end of the call of
 * the driver that it is in, which the message then names; compile helpers are killed. Calls that
 * start while the token is triggered are cancelled, too. One token may be in many options; they
 * keep it alive.
 */
#ifndef CLGRAPH_CANCEL_H
#define CLGRAPH_CANCEL_H

#include <clgraph/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a token that is not triggered. */
CLG_API CLG_MUST_USE clg_status clg_cancel_create(clg_cancel **out_cancel);
/* Triggers the token. Any thread, and signal handlers; accepts NULL. */
CLG_API void clg_cancel_trigger(clg_cancel *cancel);
/* Ends the effect of clg_cancel_trigger: sessions with the token can run again. Any thread, and
 * signal handlers; accepts NULL. */
CLG_API void clg_cancel_reset(clg_cancel *cancel);
/* Returns whether the token is triggered; false for NULL. Any thread, and signal handlers. */
CLG_API bool clg_cancel_is_triggered(const clg_cancel *cancel);
CLG_API void clg_cancel_free(clg_cancel *cancel);

#ifdef __cplusplus
}
#endif

#endif
