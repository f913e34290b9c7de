/* SPDX-License-Identifier: Apache-2.0
 *
 * Two-way channels of the compile helper: from the library to the supervisor, and from there to its
 * worker. A channel is a descriptor. The system-dependent parts are in channel_posix.c and
 * channel_windows.c.
 */
#ifndef CLG_HELPER_CHANNEL_H
#define CLG_HELPER_CHANNEL_H

#include "ocl/helper/helper_message.h"

/* Returns the channel to the process that started this one, negative when there is none. It was the
 * standard input. Call it once, before anything else: it closes descriptors that the host program
 * left open, and prevents signals from a closed channel. */
int channel_open_parent(void);
/* Waits until there is data to read, or the other end is closed; false on timeout. */
bool channel_is_readable(int channel, int timeout_ms);
/* Transfers at most n_bytes and returns how many. 0 or less: the other end is closed. */
int64_t channel_read(int channel, void *data, size_t n_bytes);
int64_t channel_write(int channel, const void *data, size_t n_bytes);

/* Reads a whole message. False: the other end has closed, or the message is too large. *out_data:
 * memory_free. */
bool message_read(int channel, char **out_data, size_t *out_n_bytes);
/* Forwards a message that was read. */
bool message_pass_on(int channel, const char *data, size_t n_bytes);
/* Writes a reply as a message and frees what the reply owns. */
bool message_write_reply(int channel, helper_reply *reply);

#endif
