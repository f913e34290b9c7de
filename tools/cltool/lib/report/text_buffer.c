/* SPDX-License-Identifier: Apache-2.0
 *
 * Appends to a growing text. See text_buffer.h.
 */
#include "text_buffer.h"

#include <stdlib.h>
#include <string.h>

void text_buffer_add_bytes(text_buffer *b, const char *bytes, size_t size)
{
    if (b->size + size + 1 > b->capacity) {
        b->capacity = 2 * (b->size + size + 1);
        b->text = must_resize(b->text, b->capacity, 1);
    }
    memcpy(b->text + b->size, bytes, size);
    b->size += size;
    b->text[b->size] = '\0';
}

void text_buffer_add(text_buffer *b, const char *text)
{
    text_buffer_add_bytes(b, text, strlen(text));
}

void text_buffer_printf(text_buffer *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *more = must_vprintf(format, args);
    va_end(args);
    text_buffer_add(b, more);
    free(more);
}

char *text_buffer_take(text_buffer *b)
{
    char *text = b->text ? b->text : must_copy("");
    *b = (text_buffer){0};
    return text;
}
