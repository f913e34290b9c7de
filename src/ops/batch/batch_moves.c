/* SPDX-License-Identifier: Apache-2.0
 *
 * How a batch passes through operators that move elements: joining, dividing, selecting, gathering,
 * resizing.
 */
#include "ops/batch/batch_axes.h"
#include "ops/batch/batch_rule.h"

#include <inttypes.h>
#include <string.h>

static bool is_list(const batch_value *v) { return v && (v->rank == 0 || v->rank == 1); }

/* ---- Concat, Split --------------------------------------------------------------------------- */

static clg_status join_elements(batch_node *c, size_t first)
{
    batch_term *made = arena_alloc(c->memory, BATCH_MAX_ELEMENTS, sizeof *made);
    size_t n = 0;
    if (!made) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = first; i < c->n_inputs; i++) {
        size_t count;
        const batch_term *elements = batch_elements(c, i, &count);
        if (!elements || !is_list(c->inputs[i]) || n + count > BATCH_MAX_ELEMENTS) return CLG_OK;
        memcpy(made + n, elements, count * sizeof *made);
        n += count;
    }
    return batch_set_elements(c, 0, n, made);
}

/* Inputs are joined from `first` on; QLinearConcat has three for each. */
clg_status batch_pass_concat(batch_node *c)
{
    const size_t step = c->rule->n_operands ? 3 : 1, first = c->rule->n_operands ? 2 : 0;
    const batch_value *x = NULL;
    bool has_counts = false;
    int axis = 0;
    for (size_t i = 0; i < c->n_inputs; i++) {
        has_counts = has_counts || c->inputs[i]->kind == BATCH_COUNTS;
        if (!batch_carries(c->inputs[i])) continue;
        if (i < first || (i - first) % step != 0)
            return batch_refuse(c, "input %zu carries the batch, but holds for all rows", i);
        if (!x) x = c->inputs[i];
    }
    if (!x) {
        if (has_counts) c->outputs[0].kind = BATCH_COUNTS;
        return step == 1 ? join_elements(c, first) : CLG_OK;
    }
    CLG_TRY(batch_axis(c, node_int(c->node, "axis", 1), x->rank, &axis));
    if (axis == x->axis)
        return batch_refuse(c, "it joins along axis %d, which carries the batch", axis);
    for (size_t i = first; i < c->n_inputs; i += step) {
        const batch_value *v = c->inputs[i];
        if (!v || !batch_carries(v) || v->axis != x->axis || v->rank != x->rank ||
            !term_equal(&v->dims[v->axis], &x->dims[x->axis]))
            return batch_refuse(c, "input %zu does not have the rows of the others along axis %d",
                                i, x->axis);
    }
    return batch_set_like(c, 0, x, axis);
}

static clg_status split_elements(batch_node *c)
{
    const batch_value *x = c->inputs[0];
    size_t at = 0;
    for (size_t o = 0; o < c->n_outputs; o++) {
        batch_value *out = &c->outputs[o];
        if (x->kind == BATCH_COUNTS) out->kind = BATCH_COUNTS;
        const bool is_known = x->elements && out->rank == 1 && term_is_int(&out->dims[0]);
        const size_t n = is_known ? (size_t)out->dims[0].factor : 0;
        if (!is_known || at + n > x->n_elements) return CLG_OK;
        CLG_TRY(batch_set_elements(c, o, n, x->elements + at));
        at += n;
    }
    return CLG_OK;
}

clg_status batch_pass_split(batch_node *c)
{
    const batch_value *x = c->inputs[0];
    int axis = 0;
    if (!batch_carries(x)) return split_elements(c);
    CLG_TRY(batch_need_rank(c, 0));
    CLG_TRY(batch_axis(c, node_int(c->node, "axis", 0), x->rank, &axis));
    if (axis == x->axis)
        return batch_refuse(c, "it divides axis %d, which carries the batch", axis);
    for (size_t o = 0; o < c->n_outputs; o++) CLG_TRY(batch_set_like(c, o, x, axis));
    return CLG_OK;
}

/* ---- Slice, Pad ------------------------------------------------------------------------------ */

#define MAX_BLOCK (INT32_MAX / BATCH_MAX_ROWS)

/* The numbers of a Slice. */
typedef struct slicing {
    batch_term values[4][BATCH_MAX_ELEMENTS]; /* starts, ends, axes, steps */
    bool known[4];
    size_t n;
} slicing;

static void read_slicing(const batch_node *c, slicing *s)
{
    static const char *const names[] = {"starts", "ends", "axes", "steps"};
    const bool by_attribute = c->row->max_inputs == 1;
    for (size_t k = 0; k < 4; k++) {
        size_t n = 0;
        const int64_t *list = node_ints(c->node, names[k], &n);
        const batch_term *elements = by_attribute ? NULL : batch_elements(c, 1 + k, &n);
        const bool is_absent = by_attribute ? !list : !batch_input(c, 1 + k);
        s->known[k] = (k >= 2 && is_absent) || ((list || elements) && n <= BATCH_MAX_ELEMENTS);
        if (!s->known[k]) continue;
        if (is_absent) n = s->n;
        if (k == 0) s->n = n;
        s->known[k] = n == s->n;
        for (size_t i = 0; i < n; i++)
            s->values[k][i] = elements ? elements[i]
                              : list   ? term_int(list[i])
                              : k == 2 ? term_int((int64_t)i)
                                       : term_int(1);
    }
}

/* Returns whether no number depends on the number of rows. */
static bool has_free_numbers(const slicing *s)
{
    for (size_t k = 0; k < 4; k++)
        for (size_t i = 0; i < s->n; i++)
            if (!s->known[k] || !term_is_free(&s->values[k][i])) return false;
    return true;
}

/* Takes elements of a list that may depend on the number of rows. */
static clg_status slice_elements(batch_node *c, const slicing *s)
{
    const batch_value *x = c->inputs[0];
    if (!x->elements || x->rank != 1 || s->n != 1 || !term_is(&s->values[3][0], 1) ||
        !s->known[0] || !s->known[1] || !s->known[3] || !term_is_int(&s->values[0][0]) ||
        !term_is_int(&s->values[1][0]))
        return CLG_OK;
    const int64_t n = (int64_t)x->n_elements;
    int64_t start = s->values[0][0].factor, end = s->values[1][0].factor;
    if (start < 0) start += n;
    if (end < 0) end += n;
    start = start < 0 ? 0 : start > n ? n : start;
    end = end < start ? start : end > n ? n : end;
    return batch_set_elements(c, 0, (size_t)(end - start), x->elements + start);
}

/* Slices a value that does not carry the batch. Its sizes are inferred only where all numbers are
 * known; of an end that is computed, the size is that end. */
static clg_status slice_free(batch_node *c, const slicing *s)
{
    const batch_value *x = c->inputs[0];
    bool sliced[CLG_MAX_RANK] = {false};
    if (x->kind == BATCH_COUNTS) c->outputs[0].kind = BATCH_COUNTS;
    if (x->rank == RANK_UNKNOWN || !s->known[2]) return CLG_OK;
    CLG_TRY(batch_set_rank(c, 0, x->rank));
    for (size_t i = 0; i < s->n; i++) {
        int axis = 0;
        if (!term_is_int(&s->values[2][i])) return CLG_OK;
        CLG_TRY(batch_axis(c, s->values[2][i].factor, x->rank, &axis));
        sliced[axis] = true;
        if (!s->known[0] || !s->known[1] || !s->known[3] || !term_is(&s->values[0][i], 0) ||
            !term_is(&s->values[3][i], 1) || !term_is_size(&s->values[1][i]))
            continue;
        const batch_term size = term_min(c->symbols, &s->values[1][i], &x->dims[axis]);
        if (term_is_free(&size)) batch_set_dim(c, 0, axis, &size);
    }
    for (int i = 0; i < x->rank; i++)
        if (!sliced[i]) batch_set_dim(c, 0, i, &x->dims[i]);
    return slice_elements(c, s);
}

/* Says which part of the batch's axis range i takes. */
static clg_status refuse_part(const batch_node *c, const slicing *s, size_t i, int axis)
{
    const batch_term *start = &s->values[0][i], *end = &s->values[1][i];
    if (s->known[0] && s->known[1] && term_is_int(start) && term_is_int(end))
        return batch_refuse(
            c, "it takes %" PRId64 " to %" PRId64 " of axis %d, which carries the batch",
            start->factor, end->factor, axis);
    return batch_refuse(c, "it takes a part of axis %d, which carries the batch", axis);
}

/* Returns whether a range takes all of an axis of this size, whatever its number is. */
static bool takes_all(const slicing *s, size_t i, const batch_term *size)
{
    const batch_term *end = &s->values[1][i];
    return s->known[0] && s->known[1] && s->known[3] && term_is(&s->values[0][i], 0) &&
           term_is(&s->values[3][i], 1) &&
           (term_equal(end, size) ||
            (term_is_int(end) && end->factor >= (size->n_symbols == 0 && size->factor <= MAX_BLOCK
                                                     ? size->factor * BATCH_MAX_ROWS
                                                     : INT32_MAX)));
}

clg_status batch_pass_slice(batch_node *c)
{
    const batch_value *x = c->inputs[0];
    slicing s = {.n = 0};
    bool sliced[CLG_MAX_RANK] = {false};
    read_slicing(c, &s);
    if (!batch_carries(x)) {
        for (size_t i = 1; i < c->n_inputs; i++)
            if (c->inputs[i] && c->inputs[i]->kind == BATCH_COUNTS && !has_free_numbers(&s))
                return batch_refuse(c, "what it takes depends on the number of rows");
        return slice_free(c, &s);
    }
    CLG_TRY(batch_need_rank(c, 0));
    if (!s.known[2]) return batch_refuse(c, "its axes are not known");
    for (size_t i = 0; i < s.n; i++) {
        int axis = 0;
        if (!term_is_int(&s.values[2][i])) return batch_refuse(c, "its axes are not known");
        CLG_TRY(batch_axis(c, s.values[2][i].factor, x->rank, &axis));
        sliced[axis] = true;
        if (axis == x->axis && !takes_all(&s, i, &x->dims[axis]))
            return refuse_part(c, &s, i, axis);
        for (size_t k = 0; k < 2; k++)
            if (axis != x->axis && s.known[k] && !term_is_free(&s.values[k][i]))
                return batch_refuse(c, "what it takes depends on the number of rows");
    }
    CLG_TRY(batch_set_rank(c, 0, x->rank));
    for (int i = 0; i < x->rank; i++)
        if (!sliced[i]) batch_set_dim(c, 0, i, &x->dims[i]);
    batch_set_rows(c, 0, x->axis, &x->dims[x->axis]);
    return CLG_OK;
}

clg_status batch_pass_pad(batch_node *c)
{
    const batch_value *x = c->inputs[0];
    int64_t given[BATCH_MAX_ELEMENTS], axes[BATCH_MAX_ELEMENTS];
    size_t n, n_axes = 0;
    const int64_t *pads = node_ints(c->node, "pads", &n);
    CLG_TRY(batch_need_rank(c, 0));
    if (!pads && !batch_ints(c, 1, given, &n)) return batch_refuse(c, "its pads are not known");
    if (!pads) pads = given;
    if (batch_input(c, 3) && !batch_ints(c, 3, axes, &n_axes))
        return batch_refuse(c, "its axes are not known");
    if (!batch_input(c, 3))
        for (int i = 0; i < x->rank; i++) axes[n_axes++] = i;
    if (n != 2 * n_axes) return batch_refuse(c, "its pads do not fit its axes");
    CLG_TRY(batch_set_rank(c, 0, x->rank));
    for (size_t i = 0; i < n_axes; i++) {
        int axis = 0;
        CLG_TRY(batch_axis(c, axes[i], x->rank, &axis));
        const bool is_padded = pads[i] != 0 || pads[n_axes + i] != 0;
        if (axis == x->axis && is_padded)
            return batch_refuse(c, "it pads axis %d, which carries the batch", axis);
        if (axis != x->axis && !is_padded) batch_set_dim(c, 0, axis, &x->dims[axis]);
    }
    batch_set_rows(c, 0, x->axis, &x->dims[x->axis]);
    return CLG_OK;
}

/* ---- Transpose ------------------------------------------------------------------------------- */

clg_status batch_pass_transpose(batch_node *c)
{
    const batch_value *x = c->inputs[0];
    size_t n;
    const int64_t *perm = node_ints(c->node, "perm", &n);
    CLG_TRY(batch_need_rank(c, 0));
    CLG_TRY(batch_set_rank(c, 0, x->rank));
    for (int i = 0; i < x->rank; i++) {
        const int64_t from = perm && (int)n == x->rank ? perm[i] : x->rank - 1 - i;
        if (from < 0 || from >= x->rank) return batch_refuse(c, "its axes are not valid");
        if (from == x->axis)
            batch_set_rows(c, 0, i, &x->dims[from]);
        else
            batch_set_dim(c, 0, i, &x->dims[from]);
    }
    return CLG_OK;
}

/* ---- Gather ---------------------------------------------------------------------------------- */

static clg_status gather_elements(batch_node *c)
{
    const batch_value *x = c->inputs[0];
    int64_t picks[BATCH_MAX_ELEMENTS];
    size_t n;
    if (x->kind == BATCH_COUNTS) c->outputs[0].kind = BATCH_COUNTS;
    if (c->inputs[1]->kind == BATCH_COUNTS)
        return batch_refuse(c, "its indices depend on the number of rows");
    if (!x->elements || x->rank != 1 || !is_list(c->inputs[1]) || !batch_ints(c, 1, picks, &n))
        return CLG_OK;
    batch_term *made = arena_alloc(c->memory, n + 1, sizeof *made);
    for (size_t i = 0; made && i < n; i++) {
        const int64_t at = picks[i] < 0 ? picks[i] + (int64_t)x->n_elements : picks[i];
        made[i] = at >= 0 && at < (int64_t)x->n_elements ? x->elements[at] : term_mixed();
    }
    return batch_set_elements(c, 0, n, made);
}

clg_status batch_pass_gather(batch_node *c)
{
    const batch_value *x = c->inputs[0], *indices = c->inputs[1];
    int axis = 0;
    const bool carries = batch_carries(x) || batch_carries(indices);
    if (!carries) CLG_TRY(gather_elements(c));
    if (!carries && (x->rank == RANK_UNKNOWN || indices->rank == RANK_UNKNOWN)) return CLG_OK;
    if (carries && (x->kind == BATCH_COUNTS || indices->kind == BATCH_COUNTS))
        return batch_refuse(c, "it computes with the number of rows, which differs in each part");
    CLG_TRY(batch_need_rank(c, 0));
    CLG_TRY(batch_need_rank(c, 1));
    const char *name = c->rule->attribute ? c->rule->attribute : "axis";
    CLG_TRY(batch_axis(c, node_int(c->node, name, 0), x->rank, &axis));
    if (batch_carries(x) && batch_carries(indices))
        return batch_refuse(c, "its data and indices both carry the batch");
    if (batch_carries(x) && x->axis == axis)
        return batch_refuse(c, "it selects along axis %d, which carries the batch", axis);
    const int rank = x->rank - 1 + indices->rank;
    CLG_TRY(batch_set_rank(c, 0, rank));
    for (int i = 0; i < rank; i++) {
        const bool is_index = i >= axis && i < axis + indices->rank;
        const int from = is_index ? i - axis : i < axis ? i : i - indices->rank + 1;
        const batch_value *v = is_index ? indices : x;
        if (batch_carries(v) && v->axis == from)
            batch_set_rows(c, 0, i, &v->dims[from]);
        else if (is_index || !c->rule->attribute) /* a quantised table packs its elements */
            batch_set_dim(c, 0, i, &v->dims[from]);
    }
    return CLG_OK;
}

/* GatherElements and ScatterElements: all inputs have the rows, along another axis than that of the
 * indices. The result has the shape of the indices, or that of the data if there are updates. */
clg_status batch_pass_gather_elements(batch_node *c)
{
    const batch_value *x = c->inputs[0];
    int axis = 0;
    CLG_TRY(batch_need_rank(c, 0));
    if (!batch_carries(x)) return batch_refuse(c, "its data do not carry the batch");
    CLG_TRY(batch_axis(c, node_int(c->node, "axis", 0), x->rank, &axis));
    if (axis == x->axis)
        return batch_refuse(c, "it selects along axis %d, which carries the batch", axis);
    for (size_t i = 1; i < c->n_inputs; i++) {
        const batch_value *v = c->inputs[i];
        if (!batch_carries(v) || v->rank != x->rank || v->axis != x->axis ||
            !term_equal(&v->dims[v->axis], &x->dims[x->axis]))
            return batch_refuse(c, "input %zu does not have the rows of input 0", i);
    }
    return batch_set_like(c, 0, c->inputs[c->n_inputs > 2 ? 0 : 1], -1);
}

clg_status batch_pass_gather_nd(batch_node *c)
{
    const batch_value *x = c->inputs[0], *indices = c->inputs[1];
    const int64_t batch_dims = node_int(c->node, "batch_dims", 0);
    CLG_TRY(batch_need_rank(c, 0));
    CLG_TRY(batch_need_rank(c, 1));
    if (!batch_carries(indices) || indices->axis >= indices->rank - 1)
        return batch_refuse(c, "its indices do not carry the batch along an axis that lists them");
    const bool is_counted = indices->axis < batch_dims;
    if (is_counted != batch_carries(x) ||
        (is_counted && (x->axis != indices->axis ||
                        !term_equal(&x->dims[x->axis], &indices->dims[indices->axis]))))
        return batch_refuse(c, "its data and indices do not have the same rows");
    if (c->outputs[0].rank == RANK_UNKNOWN || c->outputs[0].rank <= indices->axis)
        return batch_refuse(c, "the rank of its result is not known");
    batch_set_rows(c, 0, indices->axis, &indices->dims[indices->axis]);
    return CLG_OK;
}

/* ---- Resize ---------------------------------------------------------------------------------- */

/* Returns the position of an axis among the scales and sizes; -1: it is not resized. */
static int resized_at(const batch_node *c, int axis, int rank)
{
    size_t n;
    const int64_t *axes = node_ints(c->node, "axes", &n);
    if (!axes) return axis;
    for (size_t i = 0; i < n; i++)
        if (axes[i] == axis || axes[i] + rank == axis) return (int)i;
    return -1;
}

static bool keeps_axis(const batch_node *c, int at, const batch_term *size)
{
    const size_t first = c->row->max_inputs >= 4 ? 2 : 1; /* the input with scales */
    const float *scales;
    size_t n;
    scales = node_floats(c->node, "scales", &n);
    if (scales) return at < (int)n && scales[at] == 1;
    const batch_term *elements = batch_elements(c, first, &n);
    if (elements && n > 0) return at < (int)n && term_is(&elements[at], 1);
    elements = batch_elements(c, 3, &n);
    return elements && at < (int)n && term_equal(&elements[at], size);
}

clg_status batch_pass_resize(batch_node *c)
{
    const batch_value *x = c->inputs[0];
    CLG_TRY(batch_need_rank(c, 0));
    if (!batch_carries(x)) return batch_refuse(c, "its sizes depend on the number of rows");
    const int at = resized_at(c, x->axis, x->rank);
    const char *mode = node_string(c->node, "coordinate_transformation_mode", "");
    /* the first crops; the second moves positions by half a row also without scaling */
    if (strcmp(mode, "tf_crop_and_resize") == 0 || strcmp(mode, "tf_half_pixel_for_nn") == 0 ||
        strcmp(node_string(c->node, "keep_aspect_ratio_policy", "stretch"), "stretch") != 0)
        return batch_refuse(c, "it crops, shifts, or keeps the ratio of all axes");
    if (at >= 0 && !keeps_axis(c, at, &x->dims[x->axis]))
        return batch_refuse(
            c, "it is not known to leave axis %d, which carries the batch, as it is", x->axis);
    CLG_TRY(batch_set_rank(c, 0, x->rank));
    batch_set_rows(c, 0, x->axis, &x->dims[x->axis]);
    return CLG_OK;
}
