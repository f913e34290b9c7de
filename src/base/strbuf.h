/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing string with a maximum size. A failed append is remembered, so that callers check for
 * errors only once, in strbuf_take.
 */
#ifndef CLG_BASE_STRBUF_H
#define CLG_BASE_STRBUF_H

#include "base/error.h"

typedef struct strbuf {
    char *data; /* NUL-terminated; NULL while empty */
    size_t size_bytes, capacity_bytes, max_bytes;
    clg_status status; /* of the first append that failed, else CLG_OK */
} strbuf;

void strbuf_init(strbuf *t, size_t max_bytes); /* max_bytes 0 means 64 MiB */
void strbuf_append(strbuf *t, const char *string);
void strbuf_append_bytes(strbuf *t, const char *bytes, size_t n_bytes);
void strbuf_printf(strbuf *t, const char *format, ...) CLG_PRINTF(2, 3);
/* Returns the string ("" when empty), borrowed. */
const char *strbuf_data(const strbuf *t);
/* Moves the string to the caller, who frees it by memory_free, and empties t. After a failed append
 * sets NULL and returns the remembered status. */
clg_status strbuf_take(strbuf *t, char **out_string);
void strbuf_deinit(strbuf *t);

/* A list of borrowed strings. */
typedef struct name_list {
    const char *const *names;
    size_t count;
} name_list;

/* Returns the number that a text begins with: digits, perhaps after '-', with a point in every
 * locale, to about 1e-16 of it; *out_end, unless NULL, is its end. */
double text_decimal(const char *text, const char **out_end);
/* Returns whether a pattern matches a whole string: '*' matches any characters or none, '?' one. */
bool text_matches(const char *pattern, const char *string);

#endif
