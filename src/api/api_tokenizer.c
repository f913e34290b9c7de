/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clgraph/tokenizer.h.
 */
#include "api/arguments.h"
#include "base/memory.h"
#include "text/token_stream.h"

#include <clgraph/tokenizer.h>

/* A clg_tokenizer is a tokenizer. */
static tokenizer *inner(clg_tokenizer *t) { return (tokenizer *)t; }
static const tokenizer *inner_const(const clg_tokenizer *t) { return (const tokenizer *)t; }

struct clg_token_stream {
    token_stream stream;
};

clg_status clg_tokenizer_open(const char *path, clg_tokenizer **out_tokenizer)
{
    tokenizer *t;
    API_REQUIRE(out_tokenizer);
    *out_tokenizer = NULL;
    API_REQUIRE(path);
    CLG_TRY(tokenizer_open(path, &t));
    *out_tokenizer = (clg_tokenizer *)t;
    return CLG_OK;
}

void clg_tokenizer_free(clg_tokenizer *tokenizer) { tokenizer_release(inner(tokenizer)); }

size_t clg_tokenizer_size(const clg_tokenizer *tokenizer)
{
    return tokenizer ? tokenizer_size(inner_const(tokenizer)) : 0;
}

const char *clg_tokenizer_token(const clg_tokenizer *tokenizer, int64_t id)
{
    size_t n_bytes;
    return tokenizer ? tokenizer_token(inner_const(tokenizer), id, &n_bytes) : NULL;
}

clg_status clg_tokenizer_id(const clg_tokenizer *tokenizer, const char *token, int64_t *out_id)
{
    API_REQUIRE(out_id);
    *out_id = 0;
    API_REQUIRE(tokenizer);
    API_REQUIRE(token);
    const int32_t id = tokenizer_find(inner_const(tokenizer), token);
    if (id < 0) return error_set(CLG_ERROR_NOT_FOUND, "the tokenizer has no token '%.200s'", token);
    *out_id = id;
    return CLG_OK;
}

clg_status clg_tokenizer_special_id(const clg_tokenizer *tokenizer, const char *role,
                                    int64_t *out_id)
{
    API_REQUIRE(out_id);
    *out_id = 0;
    API_REQUIRE(tokenizer);
    API_REQUIRE(role);
    const int32_t id = tokenizer_special(inner_const(tokenizer), role);
    if (id < 0)
        return error_set(CLG_ERROR_NOT_FOUND,
                         "the files of the tokenizer do not name a '%.200s_token'", role);
    *out_id = id;
    return CLG_OK;
}

bool clg_tokenizer_is_special(const clg_tokenizer *tokenizer, int64_t id)
{
    return tokenizer && tokenizer_is_special(inner_const(tokenizer), id);
}

clg_status clg_tokenizer_encode(const clg_tokenizer *tokenizer, const char *text, size_t text_bytes,
                                bool add_special, int64_t **out_ids, size_t *out_n_ids)
{
    id_list ids = {0};
    API_REQUIRE(out_ids);
    *out_ids = NULL;
    API_REQUIRE(out_n_ids);
    *out_n_ids = 0;
    API_REQUIRE(tokenizer);
    if (text_bytes > 0) API_REQUIRE(text);
    CLG_TRY(MEMORY_RESERVE(ids.ids, ids.capacity, 1));
    const clg_status status =
        tokenizer_encode(inner_const(tokenizer), text, text_bytes, add_special, &ids);
    if (status != CLG_OK) {
        memory_free(ids.ids);
        return status;
    }
    *out_ids = ids.ids;
    *out_n_ids = ids.count;
    return CLG_OK;
}

void clg_ids_free(int64_t *ids) { memory_free(ids); }

clg_status clg_tokenizer_decode(const clg_tokenizer *tokenizer, const int64_t *ids, size_t n_ids,
                                bool skip_special, char **out_text, size_t *out_text_bytes)
{
    strbuf text;
    API_REQUIRE(out_text);
    *out_text = NULL;
    if (out_text_bytes) *out_text_bytes = 0;
    API_REQUIRE(tokenizer);
    if (n_ids > 0) API_REQUIRE(ids);
    strbuf_init(&text, SIZE_MAX >> 1);
    clg_status status = tokenizer_decode(inner_const(tokenizer), ids, n_ids, skip_special, &text);
    const size_t n_bytes = text.size_bytes;
    if (status == CLG_OK) status = strbuf_take(&text, out_text);
    if (status == CLG_OK && out_text_bytes) *out_text_bytes = n_bytes;
    strbuf_deinit(&text);
    return status;
}

/* ---- streams --------------------------------------------------------------------------------- */

clg_status clg_token_stream_create(clg_tokenizer *tokenizer, bool skip_special,
                                   clg_token_stream **out_stream)
{
    API_REQUIRE(out_stream);
    *out_stream = NULL;
    API_REQUIRE(tokenizer);
    clg_token_stream *s = memory_zalloc(1, sizeof *s);
    if (!s) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    token_stream_init(&s->stream, inner(tokenizer), skip_special);
    *out_stream = s;
    return CLG_OK;
}

void clg_token_stream_free(clg_token_stream *stream)
{
    if (!stream) return;
    token_stream_deinit(&stream->stream);
    memory_free(stream);
}

/* Gives the stream's text after a call of it. */
static clg_status give_text(clg_status status, const token_stream *s, const char **out_text,
                            size_t *out_text_bytes)
{
    if (status != CLG_OK) return status;
    *out_text = s->text.size_bytes > 0 ? s->text.data : "";
    if (out_text_bytes) *out_text_bytes = s->text.size_bytes;
    return CLG_OK;
}

clg_status clg_token_stream_push(clg_token_stream *stream, int64_t id, const char **out_text,
                                 size_t *out_text_bytes)
{
    API_REQUIRE(out_text);
    *out_text = NULL;
    if (out_text_bytes) *out_text_bytes = 0;
    API_REQUIRE(stream);
    return give_text(token_stream_push(&stream->stream, id), &stream->stream, out_text,
                     out_text_bytes);
}

clg_status clg_token_stream_end(clg_token_stream *stream, const char **out_text,
                                size_t *out_text_bytes)
{
    API_REQUIRE(out_text);
    *out_text = NULL;
    if (out_text_bytes) *out_text_bytes = 0;
    API_REQUIRE(stream);
    return give_text(token_stream_end(&stream->stream), &stream->stream, out_text, out_text_bytes);
}
