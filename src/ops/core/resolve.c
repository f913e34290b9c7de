/* SPDX-License-Identifier: Apache-2.0
 *
 * Resolves nodes: sets each node's entry of the operator table, and checks that the entry allows
 * the node's inputs, outputs and attributes. Unsupported operators are collected over the whole
 * model and reported together. See decision 11.
 */
#include "base/cancel.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "ops/core/op.h"

#include <stdio.h>
#include <string.h>

/* ---- missing operators ----------------------------------------------------------------------- */

#define MAX_NODES_NAMED 3

/* An operator and opset version without an entry in the table, and the first nodes that use it. */
typedef struct missing_operator {
    const node *nodes[MAX_NODES_NAMED];
    size_t n_nodes;
} missing_operator;

typedef struct missing_list {
    hash_map index; /* "domain\0op_type\0opset" -> position */
    missing_operator *operators;
    size_t count, capacity, n_nodes;
} missing_list;

static void missing_deinit(missing_list *list)
{
    memory_free(list->operators);
    hash_map_deinit(&list->index);
}

static clg_status note_missing(missing_list *list, const node *n)
{
    strbuf key;
    clg_status status;
    strbuf_init(&key, 0);
    strbuf_append_bytes(&key, n->domain, strlen(n->domain) + 1);
    strbuf_append_bytes(&key, n->op_type, strlen(n->op_type) + 1);
    strbuf_printf(&key, "%lld", (long long)n->opset);
    CLG_TRY_GOTO(key.status, done);
    size_t at = hash_map_get(&list->index, key.data, key.size_bytes);
    if (at >= list->count) { /* HASH_MAP_NONE */
        at = list->count;
        CLG_TRY_GOTO(MEMORY_RESERVE(list->operators, list->capacity, list->count + 1), done);
        CLG_TRY_GOTO(hash_map_set(&list->index, key.data, key.size_bytes, at), done);
        list->operators[list->count++] = (missing_operator){.n_nodes = 0};
    }
    missing_operator *m = &list->operators[at];
    if (m->n_nodes < MAX_NODES_NAMED) m->nodes[m->n_nodes] = n;
    m->n_nodes++;
    list->n_nodes++;
done:
    strbuf_deinit(&key);
    return status;
}

static clg_status find_rows(graph *g, missing_list *list)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        node *n = &g->nodes[i];
        CLG_TRY(cancel_check("checking the graph"));
        if (n->removed) continue;
        n->op = ops_find(n->domain, n->op_type, n->opset);
        if (!n->op) CLG_TRY(note_missing(list, n));
        for (size_t k = 0; k < n->n_attributes; k++) {
            if (n->attributes[k].type == ATTRIBUTE_GRAPH)
                CLG_TRY(find_rows(n->attributes[k].as.graph, list));
        }
    }
    return CLG_OK;
}

/* Appends a missing operator, such as "Foo (opset 13: nodes 'a', 'b', 'c' and 3 more)". */
static void describe(strbuf *out, const missing_operator *m, size_t n_named)
{
    char shown[NAME_TEXT_BYTES];
    const node *first = m->nodes[0];
    strbuf_printf(out, "%s (opset %lld", operator_text(first->domain, first->op_type, shown),
                  (long long)first->opset);
    if (n_named > m->n_nodes) n_named = m->n_nodes;
    if (n_named == 0) strbuf_printf(out, ": %zu node%s", m->n_nodes, m->n_nodes > 1 ? "s" : "");
    for (size_t i = 0; i < n_named; i++) {
        const char *before = i > 0 ? "," : m->n_nodes > 1 ? ": nodes" : ": node";
        strbuf_printf(out, "%s '%s'", before, name_text(m->nodes[i]->label, shown));
    }
    if (n_named > 0 && m->n_nodes > n_named)
        strbuf_printf(out, " and %zu more", m->n_nodes - n_named);
    strbuf_append(out, ")");
}

/* Reports all missing operators. The more there are, the fewer nodes are named for each. */
static clg_status report_missing(const missing_list *list)
{
    size_t n_named = list->count <= 12 ? MAX_NODES_NAMED : list->count <= 30 ? 1 : 0;
    const size_t room = ERROR_TEXT_BYTES - 512;
    strbuf names;
    strbuf_init(&names, 0);
    size_t n_listed = 0;
    for (; n_listed < list->count && names.size_bytes < room; n_listed++) {
        if (n_listed > 0) strbuf_append(&names, ", ");
        describe(&names, &list->operators[n_listed], n_named);
    }
    if (n_listed < list->count)
        strbuf_printf(&names, " and %zu more operators", list->count - n_listed);
    clg_status status = names.status;
    if (status == CLG_OK) {
        status = error_set(CLG_ERROR_UNSUPPORTED_OPERATOR,
                           "%zu operator%s of the model %s not supported: %s", list->count,
                           list->count > 1 ? "s" : "", list->count > 1 ? "are" : "is",
                           strbuf_data(&names));
        error_hint("`cltool inspect` lists the operators of a model, docs/operators.md those that "
                   "are supported");
    }
    strbuf_deinit(&names);
    return status;
}

/* ---- checks of a node ------------------------------------------------------------------------ */

static clg_status node_fault(const node *n, clg_status status, const char *what)
{
    char shown[NODE_TEXT_BYTES];
    return error_set(status, "%s %s", node_text(n, shown), what);
}

static clg_status check_counts(const node *n, const op_row *row)
{
    char what[96];
    if (n->n_inputs < row->min_inputs ||
        (row->max_inputs != OP_ANY_NUMBER && n->n_inputs > row->max_inputs)) {
        (void)snprintf(what, sizeof what, "has %zu inputs, but takes %s%d", n->n_inputs,
                       n->n_inputs < row->min_inputs ? "at least " : "at most ",
                       n->n_inputs < row->min_inputs ? row->min_inputs : row->max_inputs);
        return node_fault(n, CLG_ERROR_INVALID_MODEL, what);
    }
    if (n->n_outputs < row->min_outputs ||
        (row->max_outputs != OP_ANY_NUMBER && n->n_outputs > row->max_outputs)) {
        (void)snprintf(what, sizeof what, "has %zu outputs, but gives %s%d", n->n_outputs,
                       n->n_outputs < row->min_outputs ? "at least " : "at most ",
                       n->n_outputs < row->min_outputs ? row->min_outputs : row->max_outputs);
        return node_fault(n, CLG_ERROR_INVALID_MODEL, what);
    }
    for (size_t i = 0; i < n->n_inputs; i++) {
        bool is_required = i < row->min_inputs || row->max_inputs == OP_ANY_NUMBER;
        if (n->inputs[i] != VALUE_NONE || !is_required || (row->flags & OP_MAY_LACK)) continue;
        (void)snprintf(what, sizeof what, "leaves out input %zu, which is required", i);
        return node_fault(n, CLG_ERROR_INVALID_MODEL, what);
    }
    return CLG_OK;
}

static const char *type_name(attribute_type type)
{
    switch (type) {
    case ATTRIBUTE_FLOAT: return "a float";
    case ATTRIBUTE_INT: return "an integer";
    case ATTRIBUTE_STRING: return "a string";
    case ATTRIBUTE_TENSOR: return "a tensor";
    case ATTRIBUTE_GRAPH: return "a graph";
    case ATTRIBUTE_FLOATS: return "a list of floats";
    case ATTRIBUTE_INTS: return "a list of integers";
    case ATTRIBUTE_STRINGS: return "a list of strings";
    case ATTRIBUTE_NONE: break;
    }
    return "of a type that is not read";
}

static const op_attribute *find_attribute(const op_row *row, const char *name)
{
    for (const op_attribute *a = row->attributes; a && a->name; a++) {
        if (strcmp(a->name, name) == 0) return a;
    }
    return NULL;
}

static clg_status check_attribute(const node *n, const op_row *row, const graph_attribute *a)
{
    char what[NAME_TEXT_BYTES + 96], shown[NAME_TEXT_BYTES];
    const op_attribute *known = find_attribute(row, a->name);
    if (known && known->type == a->type) return op_domain_check(n, known, a);
    if (known && a->type != ATTRIBUTE_NONE) {
        (void)snprintf(what, sizeof what, "has the attribute '%s' as %s, but it is %s", known->name,
                       type_name(a->type), type_name(known->type));
        return node_fault(n, CLG_ERROR_INVALID_MODEL, what);
    }
    (void)snprintf(what, sizeof what, "has the attribute '%s', which is not %s",
                   name_text(a->name, shown), known ? "supported in this form" : "supported");
    return node_fault(n, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, what);
}

clg_status ops_check_node(const node *n)
{
    const op_row *row = n->op;
    CLG_TRY(check_counts(n, row));
    for (size_t i = 0; i < n->n_attributes; i++)
        CLG_TRY(check_attribute(n, row, &n->attributes[i]));
    for (const op_attribute *a = row->attributes; a && a->name; a++) {
        if (!a->required || node_attribute(n, a->name)) continue;
        char what[NAME_TEXT_BYTES];
        (void)snprintf(what, sizeof what, "lacks the attribute '%s'", a->name);
        return node_fault(n, CLG_ERROR_INVALID_MODEL, what);
    }
    return row->check ? row->check(n) : CLG_OK;
}

/* Checks every node. One that is not supported loses its entry of the table: what follows must not
 * take it for checked. The first of these errors is kept in *unsupported. */
static clg_status check_nodes(graph *g, error_record *unsupported)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        node *n = &g->nodes[i];
        CLG_TRY(cancel_check("checking the graph"));
        if (n->removed) continue;
        const clg_status status = n->op ? ops_check_node(n) : CLG_OK;
        if (error_is_unsupported(status)) {
            n->op = NULL;
            if (unsupported->status == CLG_OK) error_save(status, unsupported);
        } else if (status != CLG_OK) {
            return status;
        }
        for (size_t k = 0; k < n->n_attributes; k++) {
            if (n->attributes[k].type == ATTRIBUTE_GRAPH)
                CLG_TRY(check_nodes(n->attributes[k].as.graph, unsupported));
        }
    }
    return CLG_OK;
}

clg_status ops_resolve(graph *g)
{
    missing_list missing = {0};
    error_record unsupported = {.status = CLG_OK};
    clg_status status = find_rows(g, &missing);
    if (status == CLG_OK) status = check_nodes(g, &unsupported);
    if (status == CLG_OK && missing.count > 0) status = report_missing(&missing);
    missing_deinit(&missing);
    if (status == CLG_OK && unsupported.status != CLG_OK) status = error_restore(&unsupported);
    if (status != CLG_OK) return status;
    if (graph_opset(g, "") > OPS_NEWEST_OPSET) {
        log_write(
            CLG_LOG_WARNING,
            "the model uses opset %lld, newer than %d, the newest this version of clgraph knows",
            (long long)graph_opset(g, ""), OPS_NEWEST_OPSET);
    }
    return CLG_OK;
}
