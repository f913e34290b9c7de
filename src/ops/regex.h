/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions in RE2's syntax, for RegexFullMatch: whether a whole string is of a language. Time is linear in
 * the string, memory in the pattern, whatever they are. Not there: classes of Unicode properties (\p) and single bytes
 * (\C), which are refused.
 */
#ifndef CLG_OPS_REGEX_H
#define CLG_OPS_REGEX_H

#include "base/memory.h"

typedef struct regex regex;

/* UNSUPPORTED_ATTRIBUTE for what is not there, INVALID_MODEL for what is no expression or too large a one. */
clg_status regex_create(const char *pattern, regex **out_regex);
void regex_free(regex *r); /* accepts NULL */
/* Whether all of a string matches. Not for several threads at once. */
bool regex_matches(regex *r, const char *string);

#endif
