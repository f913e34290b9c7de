/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of operators: how the elements of an output that is shape arithmetic follow from those of
 * the inputs. A row must hold in every run that is valid.
 */
#include "ops/pointwise/pointwise.h"
#include "passes/shapes/rule_inputs.h"
#include "passes/shapes/size_products.h"

#include <string.h>

/* A rule sets the elements of output 0, of which there are n_elements. */
typedef void (*elements_rule)(shape_terms *s, const node *n, size_t n_elements,
                              size_term *elements);

static void elements_shape(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    const value_terms *x = rule_input(s, n, 0);
    if (!x->dims) return;
    const int rank = rule_rank(s, n->inputs[0]);
    const int64_t start = rule_clamp(node_int(n, "start", 0), rank, 0, rank);
    for (size_t i = 0; i < n_elements && start + (int64_t)i < rank; i++)
        elements[i] = x->dims[start + (int64_t)i];
}

static void elements_size(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    const value_terms *x = rule_input(s, n, 0);
    if (!x->dims || n_elements != 1) return;
    elements[0] = size_terms_number(&s->terms, 1);
    for (int i = 0; i < rule_rank(s, n->inputs[0]); i++)
        elements[0] = size_product_of(&s->terms, elements[0], x->dims[i]);
}

/* Moves that keep the elements and their order. */
static void elements_same(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    const value_terms *x = rule_input(s, n, 0);
    if (x->elements && x->n_elements == n_elements)
        memcpy(elements, x->elements, n_elements * sizeof *elements);
}

/* Returns whether a term may be an element of the dtype. Dimensions, and counts of elements, that
 * exporters store as int32 are taken to fit. */
static bool fits_dtype(const shape_terms *s, size_term term, clg_dtype dtype)
{
    int64_t number;
    if (dtype == CLG_INT64) return true;
    return size_terms_is_number(&s->terms, term, &number)
               ? number >= INT32_MIN && number <= INT32_MAX
               : size_terms_is_size(&s->terms, term);
}

static clg_dtype result_dtype(const shape_terms *s, const node *n)
{
    return s->info.facts[n->outputs[0]].dtype;
}

static void elements_cast(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    const value_terms *x = rule_input(s, n, 0);
    if (!x->elements || x->n_elements != n_elements) return;
    for (size_t i = 0; i < n_elements; i++)
        if (fits_dtype(s, x->elements[i], result_dtype(s, n))) elements[i] = x->elements[i];
}

/* The product of all elements. */
static void elements_product(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    const value_terms *x = rule_input(s, n, 0);
    uint32_t axes;
    if (!x->elements || n_elements != 1 || rule_rank(s, n->inputs[0]) != 1) return;
    if ((node_attribute(n, "axes") || node_has_input(n, 1)) &&
        (!rule_axes(s, n, 1, 1, &axes) || axes == 0))
        return;
    size_term product = size_terms_number(&s->terms, 1);
    for (size_t i = 0; i < x->n_elements; i++)
        product = size_product_of(&s->terms, product, x->elements[i]);
    if (fits_dtype(s, product, result_dtype(s, n))) elements[0] = product;
}

static void elements_gather(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    const value_terms *x = rule_input(s, n, 0), *at = rule_input(s, n, 1);
    if (!x->elements || rule_rank(s, n->inputs[0]) != 1 || !at->elements ||
        at->n_elements != n_elements)
        return;
    for (size_t i = 0; i < n_elements; i++) {
        int64_t index;
        if (!size_terms_is_number(&s->terms, at->elements[i], &index)) continue;
        if (index < 0) index += (int64_t)x->n_elements;
        if (index >= 0 && index < (int64_t)x->n_elements) elements[i] = x->elements[index];
    }
}

static void elements_slice(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    const value_terms *x = rule_input(s, n, 0);
    int64_t start[SHAPE_MAX_ELEMENTS], step[SHAPE_MAX_ELEMENTS] = {1};
    size_t n_starts, n_steps = 1;
    if (!x->elements || rule_rank(s, n->inputs[0]) != 1 ||
        !rule_ints(s, n, "starts", 1, start, &n_starts) || n_starts != 1)
        return;
    if (node_has_input(n, 4) && !rule_ints(s, n, "steps", 4, step, &n_steps)) return;
    if (n_steps != 1 || step[0] == 0) return;
    const int64_t size = (int64_t)x->n_elements;
    int64_t from = step[0] > 0 ? rule_clamp(start[0], size, 0, size)
                               : rule_clamp(start[0], size, -1, size - 1);
    for (size_t i = 0; i < n_elements && from >= 0 && from < size; i++, from += step[0]) {
        elements[i] = x->elements[from];
        if (step[0] > size || step[0] < -size) break;
    }
}

static void elements_concat(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    size_t at = 0;
    for (size_t i = 0; i < n->n_inputs; i++) {
        const value_terms *x = rule_input(s, n, i);
        if (!x->elements || x->n_elements > n_elements - at) return;
        memcpy(elements + at, x->elements, x->n_elements * sizeof *elements);
        at += x->n_elements;
    }
}

static void apply(shape_terms *s, const node *n, size_term_kind kind, size_t n_elements,
                  size_term *elements)
{
    const value_terms *a = rule_input(s, n, 0), *b = rule_input(s, n, 1);
    if (!pointwise_is(n) || !a->elements || !b->elements) return;
    if ((a->n_elements != n_elements && a->n_elements != 1) ||
        (b->n_elements != n_elements && b->n_elements != 1))
        return;
    for (size_t i = 0; i < n_elements; i++) {
        const size_term x = a->elements[a->n_elements == 1 ? 0 : i],
                        y = b->elements[b->n_elements == 1 ? 0 : i];
        const size_term result = kind == TERM_MUL ? size_product_of(&s->terms, x, y)
                                                  : size_terms_apply(&s->terms, kind, x, y);
        if (fits_dtype(s, result, result_dtype(s, n))) elements[i] = result;
    }
}

static void elements_add(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    apply(s, n, TERM_ADD, n_elements, elements);
}

static void elements_sub(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    apply(s, n, TERM_SUB, n_elements, elements);
}

static void elements_mul(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    apply(s, n, TERM_MUL, n_elements, elements);
}

static void elements_div(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    apply(s, n, TERM_DIV, n_elements, elements);
}

static const struct {
    const char *op_type;
    elements_rule rule;
} elements_rules[] = {
    {"Add", elements_add},        {"Cast", elements_cast},
    {"Concat", elements_concat},  {"Div", elements_div},
    {"Gather", elements_gather},  {"Identity", elements_same},
    {"Mul", elements_mul},        {"ReduceProd", elements_product},
    {"Reshape", elements_same},   {"Shape", elements_shape},
    {"Size", elements_size},      {"Slice", elements_slice},
    {"Squeeze", elements_same},   {"Sub", elements_sub},
    {"Unsqueeze", elements_same},
};

void shape_rules_elements(shape_terms *s, const node *n, size_t n_elements, size_term *elements)
{
    if (!n->op || n->domain[0]) return;
    for (size_t i = 0; i < sizeof elements_rules / sizeof *elements_rules; i++)
        if (strcmp(n->op_type, elements_rules[i].op_type) == 0)
            elements_rules[i].rule(s, n, n_elements, elements);
}
