/* SPDX-License-Identifier: Apache-2.0
 *
 * A child process with one two-way channel, which is its standard input; its output goes nowhere and it inherits no other
 * descriptor. It is in a process group by itself, so that an interrupt typed on the terminal reaches the parent alone.
 * Nothing here depends on what the host program does with SIGCHLD or SIGPIPE, nor on who waits for which child.
 */
#ifndef CLG_BASE_PROCESS_H
#define CLG_BASE_PROCESS_H

#include "base/error.h"

typedef struct process process;

/* Whether the program runs with more rights than its user (setuid, capabilities): then it must start no other. */
bool process_is_privileged(void);
/* What names of programs end in on this system: "" or ".exe". */
extern const char process_suffix[];

/* Starts the program at an absolute path, without arguments. IO when it cannot be. */
clg_status process_start(const char *path, process **out_process);
/* Asked some 20 times a second while a transfer waits; false cancels it. */
typedef bool (*process_keep_waiting)(void *user);
/* Sends or receives exactly size_bytes. IO: the child closed its end, or time_ns of time_now_ns has come; CANCELLED:
 * keep_waiting (may be NULL) returned false. */
clg_status process_send(process *p, const void *data, size_t size_bytes, uint64_t until_ns,
                        process_keep_waiting keep_waiting, void *user);
clg_status process_receive(process *p, void *data, size_t size_bytes, uint64_t until_ns,
                           process_keep_waiting keep_waiting, void *user);
/* Closes the channel, waits briefly for the child to end, then kills it. Accepts NULL. */
void process_end(process *p);

#endif
