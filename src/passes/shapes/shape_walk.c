/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks a graph and gives terms to its values. Where terms turn out to be numbers that inference
 * did not know, such as the last dimension of a shape whose first is open, the facts get them, and
 * the nodes that read them are inferred again.
 */
#include "base/cancel.h"
#include "passes/shapes/shape_terms.h"

#include <string.h>

/* ---- inferring again ------------------------------------------------------------------------- */

typedef struct walk {
    shape_terms *shapes;
    bool *improved; /* by value: its fact says more than inference did */
    value_fact *inputs, *outputs;
    size_t inputs_capacity, outputs_capacity;
} walk;

static bool reads_improved(const walk *w, const node *n)
{
    for (size_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i] != VALUE_NONE && w->improved[n->inputs[i]]) return true;
    return false;
}

static bool says_more(const value_fact *a, const value_fact *than)
{
    return (a->known && !than->known) || !shape_equal(&a->dims, &than->dims);
}

/* Takes the inferred facts of the node's outputs, with their tensors. */
static void take_outputs(walk *w, const node *n)
{
    for (size_t i = 0; i < n->n_outputs; i++) {
        value_fact *now = &w->outputs[i];
        const value_id v = n->outputs[i];
        value_fact *fact = v == VALUE_NONE ? NULL : &w->shapes->info.facts[v];
        if (fact && now->dtype == fact->dtype && says_more(now, fact)) {
            const value_fact before = *fact;
            *fact = *now;
            *now = before;
            w->improved[v] = true;
        }
        tensor_free((tensor *)(uintptr_t)now->known);
    }
}

/* Infers a node again. One that does not fit its inputs stays as it was: it may never run. */
static clg_status infer_again(walk *w, const node *n)
{
    uint32_t needs;
    const value_fact *facts = w->shapes->info.facts;
    CLG_TRY(MEMORY_RESERVE(w->inputs, w->inputs_capacity, n->n_inputs + 1));
    CLG_TRY(MEMORY_RESERVE(w->outputs, w->outputs_capacity, n->n_outputs + 1));
    for (size_t i = 0; i < n->n_inputs; i++) {
        const shape unknown = shape_unknown();
        if (n->inputs[i] == VALUE_NONE)
            fact_set(&w->inputs[i], CLG_DTYPE_NONE, &unknown);
        else
            w->inputs[i] = facts[n->inputs[i]];
    }
    const clg_status status = ops_infer_node(n, w->inputs, w->outputs, &needs);
    if (status == CLG_OK) take_outputs(w, n);
    return status == CLG_ERROR_OUT_OF_HOST_MEMORY || status == CLG_ERROR_CANCELLED ? status
                                                                                   : CLG_OK;
}

/* ---- terms of values ------------------------------------------------------------------------- */

/* Makes dimensions known that are numbers, unless a tensor of them could not be addressed:
 * inference would have refused it. */
static void set_numbers(walk *w, value_id v, const size_term *dims)
{
    value_fact *fact = &w->shapes->info.facts[v];
    shape better = fact->dims;
    int64_t number, count;
    for (int i = 0; i < better.rank; i++)
        if (better.dims[i] == DIM_UNKNOWN &&
            size_terms_is_number(&w->shapes->terms, dims[i], &number) && number >= 0)
            better.dims[i] = number;
    if (shape_equal(&better, &fact->dims)) return;
    shape most = better; /* as many elements as there may be at least */
    for (int i = 0; i < most.rank; i++)
        if (most.dims[i] == DIM_UNKNOWN || most.dims[i] == 0) most.dims[i] = 1;
    if (shape_n_elements(&most, &count) != CLG_OK || count > INT64_MAX / 16) return;
    fact->dims = better;
    w->improved[v] = true;
}

/* Gives value v its dimensions: those that are inferred, by the rule of node n (NULL: none), or
 * open. */
static clg_status set_dims(walk *w, value_id v, const node *n, size_t o)
{
    shape_terms *s = w->shapes;
    const value_fact *fact = &s->info.facts[v];
    if (fact->kind != CLG_VALUE_TENSOR || fact->dims.rank < 0) return CLG_OK;
    size_term *dims = arena_alloc(&s->memory, (size_t)fact->dims.rank + 1, sizeof *dims);
    if (!dims) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int i = 0; i < fact->dims.rank; i++) dims[i] = SIZE_TERM_NONE;
    if (n && !shape_is_known(&fact->dims)) shape_rules_dims(s, n, o, dims);
    for (int i = 0; i < fact->dims.rank; i++) {
        if (fact->dims.dims[i] != DIM_UNKNOWN)
            dims[i] = size_terms_number(&s->terms, fact->dims.dims[i]);
        else if (dims[i] == SIZE_TERM_NONE)
            dims[i] = size_terms_dim(&s->terms, v, i);
    }
    set_numbers(w, v, dims);
    s->values[v].dims = dims;
    return s->terms.status;
}

/* Makes elements known that are all numbers. */
static clg_status set_known(walk *w, value_id v)
{
    const shape_terms *s = w->shapes;
    value_fact *fact = &s->info.facts[v];
    int64_t number;
    tensor *t;
    for (size_t i = 0; i < s->values[v].n_elements; i++)
        if (!shape_terms_element_is(s, v, i, &number)) return CLG_OK;
    CLG_TRY(tensor_create(fact->dtype, &fact->dims, &t));
    for (size_t i = 0; i < s->values[v].n_elements; i++)
        if (shape_terms_element_is(s, v, i, &number)) tensor_set_int(t, (int64_t)i, number);
    fact->known = t;
    w->improved[v] = true;
    return CLG_OK;
}

/* Gives value v its elements, if it is a short list of integers or one. */
static clg_status set_elements(walk *w, value_id v, const node *n)
{
    shape_terms *s = w->shapes;
    const value_fact *fact = &s->info.facts[v];
    if (fact->kind != CLG_VALUE_TENSOR || fact->dims.rank < 0 || fact->dims.rank > 1 ||
        (fact->dtype != CLG_INT64 && fact->dtype != CLG_INT32))
        return CLG_OK;
    const int64_t count = fact->dims.rank == 1 ? fact->dims.dims[0] : 1;
    if (count < 0 || count > SHAPE_MAX_ELEMENTS) return CLG_OK;
    size_term *elements = arena_alloc(&s->memory, (size_t)count + 1, sizeof *elements);
    if (!elements) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < (size_t)count; i++) elements[i] = SIZE_TERM_NONE;
    if (!fact->known && n) shape_rules_elements(s, n, (size_t)count, elements);
    for (size_t i = 0; i < (size_t)count; i++) {
        if (fact->known)
            elements[i] = size_terms_number(&s->terms, tensor_get_int(fact->known, (int64_t)i));
        else if (elements[i] == SIZE_TERM_NONE)
            elements[i] = size_terms_element(&s->terms, v, i);
    }
    s->values[v].elements = elements;
    s->values[v].n_elements = (size_t)count;
    if (s->terms.status != CLG_OK) return s->terms.status;
    return fact->known ? CLG_OK : set_known(w, v);
}

static clg_status set_node(walk *w, const node *n)
{
    if (reads_improved(w, n)) CLG_TRY(infer_again(w, n));
    for (size_t o = 0; o < n->n_outputs; o++) {
        if (n->outputs[o] == VALUE_NONE) continue;
        CLG_TRY(set_dims(w, n->outputs[o], n, o));
        CLG_TRY(set_elements(w, n->outputs[o], o == 0 ? n : NULL));
    }
    return CLG_OK;
}

static clg_status set_all(walk *w)
{
    const graph *g = w->shapes->info.graph;
    for (value_id v = 0; v < w->shapes->info.n_values; v++) {
        if (g->values[v].producer != NODE_NONE) continue;
        CLG_TRY(set_dims(w, v, NULL, 0));
        CLG_TRY(set_elements(w, v, NULL));
    }
    for (node_id i = 0; i < g->n_nodes; i++) {
        CLG_TRY(cancel_check("optimising the graph"));
        if (!g->nodes[i].removed) CLG_TRY(set_node(w, &g->nodes[i]));
    }
    return CLG_OK;
}

clg_status shape_terms_make(graph *g, shape_terms *out_shapes)
{
    shape_terms *s = out_shapes;
    walk w = {.shapes = s};
    *s = (shape_terms){0};
    clg_status status = graph_info_make(g, &s->info);
    if (status != CLG_OK) return status;
    s->values = memory_zalloc(s->info.n_values + 1, sizeof *s->values);
    w.improved = memory_zalloc(s->info.n_values + 1, sizeof *w.improved);
    if (!s->values || !w.improved) status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK) status = set_all(&w);
    memory_free(w.improved);
    memory_free(w.inputs);
    memory_free(w.outputs);
    if (status != CLG_OK) shape_terms_deinit(s);
    return status;
}
