/* SPDX-License-Identifier: Apache-2.0
 *
 * What tokenizer.json splits and replaces by: a string, or a regular expression in Oniguruma's
 * syntax, which is translated to PCRE2's and matched with limits (decision 82).
 */
#ifndef CLG_TEXT_TEXT_PATTERN_H
#define CLG_TEXT_TEXT_PATTERN_H

#include "base/strbuf.h"

typedef struct pattern pattern;
/* What one thread needs for matching. */
typedef struct pattern_search pattern_search;

/* Create a pattern, which the caller frees. pattern_create_string: not an empty string.
 * pattern_create_regex: UNSUPPORTED_ATTRIBUTE for syntax whose meaning differs in PCRE2. */
clg_status pattern_create_string(const char *string, pattern **out_pattern);
clg_status pattern_create_regex(const char *regex, pattern **out_pattern);
void pattern_free(pattern *p); /* accepts NULL */
/* Creates what matching needs beside the pattern, for all patterns of a tokenizer in turn. Its
 * matches together have a limit of steps, which grows with n_bytes, those of the text. */
clg_status pattern_search_create(size_t n_bytes, pattern_search **out_search);
void pattern_search_free(pattern_search *s); /* accepts NULL */

/* A search through a text of valid UTF-8. */
typedef struct pattern_cursor {
    const char *text;
    size_t n_bytes;
    size_t at;       /* where the next search starts */
    bool is_started; /* there was a match; it ended at last_end */
    size_t last_end;
} pattern_cursor;
/* Finds the next match from the cursor on; *out_found false: there is none. Matches may be empty,
 * but not where the last one ended. DATA if the search takes too many steps. */
clg_status pattern_next(const pattern *p, pattern_search *s, pattern_cursor *cursor,
                        bool *out_found, size_t *out_start, size_t *out_end);

/* text_pattern_syntax.c: translates Oniguruma's syntax to PCRE2's; the caller frees *out_regex with
 * memory_free. */
clg_status pattern_translate(const char *regex, char **out_regex);

#endif
