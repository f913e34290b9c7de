/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads inputs and attributes for the rules of operators: implements rule_inputs.h.
 */
#include "passes/shapes/rule_inputs.h"

#include <string.h>

const value_terms *rule_input(const shape_terms *s, const node *n, size_t i)
{
    static const value_terms absent;
    return node_has_input(n, i) ? &s->values[n->inputs[i]] : &absent;
}

int rule_rank(const shape_terms *s, value_id v) { return s->info.facts[v].dims.rank; }

bool rule_ints(const shape_terms *s, const node *n, const char *name, size_t i, int64_t *out_values,
               size_t *out_n)
{
    const int64_t *given = node_ints(n, name, out_n);
    const value_terms *x = rule_input(s, n, i);
    if (given) {
        if (*out_n > SHAPE_MAX_ELEMENTS) return false;
        memcpy(out_values, given, *out_n * sizeof *given);
        return true;
    }
    *out_n = x->n_elements;
    if (!x->elements) return false;
    for (size_t k = 0; k < x->n_elements; k++)
        if (!size_terms_is_number(&s->terms, x->elements[k], &out_values[k])) return false;
    return true;
}

bool rule_axes(const shape_terms *s, const node *n, size_t i, int rank, uint32_t *out_bits)
{
    int64_t axes[SHAPE_MAX_ELEMENTS];
    size_t count;
    *out_bits = 0;
    if (!rule_ints(s, n, "axes", i, axes, &count)) return false;
    for (size_t k = 0; k < count; k++) {
        if (axes[k] < -rank || axes[k] >= rank) return false;
        *out_bits |= 1u << (axes[k] < 0 ? axes[k] + rank : axes[k]);
    }
    return true;
}

bool rule_axis(const node *n, int64_t fallback, int rank, int *out_axis)
{
    int64_t axis = node_int(n, "axis", fallback);
    if (axis < 0) axis += rank;
    *out_axis = (int)axis;
    return axis >= 0 && axis < rank;
}

int64_t rule_clamp(int64_t at, int64_t size, int64_t least, int64_t most)
{
    if (at < 0) at += size;
    return at < least ? least : at > most ? most : at;
}
