/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements token_stream.h. The text of a token depends on those before it (a space, bytes of one
 * character), so some are kept and decoded again. A text that ends in U+FFFD waits for more tokens.
 */
#include "text/token_stream.h"

#include "base/memory.h"
#include "text/unicode.h"

#include <string.h>

/* Tokens that wait at most: a model that writes no UTF-8 must not make each step longer. */
enum { MAX_WAITING = 64 };

void token_stream_init(token_stream *s, tokenizer *t, bool skips_special)
{
    *s = (token_stream){.tokenizer = tokenizer_retain(t), .skips_special = skips_special};
    strbuf_init(&s->prefix, 0);
    strbuf_init(&s->text, 0);
}

void token_stream_deinit(token_stream *s)
{
    tokenizer_release(s->tokenizer);
    memory_free(s->ids);
    strbuf_deinit(&s->prefix);
    strbuf_deinit(&s->text);
    *s = (token_stream){0};
}

/* Decodes the ids from `first` on. */
static clg_status decode(const token_stream *s, size_t first, strbuf *out_text)
{
    out_text->size_bytes = 0;
    out_text->status = CLG_OK;
    const int64_t *ids = first < s->n_ids ? s->ids + first : NULL; /* s->ids may be NULL */
    return tokenizer_decode(s->tokenizer, ids, s->n_ids - first, s->skips_special, out_text);
}

static bool is_waiting(const strbuf *t)
{
    const size_t n = strlen(UTF8_REPLACEMENT);
    return t->size_bytes >= n && memcmp(t->data + t->size_bytes - n, UTF8_REPLACEMENT, n) == 0;
}

/* Removes the text that was given before from s->text. */
static void remove_prefix(token_stream *s)
{
    strbuf *t = &s->text;
    size_t n = 0;
    while (n < s->prefix.size_bytes && n < t->size_bytes && s->prefix.data[n] == t->data[n]) n++;
    if (n == t->size_bytes) {
        t->size_bytes = 0;
    } else {
        while (n > 0 && utf8_continues(t->data[n])) n--;
        memmove(t->data, t->data + n, t->size_bytes - n);
        t->size_bytes -= n;
        t->data[t->size_bytes] = '\0';
    }
}

/* Returns whether a token has no text, whatever is around it. */
static bool is_silent(const token_stream *s, int64_t id)
{
    size_t n_bytes;
    if (!tokenizer_token(s->tokenizer, id, &n_bytes)) return true;
    const added_token *added = added_find(&s->tokenizer->added, (size_t)id);
    return s->skips_special && added && added->is_skipped;
}

/* Makes s->text the text after the prefix, and the ids after it the new prefix. Takes back the last
 * id on failure. */
static clg_status advance(token_stream *s)
{
    strbuf next;
    strbuf_init(&next, 0);
    const clg_status status = decode(s, s->n_prefix, &next);
    if (status != CLG_OK) {
        strbuf_deinit(&next);
        s->n_ids--;
        return status;
    }
    remove_prefix(s);
    const size_t n_kept = s->n_ids - s->n_prefix;
    memmove(s->ids, s->ids + s->n_prefix, n_kept * sizeof *s->ids);
    s->n_ids = s->n_prefix = n_kept;
    strbuf_deinit(&s->prefix);
    s->prefix = next;
    return CLG_OK;
}

/* Makes the ids so far the prefix, unless their text waits. Of many ids without text one is kept:
 * else each step would take longer. */
static clg_status find_prefix(token_stream *s)
{
    clg_status status = decode(s, 0, &s->prefix);
    if (status == CLG_OK && s->prefix.size_bytes == 0 && s->n_ids > MAX_WAITING) {
        s->ids[0] = s->ids[s->n_ids - 1];
        s->n_ids = 1;
        s->n_prefix = 0;
        status = decode(s, 0, &s->prefix);
    }
    if (status == CLG_OK && !is_waiting(&s->prefix))
        s->n_prefix = s->n_ids;
    else
        s->prefix.size_bytes = 0;
    return status;
}

clg_status token_stream_push(token_stream *s, int64_t id)
{
    s->text.size_bytes = 0;
    if (is_silent(s, id)) return CLG_OK;
    if (s->prefix.size_bytes == 0 && s->n_ids > 0) CLG_TRY(find_prefix(s));
    CLG_TRY(MEMORY_RESERVE(s->ids, s->capacity, s->n_ids + 1));
    s->ids[s->n_ids++] = id;
    const clg_status status = decode(s, 0, &s->text);
    if (status != CLG_OK) {
        s->n_ids--;
        return status;
    }
    const bool is_full = s->n_ids - s->n_prefix > MAX_WAITING;
    if (s->text.size_bytes <= s->prefix.size_bytes || (is_waiting(&s->text) && !is_full)) {
        if (!is_full) s->text.size_bytes = 0;
        if (!is_full) return CLG_OK;
    }
    return advance(s);
}

clg_status token_stream_end(token_stream *s)
{
    CLG_TRY(decode(s, 0, &s->text));
    remove_prefix(s);
    s->prefix.size_bytes = 0;
    s->n_ids = s->n_prefix = 0;
    return CLG_OK;
}
