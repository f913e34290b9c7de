/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of matrix products: of y = a b, the cotangent of a is g b^T, that of b is a^T g. Products
 * with transposed operands are those of com.microsoft.FusedMatMul, whose strides cost nothing.
 */
#include "ops/grad/grad_rule.h"

/* Returns alpha a b, of operands of rank 2 or more, each transposed in its last two axes if its
 * flag is set. */
static value_id product(grad_node *c, value_id a, bool transpose_a, value_id b, bool transpose_b,
                        float alpha)
{
    if (!transpose_a && !transpose_b && alpha == 1.0f) return GRAD_ADD(c, "MatMul", a, b);
    value_id v = grad_add_of(c, "com.microsoft", "FusedMatMul", 2, (value_id[]){a, b});
    if (transpose_a) v = grad_set_int(c, v, "transA", 1);
    if (transpose_b) v = grad_set_int(c, v, "transB", 1);
    return alpha == 1.0f ? v : grad_set_float(c, v, "alpha", alpha);
}

/* Returns a value of rank 2 of which the last axis is that of v, and the first all others. */
static value_id rows_of(grad_node *c, value_id v)
{
    return grad_set_int(c, GRAD_ADD(c, "Flatten", v), "axis", -1);
}

/* A product, MatMul or FusedMatMul: operands and cotangent as matrices or stacks of them. */
typedef struct matrices {
    value_id a, b, g;
    bool transpose_a, transpose_b;
    float alpha;
} matrices;

static value_id cotangent_of_a(grad_node *c, const matrices *m, bool is_stack)
{
    const value_id made = m->transpose_a ? product(c, m->b, m->transpose_b, m->g, true, m->alpha)
                                         : product(c, m->g, false, m->b, !m->transpose_b, m->alpha);
    return is_stack ? grad_sum_to(c, made, m->a) : made; /* a may have been broadcast */
}

static value_id cotangent_of_b(grad_node *c, const matrices *m, bool is_stack)
{
    value_id a = m->a, g = m->g;
    /* one product over all rows of a rather than the sum of one product for each matrix of a */
    const bool by_rows = !is_stack && !m->transpose_a;
    if (by_rows) {
        a = rows_of(c, a);
        g = rows_of(c, g);
    }
    const value_id made = m->transpose_b ? product(c, g, true, a, m->transpose_a, m->alpha)
                                         : product(c, a, !m->transpose_a, g, false, m->alpha);
    return by_rows ? made : grad_sum_to(c, made, m->b);
}

/* A vector counts as a matrix with one row as a, with one column as b. */
void grad_pass_matmul(grad_node *c)
{
    matrices m = {.a = grad_in(c, 0),
                  .b = grad_in(c, 1),
                  .g = grad_cotangent(c, 0),
                  .transpose_a = node_int(&c->node, "transA", 0) != 0,
                  .transpose_b = node_int(&c->node, "transB", 0) != 0,
                  .alpha = node_float(&c->node, "alpha", 1.0f)};
    const int64_t front = 0, after = 1, last = -1, before_last = -2;
    const int rank_a = grad_rank(c, 0), rank_b = grad_rank(c, 1);
    if (node_int(&c->node, "transBatchA", 0) != 0 || node_int(&c->node, "transBatchB", 0) != 0)
        grad_refuse(c, "transBatchA and transBatchB have no rule");
    if ((m.transpose_a && rank_a == 1) || (m.transpose_b && rank_b == 1))
        grad_refuse(c, "transA or transB of a vector has no rule");
    if (rank_b == 1) {
        m.b = grad_unsqueeze(c, m.b, 1, &after);
        m.g = grad_unsqueeze(c, m.g, 1, &last);
    }
    if (rank_a == 1) {
        m.a = grad_unsqueeze(c, m.a, 1, &front);
        m.g = grad_unsqueeze(c, m.g, 1, &before_last);
    }
    if (grad_wants(c, 0)) {
        const value_id made = cotangent_of_a(c, &m, rank_b > 2);
        grad_give(c, 0, rank_a == 1 ? grad_reshape_like(c, made, grad_in(c, 0)) : made);
    }
    if (grad_wants(c, 1)) {
        const value_id made = cotangent_of_b(c, &m, rank_b > 2);
        grad_give(c, 1, rank_b == 1 ? grad_reshape_like(c, made, grad_in(c, 1)) : made);
    }
}

/* Returns alpha op(a) op(b) as a Gemm. */
static value_id gemm(grad_node *c, value_id a, bool transpose_a, value_id b, bool transpose_b,
                     float alpha)
{
    value_id v = GRAD_ADD(c, "Gemm", a, b);
    if (transpose_a) v = grad_set_int(c, v, "transA", 1);
    if (transpose_b) v = grad_set_int(c, v, "transB", 1);
    return alpha == 1.0f ? v : grad_set_float(c, v, "alpha", alpha);
}

/* Gemm: y = alpha op(a) op(b) + beta c. The cotangent of an operand that is transposed is computed
 * transposed, from the same products. */
void grad_pass_gemm(grad_node *c)
{
    const value_id a = grad_in(c, 0), b = grad_in(c, 1), g = grad_cotangent(c, 0);
    const bool ta = node_int(&c->node, "transA", 0) != 0, tb = node_int(&c->node, "transB", 0) != 0;
    const float alpha = node_float(&c->node, "alpha", 1.0f),
                beta = node_float(&c->node, "beta", 1.0f);
    if (grad_wants(c, 0))
        grad_give(c, 0, ta ? gemm(c, b, tb, g, true, alpha) : gemm(c, g, false, b, !tb, alpha));
    if (grad_wants(c, 1))
        grad_give(c, 1, tb ? gemm(c, g, true, a, ta, alpha) : gemm(c, a, !ta, g, false, alpha));
    if (grad_wants(c, 2)) {
        const value_id scaled =
            beta == 1.0f ? g : GRAD_ADD(c, "Mul", g, grad_number(c, (double)beta));
        grad_give(c, 2, grad_sum_to(c, scaled, grad_in(c, 2)));
    }
}
