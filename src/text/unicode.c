/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements unicode.h. utf8proc maps and composes; the canonical order is made here, since its own
 * sort needs time quadratic in the length of a run of combining marks.
 */
#include "text/unicode.h"

#include "base/memory.h"

#include <string.h>
#include <utf8proc.h>

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

size_t utf8_write(uint32_t c, char out_bytes[UTF8_MAX_BYTES])
{
    unsigned char *b = (unsigned char *)out_bytes;
    if (c < 0x80) {
        b[0] = (unsigned char)c;
        return 1;
    }
    const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6) b[i] = (unsigned char)(0x80 | (c & 0x3f));
    b[0] = (unsigned char)((0xf00 >> n & 0xf0) | c);
    return n;
}

void utf8_append(strbuf *t, uint32_t c)
{
    char bytes[UTF8_MAX_BYTES];
    strbuf_append_bytes(t, bytes, utf8_write(c, bytes));
}

/* Returns the length of the character at the start of the bytes; 0 if there is none, and in
 * *out_bad the number of bytes that one U+FFFD stands for. */
static size_t decode(const unsigned char *s, size_t n, size_t *out_bad)
{
    *out_bad = 1;
    if (s[0] < 0x80) return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
    const size_t length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    const unsigned char low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
    for (size_t i = 1; i < length; i++) {
        *out_bad = i;
        if (i >= n || s[i] < (i == 1 ? low : 0x80) || s[i] > (i == 1 ? high : 0xbf)) return 0;
    }
    return length;
}

size_t utf8_valid_bytes(const char *bytes, size_t n_bytes)
{
    const unsigned char *s = (const unsigned char *)bytes;
    size_t at = 0, bad;
    while (at < n_bytes) {
        uint64_t word;
        if (n_bytes - at >= sizeof word) {
            memcpy(&word, s + at, sizeof word);
            if (!(word & UINT64_C(0x8080808080808080))) {
                at += sizeof word;
                continue;
            }
        }
        const size_t length = decode(s + at, n_bytes - at, &bad);
        if (length == 0) break;
        at += length;
    }
    return at;
}

void utf8_append_repaired(strbuf *t, const char *bytes, size_t n_bytes)
{
    while (n_bytes > 0 && t->status == CLG_OK) {
        const size_t n = utf8_valid_bytes(bytes, n_bytes);
        size_t bad = 0;
        strbuf_append_bytes(t, bytes, n);
        if (n < n_bytes) {
            (void)decode((const unsigned char *)bytes + n, n_bytes - n, &bad);
            strbuf_append(t, UTF8_REPLACEMENT);
        }
        bytes += n + bad;
        n_bytes -= n + bad;
    }
}

/* ---- properties ------------------------------------------------------------------------------ */

static utf8proc_category_t category(uint32_t c) { return utf8proc_category((utf8proc_int32_t)c); }

bool char_is_space(uint32_t c)
{
    if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
    if (c == 0x85) return true;
    const utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_ZS || k == UTF8PROC_CATEGORY_ZL || k == UTF8PROC_CATEGORY_ZP;
}

bool char_is_numeric(uint32_t c)
{
    if (c < 0x80) return c >= '0' && c <= '9';
    const utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}

bool char_is_punctuation(uint32_t c)
{
    if (c < 0x80)
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
               (c >= '{' && c <= '~');
    const utf8proc_category_t k = category(c);
    return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

bool char_is_mark(uint32_t c)
{
    const utf8proc_category_t k = category(c);
    return k >= UTF8PROC_CATEGORY_MN && k <= UTF8PROC_CATEGORY_ME;
}

bool char_is_nonspacing(uint32_t c) { return category(c) == UTF8PROC_CATEGORY_MN; }

bool char_is_other(uint32_t c)
{
    const utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_CO;
}

void char_append_lower(strbuf *t, uint32_t c)
{
    if (c == 0x130) { /* the one character whose lower-case form has two */
        strbuf_append(t, "i\xcc\x87");
        return;
    }
    utf8_append(t, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c));
}

size_t text_cluster_end(const char *text, size_t n_bytes, size_t at)
{
    utf8proc_int32_t state = 0;
    uint32_t before = utf8_next(text, &at);
    while (at < n_bytes) {
        size_t next = at;
        const uint32_t c = utf8_next(text, &next);
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)before, (utf8proc_int32_t)c, &state))
            break;
        before = c;
        at = next;
    }
    return at;
}

/* ---- normalization forms --------------------------------------------------------------------- */

typedef struct code_points {
    utf8proc_int32_t *items;
    size_t count, capacity;
    utf8proc_int32_t *scratch; /* of sort_marks */
    size_t scratch_capacity;
} code_points;

/* Sorts a run of combining marks by their classes, marks of one class in their order. */
static clg_status sort_marks(code_points *p, size_t from, size_t to)
{
    enum { N_CLASSES = 256 };
    size_t starts[N_CLASSES + 1] = {0};
    utf8proc_int32_t *marks = p->items + from;
    const size_t n = to - from;
    if (n < 2) return CLG_OK;
    CLG_TRY(MEMORY_RESERVE(p->scratch, p->scratch_capacity, n));
    for (size_t i = 0; i < n; i++)
        starts[(utf8proc_get_property(marks[i])->combining_class & 0xff) + 1]++;
    for (size_t i = 0; i < N_CLASSES; i++) starts[i + 1] += starts[i];
    memcpy(p->scratch, marks, n * sizeof *marks);
    for (size_t i = 0; i < n; i++)
        marks[starts[utf8proc_get_property(p->scratch[i])->combining_class & 0xff]++] =
            p->scratch[i];
    return CLG_OK;
}

static clg_status sort_all_marks(code_points *p)
{
    size_t from = 0;
    for (size_t i = 0; i <= p->count; i++) {
        if (i < p->count && utf8proc_get_property(p->items[i])->combining_class != 0) continue;
        CLG_TRY(sort_marks(p, from, i));
        from = i + 1;
    }
    return CLG_OK;
}

/* Appends the normalization form of a run of characters. */
static clg_status normalize_run(unicode_form form, code_points *p, const char *text, size_t n_bytes,
                                strbuf *out_text)
{
    enum { MAX_PARTS = 32 }; /* the longest mapping of Unicode has 18 */
    const bool is_compatible = form == UNICODE_NFKC || form == UNICODE_NFKD;
    const utf8proc_option_t options = (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                                          (is_compatible ? UTF8PROC_COMPAT : 0));
    p->count = 0;
    for (size_t at = 0; at < n_bytes;) {
        int boundary = 0;
        const utf8proc_int32_t c = (utf8proc_int32_t)utf8_next(text, &at);
        CLG_TRY(MEMORY_RESERVE(p->items, p->capacity, p->count + MAX_PARTS));
        const utf8proc_ssize_t n =
            utf8proc_decompose_char(c, p->items + p->count, MAX_PARTS, options, &boundary);
        if (n < 0 || n > MAX_PARTS)
            return error_set(CLG_ERROR_INTERNAL, "utf8proc cannot decompose U+%04X", (unsigned)c);
        p->count += (size_t)n;
    }
    CLG_TRY(sort_all_marks(p));
    utf8proc_ssize_t n = (utf8proc_ssize_t)p->count;
    if (form == UNICODE_NFC || form == UNICODE_NFKC)
        n = utf8proc_normalize_utf32(p->items, n,
                                     (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    for (utf8proc_ssize_t i = 0; i < n; i++) utf8_append(out_text, (uint32_t)p->items[i]);
    return out_text->status;
}

clg_status unicode_normalize(unicode_form form, const char *text, size_t n_bytes, strbuf *out_text)
{
    /* Characters below are in the form, and compose with none before them. */
    static const uint32_t firsts[] = {
        [UNICODE_NFC] = 0x300, [UNICODE_NFD] = 0xc0, [UNICODE_NFKC] = 0xa0, [UNICODE_NFKD] = 0xa0};
    const uint32_t first = firsts[form];
    code_points p = {0};
    clg_status status = CLG_OK;
    size_t done = 0;
    for (size_t at = 0, before = 0; at < n_bytes && status == CLG_OK;) {
        const size_t start = at;
        if (utf8_next(text, &at) < first) {
            before = start;
            continue;
        }
        size_t end = at;
        while (end < n_bytes) {
            size_t next = end;
            if (utf8_next(text, &next) < first) break;
            end = next;
        }
        /* A run starts with the character before it, which may take its marks. */
        if (before < done) before = done;
        strbuf_append_bytes(out_text, text + done, before - done);
        status = normalize_run(form, &p, text + before, end - before, out_text);
        done = before = at = end;
    }
    strbuf_append_bytes(out_text, text + done, n_bytes - done);
    memory_free(p.items);
    memory_free(p.scratch);
    return status != CLG_OK ? status : out_text->status;
}
