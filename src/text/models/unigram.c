/* SPDX-License-Identifier: Apache-2.0
 *
 * The Unigram model: of all divisions of a piece into tokens, the one whose scores have the
 * largest sum (Viterbi). Time is the text's length times the longest token's at most.
 */
#include "base/memory.h"
#include "text/models/token_model.h"
#include "text/unicode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN_PENALTY 10.0

/* The best way to divide the text up to a place: its last token, and where that starts. */
struct best_path {
    double score;
    uint32_t start; /* UINT32_MAX: there is no way yet */
    uint32_t next;  /* on the best way of the whole text: where the token from here ends */
    int32_t id;     /* -1: an unknown character */
};

/* Returns a score as the package tokenizers reads it. Its JSON reader makes one number of all
 * digits, rounds that, and divides it by a power of ten, so that the last bit may be another one,
 * which decides between divisions of equal scores. The digits are the shortest that give the
 * number: those of the file. */
static double round_score(double score)
{
    enum { EXACT_DIGITS = 15, ALL_DIGITS = 17 };
    char text[40], power[32];
    int n_digits = EXACT_DIGITS;
    for (; n_digits < ALL_DIGITS; n_digits++) {
        (void)snprintf(text, sizeof text, "%.*e", n_digits - 1, score);
        if (strtod(text, NULL) == score) break;
    }
    if (n_digits == EXACT_DIGITS) return score;
    (void)snprintf(text, sizeof text, "%.*e", n_digits - 1, fabs(score));
    uint64_t digits = 0;
    const char *at = text;
    for (; *at && *at != 'e'; at++)
        if (*at >= '0' && *at <= '9') digits = digits * 10 + (uint64_t)(*at - '0');
    const long exponent = *at ? strtol(at + 1, NULL, 10) - (n_digits - 1) : 0;
    (void)snprintf(power, sizeof power, "1e%ld", labs(exponent));
    const double scale = strtod(power, NULL);
    const double size = exponent < 0 ? (double)digits / scale : (double)digits * scale;
    return score < 0 ? -size : size;
}

/* Reads one [token, score]. */
static clg_status read_token(token_model *m, const json_t *json, size_t id)
{
    const char *token = json_string_value(json_array_get(json, 0));
    const json_t *score = json_array_get(json, 1);
    if (json_array_size(json) != 2 || !token || !json_is_number(score))
        return error_set(CLG_ERROR_INVALID_MODEL, "vocab[%zu] is not a token and its score", id);
    m->scores[id] = round_score(json_number_value(score));
    if (m->scores[id] < m->min_score) m->min_score = m->scores[id];
    return vocabulary_append(&m->tokens, token, strlen(token));
}

static clg_status build_trie(token_model *m)
{
    const size_t n = m->tokens.n_tokens;
    const char **tokens = memory_zalloc(n, sizeof *tokens);
    if (!tokens) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0, n_bytes; i < n; i++) tokens[i] = vocabulary_token(&m->tokens, i, &n_bytes);
    const clg_status status = trie_build(&m->trie, tokens, NULL, n);
    memory_free(tokens);
    return status;
}

clg_status unigram_read(const json_t *json, token_model *m)
{
    const json_t *vocab;
    size_t unknown = SIZE_MAX;
    CLG_TRY(field_array(json, "vocab", FIELD_REQUIRED, &vocab));
    CLG_TRY(field_bool(json, "byte_fallback", FIELD_OPTIONAL, &m->has_byte_fallback));
    const size_t n = json_array_size(vocab);
    if (n == 0) return CLG_OK; /* refused by model_read */
    CLG_TRY(field_index(json, "unk_id", FIELD_OPTIONAL, n - 1, &unknown));
    m->scores = memory_zalloc(n, sizeof *m->scores);
    if (!m->scores) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    m->min_score = INFINITY;
    for (size_t i = 0; i < n; i++) CLG_TRY(read_token(m, json_array_get(vocab, i), i));
    if (unknown != SIZE_MAX) m->unknown = (int32_t)unknown;
    CLG_TRY(vocabulary_index(&m->tokens));
    model_find_bytes(m);
    return build_trie(m);
}

static void offer(struct best_path *paths, size_t start, size_t end, double score, int32_t id)
{
    struct best_path *p = &paths[end];
    score += paths[start].score;
    if (p->start != UINT32_MAX && score <= p->score) return;
    *p = (struct best_path){.score = score, .start = (uint32_t)start, .id = id};
}

/* Sets the best path to each place. */
static void find_paths(const token_model *m, struct best_path *paths, const char *text,
                       size_t n_bytes)
{
    for (size_t i = 0; i <= n_bytes; i++) paths[i] = (struct best_path){.start = UINT32_MAX};
    for (size_t at = 0, length; at < n_bytes; at += length) {
        bool has_char = false;
        uint32_t node = 0;
        length = utf8_length(text[at]);
        for (size_t i = at; i < n_bytes; i++) {
            node = trie_child(&m->trie, node, (uint8_t)text[i]);
            if (node == 0) break;
            const int32_t id = m->trie.nodes[node].value;
            if (id < 0) continue;
            offer(paths, at, i + 1, m->scores[id], id);
            has_char = has_char || i + 1 - at == length;
        }
        if (!has_char) offer(paths, at, at + length, m->min_score - UNKNOWN_PENALTY, -1);
    }
}

/* Appends the tokens of unknown characters: of their bytes, or one for all. */
static clg_status add_unknown(const token_model *m, const char *text, size_t n_bytes,
                              id_list *out_ids)
{
    const int32_t id = vocabulary_find(&m->tokens, text, n_bytes);
    if (id >= 0) return ids_add(out_ids, id);
    bool has_bytes = m->has_byte_fallback;
    for (size_t i = 0; i < n_bytes && has_bytes; i++)
        has_bytes = m->byte_ids[(unsigned char)text[i]] >= 0;
    if (!has_bytes) return model_add_unknown(m, out_ids);
    for (size_t i = 0; i < n_bytes; i++)
        CLG_TRY(ids_add(out_ids, m->byte_ids[(unsigned char)text[i]]));
    return CLG_OK;
}

clg_status unigram_encode(const token_model *m, model_work *w, const char *text, size_t n_bytes,
                          id_list *out_ids)
{
    if (n_bytes >= INT32_MAX) return error_set(CLG_ERROR_LIMIT, "a piece of text is too long");
    CLG_TRY(MEMORY_RESERVE(w->paths, w->paths_capacity, n_bytes + 1));
    struct best_path *paths = w->paths;
    find_paths(m, paths, text, n_bytes);
    for (size_t end = n_bytes; end > 0; end = paths[end].start)
        paths[paths[end].start].next = (uint32_t)end;
    size_t unknown_from = 0; /* unknown characters since then are one token */
    for (size_t at = 0, end; at < n_bytes; at = end) {
        end = paths[at].next;
        const int32_t id = paths[end].id;
        if (id < 0 || id == m->unknown) continue;
        if (unknown_from < at)
            CLG_TRY(add_unknown(m, text + unknown_from, at - unknown_from, out_ids));
        CLG_TRY(ids_add(out_ids, id));
        unknown_from = end;
    }
    return unknown_from < n_bytes
               ? add_unknown(m, text + unknown_from, n_bytes - unknown_from, out_ids)
               : CLG_OK;
}
