/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds the kernel arguments that 8-bit GEMMs have in common, and counts their operations.
 */
#include "ops/quant/qmatmul.h"

number_list qmatmul_list(const lower_context *c, uint32_t input)
{
    if (!lower_has_input(c, input)) return (number_list){0};
    return (number_list){
        true, shape_product(&lower_input(c, input)->dims, 0, lower_input(c, input)->dims.rank) != 1,
        operand_input(input)};
}

/* Adds a scale or zero point as two arguments: its buffer (`unused` if it is absent), and the
 * stride between its values, 0 for a scalar. */
static void list_args(lower_context *c, step *s, number_list list, clg_dtype dtype, operand unused)
{
    step_arg_buffer(&c->build, s, list.given ? list.at : unused, dtype);
    step_arg_int(&c->build, s, list.many);
}

void qmatmul_size_args(step_builder *b, step *s, const qmatmul_size *z)
{
    const grid_dims *g = z->batches;
    STEP_INTS(b, s, z->m, z->n, z->k, grid_n_elements(g));
    for (int i = 0; i < g->rank; i++) {
        step_arg_int(b, s, g->dims[i]);
        STEP_LONGS(b, s, g->strides[0][i], g->strides[1][i]);
    }
}

void qmatmul_last_args(lower_context *c, step *s, const qmatmul_job *j)
{
    list_args(c, s, j->a_zero, j->a_dtype, j->a);
    list_args(c, s, j->b_zero, j->b_dtype, j->b);
    if (j->y_dtype == CLG_INT32) return;
    list_args(c, s, j->a_scale, CLG_FLOAT32, j->a);
    list_args(c, s, j->b_scale, CLG_FLOAT32, j->a);
    STEP_BUFFERS(&c->build, s, {j->y_scale, CLG_FLOAT32}, {j->y_zero, j->y_dtype});
}

void qmatmul_count_work(step *s, const qmatmul_size *z)
{
    const double m = (double)z->m, n = (double)z->n, k = (double)z->k,
                 batch = (double)grid_n_elements(z->batches);
    s->flops = 2.0 * batch * m * n * k;
    s->bytes = batch * (m * k + k * n + m * n);
}
