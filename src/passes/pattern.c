/* SPDX-License-Identifier: Apache-2.0
 *
 * Matches patterns by recursive descent over the text and the graph. If the operands of a
 * commutative operator do not match in the written order, the swapped one is tried. See pattern.h.
 */
#include "passes/pattern.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define MAX_OPERANDS 3
#define TOLERANCE 1e-3

value_id pattern_value(const pattern_match *m, char letter) { return m->values[letter - 'a']; }
double pattern_number(const pattern_match *m, char letter) { return m->numbers[letter - 'a']; }

static const char *skip_blanks(const char *at)
{
    while (*at == ' ') at++;
    return at;
}

/* Returns the end of the expression that begins at `at`. */
static const char *skip_expression(const char *at)
{
    int depth = 0;
    for (; *at && (depth > 0 || !strchr(",;)", *at)); at++) depth += (*at == '(') - (*at == ')');
    return at;
}

static bool matches_number(const char *at, double number, pattern_match *m)
{
    if (*at == '#') {
        m->numbers[at[1] - 'a'] = number;
        return true;
    }
    const double want = text_decimal(at, NULL);
    return fabs(number - want) <= TOLERANCE * fmax(fabs(want), 1e-3);
}

static bool is_number(const char *at)
{
    return *at == '#' || *at == '-' || isdigit((unsigned char)*at);
}

static bool matches(const graph_info *s, const char *at, value_id v, pattern_match *m);

/* Returns whether attribute min or max of a Clip before opset 11 matches the number at `at`. */
static bool matches_attribute(const node *n, size_t operand, const char *at, pattern_match *m)
{
    static const char *const names[] = {"", "min", "max"};
    if (!node_is(n, "Clip") || operand == 0 || operand > 2 || !node_attribute(n, names[operand]))
        return false;
    return matches_number(at, (double)node_float(n, names[operand], 0), m);
}

static bool matches_operands(const graph_info *s, const node *n, const char *const *operands,
                             size_t n_operands, bool swapped, pattern_match *m)
{
    for (size_t i = 0; i < n_operands; i++) {
        const size_t k = swapped ? n_operands - 1 - i : i;
        const bool fits =
            k < n->n_inputs ? n->inputs[k] != VALUE_NONE && matches(s, operands[i], n->inputs[k], m)
                            : matches_attribute(n, k, operands[i], m);
        if (!fits) return false;
    }
    return true;
}

static bool has_operands(const node *n, size_t n_operands)
{
    if (node_is(n, "Clip")) return n->n_inputs <= n_operands;
    if (node_is(n, "ReduceMean")) return n->n_inputs >= n_operands;
    return n->n_inputs == n_operands;
}

static bool matches_node(const graph_info *s, const char *at, node_id id, pattern_match *m)
{
    const char *operands[MAX_OPERANDS] = {NULL}, *open = strchr(at, '(');
    const node *n = &s->graph->nodes[id];
    const size_t length = (size_t)(open - at);
    size_t n_operands = 0;
    if (n->removed || n->domain[0] != '\0' || strlen(n->op_type) != length ||
        strncmp(n->op_type, at, length) != 0 || m->n_nodes == PATTERN_MAX_NODES)
        return false;
    for (at = open; n_operands < MAX_OPERANDS && (*at == '(' || *at == ',');
         at = skip_expression(operands[n_operands++]))
        operands[n_operands] = skip_blanks(at + 1);
    if (!has_operands(n, n_operands)) return false;
    m->nodes[m->n_nodes++] = id;
    const bool commutes = node_is(n, "Add") || node_is(n, "Mul");
    const pattern_match before = *m;
    if (matches_operands(s, n, operands, n_operands, false, m)) return true;
    *m = before;
    return commutes && matches_operands(s, n, operands, n_operands, true, m);
}

/* Returns whether v matches the expression at `at`, and records values and nodes in m. */
static bool matches(const graph_info *s, const char *at, value_id v, pattern_match *m)
{
    double number;
    if (is_number(at)) return graph_info_number(s, v, &number) && matches_number(at, number, m);
    if (isupper((unsigned char)*at)) {
        const node_id n = v < s->n_values ? s->graph->values[v].producer : NODE_NONE;
        return n != NODE_NONE && s->graph->nodes[n].outputs[0] == v && matches_node(s, at, n, m);
    }
    value_id *bound = &m->values[*at - 'a'];
    if (*bound == VALUE_NONE) *bound = v;
    return *bound == v;
}

bool pattern_find(const graph_info *s, const char *pattern, node_id root, pattern_match *m)
{
    m->n_nodes = 0;
    for (int i = 0; i < 26; i++) m->values[i] = VALUE_NONE;
    if (!matches_node(s, pattern, root, m)) return false;
    for (const char *at = skip_expression(pattern); *at == ';'; at = skip_expression(at)) {
        const char *letter = skip_blanks(at + 1);
        at = skip_blanks(strchr(letter, '=') + 1);
        if (!matches(s, at, pattern_value(m, *letter), m)) return false;
    }
    return true;
}
