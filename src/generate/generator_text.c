/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements generator_text.h.
 */
#include "generate/generator_text.h"

clg_status generator_text_init(generator_text *t, const char *folder)
{
    stop_texts_init(&t->stops);
    t->folder = memory_strdup(folder);
    return t->folder ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

void generator_text_deinit(generator_text *t)
{
    if (t->tokenizer) token_stream_deinit(&t->stream);
    tokenizer_release(t->tokenizer);
    stop_texts_deinit(&t->stops);
    memory_free(t->folder);
}

clg_status generator_text_open(generator_text *t)
{
    if (t->tokenizer) return CLG_OK;
    CLG_TRY(tokenizer_open(t->folder, &t->tokenizer));
    token_stream_init(&t->stream, t->tokenizer, true);
    return CLG_OK;
}

void generator_text_restart(generator_text *t)
{
    if (t->tokenizer) {
        token_stream_deinit(&t->stream);
        token_stream_init(&t->stream, t->tokenizer, true);
    }
    stop_texts_clear(&t->stops);
    t->stage = TEXT_DONE;
}

static clg_status add_decoded(generator_text *t)
{
    return stop_texts_add(&t->stops, strbuf_data(&t->stream.text), t->stream.text.size_bytes);
}

/* Makes one step towards the text of the last token. */
static clg_status proceed(generator_text *t, clg_generator_end end)
{
    switch (t->stage) {
    case TEXT_DONE: break;
    case TEXT_TO_DECODE:
        if (end == CLG_END_EOS) {
            t->stage = TEXT_TO_END;
            break;
        }
        CLG_TRY(token_stream_push(&t->stream, t->token));
        t->stage = TEXT_TO_ADD;
        break;
    case TEXT_TO_ADD:
        CLG_TRY(add_decoded(t));
        t->stage = end == CLG_END_NONE ? TEXT_TO_TAKE : TEXT_TO_END;
        break;
    case TEXT_TO_END:
        CLG_TRY(token_stream_end(&t->stream));
        t->stage = TEXT_TO_ADD_END;
        break;
    case TEXT_TO_ADD_END:
        CLG_TRY(add_decoded(t));
        t->stage = TEXT_TO_TAKE;
        break;
    case TEXT_TO_TAKE:
        CLG_TRY(stop_texts_take(&t->stops, end != CLG_END_NONE));
        t->stage = TEXT_DONE;
        break;
    }
    return CLG_OK;
}

clg_status generator_text_complete(generator_text *t, clg_generator_end end)
{
    while (t->stage != TEXT_DONE) CLG_TRY(proceed(t, end));
    return CLG_OK;
}
