/* SPDX-License-Identifier: Apache-2.0
 *
 * UTF-8, properties of code points and normalization forms of Unicode, by utf8proc (decision 82).
 */
#ifndef CLG_TEXT_UNICODE_H
#define CLG_TEXT_UNICODE_H

#include "base/strbuf.h"

#include <stdint.h>

#define UTF8_MAX_BYTES 4
#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Returns the code point at *at of valid UTF-8, and moves *at past it. */
static inline uint32_t utf8_next(const char *text, size_t *at)
{
    const unsigned char *s = (const unsigned char *)text + *at;
    if (s[0] < 0x80) return *at += 1, s[0];
    if (s[0] < 0xe0) return *at += 2, (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu);
    if (s[0] < 0xf0) return *at += 3, (s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
    return *at += 4,
           (s[0] & 7u) << 18 | (s[1] & 0x3fu) << 12 | (s[2] & 0x3fu) << 6 | (s[3] & 0x3fu);
}
/* Returns how many bytes a character of valid UTF-8 has whose first byte is this one. */
static inline size_t utf8_length(char first)
{
    const unsigned char c = (unsigned char)first;
    return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}
/* Returns whether a byte is not the first one of a character. */
static inline bool utf8_continues(char byte) { return ((unsigned char)byte & 0xc0) == 0x80; }
/* Returns the start of the character before `at`, which is above 0. */
static inline size_t utf8_before(const char *text, size_t at)
{
    do at--;
    while (at > 0 && utf8_continues(text[at]));
    return at;
}
/* Writes a code point, and returns the number of bytes. */
size_t utf8_write(uint32_t c, char out_bytes[UTF8_MAX_BYTES]);
void utf8_append(strbuf *t, uint32_t c);
/* Returns the number of bytes before the first one that is not valid UTF-8. */
size_t utf8_valid_bytes(const char *bytes, size_t n_bytes);
/* Appends the bytes, with U+FFFD for each longest part that begins a character and does not end
 * one, or cannot begin one: what Unicode recommends, and Rust and Python do. */
void utf8_append_repaired(strbuf *t, const char *bytes, size_t n_bytes);

/* Properties, of any code point. */
bool char_is_space(uint32_t c);       /* White_Space */
bool char_is_numeric(uint32_t c);     /* general category N */
bool char_is_punctuation(uint32_t c); /* P, or ASCII's symbols */
bool char_is_mark(uint32_t c);        /* M */
bool char_is_nonspacing(uint32_t c);  /* Mn */
bool char_is_other(uint32_t c);       /* Cc, Cf, Co */
/* Appends the lower-case form of a character: Unicode's full mapping without context. */
void char_append_lower(strbuf *t, uint32_t c);
/* Returns the end of the extended grapheme cluster that starts at `at`, which is below n_bytes. */
size_t text_cluster_end(const char *text, size_t n_bytes, size_t at);

typedef enum unicode_form { UNICODE_NFC, UNICODE_NFD, UNICODE_NFKC, UNICODE_NFKD } unicode_form;
/* Appends a text in a normalization form, in linear time. */
clg_status unicode_normalize(unicode_form form, const char *text, size_t n_bytes, strbuf *out_text);

#endif
