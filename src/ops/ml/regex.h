/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions for RegexFullMatch: whether a whole string is of a language. ONNX means RE2's
 * syntax, and PCRE2 reads it (decision 23): \s holds the vertical tab too, and an expression that
 * goes back and forth ten million times over one string is given up, where RE2 would go on.
 */
#ifndef CLG_OPS_REGEX_H
#define CLG_OPS_REGEX_H

#include "base/memory.h"

typedef struct regex_program regex_program;

/* INVALID_MODEL for what is not an expression, too large a one, or refers back to a group;
 * UNSUPPORTED_ATTRIBUTE for \C. */
clg_status regex_create(const char *pattern, regex_program **out_regex);
void regex_free(regex_program *r); /* accepts NULL */
/* Whether all of a string matches. Not thread-safe. DATA for a string that is
 * not UTF-8 or for which the expression is given up. */
clg_status regex_matches(regex_program *r, const char *string, bool *out_matches);

#endif
