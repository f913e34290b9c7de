/* SPDX-License-Identifier: Apache-2.0
 *
 * The normalizers of tokenizer.json, which change a text before it is split.
 */
#include "base/memory.h"
#include "text/text_step.h"
#include "text/unicode.h"

#include <string.h>

/* ---- forms ----------------------------------------------------------------------------------- */

#define FORM_STEP(name, form)                                                                      \
    static clg_status name(const text_step *s, step_work *w, const char *text, size_t n_bytes,     \
                           strbuf *out_text)                                                       \
    {                                                                                              \
        (void)s, (void)w;                                                                          \
        return unicode_normalize(form, text, n_bytes, out_text);                                   \
    }
FORM_STEP(nfc, UNICODE_NFC)
FORM_STEP(nfd, UNICODE_NFD)
FORM_STEP(nfkc, UNICODE_NFKC)
FORM_STEP(nfkd, UNICODE_NFKD)

static clg_status lowercase(const text_step *s, step_work *w, const char *text, size_t n_bytes,
                            strbuf *out_text)
{
    (void)s, (void)w;
    for (size_t at = 0; at < n_bytes;) char_append_lower(out_text, utf8_next(text, &at));
    return out_text->status;
}

static clg_status byte_level(const text_step *s, step_work *w, const char *text, size_t n_bytes,
                             strbuf *out_text)
{
    (void)s, (void)w;
    byte_level_append(out_text, text, n_bytes);
    return out_text->status;
}

/* ---- strings --------------------------------------------------------------------------------- */

static clg_status read_replace(const json_t *json, text_step *s)
{
    CLG_TRY(step_read_pattern(json, s));
    return step_read_text(json, "content", 0, s);
}

static clg_status replace(const text_step *s, step_work *w, const char *text, size_t n_bytes,
                          strbuf *out_text)
{
    pattern_cursor c = {.text = text, .n_bytes = n_bytes};
    bool is_found = n_bytes > 0;
    size_t done = 0, start, end;
    while (is_found) {
        CLG_TRY(pattern_next(s->pattern, w->search, &c, &is_found, &start, &end));
        if (!is_found) break;
        if (start == 0 && end > 0 && s->text_bytes == 0) w->is_first = false;
        strbuf_append_bytes(out_text, text + done, start - done);
        strbuf_append_bytes(out_text, s->text, s->text_bytes);
        CLG_TRY(out_text->status);
        done = end;
    }
    strbuf_append_bytes(out_text, text + done, n_bytes - done);
    return out_text->status;
}

static clg_status read_prepend(const json_t *json, text_step *s)
{
    return step_read_text(json, "prepend", 0, s);
}

static clg_status prepend(const text_step *s, step_work *w, const char *text, size_t n_bytes,
                          strbuf *out_text)
{
    (void)w;
    if (n_bytes > 0) strbuf_append_bytes(out_text, s->text, s->text_bytes);
    strbuf_append_bytes(out_text, text, n_bytes);
    return out_text->status;
}

static clg_status read_strip(const json_t *json, text_step *s)
{
    CLG_TRY(field_bool(json, "strip_left", FIELD_REQUIRED, &s->left));
    return field_bool(json, "strip_right", FIELD_REQUIRED, &s->right);
}

static clg_status strip(const text_step *s, step_work *w, const char *text, size_t n_bytes,
                        strbuf *out_text)
{
    (void)w;
    size_t start = 0;
    while (s->left && start < n_bytes) {
        size_t next = start;
        if (!char_is_space(utf8_next(text, &next))) break;
        start = next;
    }
    while (s->right && n_bytes > start) {
        const size_t last = utf8_before(text, n_bytes);
        size_t at = last;
        if (!char_is_space(utf8_next(text, &at))) break;
        n_bytes = last;
    }
    if (start > 0) w->is_first = false;
    strbuf_append_bytes(out_text, text + start, n_bytes - start);
    return out_text->status;
}

/* ---- characters ------------------------------------------------------------------------------ */

/* Returns the character in place of another one; UINT32_MAX: none. */
typedef uint32_t map_char(uint32_t c);

static clg_status map_chars(map_char *map, step_work *w, const char *text, size_t n_bytes,
                            strbuf *out_text)
{
    for (size_t at = 0; at < n_bytes;) {
        const size_t start = at;
        const uint32_t c = utf8_next(text, &at), other = map(c);
        if (other == c)
            strbuf_append_bytes(out_text, text + start, at - start);
        else if (other != UINT32_MAX)
            utf8_append(out_text, other);
        else if (start == 0)
            w->is_first = false;
    }
    return out_text->status;
}

static uint32_t drop_marks(uint32_t c) { return char_is_mark(c) ? UINT32_MAX : c; }
static uint32_t drop_nonspacing(uint32_t c) { return char_is_nonspacing(c) ? UINT32_MAX : c; }

static clg_status strip_accents(const text_step *s, step_work *w, const char *text, size_t n_bytes,
                                strbuf *out_text)
{
    (void)s, (void)w;
    return map_chars(drop_marks, w, text, n_bytes, out_text);
}

static uint32_t nmt_char(uint32_t c)
{
    if ((c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f ||
        c == 0x9f)
        return UINT32_MAX;
    if (c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == 0x1680 ||
        (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xfeff ||
        c == 0xfffd)
        return ' ';
    return c;
}

static clg_status nmt(const text_step *s, step_work *w, const char *text, size_t n_bytes,
                      strbuf *out_text)
{
    (void)s, (void)w;
    return map_chars(nmt_char, w, text, n_bytes, out_text);
}

/* ---- BERT ------------------------------------------------------------------------------------ */

static clg_status read_bert(const json_t *json, text_step *s)
{
    CLG_TRY(field_bool(json, "clean_text", FIELD_REQUIRED, &s->cleans));
    CLG_TRY(field_bool(json, "handle_chinese_chars", FIELD_REQUIRED, &s->spaces_chinese));
    CLG_TRY(field_bool(json, "lowercase", FIELD_REQUIRED, &s->lowers));
    s->strips_accents = s->lowers;
    return field_bool(json, "strip_accents", FIELD_OPTIONAL, &s->strips_accents);
}

static uint32_t clean_char(uint32_t c)
{
    if (c == '\t' || c == '\n' || c == '\r') return ' ';
    if (c == 0 || c == 0xfffd || char_is_other(c)) return UINT32_MAX;
    return char_is_space(c) ? ' ' : c;
}

static bool is_chinese(uint32_t c)
{
    static const uint32_t blocks[][2] = {{0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df},
                                         {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf},
                                         {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        if (c >= blocks[i][0] && c <= blocks[i][1]) return true;
    return false;
}

static clg_status space_chinese(const char *text, size_t n_bytes, strbuf *out_text)
{
    for (size_t at = 0; at < n_bytes;) {
        const size_t start = at;
        const bool is_spaced = is_chinese(utf8_next(text, &at));
        if (is_spaced) strbuf_append(out_text, " ");
        strbuf_append_bytes(out_text, text + start, at - start);
        if (is_spaced) strbuf_append(out_text, " ");
    }
    return out_text->status;
}

/* Copies the text, and applies one part of BERT's normalizer after the other. */
static clg_status bert(const text_step *s, step_work *w, const char *text, size_t n_bytes,
                       strbuf *out_text)
{
    strbuf parts[2];
    strbuf *from = &parts[0], *to = &parts[1];
    clg_status status = CLG_OK;
    for (size_t i = 0; i < 2; i++) strbuf_init(&parts[i], w->max_bytes);
    strbuf_append_bytes(from, text, n_bytes);
    for (int part = 0; part < 5 && status == CLG_OK && from->status == CLG_OK; part++) {
        const char *data = strbuf_data(from);
        const size_t n = from->size_bytes;
        to->size_bytes = 0;
        if (part == 0 && s->cleans)
            status = map_chars(clean_char, w, data, n, to);
        else if (part == 1 && s->spaces_chinese)
            status = space_chinese(data, n, to);
        else if (part == 2 && s->strips_accents)
            status = unicode_normalize(UNICODE_NFD, data, n, to);
        else if (part == 3 && s->strips_accents)
            status = map_chars(drop_nonspacing, w, data, n, to);
        else if (part == 4 && s->lowers)
            status = lowercase(s, w, data, n, to);
        else
            continue;
        strbuf *swapped = from;
        from = to;
        to = swapped;
    }
    if (status == CLG_OK) status = from->status;
    if (status == CLG_OK) strbuf_append_bytes(out_text, strbuf_data(from), from->size_bytes);
    for (size_t i = 0; i < 2; i++) strbuf_deinit(&parts[i]);
    return status == CLG_OK ? out_text->status : status;
}

/* ---- the table ------------------------------------------------------------------------------- */

clg_status normalizer_read(const json_t *json, step_list *out_steps)
{
    static const step_row rows[] = {
        {"NFC", NULL, nfc, NULL},
        {"NFD", NULL, nfd, NULL},
        {"NFKC", NULL, nfkc, NULL},
        {"NFKD", NULL, nfkd, NULL},
        {"Lowercase", NULL, lowercase, NULL},
        {"Replace", read_replace, replace, NULL},
        {"Prepend", read_prepend, prepend, NULL},
        {"Strip", read_strip, strip, NULL},
        {"StripAccents", NULL, strip_accents, NULL},
        {"Nmt", NULL, nmt, NULL},
        {"BertNormalizer", read_bert, bert, NULL},
        {"Precompiled", charsmap_read, charsmap_apply, NULL},
        {"ByteLevel", NULL, byte_level, NULL},
    };
    return error_prefix(
        steps_read(json, "normalizers", rows, sizeof rows / sizeof rows[0], out_steps),
        "normalizer");
}

clg_status normalizer_apply(const step_list *l, step_work *w, const char *text, size_t n_bytes,
                            strbuf *spare, strbuf *out_text)
{
    strbuf other;
    clg_status status = CLG_OK;
    if (l->count == 0) strbuf_append_bytes(out_text, text, n_bytes);
    if (l->count == 0) return out_text->status;
    /* Steps write to two texts in turn, the last one to the output. */
    strbuf_init(&other, w->max_bytes);
    for (size_t i = 0; i < l->count && status == CLG_OK; i++) {
        strbuf *to = i + 1 == l->count ? out_text : i % 2 == 0 ? spare : &other;
        if (to != out_text) to->size_bytes = 0;
        status = l->items[i].row->change(&l->items[i], w, text, n_bytes, to);
        text = strbuf_data(to);
        n_bytes = to->size_bytes;
    }
    strbuf_deinit(&other);
    return status;
}
