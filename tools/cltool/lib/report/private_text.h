/* SPDX-License-Identifier: Apache-2.0
 *
 * Removes what belongs to a user from texts for the public: paths, and the names of the user and of
 * the machine.
 */
#ifndef CLTOOL_PRIVATE_TEXT_H
#define CLTOOL_PRIVATE_TEXT_H

#include "failure.h"

/* Names of this user and machine, "" where they are not known. */
typedef struct private_names {
    char user[256], host[256];
} private_names;

/* Looks the names up; private_names_posix.c and private_names_windows.c. */
void private_names_get(private_names *out_names);

/* Returns the text without absolute paths: what is in a folder of the system becomes the last part
 * of its name, any other path "<path>". Whole words that are the name of the user or the machine
 * become "<user>" and "<host>". free() */
char *private_text(const char *text, const private_names *names);
/* Replaces all strings of a document by their private_text. */
void private_json(json_t *document, const private_names *names);

#endif
