/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements stop_texts.h.
 */
#include "generate/stop_texts.h"

#include <string.h>

void stop_texts_init(stop_texts *s)
{
    *s = (stop_texts){.texts = NULL};
    strbuf_init(&s->held, 0);
    strbuf_init(&s->out, 0);
}

static void free_texts(char **texts, size_t n)
{
    for (size_t i = 0; i < n && texts; i++) memory_free(texts[i]);
    memory_free(texts);
}

void stop_texts_deinit(stop_texts *s)
{
    free_texts(s->texts, s->n);
    strbuf_deinit(&s->held);
    strbuf_deinit(&s->out);
}

clg_status stop_texts_set(stop_texts *s, const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!texts[i] || !texts[i][0])
            return error_set(CLG_ERROR_INVALID_ARGUMENT, "stop text %zu is empty", i);
    char **copies = memory_zalloc(n + 1, sizeof *copies);
    if (!copies) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n; i++) {
        copies[i] = memory_strdup(texts[i]);
        if (copies[i]) continue;
        free_texts(copies, n);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    free_texts(s->texts, s->n);
    s->texts = copies;
    s->n = n;
    return CLG_OK;
}

static void empty(strbuf *t)
{
    strbuf_deinit(t);
    strbuf_init(t, 0);
}

void stop_texts_clear(stop_texts *s)
{
    empty(&s->held);
    empty(&s->out);
    s->has_stopped = false;
}

/* Returns the first position of a stop text in n bytes; n if there is none. */
static size_t find_stop(const stop_texts *s, const char *text, size_t n)
{
    for (size_t at = 0; at < n; at++)
        for (size_t i = 0; i < s->n; i++) {
            const size_t length = strlen(s->texts[i]);
            if (length <= n - at && memcmp(text + at, s->texts[i], length) == 0) return at;
        }
    return n;
}

/* Returns the first position from which on the bytes are the beginning of a stop text. */
static size_t find_beginning(const stop_texts *s, const char *text, size_t n)
{
    for (size_t at = 0; at < n; at++)
        for (size_t i = 0; i < s->n; i++)
            if (n - at < strlen(s->texts[i]) && memcmp(text + at, s->texts[i], n - at) == 0)
                return at;
    return n;
}

clg_status stop_texts_add(stop_texts *s, const char *piece, size_t n_bytes)
{
    strbuf_append_bytes(&s->held, piece, n_bytes);
    const clg_status status = s->held.status;
    s->held.status = CLG_OK;
    return status;
}

clg_status stop_texts_take(stop_texts *s, bool is_last)
{
    strbuf rest;
    empty(&s->out);
    if (s->has_stopped) return CLG_OK;
    const char *text = strbuf_data(&s->held);
    const size_t n = s->held.size_bytes, stop = find_stop(s, text, n);
    const size_t certain = stop < n ? stop : is_last ? n : find_beginning(s, text, n);
    strbuf_init(&rest, 0);
    strbuf_append_bytes(&s->out, text, certain);
    if (stop == n) strbuf_append_bytes(&rest, text + certain, n - certain);
    if (s->out.status != CLG_OK || rest.status != CLG_OK) {
        strbuf_deinit(&rest);
        empty(&s->out);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    s->has_stopped = stop < n;
    strbuf_deinit(&s->held);
    s->held = rest;
    return CLG_OK;
}
