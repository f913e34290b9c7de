/* SPDX-License-Identifier: Apache-2.0
 *
 * What makes tokens of a piece of text: byte-pair encoding (bpe.c), Unigram (unigram.c), WordPiece
 * and WordLevel (wordpiece.c), read from "model" in tokenizer.json.
 */
#ifndef CLG_TEXT_MODELS_TOKEN_MODEL_H
#define CLG_TEXT_MODELS_TOKEN_MODEL_H

#include "base/strbuf.h"
#include "text/fields.h"
#include "text/models/vocabulary.h"

#include <stdbool.h>

enum { N_CHAR_IDS = 512 };

typedef struct token_model {
    const struct model_row *row;
    vocabulary tokens;
    int32_t unknown; /* id of the token for what is unknown, -1: none */
    bool has_byte_fallback;
    int32_t byte_ids[256]; /* of "<0x00>" and so on, -1: none */
    /* BPE */
    int32_t char_ids[N_CHAR_IDS]; /* of the first code points */
    struct merge *merges;         /* open addressing by the pair of ids */
    size_t n_merge_slots;
    uint64_t seed;
    bool fuses_unknown, ignores_merges, has_unknown_name;
    char *prefix, *suffix; /* of WordPiece too; "" when there are none */
    size_t prefix_bytes, suffix_bytes;
    /* Unigram */
    byte_trie trie;
    double *scores; /* of each token */
    double min_score;
    /* WordPiece */
    size_t max_chars; /* of a word */
} token_model;        /* all zeros is valid and empty */

typedef struct id_list {
    int64_t *ids;
    size_t count, capacity;
} id_list;
clg_status ids_add(id_list *l, int64_t id);

/* Memory that one call reuses for all of its pieces. */
typedef struct model_work {
    struct symbol *symbols;
    struct queued_merge *queue;
    struct best_path *paths;
    struct remembered *words; /* pieces seen before, by hash */
    size_t symbols_capacity, queue_capacity, paths_capacity, n_words;
    strbuf text;
} model_work;

/* Reads a model; the caller calls model_deinit in any case. UNSUPPORTED_ATTRIBUTE for one of
 * another type, INVALID_MODEL, LIMIT. */
clg_status model_read(const json_t *json, token_model *out_model);
void model_deinit(token_model *m);
/* Prepares for about n_pieces pieces; the caller calls model_work_deinit in any case. */
clg_status model_work_init(model_work *w, size_t n_pieces);
void model_work_deinit(model_work *w);
/* Appends the ids of a piece, whose text must stay until model_work_deinit. DATA: there is an
 * unknown character, and no token for it. */
clg_status model_encode(const token_model *m, model_work *w, const char *text, size_t n_bytes,
                        id_list *out_ids);

/* ---- the models ------------------------------------------------------------------------------ */

typedef clg_status model_reader(const json_t *json, token_model *m);
typedef clg_status model_encoder(const token_model *m, model_work *w, const char *text,
                                 size_t n_bytes, id_list *out_ids);
model_reader bpe_read, unigram_read, wordpiece_read, wordlevel_read;
model_encoder bpe_encode, unigram_encode, wordpiece_encode, wordlevel_encode;

/* ---- what they have in common: model_parts.c ------------------------------------------------ */

/* Reads "vocab" where it is an object from tokens to ids, which must be 0 to n - 1. */
clg_status model_read_vocab(const json_t *json, token_model *m);
/* Sets byte_ids. */
void model_find_bytes(token_model *m);
/* Sets *out_id to the id of the token that a member names; -1 if it is missing. */
clg_status model_read_token(const json_t *json, const char *key, const token_model *m,
                            int32_t *out_id);
/* Copies a string member to *out_text, "" if it is missing. */
clg_status model_read_text(const json_t *json, const char *key, char **out_text, size_t *out_bytes);
/* Appends the token for something unknown. */
clg_status model_add_unknown(const token_model *m, id_list *out_ids);

#endif
