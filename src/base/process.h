/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a child process that communicates over one bidirectional channel, its standard input. Its
 * output is discarded, and it inherits no other descriptor. It has its own process group, so that
 * Ctrl-C on the terminal reaches only the parent. It works whatever the host program does with
 * SIGCHLD and SIGPIPE, and if the host program waits for all children.
 */
#ifndef CLG_BASE_PROCESS_H
#define CLG_BASE_PROCESS_H

#include "base/error.h"

typedef struct process process;

/* Returns whether the program has more privileges than its user (setuid, capabilities), in which
 * case it must not start another program. */
bool process_is_privileged(void);
/* The suffix of program names on this system: "" or ".exe". */
extern const char process_suffix[];

/* Starts the program at an absolute path, without arguments. IO when it cannot be started. */
clg_status process_start(const char *path, process **out_process);
/* Called about 20 times per second while a transfer waits; returning false cancels it. */
typedef bool (*process_keep_waiting)(void *user);
/* Sends or receives exactly size_bytes. IO: the child closed its end, or until_ns (of time_now_ns)
 * has passed; CANCELLED: keep_waiting (may be NULL) returned false, or the thread's work was
 * cancelled (cancel.h). */
clg_status process_send(process *p, const void *data, size_t size_bytes, uint64_t until_ns,
                        process_keep_waiting keep_waiting, void *user);
clg_status process_receive(process *p, void *data, size_t size_bytes, uint64_t until_ns,
                           process_keep_waiting keep_waiting, void *user);
/* Closes the channel, waits up to 0.5 s for the child to exit, then kills it. Accepts NULL. */
void process_end(process *p);
/* As process_end, but kills the child first. */
void process_kill(process *p);

#endif
