/* SPDX-License-Identifier: Apache-2.0
 *
 * What is read of the terms of a graph's values: implements shape_terms.h, but for their making
 * (shape_walk.c) and the rules.
 */
#include "passes/shapes/shape_terms.h"

void shape_terms_deinit(shape_terms *s)
{
    graph_info_deinit(&s->info);
    size_terms_deinit(&s->terms);
    arena_deinit(&s->memory);
    memory_free(s->values);
    *s = (shape_terms){0};
}

bool shape_terms_dim_is(const shape_terms *s, value_id v, int axis, int64_t *out_number)
{
    const value_terms *x = &s->values[v];
    return x->dims && size_terms_is_number(&s->terms, x->dims[axis], out_number);
}

bool shape_terms_element_is(const shape_terms *s, value_id v, size_t i, int64_t *out_number)
{
    const value_terms *x = &s->values[v];
    return x->elements && size_terms_is_number(&s->terms, x->elements[i], out_number);
}

bool shape_terms_same_dims(const shape_terms *s, value_id x, value_id y)
{
    const value_terms *a = &s->values[x], *b = &s->values[y];
    const int rank = s->info.facts[x].dims.rank;
    if (!a->dims || !b->dims || rank != s->info.facts[y].dims.rank) return false;
    for (int i = 0; i < rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}
