/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps before and after the model: normalizers, pre-tokenizers and decoders of tokenizer.json,
 * each with "type" and its settings. A "Sequence" becomes its steps.
 */
#ifndef CLG_TEXT_TEXT_STEP_H
#define CLG_TEXT_TEXT_STEP_H

#include "text/fields.h"
#include "text/pieces.h"
#include "text/text_pattern.h"

#include <stdbool.h>

/* How a piece is split by matches of a pattern. */
typedef enum split_behavior {
    SPLIT_REMOVED,
    SPLIT_ISOLATED,
    SPLIT_MERGED_WITH_PREVIOUS,
    SPLIT_MERGED_WITH_NEXT,
    SPLIT_CONTIGUOUS
} split_behavior;

typedef enum prepend_scheme { PREPEND_ALWAYS, PREPEND_FIRST, PREPEND_NEVER } prepend_scheme;

/* One step; which settings count depends on its row. */
typedef struct text_step {
    const struct step_row *row;
    pattern *pattern;
    char *text; /* to put in, or to find; NULL: none */
    size_t text_bytes;
    char *data; /* a table of characters */
    size_t data_bytes;
    split_behavior behavior;
    prepend_scheme scheme;
    bool inverts, uses_regex, adds_space, splits;
    bool left, right; /* ends to strip */
    bool cleans, spaces_chinese, strips_accents, lowers;
    size_t start, stop; /* characters to strip, or a length */
} text_step;

typedef struct step_list {
    text_step *items;
    size_t count, capacity;
} step_list; /* all zeros is valid and empty */

/* What steps reuse during one call. */
typedef struct step_work {
    pattern_search *search;
    struct split_match *matches;
    size_t n_matches, matches_capacity;
    size_t max_bytes; /* of a text */
    /* The text that is normalized has the first character of the input; normalizers set it to false
     * where they remove that. */
    bool is_first;
} step_work;

/* Applies a step to a text, or to pieces: appends to the output. */
typedef clg_status step_of_text(const text_step *s, step_work *w, const char *text, size_t n_bytes,
                                strbuf *out_text);
typedef clg_status step_of_pieces(const text_step *s, step_work *w, piece_list *in,
                                  piece_list *out);

typedef struct step_row {
    const char *type;
    clg_status (*read)(const json_t *json, text_step *s); /* NULL: no settings */
    step_of_text *change;
    step_of_pieces *divide;
} step_row;

/* Reads a normalizer, pre-tokenizer or decoder with the steps of its table; json NULL or null: no
 * steps. sequence_key: the member of a Sequence that has its steps. The caller calls steps_deinit
 * in any case. UNSUPPORTED_ATTRIBUTE names a type that is not in the table. */
clg_status steps_read(const json_t *json, const char *sequence_key, const step_row *rows,
                      size_t n_rows, step_list *out_steps);
void steps_deinit(step_list *l);

/* Readers of settings that several steps have. */
clg_status step_read_pattern(const json_t *json, text_step *s);
/* Copies a string member; max_chars 0: any number. */
clg_status step_read_text(const json_t *json, const char *key, size_t max_chars, text_step *s);
clg_status step_read_metaspace(const json_t *json, text_step *s);

/* ---- the tables ------------------------------------------------------------------------------ */

clg_status normalizer_read(const json_t *json, step_list *out_steps);
clg_status pretokenizer_read(const json_t *json, step_list *out_steps);
clg_status decoder_read(const json_t *json, step_list *out_steps);
/* Appends the normalized text. spare: an initialized text of the caller's to work in. */
clg_status normalizer_apply(const step_list *l, step_work *w, const char *text, size_t n_bytes,
                            strbuf *spare, strbuf *out_text);
/* Applies steps to pieces in turn; the result is in *pieces, `spare` is used between. */
clg_status steps_divide(const step_list *l, step_work *w, piece_list *pieces, piece_list *spare);

/* The bytes as characters of byte-level vocabularies: printable ones as themselves, others above
 * U+0100 (byte_level.c). */
void byte_level_append(strbuf *t, const char *bytes, size_t n_bytes);
/* Appends the bytes that a token stands for; as it is if it has another character. */
void byte_level_decode(strbuf *t, const char *token, size_t n_bytes);

/* Appends a text whose characters a SentencePiece table replaces (charsmap.c). */
clg_status charsmap_read(const json_t *json, text_step *s);
step_of_text charsmap_apply;

#endif
