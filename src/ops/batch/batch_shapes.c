/* SPDX-License-Identifier: Apache-2.0
 *
 * How a batch passes through Reshape and its kin, and the arithmetic on shapes that exported models
 * have: a number that is the number of rows, computed on each part, is right for each part.
 */
#include "ops/batch/batch_rule.h"

#include <string.h>

/* ---- shapes as values ------------------------------------------------------------------------ */

static int clamp_axis(int64_t axis, int rank)
{
    if (axis < 0) axis += rank;
    return axis < 0 ? 0 : axis > rank ? rank : (int)axis;
}

clg_status batch_pass_shape(batch_node *c)
{
    const batch_value *x = c->inputs[0];
    if (x->rank == RANK_UNKNOWN) {
        if (x->kind != BATCH_FREE) c->outputs[0].kind = BATCH_COUNTS;
        return CLG_OK;
    }
    const int start = clamp_axis(node_int(c->node, "start", 0), x->rank);
    const int end = clamp_axis(node_int(c->node, "end", x->rank), x->rank);
    const size_t n = end > start ? (size_t)(end - start) : 0;
    batch_term *sizes = arena_alloc(c->memory, n + 1, sizeof *sizes);
    if (sizes) memcpy(sizes, x->dims + start, n * sizeof *sizes);
    return batch_set_elements(c, 0, n, sizes);
}

clg_status batch_pass_size(batch_node *c)
{
    const batch_value *x = c->inputs[0];
    batch_term *product = arena_alloc(c->memory, 1, sizeof *product);
    if (!product) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    *product = x->rank == RANK_UNKNOWN && x->kind != BATCH_FREE ? term_mixed() : term_int(1);
    for (int i = 0; i < x->rank; i++) *product = term_mul(c->symbols, product, &x->dims[i]);
    return batch_set_elements(c, 0, 1, product);
}

/* Sets output 0 to a value whose sizes are the elements: one may depend on the number of rows. */
static clg_status set_sizes(batch_node *c, size_t n, const batch_term *sizes)
{
    int axis = -1;
    if (n > CLG_MAX_RANK) return batch_refuse(c, "it has more than %d axes", CLG_MAX_RANK);
    CLG_TRY(batch_set_rank(c, 0, (int)n));
    for (int i = 0; i < (int)n; i++) {
        if (term_is_free(&sizes[i])) {
            batch_set_dim(c, 0, i, &sizes[i]);
        } else if (axis >= 0 || !term_is_size(&sizes[i])) {
            return batch_refuse(c,
                                "its size along axis %d depends on the number of rows, but is "
                                "not known to be a multiple of it",
                                i);
        } else {
            axis = i;
        }
    }
    if (axis >= 0) batch_set_rows(c, 0, axis, &sizes[axis]);
    return CLG_OK;
}

/* ConstantOfShape */
clg_status batch_pass_fill(batch_node *c)
{
    size_t n;
    const batch_term *sizes = batch_elements(c, 0, &n);
    if (sizes) return set_sizes(c, n, sizes);
    return c->inputs[0]->kind == BATCH_FREE ? CLG_OK : batch_refuse(c, "its shape is not known");
}

/* A list of the numbers of rows is not made of rows: that of a part begins at 0, too. */
clg_status batch_pass_range(batch_node *c)
{
    const batch_term *ends[3];
    size_t n;
    for (size_t i = 0; i < 3; i++) {
        if (c->inputs[i]->kind != BATCH_FREE)
            return batch_refuse(c, "its length or elements depend on the number of rows");
        ends[i] = batch_elements(c, i, &n);
        if (!ends[i] || n != 1) return CLG_OK;
    }
    const batch_term length = term_sub(c->symbols, &ends[1][0], &ends[0][0]);
    if (term_is(&ends[2][0], 1) && c->outputs[0].rank == 1) batch_set_dim(c, 0, 0, &length);
    return CLG_OK;
}

/* ---- Expand, Tile ---------------------------------------------------------------------------- */

/* Returns the size of an axis to which sizes a and b are broadcast; unknown if that may depend on
 * the number of rows in a way that no axis of a batch has. */
static batch_term broadcast_size(batch_symbols *s, const batch_term *a, const batch_term *b)
{
    if (term_is(a, 1) || term_equal(a, b)) return *b;
    if (term_is(b, 1)) return *a;
    return term_is_free(a) && term_is_free(b) ? term_size(s) : term_mixed();
}

static clg_status refuse_counts(const batch_node *c)
{
    return batch_refuse(c, "it repeats the number of rows, which differs in each part");
}

clg_status batch_pass_expand(batch_node *c)
{
    const batch_value *x = c->inputs[0];
    const batch_term one = term_int(1);
    batch_term sizes[CLG_MAX_RANK];
    size_t n;
    const batch_term *wanted = batch_elements(c, 1, &n);
    if (x->kind == BATCH_FREE && c->inputs[1]->kind == BATCH_FREE) return CLG_OK;
    if (x->kind == BATCH_COUNTS) return refuse_counts(c);
    CLG_TRY(batch_need_rank(c, 0));
    if (!wanted || n > CLG_MAX_RANK) return batch_refuse(c, "its shape is not known");
    const int rank = x->rank > (int)n ? x->rank : (int)n;
    for (int i = 0; i < rank; i++) {
        const int at = i - (rank - x->rank), from = i - (rank - (int)n);
        sizes[i] = broadcast_size(c->symbols, at < 0 ? &one : &x->dims[at],
                                  from < 0 ? &one : &wanted[from]);
        if (term_is_free(&sizes[i]) && !term_is_size(&sizes[i])) sizes[i] = term_size(c->symbols);
    }
    return set_sizes(c, (size_t)rank, sizes);
}

clg_status batch_pass_tile(batch_node *c)
{
    const batch_value *x = c->inputs[0];
    batch_term sizes[CLG_MAX_RANK];
    size_t n;
    const batch_term *repeats = batch_elements(c, 1, &n);
    if (x->kind == BATCH_FREE && c->inputs[1]->kind == BATCH_FREE) return CLG_OK;
    if (x->kind == BATCH_COUNTS) return refuse_counts(c);
    CLG_TRY(batch_need_rank(c, 0));
    if (!repeats || (int)n != x->rank) return batch_refuse(c, "its repeats are not known");
    for (int i = 0; i < x->rank; i++) {
        if (batch_carries(x) && i == x->axis && !term_is(&repeats[i], 1))
            return batch_refuse(c, "it repeats axis %d, which carries the batch", i);
        if (!term_is_free(&repeats[i]) && !term_is(&x->dims[i], 1))
            return batch_refuse(c, "it repeats axis %d as often as there are rows", i);
        sizes[i] = term_mul(c->symbols, &x->dims[i], &repeats[i]);
        if (term_is_free(&sizes[i]) && !term_is_size(&sizes[i])) sizes[i] = term_size(c->symbols);
    }
    return set_sizes(c, n, sizes);
}

/* ---- Reshape --------------------------------------------------------------------------------- */

static batch_term product_of(batch_symbols *s, const batch_term *dims, int from, int to)
{
    batch_term product = term_int(1);
    for (int i = from; i < to; i++) product = term_mul(s, &product, &dims[i]);
    return product;
}

/* Replaces 0 by the input's size and -1 by what is left. A size of which it is not known whether it
 * is 0 or -1 becomes unknown. */
static void resolve(batch_node *c, size_t n, const batch_term *wanted, batch_term *sizes)
{
    const batch_value *x = c->inputs[0];
    const bool zero_copies = node_int(c->node, "allowzero", 0) == 0;
    batch_term others = term_int(1);
    int open = -1;
    for (int i = 0; i < (int)n; i++) {
        sizes[i] = wanted[i];
        if (term_is(&wanted[i], 0) && zero_copies)
            sizes[i] = i < x->rank ? x->dims[i] : term_mixed();
        else if (term_is(&wanted[i], -1))
            open = i;
        else if (!term_is_size(&wanted[i]))
            sizes[i] = term_mixed();
        if (i != open) others = term_mul(c->symbols, &others, &sizes[i]);
    }
    if (open < 0) return;
    const batch_term whole = product_of(c->symbols, x->dims, 0, x->rank);
    bool exact;
    sizes[open] = term_div(c->symbols, &whole, &others, &exact);
    /* whole and others have the number of rows once each: so the quotient does not depend on it */
    if (!exact && others.known && others.rows && whole.known) sizes[open] = term_size(c->symbols);
}

/* Finds the axis of the result before which there are as many elements as before the input's batch
 * axis: a row then is a contiguous piece of both. */
static clg_status place_rows(batch_node *c, size_t n, const batch_term *sizes)
{
    const batch_value *x = c->inputs[0];
    const batch_term before = product_of(c->symbols, x->dims, 0, x->axis);
    batch_term so_far = term_int(1);
    int axis = -1, n_rows = 0;
    for (int i = 0; i < (int)n; i++) {
        const bool is_rows = sizes[i].known && sizes[i].rows && term_is_size(&sizes[i]);
        if (axis < 0 && is_rows && term_equal(&so_far, &before)) axis = i;
        n_rows += is_rows;
        so_far = term_mul(c->symbols, &so_far, &sizes[i]);
    }
    if (axis < 0 || n_rows != 1)
        return batch_refuse(c, "it is not proved that its shape keeps the rows of axis %d whole",
                            x->axis);
    CLG_TRY(batch_set_rank(c, 0, (int)n));
    for (int i = 0; i < (int)n; i++)
        if (i != axis && term_is_free(&sizes[i])) batch_set_dim(c, 0, i, &sizes[i]);
    batch_set_rows(c, 0, axis, &sizes[axis]);
    return CLG_OK;
}

/* Passes the elements on, if there are any: the result is a number or list, too. */
static clg_status keep_elements(batch_node *c)
{
    const batch_value *x = c->inputs[0];
    if (x->kind == BATCH_COUNTS) c->outputs[0].kind = BATCH_COUNTS;
    if (!x->elements || c->outputs[0].rank == RANK_UNKNOWN || c->outputs[0].rank > 1) return CLG_OK;
    return batch_set_elements(c, 0, x->n_elements, x->elements);
}

/* Reshapes a value that does not carry the batch: sizes are set as far as they are known. */
static clg_status reshape_free(batch_node *c, size_t n, const batch_term *wanted)
{
    batch_term sizes[CLG_MAX_RANK];
    if (wanted && n <= CLG_MAX_RANK && c->inputs[0]->rank != RANK_UNKNOWN) {
        CLG_TRY(batch_set_rank(c, 0, (int)n));
        resolve(c, n, wanted, sizes);
        for (int i = 0; i < (int)n; i++)
            if (term_is_free(&sizes[i])) batch_set_dim(c, 0, i, &sizes[i]);
    }
    return keep_elements(c);
}

clg_status batch_pass_reshape(batch_node *c)
{
    batch_term sizes[CLG_MAX_RANK];
    size_t n;
    const batch_term *wanted = batch_elements(c, 1, &n);
    if (!batch_carries(c->inputs[0])) {
        if (c->inputs[1]->kind == BATCH_FREE) return reshape_free(c, n, wanted);
        return batch_refuse(c, "its shape depends on the number of rows, but its data do not");
    }
    CLG_TRY(batch_need_rank(c, 0));
    if (!wanted || n > CLG_MAX_RANK) return batch_refuse(c, "its shape is not known");
    resolve(c, n, wanted, sizes);
    return place_rows(c, n, sizes);
}

clg_status batch_pass_flatten(batch_node *c)
{
    const batch_value *x = c->inputs[0];
    batch_term sizes[2];
    int axis = 0;
    if (!batch_carries(x)) return keep_elements(c);
    CLG_TRY(batch_need_rank(c, 0));
    int64_t given = node_int(c->node, "axis", 1);
    CLG_TRY(batch_axis(c, given, x->rank + (given >= 0), &axis));
    sizes[0] = product_of(c->symbols, x->dims, 0, axis);
    sizes[1] = product_of(c->symbols, x->dims, axis, x->rank);
    return place_rows(c, 2, sizes);
}

/* ---- Squeeze, Unsqueeze ---------------------------------------------------------------------- */

/* Reads the axes, by attribute or input 1, as marks on a value of `rank` axes; *out_n is their
 * number. */
static clg_status read_axes(batch_node *c, int added, bool marks[CLG_MAX_RANK + 1], int *out_n)
{
    int64_t given[BATCH_MAX_ELEMENTS];
    size_t n;
    const int64_t *axes = node_ints(c->node, "axes", &n);
    if (!axes && (!batch_input(c, 1) || !batch_ints(c, 1, given, &n)))
        return batch_refuse(c, batch_input(c, 1)
                                   ? "its axes are not known"
                                   : "it removes all axes of size 1, and a part may have one row");
    if (!axes) axes = given;
    const int rank = c->inputs[0]->rank + (added ? (int)n : 0);
    if (rank > CLG_MAX_RANK || n > CLG_MAX_RANK) return batch_refuse(c, "it has too many axes");
    *out_n = (int)n;
    for (size_t i = 0; i < n; i++) {
        int axis = 0;
        CLG_TRY(batch_axis(c, axes[i], rank, &axis));
        marks[axis] = true;
    }
    return CLG_OK;
}

clg_status batch_pass_squeeze(batch_node *c)
{
    const batch_value *x = c->inputs[0];
    bool removed[CLG_MAX_RANK + 1] = {false};
    int n = 0, at = 0;
    if (!batch_carries(x)) return keep_elements(c);
    CLG_TRY(batch_need_rank(c, 0));
    CLG_TRY(read_axes(c, 0, removed, &n));
    if (removed[x->axis])
        return batch_refuse(c, "it removes axis %d, which carries the batch", x->axis);
    CLG_TRY(batch_set_rank(c, 0, x->rank - n));
    for (int i = 0; i < x->rank; i++) {
        if (removed[i]) continue;
        if (i == x->axis)
            batch_set_rows(c, 0, at, &x->dims[i]);
        else
            batch_set_dim(c, 0, at, &x->dims[i]);
        at++;
    }
    return CLG_OK;
}

static bool knows_axes(const batch_node *c)
{
    int64_t given[BATCH_MAX_ELEMENTS];
    size_t n;
    return node_attribute(c->node, "axes") || batch_ints(c, 1, given, &n);
}

clg_status batch_pass_unsqueeze(batch_node *c)
{
    const batch_value *x = c->inputs[0];
    const batch_term one = term_int(1);
    bool added[CLG_MAX_RANK + 1] = {false};
    int n = 0, from = 0;
    if (!batch_carries(x) && (x->rank == RANK_UNKNOWN || !knows_axes(c))) return keep_elements(c);
    CLG_TRY(batch_need_rank(c, 0));
    CLG_TRY(read_axes(c, 1, added, &n));
    CLG_TRY(batch_set_rank(c, 0, x->rank + n));
    for (int i = 0; i < x->rank + n; i++) {
        if (added[i])
            batch_set_dim(c, 0, i, &one);
        else if (from++ == x->axis && batch_carries(x))
            batch_set_rows(c, 0, i, &x->dims[x->axis]);
        else
            batch_set_dim(c, 0, i, &x->dims[from - 1]);
    }
    return batch_carries(x) ? CLG_OK : keep_elements(c);
}
