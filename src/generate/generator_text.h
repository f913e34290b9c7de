/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of a generator: its folder's tokenizer, the stream of characters of the tokens that it
 * chooses, and the texts that end it.
 */
#ifndef CLG_GENERATE_GENERATOR_TEXT_H
#define CLG_GENERATE_GENERATOR_TEXT_H

#include "generate/stop_texts.h"
#include "text/token_stream.h"

#include <clgraph/generate.h>

/* How far the text of the last token is: a call that fails is gone on with by the next one. */
typedef enum text_stage {
    TEXT_DONE,
    TEXT_TO_DECODE, /* `token` was chosen */
    TEXT_TO_ADD,    /* the stream's text is to be added to `stops` */
    TEXT_TO_END,    /* the end of the stream is to be decoded */
    TEXT_TO_ADD_END,
    TEXT_TO_TAKE
} text_stage;

typedef struct generator_text {
    char *folder;
    tokenizer *tokenizer; /* NULL until it is needed */
    token_stream stream;
    stop_texts stops;
    text_stage stage;
    int64_t token;
} generator_text;

clg_status generator_text_init(generator_text *t, const char *folder);
void generator_text_deinit(generator_text *t); /* accepts one of zeros */
/* Opens the tokenizer, unless it is open: programs of tokens need none. */
clg_status generator_text_open(generator_text *t);
/* Makes the text of the last token, which is then in t->stops.out. On failure it can be called
 * again. */
clg_status generator_text_complete(generator_text *t, clg_generator_end end);
/* Starts a new text: what was held back is dropped. */
void generator_text_restart(generator_text *t);

#endif
