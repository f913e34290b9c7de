/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks up the names of user and machine on Windows. See private_text.h.
 */
#include "private_text.h"

#include <stdio.h>
#include <stdlib.h>

static void copy_variable(const char *name, char *out, size_t size)
{
    const char *value = getenv(name);
    (void)snprintf(out, size, "%s", value ? value : "");
}

void private_names_get(private_names *out_names)
{
    *out_names = (private_names){0};
    copy_variable("USERNAME", out_names->user, sizeof out_names->user);
    copy_variable("COMPUTERNAME", out_names->host, sizeof out_names->host);
}
