/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokenizers of language models, as tokenizer.json describes them: text to ids and back. They do
 * not change once they are open, so that threads may share them. See decision 82.
 */
#ifndef CLG_TEXT_TOKENIZER_H
#define CLG_TEXT_TOKENIZER_H

#include "base/threads.h"
#include "text/special_tokens.h"

typedef struct tokenizer {
    refcount references;
    token_model model;
    step_list normalizer, pretokenizer, decoder;
    bool has_decoder;
    added_tokens added;
    id_list around; /* template.h */
    special_tokens specials;
} tokenizer;

/* Opens tokenizer.json, or a folder that has one; released by tokenizer_release. */
clg_status tokenizer_open(const char *path, tokenizer **out_tokenizer);
tokenizer *tokenizer_retain(tokenizer *t);
void tokenizer_release(tokenizer *t); /* accepts NULL */

/* Returns the number of ids. */
size_t tokenizer_size(const tokenizer *t);
/* Returns the text of a token as the file has it, with a NUL after it; NULL for no id. */
const char *tokenizer_token(const tokenizer *t, int64_t id, size_t *out_bytes);
/* Returns the id of a token, -1 if there is none. */
int32_t tokenizer_find(const tokenizer *t, const char *token);
bool tokenizer_is_special(const tokenizer *t, int64_t id);
/* Returns the id of a special token by its role, "bos"; -1: it has none. */
int32_t tokenizer_special(const tokenizer *t, const char *role);

/* Appends the ids of a text. Bytes that are not UTF-8 count as U+FFFD. */
clg_status tokenizer_encode(const tokenizer *t, const char *text, size_t n_bytes, bool adds_special,
                            id_list *out_ids);
/* Appends the text of ids. Ids of no token give nothing. */
clg_status tokenizer_decode(const tokenizer *t, const int64_t *ids, size_t n_ids,
                            bool skips_special, strbuf *out_text);

#endif
