/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses formulas (formula.h), and adds the nodes that compute them. Formulas are part of the
 * program: a fault in one is an internal error, which tests find.
 *
 *     formula    = { name "=" sum ";" } comparison
 *     comparison = sum [ ( "<" | "<=" | ">" | ">=" | "==" ) sum ]
 *     sum        = product { ( "+" | "-" ) product }
 *     product    = factor { ( "*" | "/" ) factor }
 *     factor     = number | name | operator "(" comparison { "," comparison } ")"
 *                | "(" comparison ")" | "-" factor
 */
#include "graph/formula.h"

#include "base/strbuf.h"

#include <ctype.h>
#include <string.h>

enum { MAX_DEFINITIONS = 4, MAX_NAME = 16, MAX_ARGUMENTS = 3, MAX_NESTING = 16 };

typedef struct definition {
    char name[MAX_NAME];
    value_id value;
} definition;

typedef struct parser {
    const formula_nodes *nodes;
    const char *formula, *at;
    definition definitions[MAX_DEFINITIONS];
    size_t n_definitions;
    int depth;
} parser;

static value_id parse_comparison(parser *p);

static value_id fail(parser *p, const char *what)
{
    if (*p->nodes->status == CLG_OK)
        *p->nodes->status = error_set(CLG_ERROR_INTERNAL, "%s in the formula '%s' at '%s'", what,
                                      p->formula, p->at);
    return VALUE_NONE;
}

static void skip_spaces(parser *p)
{
    while (*p->at == ' ') p->at++;
}

/* Skips a word if it is next. */
static bool take(parser *p, const char *word)
{
    skip_spaces(p);
    const size_t n = strlen(word);
    if (strncmp(p->at, word, n) != 0) return false;
    p->at += n;
    return true;
}

static bool take_name(parser *p, char name[MAX_NAME])
{
    size_t n = 0;
    skip_spaces(p);
    while (isalnum((unsigned char)p->at[n])) n++;
    if (n == 0 || n >= MAX_NAME || isdigit((unsigned char)p->at[0])) return false;
    memcpy(name, p->at, n);
    name[n] = '\0';
    p->at += n;
    return true;
}

static value_id add_pair(parser *p, const char *op_type, value_id a, value_id b)
{
    return p->nodes->add(p->nodes->user, op_type, 2, (value_id[]){a, b});
}

static value_id named(parser *p, const char *name)
{
    for (size_t i = 0; i < p->n_definitions; i++)
        if (strcmp(p->definitions[i].name, name) == 0) return p->definitions[i].value;
    const value_id v = p->nodes->find(p->nodes->user, name);
    return v == VALUE_NONE ? fail(p, "an unknown name") : v;
}

static value_id parse_call(parser *p, const char *op_type)
{
    value_id inputs[MAX_ARGUMENTS];
    size_t n = 0;
    do {
        if (n == MAX_ARGUMENTS) return fail(p, "too many arguments");
        inputs[n++] = parse_comparison(p);
    } while (take(p, ","));
    if (!take(p, ")")) return fail(p, "a missing )");
    return p->nodes->add(p->nodes->user, op_type, n, inputs);
}

static value_id parse_factor(parser *p)
{
    char name[MAX_NAME];
    skip_spaces(p);
    if (isdigit((unsigned char)*p->at))
        return p->nodes->number(p->nodes->user, text_decimal(p->at, &p->at));
    if (take(p, "-")) {
        const value_id v = parse_factor(p);
        return p->nodes->add(p->nodes->user, "Neg", 1, &v);
    }
    if (take(p, "(")) {
        const value_id v = parse_comparison(p);
        return take(p, ")") ? v : fail(p, "a missing )");
    }
    if (!take_name(p, name)) return fail(p, "an unexpected character");
    return take(p, "(") ? parse_call(p, name) : named(p, name);
}

/* Parses a sequence of operands of one of the levels of precedence, from the left. */
static value_id parse_level(parser *p, bool is_product)
{
    static const char *const words[2][2] = {{"+", "-"}, {"*", "/"}};
    static const char *const ops[2][2] = {{"Add", "Sub"}, {"Mul", "Div"}};
    value_id left = is_product ? parse_factor(p) : parse_level(p, true);
    for (;;) {
        const bool first = take(p, words[is_product][0]);
        if (!first && !take(p, words[is_product][1])) return left;
        const value_id right = is_product ? parse_factor(p) : parse_level(p, true);
        left = add_pair(p, ops[is_product][first ? 0 : 1], left, right);
    }
}

static value_id parse_comparison(parser *p)
{
    static const struct {
        const char *word, *op;
    } rows[] = {{"<=", "LessOrEqual"},
                {">=", "GreaterOrEqual"},
                {"==", "Equal"},
                {"<", "Less"},
                {">", "Greater"}};
    if (*p->nodes->status != CLG_OK) return VALUE_NONE;
    if (++p->depth > MAX_NESTING) return fail(p, "too many parentheses");
    value_id v = parse_level(p, false);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!take(p, rows[i].word)) continue;
        const value_id right = parse_level(p, false);
        v = add_pair(p, rows[i].op, v, right);
        break;
    }
    p->depth--;
    return v;
}

/* Parses "name = sum ;" if it is next. */
static bool parse_definition(parser *p)
{
    definition d;
    const char *start = p->at;
    if (!take_name(p, d.name) || !take(p, "=") || *p->at == '=') {
        p->at = start;
        return false;
    }
    d.value = parse_level(p, false);
    if (!take(p, ";") || p->n_definitions == MAX_DEFINITIONS)
        (void)fail(p, "a wrong definition");
    else
        p->definitions[p->n_definitions++] = d;
    return *p->nodes->status == CLG_OK;
}

value_id formula_add(const formula_nodes *nodes, const char *formula)
{
    parser p = {.nodes = nodes, .formula = formula, .at = formula};
    while (parse_definition(&p)) continue;
    const value_id v = parse_comparison(&p);
    skip_spaces(&p);
    return *p.at == '\0' ? v : fail(&p, "an unexpected rest");
}
