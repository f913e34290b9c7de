/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing text, for files that are made in memory. Without memory, the program ends with a
 * message.
 */
#ifndef CLTOOL_TEXT_BUFFER_H
#define CLTOOL_TEXT_BUFFER_H

#include "failure.h"

typedef struct text_buffer {
    char *text; /* ended by NUL; NULL: nothing was added */
    size_t size, capacity;
} text_buffer; /* all zeros is valid and empty */

void text_buffer_add(text_buffer *b, const char *text);
void text_buffer_add_bytes(text_buffer *b, const char *bytes, size_t size);
void text_buffer_printf(text_buffer *b, const char *format, ...) TOOL_PRINTF(2, 3);
/* Returns the text, "" if nothing was added, and empties the buffer; the caller frees it with
 * free(). */
char *text_buffer_take(text_buffer *b);

#endif
