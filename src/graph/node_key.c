/* SPDX-License-Identifier: Apache-2.0
 *
 * Describes a node's operator and attributes as bytes, so that equal ones are found by a hash map.
 */
#include "base/strbuf.h"
#include "graph/graph.h"

#include <string.h>

static void append(strbuf *t, const void *data, size_t size_bytes)
{
    strbuf_append_bytes(t, data, size_bytes);
}

static void append_string(strbuf *t, const char *string) { append(t, string, strlen(string) + 1); }

static void append_attribute(strbuf *t, const graph_attribute *a)
{
    append_string(t, a->name);
    append(t, &a->type, sizeof a->type);
    append(t, &a->count, sizeof a->count);
    switch (a->type) {
    case ATTRIBUTE_FLOAT: append(t, &a->as.f, sizeof a->as.f); break;
    case ATTRIBUTE_INT: append(t, &a->as.i, sizeof a->as.i); break;
    case ATTRIBUTE_STRING: append(t, a->as.s, a->count); break;
    case ATTRIBUTE_TENSOR: append(t, &a->as.tensor, sizeof a->as.tensor); break;
    case ATTRIBUTE_FLOATS: append(t, a->as.floats, a->count * sizeof(float)); break;
    case ATTRIBUTE_INTS: append(t, a->as.ints, a->count * sizeof(int64_t)); break;
    case ATTRIBUTE_STRINGS:
        for (size_t i = 0; i < a->count; i++) append_string(t, a->as.strings[i]);
        break;
    case ATTRIBUTE_NONE:
    case ATTRIBUTE_GRAPH: break;
    }
}

bool node_has_key(const node *n)
{
    for (size_t i = 0; i < n->n_attributes; i++)
        if (n->attributes[i].type == ATTRIBUTE_GRAPH || n->attributes[i].type == ATTRIBUTE_NONE)
            return false;
    return true;
}

void node_append_key(const node *n, strbuf *t)
{
    append_string(t, n->domain);
    append_string(t, n->op_type);
    append(t, &n->opset, sizeof n->opset);
    append(t, &n->n_inputs, sizeof n->n_inputs);
    for (size_t i = 0; i < n->n_attributes; i++) append_attribute(t, &n->attributes[i]);
}
