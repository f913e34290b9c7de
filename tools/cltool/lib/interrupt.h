/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles Ctrl-C and requests to terminate: says so, and ends the program within a second. During
 * work that must not be cut off (a run, writing a file), a signal only cancels that work; otherwise
 * it ends the program immediately. A second signal always ends the program.
 */
#ifndef CLTOOL_INTERRUPT_H
#define CLTOOL_INTERRUPT_H

#include <clgraph/stream.h>

/* Installs the handler. Must be called before any thread is started. json: the error is printed as
 * JSON. quiet: nothing is printed before work has stopped. */
void interrupt_setup(bool json, bool quiet);
/* Starts a section in which a signal does not end the program. It cancels the session if that is
 * not NULL. Sections nest. */
void interrupt_begin(clg_session *session);
/* As interrupt_begin for work of the library that interrupt_token cancels, and that writes no file.
 * 0.8 s after a signal the program ends, unless a section is open that may write one: a call of the
 * driver cannot be interrupted. */
void interrupt_begin_computing(void);
void interrupt_end_computing(void);
/* Returns the token that a signal triggers, for the options of models and sessions; NULL if there
 * was no memory for it. */
clg_cancel *interrupt_token(void);
/* Ends the section that interrupt_begin started for the session. */
void interrupt_end(clg_session *session);
/* As interrupt_begin for a stream. */
void interrupt_begin_stream(clg_stream *stream);
void interrupt_end_stream(clg_stream *stream);
bool interrupt_seen(void);

#endif
