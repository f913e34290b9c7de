/* SPDX-License-Identifier: Apache-2.0
 *
 * Ctrl-C and termination. Inside work that must end in order (a run, a file being written) a signal
 * only cancels; outside it ends the program immediately. A second signal always ends it.
 */
#ifndef CLTOOL_INTERRUPT_H
#define CLTOOL_INTERRUPT_H

#include <clgraph/stream.h>

/* Called before any thread is started. */
void interrupt_setup(bool json);
/* Starts a section in which a signal only cancels; `session`, which may be NULL, is then cancelled.
 * Nests. */
void interrupt_begin(clg_session *session);
/* Ends the section for the session. */
void interrupt_end(clg_session *session);
/* As interrupt_begin for a stream. */
void interrupt_begin_stream(clg_stream *stream);
void interrupt_end_stream(clg_stream *stream);
bool interrupt_seen(void);

#endif
