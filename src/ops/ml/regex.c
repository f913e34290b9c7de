/* SPDX-License-Identifier: Apache-2.0
 *
 * Matches regular expressions by PCRE2, with the library's allocator, and with limits on time and
 * memory, since expressions come from model files. PCRE2's other matcher (pcre2_dfa_match), which
 * never backtracks, would need no limits, but that of version 10.42 lets repeated groups end before
 * the end of an anchored string, and with PCRE2_DOLLAR_ENDONLY ignores a $ before the end of a
 * line.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "ops/ml/regex.h"

#include "base/strbuf.h"

#include <pcre2.h>
#include <string.h>

/* Limits of a match: MAX_STEPS is PCRE2's match limit, the number of positions that are tried;
 * MAX_HEAP_KIB limits the memory for positions to backtrack to. */
enum { MAX_STEPS = 10000000, MAX_HEAP_KIB = 64 << 10 };

struct regex_program {
    pcre2_general_context *memory;
    pcre2_compile_context *reading;
    pcre2_match_context *bounds;
    pcre2_code *code;
    pcre2_match_data *found;
    char *pattern;
};

static void *take(PCRE2_SIZE size_bytes, void *unused)
{
    (void)unused;
    return memory_alloc(size_bytes);
}

static void give_back(void *block, void *unused)
{
    (void)unused;
    memory_free(block);
}

static clg_status refuse(const regex_program *r, clg_status status, int code)
{
    PCRE2_UCHAR reason[160] = "";
    (void)pcre2_get_error_message(code, reason, sizeof reason);
    return error_set(status, "the regular expression '%.200s': %s", r->pattern,
                     (const char *)reason);
}

static clg_status compile(regex_program *r)
{
    int code;
    PCRE2_SIZE where;
    uint32_t refers_to = 0;
    r->code = pcre2_compile((PCRE2_SPTR)r->pattern, PCRE2_ZERO_TERMINATED,
                            PCRE2_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOLLAR_ENDONLY |
                                PCRE2_NEVER_BACKSLASH_C,
                            &code, &where, r->reading);
    if (!r->code && code == PCRE2_ERROR_HEAP_FAILED) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (!r->code)
        return refuse(r,
                      code == PCRE2_ERROR_BACKSLASH_C_CALLER_DISABLED
                          ? CLG_ERROR_UNSUPPORTED_ATTRIBUTE
                          : CLG_ERROR_INVALID_MODEL,
                      code);
    (void)pcre2_pattern_info(r->code, PCRE2_INFO_BACKREFMAX, &refers_to);
    if (refers_to > 0)
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "the regular expression '%.200s' refers back to a group", r->pattern);
    r->found = pcre2_match_data_create(1, r->memory);
    return r->found ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

/* Returns the end of an escape, a literal \\Q...\\E or a class in brackets that begins at `at`;
 * NULL if none begins there. */
static const char *skip_group(const char *at)
{
    if (strncmp(at, "\\Q", 2) == 0) {
        const char *end = strstr(at + 2, "\\E");
        return end ? end + 2 : at + strlen(at);
    }
    if (at[0] == '\\' && at[1] != '\0') {
        const char *end = strchr("xpPo", at[1]) && at[2] == '{' ? strchr(at + 2, '}') : NULL;
        return end ? end + 1 : at + 2;
    }
    if (at[0] != '[') return NULL;
    at += at[1] == '^' ? 2 : 1;
    for (bool is_first = true; *at && (is_first || *at != ']'); is_first = false) {
        const char *posix_end = strncmp(at, "[:", 2) == 0 ? strstr(at, ":]") : NULL;
        at += posix_end ? posix_end + 2 - at : at[0] == '\\' && at[1] != '\0' ? 2 : 1;
    }
    return *at ? at + 1 : at;
}

/* Returns whether {2}, {2,} or {2,4} begins here. Other braces are literal in RE2, to which ONNX
 * refers, as in PCRE2 before 10.43; later versions take {,2} and { 2 } as quantifiers too. */
static bool is_quantifier(const char *brace)
{
    static const char digits[] = "0123456789";
    const char *at = brace + 1;
    const size_t n = strspn(at, digits);
    at += n;
    if (*at == ',') at += 1 + strspn(at + 1, digits);
    return n > 0 && *at == '}';
}

/* Copies the pattern, with a backslash before each literal brace. The caller frees *out_pattern
 * with memory_free. */
static clg_status escape_braces(const char *pattern, char **out_pattern)
{
    strbuf t;
    strbuf_init(&t, 0);
    for (const char *at = pattern; *at;) {
        const char *end = skip_group(at);
        if (!end) end = at + 1;
        if (*at == '{' && !is_quantifier(at)) strbuf_append(&t, "\\");
        strbuf_append_bytes(&t, at, (size_t)(end - at));
        at = end;
    }
    const clg_status status = t.status;
    *out_pattern = status == CLG_OK ? memory_strdup(strbuf_data(&t)) : NULL;
    strbuf_deinit(&t);
    if (status != CLG_OK) return status;
    return *out_pattern ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

static clg_status set_up(regex_program *r, const char *pattern)
{
    CLG_TRY(escape_braces(pattern, &r->pattern));
    r->memory = pcre2_general_context_create(take, give_back, NULL);
    if (!r->memory) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    r->reading = pcre2_compile_context_create(r->memory);
    r->bounds = pcre2_match_context_create(r->memory);
    if (!r->reading || !r->bounds) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    (void)pcre2_set_match_limit(r->bounds, MAX_STEPS);
    (void)pcre2_set_heap_limit(r->bounds, MAX_HEAP_KIB);
    return compile(r);
}

clg_status regex_create(const char *pattern, regex_program **out_regex)
{
    regex_program *r = memory_zalloc(1, sizeof *r);
    *out_regex = NULL;
    if (!r) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const clg_status status = set_up(r, pattern);
    if (status == CLG_OK)
        *out_regex = r;
    else
        regex_free(r);
    return status;
}

void regex_free(regex_program *r)
{
    if (!r) return;
    pcre2_match_data_free(r->found);
    pcre2_code_free(r->code);
    pcre2_match_context_free(r->bounds);
    pcre2_compile_context_free(r->reading);
    pcre2_general_context_free(r->memory);
    memory_free(r->pattern);
    memory_free(r);
}

clg_status regex_matches(regex_program *r, const char *string, bool *out_matches)
{
    const int found =
        pcre2_match(r->code, (PCRE2_SPTR)string, PCRE2_ZERO_TERMINATED, 0, 0, r->found, r->bounds);
    *out_matches = found >= 0;
    if (found >= 0 || found == PCRE2_ERROR_NOMATCH) return CLG_OK;
    if (found == PCRE2_ERROR_NOMEMORY) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    return refuse(r, CLG_ERROR_DATA, found);
}
