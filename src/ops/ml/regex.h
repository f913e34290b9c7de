/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions that match whole strings, for RegexFullMatch. ONNX refers to RE2's syntax.
 * PCRE2 parses it (decision 23), with two differences: \s includes the vertical tab, and a match
 * that takes more than ten million steps is an error, where RE2 would continue.
 */
#ifndef CLG_OPS_REGEX_H
#define CLG_OPS_REGEX_H

#include "base/memory.h"

typedef struct regex_program regex_program;

/* Compiles an expression; the caller frees *out_regex with regex_free. INVALID_MODEL if it is
 * invalid or too large or has a back-reference, UNSUPPORTED_ATTRIBUTE if it has \C. */
clg_status regex_create(const char *pattern, regex_program **out_regex);
void regex_free(regex_program *r); /* accepts NULL */
/* Sets *out_matches to whether the whole string matches. Not thread-safe. DATA for a string that is
 * not UTF-8, or when matching takes too many steps. */
clg_status regex_matches(regex_program *r, const char *string, bool *out_matches);

#endif
