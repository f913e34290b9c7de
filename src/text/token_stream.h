/* SPDX-License-Identifier: Apache-2.0
 *
 * Text of tokens that come one by one: what Hugging Face's DecodeStream gives.
 */
#ifndef CLG_TEXT_TOKEN_STREAM_H
#define CLG_TEXT_TOKEN_STREAM_H

#include "text/tokenizer.h"

typedef struct token_stream {
    tokenizer *tokenizer;
    bool skips_special;
    int64_t *ids; /* since the start of the prefix */
    size_t n_ids, capacity;
    size_t n_prefix; /* ids whose text was given */
    strbuf prefix;   /* their text; decoders need them for what follows */
    strbuf text;     /* the text given last */
} token_stream;

/* Initializes a stream, which keeps the tokenizer; the caller calls token_stream_deinit. */
void token_stream_init(token_stream *s, tokenizer *t, bool skips_special);
void token_stream_deinit(token_stream *s);
/* Adds a token; the text that is complete now is in s->text, which may be empty. */
clg_status token_stream_push(token_stream *s, int64_t id);
/* Gives what is left in s->text, U+FFFD for an incomplete character, and starts anew. */
clg_status token_stream_end(token_stream *s);

#endif
