/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes random nodes. See random_node.h.
 */
#include "support/cases/random_node.h"

#include "support/fixtures/random_graph.h"
#include "support/unit.h"

#include <string.h>

#define MAX_LIST 6

uint64_t random_node_draw(random_node *k, uint64_t n) { return random_next(&k->state) % n; }

static bool one_in(random_node *k, uint64_t n) { return random_node_draw(k, n) == 0; }

static int64_t small(random_node *k, int64_t from, int64_t to)
{
    return from + (int64_t)random_node_draw(k, (uint64_t)(to - from + 1));
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static clg_dtype one_dtype(random_node *k, dtype_set set)
{
    uint64_t n = 0;
    for (int i = 1; i < 32; i++) n += set & DTYPE_BIT(i) ? 1 : 0;
    if (n == 0) return CLG_FLOAT32;
    uint64_t wanted = random_node_draw(k, n);
    for (int i = 1; i < 32; i++)
        if ((set & DTYPE_BIT(i)) && wanted-- == 0) return (clg_dtype)i;
    return CLG_FLOAT32;
}

static shape one_shape(random_node *k, bool known)
{
    static const int64_t sizes[] = {0, 1, 1, 2, 2, 3, 4};
    shape s = {.rank = (int)random_node_draw(k, 6)};
    if (!known && one_in(k, 16)) return shape_unknown();
    for (int d = 0; d < s.rank; d++)
        s.dims[d] = !known && one_in(k, 8)
                        ? DIM_UNKNOWN
                        : sizes[random_node_draw(k, sizeof sizes / sizeof *sizes)];
    return s;
}

static tensor *one_tensor(random_node *k, clg_dtype dtype, const shape *dims)
{
    tensor *t;
    assert_ok(tensor_create(dtype, dims, &t));
    for (int64_t i = 0; i < t->n_elements; i++) {
        if (dtype == CLG_STRING)
            assert_ok(tensor_set_string(t, i, "abcd", (size_t)random_node_draw(k, 4)));
        else if (dtype_is_float(dtype))
            tensor_set_float(t, i, (double)small(k, -8, 12) / 4);
        else
            tensor_set_int(t, i,
                           small(k, dtype_find(dtype)->kind == DTYPE_KIND_SIGNED ? -2 : 0, 1));
    }
    return t;
}

static char letter_of(const char *list, size_t i)
{
    const size_t n = list ? strlen(list) : 0;
    return n == 0 ? '?' : list[i < n ? i : n - 1];
}

static void make_inputs(random_node *k, random_node_inputs inputs)
{
    clg_dtype of_letter[128] = {CLG_DTYPE_NONE};
    const bool known = inputs == RANDOM_NODE_CONSTANT;
    const shape common = one_shape(k, known), unknown = shape_unknown();
    for (size_t i = 0; i < k->node->n_inputs; i++) {
        const char letter = letter_of(k->row->input_types, i);
        clg_dtype *dtype = &of_letter[(unsigned char)letter & 127];
        shape dims = one_in(k, 2) ? common : one_shape(k, known);
        if (*dtype == CLG_DTYPE_NONE || letter == '?')
            *dtype = one_dtype(k, op_row_types(k->row, letter));
        if (k->node->inputs[i] == VALUE_NONE) {
            fact_set(&k->inputs[i], CLG_DTYPE_NONE, &unknown);
            continue;
        }
        if (i > 0 && one_in(k, 4)) dims = (shape){.rank = 1, .dims = {small(k, 0, 4)}};
        if (i > 0 && one_in(k, 4)) dims = shape_scalar();
        fact_set(&k->inputs[i], *dtype, &dims);
        if (known || (shape_is_known(&dims) && one_in(k, 2)))
            k->inputs[i].known = one_tensor(k, *dtype, &dims);
    }
}

/* ---- attributes ------------------------------------------------------------------------------ */

static int64_t one_int(random_node *k, const op_domain *d)
{
    if (!d) return small(k, -4, 6);
    if (d->dtypes) return one_dtype(k, d->dtypes);
    return (uint64_t)d->max - (uint64_t)d->min < 8 ? small(k, d->min, d->max)
                                                   : small(k, d->min, d->min + 4);
}

static const char *one_word(random_node *k, const op_domain *d)
{
    uint64_t n = 0;
    if (!d) return one_in(k, 2) ? "ij,jk->ik" : "a";
    while (d->words[n]) n++;
    return d->words[random_node_draw(k, n)];
}

static void add_list(random_node *k, const op_attribute *a)
{
    int64_t ints[MAX_LIST];
    float floats[MAX_LIST];
    const char *words[MAX_LIST];
    const size_t n = (size_t)random_node_draw(k, MAX_LIST + 1);
    graph_attribute made = {.name = a->name, .type = a->type, .count = n};
    for (size_t i = 0; i < n; i++) {
        ints[i] = one_int(k, a->domain);
        floats[i] = (float)small(k, -4, 8) / 4;
        words[i] = one_in(k, 2) ? "Tanh" : "b";
    }
    if (a->type == ATTRIBUTE_INTS) made.as.ints = ints;
    if (a->type == ATTRIBUTE_FLOATS) made.as.floats = floats;
    if (a->type == ATTRIBUTE_STRINGS) made.as.strings = words;
    assert_ok(node_add_attribute(k->graph, 0, &made));
}

static void add_attribute(random_node *k, const op_attribute *a)
{
    const shape dims = {.rank = 1, .dims = {small(k, 0, 3)}};
    tensor *t = NULL;
    switch (a->type) {
    case ATTRIBUTE_INT: assert_ok(node_set_int(k->graph, 0, a->name, one_int(k, a->domain))); break;
    case ATTRIBUTE_FLOAT:
        assert_ok(
            node_set_float(k->graph, 0, a->name,
                           a->domain ? (float)one_int(k, a->domain) : (float)small(k, -4, 8) / 4));
        break;
    case ATTRIBUTE_STRING:
        assert_ok(node_set_string(k->graph, 0, a->name, one_word(k, a->domain)));
        break;
    case ATTRIBUTE_TENSOR:
        t = one_tensor(k, one_dtype(k, DTYPES_ALL_FIXED), &dims);
        assert_ok(node_set_tensor(k->graph, 0, a->name, t));
        tensor_free(t);
        break;
    case ATTRIBUTE_INTS:
    case ATTRIBUTE_FLOATS:
    case ATTRIBUTE_STRINGS: add_list(k, a); break;
    case ATTRIBUTE_GRAPH:
    case ATTRIBUTE_NONE: break;
    }
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static size_t one_count(random_node *k, size_t min, size_t max, bool bare)
{
    if (bare) return min;
    if (max <= RANDOM_NODE_VALUES && one_in(k, 2)) return max;
    if (max > RANDOM_NODE_VALUES) max = min > 4 ? min : 4;
    return min + (size_t)random_node_draw(k, max - min + 1);
}

void random_node_make(random_node *k, const op_row *row, uint64_t seed, random_node_inputs inputs)
{
    value_id ids[RANDOM_NODE_VALUES], outputs[RANDOM_NODE_VALUES];
    node_id n;
    *k = (random_node){.row = row, .state = seed * 977 + 1};
    const char *domain = row->domain ? row->domain : "";
    const bool bare = inputs == RANDOM_NODE_BARE;
    const size_t n_outputs = one_count(k, row->min_outputs, row->max_outputs, bare);
    const size_t n_inputs = one_count(k, row->min_inputs, row->max_inputs, bare);
    assert_ok(graph_create("", &k->graph));
    if (strcmp(domain, DOMAIN_INTERNAL) != 0)
        assert_ok(graph_set_opset(k->graph, domain, row->since));
    for (size_t i = 0; i < n_inputs; i++) {
        const bool omitted = i >= row->min_inputs && row->max_inputs != OP_ANY_NUMBER &&
                             (seed >> (i - row->min_inputs)) & 1;
        ids[i] = VALUE_NONE;
        if (!omitted) assert_ok(graph_add_value(k->graph, "", &ids[i]));
    }
    for (size_t i = 0; i < n_outputs; i++) assert_ok(graph_add_value(k->graph, "", &outputs[i]));
    assert_ok(
        graph_add_node(k->graph, domain, row->name, "n", n_inputs, ids, n_outputs, outputs, &n));
    k->node = &k->graph->nodes[n];
    k->node->op = row;
    for (const op_attribute *a = row->attributes; !bare && a && a->name; a++)
        if (a->required || one_in(k, 2)) add_attribute(k, a);
    make_inputs(k, inputs);
}

clg_status random_node_infer(random_node *k)
{
    uint32_t needs;
    CLG_TRY(ops_check_node(k->node));
    return ops_infer_node(k->node, k->inputs, k->outputs, &needs);
}

void random_node_end(random_node *k)
{
    for (size_t i = 0; i < RANDOM_NODE_VALUES; i++) {
        tensor_free((tensor *)(uintptr_t)k->inputs[i].known);
        tensor_free((tensor *)(uintptr_t)k->outputs[i].known);
    }
    graph_free(k->graph);
}

void random_node_each_row(void (*body)(const op_row *row))
{
    for (size_t f = 0; f < n_op_families; f++)
        for (size_t i = 0; i < *op_families[f].n_rows; i++) body(&op_families[f].rows[i]);
}
