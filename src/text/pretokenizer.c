/* SPDX-License-Identifier: Apache-2.0
 *
 * The pre-tokenizers of tokenizer.json, which split a text into pieces that the model encodes on
 * their own.
 */
#include "base/memory.h"
#include "text/text_step.h"
#include "text/unicode.h"

#include <string.h>

/* A part of a piece, in bytes of the text. */
struct split_match {
    size_t start, end;
    bool is_match;
};

typedef bool char_test(uint32_t c);

/* ---- matches --------------------------------------------------------------------------------- */

static clg_status add_match(step_work *w, size_t start, size_t end, bool is_match)
{
    if (w->n_matches == w->matches_capacity)
        CLG_TRY(MEMORY_RESERVE(w->matches, w->matches_capacity, w->n_matches + 1));
    w->matches[w->n_matches++] = (struct split_match){start, end, is_match};
    return CLG_OK;
}

/* Divides a piece into matches of the pattern and what is between them. */
static clg_status match_pattern(const text_step *s, step_work *w, const char *text, const piece *p)
{
    const size_t n = p->end - p->start;
    pattern_cursor c = {.text = text + p->start, .n_bytes = n};
    size_t done = 0, start, end;
    bool is_found;
    for (;;) {
        CLG_TRY(pattern_next(s->pattern, w->search, &c, &is_found, &start, &end));
        if (!is_found) break;
        if (done < start) CLG_TRY(add_match(w, p->start + done, p->start + start, s->inverts));
        CLG_TRY(add_match(w, p->start + start, p->start + end, !s->inverts));
        done = end;
    }
    return done < n ? add_match(w, p->start + done, p->end, s->inverts) : CLG_OK;
}

/* The same for single characters. */
static clg_status match_chars(char_test *test, step_work *w, const char *text, const piece *p)
{
    size_t done = p->start;
    for (size_t at = p->start; at < p->end;) {
        const size_t start = at;
        if (!test(utf8_next(text, &at))) continue;
        if (done < start) CLG_TRY(add_match(w, done, start, false));
        CLG_TRY(add_match(w, start, at, true));
        done = at;
    }
    return done < p->end ? add_match(w, done, p->end, false) : CLG_OK;
}

/* Joins matches of one piece as the behavior says: the first n_kept are left, of which those to be
 * removed are empty. */
static size_t join_matches(split_behavior behavior, struct split_match *m, size_t n)
{
    size_t n_kept = 0;
    bool previous = false;
    if (behavior == SPLIT_MERGED_WITH_NEXT) { /* from the end */
        size_t kept = n;
        for (size_t i = n; i-- > 0;) {
            const struct split_match one = m[i];
            if (one.is_match && !previous && kept < n)
                m[kept].start = one.start;
            else
                m[--kept] = one;
            previous = one.is_match;
        }
        memmove(m, m + kept, (n - kept) * sizeof *m);
        return n - kept;
    }
    for (size_t i = 0; i < n; i++) {
        const struct split_match one = m[i];
        const bool joins =
            n_kept > 0 && ((behavior == SPLIT_CONTIGUOUS && one.is_match == previous) ||
                           (behavior == SPLIT_MERGED_WITH_PREVIOUS && one.is_match && !previous));
        previous = one.is_match;
        if (joins)
            m[n_kept - 1].end = one.end;
        else if (behavior != SPLIT_REMOVED || !one.is_match)
            m[n_kept++] = one;
    }
    return n_kept;
}

/* Splits each piece that is text, by the pattern or, if there is one, by the test. The text is
 * moved to the output as it is. */
static clg_status split_all(const text_step *s, char_test *test, step_work *w, piece_list *in,
                            piece_list *out)
{
    const char *text = strbuf_data(&in->text);
    for (size_t i = 0; i < in->count; i++) {
        const piece *p = &in->items[i];
        if (p->id >= 0) {
            CLG_TRY(pieces_add(out, *p));
            continue;
        }
        w->n_matches = 0;
        CLG_TRY(test ? match_chars(test, w, text, p) : match_pattern(s, w, text, p));
        const size_t n = join_matches(s->behavior, w->matches, w->n_matches);
        for (size_t k = 0; k < n; k++) {
            const struct split_match *m = &w->matches[k];
            CLG_TRY(pieces_add(out,
                               (piece){m->start, m->end, -1, p->is_first && m->start == p->start}));
        }
    }
    const strbuf moved = in->text;
    in->text = out->text;
    out->text = moved;
    return CLG_OK;
}

/* ---- splits ---------------------------------------------------------------------------------- */

static clg_status read_behavior(const json_t *json, field_need need, text_step *s)
{
    static const char *const names[] = {[SPLIT_REMOVED] = "Removed",
                                        [SPLIT_ISOLATED] = "Isolated",
                                        [SPLIT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
                                        [SPLIT_MERGED_WITH_NEXT] = "MergedWithNext",
                                        [SPLIT_CONTIGUOUS] = "Contiguous"};
    const char *name = "Isolated";
    CLG_TRY(field_string(json, "behavior", need, &name));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        s->behavior = (split_behavior)i;
        return CLG_OK;
    }
    return error_set(CLG_ERROR_INVALID_MODEL, "'behavior' is '%.100s'", name);
}

static clg_status read_split(const json_t *json, text_step *s)
{
    CLG_TRY(step_read_pattern(json, s));
    CLG_TRY(field_bool(json, "invert", FIELD_REQUIRED, &s->inverts));
    return read_behavior(json, FIELD_REQUIRED, s);
}

static clg_status read_delimiter(const json_t *json, text_step *s)
{
    CLG_TRY(step_read_text(json, "delimiter", 1, s));
    return pattern_create_string(s->text, &s->pattern);
}

/* \w of Rust's regular expressions has the two joiners too. */
static clg_status read_whitespace(const json_t *json, text_step *s)
{
    (void)json;
    s->inverts = true;
    return pattern_create_regex("[\\w\\x{200c}\\x{200d}]+|[^\\w\\x{200c}\\x{200d}\\s]+",
                                &s->pattern);
}

static clg_status split(const text_step *s, step_work *w, piece_list *in, piece_list *out)
{
    return split_all(s, NULL, w, in, out);
}

static clg_status split_spaces(const text_step *s, step_work *w, piece_list *in, piece_list *out)
{
    return split_all(s, char_is_space, w, in, out);
}

static clg_status read_digits(const json_t *json, text_step *s)
{
    bool is_each = false;
    CLG_TRY(field_bool(json, "individual_digits", FIELD_REQUIRED, &is_each));
    s->behavior = is_each ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS;
    return CLG_OK;
}

static clg_status split_digits(const text_step *s, step_work *w, piece_list *in, piece_list *out)
{
    return split_all(s, char_is_numeric, w, in, out);
}

static clg_status read_punctuation(const json_t *json, text_step *s)
{
    return read_behavior(json, FIELD_OPTIONAL, s);
}

static clg_status split_punctuation(const text_step *s, step_work *w, piece_list *in,
                                    piece_list *out)
{
    return split_all(s, char_is_punctuation, w, in, out);
}

/* Spaces are removed, then punctuation is isolated. */
static clg_status split_bert(const text_step *s, step_work *w, piece_list *in, piece_list *out)
{
    text_step isolate = *s;
    isolate.behavior = SPLIT_ISOLATED;
    CLG_TRY(split_all(s, char_is_space, w, in, out));
    pieces_clear(in);
    CLG_TRY(split_all(&isolate, char_is_punctuation, w, out, in));
    pieces_swap(in, out);
    return CLG_OK;
}

static clg_status read_length(const json_t *json, text_step *s)
{
    s->start = 5;
    CLG_TRY(field_index(json, "length", FIELD_OPTIONAL, SIZE_MAX >> 1, &s->start));
    return s->start > 0 ? CLG_OK : error_set(CLG_ERROR_INVALID_MODEL, "'length' is 0");
}

static clg_status split_length(const text_step *s, step_work *w, piece_list *in, piece_list *out)
{
    const char *text = strbuf_data(&in->text);
    (void)w;
    for (size_t i = 0; i < in->count; i++) {
        const piece *p = &in->items[i];
        size_t start = p->start, n_chars = 0;
        for (size_t at = start; p->id < 0 && at < p->end;) {
            at += utf8_length(text[at]);
            if (++n_chars < s->start && at < p->end) continue;
            CLG_TRY(pieces_add(out, (piece){start, at, -1, p->is_first && start == p->start}));
            start = at;
            n_chars = 0;
        }
        if (p->id >= 0) CLG_TRY(pieces_add(out, *p));
    }
    const strbuf moved = in->text;
    in->text = out->text;
    out->text = moved;
    return CLG_OK;
}

/* ---- steps that change the text too ---------------------------------------------------------- */

static clg_status read_byte_level(const json_t *json, text_step *s)
{
    s->uses_regex = true;
    s->behavior = SPLIT_ISOLATED;
    CLG_TRY(field_bool(json, "add_prefix_space", FIELD_REQUIRED, &s->adds_space));
    CLG_TRY(field_bool(json, "use_regex", FIELD_OPTIONAL, &s->uses_regex));
    if (!s->uses_regex) return CLG_OK;
    return pattern_create_regex("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
                                "\\s+(?!\\S)|\\s+",
                                &s->pattern);
}

/* Writes a piece of a text for a step: one or several pieces. */
typedef clg_status (*piece_rewrite)(const text_step *s, const char *text, const piece *p,
                                    piece_list *out);

/* Rewrites all pieces but tokens, which are copied. */
static clg_status rewrite_all(const text_step *s, const piece_list *in, piece_list *out,
                              piece_rewrite rewrite)
{
    const char *text = strbuf_data(&in->text);
    for (size_t i = 0; i < in->count; i++) {
        const piece *p = &in->items[i];
        CLG_TRY(p->id >= 0 ? pieces_copy(out, in, p) : rewrite(s, text, p, out));
    }
    return CLG_OK;
}

/* Writes a piece with a space before it if it starts with none. */
static clg_status spaced_piece(const text_step *s, const char *text, const piece *p,
                               piece_list *out)
{
    const size_t start = out->text.size_bytes;
    (void)s;
    if (text[p->start] != ' ') strbuf_append(&out->text, " ");
    strbuf_append_bytes(&out->text, text + p->start, p->end - p->start);
    return pieces_end(out, start, p->is_first);
}

static clg_status byte_level_piece(const text_step *s, const char *text, const piece *p,
                                   piece_list *out)
{
    const size_t start = out->text.size_bytes;
    (void)s;
    byte_level_append(&out->text, text + p->start, p->end - p->start);
    return pieces_end(out, start, p->is_first);
}

/* Makes what a step gave the input of the next one. */
static void go_on(piece_list *in, piece_list *out)
{
    pieces_swap(in, out);
    pieces_clear(out);
}

static clg_status byte_level(const text_step *s, step_work *w, piece_list *in, piece_list *out)
{
    if (s->adds_space) {
        CLG_TRY(rewrite_all(s, in, out, spaced_piece));
        go_on(in, out);
    }
    if (s->uses_regex) {
        CLG_TRY(split_all(s, NULL, w, in, out));
        go_on(in, out);
    }
    return rewrite_all(s, in, out, byte_level_piece);
}

/* Writes a piece with its spaces replaced, and the replacement before it where the scheme says
 * so. A piece ends before each replacement, if it is to be split. */
static clg_status metaspace_piece(const text_step *s, const char *text, const piece *p,
                                  piece_list *out)
{
    const size_t n = s->text_bytes;
    size_t start = out->text.size_bytes;
    const bool has_one = text[p->start] == ' ' ||
                         (p->end - p->start >= n && memcmp(text + p->start, s->text, n) == 0);
    const bool adds =
        !has_one && (s->scheme == PREPEND_ALWAYS || (s->scheme == PREPEND_FIRST && p->is_first));
    const size_t first = start;
    if (adds) strbuf_append_bytes(&out->text, s->text, n);
    for (size_t at = p->start; at < p->end; at++) {
        const bool is_space = text[at] == ' ';
        const bool is_mark = is_space || (p->end - at >= n && memcmp(text + at, s->text, n) == 0);
        if (is_mark && s->splits && out->text.size_bytes > start) {
            CLG_TRY(pieces_end(out, start, p->is_first && start == first));
            start = out->text.size_bytes;
        }
        if (is_space)
            strbuf_append_bytes(&out->text, s->text, n);
        else
            strbuf_append_bytes(&out->text, text + at, 1);
    }
    return pieces_end(out, start, p->is_first && start == first);
}

static clg_status metaspace(const text_step *s, step_work *w, piece_list *in, piece_list *out)
{
    (void)w;
    return rewrite_all(s, in, out, metaspace_piece);
}

/* ---- the table ------------------------------------------------------------------------------- */

clg_status pretokenizer_read(const json_t *json, step_list *out_steps)
{
    static const step_row rows[] = {
        {"ByteLevel", read_byte_level, NULL, byte_level},
        {"Split", read_split, NULL, split},
        {"Metaspace", step_read_metaspace, NULL, metaspace},
        {"Whitespace", read_whitespace, NULL, split},
        {"WhitespaceSplit", NULL, NULL, split_spaces},
        {"Digits", read_digits, NULL, split_digits},
        {"Punctuation", read_punctuation, NULL, split_punctuation},
        {"BertPreTokenizer", NULL, NULL, split_bert},
        {"CharDelimiterSplit", read_delimiter, NULL, split},
        {"FixedLength", read_length, NULL, split_length},
    };
    return error_prefix(
        steps_read(json, "pretokenizers", rows, sizeof rows / sizeof rows[0], out_steps),
        "pre_tokenizer");
}

clg_status steps_divide(const step_list *l, step_work *w, piece_list *pieces, piece_list *spare)
{
    for (size_t i = 0; i < l->count; i++) {
        pieces_clear(spare);
        CLG_TRY(l->items[i].row->divide(&l->items[i], w, pieces, spare));
        const piece_list moved = *pieces;
        *pieces = *spare;
        *spare = moved;
    }
    return CLG_OK;
}
