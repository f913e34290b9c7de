/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a tokenizer.json, encodes a text, and decodes ids: those of the text, and all others.
 * A NUL separates the file from the text; without one, the text has a bit of everything.
 */
#include "fuzz.h"

#include "base/memory.h"
#include "text/token_stream.h"
#include "text/unicode.h"

#include <string.h>

static const char default_text[] =
    "Hello  world's 123\t\n<s>  \xc3\xa9 e\xcc\x81 \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x99\x82 \xff"
    "a\xe2\x96\x81"
    "b";

enum { MAX_TEXT_BYTES = 256, MAX_IDS = 256 };

static void require_utf8(const strbuf *t)
{
    fuzz_require(utf8_valid_bytes(strbuf_data(t), t->size_bytes) == t->size_bytes);
}

/* Decodes ids at once and one by one. */
static void decode(tokenizer *t, const int64_t *ids, size_t n_ids, bool skips_special)
{
    strbuf text;
    token_stream stream;
    strbuf_init(&text, 0);
    if (tokenizer_decode(t, ids, n_ids, skips_special, &text) == CLG_OK) require_utf8(&text);
    token_stream_init(&stream, t, skips_special);
    for (size_t i = 0; i < n_ids; i++)
        if (token_stream_push(&stream, ids[i]) == CLG_OK) require_utf8(&stream.text);
    if (token_stream_end(&stream) == CLG_OK) require_utf8(&stream.text);
    token_stream_deinit(&stream);
    strbuf_deinit(&text);
}

static void use(tokenizer *t, const char *text, size_t n_bytes)
{
    id_list ids = {0};
    const size_t n = tokenizer_size(t);
    fuzz_require(n > 0);
    if (tokenizer_encode(t, text, n_bytes, true, &ids) == CLG_OK) {
        for (size_t i = 0; i < ids.count; i++)
            fuzz_require(ids.ids[i] >= 0 && (size_t)ids.ids[i] < n);
        decode(t, ids.ids, ids.count < MAX_IDS ? ids.count : MAX_IDS, true);
    }
    ids.count = 0;
    for (size_t i = 0; i < n && i < MAX_IDS; i++) {
        size_t n_token;
        const char *token = tokenizer_token(t, (int64_t)i, &n_token);
        fuzz_require(token && strlen(token) == n_token);
        fuzz_require(tokenizer_find(t, token) >= 0);
        fuzz_require(ids_add(&ids, (int64_t)i) == CLG_OK);
    }
    fuzz_require(ids_add(&ids, (int64_t)n) == CLG_OK);
    decode(t, ids.ids, ids.count, false);
    memory_free(ids.ids);
}

void fuzz_tokenizer(const uint8_t *data, size_t size_bytes)
{
    tokenizer *t;
    const uint8_t *end = size_bytes > 0 ? memchr(data, '\0', size_bytes) : NULL;
    const size_t n_json = end ? (size_t)(end - data) : size_bytes;
    const char *text = end ? (const char *)end + 1 : default_text;
    size_t n_text = end ? size_bytes - n_json - 1 : sizeof default_text - 1;
    if (n_text > MAX_TEXT_BYTES) n_text = MAX_TEXT_BYTES;
    if (tokenizer_open(fuzz_file("tokenizer.json", data, n_json), &t) != CLG_OK) {
        fuzz_require(!t && *error_text());
        return;
    }
    use(t, text, n_text);
    tokenizer_release(t);
}
