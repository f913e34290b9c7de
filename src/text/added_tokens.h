/* SPDX-License-Identifier: Apache-2.0
 *
 * "added_tokens" of tokenizer.json: tokens that are found in a text before it is split and encoded,
 * those of "normalized" true in the normalized text.
 */
#ifndef CLG_TEXT_ADDED_TOKENS_H
#define CLG_TEXT_ADDED_TOKENS_H

#include "base/hash_map.h"
#include "text/models/token_model.h"
#include "text/text_step.h"

typedef struct added_token {
    char *content;
    char *decoded; /* the normalized content, if it is normalized */
    int32_t id;
    bool is_special, is_skipped; /* is_skipped: left out by decoding without special tokens */
    bool is_single_word, strips_left, strips_right, is_normalized;
} added_token;

typedef struct added_tokens {
    added_token *items;
    size_t count, capacity;
    hash_map by_content;
    byte_trie plain, normalized; /* of indices */
    pattern *word;               /* one character of a word; NULL: not needed */
    size_t *by_id;               /* index of the token of each id, SIZE_MAX: none */
    size_t n_ids;                /* with the model's: the size of the vocabulary */
} added_tokens;                  /* all zeros is valid and empty */

/* Reads the member; the caller calls added_deinit in any case. A token has the model's id, or the
 * next one, which the file must give it. */
clg_status added_read(const json_t *root, const token_model *m, const step_list *normalizer,
                      step_work *w, added_tokens *out_tokens);
void added_deinit(added_tokens *a);
/* Returns the added token of an id, NULL if it is none. */
const added_token *added_find(const added_tokens *a, size_t id);
/* Returns the id of an added token or one of the model, -1 if there is none. */
int32_t added_id(const added_tokens *a, const token_model *m, const char *token);
/* Divides n_bytes of the text of `out` from byte `start` on into tokens and pieces. */
clg_status added_split(const added_tokens *a, bool is_normalized, step_work *w, piece_list *out,
                       size_t start, bool is_first);

#endif
