/* SPDX-License-Identifier: Apache-2.0
 *
 * WordPiece, which takes the longest token that a word begins with, then the longest that goes on,
 * written with a prefix; and WordLevel, whose tokens are whole words. A word that cannot be made of
 * tokens is unknown.
 */
#include "base/memory.h"
#include "text/models/token_model.h"
#include "text/unicode.h"

#include <string.h>

/* Of a word: more would make it too slow to try all ends. */
enum { MAX_CHARS = 1000 };

clg_status wordpiece_read(const json_t *json, token_model *m)
{
    m->max_chars = 100;
    CLG_TRY(model_read_vocab(json, m));
    CLG_TRY(
        field_index(json, "max_input_chars_per_word", FIELD_OPTIONAL, MAX_CHARS, &m->max_chars));
    CLG_TRY(model_read_token(json, "unk_token", m, &m->unknown));
    return model_read_text(json, "continuing_subword_prefix", &m->prefix, &m->prefix_bytes);
}

clg_status wordlevel_read(const json_t *json, token_model *m)
{
    CLG_TRY(model_read_vocab(json, m));
    return model_read_token(json, "unk_token", m, &m->unknown);
}

clg_status wordlevel_encode(const token_model *m, model_work *w, const char *text, size_t n_bytes,
                            id_list *out_ids)
{
    (void)w;
    const int32_t id = vocabulary_find(&m->tokens, text, n_bytes);
    return id >= 0 ? ids_add(out_ids, id) : model_add_unknown(m, out_ids);
}

/* Finds the longest token that the text begins with; *out_id -1: there is none. `prefix` has
 * prefix_bytes, and room for the longest token. */
static void find_longest(const token_model *m, char *prefix, size_t prefix_bytes, const char *text,
                         size_t n_bytes, size_t *out_end, int32_t *out_id)
{
    size_t end = n_bytes;
    *out_id = -1;
    *out_end = 0;
    if (prefix_bytes >= m->tokens.longest_bytes) return;
    if (end > m->tokens.longest_bytes - prefix_bytes) {
        end = m->tokens.longest_bytes - prefix_bytes;
        while (end > 0 && utf8_continues(text[end])) end--;
    }
    memcpy(prefix + prefix_bytes, text, end);
    for (; end > 0; end = utf8_before(text, end)) {
        *out_id = vocabulary_find(&m->tokens, prefix, prefix_bytes + end);
        *out_end = end;
        if (*out_id >= 0) return;
    }
}

clg_status wordpiece_encode(const token_model *m, model_work *w, const char *text, size_t n_bytes,
                            id_list *out_ids)
{
    char token[2 * MAX_TOKEN_BYTES];
    const size_t first = out_ids->count;
    size_t n_chars = 0;
    (void)w;
    for (size_t i = 0; i < n_bytes; i++) n_chars += !utf8_continues(text[i]);
    if (n_chars > m->max_chars) return model_add_unknown(m, out_ids);
    for (size_t at = 0, end; at < n_bytes; at += end) {
        const size_t prefix_bytes = at > 0 ? m->prefix_bytes : 0;
        int32_t id;
        memcpy(token, m->prefix, prefix_bytes);
        find_longest(m, token, prefix_bytes, text + at, n_bytes - at, &end, &id);
        if (id < 0) {
            out_ids->count = first;
            return model_add_unknown(m, out_ids);
        }
        CLG_TRY(ids_add(out_ids, id));
    }
    return CLG_OK;
}
