/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a child process with one two-way channel, which is its standard input; its output is
 * discarded and it inherits no other descriptor. It has its own process group, so that an interrupt
 * typed on the terminal reaches only the parent. Nothing here depends on how the host program
 * handles SIGCHLD or SIGPIPE, nor on who waits for which child.
 */
#ifndef CLG_BASE_PROCESS_H
#define CLG_BASE_PROCESS_H

#include "base/error.h"

typedef struct process process;

/* Returns whether the program has more privileges than its user (setuid, capabilities): then it
 * must start no other program. */
bool process_is_privileged(void);
/* The suffix of program names on this system: "" or ".exe". */
extern const char process_suffix[];

/* Starts the program at an absolute path, without arguments. IO when it cannot be started. */
clg_status process_start(const char *path, process **out_process);
/* Called some 20 times a second while a transfer waits; false cancels it. */
typedef bool (*process_keep_waiting)(void *user);
/* Sends or receives exactly size_bytes. IO: the child closed its end, or until_ns (of time_now_ns)
 * has passed; CANCELLED: keep_waiting (may be NULL) returned false. */
clg_status process_send(process *p, const void *data, size_t size_bytes, uint64_t until_ns,
                        process_keep_waiting keep_waiting, void *user);
clg_status process_receive(process *p, void *data, size_t size_bytes, uint64_t until_ns,
                           process_keep_waiting keep_waiting, void *user);
/* Closes the channel, waits briefly for the child to end, then kills it. Accepts NULL. */
void process_end(process *p);

#endif
