/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokens of a model and their ids, from 0 to n - 1 without holes; and a trie for the tokens
 * that begin at a place of a text.
 */
#ifndef CLG_TEXT_MODELS_VOCABULARY_H
#define CLG_TEXT_MODELS_VOCABULARY_H

#include "base/error.h"

#include <stdint.h>

/* The most tokens that a tokenizer may have, and bytes of one. */
enum { MAX_TOKENS = 4 << 20, MAX_TOKEN_BYTES = 4096 };

typedef struct vocabulary {
    char *bytes;      /* the tokens, each with a NUL */
    uint32_t *starts; /* of each token in bytes; n_tokens + 1 */
    uint32_t *slots;  /* open addressing by the token's hash: id + 1, 0: free */
    size_t n_tokens, n_bytes, n_slots;
    size_t bytes_capacity, starts_capacity;
    size_t longest_bytes; /* of a token */
    uint64_t seed;
} vocabulary; /* all zeros is valid and empty */

/* Appends a token with the next id. LIMIT. Lookups need vocabulary_index afterwards. */
clg_status vocabulary_append(vocabulary *v, const char *token, size_t n_bytes);
/* Makes tokens found by their text; of equal ones the last. */
clg_status vocabulary_index(vocabulary *v);
void vocabulary_deinit(vocabulary *v);
/* Returns a token's id, -1 if there is none. */
int32_t vocabulary_find(const vocabulary *v, const char *token, size_t n_bytes);
/* Returns a token's text, with a NUL after it; NULL if the id is not below n_tokens. */
static inline const char *vocabulary_token(const vocabulary *v, size_t id, size_t *out_bytes)
{
    if (id >= v->n_tokens) return NULL;
    *out_bytes = (size_t)(v->starts[id + 1] - v->starts[id] - 1);
    return v->bytes + v->starts[id];
}

typedef struct trie_node {
    uint32_t first_child; /* children are contiguous, by label */
    int32_t value;        /* -1: no string ends here */
    uint16_t n_children;
    uint8_t label; /* byte that leads here */
} trie_node;

typedef struct byte_trie {
    trie_node *nodes; /* the first is the root */
    size_t n_nodes, capacity;
    uint32_t firsts[256]; /* children of the root by label, 0: none */
} byte_trie;              /* all zeros is valid and empty */

/* Builds a trie of n strings, values[i] of string i; NULL: i. Of equal strings the last counts.
 * Empty strings are not in it. LIMIT for more than 8 million nodes. */
clg_status trie_build(byte_trie *t, const char *const *strings, const int32_t *values, size_t n);
void trie_deinit(byte_trie *t);
/* Returns the child of a node by a byte, 0 if there is none. */
uint32_t trie_child(const byte_trie *t, uint32_t node, uint8_t label);

#endif
