/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuses adjacent pointwise nodes into one clgraph.Pointwise (ops/pointwise/pointwise.h), so that
 * intermediate values stay in registers. A group grows backwards from its last node: a node joins
 * if all consumers of its result are members, so that no cycle can arise. The group's outputs are
 * the result of its last node, and those of its members that are outputs of the graph: an update
 * of training computes the parameters and the optimizer's states. Members have the shape of the
 * group's result, or one element: a node with another result would be recomputed for each element,
 * and stays separate.
 */
#include "base/cancel.h"
#include "ops/pointwise/pointwise.h"
#include "passes/rewrite.h"

#include <string.h>

typedef struct growth {
    graph_info *info;
    graph *graph;
    bool *taken; /* [node]: is a member of a finished group */
    value_id result;
    node_id members[POINTWISE_MAX_INSTRUCTIONS]; /* ascending, so in topological order */
    size_t n_members;
    pointwise_group group;
    value_id inputs[POINTWISE_MAX_INPUTS]; /* of the group */
} growth;

/* Returns whether a node may be fused. Nodes with only integer operands are usually shape
 * arithmetic, which the host does during planning; they are not fused, but for comparisons with
 * results of two and more dimensions, which may join others. */
static bool is_suited(const graph_info *s, const node *n, bool joins)
{
    if (n->removed || !pointwise_is(n) || n->n_outputs != 1 || s->constant[n->outputs[0]])
        return false;
    const value_fact *result = &s->facts[n->outputs[0]];
    bool has_float = dtype_is_float(result->dtype) ||
                     (joins && result->dtype == CLG_BOOL && result->dims.rank >= 2);
    if (result->dtype == CLG_STRING) return false;
    for (size_t i = 0; i < n->n_inputs; i++) {
        if (n->inputs[i] == VALUE_NONE) continue;
        const value_fact *fact = &s->facts[n->inputs[i]];
        if (fact->dtype == CLG_DTYPE_NONE || fact->dtype == CLG_STRING) return false;
        has_float = has_float || dtype_is_float(fact->dtype);
    }
    return has_float;
}

/* Returns whether a member's result has one element, which is then computed for each element of the
 * group: in the time of a launch, a CPU computes some ten thousand. */
static bool is_number(const shape *part)
{
    for (int i = 0; i < part->rank; i++)
        if (part->dims[i] != 1) return false;
    return part->rank != RANK_UNKNOWN;
}

/* Returns whether the shape `part` may equal `whole`. Unknown dimensions are assumed to be equal.
 * If one is 1 and is broadcast instead, the result is still right, only computed more slowly. */
static bool may_have_shape(const shape *part, const shape *whole)
{
    if (part->rank == RANK_UNKNOWN || part->rank != whole->rank) return false;
    for (int i = 0; i < part->rank; i++) {
        const int64_t a = part->dims[i], b = whole->dims[i];
        if (a != b && a != DIM_UNKNOWN && b != DIM_UNKNOWN) return false;
        if (a == 1 && b != 1) return false;
    }
    return true;
}

static bool is_member(const growth *w, node_id n)
{
    for (size_t i = 0; i < w->n_members; i++)
        if (w->members[i] == n) return true;
    return false;
}

static uint32_t readings(const growth *w, value_id v)
{
    uint32_t n = 0;
    for (size_t m = 0; m < w->n_members; m++) {
        const node *member = &w->graph->nodes[w->members[m]];
        for (size_t i = 0; i < member->n_inputs; i++) n += member->inputs[i] == v;
    }
    return n;
}

/* Returns the node that produces v if it may join the group; else NODE_NONE. */
static node_id find_joiner(const growth *w, value_id v)
{
    if (v == VALUE_NONE) return NODE_NONE;
    const node_id n = w->graph->values[v].producer;
    const bool is_output = w->graph->values[v].is_output;
    if (n == NODE_NONE || w->taken[n] || is_member(w, n) ||
        !is_suited(w->info, &w->graph->nodes[n], true))
        return NODE_NONE;
    if (readings(w, v) + is_output != w->info->uses[v]) return NODE_NONE;
    const shape *dims = &w->info->facts[w->result].dims, *own = &w->info->facts[v].dims;
    const bool fits = is_output ? shape_is_known(own) && shape_equal(own, dims)
                                : may_have_shape(own, dims) || is_number(own);
    return fits ? n : NODE_NONE;
}

/* ---- the group of the members ---------------------------------------------------------------- */

/* Register of each value, while a group is written. */
typedef struct naming {
    value_id values[POINTWISE_MAX_INSTRUCTIONS];
    pointwise_register registers[POINTWISE_MAX_INSTRUCTIONS];
    size_t count;
} naming;

static clg_status find_register(growth *w, const naming *results, value_id v,
                                pointwise_register *out)
{
    for (size_t i = 0; i < results->count; i++) {
        if (results->values[i] != v) continue;
        *out = results->registers[i];
        return CLG_OK;
    }
    for (size_t i = 0; i < w->group.n_inputs; i++) {
        if (w->inputs[i] != v) continue;
        *out = (pointwise_register)i;
        return CLG_OK;
    }
    CLG_TRY(pointwise_add_input(&w->group, w->info->facts[v].dtype, out));
    w->inputs[*out] = v;
    return CLG_OK;
}

static clg_status write_member(growth *w, naming *results, const node *n)
{
    pointwise_register registers[POINTWISE_MAX_INPUTS];
    const tensor *known[POINTWISE_MAX_INPUTS];
    if (n->n_inputs > POINTWISE_MAX_INPUTS)
        return error_set(CLG_ERROR_UNSUPPORTED_OPERATOR, "a pointwise group has too many inputs");
    for (size_t i = 0; i < n->n_inputs; i++) {
        registers[i] = POINTWISE_NONE;
        known[i] = NULL;
        if (n->inputs[i] == VALUE_NONE) continue;
        CLG_TRY(find_register(w, results, n->inputs[i], &registers[i]));
        known[i] = w->graph->values[n->inputs[i]].constant;
    }
    const pointwise_source source = {n, n->op, registers, known, n->n_inputs};
    results->values[results->count] = n->outputs[0];
    return pointwise_add_node(&w->group, &source, &results->registers[results->count++]);
}

/* Lists the results of members, but the last, that are outputs of the graph. */
static size_t list_outputs(const growth *w, value_id out[POINTWISE_MAX_INSTRUCTIONS])
{
    size_t n = 0;
    for (size_t i = 0; i + 1 < w->n_members; i++) {
        const value_id v = w->graph->nodes[w->members[i]].outputs[0];
        if (w->graph->values[v].is_output) out[n++] = v;
    }
    return n;
}

/* Removes inputs that no instruction reads, such as an exponent that is a known constant. Fails if
 * one of them may determine the result's shape. */
static clg_status drop_unread_inputs(growth *w)
{
    pointwise_register moved[POINTWISE_MAX_INPUTS];
    const size_t n_before = w->group.n_inputs;
    pointwise_drop_unread(&w->group, moved);
    for (size_t i = 0; i < n_before; i++) {
        const shape *dims = &w->info->facts[w->inputs[i]].dims;
        if (moved[i] != POINTWISE_NONE)
            w->inputs[moved[i]] = w->inputs[i];
        else if (dims->rank != 0 && !(dims->rank == 1 && dims->dims[0] == 1))
            return error_set(CLG_ERROR_UNSUPPORTED_OPERATOR,
                             "an input that is not read may shape the result");
    }
    return w->group.n_inputs > 0
               ? CLG_OK
               : error_set(CLG_ERROR_UNSUPPORTED_OPERATOR, "a pointwise group has no input");
}

static clg_status write_group(growth *w)
{
    value_id outputs[POINTWISE_MAX_INSTRUCTIONS];
    pointwise_register r;
    naming results = {.count = 0};
    w->group = (pointwise_group){0};
    for (size_t i = 0; i < w->n_members; i++)
        CLG_TRY(write_member(w, &results, &w->graph->nodes[w->members[i]]));
    CLG_TRY(pointwise_add_output(&w->group, results.registers[results.count - 1]));
    const size_t n = list_outputs(w, outputs);
    for (size_t i = 0; i < n; i++) {
        CLG_TRY(find_register(w, &results, outputs[i], &r));
        CLG_TRY(pointwise_add_output(&w->group, r));
    }
    return drop_unread_inputs(w);
}

/* ---- growing --------------------------------------------------------------------------------- */

static void insert_member(growth *w, node_id n)
{
    size_t at = w->n_members++;
    for (; at > 0 && w->members[at - 1] > n; at--) w->members[at] = w->members[at - 1];
    w->members[at] = n;
}

static void remove_member(growth *w, node_id n)
{
    size_t at = 0;
    while (w->members[at] != n) at++;
    w->n_members--;
    for (; at < w->n_members; at++) w->members[at] = w->members[at + 1];
}

/* Adds one node to the group, and sets *out_joined to whether any could be added. */
static clg_status join_one(growth *w, bool *out_joined)
{
    *out_joined = false;
    for (size_t m = w->n_members; m-- > 0 && w->n_members < POINTWISE_MAX_INSTRUCTIONS;) {
        const node *member = &w->graph->nodes[w->members[m]];
        for (size_t i = 0; i < member->n_inputs; i++) {
            const node_id n = find_joiner(w, member->inputs[i]);
            if (n == NODE_NONE) continue;
            insert_member(w, n);
            const clg_status status = write_group(w);
            if (status == CLG_OK) {
                *out_joined = true;
                return CLG_OK;
            }
            if (status == CLG_ERROR_OUT_OF_HOST_MEMORY) return status;
            remove_member(w, n);
        }
    }
    return CLG_OK;
}

/* Turns the last member into the group's clgraph.Pointwise node, and removes the others. */
static clg_status replace(growth *w)
{
    value_id outputs[POINTWISE_MAX_INSTRUCTIONS];
    const node_id last = w->members[w->n_members - 1];
    const size_t n = list_outputs(w, outputs);
    CLG_TRY(write_group(w));
    for (size_t i = 0; i + 1 < w->n_members; i++) graph_remove_node(w->graph, w->members[i]);
    CLG_TRY(rewrite_become(w->graph, last, DOMAIN_INTERNAL, "Pointwise",
                           graph_opset(w->graph, DOMAIN_INTERNAL), w->group.n_inputs, w->inputs));
    for (size_t i = 0; i < n; i++) CLG_TRY(node_add_output(w->graph, last, outputs[i]));
    return pointwise_write(&w->group, w->graph, last);
}

static clg_status grow(growth *w, node_id from)
{
    const node *n = &w->graph->nodes[from];
    if (w->taken[from] || !is_suited(w->info, n, false)) return CLG_OK;
    w->result = n->outputs[0];
    w->members[0] = from;
    w->n_members = 1;
    if (w->info->facts[w->result].dims.rank == RANK_UNKNOWN || write_group(w) != CLG_OK)
        return CLG_OK;
    for (bool joined = true; joined;) CLG_TRY(join_one(w, &joined));
    if (w->n_members == 1) return CLG_OK;
    for (size_t i = 0; i < w->n_members; i++) w->taken[w->members[i]] = true;
    return replace(w);
}

clg_status pass_pointwise(graph *g, const pass_options *options)
{
    (void)options;
    graph_info s;
    CLG_TRY(graph_info_make(g, &s));
    growth *w = memory_zalloc(1, sizeof *w);
    bool *taken = memory_zalloc(g->n_nodes + 1, sizeof *taken);
    clg_status status = w && taken ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK) *w = (growth){.info = &s, .graph = g, .taken = taken};
    for (size_t i = g->n_nodes; i-- > 0 && status == CLG_OK;) {
        status = cancel_check("optimising the graph");
        if (status == CLG_OK) status = grow(w, (node_id)i);
    }
    memory_free(taken);
    memory_free(w);
    graph_info_deinit(&s);
    return status;
}
