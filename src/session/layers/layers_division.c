/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the models of the parts. Tensors of constants are shared with the whole model; nodes that
 * depend on constants only are copied to each part that uses them.
 */
#include "session/layers/layers.h"

typedef struct dividing {
    const graph *g;
    const value_fact *facts;
    const layer_costs *costs;
    layers_division *d;
    size_t *slots;           /* by value: its slot; SIZE_MAX: none */
    node_id *first, *end;    /* by part: its nodes, less those that belong to no block */
    size_t part;             /* for `use` */
    size_t *part_of;         /* by value: the part that gives it; SIZE_MAX: none */
    size_t *last_part;       /* by value: the last part that uses it */
    bool *nodes;             /* of the part being made */
    value_id *outputs;       /* of the part being made, as the following */
    const value_id *origins; /* by input: the value of the whole */
} dividing;

/* ---- uses ------------------------------------------------------------------------------------ */

/* Notes that part k->part uses v. */
static void use(void *user, value_id v)
{
    dividing *k = user;
    if (k->last_part[v] == SIZE_MAX || k->last_part[v] < k->part) k->last_part[v] = k->part;
}

static void find_uses(dividing *k)
{
    for (size_t v = 0; v < k->g->n_values; v++) k->part_of[v] = k->last_part[v] = SIZE_MAX;
    for (k->part = 0; k->part < k->d->n_parts; k->part++)
        for (node_id i = k->first[k->part]; i < k->end[k->part]; i++) {
            const node *n = &k->g->nodes[i];
            if (k->costs->is_apart[i]) continue;
            node_visit_uses(n, use, k);
            for (size_t o = 0; o < n->n_outputs; o++)
                if (n->outputs[o] != VALUE_NONE) k->part_of[n->outputs[o]] = k->part;
        }
    /* Outputs that no node of a part gives depend on constants only, or are inputs. */
    for (size_t i = 0; i < k->g->n_outputs; i++)
        if (k->part_of[k->g->outputs[i]] == SIZE_MAX)
            k->part_of[k->g->outputs[i]] = k->d->n_parts - 1;
}

/* Selects the producer of v, if it belongs to no block. */
static void select_producer(void *user, value_id v)
{
    dividing *k = user;
    const node_id n = k->g->values[v].producer;
    if (n != NODE_NONE && k->costs->is_apart[n]) k->nodes[n] = true;
}

/* Selects the nodes of part p, and what they need of those that belong to no block. */
static void select_nodes(dividing *k, size_t p, size_t n_outputs)
{
    for (node_id i = 0; i < k->g->n_nodes; i++)
        k->nodes[i] = i >= k->first[p] && i < k->end[p] && !k->costs->is_apart[i];
    for (size_t i = 0; i < n_outputs; i++) select_producer(k, k->outputs[i]);
    for (node_id i = (node_id)k->g->n_nodes; i-- > 0;) /* consumers come after producers */
        if (k->nodes[i]) node_visit_uses(&k->g->nodes[i], select_producer, k);
}

/* Sets k->outputs to the values of part p that later parts use, or that are the model's outputs. */
static size_t find_outputs(dividing *k, size_t p)
{
    size_t n = 0;
    for (value_id v = 0; v < k->g->n_values; v++) {
        const value *x = &k->g->values[v];
        const bool crosses =
            x->producer != NODE_NONE && k->last_part[v] != SIZE_MAX && k->last_part[v] > p;
        if (k->part_of[v] == p && ((x->is_output && !x->is_input) || crosses)) k->outputs[n++] = v;
    }
    return n;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Completes what the graph of a part declares of its inputs by what is known of the whole. */
static void declare_inputs(const dividing *k, graph *part)
{
    for (size_t i = 0; i < part->n_inputs; i++) {
        value *v = &part->values[part->inputs[i]];
        const value_fact *f = &k->facts[k->origins[i]];
        if (k->g->values[k->origins[i]].is_input) continue;
        v->kind = f->kind;
        v->dtype = f->dtype;
        v->dims = f->dims;
        for (size_t d = 0; d < CLG_MAX_RANK; d++) v->dim_names[d] = NULL;
        v->type_message = NULL;
        v->type_bytes = 0;
    }
}

static clg_status fill_part(dividing *k, size_t p, graph *part, size_t n_outputs)
{
    layers_part *to = &k->d->parts[p];
    to->inputs = arena_alloc(&k->d->memory, part->n_inputs + 1, sizeof *to->inputs);
    to->outputs = arena_alloc(&k->d->memory, n_outputs + 1, sizeof *to->outputs);
    if (!to->inputs || !to->outputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    declare_inputs(k, part);
    to->n_inputs = part->n_inputs;
    to->n_outputs = n_outputs;
    for (size_t i = 0; i < part->n_inputs; i++) to->inputs[i] = k->slots[k->origins[i]];
    for (size_t i = 0; i < n_outputs; i++) to->outputs[i] = k->slots[k->outputs[i]];
    return CLG_OK;
}

static void describe_part(dividing *k, size_t p)
{
    layers_part *to = &k->d->parts[p];
    to->first_node = to->last_node = "";
    to->weight_bytes =
        k->costs->weight_bytes[layer_index(k->costs, to->first_block, to->end_block)];
    to->crossing_bytes = k->costs->crossing[to->first_block];
    for (node_id i = k->first[p]; i < k->end[p]; i++) {
        if (k->costs->is_apart[i]) continue;
        if (to->n_nodes++ == 0) to->first_node = k->g->nodes[i].label;
        to->last_node = k->g->nodes[i].label;
    }
}

static clg_status make_part(dividing *k, size_t p)
{
    graph *part;
    const size_t n_outputs = find_outputs(k, p);
    for (size_t i = 0; i < n_outputs; i++)
        if (k->slots[k->outputs[i]] == SIZE_MAX) k->slots[k->outputs[i]] = k->d->n_slots++;
    select_nodes(k, p, n_outputs);
    describe_part(k, p);
    CLG_TRY(graph_part(k->g, k->nodes, k->outputs, n_outputs, &k->origins, &part));
    const clg_status status = fill_part(k, p, part, n_outputs);
    if (status == CLG_OK) return model_create(part, false, &k->d->parts[p].model);
    graph_free(part);
    return status;
}

static clg_status make_parts(dividing *k, const size_t *first, size_t n_devices)
{
    layers_division *d = k->d;
    d->parts = arena_alloc(&d->memory, n_devices, sizeof *d->parts);
    d->outputs = arena_alloc(&d->memory, k->g->n_outputs + 1, sizeof *d->outputs);
    if (!d->parts || !d->outputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n_devices; i++) {
        if (first[i] == first[i + 1]) continue;
        k->first[d->n_parts] = k->costs->starts[first[i]];
        k->end[d->n_parts] = k->costs->starts[first[i + 1]];
        d->parts[d->n_parts++] =
            (layers_part){.device = i, .first_block = first[i], .end_block = first[i + 1]};
    }
    find_uses(k);
    for (size_t v = 0; v < k->g->n_values; v++) k->slots[v] = SIZE_MAX;
    for (size_t i = 0; i < k->g->n_inputs; i++) k->slots[k->g->inputs[i]] = d->n_slots++;
    for (size_t p = 0; p < d->n_parts; p++) CLG_TRY(make_part(k, p));
    for (size_t i = 0; i < k->g->n_outputs; i++) d->outputs[i] = k->slots[k->g->outputs[i]];
    return CLG_OK;
}

static clg_status divide(dividing *k, const size_t *first, size_t n_devices)
{
    k->slots = memory_zalloc(k->g->n_values + 1, sizeof *k->slots);
    k->part_of = memory_zalloc(k->g->n_values + 1, sizeof *k->part_of);
    k->last_part = memory_zalloc(k->g->n_values + 1, sizeof *k->last_part);
    k->first = memory_zalloc(n_devices, sizeof *k->first);
    k->end = memory_zalloc(n_devices, sizeof *k->end);
    k->nodes = memory_zalloc(k->g->n_nodes + 1, sizeof *k->nodes);
    k->outputs = memory_zalloc(k->g->n_values + 1, sizeof *k->outputs);
    if (!k->slots || !k->part_of || !k->last_part || !k->first || !k->end || !k->nodes ||
        !k->outputs)
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    return make_parts(k, first, n_devices);
}

clg_status layers_divide(const clg_model *model, const layer_costs *costs, const size_t *first,
                         size_t n_devices, layers_division **out_division)
{
    dividing k = {.g = model->graph, .costs = costs};
    value_fact *facts = NULL;
    *out_division = NULL;
    k.d = memory_zalloc(1, sizeof *k.d);
    if (!k.d) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    refcount_init(&k.d->refs);
    clg_status status = ops_infer_graph(k.g, NULL, &facts);
    if (status == CLG_OK) {
        k.facts = facts;
        status = divide(&k, first, n_devices);
        ops_facts_free(facts, k.g->n_values);
    }
    memory_free(k.slots);
    memory_free(k.part_of);
    memory_free(k.last_part);
    memory_free(k.first);
    memory_free(k.end);
    memory_free(k.nodes);
    memory_free(k.outputs);
    if (status == CLG_OK)
        *out_division = k.d;
    else
        layers_division_free(k.d);
    return status;
}

layers_division *layers_division_retain(layers_division *d)
{
    refcount_retain(&d->refs);
    return d;
}

void layers_division_free(layers_division *d)
{
    if (!d || !refcount_release(&d->refs)) return;
    for (size_t p = 0; p < d->n_parts; p++) model_free(d->parts[p].model);
    arena_deinit(&d->memory);
    memory_free(d);
}
