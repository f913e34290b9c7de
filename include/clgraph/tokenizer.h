/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokenizers of language models: text to the ids that a model takes, and back, as a tokenizer.json
 * file of Hugging Face describes it. No device is needed:
 *
 *     clg_tokenizer *tokenizer;
 *     int64_t *ids;
 *     size_t n_ids;
 *     clg_tokenizer_open("model/", &tokenizer);
 *     clg_tokenizer_encode(tokenizer, "Hello", 5, true, &ids, &n_ids);
 *     ...
 *     clg_ids_free(ids);
 *     clg_tokenizer_free(tokenizer);
 *
 * docs/tokenizers.md lists what of these files is supported; all else is refused when a file is
 * opened. The rules of clgraph.h apply.
 */
#ifndef CLGRAPH_TOKENIZER_H
#define CLGRAPH_TOKENIZER_H

#include <clgraph/clgraph.h>
#include <clgraph/inspect.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tokenizer does not change; threads may share it. */
typedef struct clg_tokenizer clg_tokenizer;
/* The state of a text that comes token by token; one thread at a time. */
typedef struct clg_token_stream clg_token_stream;

/* Opens a tokenizer.json file, or a folder that has one. Names of special tokens come from
 * tokenizer_config.json and special_tokens_map.json beside it, where they are there. Files need not
 * be trusted: sizes and nesting are limited, and encoding takes time linear in the text, but for
 * regular expressions that the file has: their steps are limited, but a repetition of one character
 * is one step, however long it is.
 *
 * Errors: IO, INVALID_MODEL (no valid file), UNSUPPORTED_ATTRIBUTE (a part that clgraph does not
 * have), LIMIT (more than 64 MiB, or tokens of more than 4096 bytes). Messages name the file and
 * the part of it. */
CLG_API CLG_MUST_USE clg_status clg_tokenizer_open(const char *path, clg_tokenizer **out_tokenizer);
/* Frees a tokenizer; accepts NULL. */
CLG_API void clg_tokenizer_free(clg_tokenizer *tokenizer);

/* Returns the number of ids: they are 0 and up. */
CLG_API size_t clg_tokenizer_size(const clg_tokenizer *tokenizer);
/* Returns the token of an id as the file spells it, which is not the text that it stands for; NULL
 * for an id that is none. */
CLG_API const char *clg_tokenizer_token(const clg_tokenizer *tokenizer, int64_t id);
/* Returns the id of a token as the file spells it. Errors: NOT_FOUND. */
CLG_API CLG_MUST_USE clg_status clg_tokenizer_id(const clg_tokenizer *tokenizer, const char *token,
                                                 int64_t *out_id);
/* Returns the id of a special token by its role: "bos", "eos", "pad", "unk" and whatever else the
 * files call "..._token". Errors: NOT_FOUND. */
CLG_API CLG_MUST_USE clg_status clg_tokenizer_special_id(const clg_tokenizer *tokenizer,
                                                         const char *role, int64_t *out_id);
/* Returns whether an id is that of a special token, which decoding may leave out. */
CLG_API bool clg_tokenizer_is_special(const clg_tokenizer *tokenizer, int64_t id);

/* Returns the ids of a text of text_bytes bytes of UTF-8; bytes that are not UTF-8 count as U+FFFD.
 * add_special: with the special tokens that the file puts around a text. Those inside of the text
 * are found in any case. What the file says of truncation and padding does not count. Freed by
 * clg_ids_free. text may be NULL if text_bytes is 0.
 *
 * Errors: DATA (a character that has no token, or a regular expression of the file that takes too
 * many steps), LIMIT (a piece of more than a thousand million bytes), OUT_OF_HOST_MEMORY also where
 * the file would make the text more than 64 times as long, and 64 KiB. */
CLG_API CLG_MUST_USE clg_status clg_tokenizer_encode(const clg_tokenizer *tokenizer,
                                                     const char *text, size_t text_bytes,
                                                     bool add_special, int64_t **out_ids,
                                                     size_t *out_n_ids);
/* Frees ids; accepts NULL. */
CLG_API void clg_ids_free(int64_t *ids);

/* Returns the text of ids, UTF-8 with a NUL at the end; freed by clg_text_free. skip_special:
 * without that of special tokens. Ids of no token give no text. out_text_bytes: without the NUL;
 * may be NULL. ids may be NULL if n_ids is 0.
 *
 * Errors: DATA (as for clg_tokenizer_encode), LIMIT. */
CLG_API CLG_MUST_USE clg_status clg_tokenizer_decode(const clg_tokenizer *tokenizer,
                                                     const int64_t *ids, size_t n_ids,
                                                     bool skip_special, char **out_text,
                                                     size_t *out_text_bytes);

/* ---- token by token -------------------------------------------------------------------------- */

/* Creates a stream of text; it keeps the tokenizer. */
CLG_API CLG_MUST_USE clg_status clg_token_stream_create(clg_tokenizer *tokenizer, bool skip_special,
                                                        clg_token_stream **out_stream);
/* Frees a stream; accepts NULL. */
CLG_API void clg_token_stream_free(clg_token_stream *stream);
/* Adds a token, and returns the text that is complete with it: "" while a character is not; with
 * a NUL at the end, and valid until the next call with the stream. All texts together are that of
 * all ids. A token that fails is not added. out_text_bytes may be NULL. Errors: those of
 * clg_tokenizer_decode. */
CLG_API CLG_MUST_USE clg_status clg_token_stream_push(clg_token_stream *stream, int64_t id,
                                                      const char **out_text,
                                                      size_t *out_text_bytes);
/* Returns the text that is left, with U+FFFD for a character that is not complete, and starts anew.
 * Otherwise as clg_token_stream_push. */
CLG_API CLG_MUST_USE clg_status clg_token_stream_end(clg_token_stream *stream,
                                                     const char **out_text, size_t *out_text_bytes);

#ifdef __cplusplus
}
#endif
#endif
