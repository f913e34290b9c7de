/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte-pair encoding: a piece starts as its characters, and of all pairs of neighbours that a merge
 * knows, the one of the lowest rank becomes one token, the leftmost first. A heap of pairs and a
 * linked list of tokens make that O(n log n).
 */
#include "base/hash.h"
#include "base/memory.h"
#include "text/models/token_model.h"
#include "text/unicode.h"

#include <string.h>

/* A merge of two tokens, in a table by the pair; rank UINT32_MAX: a free slot. */
struct merge {
    int32_t left, right;
    uint32_t rank;
    int32_t merged;
};

/* A token of a piece, linked to its neighbours, -1: none. */
struct symbol {
    int32_t id;
    int32_t before, after;
    bool is_gone;
};

struct queued_merge {
    uint32_t rank, at; /* of the left symbol */
    int32_t merged;
};

/* ---- reading --------------------------------------------------------------------------------- */

static struct merge *find_slot(const token_model *m, int32_t left, int32_t right)
{
    const size_t mask = m->n_merge_slots - 1;
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    for (size_t i = (size_t)hash_bytes(&key, sizeof key, m->seed) & mask;; i = (i + 1) & mask) {
        struct merge *slot = &m->merges[i];
        if (slot->rank == UINT32_MAX || (slot->left == left && slot->right == right)) return slot;
    }
}

/* Returns the merge of two tokens, NULL if there is none. */
static const struct merge *find_merge(const token_model *m, int32_t left, int32_t right)
{
    const struct merge *slot = find_slot(m, left, right);
    return slot->rank == UINT32_MAX ? NULL : slot;
}

static clg_status find_token(const token_model *m, const char *text, size_t n_bytes,
                             int32_t *out_id)
{
    *out_id = vocabulary_find(&m->tokens, text, n_bytes);
    if (*out_id >= 0) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL, "the token '%.*s' is not in 'vocab'",
                     (int)(n_bytes < 100 ? n_bytes : 100), text);
}

/* Adds a merge of two tokens by their texts. */
static clg_status add_merge(token_model *m, strbuf *joined, size_t rank, const char *left,
                            size_t n_left, const char *right, size_t n_right)
{
    int32_t a, b, both;
    CLG_TRY(find_token(m, left, n_left, &a));
    CLG_TRY(find_token(m, right, n_right, &b));
    joined->size_bytes = 0;
    strbuf_append_bytes(joined, left, n_left);
    if (n_right >= m->prefix_bytes)
        strbuf_append_bytes(joined, right + m->prefix_bytes, n_right - m->prefix_bytes);
    CLG_TRY(joined->status);
    CLG_TRY(find_token(m, strbuf_data(joined), joined->size_bytes, &both));
    *find_slot(m, a, b) = (struct merge){a, b, (uint32_t)rank, both};
    return CLG_OK;
}

/* Reads one merge: "left right", or ["left", "right"]. */
static clg_status read_merge(token_model *m, strbuf *joined, size_t rank, const json_t *json)
{
    const char *left, *right;
    size_t n_left, n_right;
    if (json_is_string(json)) {
        left = json_string_value(json);
        right = strchr(left, ' ');
        if (!right || strchr(right + 1, ' '))
            return error_set(CLG_ERROR_INVALID_MODEL, "it is not two tokens with a space between");
        n_left = (size_t)(right++ - left);
        n_right = strlen(right);
    } else {
        left = json_string_value(json_array_get(json, 0));
        right = json_string_value(json_array_get(json, 1));
        if (json_array_size(json) != 2 || !left || !right)
            return error_set(CLG_ERROR_INVALID_MODEL, "it is not a pair of tokens");
        n_left = strlen(left);
        n_right = strlen(right);
    }
    return add_merge(m, joined, rank, left, n_left, right, n_right);
}

static clg_status read_merges(token_model *m, const json_t *merges)
{
    strbuf joined;
    size_t n = json_array_size(merges), rank = 0;
    clg_status status = CLG_OK;
    m->n_merge_slots = 16;
    while (m->n_merge_slots < n * 2) m->n_merge_slots *= 2;
    m->merges = memory_alloc(m->n_merge_slots * sizeof *m->merges);
    if (!m->merges) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    m->seed = (uint64_t)(uintptr_t)m->merges;
    for (size_t i = 0; i < m->n_merge_slots; i++) m->merges[i] = (struct merge){.rank = UINT32_MAX};
    strbuf_init(&joined, 0);
    for (size_t i = 0; i < n && status == CLG_OK; i++) {
        const json_t *one = json_array_get(merges, i);
        const char *line = json_string_value(one);
        if (line && strncmp(line, "#version", 8) == 0) continue;
        status = read_merge(m, &joined, rank++, one);
        if (status != CLG_OK) (void)error_prefix(status, "merges[%zu]", i);
    }
    strbuf_deinit(&joined);
    return status;
}

clg_status bpe_read(const json_t *json, token_model *m)
{
    const json_t *merges, *dropout = json_object_get(json, "dropout");
    CLG_TRY(model_read_vocab(json, m));
    CLG_TRY(field_array(json, "merges", FIELD_REQUIRED, &merges));
    CLG_TRY(model_read_text(json, "continuing_subword_prefix", &m->prefix, &m->prefix_bytes));
    CLG_TRY(model_read_text(json, "end_of_word_suffix", &m->suffix, &m->suffix_bytes));
    CLG_TRY(field_bool(json, "fuse_unk", FIELD_OPTIONAL, &m->fuses_unknown));
    CLG_TRY(field_bool(json, "byte_fallback", FIELD_OPTIONAL, &m->has_byte_fallback));
    CLG_TRY(field_bool(json, "ignore_merges", FIELD_OPTIONAL, &m->ignores_merges));
    CLG_TRY(model_read_token(json, "unk_token", m, &m->unknown));
    m->has_unknown_name = json_is_string(json_object_get(json, "unk_token"));
    if (json_number_value(dropout) != 0)
        return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                         "'dropout' is not supported: it makes tokens random");
    model_find_bytes(m);
    for (uint32_t c = 0; c < N_CHAR_IDS; c++) {
        char bytes[UTF8_MAX_BYTES];
        m->char_ids[c] = vocabulary_find(&m->tokens, bytes, utf8_write(c, bytes));
    }
    return read_merges(m, merges);
}

/* ---- the first symbols ----------------------------------------------------------------------- */

/* The symbols of a piece, and unknown characters that the next symbol ends. */
typedef struct symbol_list {
    struct symbol *items;
    size_t count;
    bool has_unknown;
} symbol_list;

static void add_symbol(symbol_list *l, int32_t id)
{
    const int32_t at = (int32_t)l->count++;
    l->items[at] = (struct symbol){.id = id, .before = at - 1, .after = at + 1};
}

/* Returns the token of a character, with the prefix or suffix of its place; -1 if it has none. */
static clg_status find_char(const token_model *m, model_work *w, const char *text, size_t n_bytes,
                            bool is_first, bool is_last, const char **out_text, size_t *out_bytes,
                            int32_t *out_id)
{
    const bool has_prefix = !is_first && m->prefix_bytes > 0;
    const bool has_suffix = is_last && m->suffix_bytes > 0;
    if (has_prefix || has_suffix) {
        w->text.size_bytes = 0;
        if (has_prefix) strbuf_append_bytes(&w->text, m->prefix, m->prefix_bytes);
        strbuf_append_bytes(&w->text, text, n_bytes);
        if (has_suffix) strbuf_append_bytes(&w->text, m->suffix, m->suffix_bytes);
        CLG_TRY(w->text.status);
        text = strbuf_data(&w->text);
        n_bytes = w->text.size_bytes;
    }
    *out_text = text;
    *out_bytes = n_bytes;
    size_t at = 0;
    const uint32_t c = utf8_next(text, &at);
    *out_id = at == n_bytes && c < N_CHAR_IDS ? m->char_ids[c]
                                              : vocabulary_find(&m->tokens, text, n_bytes);
    return CLG_OK;
}

/* Adds the tokens of the bytes of a character; false if one has none. */
static bool add_bytes(const token_model *m, symbol_list *l, const char *text, size_t n_bytes)
{
    if (!m->has_byte_fallback) return false;
    for (size_t i = 0; i < n_bytes; i++)
        if (m->byte_ids[(unsigned char)text[i]] < 0) return false;
    for (size_t i = 0; i < n_bytes; i++) add_symbol(l, m->byte_ids[(unsigned char)text[i]]);
    return true;
}

/* Adds the symbol of a character that no token has. As in tokenizers, one without "unk_token" is
 * skipped, and unknown symbols come after the bytes of characters between them. */
static clg_status add_unknown(const token_model *m, symbol_list *l)
{
    if (!m->has_unknown_name) return CLG_OK;
    if (m->unknown < 0)
        return error_set(CLG_ERROR_DATA, "the text has a character that is not in the vocabulary, "
                                         "and neither is the token for unknown ones");
    if (l->has_unknown && !m->fuses_unknown) add_symbol(l, m->unknown);
    l->has_unknown = true;
    return CLG_OK;
}

/* Makes the symbols of a piece: at most one for each byte, and those of prefix and suffix. */
static clg_status make_symbols(const token_model *m, model_work *w, const char *text,
                               size_t n_bytes, size_t *out_n)
{
    size_t n_chars = 0;
    for (size_t i = 0; i < n_bytes; i++) n_chars += !utf8_continues(text[i]);
    /* Numbers of 64 bits: in 32 the product overflows. */
    const uint64_t n_more =
        m->has_byte_fallback ? (uint64_t)n_chars * m->prefix_bytes + m->suffix_bytes : 0;
    const uint64_t n_most = n_bytes + n_more + 1;
    if (n_most > INT32_MAX / 2) return error_set(CLG_ERROR_LIMIT, "a piece of text is too long");
    CLG_TRY(MEMORY_RESERVE(w->symbols, w->symbols_capacity, (size_t)n_most));
    symbol_list l = {.items = w->symbols};
    for (size_t at = 0; at < n_bytes;) {
        const size_t n = utf8_length(text[at]);
        const char *token;
        size_t token_bytes;
        int32_t id;
        CLG_TRY(
            find_char(m, w, text + at, n, at == 0, at + n == n_bytes, &token, &token_bytes, &id));
        at += n;
        if (id >= 0) {
            if (l.has_unknown) add_symbol(&l, m->unknown);
            l.has_unknown = false;
            add_symbol(&l, id);
        } else if (!add_bytes(m, &l, token, token_bytes)) {
            CLG_TRY(add_unknown(m, &l));
        }
    }
    if (l.has_unknown) add_symbol(&l, m->unknown);
    if (l.count > 0) l.items[l.count - 1].after = -1;
    *out_n = l.count;
    return CLG_OK;
}

/* ---- merging --------------------------------------------------------------------------------- */

static bool comes_first(struct queued_merge a, struct queued_merge b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static void sink(struct queued_merge *queue, size_t n, size_t at)
{
    const struct queued_merge moved = queue[at];
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && comes_first(queue[child + 1], queue[child])) child++;
        if (!comes_first(queue[child], moved)) break;
        queue[at] = queue[child];
    }
    queue[at] = moved;
}

static void rise(struct queued_merge *queue, size_t at)
{
    const struct queued_merge moved = queue[at];
    for (; at > 0 && comes_first(moved, queue[(at - 1) / 2]); at = (at - 1) / 2)
        queue[at] = queue[(at - 1) / 2];
    queue[at] = moved;
}

/* Queues the merge of a symbol and the next one, if there is one. */
static clg_status queue_pair(const token_model *m, model_work *w, size_t *n_queued, int32_t at,
                             bool is_heap)
{
    const struct symbol *s = w->symbols;
    if (at < 0 || s[at].after < 0) return CLG_OK;
    const struct merge *merge = find_merge(m, s[at].id, s[s[at].after].id);
    if (!merge) return CLG_OK;
    if (*n_queued == w->queue_capacity)
        CLG_TRY(MEMORY_RESERVE(w->queue, w->queue_capacity, *n_queued + 1));
    w->queue[*n_queued] = (struct queued_merge){merge->rank, (uint32_t)at, merge->merged};
    if (is_heap) rise(w->queue, *n_queued);
    ++*n_queued;
    return CLG_OK;
}

static clg_status merge_symbols(const token_model *m, model_work *w, size_t n)
{
    size_t n_queued = 0;
    for (size_t i = 0; i + 1 < n; i++) CLG_TRY(queue_pair(m, w, &n_queued, (int32_t)i, false));
    for (size_t i = n_queued / 2; i-- > 0;) sink(w->queue, n_queued, i);
    struct symbol *s = w->symbols;
    while (n_queued > 0) {
        const struct queued_merge top = w->queue[0];
        const int32_t at = (int32_t)top.at, next = s[at].after;
        w->queue[0] = w->queue[--n_queued];
        if (n_queued > 0) sink(w->queue, n_queued, 0);
        if (s[at].is_gone || next < 0) continue;
        const struct merge *merge = find_merge(m, s[at].id, s[next].id);
        if (!merge || merge->merged != top.merged) continue; /* of a pair that is no more */
        s[at].id = top.merged;
        s[at].after = s[next].after;
        s[next].is_gone = true;
        if (s[at].after >= 0) s[s[at].after].before = at;
        CLG_TRY(queue_pair(m, w, &n_queued, s[at].before, true));
        CLG_TRY(queue_pair(m, w, &n_queued, at, true));
    }
    return CLG_OK;
}

clg_status bpe_encode(const token_model *m, model_work *w, const char *text, size_t n_bytes,
                      id_list *out_ids)
{
    size_t n;
    if (m->ignores_merges) {
        const int32_t id = vocabulary_find(&m->tokens, text, n_bytes);
        if (id >= 0) return ids_add(out_ids, id);
    }
    CLG_TRY(make_symbols(m, w, text, n_bytes, &n));
    CLG_TRY(merge_symbols(m, w, n));
    for (size_t i = 0; i < n; i++)
        if (!w->symbols[i].is_gone) CLG_TRY(ids_add(out_ids, w->symbols[i].id));
    return CLG_OK;
}
