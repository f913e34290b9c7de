/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of DFT and STFT, of Det, and of Col2Im. The transforms and Col2Im are linear.
 */
#include "ops/grad/grad_rule.h"

/* ---- DFT ------------------------------------------------------------------------------------- */

/* A DFT of length n along an axis. */
typedef struct transform {
    int64_t axis;
    value_id n; /* a list of one int64 */
    bool inverse, onesided;
} transform;

/* Adds a DFT of opset 20. */
static value_id add_dft(grad_node *c, value_id v, value_id n, int64_t axis, bool inverse,
                        bool onesided)
{
    value_id made = GRAD_ADD(c, "DFT", v, n, grad_number_of(c, CLG_INT64, (double)axis));
    made = grad_set_int(c, grad_of_opset(c, made, 20), "inverse", inverse);
    return grad_set_int(c, made, "onesided", onesided);
}

static bool read_transform(grad_node *c, transform *t)
{
    const int rank = grad_rank(c, 0);
    const int64_t one = 1;
    int64_t given[OP_MAX_INTS] = {-2};
    size_t n = 1;
    t->axis = node_int(&c->node, "axis", 1);
    if (c->node.opset >= 20) {
        if (grad_in(c, 2) != VALUE_NONE && !grad_ints(c, 2, NULL, given, &n)) n = 0;
        t->axis = given[0];
    }
    if (t->axis < 0) t->axis += rank;
    if (n != 1 || t->axis < 0 || t->axis >= rank) {
        grad_refuse(c, "its axis is not known");
        return false;
    }
    t->inverse = node_int(&c->node, "inverse", 0) != 0;
    t->onesided = node_int(&c->node, "onesided", 0) != 0;
    if (grad_in(c, 1) != VALUE_NONE) {
        t->n = grad_reshape(c, grad_cast(c, grad_in(c, 1), CLG_INT64), 1, &one);
        return true;
    }
    t->n = grad_size_along(c, grad_in(c, 0), t->axis);
    if (t->inverse && t->onesided) {
        const value_id less = GRAD_ADD(c, "Sub", t->n, grad_list(c, 1, &one));
        t->n = GRAD_ADD(c, "Add", less, less);
    }
    return true;
}

/* Returns v, which has `there` elements along the axis, cut or padded with zeros to the size of the
 * input. */
static value_id fit_input(grad_node *c, const transform *t, value_id v, value_id there)
{
    const int64_t zero = 0;
    const value_id none = grad_list(c, 1, &zero);
    const value_id wanted = grad_size_along(c, grad_in(c, 0), t->axis);
    const value_id cut = grad_slice_at(c, v, t->axis, none, wanted);
    const value_id missing = GRAD_ADD(c, "Max", GRAD_ADD(c, "Sub", wanted, there), none);
    const value_id pads = grad_concat(c, 0, 2, (value_id[]){none, missing});
    return grad_of_opset(
        c, GRAD_ADD(c, "Pad", cut, pads, grad_number(c, 0), grad_list(c, 1, &t->axis)), 18);
}

/* Returns v without the mirrored half of a spectrum of length n: elements 0 to n / 2, of which all
 * but the first, and the last for an even n, count twice. */
static value_id fold(grad_node *c, const transform *t, value_id v, value_id kept)
{
    const int64_t zero = 0, column[2] = {-1, 1};
    const clg_dtype dtype = grad_fact(c, grad_out(c, 0))->dtype;
    const int rank = grad_rank(c, 0);
    const value_id i = grad_indices(c, kept);
    const value_id mirrored = GRAD_ADD(c, "Sub", t->n, i);
    const value_id is_first = GRAD_ADD(c, "Equal", i, grad_number_of(c, CLG_INT64, 0)),
                   is_middle = GRAD_ADD(c, "Equal", i, mirrored);
    value_id times = GRAD_ADD(c, "Where", GRAD_ADD(c, "Or", is_first, is_middle),
                              grad_number_of(c, dtype, 1), grad_number_of(c, dtype, 2));
    for (int64_t a = t->axis + 1; a < rank; a++)
        times = a == t->axis + 1 ? grad_reshape(c, times, 2, column)
                                 : grad_unsqueeze(c, times, 1, (int64_t[]){1});
    const value_id part = grad_slice_at(c, v, t->axis, grad_list(c, 1, &zero), kept);
    return GRAD_ADD(c, "Mul", part, times);
}

/* The transpose of a transform is the inverse transform without its factor. The cotangents of
 * outputs that a onesided transform lacks are zeros. */
void grad_pass_dft(grad_node *c)
{
    transform t;
    const shape *x = &grad_fact(c, grad_in(c, 0))->dims;
    if (!read_transform(c, &t)) return;
    const clg_dtype dtype = grad_fact(c, grad_out(c, 0))->dtype;
    const value_id n = grad_cast(c, GRAD_ADD(c, "Squeeze", t.n), dtype);
    value_id v = add_dft(c, grad_cotangent(c, 0), t.n, t.axis, !t.inverse, false);
    v = GRAD_ADD(c, t.inverse ? "Div" : "Mul", v, n);
    value_id there = t.n;
    if (t.inverse && t.onesided) {
        const value_id half =
            GRAD_ADD(c, "Div", t.n, grad_list(c, 1, (int64_t[]){2})); /* of integers: rounds down */
        there = GRAD_ADD(c, "Add", half, grad_list(c, 1, (int64_t[]){1}));
        v = fold(c, &t, v, there);
    }
    v = fit_input(c, &t, v, there);
    if (x->dims[x->rank - 1] != 2) /* a real input lacks the imaginary part */
        v = grad_slice_at(c, v, x->rank - 1, grad_list(c, 1, &(int64_t){0}),
                          grad_size_along(c, grad_in(c, 0), x->rank - 1));
    grad_give(c, 0, v);
}

/* ---- STFT ------------------------------------------------------------------------------------ */

/* Transforms the frames of the signal, each times the window. */
void grad_pass_stft(grad_node *c)
{
    const size_t first = c->graph->n_nodes;
    const int64_t one = 1, column[2] = {-1, 1};
    const value_id x = grad_in(c, 0), window = grad_in(c, 2);
    const value_id hop = grad_reshape(c, grad_cast(c, grad_in(c, 1), CLG_INT64), 1, &one);
    value_id n;
    if (grad_in(c, 3) != VALUE_NONE)
        n = grad_reshape(c, grad_cast(c, grad_in(c, 3), CLG_INT64), 1, &one);
    else
        n = window == VALUE_NONE ? grad_size_along(c, x, 1) : grad_size_along(c, window, 0);
    const value_id rest = GRAD_ADD(c, "Sub", grad_size_along(c, x, 1), n);
    const value_id frames =
        GRAD_ADD(c, "Add", GRAD_ADD(c, "Div", rest, hop), grad_list(c, 1, &one));
    const value_id starts = GRAD_ADD(c, "Mul", grad_indices(c, frames), hop);
    const value_id at = GRAD_ADD(c, "Add", grad_reshape(c, starts, 2, column), grad_indices(c, n));
    value_id v = grad_set_int(c, GRAD_ADD(c, "Gather", x, at), "axis", 1);
    if (window != VALUE_NONE) v = GRAD_ADD(c, "Mul", v, grad_reshape(c, window, 2, column));
    const bool onesided = node_int(&c->node, "onesided", 1) != 0;
    const value_id y = add_dft(c, v, n, 2, false, onesided);
    grad_through(c, first, 1, &y);
}

/* ---- Det ------------------------------------------------------------------------------------- */

/* Refuses matrices that may have more than MAX_SIZE rows, since n rows become n^2 matrices. */
static void check_matrices(grad_node *c, const shape *x)
{
    enum { MAX_SIZE = 32 };
    const int64_t n_rows = x->dims[x->rank - 2], n_columns = x->dims[x->rank - 1],
                  n = n_rows == DIM_UNKNOWN ? n_columns : n_rows;
    if (n == DIM_UNKNOWN)
        grad_refuse(c, "the size of its matrices is not known");
    else if (n > MAX_SIZE)
        grad_refuse(c, "its matrices have more than %d rows", MAX_SIZE);
}

/* The cotangent of element i, j is that of the determinant times the cofactor, the determinant of
 * the matrix with a row i of zeros but for 1 in column j. So matrices may be singular. */
void grad_pass_det(grad_node *c)
{
    const int rank = grad_rank(c, 0);
    const value_id x = grad_in(c, 0);
    const shape *dims = &grad_fact(c, x)->dims;
    if (rank < 2 || rank + 2 > CLG_MAX_RANK) {
        grad_refuse(c, "its input has %d axes, and 2 to %d are supported", rank, CLG_MAX_RANK - 2);
        return;
    }
    check_matrices(c, dims);
    if (c->status != CLG_OK) return;
    const int64_t both[2] = {rank - 2, rank - 1}, last[2] = {-2, -1};
    const int64_t row[3] = {0, 2, 3}, rows[3] = {1, 2, 3};
    const int64_t of_row[3] = {0, 1, 3}, of_column[3] = {0, 1, 2};
    const clg_dtype dtype = grad_fact(c, x)->dtype;
    const value_id i = grad_indices(c, grad_size_along(c, x, -1));
    const value_id is_row =
        GRAD_ADD(c, "Equal", grad_unsqueeze(c, i, 3, rows), grad_unsqueeze(c, i, 3, of_row));
    const value_id is_column =
        GRAD_ADD(c, "Equal", grad_unsqueeze(c, i, 3, row), grad_unsqueeze(c, i, 3, of_column));
    const value_id changed =
        GRAD_ADD(c, "Where", is_row, grad_cast(c, is_column, dtype), grad_unsqueeze(c, x, 2, both));
    const value_id g = grad_unsqueeze(c, grad_cotangent(c, 0), 2, last);
    grad_give(c, 0, GRAD_ADD(c, "Mul", g, GRAD_ADD(c, "Det", changed)));
}

/* ---- Col2Im ---------------------------------------------------------------------------------- */

/* Gathers the windows of the cotangent: a convolution of each channel, whose filter k picks element
 * k of a window. */
void grad_pass_col2im(grad_node *c)
{
    static const char *const names[] = {"dilations", "pads", "strides"};
    int64_t block[OP_MAX_INTS], taps = 1, one = 1;
    size_t n;
    const clg_dtype dtype = grad_fact(c, grad_out(c, 0))->dtype;
    const value_id g = grad_cotangent(c, 0);
    if (!grad_ints(c, 2, NULL, block, &n) || n < 1 || n > 3) {
        grad_refuse(c, "its block_shape is not known, or has more than 3 axes");
        return;
    }
    for (size_t i = 0; i < n; i++) taps *= block[i];
    const int64_t square[2] = {taps, taps};
    const value_id eye = GRAD_ADD(c, "EyeLike", grad_fill(c, grad_list(c, 2, square), dtype, 0));
    int64_t filter[5] = {taps, 1};
    value_id dims[5] = {grad_size_of_axes(c, g, 0, 2), grad_list(c, 1, &one)};
    for (size_t i = 0; i < n; i++) {
        filter[2 + i] = block[i];
        dims[2 + i] = grad_size_along(c, g, (int64_t)(2 + i));
    }
    const value_id planes = grad_reshape_to(c, g, 2 + n, dims);
    value_id v = GRAD_ADD(c, "Conv", planes, grad_reshape(c, eye, 2 + n, filter));
    v = grad_copy_attributes(c, v, sizeof names / sizeof *names, names);
    grad_give(c, 0, grad_reshape_like(c, v, grad_in(c, 0)));
}
