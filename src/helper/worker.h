/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the worker: the process of the compile helper that calls the driver, and may crash. It
 * answers each message with one message.
 */
#ifndef CLG_HELPER_WORKER_H
#define CLG_HELPER_WORKER_H

/* Reads which device to open (a helper_hello), opens it, reports that (HELPER_DONE, or
 * HELPER_UNABLE with the reason), then answers requests until the channel is closed. Returns an
 * exit status. */
int worker_run(int channel);

#endif
