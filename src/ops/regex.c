/* SPDX-License-Identifier: Apache-2.0
 *
 * A pattern becomes a program of a small machine (Thompson's construction), which walks the string in all states at
 * once. Jumps are relative, so that repeating a part is copying it. What a pattern captures and whether it is greedy
 * makes no difference to what it matches as a whole.
 */
#include "ops/regex.h"

#include "ops/strings.h"

#include <string.h>

#define MAX_DEPTH 200
#define MAX_INSTRUCTIONS 20000
#define MAX_REPEAT 1000
#define LAST_CHARACTER 0x10ffffu

typedef enum opcode {
    CODE_SET,   /* a character of a set */
    CODE_SPLIT, /* to a and to b */
    CODE_JUMP,  /* to a */
    CODE_BEGIN, /* of the text; of a line when a is 1 */
    CODE_END,
    CODE_WORD,     /* a boundary of words */
    CODE_NOT_WORD, /* none */
    CODE_MATCH
} opcode;

typedef struct instruction {
    opcode op;
    int32_t a, b; /* relative targets; CODE_SET: first range and how many */
    bool negated, folded;
} instruction;

typedef struct range {
    uint32_t first, last;
} range;

struct regex {
    instruction *code;
    size_t n_code, code_capacity;
    range *ranges;
    size_t n_ranges, range_capacity;
    uint32_t *states[2], *stack, *marks; /* while matching; states[0] is the block of all four */
    uint32_t mark;
};

enum { FLAG_FOLD = 1, FLAG_MULTILINE = 2, FLAG_DOT_ALL = 4 };

typedef struct parser {
    regex *r;
    const char *at, *pattern;
    int depth;
    unsigned flags;
} parser;

static clg_status bad(const parser *p, const char *what)
{
    return error_set(CLG_ERROR_INVALID_MODEL, "the regular expression '%.200s' is none: %s",
                     p->pattern, what);
}

static clg_status missing(const parser *p, const char *what)
{
    return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                     "the regular expression '%.200s' uses %s, which is not supported", p->pattern,
                     what);
}

/* ---- code ------------------------------------------------------------------------------------------------ */

static clg_status emit(parser *p, instruction i)
{
    regex *r = p->r;
    if (r->n_code >= MAX_INSTRUCTIONS) return bad(p, "it is too large");
    CLG_TRY(MEMORY_RESERVE(r->code, r->code_capacity, r->n_code + 1));
    r->code[r->n_code++] = i;
    return CLG_OK;
}

/* Puts an instruction in front of what was emitted since `at`. */
static clg_status insert(parser *p, size_t at, instruction i)
{
    regex *r = p->r;
    CLG_TRY(emit(p, i));
    memmove(r->code + at + 1, r->code + at, (r->n_code - 1 - at) * sizeof *r->code);
    r->code[at] = i;
    return CLG_OK;
}

static clg_status add_range(parser *p, uint32_t first, uint32_t last)
{
    regex *r = p->r;
    if (r->n_ranges >= MAX_INSTRUCTIONS) return bad(p, "it is too large");
    CLG_TRY(MEMORY_RESERVE(r->ranges, r->range_capacity, r->n_ranges + 1));
    r->ranges[r->n_ranges++] = (range){first, last};
    return CLG_OK;
}

/* A set of the ranges from `first` on. */
static clg_status emit_set(parser *p, size_t first, bool negated)
{
    return emit(p, (instruction){.op = CODE_SET,
                                 .a = (int32_t)first,
                                 .b = (int32_t)(p->r->n_ranges - first),
                                 .negated = negated,
                                 .folded = (p->flags & FLAG_FOLD) != 0});
}

static clg_status emit_character(parser *p, uint32_t c)
{
    const size_t first = p->r->n_ranges;
    CLG_TRY(add_range(p, c, c));
    return emit_set(p, first, false);
}

/* ---- classes --------------------------------------------------------------------------------------------- */

typedef struct named_class {
    const char *name;
    const char *ranges; /* pairs of characters */
} named_class;

static const named_class posix_classes[] = {{"alnum", "09AZaz"},
                                            {"alpha", "AZaz"},
                                            {"ascii", "\1\177"},
                                            {"blank", "\t\t  "},
                                            {"cntrl", "\1\37\177\177"},
                                            {"digit", "09"},
                                            {"graph", "!~"},
                                            {"lower", "az"},
                                            {"print", " ~"},
                                            {"punct", "!/:@[`{~"},
                                            {"space", "\t\r  "},
                                            {"upper", "AZ"},
                                            {"word", "09AZaz__"},
                                            {"xdigit", "09AFaf"}};

/* Adds ranges given as pairs of ASCII characters, or all that is outside of them. They are in ascending order. */
static clg_status add_pairs(parser *p, const char *pairs, bool negated)
{
    uint32_t from = 0;
    for (; *pairs; pairs += 2) {
        const uint32_t first = (uint32_t)pairs[0], last = (uint32_t)pairs[1];
        if (!negated)
            CLG_TRY(add_range(p, first, last));
        else if (first > from)
            CLG_TRY(add_range(p, from, first - 1));
        from = last + 1;
    }
    return negated ? add_range(p, from, LAST_CHARACTER) : CLG_OK;
}

/* \d \s \w and their opposites; false when c is none of them. */
static bool perl_class(char c, const char **out_pairs, bool *out_negated)
{
    *out_negated = c == 'D' || c == 'S' || c == 'W';
    switch (c | 0x20) {
    case 'd': *out_pairs = "09"; return true;
    case 's': *out_pairs = "\t\n\f\r  "; return true;
    case 'w': *out_pairs = "09AZ__az"; return true;
    default: return false;
    }
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') return (c | 0x20) - 'a' + 10;
    return -1;
}

static clg_status read_hex(parser *p, uint32_t *out)
{
    const bool braced = *p->at == '{';
    int digits = 0;
    *out = 0;
    if (braced) p->at++;
    for (; hex_digit(*p->at) >= 0 && (braced || digits < 2); digits++) {
        *out = *out * 16 + (uint32_t)hex_digit(*p->at++);
        if (*out > LAST_CHARACTER) return bad(p, "a character is too large");
    }
    if (digits == 0 || (!braced && digits < 2)) return bad(p, "\\x wants two digits");
    if (braced && *p->at++ != '}') return bad(p, "\\x{ has no end");
    return CLG_OK;
}

/* One character behind a backslash, which is passed. */
static clg_status read_escape(parser *p, uint32_t *out)
{
    const char c = *p->at;
    if (c == '\0') return bad(p, "a backslash ends it");
    if (c == 'x') {
        p->at++;
        return read_hex(p, out);
    }
    if (c == '0' || (c >= '1' && c <= '7' && p->at[1] >= '0' && p->at[1] <= '7')) {
        *out = 0;
        for (int i = 0; i < 3 && *p->at >= '0' && *p->at <= '7'; i++)
            *out = *out * 8 + (uint32_t)(*p->at++ - '0');
        return CLG_OK;
    }
    if (c >= '1' && c <= '9') return bad(p, "it refers back to a group");
    static const char letters[] = "afnrtv", meanings[] = "\a\f\n\r\t\v";
    const char *letter = strchr(letters, c);
    if (letter) {
        *out = (uint32_t)meanings[letter - letters];
        p->at++;
        return CLG_OK;
    }
    if (c == 'p' || c == 'P') return missing(p, "a class of Unicode characters (\\p)");
    if (c == 'C') return missing(p, "single bytes (\\C)");
    const bool is_letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
    if (is_letter) return bad(p, "a letter behind a backslash means nothing");
    *out = utf8_next(&p->at);
    return CLG_OK;
}

static clg_status posix_class(parser *p, bool *out_is_one)
{
    *out_is_one = false;
    if (p->at[0] != '[' || p->at[1] != ':') return CLG_OK;
    const char *name = p->at + 2, *end = strstr(name, ":]");
    if (!end) return CLG_OK;
    const bool negated = *name == '^';
    if (negated) name++;
    for (size_t i = 0; i < sizeof posix_classes / sizeof *posix_classes; i++) {
        const named_class *k = &posix_classes[i];
        if (strlen(k->name) != (size_t)(end - name) ||
            memcmp(k->name, name, (size_t)(end - name)) != 0)
            continue;
        p->at = end + 2;
        *out_is_one = true;
        return add_pairs(p, k->ranges, negated);
    }
    return bad(p, "a class between [: and :] has no such name");
}

static clg_status class_character(parser *p, uint32_t *out)
{
    if (*p->at == '\0') return bad(p, "a [ has no end");
    if (*p->at != '\\') {
        *out = utf8_next(&p->at);
        return CLG_OK;
    }
    p->at++;
    return read_escape(p, out);
}

/* Behind the [. */
static clg_status parse_class(parser *p)
{
    const size_t first_range = p->r->n_ranges;
    const bool negated = *p->at == '^';
    if (negated) p->at++;
    for (bool is_first = true; is_first || *p->at != ']'; is_first = false) {
        const char *pairs;
        bool is_posix, opposite;
        uint32_t first, last;
        CLG_TRY(posix_class(p, &is_posix));
        if (is_posix) continue;
        if (p->at[0] == '\\' && perl_class(p->at[1], &pairs, &opposite)) {
            p->at += 2;
            CLG_TRY(add_pairs(p, pairs, opposite));
            continue;
        }
        CLG_TRY(class_character(p, &first));
        last = first;
        if (p->at[0] == '-' && p->at[1] != ']' && p->at[1] != '\0') {
            p->at++;
            CLG_TRY(class_character(p, &last));
            if (last < first) return bad(p, "a range of characters goes backwards");
        }
        CLG_TRY(add_range(p, first, last));
    }
    p->at++;
    return emit_set(p, first_range, negated);
}

/* ---- atoms ------------------------------------------------------------------------------------------------- */

static clg_status parse_alternatives(parser *p);

/* Flags behind (?, up to : or ). *out_is_group: it was a colon. */
static clg_status parse_flags(parser *p, bool *out_is_group)
{
    bool on = true;
    for (;; p->at++) {
        unsigned flag = 0;
        switch (*p->at) {
        case 'i': flag = FLAG_FOLD; break;
        case 'm': flag = FLAG_MULTILINE; break;
        case 's': flag = FLAG_DOT_ALL; break;
        case 'U': break; /* lazy or greedy: the same matches */
        case '-': on = false; break;
        case ':':
        case ')': *out_is_group = *p->at++ == ':'; return CLG_OK;
        default: return bad(p, "(? is followed by something unknown");
        }
        p->flags = on ? p->flags | flag : p->flags & ~flag;
    }
}

/* Behind the (. */
static clg_status parse_group(parser *p)
{
    const unsigned flags = p->flags;
    bool is_group = true;
    if (p->at[0] == '?' && (p->at[1] == '<' || (p->at[1] == 'P' && p->at[2] == '<'))) {
        const char *end = strchr(p->at, '>');
        if (!end || strchr("=!", p->at[2])) return bad(p, "(?< is followed by no name");
        p->at = end + 1;
    } else if (p->at[0] == '?') {
        p->at++;
        CLG_TRY(parse_flags(p, &is_group));
    }
    if (!is_group) return CLG_OK; /* the flags hold to the end of the group around */
    if (++p->depth > MAX_DEPTH) return bad(p, "its groups are nested too deeply");
    CLG_TRY(parse_alternatives(p));
    p->depth--;
    if (*p->at != ')') return bad(p, "a ( has no end");
    p->at++;
    p->flags = flags;
    return CLG_OK;
}

static clg_status emit_plain(parser *p, opcode op)
{
    return emit(p, (instruction){.op = op, .a = (p->flags & FLAG_MULTILINE) != 0});
}

/* Behind the backslash. */
static clg_status parse_escape(parser *p)
{
    const char *pairs;
    bool negated;
    uint32_t c;
    const size_t first = p->r->n_ranges;
    if (perl_class(*p->at, &pairs, &negated)) {
        p->at++;
        CLG_TRY(add_pairs(p, pairs, negated));
        return emit_set(p, first, false);
    }
    switch (*p->at) {
    case 'b': p->at++; return emit_plain(p, CODE_WORD);
    case 'B': p->at++; return emit_plain(p, CODE_NOT_WORD);
    case 'A': p->at++; return emit(p, (instruction){.op = CODE_BEGIN});
    case 'z': p->at++; return emit(p, (instruction){.op = CODE_END});
    default: break;
    }
    CLG_TRY(read_escape(p, &c));
    return emit_character(p, c);
}

static clg_status parse_atom(parser *p)
{
    switch (*p->at) {
    case '(': p->at++; return parse_group(p);
    case '[': p->at++; return parse_class(p);
    case '\\': p->at++; return parse_escape(p);
    case '^': p->at++; return emit_plain(p, CODE_BEGIN);
    case '$': p->at++; return emit_plain(p, CODE_END);
    case '.': {
        const size_t first = p->r->n_ranges;
        p->at++;
        if (!(p->flags & FLAG_DOT_ALL)) CLG_TRY(add_range(p, '\n', '\n'));
        return emit_set(p, first, true);
    }
    case '*':
    case '+':
    case '?': return bad(p, "nothing is there to be repeated");
    default: return emit_character(p, utf8_next(&p->at));
    }
}

/* ---- repeating ----------------------------------------------------------------------------------------------- */

/* "{2}", "{2,}" or "{2,5}" at p->at; anything else is text. most < 0: no end. */
static bool read_counts(parser *p, int *least, int *most)
{
    const char *s = p->at + 1;
    int numbers[2] = {-1, -1}, n = 0;
    for (; n < 2; n++) {
        for (; *s >= '0' && *s <= '9'; s++) {
            numbers[n] = (numbers[n] < 0 ? 0 : numbers[n]) * 10 + (*s - '0');
            if (numbers[n] > 10 * MAX_REPEAT) numbers[n] = 10 * MAX_REPEAT;
        }
        if (n == 0 && numbers[0] < 0) return false;
        if (*s != ',' || n == 1) break;
        s++;
    }
    if (*s != '}') return false;
    p->at = s + 1;
    *least = numbers[0];
    *most = n == 0 ? numbers[0] : numbers[1];
    return true;
}

/* The code from `start` on, n instructions, once more. */
static clg_status copy_code(parser *p, size_t start, size_t n)
{
    for (size_t i = 0; i < n; i++) CLG_TRY(emit(p, p->r->code[start + i]));
    return CLG_OK;
}

/* What was emitted since `start`, least to most times. */
static clg_status repeat(parser *p, size_t start, int least, int most)
{
    const size_t n = p->r->n_code - start;
    const int32_t over = (int32_t)n + 1;
    if (least > MAX_REPEAT || most > MAX_REPEAT) return bad(p, "it repeats more than 1000 times");
    if (most >= 0 && most < least) return bad(p, "a count of repeats goes backwards");
    if (n == 0) return CLG_OK;
    for (int i = 1; i < least; i++) CLG_TRY(copy_code(p, start, n));
    if (most < 0) {
        if (least > 0) /* once more the last one */
            return emit(p, (instruction){.op = CODE_SPLIT, .a = -(int32_t)n, .b = 1});
        CLG_TRY(insert(p, start, (instruction){.op = CODE_SPLIT, .a = 1, .b = over + 1}));
        return emit(p, (instruction){.op = CODE_JUMP, .a = -over});
    }
    if (least == 0 && most == 0) {
        p->r->n_code = start;
        return CLG_OK;
    }
    if (least == 0) CLG_TRY(insert(p, start, (instruction){.op = CODE_SPLIT, .a = 1, .b = over}));
    const size_t part = least == 0 ? start + 1 : start;
    for (int i = least == 0 ? 1 : least; i < most; i++) {
        CLG_TRY(emit(p, (instruction){.op = CODE_SPLIT, .a = 1, .b = over}));
        CLG_TRY(copy_code(p, part, n));
    }
    return CLG_OK;
}

/* (?flags) between an atom and what repeats it are passed, as RE2 does. */
static clg_status pass_flags(parser *p)
{
    bool is_group;
    while (p->at[0] == '(' && p->at[1] == '?' && p->at[2 + strspn(p->at + 2, "imsU-")] == ')') {
        p->at += 2;
        CLG_TRY(parse_flags(p, &is_group));
    }
    return CLG_OK;
}

static clg_status parse_repeated(parser *p)
{
    const size_t start = p->r->n_code;
    int least = 1, most = 1;
    CLG_TRY(parse_atom(p));
    CLG_TRY(pass_flags(p));
    switch (*p->at) {
    case '*': least = 0, most = -1, p->at++; break;
    case '+': most = -1, p->at++; break;
    case '?': least = 0, p->at++; break;
    case '{':
        if (!read_counts(p, &least, &most)) return CLG_OK;
        break;
    default: return CLG_OK;
    }
    if (*p->at == '?') p->at++;
    CLG_TRY(repeat(p, start, least, most));
    if (*p->at == '*' || *p->at == '+' || *p->at == '?') return bad(p, "a repeat is repeated");
    return CLG_OK;
}

/* \Q...\E: text as it is. */
static clg_status parse_quoted(parser *p)
{
    p->at += 2;
    while (*p->at && !(p->at[0] == '\\' && p->at[1] == 'E'))
        CLG_TRY(emit_character(p, utf8_next(&p->at)));
    if (*p->at) p->at += 2;
    return CLG_OK;
}

static clg_status parse_alternatives(parser *p)
{
    regex *r = p->r;
    size_t start = r->n_code, last_jump = SIZE_MAX;
    for (;;) {
        while (*p->at && *p->at != '|' && *p->at != ')') {
            if (p->at[0] == '\\' && p->at[1] == 'Q')
                CLG_TRY(parse_quoted(p));
            else
                CLG_TRY(parse_repeated(p));
        }
        if (*p->at != '|') break;
        p->at++;
        const int32_t n = (int32_t)(r->n_code - start);
        CLG_TRY(insert(p, start, (instruction){.op = CODE_SPLIT, .a = 1, .b = n + 2}));
        /* Jumps to the end are chained until the end is known. */
        const int32_t back = last_jump == SIZE_MAX ? 0 : (int32_t)(r->n_code - last_jump);
        last_jump = r->n_code;
        CLG_TRY(emit(p, (instruction){.op = CODE_JUMP, .a = back}));
        start = r->n_code;
    }
    while (last_jump != SIZE_MAX) {
        instruction *jump = &r->code[last_jump];
        const int32_t back = jump->a;
        jump->a = (int32_t)(r->n_code - last_jump);
        last_jump = back ? last_jump - (size_t)back : SIZE_MAX;
    }
    return CLG_OK;
}

static clg_status parse(parser *p)
{
    regex *r = p->r;
    CLG_TRY(parse_alternatives(p));
    if (*p->at) return bad(p, "a ) has no beginning");
    CLG_TRY(emit(p, (instruction){.op = CODE_MATCH}));
    r->states[0] = memory_zalloc(4 * (r->n_code + 1), sizeof(uint32_t));
    if (!r->states[0]) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    r->states[1] = r->states[0] + r->n_code + 1;
    r->stack = r->states[1] + r->n_code + 1;
    r->marks = r->stack + r->n_code + 1;
    return CLG_OK;
}

clg_status regex_create(const char *pattern, regex **out_regex)
{
    regex *r = memory_zalloc(1, sizeof *r);
    *out_regex = NULL;
    if (!r) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    parser p = {.r = r, .at = pattern, .pattern = pattern};
    const clg_status status = parse(&p);
    if (status == CLG_OK)
        *out_regex = r;
    else
        regex_free(r);
    return status;
}

void regex_free(regex *r)
{
    if (!r) return;
    memory_free(r->code);
    memory_free(r->ranges);
    memory_free(r->states[0]);
    memory_free(r);
}

/* ---- matching --------------------------------------------------------------------------------------------------- */

static bool in_ranges(const regex *r, const instruction *i, uint32_t c)
{
    for (int32_t k = 0; k < i->b; k++) {
        const range *x = &r->ranges[i->a + k];
        if (c >= x->first && c <= x->last) return true;
    }
    return false;
}

static bool is_in_set(const regex *r, const instruction *i, uint32_t c)
{
    bool in = in_ranges(r, i, c);
    if (!in && i->folded) in = in_ranges(r, i, utf8_lower(c)) || in_ranges(r, i, utf8_upper(c));
    return in != i->negated;
}

static bool is_word_character(uint32_t c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
}

/* Where the machine stands: the characters before and after; 0 is the end of the text. */
typedef struct standing {
    uint32_t before, after;
    bool at_begin;
} standing;

static bool holds(const instruction *i, const standing *w)
{
    const bool edge = is_word_character(w->before) != is_word_character(w->after);
    switch (i->op) {
    case CODE_BEGIN: return w->at_begin || (i->a && w->before == '\n');
    case CODE_END: return w->after == 0 || (i->a && w->after == '\n');
    case CODE_WORD: return edge;
    case CODE_NOT_WORD: return !edge;
    default: return false;
    }
}

/* Adds a state and all that can be reached from it without a character; each once. */
static void reach(regex *r, uint32_t from, const standing *w, uint32_t *states, size_t *n)
{
    size_t n_stack = 0;
    if (r->marks[from] == r->mark) return;
    r->marks[from] = r->mark;
    r->stack[n_stack++] = from;
    while (n_stack > 0) {
        const uint32_t at = r->stack[--n_stack];
        const instruction *i = &r->code[at];
        int32_t to[2] = {0, 0};
        if (i->op == CODE_SET || i->op == CODE_MATCH) {
            states[(*n)++] = at;
            continue;
        }
        if (i->op == CODE_SPLIT || i->op == CODE_JUMP) {
            to[0] = i->a;
            to[1] = i->op == CODE_SPLIT ? i->b : 0;
        } else if (holds(i, w)) {
            to[0] = 1;
        }
        for (int k = 0; k < 2; k++) {
            const uint32_t next = (uint32_t)((int32_t)at + to[k]);
            if (to[k] == 0 || r->marks[next] == r->mark) continue;
            r->marks[next] = r->mark;
            r->stack[n_stack++] = next;
        }
    }
}

bool regex_matches(regex *r, const char *string)
{
    const char *s = string;
    size_t n_now = 0, n_next;
    uint32_t *now = r->states[0], *next = r->states[1], c = utf8_next(&s);
    standing w = {.after = c, .at_begin = true};
    memset(r->marks, 0, r->n_code * sizeof *r->marks);
    r->mark = 1;
    reach(r, 0, &w, now, &n_now);
    while (c != 0 && n_now > 0) {
        const uint32_t after = utf8_next(&s);
        n_next = 0;
        r->mark++;
        w = (standing){.before = c, .after = after};
        for (size_t i = 0; i < n_now; i++)
            if (r->code[now[i]].op == CODE_SET && is_in_set(r, &r->code[now[i]], c))
                reach(r, now[i] + 1, &w, next, &n_next);
        uint32_t *swap = now;
        now = next;
        next = swap;
        n_now = n_next;
        c = after;
    }
    for (size_t i = 0; i < n_now; i++)
        if (r->code[now[i]].op == CODE_MATCH) return true;
    return false;
}
