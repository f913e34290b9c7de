/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements grad_build: goes through the nodes between what is differentiated for and the result,
 * from the last to the first, and has each operator's entry (op_row.grad) add the nodes that
 * compute the cotangents of its inputs. Cotangents of a value that several nodes read are summed in
 * the order in which they are made, so that results have the same bits in each run.
 */
#include "base/cancel.h"
#include "base/strbuf.h"
#include "ops/grad/grad_control.h"
#include "ops/grad/grad_rule.h"

#include <string.h>

enum {
    MAX_NAMED = 8,      /* nodes that one error lists */
    SUM_INPUTS = 8,     /* of one Sum */
    MAX_INLINED = 256,  /* nodes of control flow that are replaced */
    MAX_NODES = 1 << 18 /* of a graph in which more are replaced */
};

/* The cotangents of one value. */
typedef struct parts {
    value_id *values;
    size_t count, capacity;
} parts;

typedef struct walk {
    graph *graph;
    grad_values values;           /* those before the walk */
    size_t first, end;            /* the nodes that are differentiated; those added later are not */
    bool *reaches;                /* by value less base: the result depends on it */
    bool *on_path;                /* by node less `first`: the gradient passes through it */
    parts *parts;                 /* by value less base, then by value before base of values.xs */
    value_id *given, *cotangents; /* by input and by output of the node at hand */
    size_t given_capacity, cotangents_capacity;
} walk;

static const value_fact *fact_of(const walk *w, value_id v)
{
    return grad_values_fact(&w->values, v);
}

static bool is_float(const walk *w, value_id v) { return dtype_is_float(fact_of(w, v)->dtype); }

/* Results of control flow have no dtype before they are computed. */
static bool may_be_float(const walk *w, value_id v)
{
    return fact_of(w, v)->dtype == CLG_DTYPE_NONE || is_float(w, v);
}

/* ---- which values are on the path ------------------------------------------------------------ */

static void mark_value(const walk *w, bool *marks, value_id v)
{
    if (v >= w->values.base && v - w->values.base < w->values.n) marks[v - w->values.base] = true;
}

static void mark_use(void *user, value_id v)
{
    const walk *w = user;
    mark_value(w, w->reaches, v);
}

/* Whether one of the values visited depends on xs. */
typedef struct seen {
    const grad_values *values;
    bool depends;
} seen;

static void look_at(void *user, value_id v)
{
    seen *s = user;
    s->depends = s->depends || grad_depends(s->values, v);
}

static bool uses_dependent(const walk *w, const node *n)
{
    seen s = {.values = &w->values};
    node_visit_uses(n, look_at, &s);
    return s.depends;
}

static bool reaches(const walk *w, value_id v)
{
    return v != VALUE_NONE && v >= w->values.base && v - w->values.base < w->values.n &&
           w->reaches[v - w->values.base];
}

static bool is_zero(const node *n)
{
    const op_row *row = n->op;
    return row && row->grad && !row->grad->rule && !row->grad->reason;
}

/* Marks the values that depend on xs through operators whose gradient is not zero. The path ends at
 * values that are not floats, such as results of Cast, which do not change with small changes of
 * xs; but it goes on where a gradient through the operator is refused, as of QuantizeLinear. */
static void mark_dependent(walk *w, const value_id *xs, size_t n_xs)
{
    const graph *g = w->graph;
    for (size_t i = 0; i < n_xs; i++) mark_value(w, w->values.depends, xs[i]);
    for (size_t i = w->first; i < w->end; i++) {
        const node *n = &g->nodes[i];
        const op_row *row = n->op;
        if (n->removed || is_zero(n) || !uses_dependent(w, n)) continue;
        const bool has_rule = row && row->grad && row->grad->rule;
        for (size_t k = 0; k < n->n_outputs; k++)
            if (n->outputs[k] != VALUE_NONE && (!has_rule || may_be_float(w, n->outputs[k])))
                mark_value(w, w->values.depends, n->outputs[k]);
    }
}

static void mark_reaching(walk *w)
{
    const graph *g = w->graph;
    for (size_t i = w->end; i-- > w->first;) {
        const node *n = &g->nodes[i];
        bool any = false;
        for (size_t k = 0; k < n->n_outputs && !n->removed; k++)
            any = any || reaches(w, n->outputs[k]);
        if (any && !is_zero(n)) node_visit_uses(n, mark_use, w);
    }
}

/* Returns whether the gradient passes through the node: it uses a value that depends on xs, and has
 * an output that depends on xs and on which the result depends. */
static bool is_on_path(const walk *w, const node *n)
{
    bool any = false;
    for (size_t k = 0; k < n->n_outputs && !n->removed && !any; k++)
        any = reaches(w, n->outputs[k]) && grad_depends(&w->values, n->outputs[k]);
    return any && !is_zero(n) && uses_dependent(w, n);
}

/* Marks the values and nodes on the path; the results are marked as reaching already. */
static void mark_path(walk *w, const value_id *xs, size_t n_xs)
{
    mark_dependent(w, xs, n_xs);
    mark_reaching(w);
    for (size_t i = w->first; i < w->end; i++)
        w->on_path[i - w->first] = is_on_path(w, &w->graph->nodes[i]);
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Returns why the gradient cannot pass through a node; NULL if it can. */
static const char *reason_of(const walk *w, size_t i)
{
    const node *n = &w->graph->nodes[i];
    const op_row *row = n->op;
    if (!row) return "the operator is not supported";
    if (!row->grad) return "it lacks a rule";
    if (!row->grad->reason || !grad_can_inline(n)) return row->grad->reason;
    const char *obstacle = grad_control_obstacle(w->graph, (node_id)i, w->values.facts);
    return obstacle ? obstacle
                    : "too many nodes of control flow, or of bodies, were added before it";
}

/* Refuses a graph with nodes on the path that have no rule, and names them. */
static clg_status check_rules(const walk *w)
{
    char text[NODE_TEXT_BYTES];
    size_t n_found = 0;
    strbuf names;
    strbuf_init(&names, 4096);
    for (size_t i = w->first; i < w->end; i++) {
        const node *n = &w->graph->nodes[i];
        const char *reason = w->on_path[i - w->first] ? reason_of(w, i) : NULL;
        if (!reason) continue;
        if (n_found++ >= MAX_NAMED) continue;
        strbuf_printf(&names, "%s%s: %s", n_found > 1 ? "; " : "", node_text(n, text), reason);
    }
    clg_status status = CLG_OK;
    if (n_found > MAX_NAMED) strbuf_printf(&names, "; and %zu more", n_found - MAX_NAMED);
    if (n_found > 0)
        status = error_set(CLG_ERROR_UNSUPPORTED_OPERATOR, "%zu nodes have no gradient: %s",
                           n_found, strbuf_data(&names));
    strbuf_deinit(&names);
    return status;
}

static clg_status check_float(const walk *w, value_id v, const char *what)
{
    char text[VALUE_TEXT_BYTES];
    if (is_float(w, v)) return CLG_OK;
    return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "%s %s is %s, and only floats have gradients",
                     what, value_text(w->graph, v, text), dtype_name(fact_of(w, v)->dtype));
}

/* ---- cotangents ------------------------------------------------------------------------------ */

/* Returns the parts of a value; NULL for one without a cotangent, before the walk and not of xs. */
static parts *parts_of(const walk *w, value_id v)
{
    const grad_values *values = &w->values;
    if (v >= values->base) return &w->parts[v - values->base];
    for (size_t i = 0; i < values->n_xs; i++)
        if (values->xs[i] == v) return &w->parts[values->n + i];
    return NULL;
}

static clg_status add_part(walk *w, value_id v, value_id part)
{
    parts *p = parts_of(w, v);
    if (!p) return CLG_OK;
    CLG_TRY(MEMORY_RESERVE(p->values, p->capacity, p->count + 1));
    p->values[p->count++] = part;
    return CLG_OK;
}

/* Returns the sum of the parts of a value's cotangent; VALUE_NONE if there is none. */
static value_id join_parts(grad_node *c, parts *p)
{
    value_id sum = p->count > 0 ? p->values[0] : VALUE_NONE;
    for (size_t at = 1; at < p->count && c->status == CLG_OK;) {
        value_id inputs[SUM_INPUTS] = {sum};
        size_t n = 1;
        while (n < SUM_INPUTS && at < p->count) inputs[n++] = p->values[at++];
        sum = grad_add(c, n == 2 ? "Add" : "Sum", n, inputs);
    }
    if (p->count > 0) {
        p->values[0] = sum;
        p->count = 1;
    }
    return sum;
}

static clg_status visit(walk *w, node_id id)
{
    const node *n = &w->graph->nodes[id];
    const op_row *row = n->op;
    if (!row || !row->grad || !row->grad->rule) /* check_rules refused it */
        return error_set(CLG_ERROR_INTERNAL, "a %s has no gradient", n->op_type);
    CLG_TRY(MEMORY_RESERVE(w->cotangents, w->cotangents_capacity, n->n_outputs + 1));
    CLG_TRY(MEMORY_RESERVE(w->given, w->given_capacity, n->n_inputs + 1));
    for (size_t i = 0; i < n->n_inputs; i++) w->given[i] = VALUE_NONE;
    grad_node c = {.graph = w->graph,
                   .id = id,
                   .node = *n,
                   .row = row,
                   .values = &w->values,
                   .first_value = (value_id)w->graph->n_values,
                   .cotangents = w->cotangents,
                   .given = w->given};
    bool has_cotangent = false;
    for (size_t k = 0; k < c.node.n_outputs; k++) {
        const value_id v = c.node.outputs[k];
        w->cotangents[k] = v == VALUE_NONE ? VALUE_NONE : join_parts(&c, parts_of(w, v));
        has_cotangent = has_cotangent || w->cotangents[k] != VALUE_NONE;
    }
    if (c.status == CLG_OK && has_cotangent && grad_has_room(&c, 0)) row->grad->rule(&c);
    CLG_TRY(c.status);
    for (size_t i = 0; i < c.node.n_inputs; i++)
        if (w->given[i] != VALUE_NONE) CLG_TRY(add_part(w, c.node.inputs[i], w->given[i]));
    return CLG_OK;
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Allocates the marks of a walk over the nodes from `first` on; the caller sets the facts. around,
 * base, xs: as of grad_values. */
static clg_status walk_init(walk *w, graph *g, size_t first, const grad_values *around,
                            value_id base, const value_id *xs, size_t n_xs)
{
    const size_t n = g->n_values - base;
    *w = (walk){.graph = g,
                .first = first,
                .end = g->n_nodes,
                .values = {.around = around, .base = base, .n = n, .xs = xs, .n_xs = n_xs}};
    w->values.depends = memory_zalloc(n + 1, sizeof *w->values.depends);
    w->reaches = memory_zalloc(n + 1, sizeof *w->reaches);
    w->on_path = memory_zalloc(w->end - first + 1, sizeof *w->on_path);
    w->parts = memory_zalloc(n + n_xs + 1, sizeof *w->parts);
    return w->values.depends && w->reaches && w->on_path && w->parts ? CLG_OK
                                                                     : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

static void walk_deinit(walk *w)
{
    for (size_t i = 0; w->parts && i < w->values.n + w->values.n_xs; i++)
        memory_free(w->parts[i].values);
    if (w->values.facts) ops_facts_free(w->values.facts, w->values.n);
    memory_free(w->parts);
    memory_free(w->values.depends);
    memory_free(w->reaches);
    memory_free(w->on_path);
    memory_free(w->given);
    memory_free(w->cotangents);
}

/* Starts a walk over the whole graph. */
static clg_status walk_graph(walk *w, graph *g)
{
    CLG_TRY(walk_init(w, g, 0, NULL, 0, NULL, 0));
    return ops_infer_graph(g, NULL, &w->values.facts);
}

/* Visits the nodes from the last to the first. The cotangents of the results are parts already. */
static clg_status go_back(walk *w)
{
    for (size_t i = w->end; i-- > w->first;) {
        CLG_TRY(cancel_check("differentiating the graph"));
        if (w->on_path[i - w->first]) CLG_TRY(visit(w, (node_id)i));
    }
    return CLG_OK;
}

static clg_status go(walk *w, value_id y, value_id cotangent, const value_id *xs, size_t n_xs,
                     value_id *out_gradients)
{
    grad_node ends = {.graph = w->graph,
                      .values = &w->values,
                      .node = {.label = "the gradient", .name = "", .op_type = "Gradient"}};
    if (fact_of(w, y)->dtype != CLG_DTYPE_NONE) CLG_TRY(check_float(w, y, "the result"));
    for (size_t i = 0; i < n_xs; i++) CLG_TRY(check_float(w, xs[i], "the value"));
    mark_value(w, w->reaches, y);
    mark_path(w, xs, n_xs);
    CLG_TRY(check_rules(w));
    CLG_TRY(check_float(w, y, "the result")); /* after control flow has been named */
    if (cotangent == VALUE_NONE) cotangent = grad_fill_like(&ends, y, 1);
    CLG_TRY(ends.status);
    CLG_TRY(add_part(w, y, cotangent));
    CLG_TRY(go_back(w));
    for (size_t i = 0; i < n_xs; i++) {
        out_gradients[i] = join_parts(&ends, parts_of(w, xs[i]));
        if (out_gradients[i] == VALUE_NONE) out_gradients[i] = grad_fill_like(&ends, xs[i], 0);
        CLG_TRY(ends.status);
    }
    return CLG_OK;
}

/* Replaces control flow on the path where that is possible. *n_left: how many more nodes may be
 * replaced; each that is decrements it. */
static clg_status inline_known(graph *g, value_id y, const value_id *xs, size_t n_xs,
                               size_t *n_left)
{
    walk w;
    clg_status status = walk_graph(&w, g);
    if (status == CLG_OK) {
        mark_value(&w, w.reaches, y);
        mark_path(&w, xs, n_xs);
    }
    for (size_t i = 0; i < w.end && status == CLG_OK && *n_left > 0; i++) {
        bool done = false;
        if (g->n_nodes > MAX_NODES) break;
        status = cancel_check("differentiating the graph");
        if (status == CLG_OK && w.on_path[i] && grad_is_control(&g->nodes[i]))
            status = grad_inline_control(g, (node_id)i, w.values.facts, &done);
        if (done) --*n_left;
    }
    walk_deinit(&w);
    return status;
}

/* Replaces control flow on the path from xs to y, including that of replaced bodies. */
static clg_status inline_control(graph *g, value_id y, const value_id *xs, size_t n_xs)
{
    bool any = false;
    size_t n_left = MAX_INLINED, n_before = 0;
    for (size_t i = 0; i < g->n_nodes; i++) any = any || grad_is_control(&g->nodes[i]);
    while (any && n_left != n_before) {
        n_before = n_left;
        CLG_TRY(inline_known(g, y, xs, n_xs, &n_left));
        CLG_TRY(graph_compact(g));
        CLG_TRY(ops_resolve(g));
    }
    return CLG_OK;
}

clg_status grad_build(graph *g, value_id y, value_id cotangent, const value_id *xs, size_t n_xs,
                      value_id *out_gradients)
{
    walk w;
    CLG_TRY(inline_control(g, y, xs, n_xs));
    clg_status status = walk_graph(&w, g);
    if (status == CLG_OK) status = go(&w, y, cotangent, xs, n_xs, out_gradients);
    walk_deinit(&w);
    return status;
}

/* ---- rules by other operators ---------------------------------------------------------------- */

/* Finds the entries of the nodes from w->first on. */
static clg_status resolve_new(const walk *w)
{
    for (size_t i = w->first; i < w->end; i++) {
        node *n = &w->graph->nodes[i];
        n->op = ops_find(n->domain, n->op_type, n->opset);
        if (!n->op)
            return error_set(CLG_ERROR_INTERNAL, "a rule adds %s of opset %lld, which is unknown",
                             n->op_type, (long long)n->opset);
        CLG_TRY(ops_check_node(n));
    }
    return CLG_OK;
}

/* Gives the inputs their cotangents: once for each value, of which a node may read several. */
static void give_found(grad_node *c, walk *w)
{
    for (size_t i = 0; i < c->node.n_inputs && c->status == CLG_OK; i++) {
        const value_id v = grad_in(c, i);
        if (!grad_wants(c, i)) continue;
        parts *p = parts_of(w, v);
        const value_id found = join_parts(c, p);
        p->count = 0;
        if (found != VALUE_NONE) grad_give(c, i, found);
    }
}

void grad_through(grad_node *c, size_t first, size_t n, const value_id *made)
{
    walk w = {.graph = c->graph};
    const size_t n_inputs = c->node.n_inputs;
    if (c->status != CLG_OK) return;
    value_id *xs = memory_zalloc(n_inputs + 1, sizeof *xs);
    size_t n_xs = 0;
    clg_status status = xs ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n_inputs && status == CLG_OK; i++)
        if (grad_wants(c, i)) xs[n_xs++] = grad_in(c, i);
    if (status == CLG_OK)
        status = walk_init(&w, c->graph, first, c->values, c->first_value, xs, n_xs);
    if (status == CLG_OK) status = resolve_new(&w);
    if (status == CLG_OK)
        status = ops_infer_added(c->graph, first, c->first_value, grad_values_fact, c->values,
                                 &w.values.facts);
    for (size_t k = 0; k < n && status == CLG_OK; k++) {
        if (made[k] == VALUE_NONE || grad_cotangent(c, k) == VALUE_NONE) continue;
        mark_value(&w, w.reaches, made[k]);
        status = add_part(&w, made[k], grad_cotangent(c, k));
    }
    if (status == CLG_OK) mark_path(&w, xs, n_xs);
    if (status == CLG_OK) status = check_rules(&w);
    if (status == CLG_OK) status = go_back(&w);
    c->status = status;
    give_found(c, &w);
    memory_free(xs);
    walk_deinit(&w);
}
