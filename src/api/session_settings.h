/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts clg_session_options to the options of src/session.
 */
#ifndef CLG_API_SESSION_SETTINGS_H
#define CLG_API_SESSION_SETTINGS_H

#include "session/session.h"

/* Checks a caller's options, and decides what they leave to the device. Strings are the
 * caller's. */
clg_status api_session_options(const device_context *context, const clg_session_options *given,
                               exec_options *out_options);

#endif
