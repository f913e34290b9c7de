/* SPDX-License-Identifier: Apache-2.0
 *
 * Names and short descriptions of statuses.
 */
#ifndef CLG_BASE_STATUS_H
#define CLG_BASE_STATUS_H

#include <clgraph/clgraph.h>

/* Returns the name of a status, "CLG_ERROR_IO"; "unknown status" for other values. Never NULL. */
const char *status_name(clg_status status);
/* Returns a status's meaning in a few words, "a file cannot be read or written". Never NULL. */
const char *status_text(clg_status status);

#endif
