/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements token_model.h: the table of models, and a memory of words, since most words of a text
 * occur in it again.
 */
#include "text/models/token_model.h"

#include "base/hash.h"
#include "base/memory.h"

#include <string.h>

static const struct model_row {
    const char *type;
    model_reader *read;
    model_encoder *encode;
} rows[] = {
    {"BPE", bpe_read, bpe_encode},
    {"Unigram", unigram_read, unigram_encode},
    {"WordPiece", wordpiece_read, wordpiece_encode},
    {"WordLevel", wordlevel_read, wordlevel_encode},
};
#define N_ROWS (sizeof rows / sizeof rows[0])

/* A piece that was encoded before, to the count ids from first on. */
struct remembered {
    const char *text; /* NULL: none */
    size_t n_bytes, first, count;
};

/* ---- reading --------------------------------------------------------------------------------- */

/* Files of older versions of tokenizers have no type. */
static const char *guess_type(const json_t *json)
{
    if (json_object_get(json, "merges")) return "BPE";
    if (json_is_array(json_object_get(json, "vocab"))) return "Unigram";
    return json_object_get(json, "continuing_subword_prefix") ? "WordPiece" : "WordLevel";
}

clg_status model_read(const json_t *json, token_model *out_model)
{
    const char *type = guess_type(json);
    *out_model = (token_model){.unknown = -1};
    CLG_TRY(field_string(json, "type", FIELD_OPTIONAL, &type));
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strcmp(type, rows[i].type) != 0) continue;
        out_model->row = &rows[i];
        CLG_TRY(rows[i].read(json, out_model));
        if (out_model->tokens.n_tokens > 0) return CLG_OK;
        return error_set(CLG_ERROR_INVALID_MODEL, "'vocab' is empty");
    }
    return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "the type '%.100s' is not supported", type);
}

void model_deinit(token_model *m)
{
    vocabulary_deinit(&m->tokens);
    trie_deinit(&m->trie);
    memory_free(m->merges);
    memory_free(m->scores);
    memory_free(m->prefix);
    memory_free(m->suffix);
    *m = (token_model){.unknown = -1};
}

/* ---- encoding -------------------------------------------------------------------------------- */

clg_status model_work_init(model_work *w, size_t n_pieces)
{
    enum { MAX_WORDS = 16384 };
    *w = (model_work){.n_words = 16};
    strbuf_init(&w->text, (size_t)1 << 30);
    while (w->n_words < n_pieces && w->n_words < MAX_WORDS) w->n_words *= 2;
    w->words = memory_zalloc(w->n_words, sizeof *w->words);
    return w->words ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

void model_work_deinit(model_work *w)
{
    memory_free(w->symbols);
    memory_free(w->queue);
    memory_free(w->paths);
    memory_free(w->words);
    strbuf_deinit(&w->text);
    *w = (model_work){0};
}

clg_status model_encode(const token_model *m, model_work *w, const char *text, size_t n_bytes,
                        id_list *out_ids)
{
    if (n_bytes == 0) return CLG_OK;
    struct remembered *word = &w->words[hash_bytes(text, n_bytes, m->seed) & (w->n_words - 1)];
    if (word->text && word->n_bytes == n_bytes && memcmp(word->text, text, n_bytes) == 0) {
        if (word->count == 0) return CLG_OK;
        CLG_TRY(MEMORY_RESERVE(out_ids->ids, out_ids->capacity, out_ids->count + word->count));
        memcpy(out_ids->ids + out_ids->count, out_ids->ids + word->first,
               word->count * sizeof *out_ids->ids);
        out_ids->count += word->count;
        return CLG_OK;
    }
    const size_t first = out_ids->count;
    CLG_TRY(m->row->encode(m, w, text, n_bytes, out_ids));
    *word = (struct remembered){text, n_bytes, first, out_ids->count - first};
    return CLG_OK;
}
