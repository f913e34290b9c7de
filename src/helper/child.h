/* SPDX-License-Identifier: Apache-2.0
 *
 * The compile helper's worker seen from its supervisor: a child process with a two-way channel, whose output is kept. child_posix.c
 * forks, child_windows.c starts the same program anew.
 */
#ifndef CLG_HELPER_CHILD_H
#define CLG_HELPER_CHILD_H

#include "ocl/helper/helper_message.h"

#define CHILD_OUTPUT_BYTES 2048

typedef struct child {
    bool is_running;
    int channel;
    intptr_t process, group, output; /* as the system counts them */
    char last[CHILD_OUTPUT_BYTES];   /* the end of what it printed, not terminated */
    size_t n_last;
} child;

/* For the first lines of main: whether this process was started as a worker. */
bool child_is_this(int n_arguments, char *const *arguments);
/* Starts a process that runs worker_run. False: the system could not; nothing is left. */
bool child_start(child *c);
/* Takes what it has printed since the last call into c->last. */
void child_read_output(child *c);
/* Resident bytes; 0 where the system does not say. */
uint64_t child_resident_bytes(const child *c);
/* Ends it, and the compilers and linkers it has started. Accepts one that is not running. */
void child_kill(child *c);
/* What a child died of that has closed its channel: HELPER_CRASHED or HELPER_KILLED, with the signal, or on Windows the exception. */
helper_outcome child_reap(child *c, int32_t *out_signal);

/* For child_*.c: appends to c->last, drops its beginning. n_bytes <= CHILD_OUTPUT_BYTES. */
void child_keep_output(child *c, const char *piece, size_t n_bytes);

#endif
