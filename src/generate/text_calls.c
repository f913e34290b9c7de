/* SPDX-License-Identifier: Apache-2.0
 *
 * Text into a generator's sequence, and out of it.
 */
#include "generate/generator.h"

clg_status generator_append_text(clg_generator *g, const char *text, size_t n_bytes)
{
    id_list ids = {NULL, 0, 0};
    CLG_TRY(generator_text_open(&g->text));
    clg_status status = tokenizer_encode(g->text.tokenizer, text, n_bytes, g->n_tokens == 0, &ids);
    if (status == CLG_OK) status = generator_append(g, ids.ids, ids.count);
    memory_free(ids.ids);
    return status;
}

clg_status generator_next_text(clg_generator *g, const char **out_text, size_t *out_bytes,
                               clg_generator_end *out_end)
{
    generator_text *t = &g->text;
    CLG_TRY(generator_text_open(t));
    if (t->stage == TEXT_DONE && g->end == CLG_END_NONE) {
        CLG_TRY(generator_next(g, &t->token, out_end));
        t->stage = TEXT_TO_DECODE;
    } else if (t->stage == TEXT_DONE) {
        *out_end = g->end;
        return CLG_OK;
    }
    CLG_TRY(generator_text_complete(t, g->end));
    if (t->stops.has_stopped) g->end = CLG_END_STOP;
    *out_text = strbuf_data(&t->stops.out);
    *out_bytes = t->stops.out.size_bytes;
    *out_end = g->end;
    return CLG_OK;
}
