/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts that end a generated text. Text goes in piece by piece and comes out as soon as it cannot
 * be the beginning of a stop text.
 */
#ifndef CLG_GENERATE_STOP_TEXTS_H
#define CLG_GENERATE_STOP_TEXTS_H

#include "base/memory.h"
#include "base/strbuf.h"

typedef struct stop_texts {
    char **texts; /* owned; none is empty */
    size_t n;
    strbuf held; /* may begin with a stop text */
    strbuf out;  /* what the last call of stop_texts_take let through */
    bool has_stopped;
} stop_texts;

void stop_texts_init(stop_texts *s);
void stop_texts_deinit(stop_texts *s);
/* Copies other stop texts in place of those that are there. INVALID_ARGUMENT for an empty one. */
clg_status stop_texts_set(stop_texts *s, const char *const *texts, size_t n);
/* Starts a new text. */
void stop_texts_clear(stop_texts *s);
/* Adds a piece; nothing is added on failure. */
clg_status stop_texts_add(stop_texts *s, const char *piece, size_t n_bytes);
/* Moves to s->out the text that is certain, up to the first stop text if there is one: has_stopped.
 * is_last: all of it is certain. Gives nothing after a stop; changes nothing but out on failure. */
clg_status stop_texts_take(stop_texts *s, bool is_last);

#endif
