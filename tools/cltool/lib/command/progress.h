/* SPDX-License-Identifier: Apache-2.0
 *
 * The line at the bottom of a terminal that shows progress, of commands (declared in output.h) and
 * of compiling, which any call of the library may begin.
 */
#ifndef CLTOOL_PROGRESS_H
#define CLTOOL_PROGRESS_H

#include <stdbool.h>

/* shows: there is a terminal for it. Must be called before the other functions. */
void progress_setup(bool shows);
bool progress_shows(void);
/* Hides the line and keeps other threads from showing it until progress_go_on. Ends what the
 * command showed. */
void progress_pause(void);
void progress_go_on(void);

#endif
