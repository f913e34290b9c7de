/* SPDX-License-Identifier: Apache-2.0
 *
 * The decoders of tokenizer.json, which make a text of tokens: each takes a list of tokens' texts
 * and gives another one, empty ones included.
 */
#include "text/models/vocabulary.h"
#include "text/text_step.h"
#include "text/unicode.h"

#include <string.h>

static const char *text_of(const piece_list *l, size_t i, size_t *out_bytes)
{
    *out_bytes = l->items[i].end - l->items[i].start;
    return strbuf_data(&l->text) + l->items[i].start;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static clg_status decode_bytes(const text_step *s, step_work *w, piece_list *in, piece_list *out)
{
    strbuf bytes;
    (void)s;
    strbuf_init(&bytes, w->max_bytes);
    for (size_t i = 0, n; i < in->count; i++) {
        const char *token = text_of(in, i, &n);
        byte_level_decode(&bytes, token, n);
    }
    utf8_append_repaired(&out->text, strbuf_data(&bytes), bytes.size_bytes);
    const clg_status status = bytes.status;
    strbuf_deinit(&bytes);
    return status == CLG_OK ? pieces_end(out, 0, false) : status;
}

/* Returns the byte of a token "<0x41>", -1 if it is another one. As in Rust, a sign is part of a
 * number. */
static int fallback_byte(const char *token, size_t n_bytes)
{
    static const char digits[] = "0123456789abcdef";
    int value = 0;
    if (n_bytes != 6 || memcmp(token, "<0x", 3) != 0 || token[5] != '>') return -1;
    for (size_t i = token[3] == '+' ? 4 : 3; i < 5; i++) {
        const char low = token[i] >= 'A' && token[i] <= 'F' ? (char)(token[i] | 0x20) : token[i];
        const char *digit = low ? strchr(digits, low) : NULL;
        if (!digit) return -1;
        value = value * 16 + (int)(digit - digits);
    }
    return value;
}

/* Adds a run of bytes as one token, or U+FFFD for each if they are not UTF-8. */
static clg_status end_bytes(strbuf *bytes, piece_list *out)
{
    size_t start = out->text.size_bytes;
    const size_t n = bytes->size_bytes;
    CLG_TRY(bytes->status);
    if (n == 0) return CLG_OK;
    bytes->size_bytes = 0;
    if (utf8_valid_bytes(bytes->data, n) == n) {
        strbuf_append_bytes(&out->text, bytes->data, n);
        return pieces_end(out, start, false);
    }
    for (size_t i = 0; i < n; i++) {
        strbuf_append(&out->text, UTF8_REPLACEMENT);
        CLG_TRY(pieces_end(out, start, false));
        start = out->text.size_bytes;
    }
    return CLG_OK;
}

static clg_status byte_fallback(const text_step *s, step_work *w, piece_list *in, piece_list *out)
{
    strbuf bytes;
    clg_status status = CLG_OK;
    (void)s;
    strbuf_init(&bytes, w->max_bytes);
    for (size_t i = 0, n; i < in->count && status == CLG_OK; i++) {
        const char *token = text_of(in, i, &n);
        const int byte = fallback_byte(token, n);
        const char one = (char)byte;
        if (byte >= 0) {
            strbuf_append_bytes(&bytes, &one, 1);
            continue;
        }
        status = end_bytes(&bytes, out);
        if (status == CLG_OK) status = pieces_copy(out, in, &in->items[i]);
    }
    if (status == CLG_OK) status = end_bytes(&bytes, out);
    strbuf_deinit(&bytes);
    return status;
}

/* ---- strings --------------------------------------------------------------------------------- */

static clg_status fuse(const text_step *s, step_work *w, piece_list *in, piece_list *out)
{
    (void)s, (void)w;
    for (size_t i = 0, n; i < in->count; i++) {
        const char *token = text_of(in, i, &n);
        strbuf_append_bytes(&out->text, token, n);
    }
    return pieces_end(out, 0, false);
}

static clg_status metaspace(const text_step *s, step_work *w, piece_list *in, piece_list *out)
{
    (void)w;
    for (size_t i = 0, n; i < in->count; i++) {
        const char *token = text_of(in, i, &n);
        const size_t start = out->text.size_bytes;
        for (size_t at = 0, length; at < n; at += length) {
            length = utf8_length(token[at]);
            if (length != s->text_bytes || memcmp(token + at, s->text, length) != 0)
                strbuf_append_bytes(&out->text, token + at, length);
            else if (i > 0 || s->scheme == PREPEND_NEVER)
                strbuf_append(&out->text, " ");
        }
        CLG_TRY(pieces_end(out, start, false));
    }
    return CLG_OK;
}

static clg_status read_strip(const json_t *json, text_step *s)
{
    CLG_TRY(step_read_text(json, "content", 1, s));
    CLG_TRY(field_index(json, "start", FIELD_REQUIRED, SIZE_MAX >> 1, &s->start));
    return field_index(json, "stop", FIELD_REQUIRED, SIZE_MAX >> 1, &s->stop);
}

static clg_status strip(const text_step *s, step_work *w, piece_list *in, piece_list *out)
{
    const size_t n_char = s->text_bytes;
    (void)w;
    for (size_t i = 0, n; i < in->count; i++) {
        const char *token = text_of(in, i, &n);
        size_t start = 0, n_start = s->start, n_stop = s->stop;
        for (; n_start > 0 && n - start >= n_char; n_start--, start += n_char)
            if (memcmp(token + start, s->text, n_char) != 0) break;
        for (; n_stop > 0 && n - start >= n_char; n_stop--, n -= n_char)
            if (memcmp(token + n - n_char, s->text, n_char) != 0) break;
        const size_t from = out->text.size_bytes;
        strbuf_append_bytes(&out->text, token + start, n - start);
        CLG_TRY(pieces_end(out, from, false));
    }
    return CLG_OK;
}

static clg_status read_replace(const json_t *json, text_step *s)
{
    CLG_TRY(step_read_pattern(json, s));
    return step_read_text(json, "content", 0, s);
}

static clg_status replace(const text_step *s, step_work *w, piece_list *in, piece_list *out)
{
    for (size_t i = 0, n; i < in->count; i++) {
        const char *token = text_of(in, i, &n);
        const size_t from = out->text.size_bytes;
        pattern_cursor c = {.text = token, .n_bytes = n};
        size_t done = 0, start, end;
        bool is_found = n > 0;
        while (is_found) {
            CLG_TRY(pattern_next(s->pattern, w->search, &c, &is_found, &start, &end));
            if (!is_found) break;
            strbuf_append_bytes(&out->text, token + done, start - done);
            strbuf_append_bytes(&out->text, s->text, s->text_bytes);
            CLG_TRY(out->text.status);
            done = end;
        }
        strbuf_append_bytes(&out->text, token + done, n - done);
        CLG_TRY(pieces_end(out, from, false));
    }
    return CLG_OK;
}

/* Replaces each `old` in the text from byte `start` on; the new text is not longer. */
static void replace_in_place(strbuf *t, size_t start, const char *old, const char *new_text)
{
    const size_t n_old = strlen(old), n_new = strlen(new_text);
    size_t to = start;
    for (size_t at = start; at < t->size_bytes;) {
        if (t->size_bytes - at >= n_old && memcmp(t->data + at, old, n_old) == 0) {
            memcpy(t->data + to, new_text, n_new);
            to += n_new;
            at += n_old;
        } else {
            t->data[to++] = t->data[at++];
        }
    }
    t->size_bytes = to;
}

static clg_status read_suffix(const json_t *json, text_step *s)
{
    CLG_TRY(step_read_text(json, "suffix", 0, s));
    if (s->text_bytes > 0) return CLG_OK;
    return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "an empty 'suffix' is not supported");
}

/* The suffix of a word's last token becomes a space, or nothing at the end. */
static clg_status bpe_suffix(const text_step *s, step_work *w, piece_list *in, piece_list *out)
{
    (void)w;
    for (size_t i = 0, n; i < in->count; i++) {
        const char *token = text_of(in, i, &n);
        const size_t start = out->text.size_bytes;
        strbuf_append_bytes(&out->text, token, n);
        CLG_TRY(out->text.status);
        replace_in_place(&out->text, start, s->text, i + 1 == in->count ? "" : " ");
        CLG_TRY(pieces_end(out, start, false));
    }
    return CLG_OK;
}

static clg_status read_wordpiece(const json_t *json, text_step *s)
{
    CLG_TRY(step_read_text(json, "prefix", 0, s));
    return field_bool(json, "cleanup", FIELD_REQUIRED, &s->cleans);
}

static clg_status wordpiece(const text_step *s, step_work *w, piece_list *in, piece_list *out)
{
    static const char *const cleanups[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    (void)w;
    for (size_t i = 0, n; i < in->count; i++) {
        const char *token = text_of(in, i, &n);
        const size_t start = out->text.size_bytes;
        if (i > 0 && n >= s->text_bytes && memcmp(token, s->text, s->text_bytes) == 0) {
            token += s->text_bytes;
            n -= s->text_bytes;
        } else if (i > 0) {
            strbuf_append(&out->text, " ");
        }
        strbuf_append_bytes(&out->text, token, n);
        CLG_TRY(out->text.status);
        for (size_t c = 0; s->cleans && c < sizeof cleanups / sizeof cleanups[0]; c++)
            replace_in_place(&out->text, start, cleanups[c][0], cleanups[c][1]);
        CLG_TRY(pieces_end(out, start, false));
    }
    return CLG_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

clg_status decoder_read(const json_t *json, step_list *out_steps)
{
    static const step_row rows[] = {
        {"ByteLevel", NULL, NULL, decode_bytes},
        {"Metaspace", step_read_metaspace, NULL, metaspace},
        {"ByteFallback", NULL, NULL, byte_fallback},
        {"Fuse", NULL, NULL, fuse},
        {"Strip", read_strip, NULL, strip},
        {"Replace", read_replace, NULL, replace},
        {"WordPiece", read_wordpiece, NULL, wordpiece},
        {"BPEDecoder", read_suffix, NULL, bpe_suffix},
    };
    return error_prefix(steps_read(json, "decoders", rows, sizeof rows / sizeof rows[0], out_steps),
                        "decoder");
}
