/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks up the names of user and machine on POSIX systems. See private_text.h.
 */
#include "private_text.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void private_names_get(private_names *out_names)
{
    struct passwd entry, *found = NULL;
    char buffer[4096];
    *out_names = (private_names){0};
    if (getpwuid_r(getuid(), &entry, buffer, sizeof buffer, &found) == 0 && found)
        (void)snprintf(out_names->user, sizeof out_names->user, "%s", found->pw_name);
    if (gethostname(out_names->host, sizeof out_names->host - 1) != 0) out_names->host[0] = '\0';
    out_names->host[strcspn(out_names->host, ".")] = '\0'; /* without the domain */
}
