/* SPDX-License-Identifier: Apache-2.0
 *
 * The process of the compile helper in which the driver works, and may die. It answers one message with one message.
 */
#ifndef CLG_HELPER_WORKER_H
#define CLG_HELPER_WORKER_H

#include "ocl/helper_message.h"

/* Whole messages over a descriptor. False: the other end has closed, or the message is too large. *out_data: memory_free. */
bool message_read(int fd, char **out_data, size_t *out_n_bytes);
/* One that was read is sent on. */
bool message_pass_on(int fd, const char *data, size_t n_bytes);
/* A reply as a message; what it owns is freed. */
bool message_write_reply(int fd, helper_reply *reply);

/* Opens the device, says so (HELPER_DONE, or HELPER_UNABLE with the reason), then answers requests until the channel is closed.
 * Returns an exit status. */
int worker_run(int channel, const helper_hello *hello);

#endif
