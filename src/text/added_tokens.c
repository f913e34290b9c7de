/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements added_tokens.h. Tokens are found by a trie at each place of the text: the leftmost
 * one, of several there the longest.
 */
#include "text/added_tokens.h"

#include "base/memory.h"
#include "text/unicode.h"

#include <string.h>

/* ---- reading --------------------------------------------------------------------------------- */

static clg_status normalize_content(added_token *t, const step_list *normalizer, step_work *w)
{
    strbuf spare, text;
    strbuf_init(&spare, w->max_bytes);
    strbuf_init(&text, w->max_bytes);
    clg_status status =
        normalizer_apply(normalizer, w, t->content, strlen(t->content), &spare, &text);
    if (status == CLG_OK) status = strbuf_take(&text, &t->decoded);
    strbuf_deinit(&spare);
    strbuf_deinit(&text);
    return status;
}

/* Reads the settings of one token, whose content is set. */
static clg_status read_settings(const json_t *json, added_token *t)
{
    CLG_TRY(field_bool(json, "special", FIELD_REQUIRED, &t->is_special));
    CLG_TRY(field_bool(json, "single_word", FIELD_REQUIRED, &t->is_single_word));
    CLG_TRY(field_bool(json, "lstrip", FIELD_REQUIRED, &t->strips_left));
    CLG_TRY(field_bool(json, "rstrip", FIELD_REQUIRED, &t->strips_right));
    return field_bool(json, "normalized", FIELD_REQUIRED, &t->is_normalized);
}

/* Returns the token of this content, a new one if there is none; NULL without memory. */
static added_token *take_token(added_tokens *a, const char *content)
{
    const size_t i = hash_map_get_string(&a->by_content, content);
    if (i != HASH_MAP_NONE) return &a->items[i];
    if (MEMORY_RESERVE(a->items, a->capacity, a->count + 1) != CLG_OK) return NULL;
    added_token *t = &a->items[a->count];
    *t = (added_token){.content = memory_strdup(content), .id = -1};
    if (!t->content) return NULL;
    a->count++;
    return hash_map_set_string(&a->by_content, content, a->count - 1) == CLG_OK ? t : NULL;
}

static clg_status read_token(added_tokens *a, const json_t *json, const token_model *m,
                             const step_list *normalizer, step_work *w)
{
    const char *content = NULL;
    size_t id = 0;
    CLG_TRY(field_string(json, "content", FIELD_REQUIRED, &content));
    CLG_TRY(field_index(json, "id", FIELD_REQUIRED, MAX_TOKENS, &id));
    const size_t n = strlen(content);
    if (n == 0) return CLG_OK;
    if (n > MAX_TOKEN_BYTES)
        return error_set(CLG_ERROR_LIMIT, "'content' has more than %d bytes", MAX_TOKEN_BYTES);
    added_token *t = take_token(a, content);
    if (!t) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const bool was_special = t->is_special;
    CLG_TRY(read_settings(json, t));
    t->is_special = t->is_special || was_special;
    if (t->id < 0) t->id = vocabulary_find(&m->tokens, content, n);
    if (t->id < 0) t->id = (int32_t)a->n_ids++;
    if ((size_t)t->id != id)
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "'id' of '%.100s' is %zu, but by the vocabulary and the tokens before it "
                         "is %d",
                         content, id, (int)t->id);
    if (t->is_normalized && normalizer->count > 0 && !t->decoded)
        CLG_TRY(normalize_content(t, normalizer, w));
    return CLG_OK;
}

static clg_status build_trie(const added_tokens *a, bool is_normalized, byte_trie *out_trie)
{
    const char **strings = memory_zalloc(a->count, sizeof *strings);
    int32_t *values = memory_zalloc(a->count, sizeof *values);
    size_t n = 0;
    clg_status status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; strings && values && i < a->count; i++) {
        const added_token *t = &a->items[i];
        if (t->is_normalized != is_normalized) continue;
        strings[n] = t->decoded && is_normalized ? t->decoded : t->content;
        values[n++] = (int32_t)i;
    }
    if (strings && values) status = n > 0 ? trie_build(out_trie, strings, values, n) : CLG_OK;
    memory_free(strings);
    memory_free(values);
    return status;
}

/* Sets what depends on all tokens. */
static clg_status finish(added_tokens *a)
{
    bool has_word = false;
    a->by_id = memory_alloc(a->n_ids * sizeof *a->by_id);
    if (!a->by_id) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < a->n_ids; i++) a->by_id[i] = SIZE_MAX;
    for (size_t i = 0; i < a->count; i++) {
        added_token *t = &a->items[i];
        a->by_id[t->id] = i;
        has_word = has_word || t->is_single_word;
        /* As in tokenizers, by the text that decoding would give. */
        const size_t same = hash_map_get_string(
            &a->by_content, t->is_normalized && t->decoded ? t->decoded : t->content);
        t->is_skipped = same != HASH_MAP_NONE && a->items[same].is_special;
    }
    CLG_TRY(build_trie(a, false, &a->plain));
    CLG_TRY(build_trie(a, true, &a->normalized));
    return has_word ? pattern_create_regex("[\\w\\x{200c}\\x{200d}]", &a->word) : CLG_OK;
}

clg_status added_read(const json_t *root, const token_model *m, const step_list *normalizer,
                      step_work *w, added_tokens *out_tokens)
{
    const json_t *list = NULL;
    *out_tokens = (added_tokens){.n_ids = m->tokens.n_tokens};
    CLG_TRY(field_array(root, "added_tokens", FIELD_OPTIONAL, &list));
    const size_t n = json_array_size(list);
    if (n > MAX_TOKENS / 4)
        return error_set(CLG_ERROR_LIMIT, "'added_tokens' has more than %d", MAX_TOKENS / 4);
    for (size_t i = 0; i < n; i++) {
        const clg_status status = read_token(out_tokens, json_array_get(list, i), m, normalizer, w);
        if (status != CLG_OK) return error_prefix(status, "added_tokens[%zu]", i);
    }
    return finish(out_tokens);
}

void added_deinit(added_tokens *a)
{
    for (size_t i = 0; i < a->count; i++) {
        memory_free(a->items[i].content);
        memory_free(a->items[i].decoded);
    }
    memory_free(a->items);
    memory_free(a->by_id);
    hash_map_deinit(&a->by_content);
    trie_deinit(&a->plain);
    trie_deinit(&a->normalized);
    pattern_free(a->word);
    *a = (added_tokens){0};
}

const added_token *added_find(const added_tokens *a, size_t id)
{
    if (id >= a->n_ids || a->by_id[id] == SIZE_MAX) return NULL;
    return &a->items[a->by_id[id]];
}

int32_t added_id(const added_tokens *a, const token_model *m, const char *token)
{
    const size_t i = hash_map_get_string(&a->by_content, token);
    if (i != HASH_MAP_NONE) return a->items[i].id;
    return vocabulary_find(&m->tokens, token, strlen(token));
}

/* ---- finding --------------------------------------------------------------------------------- */

/* Returns the longest token that starts at `at`, NULL if none does; *out_end is its end. */
static const added_token *longest_at(const added_tokens *a, const byte_trie *trie, const char *text,
                                     size_t n_bytes, size_t at, size_t *out_end)
{
    const added_token *found = NULL;
    uint32_t node = 0;
    for (size_t i = at; i < n_bytes; i++) {
        node = trie_child(trie, node, (uint8_t)text[i]);
        if (node == 0) break;
        if (trie->nodes[node].value < 0) continue;
        found = &a->items[trie->nodes[node].value];
        *out_end = i + 1;
    }
    return found;
}

/* Sets *out_is_word to whether the character at `at` belongs to words. */
static clg_status is_word(const added_tokens *a, step_work *w, const char *text, size_t at,
                          bool *out_is_word)
{
    size_t start, end;
    pattern_cursor c = {.text = text + at, .n_bytes = utf8_length(text[at])};
    return pattern_next(a->word, w->search, &c, out_is_word, &start, &end);
}

/* Sets *out_stands to whether a token at these bytes may be one there. */
static clg_status stands_alone(const added_tokens *a, const added_token *t, step_work *w,
                               const char *text, size_t n_bytes, size_t start, size_t end,
                               bool *out_stands)
{
    bool before = false, after = false;
    if (t->is_single_word && start > 0)
        CLG_TRY(is_word(a, w, text, utf8_before(text, start), &before));
    if (t->is_single_word && end < n_bytes) CLG_TRY(is_word(a, w, text, end, &after));
    *out_stands = !before && !after;
    return CLG_OK;
}

/* Moves the ends of a token over spaces, its start not before `done`. *spaces_end: the end of those
 * that tokens before it took, which are not tested again. */
static void take_spaces(const added_token *t, const char *text, size_t n_bytes, size_t done,
                        size_t *spaces_end, size_t *start, size_t *end)
{
    while (t->strips_left && *start > done) {
        const size_t before = utf8_before(text, *start);
        size_t at = before;
        if (!char_is_space(utf8_next(text, &at))) break;
        *start = before;
    }
    if (*start < done && t->strips_left) *start = done;
    if (!t->strips_right) return;
    if (*end < *spaces_end) *end = *spaces_end;
    while (*end < n_bytes) {
        size_t at = *end;
        if (!char_is_space(utf8_next(text, &at))) break;
        *end = at;
    }
    *spaces_end = *end;
}

clg_status added_split(const added_tokens *a, bool is_normalized, step_work *w, piece_list *out,
                       size_t start, bool is_first)
{
    const byte_trie *trie = is_normalized ? &a->normalized : &a->plain;
    const char *text = strbuf_data(&out->text) + start;
    const size_t n_bytes = out->text.size_bytes - start;
    size_t done = 0, spaces_end = 0;
    for (size_t at = 0, end; trie->nodes && at < n_bytes;) {
        const added_token *t = trie->firsts[(uint8_t)text[at]] > 0
                                   ? longest_at(a, trie, text, n_bytes, at, &end)
                                   : NULL;
        if (!t) {
            at++;
            continue;
        }
        size_t from = at;
        bool stands;
        at = end; /* the next one starts there, even if this one takes more spaces */
        CLG_TRY(stands_alone(a, t, w, text, n_bytes, from, end, &stands));
        if (!stands) continue;
        take_spaces(t, text, n_bytes, done, &spaces_end, &from, &end);
        if (done < from)
            CLG_TRY(pieces_add(out, (piece){start + done, start + from, -1, is_first && !done}));
        CLG_TRY(pieces_add(out, (piece){start + from, start + end, t->id, false}));
        done = end;
    }
    if (done == n_bytes) return CLG_OK;
    return pieces_add(out, (piece){start + done, start + n_bytes, -1, is_first && !done});
}
