/* SPDX-License-Identifier: Apache-2.0
 *
 * Translates regular expressions from Oniguruma's syntax, in which tokenizer.json has them, to
 * PCRE2's. Both share most of it. What has another meaning is written out (\s, \w, \b, \h, \v,
 * classes of scripts, the option m); what PCRE2 cannot say, or no tokenizer is known to use, is
 * refused by name.
 */
#include "text/text_pattern.h"

#include "base/memory.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

/* PCRE2 has Unicode's binary properties from 10.40 on, when names of scripts came to mean script
 * extensions. */
#if PCRE2_MAJOR > 10 || PCRE2_MINOR >= 40
#define SPACE "\\p{White_Space}"
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define SCRIPT "sc:"
#else
#define SPACE "\\p{Z}\\x09-\\x0d\\x85"
#define WORD "\\p{L}\\p{Nl}\\p{M}\\p{Nd}\\p{Pc}"
#define SCRIPT ""
#endif

#define MAX_REGEX_BYTES ((size_t)64 << 10)

typedef struct translation {
    const char *at;
    strbuf out;
    bool is_branch_start; /* nothing but options is between here and the branch's start */
} translation;

static clg_status refuse(const char *what, size_t n_bytes)
{
    return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                     "'%.*s' in a regular expression is not supported", (int)n_bytes, what);
}

/* Escapes that stand for sets: what to write inside of a class, and for the complement. */
static const struct set_row {
    char letter;
    const char *inside;
} sets[] = {{'s', SPACE}, {'w', WORD}, {'h', "0-9a-fA-F"}, {'d', "\\p{Nd}"}};

/* Writes a set, or with an upper-case letter its complement; false if the letter has none. */
static bool put_set(translation *t, char letter, bool in_class)
{
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        if ((letter | 0x20) != sets[i].letter) continue;
        if (in_class && letter == sets[i].letter) {
            strbuf_append(&t->out, sets[i].inside);
        } else if (in_class) {
            return false;
        } else {
            strbuf_append(&t->out, letter == sets[i].letter ? "[" : "[^");
            strbuf_append(&t->out, sets[i].inside);
            strbuf_append(&t->out, "]");
        }
        t->at += 2;
        return true;
    }
    return false;
}

/* \S and \D in a class, by the complement of the property. */
static bool put_complement(translation *t, char letter)
{
#if PCRE2_MAJOR > 10 || PCRE2_MINOR >= 40
    if (letter == 'S') {
        strbuf_append(&t->out, "\\P{White_Space}");
        t->at += 2;
        return true;
    }
#endif
    if (letter != 'D') return false;
    strbuf_append(&t->out, "\\P{Nd}");
    t->at += 2;
    return true;
}

/* Translates \p{NAME}, \P{NAME} and \p{^NAME}. */
static clg_status put_property(translation *t)
{
    static const char *const binary[] = {"Alphabetic", "White_Space", "Uppercase", "Lowercase",
                                         "Any"};
    const char *start = t->at, *name = t->at + 3;
    const char *end = t->at[2] == '{' ? strchr(name, '}') : NULL;
    if (!end) return refuse(start, strnlen(start, 3));
    bool is_negative = start[1] == 'P';
    if (*name == '^') {
        is_negative = !is_negative;
        name++;
    }
    const size_t n = (size_t)(end - name);
    if (n == 0 || strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_&") < n)
        return refuse(start, (size_t)(end + 1 - start));
    bool is_plain = n <= 2; /* a general category */
    for (size_t i = 0; i < sizeof binary / sizeof binary[0]; i++)
        is_plain = is_plain || (strlen(binary[i]) == n && strncmp(name, binary[i], n) == 0);
    strbuf_printf(&t->out, "\\%c{%s%.*s}", is_negative ? 'P' : 'p', is_plain ? "" : SCRIPT, (int)n,
                  name);
    t->at = end + 1;
    return CLG_OK;
}

/* Translates \xHH, \x{H...} and \uHHHH. */
static clg_status put_code(translation *t)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *start = t->at;
    const bool is_braced = start[1] == 'x' && start[2] == '{';
    const char *number = start + (is_braced ? 3 : 2);
    size_t n = strspn(number, digits);
    const size_t most = is_braced ? 8 : start[1] == 'u' ? 4 : 2;
    if (!is_braced && n > most) n = most;
    /* \x80 and above are bytes in Oniguruma, not characters. */
    const bool is_byte = start[1] == 'x' && !is_braced && n == 2 && number[0] >= '8';
    if (n == 0 || n > most || is_byte || (start[1] == 'u' && n < 4) ||
        (is_braced && number[n] != '}'))
        return refuse(start, strnlen(start, 6));
    strbuf_printf(&t->out, "\\x{%.*s}", (int)n, number);
    t->at = number + n + is_braced;
    return CLG_OK;
}

static clg_status put_escape(translation *t, bool in_class)
{
    const char *start = t->at;
    const char c = start[1];
    if (c == '\0') return refuse(start, 1);
    if (put_set(t, c, in_class) || (in_class && put_complement(t, c))) return CLG_OK;
    if (c == 'p' || c == 'P') return put_property(t);
    if (c == 'x' || c == 'u') return put_code(t);
    if (c == 'v') {
        strbuf_append(&t->out, "\\x0b");
    } else if (c == 'b' && !in_class) {
        strbuf_append(&t->out, "(?:(?<=[" WORD "])(?![" WORD "])|(?<![" WORD "])(?=[" WORD "]))");
    } else if (c == 'B' && !in_class) {
        strbuf_append(&t->out, "(?:(?<=[" WORD "])(?=[" WORD "])|(?<![" WORD "])(?![" WORD "]))");
    } else if (strchr("nrtfae", c) || (!in_class && strchr("AzZRXN", c))) {
        strbuf_append_bytes(&t->out, start, 2);
    } else if ((unsigned char)c >= 0x80) {
        t->at++; /* the character itself */
        return CLG_OK;
    } else if ((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')) {
        return refuse(start, 2);
    } else {
        strbuf_append_bytes(&t->out, start, 2);
    }
    t->at += 2;
    return CLG_OK;
}

/* Translates a class in brackets. */
static clg_status put_class(translation *t)
{
    const char *start = t->at;
    const size_t n_open = start[1] == '^' ? 2 : 1;
    strbuf_append_bytes(&t->out, start, n_open);
    t->at += n_open;
    if (*t->at == ']') {
        strbuf_append(&t->out, "\\]");
        t->at++;
    }
    while (*t->at && *t->at != ']') {
        if (*t->at == '[' || strncmp(t->at, "&&", 2) == 0) return refuse(t->at, 2);
        if (*t->at == '\\') {
            CLG_TRY(put_escape(t, true));
        } else {
            strbuf_append_bytes(&t->out, t->at, 1);
            t->at++;
        }
    }
    if (!*t->at) return error_set(CLG_ERROR_INVALID_MODEL, "a class in brackets has no end");
    strbuf_append(&t->out, "]");
    t->at++;
    return CLG_OK;
}

/* Translates what begins with a parenthesis up to the group's content. */
static clg_status put_group(translation *t)
{
    static const char *const same[] = {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"};
    const char *start = t->at;
    if (start[1] == '*') return refuse(start, 2);
    if (start[1] != '?') {
        strbuf_append(&t->out, "(?:"); /* nothing refers to groups */
        t->at++;
        return CLG_OK;
    }
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        const size_t n = strlen(same[i]);
        if (strncmp(start, same[i], n) != 0) continue;
        strbuf_append(&t->out, same[i]);
        t->at += n;
        return CLG_OK;
    }
    const char *end = start + 2;
    while (*end == 'i' || *end == 'm' || *end == '-') end++;
    /* There a(?i)b|c is a followed by one group, in PCRE2 the alternatives are a(?i)b and c. */
    if (*end != ':' && (*end != ')' || !t->is_branch_start))
        return refuse(start, *end == ')' ? (size_t)(end + 1 - start) : strnlen(start, 3));
    for (const char *c = start; c <= end; c++) strbuf_append_bytes(&t->out, *c == 'm' ? "s" : c, 1);
    t->at = end + 1;
    return CLG_OK;
}

/* Translates {n}, {n,}, {n,m} and {,m}; other braces are literal. */
static clg_status put_brace(translation *t)
{
    static const char digits[] = "0123456789";
    const char *start = t->at, *low = start + 1;
    const size_t n_low = strspn(low, digits);
    const char *end = low + n_low;
    const bool has_comma = *end == ',';
    if (has_comma) end += 1 + strspn(end + 1, digits);
    if (*end != '}' || (n_low == 0 && end - low < 2)) {
        strbuf_append(&t->out, "\\{");
        t->at++;
        return CLG_OK;
    }
    /* {n,m}+ is a repetition of a repetition there, and {n}? an option, in PCRE2 they are not. */
    if (end[1] == '+' || (end[1] == '?' && !has_comma))
        return refuse(start, (size_t)(end + 2 - start));
    strbuf_append(&t->out, n_low ? "{" : "{0");
    strbuf_append_bytes(&t->out, low, (size_t)(end + 1 - low));
    t->at = end + 1;
    return CLG_OK;
}

clg_status pattern_translate(const char *regex, char **out_regex)
{
    translation t = {.at = regex, .is_branch_start = true};
    clg_status status = CLG_OK;
    *out_regex = NULL;
    if (strlen(regex) > MAX_REGEX_BYTES)
        return error_set(CLG_ERROR_LIMIT, "a regular expression has more than %zu bytes",
                         MAX_REGEX_BYTES);
    strbuf_init(&t.out, 0);
    while (*t.at && status == CLG_OK) {
        const char first = *t.at;
        if (*t.at == '\\') {
            status = put_escape(&t, false);
        } else if (*t.at == '[') {
            status = put_class(&t);
        } else if (*t.at == '(') {
            status = put_group(&t);
        } else if (*t.at == '{') {
            status = put_brace(&t);
        } else {
            strbuf_append_bytes(&t.out, t.at, 1);
            t.at++;
        }
        t.is_branch_start = first == '|' || first == '(';
    }
    if (status == CLG_OK) status = strbuf_take(&t.out, out_regex);
    strbuf_deinit(&t.out);
    return status;
}
