/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles Ctrl-C and requests to terminate. During work that must end in order (a run, a file being
 * written), a signal only cancels that; otherwise it ends the program immediately. A second signal
 * always ends the program.
 */
#ifndef CLTOOL_INTERRUPT_H
#define CLTOOL_INTERRUPT_H

#include <clgraph/stream.h>

/* Installs the handler; call before any thread is started. json: the error is printed as JSON. */
void interrupt_setup(bool json);
/* Starts a section in which a signal does not end the program, but cancels the session, if it is
 * not NULL. Sections nest. */
void interrupt_begin(clg_session *session);
/* Ends the section for the session. */
void interrupt_end(clg_session *session);
/* As interrupt_begin for a stream. */
void interrupt_begin_stream(clg_stream *stream);
void interrupt_end_stream(clg_stream *stream);
bool interrupt_seen(void);

#endif
