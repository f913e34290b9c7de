/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of special tokens, "bos_token" and the like, from special_tokens_map.json and
 * tokenizer_config.json beside a tokenizer; what the second says counts.
 */
#ifndef CLG_TEXT_SPECIAL_TOKENS_H
#define CLG_TEXT_SPECIAL_TOKENS_H

#include "text/added_tokens.h"

typedef struct special_name {
    char *role; /* "bos" */
    int32_t id;
} special_name;

typedef struct special_tokens {
    special_name *items;
    size_t count, capacity;
} special_tokens; /* all zeros is valid and empty */

/* Reads the files of the folder that are there; the caller calls special_deinit in any case. */
clg_status special_read(const char *folder, const added_tokens *added, const token_model *m,
                        special_tokens *out_specials);
void special_deinit(special_tokens *s);
/* Returns the id of a role, "bos"; -1: there is none. */
int32_t special_find(const special_tokens *s, const char *role);

#endif
