/* SPDX-License-Identifier: Apache-2.0
 *
 * The two-way channels of the compile helper: from the library to the supervisor, and from there to its worker. A channel is a
 * descriptor. channel_posix.c and channel_windows.c have what systems do differently.
 */
#ifndef CLG_HELPER_CHANNEL_H
#define CLG_HELPER_CHANNEL_H

#include "ocl/helper/helper_message.h"

/* The channel to the process that started this one, called once, first of all: it was the standard input. What a host program
 * left open is closed, and a channel that is gone raises no signal. Negative when there is none. */
int channel_open_parent(void);
/* Waits until there is something to read, or the other end is closed. False: the time has passed. */
bool channel_is_readable(int channel, int timeout_ms);
/* At most n_bytes. 0 or less: the other end is closed. */
int64_t channel_read(int channel, void *data, size_t n_bytes);
int64_t channel_write(int channel, const void *data, size_t n_bytes);

/* Whole messages. False: the other end has closed, or the message is too large. *out_data: memory_free. */
bool message_read(int channel, char **out_data, size_t *out_n_bytes);
/* One that was read is sent on. */
bool message_pass_on(int channel, const char *data, size_t n_bytes);
/* A reply as a message; what it owns is freed. */
bool message_write_reply(int channel, helper_reply *reply);

#endif
