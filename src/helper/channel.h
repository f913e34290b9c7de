/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens, reads and writes the compile helper's two-way channels: between the library and the
 * supervisor process, and between the supervisor and its worker process. A channel is a file
 * descriptor. The system-dependent parts are in channel_posix.c and channel_windows.c.
 */
#ifndef CLG_HELPER_CHANNEL_H
#define CLG_HELPER_CHANNEL_H

#include "ocl/helper/helper_message.h"

/* Returns the channel to the process that started this one, its standard input; negative when there
 * is none. Call it once, before anything else: on POSIX systems it closes descriptors that the host
 * program left open, and ignores the signal of a closed channel. */
int channel_open_parent(void);
/* Waits until there is data to read, or the other end is closed; false on timeout. */
bool channel_is_readable(int channel, int timeout_ms);
/* Transfer at most n_bytes; return the number of bytes transferred, or 0 or less when the other end
 * is closed or an error occurred. */
int64_t channel_read(int channel, void *data, size_t n_bytes);
int64_t channel_write(int channel, const void *data, size_t n_bytes);

/* Reads a whole message. Returns false when the other end has closed, the message is too large or
 * memory is short. Release *out_data with memory_free. */
bool message_read(int channel, char **out_data, size_t *out_n_bytes);
/* Forwards a message that was read; returns false when the other end is closed. */
bool message_pass_on(int channel, const char *data, size_t n_bytes);
/* Writes a reply as a message and frees what the reply owns. */
bool message_write_reply(int channel, helper_reply *reply);

#endif
