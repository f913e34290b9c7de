/* SPDX-License-Identifier: Apache-2.0
 *
 * The normalizer "Precompiled": a table of SentencePiece that replaces characters and clusters of
 * them, base64 in the file. It is a size in bytes, a double array (darts-clone's) of 32-bit units,
 * all little-endian, and the replacements, each with a NUL.
 */
#include "base/memory.h"
#include "text/text_step.h"
#include "text/unicode.h"

#include <string.h>

enum { MAX_TABLE_BYTES = 16 << 20, MAX_CLUSTER_BYTES = 6 };

/* Returns the value of a digit of base64, -1 for another character. */
static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static clg_status decode(const char *text, char *out_bytes, size_t *out_n)
{
    uint32_t bits = 0;
    unsigned n_bits = 0;
    *out_n = 0;
    for (; *text && *text != '='; text++) {
        const int digit = digit_of(*text);
        if (digit < 0)
            return error_set(CLG_ERROR_INVALID_MODEL, "'precompiled_charsmap' is not base64");
        bits = bits << 6 | (uint32_t)digit;
        n_bits += 6;
        if (n_bits < 8) continue;
        n_bits -= 8;
        out_bytes[(*out_n)++] = (char)(bits >> n_bits);
    }
    return CLG_OK;
}

static uint32_t unit_at(const char *data, size_t i)
{
    const unsigned char *u = (const unsigned char *)data + 4 * i;
    return u[0] | (uint32_t)u[1] << 8 | (uint32_t)u[2] << 16 | (uint32_t)u[3] << 24;
}

clg_status charsmap_read(const json_t *json, text_step *s)
{
    const char *text = NULL;
    CLG_TRY(field_string(json, "precompiled_charsmap", FIELD_REQUIRED, &text));
    const size_t n_text = strlen(text);
    if (n_text > MAX_TABLE_BYTES)
        return error_set(CLG_ERROR_LIMIT, "'precompiled_charsmap' has more than %d bytes",
                         MAX_TABLE_BYTES);
    s->data = memory_zalloc(n_text + 1, 1);
    if (!s->data) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    CLG_TRY(decode(text, s->data, &s->data_bytes));
    const size_t size = s->data_bytes >= 4 ? unit_at(s->data, 0) : 0;
    s->stop = size / 4; /* units */
    s->start = 4 + size;
    if (size == 0 || size % 4 != 0 || size > s->data_bytes - 4)
        return error_set(CLG_ERROR_INVALID_MODEL, "'precompiled_charsmap' has a wrong size");
    const size_t n = s->data_bytes - s->start;
    if (utf8_valid_bytes(s->data + s->start, n) < n)
        return error_set(CLG_ERROR_INVALID_MODEL, "'precompiled_charsmap' is not UTF-8");
    return CLG_OK;
}

/* Returns the replacement of the shortest beginning of the bytes that has one, NULL if none has. */
static const char *find(const text_step *s, const char *bytes, size_t n_bytes)
{
    size_t node = 0;
    for (size_t i = 0; i <= n_bytes; i++) {
        if (node >= s->stop) return NULL;
        uint32_t unit = unit_at(s->data + 4, node);
        if (i > 0 && (unit & 0x800000ffu) != (unsigned char)bytes[i - 1]) return NULL;
        node ^= (size_t)(unit >> 10) << ((unit & 0x200u) >> 6);
        if (i > 0 && (unit & 0x100u)) {
            if (node >= s->stop) return NULL;
            unit = unit_at(s->data + 4, node) & 0x7fffffffu;
            const size_t at = s->start + unit;
            return at < s->data_bytes && !utf8_continues(s->data[at]) ? s->data + at : NULL;
        }
        if (i == n_bytes || bytes[i] == '\0') return NULL;
        node ^= (unsigned char)bytes[i];
    }
    return NULL;
}

clg_status charsmap_apply(const text_step *s, step_work *w, const char *text, size_t n_bytes,
                          strbuf *out_text)
{
    (void)w; /* what is removed at the start of a text does not count there, as in tokenizers */
    for (size_t at = 0, end; at < n_bytes && out_text->status == CLG_OK; at = end) {
        const char *other = NULL;
        end = text_cluster_end(text, n_bytes, at);
        if (end - at < MAX_CLUSTER_BYTES) other = find(s, text + at, end - at);
        if (other) {
            strbuf_append(out_text, other);
            continue;
        }
        for (size_t c = at, n; c < end && out_text->status == CLG_OK; c += n) {
            n = utf8_length(text[c]);
            other = find(s, text + c, n);
            if (other)
                strbuf_append(out_text, other);
            else
                strbuf_append_bytes(out_text, text + c, n);
        }
    }
    return out_text->status;
}
