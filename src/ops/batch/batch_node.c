/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements what the functions of the batch's vocabulary share (batch_rule.h).
 */
#include "ops/batch/batch_rule.h"

#include <stdarg.h>

clg_status batch_refuse(const batch_node *c, const char *format, ...)
{
    char shown[NODE_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    (void)error_set_v(CLG_ERROR_UNSUPPORTED_OPERATOR, format, args);
    va_end(args);
    return error_prefix(CLG_ERROR_UNSUPPORTED_OPERATOR, "%s", node_text(c->node, shown));
}

const batch_value *batch_input(const batch_node *c, size_t i)
{
    return i < c->n_inputs ? c->inputs[i] : NULL;
}

bool batch_carries(const batch_value *v) { return v && v->kind == BATCH_ROWS; }

clg_status batch_need_rank(const batch_node *c, size_t i)
{
    const batch_value *v = batch_input(c, i);
    if (!v || v->rank != RANK_UNKNOWN) return CLG_OK;
    return batch_refuse(c, "the rank of input %zu is not known", i);
}

clg_status batch_axis(const batch_node *c, int64_t axis, int rank, int *out_axis)
{
    char shown[NODE_TEXT_BYTES];
    return error_prefix(shape_axis(axis, rank, "axis", out_axis), "%s", node_text(c->node, shown));
}

clg_status batch_need_one(const batch_node *c, size_t i, int axis, int rank)
{
    const batch_value *v = batch_input(c, i);
    if (!v) return CLG_OK;
    CLG_TRY(batch_need_rank(c, i));
    const int at = axis - (rank - v->rank);
    if (at < 0 || (v->kind == BATCH_FREE && term_is(&v->dims[at], 1))) return CLG_OK;
    if (v->kind == BATCH_FREE)
        return batch_refuse(c,
                            "input %zu does not carry the batch, but is not known to have size 1 "
                            "along its axis %d, where other inputs do",
                            i, at);
    return batch_refuse(c, "input %zu carries the batch on axis %d, where others carry it on %d", i,
                        v->axis, at);
}

const batch_term *batch_elements(const batch_node *c, size_t i, size_t *out_n)
{
    const batch_value *v = batch_input(c, i);
    *out_n = 0;
    if (!v || batch_carries(v)) return NULL;
    *out_n = v->n_elements;
    if (v->elements) return v->elements;
    const bool is_list = v->rank == 0 || (v->rank == 1 && term_is_int(&v->dims[0]) &&
                                          v->dims[0].factor <= BATCH_MAX_ELEMENTS);
    if (!is_list) return NULL;
    const size_t n = v->rank == 0 ? 1 : (size_t)v->dims[0].factor;
    batch_term *made = arena_alloc(c->memory, n + 1, sizeof *made);
    if (!made) return NULL; /* as unknown: what follows is refused, or runs out of memory */
    for (size_t k = 0; k < n; k++)
        made[k] = v->kind == BATCH_FREE ? term_number(c->symbols) : term_mixed();
    *out_n = n;
    return made;
}

bool batch_ints(const batch_node *c, size_t i, int64_t out_values[BATCH_MAX_ELEMENTS],
                size_t *out_n)
{
    const batch_term *elements = batch_elements(c, i, out_n);
    if (!elements) return false;
    for (size_t k = 0; k < *out_n; k++) {
        if (!term_is_int(&elements[k])) return false;
        out_values[k] = elements[k].factor;
    }
    return true;
}

clg_status batch_set_elements(batch_node *c, size_t o, size_t n, const batch_term *elements)
{
    batch_value *out = &c->outputs[o];
    if (!elements) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    out->elements = elements;
    out->n_elements = n;
    out->kind = BATCH_FREE;
    for (size_t k = 0; k < n; k++)
        if (!term_is_free(&elements[k])) out->kind = BATCH_COUNTS;
    return CLG_OK;
}

clg_status batch_set_rank(batch_node *c, size_t o, int rank)
{
    batch_value *out = &c->outputs[o];
    if (rank > CLG_MAX_RANK)
        return batch_refuse(c, "output %zu has more than %d axes", o, CLG_MAX_RANK);
    if (out->rank == rank) return CLG_OK;
    if (out->rank != RANK_UNKNOWN)
        return batch_refuse(c, "output %zu has %d axes, but %d are inferred", o, rank, out->rank);
    out->rank = rank;
    for (int i = 0; i < rank; i++) out->dims[i] = term_size(c->symbols);
    return CLG_OK;
}

void batch_set_dim(batch_node *c, size_t o, int axis, const batch_term *size)
{
    batch_value *out = &c->outputs[o];
    if (!term_is_int(&out->dims[axis]) && term_is_size(size)) out->dims[axis] = *size;
}

void batch_set_rows(batch_node *c, size_t o, int axis, const batch_term *size)
{
    batch_value *out = &c->outputs[o];
    out->kind = BATCH_ROWS;
    out->axis = axis;
    out->dims[axis] = *size;
}

clg_status batch_set_like(batch_node *c, size_t o, const batch_value *like, int other)
{
    if (o >= c->n_outputs) return CLG_OK;
    CLG_TRY(batch_set_rank(c, o, like->rank));
    for (int i = 0; i < like->rank; i++)
        if (i != other && i != like->axis) batch_set_dim(c, o, i, &like->dims[i]);
    batch_set_rows(c, o, like->axis, &like->dims[like->axis]);
    return CLG_OK;
}
