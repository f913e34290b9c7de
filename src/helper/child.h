/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts and observes the compile helper's worker, for its supervisor: a child process with a
 * two-way channel, whose output is recorded. child_posix.c forks, child_windows.c starts the same
 * program again.
 */
#ifndef CLG_HELPER_CHILD_H
#define CLG_HELPER_CHILD_H

#include "ocl/helper/helper_message.h"

#define CHILD_OUTPUT_BYTES 2048

typedef struct child {
    bool is_running;
    int channel;
    intptr_t process, group, output; /* system handles */
    char last[CHILD_OUTPUT_BYTES];   /* the end of its output, not NUL-terminated */
    size_t n_last;
} child;

/* Returns whether this process was started as a worker; to be called at the start of main. */
bool child_is_this(int n_arguments, char *const *arguments);
/* Starts a process that runs worker_run. Returns false when the system cannot; there is nothing to
 * clean up then. */
bool child_start(child *c);
/* Appends the child's output since the last call to c->last. */
void child_read_output(child *c);
/* Returns the child's resident memory in bytes; 0 where the system does not report it. */
uint64_t child_resident_bytes(const child *c);
/* Returns for how many nanoseconds the child's first thread, which compiles, was ready to run and
 * other processes had the processors; 0 where the system does not report it. */
uint64_t child_waited_ns(const child *c);
/* Kills the worker, with the compilers and linkers that it has started; does nothing if it is not
 * running. */
void child_kill(child *c);
/* Returns how a child that closed its channel ended: HELPER_CRASHED or HELPER_KILLED, with the
 * signal, or on Windows the exception. */
helper_outcome child_reap(child *c, int32_t *out_signal);

/* For child_*.c: appends piece to c->last; if that is full, drops the oldest bytes. n_bytes <=
 * CHILD_OUTPUT_BYTES. */
void child_keep_output(child *c, const char *piece, size_t n_bytes);

#endif
