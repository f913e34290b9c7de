/* SPDX-License-Identifier: Apache-2.0
 *
 * How a batch passes through If, Loop and Scan: their conditions and counts must not depend on it,
 * and what loops carry must be as it was after each iteration.
 */
#include "ops/batch/batch_rule.h"

static const graph *body_of(const batch_node *c, const char *name)
{
    const graph_attribute *a = node_attribute(c->node, name);
    return a->as.graph;
}

/* Replaces *a by what is true of both values, which are those of one place: in two branches, or
 * before and after an iteration. Sizes that differ become new symbols, *changed then. Returns false
 * if the values do not depend on the batch alike. */
static bool join(batch_symbols *s, batch_value *a, const batch_value *b, bool *changed)
{
    if (a->kind != b->kind || a->kind == BATCH_COUNTS) return false;
    if (a->elements) {
        bool same = b->elements && a->n_elements == b->n_elements;
        for (size_t i = 0; same && i < a->n_elements; i++)
            same = term_equal(&a->elements[i], &b->elements[i]);
        if (!same) {
            a->elements = NULL;
            a->n_elements = 0;
            *changed = true;
        }
    }
    if (a->rank != b->rank && a->kind == BATCH_ROWS) return false;
    if (a->rank != b->rank) {
        *changed = *changed || a->rank != RANK_UNKNOWN;
        a->rank = RANK_UNKNOWN;
    }
    if (a->kind == BATCH_ROWS &&
        (a->axis != b->axis || !term_equal(&a->dims[a->axis], &b->dims[b->axis])))
        return false;
    for (int i = 0; i < a->rank; i++) {
        if (term_equal(&a->dims[i], &b->dims[i])) continue;
        a->dims[i] = term_size(s);
        *changed = true;
    }
    return true;
}

static clg_status set_output(batch_node *c, size_t o, const batch_value *v)
{
    if (v->rank != RANK_UNKNOWN) CLG_TRY(batch_set_rank(c, o, v->rank));
    c->outputs[o] = *v;
    return CLG_OK;
}

/* ---- If -------------------------------------------------------------------------------------- */

typedef struct branch {
    batch_value *values;
    clg_dtype *dtypes;
} branch;

static clg_status run_branch(batch_node *c, const char *name, branch *out)
{
    out->values = arena_alloc(c->memory, c->n_outputs + 1, sizeof *out->values);
    out->dtypes = arena_alloc(c->memory, c->n_outputs + 1, sizeof *out->dtypes);
    if (!out->values || !out->dtypes) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const graph *body = body_of(c, name);
    if (body->n_outputs != c->n_outputs)
        return batch_refuse(c, "a branch has another number of outputs");
    return batch_run_body(c, body, NULL, NULL, out->values, out->dtypes);
}

clg_status batch_pass_if(batch_node *c)
{
    branch yes = {0}, no = {0};
    bool changed = false;
    const tensor *known = c->input_facts[0].known;
    if (known && known->n_elements == 1) {
        CLG_TRY(run_branch(c, tensor_get_int(known, 0) ? "then_branch" : "else_branch", &yes));
    } else {
        CLG_TRY(run_branch(c, "then_branch", &yes));
        CLG_TRY(run_branch(c, "else_branch", &no));
    }
    for (size_t o = 0; o < c->n_outputs; o++) {
        if (no.values && !join(c->symbols, &yes.values[o], &no.values[o], &changed))
            return batch_refuse(c, "output %zu does not carry the batch alike in both branches", o);
        CLG_TRY(set_output(c, o, &yes.values[o]));
    }
    return CLG_OK;
}

/* ---- Loop, Scan ------------------------------------------------------------------------------ */

#define MAX_ROUNDS (CLG_MAX_RANK + 4)

/* The values that a body takes and gives. */
typedef struct iteration {
    const graph *body;
    size_t n_carried, first; /* inputs of the body before the carried ones: `first` */
    size_t first_out;        /* outputs before them */
    batch_value *inputs, *outputs;
    clg_dtype *input_dtypes, *output_dtypes;
} iteration;

static clg_status make_iteration(batch_node *c, iteration *it)
{
    const graph *body = it->body;
    it->inputs = arena_alloc(c->memory, body->n_inputs + 1, sizeof *it->inputs);
    it->input_dtypes = arena_alloc(c->memory, body->n_inputs + 1, sizeof *it->input_dtypes);
    it->outputs = arena_alloc(c->memory, body->n_outputs + 1, sizeof *it->outputs);
    it->output_dtypes = arena_alloc(c->memory, body->n_outputs + 1, sizeof *it->output_dtypes);
    return it->inputs && it->input_dtypes && it->outputs && it->output_dtypes
               ? CLG_OK
               : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

/* Runs the body until what it carries is the same before and after. */
static clg_status find_fixed_point(batch_node *c, iteration *it)
{
    for (int round = 0; round < MAX_ROUNDS; round++) {
        bool changed = false;
        CLG_TRY(batch_run_body(c, it->body, it->inputs, it->input_dtypes, it->outputs,
                               it->output_dtypes));
        for (size_t k = 0; k < it->n_carried; k++)
            if (!join(c->symbols, &it->inputs[it->first + k], &it->outputs[it->first_out + k],
                      &changed))
                return batch_refuse(c, "value %zu that it carries changes how it carries the batch",
                                    k);
        if (!changed) return CLG_OK;
    }
    return batch_refuse(c, "the shapes of what it carries do not settle");
}

/* Sets output o to values of the body stacked along an axis. */
static clg_status set_stacked(batch_node *c, size_t o, const batch_value *v, int64_t axis)
{
    int at = 0;
    if (v->kind == BATCH_COUNTS || v->rank == RANK_UNKNOWN) {
        if (v->kind == BATCH_FREE) return CLG_OK;
        return batch_refuse(c, "output %zu depends on the number of rows", o);
    }
    CLG_TRY(batch_axis(c, axis, v->rank + 1, &at));
    CLG_TRY(batch_set_rank(c, o, v->rank + 1));
    for (int i = 0; i < v->rank; i++) {
        const int to = i + (i >= at);
        if (v->kind == BATCH_ROWS && i == v->axis)
            batch_set_rows(c, o, to, &v->dims[i]);
        else
            batch_set_dim(c, o, to, &v->dims[i]);
    }
    return CLG_OK;
}

static void give(const batch_node *c, iteration *it, size_t to, size_t from)
{
    it->inputs[to] = *c->inputs[from];
    it->input_dtypes[to] = c->input_facts[from].dtype;
}

clg_status batch_pass_loop(batch_node *c)
{
    iteration it = {.body = body_of(c, "body"), .first = 2, .first_out = 1};
    it.n_carried = c->n_inputs > 2 ? c->n_inputs - 2 : 0;
    for (size_t i = 0; i < 2 && i < c->n_inputs; i++)
        if (c->inputs[i] && c->inputs[i]->kind != BATCH_FREE)
            return batch_refuse(c, "how often it runs depends on the batch");
    if (it.body->n_inputs != it.first + it.n_carried || it.body->n_outputs < 1 + it.n_carried ||
        c->n_outputs > it.body->n_outputs - 1)
        return batch_refuse(c, "its body does not fit it");
    CLG_TRY(make_iteration(c, &it));
    it.inputs[0] = it.inputs[1] = (batch_value){.kind = BATCH_FREE, .rank = 0};
    it.input_dtypes[0] = CLG_INT64;
    it.input_dtypes[1] = CLG_BOOL;
    for (size_t k = 0; k < it.n_carried; k++) {
        if (!c->inputs[2 + k]) return batch_refuse(c, "it leaves out a value that it carries");
        give(c, &it, 2 + k, 2 + k);
    }
    CLG_TRY(find_fixed_point(c, &it));
    if (it.outputs[0].kind != BATCH_FREE)
        return batch_refuse(c, "whether it goes on depends on the batch");
    for (size_t o = 0; o < c->n_outputs; o++) {
        if (o < it.n_carried)
            CLG_TRY(set_output(c, o, &it.inputs[2 + o]));
        else
            CLG_TRY(set_stacked(c, o, &it.outputs[1 + o], 0));
    }
    return CLG_OK;
}

/* Sets input `to` of the body to a slice of the node's input `from` along an axis. */
static clg_status give_slice(batch_node *c, iteration *it, size_t to, size_t from, int64_t axis)
{
    const batch_value *x = c->inputs[from];
    batch_value *v = &it->inputs[to];
    int at = 0;
    give(c, it, to, from);
    v->elements = NULL;
    v->n_elements = 0;
    if (x->rank == RANK_UNKNOWN && x->kind == BATCH_FREE) return CLG_OK;
    CLG_TRY(batch_need_rank(c, from));
    CLG_TRY(batch_axis(c, axis, x->rank, &at));
    if (batch_carries(x) && x->axis == at)
        return batch_refuse(c, "it goes along axis %d of input %zu, which carries the batch", at,
                            from);
    v->rank = x->rank - 1;
    v->axis = x->axis - (x->axis > at);
    for (int i = at; i < v->rank; i++) v->dims[i] = x->dims[i + 1];
    return CLG_OK;
}

clg_status batch_pass_scan(batch_node *c)
{
    iteration it = {.body = body_of(c, "body")};
    size_t n_axes, n_out_axes;
    const int64_t *axes = node_ints(c->node, "scan_input_axes", &n_axes);
    const int64_t *out_axes = node_ints(c->node, "scan_output_axes", &n_out_axes);
    const int64_t n_scanned = node_int(c->node, "num_scan_inputs", 1);
    if (n_scanned < 0 || (uint64_t)n_scanned > c->n_inputs || it.body->n_inputs != c->n_inputs ||
        it.body->n_outputs != c->n_outputs)
        return batch_refuse(c, "its body does not fit it");
    it.n_carried = c->n_inputs - (size_t)n_scanned;
    if (c->n_outputs < it.n_carried) return batch_refuse(c, "its body does not fit it");
    CLG_TRY(make_iteration(c, &it));
    for (size_t k = 0; k < it.n_carried; k++) give(c, &it, k, k);
    for (size_t k = it.n_carried; k < c->n_inputs; k++)
        CLG_TRY(give_slice(c, &it, k, k, k - it.n_carried < n_axes ? axes[k - it.n_carried] : 0));
    CLG_TRY(find_fixed_point(c, &it));
    for (size_t o = 0; o < c->n_outputs; o++) {
        const size_t k = o - it.n_carried;
        if (o < it.n_carried)
            CLG_TRY(set_output(c, o, &it.inputs[o]));
        else
            CLG_TRY(set_stacked(c, o, &it.outputs[o], k < n_out_axes ? out_axes[k] : 0));
    }
    return CLG_OK;
}
