/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing string with a maximum. A failed append is remembered: append freely, check once at the
 * end.
 */
#ifndef CLG_BASE_TEXT_H
#define CLG_BASE_TEXT_H

#include "base/error.h"

typedef struct text {
    char *data; /* NUL-terminated; NULL while empty */
    size_t size_bytes, capacity_bytes, max_bytes;
    clg_status status;
} text;

void text_init(text *t, size_t max_bytes); /* 0: 64 MiB */
void text_append(text *t, const char *string);
void text_append_bytes(text *t, const char *bytes, size_t n_bytes);
void text_printf(text *t, const char *format, ...) CLG_PRINTF(2, 3);
/* Returns the string ("" when empty), borrowed. */
const char *text_data(const text *t);
/* Moves the string to the caller (memory_free) and empties t. NULL and the remembered status on
 * failure. */
clg_status text_take(text *t, char **out_string);
void text_deinit(text *t);

/* Borrowed strings. */
typedef struct name_list {
    const char *const *names;
    size_t n;
} name_list;

/* Returns whether a pattern matches a whole string: '*' matches any characters or none, '?' one. */
bool text_matches(const char *pattern, const char *string);

#endif
