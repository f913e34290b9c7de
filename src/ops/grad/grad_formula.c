/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the formulas of gradients (grad_rule.h), and adds the nodes that compute them. Formulas
 * are part of the program: a fault in one is an internal error, which tests find.
 *
 *     formula    = { name "=" sum ";" } comparison
 *     comparison = sum [ ( "<" | "<=" | ">" | ">=" | "==" ) sum ]
 *     sum        = product { ( "+" | "-" ) product }
 *     product    = factor { ( "*" | "/" ) factor }
 *     factor     = number | name | operator "(" comparison { "," comparison } ")"
 *                | "(" comparison ")" | "-" factor
 */
#include "base/strbuf.h"
#include "ops/grad/grad_rule.h"
#include "ops/pointwise/pointwise.h"

#include <ctype.h>
#include <string.h>

enum { MAX_DEFINITIONS = 4, MAX_NAME = 16, MAX_ARGUMENTS = 3, MAX_NESTING = 16 };

#define PI 3.14159265358979323846

typedef struct definition {
    char name[MAX_NAME];
    value_id value;
} definition;

typedef struct parser {
    grad_node *node;
    const char *formula, *at;
    value_id g, y;
    definition definitions[MAX_DEFINITIONS];
    size_t n_definitions;
    int depth;
} parser;

static value_id parse_comparison(parser *p);

static value_id fail(parser *p, const char *what)
{
    if (p->node->status == CLG_OK)
        p->node->status =
            error_set(CLG_ERROR_INTERNAL, "%s in the formula '%s' at '%s' of the gradient of %s",
                      what, p->formula, p->at, p->node->node.op_type);
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

/* ---- names ----------------------------------------------------------------------------------- */

/* Returns input i in the dtype of output 0. */
static value_id input_of(parser *p, size_t i)
{
    grad_node *c = p->node;
    const value_id v = grad_in(c, i);
    const clg_dtype dtype = grad_fact(c, grad_out(c, 0))->dtype;
    if (v == VALUE_NONE) return fail(p, "an omitted input");
    if (grad_fact(c, v)->dtype == dtype || grad_fact(c, v)->dtype == CLG_BOOL) return v;
    return grad_set_int(c, GRAD_ADD(c, "Cast", v), "to", dtype);
}

/* Returns whether the operator has this attribute among the scalars of its instruction. */
static bool find_scalar(const grad_node *c, const char *name, double *out)
{
    if (!pointwise_is(&c->node)) return false;
    const pointwise_op *op = c->row->param;
    for (size_t i = 0; i < 2 && op->scalars[i].attribute; i++) {
        if (strcmp(op->scalars[i].attribute, name) != 0) continue;
        *out = (double)node_float(&c->node, name, op->scalars[i].fallback);
        return true;
    }
    return false;
}

static value_id named(parser *p, const char *name)
{
    double number;
    grad_node *c = p->node;
    for (size_t i = 0; i < p->n_definitions; i++)
        if (strcmp(p->definitions[i].name, name) == 0) return p->definitions[i].value;
    if (strcmp(name, "g") == 0) return p->g;
    if (strcmp(name, "y") == 0) return p->y;
    if (strcmp(name, "x") == 0) return input_of(p, 0);
    if (strcmp(name, "x1") == 0) return input_of(p, 1);
    if (strcmp(name, "x2") == 0) return input_of(p, 2);
    if (strcmp(name, "pi") == 0) return grad_number(c, PI);
    if (find_scalar(c, name, &number)) return grad_number(c, number);
    return fail(p, "an unknown name");
}

/* ---- expressions ----------------------------------------------------------------------------- */

static value_id parse_call(parser *p, const char *op_type)
{
    value_id inputs[MAX_ARGUMENTS];
    size_t n = 0;
    do {
        if (n == MAX_ARGUMENTS) return fail(p, "too many arguments");
        inputs[n++] = parse_comparison(p);
    } while (take(p, ","));
    if (!take(p, ")")) return fail(p, "a missing )");
    return grad_add(p->node, op_type, n, inputs);
}

static value_id parse_factor(parser *p)
{
    char name[MAX_NAME];
    skip_spaces(p);
    if (isdigit((unsigned char)*p->at)) return grad_number(p->node, text_decimal(p->at, &p->at));
    if (take(p, "-")) {
        const value_id v = parse_factor(p);
        return GRAD_ADD(p->node, "Neg", v);
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
        left = GRAD_ADD(p->node, ops[is_product][first ? 0 : 1], left, right);
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
    if (p->node->status != CLG_OK) return VALUE_NONE;
    if (++p->depth > MAX_NESTING) return fail(p, "too many parentheses");
    value_id v = parse_level(p, false);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!take(p, rows[i].word)) continue;
        const value_id right = parse_level(p, false);
        v = GRAD_ADD(p->node, rows[i].op, v, right);
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
    return p->node->status == CLG_OK;
}

value_id grad_formula_of(grad_node *c, const char *formula, value_id g, value_id y)
{
    parser p = {.node = c, .formula = formula, .at = formula, .g = g, .y = y};
    while (parse_definition(&p)) continue;
    const value_id v = parse_comparison(&p);
    skip_spaces(&p);
    if (*p.at != '\0') return fail(&p, "an unexpected rest");
    return v;
}

value_id grad_formula(grad_node *c, const char *formula)
{
    return grad_formula_of(c, formula, grad_cotangent(c, 0), grad_out(c, 0));
}
