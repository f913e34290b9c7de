/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements text_pattern.h with PCRE2: by its compiler to machine code where there is one and the
 * match fits its stack, else by its interpreter. Texts are known to be UTF-8, so that they are not
 * checked at each match, which would make splitting quadratic.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/text_pattern.h"

#include "base/memory.h"
#include "text/unicode.h"

#include <pcre2.h>
#include <string.h>

enum { MAX_STRING_BYTES = 4096 };
/* Limits of the steps that PCRE2 counts, which are of one start of a match each time: at least and
 * for each byte of the text, where runs of spaces take two; and of the memory for positions to go
 * back to. */
enum { MIN_STEPS = 100000, STEPS_PER_BYTE = 16, MAX_STEPS = 10000000, MAX_HEAP_KIB = 64 << 10 };
/* All starts may take FEW_STEPS. Those that take more are tried with STEPS_FACTOR times as many
 * again and again, and all of these together are limited for a search. */
enum { FEW_STEPS = 256, STEPS_FACTOR = 8, SEARCH_STEPS = 10000000, SEARCH_STEPS_PER_BYTE = 256 };
/* Starts that are tried at once at first; twice as many each time. */
enum { FEW_STARTS = 256 };

struct pattern {
    char *string; /* to be found as it is; NULL: code */
    size_t string_bytes;
    pcre2_general_context *memory;
    pcre2_code *code;
    bool ran_out; /* of memory, while it was compiled */
};

struct pattern_search {
    pcre2_general_context *memory;
    pcre2_match_context *limits;
    pcre2_match_data *found;
    uint64_t n_steps_left; /* of starts that take more than FEW_STEPS */
};

/* Allocates for PCRE2; *ran_out, unless NULL, is set to true if that fails. */
static void *take(PCRE2_SIZE size_bytes, void *ran_out)
{
    void *block = memory_alloc(size_bytes);
    if (!block && ran_out) *(bool *)ran_out = true;
    return block;
}

static void give_back(void *block, void *unused)
{
    (void)unused;
    memory_free(block);
}

/* ---- creating -------------------------------------------------------------------------------- */

clg_status pattern_create_string(const char *string, pattern **out_pattern)
{
    *out_pattern = NULL;
    const size_t n_bytes = strlen(string);
    if (n_bytes == 0) return error_set(CLG_ERROR_INVALID_MODEL, "the pattern is empty");
    if (n_bytes > MAX_STRING_BYTES)
        return error_set(CLG_ERROR_LIMIT, "the string has more than %d bytes", MAX_STRING_BYTES);
    pattern *p = memory_zalloc(1, sizeof *p);
    if (!p) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    p->string_bytes = n_bytes;
    p->string = memory_strdup(string);
    if (!p->string) {
        pattern_free(p);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    *out_pattern = p;
    return CLG_OK;
}

static clg_status compile(pattern *p, const char *regex, pcre2_compile_context *settings)
{
    int code;
    PCRE2_SIZE where;
    PCRE2_UCHAR reason[160] = "";
    (void)pcre2_set_newline(settings, PCRE2_NEWLINE_LF);
    (void)pcre2_set_bsr(settings, PCRE2_BSR_UNICODE);
    p->code = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C |
                                PCRE2_USE_OFFSET_LIMIT,
                            &code, &where, settings);
    if (!p->code && code == PCRE2_ERROR_HEAP_FAILED) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (!p->code) {
        (void)pcre2_get_error_message(code, reason, sizeof reason);
        return error_set(CLG_ERROR_INVALID_MODEL, "the regular expression '%.400s': %s", regex,
                         (const char *)reason);
    }
    /* Without machine code, which some systems do not allow, the interpreter matches. */
    (void)pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE);
    return p->ran_out ? CLG_ERROR_OUT_OF_HOST_MEMORY : CLG_OK;
}

clg_status pattern_create_regex(const char *regex, pattern **out_pattern)
{
    char *translated = NULL;
    pcre2_compile_context *settings = NULL;
    *out_pattern = NULL;
    CLG_TRY(pattern_translate(regex, &translated));
    clg_status status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    pattern *p = memory_zalloc(1, sizeof *p);
    if (p) p->memory = pcre2_general_context_create(take, give_back, &p->ran_out);
    if (p && p->memory) settings = pcre2_compile_context_create(p->memory);
    if (settings) status = compile(p, translated, settings);
    pcre2_compile_context_free(settings);
    memory_free(translated);
    if (status == CLG_OK)
        *out_pattern = p;
    else
        pattern_free(p);
    return status;
}

void pattern_free(pattern *p)
{
    if (!p) return;
    pcre2_code_free(p->code);
    pcre2_general_context_free(p->memory);
    memory_free(p->string);
    memory_free(p);
}

clg_status pattern_search_create(size_t n_bytes, pattern_search **out_search)
{
    pattern_search *s = memory_zalloc(1, sizeof *s);
    *out_search = NULL;
    if (!s) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const uint64_t most = UINT64_MAX / SEARCH_STEPS_PER_BYTE - SEARCH_STEPS;
    s->n_steps_left = SEARCH_STEPS + SEARCH_STEPS_PER_BYTE * (n_bytes < most ? n_bytes : most);
    s->memory = pcre2_general_context_create(take, give_back, NULL);
    if (s->memory) {
        s->limits = pcre2_match_context_create(s->memory);
        s->found = pcre2_match_data_create(1, s->memory);
    }
    if (!s->limits || !s->found) {
        pattern_search_free(s);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    (void)pcre2_set_heap_limit(s->limits, MAX_HEAP_KIB);
    *out_search = s;
    return CLG_OK;
}

void pattern_search_free(pattern_search *s)
{
    if (!s) return;
    pcre2_match_data_free(s->found);
    pcre2_match_context_free(s->limits);
    pcre2_general_context_free(s->memory);
    memory_free(s);
}

/* ---- matching -------------------------------------------------------------------------------- */

/* Finds a string in bytes; returns where, n_bytes if it is not there. */
static size_t find_string(const pattern *p, const char *text, size_t n_bytes, size_t at)
{
    while (at < n_bytes && n_bytes - at >= p->string_bytes) {
        const char *hit = memchr(text + at, p->string[0], n_bytes - at - p->string_bytes + 1);
        if (!hit) break;
        at = (size_t)(hit - text);
        if (memcmp(hit, p->string, p->string_bytes) == 0) return at;
        at++;
    }
    return n_bytes;
}

/* Finds a match that starts at one of n_starts bytes from `at` on, in n_steps for each start;
 * returns PCRE2's code. */
static int match_from(const pattern *p, pattern_search *s, const pattern_cursor *c, size_t at,
                      size_t n_starts, size_t n_steps)
{
    PCRE2_SPTR text = (PCRE2_SPTR)c->text;
    (void)pcre2_set_match_limit(s->limits, (uint32_t)n_steps);
    (void)pcre2_set_offset_limit(s->limits, at + n_starts - 1);
    const int code =
        pcre2_match(p->code, text, c->n_bytes, at, PCRE2_NO_UTF_CHECK, s->found, s->limits);
    return code != PCRE2_ERROR_JIT_STACKLIMIT
               ? code
               : pcre2_match(p->code, text, c->n_bytes, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                             s->found, s->limits);
}

/* Returns the start of the first character from byte `at` on. */
static size_t char_from(const pattern_cursor *c, size_t at)
{
    while (at < c->n_bytes && utf8_continues(c->text[at])) at++;
    return at;
}

/* As match_from, but start by start, with more steps for those that take them. */
static int match_each(const pattern *p, pattern_search *s, const pattern_cursor *c, size_t at,
                      size_t n_starts)
{
    const size_t n_most = (MAX_STEPS - MIN_STEPS) / STEPS_PER_BYTE;
    const size_t most = MIN_STEPS + STEPS_PER_BYTE * (c->n_bytes < n_most ? c->n_bytes : n_most);
    const size_t end = at + n_starts;
    int code = PCRE2_ERROR_NOMATCH;
    for (; at < end && at <= c->n_bytes && code == PCRE2_ERROR_NOMATCH; at = char_from(c, at + 1)) {
        code = match_from(p, s, c, at, 1, FEW_STEPS);
        for (size_t n = FEW_STEPS; code == PCRE2_ERROR_MATCHLIMIT && n < most;) {
            n = n * STEPS_FACTOR < most ? n * STEPS_FACTOR : most;
            if (n > s->n_steps_left) return code;
            s->n_steps_left -= n;
            code = match_from(p, s, c, at, 1, n);
        }
    }
    return code;
}

/* Finds an expression; sets *out_found. */
static clg_status find_regex(const pattern *p, pattern_search *s, const pattern_cursor *c,
                             bool *out_found)
{
    PCRE2_UCHAR reason[160] = "";
    int code = PCRE2_ERROR_NOMATCH;
    for (size_t at = c->at, n = FEW_STARTS; at <= c->n_bytes && code == PCRE2_ERROR_NOMATCH;) {
        if (n > c->n_bytes + 1 - at) n = c->n_bytes + 1 - at;
        code = match_from(p, s, c, at, n, FEW_STEPS);
        if (code == PCRE2_ERROR_MATCHLIMIT) code = match_each(p, s, c, at, n);
        at = at + n > c->n_bytes ? at + n : char_from(c, at + n);
        n *= 2;
    }
    *out_found = code >= 0;
    if (code >= 0 || code == PCRE2_ERROR_NOMATCH) return CLG_OK;
    if (code == PCRE2_ERROR_NOMEMORY) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    (void)pcre2_get_error_message(code, reason, sizeof reason);
    return error_set(CLG_ERROR_DATA, "a regular expression of the tokenizer: %s",
                     (const char *)reason);
}

clg_status pattern_next(const pattern *p, pattern_search *s, pattern_cursor *c, bool *out_found,
                        size_t *out_start, size_t *out_end)
{
    *out_found = false;
    if (p->string) {
        *out_start = find_string(p, c->text, c->n_bytes, c->at);
        *out_end = *out_start + p->string_bytes;
        *out_found = *out_start < c->n_bytes;
        if (*out_found) c->at = *out_end;
        return CLG_OK;
    }
    for (;;) {
        if (c->at > c->n_bytes) return CLG_OK;
        CLG_TRY(find_regex(p, s, c, out_found));
        if (!*out_found) return CLG_OK;
        const PCRE2_SIZE *range = pcre2_get_ovector_pointer(s->found);
        *out_start = range[0];
        *out_end = range[1];
        if (range[0] < range[1] || !c->is_started || c->last_end != range[1]) break;
        /* An empty match where the last one ended is not another one. */
        *out_found = false;
        c->at += c->at < c->n_bytes ? utf8_length(c->text[c->at]) : 1;
    }
    c->at = c->last_end = *out_end;
    c->is_started = true;
    return CLG_OK;
}
