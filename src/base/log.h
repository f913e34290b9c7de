/* SPDX-License-Identifier: Apache-2.0
 *
 * The process-wide log, and what is being compiled: callbacks of the application, none by default.
 */
#ifndef CLG_BASE_LOG_H
#define CLG_BASE_LOG_H

#include "base/error.h"

void log_set(clg_log_callback callback, void *user, clg_log_level level);
/* Returns the callback, NULL if there is none, and its user pointer; out_user may be NULL. */
clg_log_callback log_get(void **out_user);
/* Returns whether a message of this level would be delivered, to avoid composing it otherwise. */
bool log_wants(clg_log_level level);
void log_write(clg_log_level level, const char *format, ...) CLG_PRINTF(2, 3);

void log_set_compile(clg_compile_callback callback, void *user);
/* Calls the callback for kernels that are compiled, if there is one. */
void log_compile(const char *kernel, bool has_ended);

#endif
