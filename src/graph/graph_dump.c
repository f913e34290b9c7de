/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints graphs as text: a listing with one line per node, and Graphviz's DOT. Both are for
 * debugging and tests; this library does not parse them.
 */
#include "base/strbuf.h"
#include "graph/graph.h"

#include <string.h>

#define MAX_NUMBERS_SHOWN 8

/* Prints a value's name, "%id" when it has none, "_" for an omitted value. */
static void put_value(strbuf *out, const graph *g, value_id v)
{
    char shown[NAME_TEXT_BYTES];
    if (v == VALUE_NONE) {
        strbuf_append(out, "_");
    } else if (g->values[v].name[0]) {
        strbuf_append(out, name_text(g->values[v].name, shown));
    } else {
        strbuf_printf(out, "%%%u", v);
    }
}

static void put_values(strbuf *out, const graph *g, const value_id *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i > 0) strbuf_append(out, ", ");
        put_value(out, g, ids[i]);
    }
}

/* Prints ": float32 [N,3,224,224]", with "?" for an unknown dtype or dimension; nothing when dtype
 * and rank are unknown. */
static void put_type(strbuf *out, const value *v)
{
    char shown[NAME_TEXT_BYTES];
    if (v->dtype == CLG_DTYPE_NONE && v->dims.rank == RANK_UNKNOWN) return;
    strbuf_printf(out, ": %s", v->dtype == CLG_DTYPE_NONE ? "?" : dtype_name(v->dtype));
    if (v->dims.rank == RANK_UNKNOWN) return;
    strbuf_append(out, " [");
    for (int i = 0; i < v->dims.rank; i++) {
        if (i > 0) strbuf_append(out, ",");
        if (v->dims.dims[i] >= 0) {
            strbuf_printf(out, "%lld", (long long)v->dims.dims[i]);
        } else {
            strbuf_append(out, v->dim_names[i] ? name_text(v->dim_names[i], shown) : "?");
        }
    }
    strbuf_append(out, "]");
}

/* Prints the elements of a real or boolean tensor of at most MAX_NUMBERS_SHOWN elements. */
static void put_numbers(strbuf *out, const tensor *t)
{
    const dtype_info *info = dtype_find(t->dtype);
    bool is_number = info->kind != DTYPE_KIND_STRING && info->kind != DTYPE_KIND_COMPLEX;
    if (t->n_elements == 0 || t->n_elements > MAX_NUMBERS_SHOWN || !is_number) return;
    strbuf_append(out, " = {");
    for (int64_t i = 0; i < t->n_elements; i++) {
        if (i > 0) strbuf_append(out, ", ");
        if (info->kind == DTYPE_KIND_FLOAT) {
            strbuf_printf(out, "%.9g", tensor_get_float(t, i));
        } else {
            strbuf_printf(out, "%lld", (long long)tensor_get_int(t, i));
        }
    }
    strbuf_append(out, "}");
}

static void put_list_end(strbuf *out, size_t n)
{
    if (n > MAX_NUMBERS_SHOWN) strbuf_printf(out, ",...(%zu)", n);
    strbuf_append(out, "]");
}

static void put_list(strbuf *out, const graph_attribute *a)
{
    char shown[NAME_TEXT_BYTES];
    strbuf_append(out, "[");
    for (size_t i = 0; i < a->count && i < MAX_NUMBERS_SHOWN; i++) {
        if (i > 0) strbuf_append(out, ",");
        if (a->type == ATTRIBUTE_INTS) strbuf_printf(out, "%lld", (long long)a->as.ints[i]);
        if (a->type == ATTRIBUTE_FLOATS) strbuf_printf(out, "%.9g", (double)a->as.floats[i]);
        if (a->type == ATTRIBUTE_STRINGS)
            strbuf_printf(out, "\"%s\"", name_text(a->as.strings[i], shown));
    }
    put_list_end(out, a->count);
}

static void put_attribute(strbuf *out, const graph_attribute *a)
{
    char shown[NAME_TEXT_BYTES], dims[SHAPE_TEXT_BYTES];
    strbuf_printf(out, "%s=", name_text(a->name, shown));
    switch (a->type) {
    case ATTRIBUTE_NONE: strbuf_append(out, "?"); break;
    case ATTRIBUTE_FLOAT: strbuf_printf(out, "%.9g", (double)a->as.f); break;
    case ATTRIBUTE_INT: strbuf_printf(out, "%lld", (long long)a->as.i); break;
    case ATTRIBUTE_STRING: strbuf_printf(out, "\"%s\"", name_text(a->as.s, shown)); break;
    case ATTRIBUTE_TENSOR:
        strbuf_printf(out, "%s %s", dtype_name(a->as.tensor->dtype),
                      shape_text(&a->as.tensor->dims, dims));
        put_numbers(out, a->as.tensor);
        break;
    case ATTRIBUTE_GRAPH: strbuf_printf(out, "graph of %zu nodes", a->as.graph->n_nodes); break;
    case ATTRIBUTE_FLOATS:
    case ATTRIBUTE_INTS:
    case ATTRIBUTE_STRINGS: put_list(out, a); break;
    }
}

static void put_indent(strbuf *out, int depth)
{
    for (int i = 0; i < depth; i++) strbuf_append(out, "    ");
}

static void dump_graph(const graph *g, strbuf *out, int depth);

static void put_node(strbuf *out, const graph *g, const node *n, int depth)
{
    char shown[NAME_TEXT_BYTES];
    put_indent(out, depth);
    strbuf_append(out, "  ");
    put_values(out, g, n->outputs, n->n_outputs);
    strbuf_printf(out, " = %s(", operator_text(n->domain, n->op_type, shown));
    put_values(out, g, n->inputs, n->n_inputs);
    strbuf_append(out, ")");
    for (size_t i = 0; i < n->n_attributes; i++) {
        strbuf_append(out, i > 0 ? ", " : " {");
        put_attribute(out, &n->attributes[i]);
    }
    if (n->n_attributes > 0) strbuf_append(out, "}");
    if (n->name[0]) strbuf_printf(out, " '%s'", name_text(n->name, shown));
    strbuf_append(out, "\n");
    for (size_t i = 0; i < n->n_attributes; i++) {
        if (n->attributes[i].type != ATTRIBUTE_GRAPH) continue;
        put_indent(out, depth + 1);
        strbuf_printf(out, "%s:\n", name_text(n->attributes[i].name, shown));
        dump_graph(n->attributes[i].as.graph, out, depth + 1);
    }
}

static void put_declaration(strbuf *out, const graph *g, value_id v, const char *what, int depth)
{
    put_indent(out, depth);
    strbuf_printf(out, "  %s ", what);
    put_value(out, g, v);
    put_type(out, &g->values[v]);
    if (g->values[v].constant) put_numbers(out, g->values[v].constant);
    strbuf_append(out, "\n");
}

static void dump_graph(const graph *g, strbuf *out, int depth)
{
    for (size_t i = 0; i < g->n_inputs; i++) put_declaration(out, g, g->inputs[i], "input", depth);
    for (size_t i = 0; i < g->n_values; i++) {
        const value *v = &g->values[i];
        if (v->constant || v->missing_file) put_declaration(out, g, (value_id)i, "constant", depth);
    }
    for (size_t i = 0; i < g->n_nodes; i++) {
        if (!g->nodes[i].removed) put_node(out, g, &g->nodes[i], depth);
    }
    for (size_t i = 0; i < g->n_outputs; i++)
        put_declaration(out, g, g->outputs[i], "output", depth);
}

void graph_dump(const graph *g, strbuf *out_text)
{
    char shown[NAME_TEXT_BYTES];
    strbuf_printf(out_text, "graph '%s'", name_text(g->name, shown));
    if (g->ir_version > 0) strbuf_printf(out_text, ", ir %lld", (long long)g->ir_version);
    for (size_t i = 0; i < g->n_opsets; i++) {
        const char *domain =
            g->opsets[i].domain[0] ? name_text(g->opsets[i].domain, shown) : "opset";
        strbuf_printf(out_text, ", %s %lld", domain, (long long)g->opsets[i].version);
    }
    strbuf_append(out_text, "\n");
    dump_graph(g, out_text, 0);
}

/* Appends text, escaped for a quoted string of the DOT language. */
static void put_escaped(strbuf *out, const char *string)
{
    for (const char *c = string; *c; c++) {
        if (*c == '"' || *c == '\\') strbuf_append(out, "\\");
        strbuf_append_bytes(out, c, 1);
    }
}

static void put_quoted(strbuf *out, const char *name)
{
    char shown[NAME_TEXT_BYTES];
    put_escaped(out, name_text(name, shown));
}

static void dot_terminal(strbuf *out, const graph *g, value_id v, const char *side)
{
    strbuf_printf(out, "  %s%u [shape=oval, label=\"", side, v);
    put_quoted(out, g->values[v].name);
    strbuf type;
    strbuf_init(&type, 0);
    put_type(&type, &g->values[v]);
    put_escaped(out, strbuf_data(&type));
    if (type.status != CLG_OK) out->status = type.status;
    strbuf_deinit(&type);
    strbuf_append(out, "\"];\n");
}

static void dot_edge(strbuf *out, const graph *g, value_id v, const char *to_side, size_t to)
{
    const value *from = &g->values[v];
    if (from->producer != NODE_NONE) {
        strbuf_printf(out, "  n%u -> %s%zu [label=\"", from->producer, to_side, to);
    } else if (from->is_input) {
        strbuf_printf(out, "  i%u -> %s%zu [label=\"", v, to_side, to);
    } else {
        return; /* edges from constants would clutter the drawing */
    }
    put_quoted(out, from->name);
    strbuf_append(out, "\"];\n");
}

void graph_dump_dot(const graph *g, strbuf *out_text)
{
    char shown[NAME_TEXT_BYTES];
    strbuf_append(out_text, "digraph model {\n  node [shape=box];\n");
    for (size_t i = 0; i < g->n_inputs; i++) dot_terminal(out_text, g, g->inputs[i], "i");
    for (size_t i = 0; i < g->n_outputs; i++) dot_terminal(out_text, g, g->outputs[i], "o");
    for (size_t i = 0; i < g->n_nodes; i++) {
        const node *n = &g->nodes[i];
        if (n->removed) continue;
        strbuf_printf(out_text, "  n%zu [label=\"", i);
        put_quoted(out_text, operator_text(n->domain, n->op_type, shown));
        if (n->name[0]) strbuf_append(out_text, "\\n");
        put_quoted(out_text, n->name);
        strbuf_append(out_text, "\"];\n");
        for (size_t k = 0; k < n->n_inputs; k++) {
            if (n->inputs[k] != VALUE_NONE) dot_edge(out_text, g, n->inputs[k], "n", i);
        }
    }
    for (size_t i = 0; i < g->n_outputs; i++)
        dot_edge(out_text, g, g->outputs[i], "o", g->outputs[i]);
    strbuf_append(out_text, "}\n");
}
