/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements batch_find: goes through the nodes that the outputs need, in order, and has each
 * operator's entry (op_row.batch) say how the batch passes. Sizes that depend on the number of rows
 * are terms; all other facts are inferred as for a graph whose batch size is not known, so that
 * what is known of a value then holds for each part.
 */
#include "ops/batch/batch_axes.h"

#include "base/cancel.h"
#include "ops/batch/batch_rule.h"

#include <string.h>

/* Bodies of loops are visited several times, those of nested loops more often. */
#define MAX_VISITS (1u << 22)

struct batch_search {
    arena memory; /* elements, and what functions need */
    batch_symbols symbols;
    size_t n_visits;
    int depth;
};

/* The values of a graph that is being visited. */
struct batch_scope {
    const graph *graph;
    const batch_scope *outer; /* of the enclosing graph */
    value_fact *facts;        /* by value */
    batch_value *values;      /* by value */
    bool *needed;             /* by node: an output depends on it */
};

/* ---- facts and values ------------------------------------------------------------------------ */

static clg_status known_elements(batch_search *s, const tensor *t, batch_value *v)
{
    if (!t || t->dims.rank > 1 || t->n_elements > BATCH_MAX_ELEMENTS) return CLG_OK;
    const bool is_float = dtype_is_float(t->dtype);
    if (!is_float && !dtype_is_integer(t->dtype) && t->dtype != CLG_BOOL) return CLG_OK;
    batch_term *made = arena_alloc(&s->memory, (size_t)t->n_elements + 1, sizeof *made);
    if (!made) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int64_t i = 0; i < t->n_elements; i++) {
        const double number = is_float ? tensor_get_float(t, i) : 0;
        const bool is_whole = number > -1e9 && number < 1e9 && number == (double)(int64_t)number;
        if (!is_float)
            made[i] = term_int(tensor_get_int(t, i));
        else
            made[i] = is_whole ? term_int((int64_t)number) : term_number(&s->symbols);
    }
    v->elements = made;
    v->n_elements = (size_t)t->n_elements;
    return CLG_OK;
}

/* Sets *v to a value that does not depend on the batch, of which this is known. */
static clg_status free_value(batch_search *s, const value_fact *fact, batch_value *v)
{
    *v = (batch_value){.kind = BATCH_FREE, .rank = fact->dims.rank};
    for (int i = 0; i < v->rank; i++) {
        const int64_t size = fact->dims.dims[i];
        v->dims[i] = size == DIM_UNKNOWN ? term_size(&s->symbols) : term_int(size);
    }
    return known_elements(s, fact->known, v);
}

/* Adds to a fact what is known of the value: sizes, and elements of shape arithmetic. */
static clg_status complete_fact(const batch_value *v, value_fact *fact)
{
    if (fact->kind != CLG_VALUE_TENSOR) return CLG_OK;
    if (fact->dims.rank == RANK_UNKNOWN && v->rank != RANK_UNKNOWN) {
        fact->dims.rank = v->rank;
        for (int i = 0; i < v->rank; i++) fact->dims.dims[i] = DIM_UNKNOWN;
    }
    for (int i = 0; i < v->rank; i++)
        if (term_is_int(&v->dims[i])) fact->dims.dims[i] = v->dims[i].factor;
    const bool is_list = v->kind == BATCH_FREE && v->elements && fact->dtype == CLG_INT64 &&
                         (v->rank == 0 || (v->rank == 1 && term_is_int(&v->dims[0])));
    if (fact->known || !is_list || (v->rank == 1 && v->dims[0].factor != (int64_t)v->n_elements))
        return CLG_OK;
    for (size_t i = 0; i < v->n_elements; i++)
        if (!term_is_int(&v->elements[i])) return CLG_OK;
    tensor *t;
    CLG_TRY(tensor_create(CLG_INT64, &fact->dims, &t));
    for (size_t i = 0; i < v->n_elements; i++) tensor_set_int(t, (int64_t)i, v->elements[i].factor);
    fact->known = t;
    return CLG_OK;
}

/* ---- scopes ---------------------------------------------------------------------------------- */

static void need(const batch_scope *s, const graph *g, value_id v)
{
    if (v == VALUE_NONE || g->values[v].producer == NODE_NONE) return;
    s->needed[g->values[v].producer] = true;
}

/* Marks the nodes on which outputs depend; nodes are in topological order. */
static void mark_needed(const batch_scope *s)
{
    const graph *g = s->graph;
    for (size_t i = 0; i < g->n_outputs; i++) need(s, g, g->outputs[i]);
    for (size_t i = g->n_nodes; i-- > 0;) {
        const node *n = &g->nodes[i];
        for (size_t k = 0; s->needed[i] && k < n->n_inputs; k++) need(s, g, n->inputs[k]);
        for (size_t k = 0; s->needed[i] && k < n->n_attributes; k++) {
            if (n->attributes[k].type != ATTRIBUTE_GRAPH) continue;
            const graph *body = n->attributes[k].as.graph;
            for (size_t v = 0; v < body->n_values; v++)
                if (body->values[v].is_outer) need(s, g, body->values[v].outer);
        }
    }
}

static void scope_deinit(batch_scope *s)
{
    ops_facts_free(s->facts, s->graph->n_values);
    memory_free(s->values);
    memory_free(s->needed);
}

/* Makes the scope of a graph: its constants, and what the enclosing graph knows. The caller sets
 * the inputs. On failure, too, the caller calls scope_deinit. */
static clg_status scope_init(batch_search *s, const graph *g, const batch_scope *outer,
                             batch_scope *out)
{
    *out = (batch_scope){.graph = g, .outer = outer};
    out->facts = memory_zalloc(g->n_values, sizeof *out->facts);
    out->values = memory_zalloc(g->n_values, sizeof *out->values);
    out->needed = memory_zalloc(g->n_nodes, sizeof *out->needed);
    if (!out->facts || !out->values || !out->needed) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < g->n_values; i++) {
        const value *v = &g->values[i];
        const shape unknown = shape_unknown();
        const bool is_given = v->is_input || v->constant || v->missing_file;
        if (v->is_outer && outer) {
            out->facts[i] = outer->facts[v->outer];
            if (out->facts[i].known) out->facts[i].known = fact_share(out->facts[i].known);
            out->values[i] = outer->values[v->outer];
            continue;
        }
        fact_set(&out->facts[i], is_given ? v->dtype : CLG_DTYPE_NONE,
                 is_given ? &v->dims : &unknown);
        out->facts[i].kind = v->kind;
        out->facts[i].key_dtype = v->key_dtype;
        if (v->constant) out->facts[i].known = fact_share(v->constant);
        CLG_TRY(free_value(s, &out->facts[i], &out->values[i]));
    }
    mark_needed(out);
    return CLG_OK;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Buffers for the inputs and outputs of one node. */
typedef struct around {
    value_fact *facts;
    const batch_value **inputs;
    batch_value *outputs;
} around;

static clg_status around_init(const node *n, around *a)
{
    *a = (around){.facts = memory_zalloc(n->n_inputs + n->n_outputs + 1, sizeof *a->facts),
                  .inputs = memory_zalloc(n->n_inputs + 1, sizeof *a->inputs),
                  .outputs = memory_zalloc(n->n_outputs + 1, sizeof *a->outputs)};
    return a->facts && a->inputs && a->outputs ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

static void around_deinit(around *a)
{
    memory_free(a->facts);
    memory_free(a->inputs);
    memory_free(a->outputs);
}

/* Returns whether an input, or a value that a subgraph of the node reads, depends on the batch. */
static bool depends_on_batch(const batch_scope *s, const node *n)
{
    for (size_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i] != VALUE_NONE && s->values[n->inputs[i]].kind != BATCH_FREE) return true;
    for (size_t k = 0; k < n->n_attributes; k++) {
        if (n->attributes[k].type != ATTRIBUTE_GRAPH) continue;
        const graph *body = n->attributes[k].as.graph;
        for (size_t v = 0; v < body->n_values; v++)
            if (body->values[v].is_outer && s->values[body->values[v].outer].kind != BATCH_FREE)
                return true;
    }
    return false;
}

/* Checks the inputs against what the operator's entry says may depend on the batch. */
static clg_status check_inputs(const batch_node *c)
{
    for (size_t i = 0; i < c->n_inputs; i++) {
        const batch_value *v = c->inputs[i];
        const uint32_t bit = (uint32_t)1 << (i < 31 ? i : 31);
        if (!v || v->kind == BATCH_FREE) continue;
        if (c->input_facts[i].kind != CLG_VALUE_TENSOR)
            return batch_refuse(c, "input %zu depends on the batch and is not a tensor", i);
        if (v->kind == BATCH_ROWS && !(c->rule->rows & bit))
            return batch_refuse(c, "input %zu carries the batch, but holds for all rows", i);
        if (v->kind == BATCH_COUNTS && !(c->rule->counts & bit))
            return batch_refuse(c, "input %zu depends on the number of rows", i);
    }
    return CLG_OK;
}

/* Checks that the inferred shapes do not contradict the axis of the batch. */
static clg_status check_outputs(const batch_node *c)
{
    for (size_t o = 0; o < c->n_outputs; o++) {
        const batch_value *v = &c->outputs[o];
        const value_fact *fact = &c->output_facts[o];
        if (v->kind == BATCH_ROWS && fact->dims.rank != RANK_UNKNOWN &&
            (fact->dims.rank != v->rank || fact->dims.dims[v->axis] != DIM_UNKNOWN))
            return batch_refuse(c,
                                "the size of output %zu along axis %d does not depend on the "
                                "number of rows",
                                o, v->axis);
    }
    return CLG_OK;
}

static clg_status pass(batch_node *c, bool depends)
{
    c->rule = c->row ? c->row->batch : NULL;
    const uint32_t flags = c->row ? c->row->flags : 0;
    const bool is_random = (flags & OP_RANDOM) && !node_attribute(c->node, "seed");
    if (is_random && !c->rule)
        return batch_refuse(c, "its random numbers differ from part to part");
    if (!depends && !(c->rule && c->rule->always)) return CLG_OK;
    if (!c->rule) return batch_refuse(c, "it is not known how a batch passes through it");
    CLG_TRY(check_inputs(c));
    CLG_TRY(c->rule->pass(c));
    return check_outputs(c);
}

static clg_status visit(batch_search *s, batch_scope *scope, const node *n, around *a)
{
    uint32_t needs;
    value_fact *outputs = a->facts + n->n_inputs;
    const shape unknown = shape_unknown();
    for (size_t i = 0; i < n->n_inputs; i++) {
        const bool is_omitted = n->inputs[i] == VALUE_NONE;
        fact_set(&a->facts[i], CLG_DTYPE_NONE, &unknown);
        if (!is_omitted) a->facts[i] = scope->facts[n->inputs[i]];
        a->inputs[i] = is_omitted ? NULL : &scope->values[n->inputs[i]];
    }
    CLG_TRY(ops_infer_node(n, a->facts, outputs, &needs));
    for (size_t o = 0; o < n->n_outputs; o++) CLG_TRY(free_value(s, &outputs[o], &a->outputs[o]));
    batch_node c = {.node = n,
                    .row = n->op,
                    .inputs = a->inputs,
                    .input_facts = a->facts,
                    .n_inputs = n->n_inputs,
                    .outputs = a->outputs,
                    .output_facts = outputs,
                    .n_outputs = n->n_outputs,
                    .search = s,
                    .symbols = &s->symbols,
                    .memory = &s->memory,
                    .scope = scope};
    return pass(&c, depends_on_batch(scope, n));
}

/* Stores the outputs of a node in the scope, which takes their facts' tensors. */
static clg_status store(batch_scope *scope, const node *n, around *a)
{
    value_fact *outputs = a->facts + n->n_inputs;
    for (size_t o = 0; o < n->n_outputs; o++) {
        const value_id v = n->outputs[o];
        if (v == VALUE_NONE) continue;
        const value *declared = &scope->graph->values[v];
        if (outputs[o].dtype == CLG_DTYPE_NONE) {
            outputs[o].dtype = declared->dtype;
            outputs[o].kind = declared->kind;
            outputs[o].key_dtype = declared->key_dtype;
        }
        CLG_TRY(complete_fact(&a->outputs[o], &outputs[o]));
        scope->facts[v] = outputs[o];
        outputs[o].known = NULL;
        scope->values[v] = a->outputs[o];
    }
    return CLG_OK;
}

static clg_status run_scope(batch_search *s, batch_scope *scope)
{
    const graph *g = scope->graph;
    clg_status status = CLG_OK;
    for (size_t i = 0; i < g->n_nodes && status == CLG_OK; i++) {
        const node *n = &g->nodes[i];
        around a;
        if (n->removed || !scope->needed[i]) continue;
        CLG_TRY(cancel_check("the analysis of the batch"));
        if (s->n_visits++ > MAX_VISITS)
            return error_set(CLG_ERROR_UNSUPPORTED_OPERATOR,
                             "loops are nested too deeply to follow the batch through them");
        status = around_init(n, &a);
        if (status == CLG_OK) status = visit(s, scope, n, &a);
        if (status == CLG_OK) status = store(scope, n, &a);
        for (size_t o = 0; a.facts && o < n->n_outputs; o++)
            tensor_free((tensor *)(uintptr_t)a.facts[n->n_inputs + o].known);
        around_deinit(&a);
    }
    return status;
}

clg_status batch_run_body(batch_node *c, const graph *body, const batch_value *inputs,
                          const clg_dtype *input_dtypes, batch_value *out_values,
                          clg_dtype *out_dtypes)
{
    batch_search *s = c->search;
    batch_scope scope;
    clg_status status = scope_init(s, body, c->scope, &scope);
    for (size_t i = 0; i < body->n_inputs && inputs && status == CLG_OK; i++) {
        value_fact *fact = &scope.facts[body->inputs[i]];
        const shape unknown = shape_unknown();
        fact_set(fact, input_dtypes[i], &unknown);
        scope.values[body->inputs[i]] = inputs[i];
        status = complete_fact(&inputs[i], fact);
    }
    if (status == CLG_OK) status = run_scope(s, &scope);
    for (size_t i = 0; i < body->n_outputs && status == CLG_OK; i++) {
        out_values[i] = scope.values[body->outputs[i]];
        out_dtypes[i] = scope.facts[body->outputs[i]].dtype;
    }
    scope_deinit(&scope);
    return status;
}

/* ---- inputs and outputs ---------------------------------------------------------------------- */

/* Returns whether the model leaves a dimension of an input open. */
static bool is_open(const value *v, int axis)
{
    return v->kind == CLG_VALUE_TENSOR && !v->constant && v->dims.rank > axis &&
           v->dims.dims[axis] == DIM_UNKNOWN;
}

static bool is_named(const value *v, int axis)
{
    return v->dim_names[axis] && v->dim_names[axis][0];
}

/* Returns the name of the batch's dimension; NULL if no input names it. */
static const char *batch_name(const graph *g)
{
    for (size_t i = 0; i < g->n_inputs; i++) {
        const value *v = &g->values[g->inputs[i]];
        if (is_open(v, 0) && is_named(v, 0)) return v->dim_names[0];
    }
    return NULL;
}

/* Returns the axis on which input i carries the batch by default; BATCH_NONE: on none. */
static int default_axis(const graph *g, size_t i, const char *name)
{
    const value *v = &g->values[g->inputs[i]];
    if (!name) return is_open(v, 0) ? 0 : BATCH_NONE;
    for (int axis = 0; axis < v->dims.rank; axis++)
        if (is_open(v, axis) && is_named(v, axis) && strcmp(v->dim_names[axis], name) == 0)
            return axis;
    return BATCH_NONE;
}

/* Sets an input that carries the batch on this axis. */
static clg_status set_batched(batch_search *s, const value *declared, int axis, value_fact *fact,
                              batch_value *v)
{
    const batch_term rows = term_rows();
    char shown[NAME_TEXT_BYTES];
    if (fact->kind != CLG_VALUE_TENSOR || axis < 0 || fact->dims.rank <= axis)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "the input '%s' cannot carry the batch on axis %d: it is not known to "
                         "have that axis",
                         name_text(declared->name, shown), axis);
    fact->dims.dims[axis] = DIM_UNKNOWN;
    tensor_free((tensor *)(uintptr_t)fact->known);
    fact->known = NULL;
    CLG_TRY(free_value(s, fact, v));
    v->kind = BATCH_ROWS;
    v->axis = axis;
    v->dims[axis] = rows;
    return CLG_OK;
}

static clg_status set_inputs(batch_search *s, batch_scope *scope, const batch_request *request,
                             int *out_inputs)
{
    const graph *g = scope->graph;
    const char *name = batch_name(g);
    size_t n_batched = 0;
    for (size_t i = 0; i < g->n_inputs; i++) {
        value_fact *fact = &scope->facts[g->inputs[i]];
        batch_value *v = &scope->values[g->inputs[i]];
        const shape *given = request && request->input_dims ? &request->input_dims[i] : NULL;
        const int axis =
            request && request->input_axes ? request->input_axes[i] : default_axis(g, i, name);
        if (given && given->rank != RANK_UNKNOWN && fact->kind == CLG_VALUE_TENSOR)
            fact->dims = *given;
        if (axis == BATCH_NONE)
            CLG_TRY(free_value(s, fact, v));
        else
            CLG_TRY(set_batched(s, &g->values[g->inputs[i]], axis, fact, v));
        if (out_inputs) out_inputs[i] = axis;
        n_batched += axis != BATCH_NONE;
    }
    if (n_batched > 0) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_ARGUMENT,
                     "no input carries a batch: none has a first dimension that is not fixed");
}

static clg_status get_outputs(const batch_scope *scope, int *out_outputs)
{
    const graph *g = scope->graph;
    char shown[NAME_TEXT_BYTES];
    for (size_t i = 0; i < g->n_outputs; i++) {
        const batch_value *v = &scope->values[g->outputs[i]];
        if (v->kind == BATCH_COUNTS)
            return error_set(CLG_ERROR_UNSUPPORTED_OPERATOR,
                             "the output '%s' depends on the number of rows, which differs in each "
                             "part of a batch",
                             name_text(g->values[g->outputs[i]].name, shown));
        if (out_outputs) out_outputs[i] = v->kind == BATCH_ROWS ? v->axis : BATCH_NONE;
    }
    return CLG_OK;
}

clg_status batch_find(const graph *g, const batch_request *request, int *out_inputs,
                      int *out_outputs)
{
    batch_search s = {.n_visits = 0};
    batch_scope scope;
    clg_status status = scope_init(&s, g, NULL, &scope);
    if (status == CLG_OK) status = set_inputs(&s, &scope, request, out_inputs);
    if (status == CLG_OK) status = run_scope(&s, &scope);
    if (status == CLG_OK) status = get_outputs(&scope, out_outputs);
    scope_deinit(&scope);
    arena_deinit(&s.memory);
    return status;
}
