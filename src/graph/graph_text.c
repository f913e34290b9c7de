/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats names from untrusted model files for messages: replaces control characters and invalid
 * UTF-8 by '?', and truncates long names.
 */
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

/* Returns the length in bytes of the UTF-8 sequence at s; 0 when it is invalid (overlong forms,
 * surrogates, code points above U+10FFFF included). */
static size_t utf8_length(const unsigned char *s)
{
    if (s[0] < 0x80) return 1;
    size_t n = s[0] >= 0xC2 && s[0] <= 0xDF   ? 2
               : (s[0] & 0xF0) == 0xE0        ? 3
               : s[0] >= 0xF0 && s[0] <= 0xF4 ? 4
                                              : 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80) return 0;
    }
    if (n == 3 && ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F))) return 0;
    if (n == 4 && ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))) return 0;
    return n;
}

/* Copies name into buffer[n_bytes], with '?' in place of control characters and invalid UTF-8. A
 * name that does not fit is truncated and ends in "...". */
static void copy_printable(const char *name, char *buffer, size_t n_bytes)
{
    const unsigned char *from = (const unsigned char *)name;
    size_t used = 0, safe = 0; /* safe: last position where "..." fits */
    while (*from) {
        size_t n = utf8_length(from);
        bool is_printable = n > 1 ? !(from[0] == 0xC2 && from[1] < 0xA0)
                                  : n == 1 && from[0] >= 0x20 && from[0] != 0x7F;
        size_t n_out = is_printable ? n : 1;
        if (used + n_out + 1 > n_bytes) {
            memcpy(buffer + safe, "...", 4);
            return;
        }
        if (is_printable) {
            memcpy(buffer + used, from, n);
        } else {
            buffer[used] = '?';
        }
        used += n_out;
        if (used + 4 <= n_bytes) safe = used;
        from += n > 0 ? n : 1;
    }
    buffer[used] = '\0';
}

const char *name_text(const char *name, char buffer[NAME_TEXT_BYTES])
{
    copy_printable(name, buffer, NAME_TEXT_BYTES);
    return buffer;
}

const char *operator_text(const char *domain, const char *op_type, char buffer[NAME_TEXT_BYTES])
{
    char whole[2 * NAME_TEXT_BYTES];
    (void)snprintf(whole, sizeof whole, "%s%s%s", domain, domain[0] ? "." : "", op_type);
    copy_printable(whole, buffer, NAME_TEXT_BYTES);
    return buffer;
}

const char *node_text(const node *n, char buffer[NODE_TEXT_BYTES])
{
    char label[NAME_TEXT_BYTES], operator_name[NAME_TEXT_BYTES];
    (void)operator_text(n->domain, n->op_type, operator_name);
    if (!n->label[0])
        (void)snprintf(buffer, NODE_TEXT_BYTES, "an unnamed node (%s, opset %lld)", operator_name,
                       (long long)n->opset);
    else
        (void)snprintf(buffer, NODE_TEXT_BYTES, "%s '%s' (%s, opset %lld)",
                       n->name[0] ? "node" : "the node of", name_text(n->label, label),
                       operator_name, (long long)n->opset);
    return buffer;
}

/* Returns the index of v in the list, n if it is not there. */
static size_t index_of(const value_id *values, size_t n, value_id v)
{
    size_t i = 0;
    while (i < n && values[i] != v) i++;
    return i;
}

const char *value_text(const graph *g, value_id v, char buffer[VALUE_TEXT_BYTES])
{
    char text[NODE_TEXT_BYTES];
    (void)snprintf(buffer, VALUE_TEXT_BYTES, "an unnamed value");
    if (v >= g->n_values) return buffer;
    if (g->values[v].name[0]) {
        (void)snprintf(buffer, VALUE_TEXT_BYTES, "'%s'", name_text(g->values[v].name, text));
        return buffer;
    }
    const bool is_made = g->values[v].producer != NODE_NONE;
    for (size_t i = is_made ? g->values[v].producer : 0; i < g->n_nodes; i++) {
        const node *n = &g->nodes[i];
        const size_t count = is_made ? n->n_outputs : n->n_inputs;
        const size_t at = index_of(is_made ? n->outputs : n->inputs, count, v);
        if (at == count && !is_made) continue;
        (void)snprintf(buffer, VALUE_TEXT_BYTES, "%s %zu of %s", is_made ? "output" : "input", at,
                       node_text(n, text));
        break;
    }
    return buffer;
}
