/* SPDX-License-Identifier: Apache-2.0
 *
 * The 256 characters that stand for bytes in byte-level vocabularies, those of GPT-2: the bytes of
 * printable Latin-1 characters are these, the others follow from U+0100 on.
 */
#include "text/text_step.h"
#include "text/unicode.h"

#define FIRST_OTHER 0x100
/* 0 to 0x20, 0x7f to 0xa0, and 0xad. */
#define N_OTHERS (0x21 + 0x22 + 1)

static uint32_t char_of(unsigned char byte)
{
    if (byte <= 0x20) return FIRST_OTHER + byte;
    if (byte >= 0x7f && byte <= 0xa0) return FIRST_OTHER + 0x21 + (byte - 0x7fu);
    return byte == 0xad ? FIRST_OTHER + N_OTHERS - 1 : byte;
}

/* Returns the byte of a character, -1 if it stands for none. */
static int byte_of(uint32_t c)
{
    if (c < FIRST_OTHER) return char_of((unsigned char)c) == c ? (int)c : -1;
    if (c < FIRST_OTHER + 0x21) return (int)(c - FIRST_OTHER);
    if (c < FIRST_OTHER + 0x21 + 0x22) return (int)(c - FIRST_OTHER - 0x21 + 0x7f);
    return c == FIRST_OTHER + N_OTHERS - 1 ? 0xad : -1;
}

void byte_level_append(strbuf *t, const char *bytes, size_t n_bytes)
{
    char buffer[512];
    size_t used = 0;
    for (size_t i = 0; i < n_bytes; i++) {
        used += utf8_write(char_of((unsigned char)bytes[i]), buffer + used);
        if (used < sizeof buffer - UTF8_MAX_BYTES && i + 1 < n_bytes) continue;
        strbuf_append_bytes(t, buffer, used);
        used = 0;
    }
}

void byte_level_decode(strbuf *t, const char *token, size_t n_bytes)
{
    const size_t before = t->size_bytes;
    for (size_t at = 0; at < n_bytes && t->status == CLG_OK;) {
        const int byte = byte_of(utf8_next(token, &at));
        if (byte < 0) {
            t->size_bytes = before;
            strbuf_append_bytes(t, token, n_bytes);
            return;
        }
        const char one = (char)byte;
        strbuf_append_bytes(t, &one, 1);
    }
}
