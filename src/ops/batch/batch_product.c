/* SPDX-License-Identifier: Apache-2.0
 *
 * How a batch passes through matrix products: on the rows of A, the columns of B, or on axes that
 * count matrices. An axis that is summed over must not carry it.
 */
#include "ops/batch/batch_rule.h"
#include "ops/matmul/einsum.h"

/* Checks that no input but the operands carries the batch, and that each operand with the batch has
 * a known rank. */
static clg_status check_operands(const batch_node *c, size_t n_operands)
{
    for (size_t i = 0; i < c->n_inputs; i++) {
        bool is_operand = false;
        for (size_t k = 0; k < n_operands; k++)
            is_operand = is_operand || c->rule->operands[k] == i;
        if (is_operand)
            CLG_TRY(batch_need_rank(c, i));
        else if (batch_carries(c->inputs[i]))
            return batch_refuse(c, "input %zu carries the batch, but holds for all rows", i);
    }
    return CLG_OK;
}

static clg_status refuse_sum(const batch_node *c, size_t i)
{
    return batch_refuse(c, "it sums over axis %d of input %zu, which carries the batch",
                        c->inputs[i]->axis, i);
}

/* Checks that parameters of quantised operands, scales and zero points, are one for all rows, or
 * one for each column of B. */
static clg_status check_parameters(const batch_node *c, size_t ia, size_t ib)
{
    const batch_value *b = c->inputs[ib];
    for (size_t i = 0; i < c->n_inputs; i++) {
        const batch_value *v = c->inputs[i];
        if (i == ia || i == ib || !v || v->rank == 0) continue;
        CLG_TRY(batch_need_rank(c, i));
        const batch_term *last = &v->dims[v->rank - 1];
        if ((v->rank >= 2 && !term_is(&v->dims[v->rank - 2], 1)) ||
            !(term_is(last, 1) || term_equal(last, &b->dims[b->rank - 1])))
            return batch_refuse(c, "input %zu may have a number for each row", i);
    }
    return CLG_OK;
}

/* ---- MatMul ---------------------------------------------------------------------------------- */

/* Returns the axis of the result on which operand v, A or B, carries the batch; -1 if it is summed
 * over. The result has `rank` axes. */
static int result_axis(const batch_value *v, bool is_b, int other_rank, int rank)
{
    const int from_end = v->rank - 1 - v->axis;
    if (v->rank == 1 || from_end == (is_b ? 1 : 0)) return -1;
    const int columns = other_rank == 1 ? 1 : 0; /* axes that the result lacks at its end */
    if (is_b) return from_end == 0 ? rank - 1 : rank - 1 - from_end + columns;
    return rank - 1 - from_end + columns;
}

/* Checks that the other operand does not hold matrices of its own for the axis of the batch. */
static clg_status check_other(const batch_node *c, size_t i, const batch_value *v)
{
    const int from_end = v->rank - 1 - v->axis;
    const batch_value *other = c->inputs[i];
    const int at = other->rank - 1 - from_end;
    if (from_end < 2 || at < 0) return CLG_OK;
    return batch_need_one(c, i, at, other->rank);
}

static clg_status set_product(batch_node *c, const batch_value *a, const batch_value *b, int rank)
{
    CLG_TRY(batch_set_rank(c, 0, rank));
    if (a->rank < 2 || b->rank < 2) return CLG_OK;
    batch_set_dim(c, 0, rank - 2, &a->dims[a->rank - 2]);
    batch_set_dim(c, 0, rank - 1, &b->dims[b->rank - 1]);
    for (int i = 0; i < rank - 2; i++) { /* one of them may lack the axis, or have size 1 there */
        const int in_a = i - (rank - a->rank), in_b = i - (rank - b->rank);
        const bool takes_a = in_b < 0 || (in_a >= 0 && term_is(&b->dims[in_b], 1));
        if (takes_a)
            batch_set_dim(c, 0, i, &a->dims[in_a]);
        else if (in_a < 0 || term_is(&a->dims[in_a], 1) ||
                 term_equal(&a->dims[in_a], &b->dims[in_b]))
            batch_set_dim(c, 0, i, &b->dims[in_b]);
    }
    return CLG_OK;
}

clg_status batch_pass_matmul(batch_node *c)
{
    const size_t ia = c->rule->operands[0], ib = c->rule->operands[1];
    CLG_TRY(check_operands(c, 2));
    const batch_value *a = c->inputs[ia], *b = c->inputs[ib];
    if (a->rank < 1 || b->rank < 1) return batch_refuse(c, "an operand has no axes");
    const int matrices = a->rank > b->rank ? a->rank : b->rank;
    const int rank = matrices - (a->rank == 1) - (b->rank == 1);
    const bool both = batch_carries(a) && batch_carries(b);
    const batch_value *v = batch_carries(a) ? a : b;
    const bool is_b = v == b;
    const int axis = result_axis(v, is_b, (is_b ? a : b)->rank, rank);
    if (axis < 0) return refuse_sum(c, is_b ? ib : ia);
    if (both && (result_axis(b, true, a->rank, rank) != axis || b->rank - b->axis < 3 ||
                 a->rank - a->axis < 3 || !term_equal(&a->dims[a->axis], &b->dims[b->axis])))
        return batch_refuse(c, "its operands carry the batch on axes %d and %d", a->axis, b->axis);
    if (!both) CLG_TRY(check_other(c, is_b ? ia : ib, v));
    CLG_TRY(check_parameters(c, ia, ib));
    CLG_TRY(set_product(c, a, b, rank));
    batch_set_rows(c, 0, axis, &v->dims[v->axis]);
    return CLG_OK;
}

/* ---- Gemm ------------------------------------------------------------------------------------ */

clg_status batch_pass_gemm(batch_node *c)
{
    const size_t ia = c->rule->operands[0], ib = c->rule->operands[1], ic = c->rule->operands[2];
    CLG_TRY(check_operands(c, 3));
    const batch_value *a = c->inputs[ia], *b = c->inputs[ib], *bias = batch_input(c, ic);
    if (a->rank != 2 || b->rank != 2) return batch_refuse(c, "an operand is not a matrix");
    const int rows = node_int(c->node, "transA", 0) != 0, columns = !node_int(c->node, "transB", 0);
    if (batch_carries(a) && a->axis != rows) return refuse_sum(c, ia);
    if (batch_carries(b) && b->axis != columns) return refuse_sum(c, ib);
    if (batch_carries(a) == batch_carries(b))
        return batch_refuse(c, batch_carries(a) ? "both of its operands carry the batch"
                                                : "input C carries the batch, but A and B do not");
    const int axis = batch_carries(a) ? 0 : 1;
    const batch_term *size = batch_carries(a) ? &a->dims[rows] : &b->dims[columns];
    CLG_TRY(batch_set_rank(c, 0, 2));
    if (!batch_carries(bias))
        CLG_TRY(batch_need_one(c, ic, axis, 2));
    else if (bias->axis + 2 - bias->rank != axis || !term_equal(&bias->dims[bias->axis], size))
        return batch_refuse(c, "C carries the batch on another axis than the product");
    batch_set_dim(c, 0, 0, &a->dims[rows]);
    batch_set_dim(c, 0, 1, &b->dims[columns]);
    batch_set_rows(c, 0, axis, size);
    return CLG_OK;
}

/* ---- Einsum ---------------------------------------------------------------------------------- */

/* Returns the axis with the label; -1: none. *out_n, how often it occurs. */
static int axis_of(const einsum_term *t, int label, int *out_n)
{
    int axis = -1;
    *out_n = 0;
    for (int i = 0; i < t->rank; i++) {
        if (t->labels[i] != label) continue;
        axis = i;
        ++*out_n;
    }
    return axis;
}

static clg_status read_equation(const batch_node *c, einsum_equation *e)
{
    const shape *shapes[EINSUM_MAX_TERMS];
    if (c->n_inputs > EINSUM_MAX_TERMS) return batch_refuse(c, "it has too many operands");
    for (size_t i = 0; i < c->n_inputs; i++) {
        CLG_TRY(batch_need_rank(c, i));
        shapes[i] = &c->input_facts[i].dims;
    }
    if (einsum_read(c->node, shapes, e) == CLG_OK) return CLG_OK;
    return batch_refuse(c, "%s", error_text());
}

clg_status batch_pass_einsum(batch_node *c)
{
    einsum_equation e = {.n_terms = 0};
    const batch_value *first = NULL;
    int label = 0, n, at;
    CLG_TRY(read_equation(c, &e));
    for (size_t i = 0; i < c->n_inputs && !first; i++) {
        if (!batch_carries(c->inputs[i])) continue;
        first = c->inputs[i];
        label = e.terms[i].labels[first->axis];
    }
    if (!first) return batch_refuse(c, "no operand carries the batch");
    for (size_t i = 0; i < c->n_inputs; i++) {
        const batch_value *v = c->inputs[i];
        at = axis_of(&e.terms[i], label, &n);
        if (batch_carries(v) &&
            (n != 1 || v->axis != at || !term_equal(&v->dims[at], &first->dims[first->axis])))
            return batch_refuse(c, "input %zu has the batch under another letter", i);
        if (!batch_carries(v) && at >= 0) CLG_TRY(batch_need_one(c, i, at, v->rank));
    }
    at = axis_of(&e.out, label, &n);
    if (n != 1) return batch_refuse(c, "it sums over the axis that carries the batch");
    CLG_TRY(batch_set_rank(c, 0, e.out.rank));
    batch_set_rows(c, 0, at, &first->dims[first->axis]);
    return CLG_OK;
}
