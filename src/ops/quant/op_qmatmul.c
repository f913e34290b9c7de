/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMulInteger and QLinearMatMul: products of 8-bit matrices with int32 sums, exact; see
 * cl/quant/qmatmul.cl. And com.microsoft's MatMulIntegerToFloat, which scales the sums and adds a
 * bias, and DynamicQuantizeMatMul, which quantises its first operand before.
 */
#include "ops/quant/qmatmul.h"

#include <inttypes.h>

static const qmatmul_inputs integer_inputs = {.a = 0, .b = 1, .a_zero = 2, .b_zero = 3};
static const qmatmul_inputs linear_inputs = {.a = 0,
                                             .a_scale = 1,
                                             .a_zero = 2,
                                             .b = 3,
                                             .b_scale = 4,
                                             .b_zero = 5,
                                             .y_scale = 6,
                                             .y_zero = 7,
                                             .result = TO_BYTES};
static const qmatmul_inputs float_inputs = {.a = 0,
                                            .b = 1,
                                            .a_scale = 2,
                                            .b_scale = 3,
                                            .a_zero = 4,
                                            .b_zero = 5,
                                            .bias = 6,
                                            .result = TO_FLOAT};
static const qmatmul_inputs dynamic_inputs = {.a = 0,
                                              .b = 1,
                                              .a_scale = QMATMUL_NO_INPUT, /* found at run time */
                                              .a_zero = QMATMUL_NO_INPUT,
                                              .b_scale = 2,
                                              .b_zero = 3,
                                              .bias = 4,
                                              .result = TO_FLOAT};

/* One number, or one for each of n. */
static clg_status check_list(const op_context *c, uint32_t input, int64_t n, const char *what)
{
    const shape *dims = &op_input(c, input)->dims;
    if (!op_has_input(c, input) || !shape_is_known(dims) || shape_product(dims, 0, dims->rank) == 1)
        return CLG_OK;
    if (n == DIM_UNKNOWN || shape_product(dims, 0, dims->rank) == n) return CLG_OK;
    return op_error(c, CLG_ERROR_SHAPE, "%s has %" PRId64 " numbers; 1 or %" PRId64 " are wanted",
                    what, shape_product(dims, 0, dims->rank), n);
}

clg_status qmatmul_check_lists(op_context *c, const qmatmul_inputs *at, int64_t m, int64_t n)
{
    CLG_TRY(check_list(c, at->a_zero, m, "the zero point of A"));
    CLG_TRY(check_list(c, at->b_zero, n, "the zero point of B"));
    if (at->result == TO_SUMS) return CLG_OK;
    CLG_TRY(check_list(c, at->a_scale, at->result == TO_FLOAT ? 1 : m, "the scale of A"));
    CLG_TRY(check_list(c, at->b_scale, n, "the scale of B"));
    if (at->result == TO_FLOAT) return check_list(c, at->bias, n, "the bias");
    CLG_TRY(check_list(c, at->y_scale, 1, "the scale of Y"));
    return check_list(c, at->y_zero, 1, "the zero point of Y");
}

static clg_status qmatmul_infer(op_context *c)
{
    const qmatmul_inputs *at = c->row->param;
    const shape *x = &op_input(c, at->a)->dims, *w = &op_input(c, at->b)->dims;
    if (x->rank < 1 || w->rank < 1)
        return op_error(c, CLG_ERROR_SHAPE, "a scalar is not an operand of a matrix product");
    const shape a = qmatmul_as_matrix(x, true), b = qmatmul_as_matrix(w, false);
    const int64_t k = a.dims[a.rank - 1], k_of_b = b.dims[b.rank - 2], m = a.dims[a.rank - 2],
                  n = b.dims[b.rank - 1];
    if (k != k_of_b && k != DIM_UNKNOWN && k_of_b != DIM_UNKNOWN)
        return op_error(c, CLG_ERROR_SHAPE, "A has %" PRId64 " columns and B %" PRId64 " rows", k,
                        k_of_b);
    const shape batch_a = qmatmul_leading(&a), batch_b = qmatmul_leading(&b);
    shape y;
    if (shape_broadcast(&batch_a, &batch_b, &y) != CLG_OK)
        return op_error(c, CLG_ERROR_SHAPE, "the leading dimensions of A and B do not broadcast");
    if (x->rank > 1) y.dims[y.rank++] = m;
    if (w->rank > 1) y.dims[y.rank++] = n;
    CLG_TRY(qmatmul_check_lists(c, at, m, n));
    fact_set(&c->outputs[0],
             at->result == TO_FLOAT   ? CLG_FLOAT32
             : at->result == TO_BYTES ? op_input(c, at->y_zero)->dtype
                                      : CLG_INT32,
             &y);
    return CLG_OK;
}

static clg_status add_impl(lower_context *c, const qmatmul_impl *by)
{
    const qmatmul_inputs *at = c->row->param;
    candidate *impl = step_candidate(&c->build, by->name);
    if (at->result != TO_FLOAT) return qmatmul_append_bytes(c, impl, at, by);
    return qmatmul_append_float(c, impl, at, by, operand_output(0), &c->outputs[0].dims);
}

static clg_status qmatmul_lower(lower_context *c)
{
    qmatmul_impl impls[QMATMUL_MAX_IMPLS];
    const size_t n = qmatmul_impls(c, impls);
    for (size_t i = 0; i < n; i++) CLG_TRY(add_impl(c, &impls[i]));
    return CLG_OK;
}

#define BYTES (DTYPE_BIT(CLG_INT8) | DTYPE_BIT(CLG_UINT8))
static const op_types types[] = {
    {'A', BYTES}, {'B', BYTES}, {'Y', BYTES}, {'S', DTYPE_BIT(CLG_FLOAT32)}, {0}};
static const op_types types_21[] = {
    {'A', BYTES},
    {'B', BYTES},
    {'Y', BYTES},
    {'S', DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_BFLOAT16)},
    {0}};

const op_row op_rows_qmatmul[] = {
    {.name = "MatMulInteger",
     .since = 10,
     OP_INPUTS(2, 4, "ABAB"),
     OP_OUTPUTS(1, 1, "?"),
     .types = types,
     .infer = qmatmul_infer,
     .lower = qmatmul_lower,
     .param = &integer_inputs},
    {.name = "QLinearMatMul",
     .since = 21,
     OP_INPUTS(8, 8, "ASABSBSY"),
     OP_OUTPUTS(1, 1, "?"),
     .types = types_21,
     .infer = qmatmul_infer,
     .lower = qmatmul_lower,
     .param = &linear_inputs},
    {.name = "QLinearMatMul",
     .since = 10,
     .until = 20,
     OP_INPUTS(8, 8, "ASABSBSY"),
     OP_OUTPUTS(1, 1, "?"),
     .types = types,
     .infer = qmatmul_infer,
     .lower = qmatmul_lower,
     .param = &linear_inputs},
    {.name = "MatMulIntegerToFloat",
     .domain = "com.microsoft",
     .since = 1,
     OP_INPUTS(4, 7, "ABSSABS"),
     OP_OUTPUTS(1, 1, "S"),
     .types = types,
     .infer = qmatmul_infer,
     .lower = qmatmul_lower,
     .param = &float_inputs},
    {.name = "DynamicQuantizeMatMul",
     .domain = "com.microsoft",
     .since = 1,
     OP_INPUTS(3, 5, "SBSBS"),
     OP_OUTPUTS(1, 1, "S"),
     .types = types,
     .infer = qmatmul_infer,
     .lower = qmatmul_lower,
     .param = &dynamic_inputs},
};
const size_t n_op_rows_qmatmul = sizeof op_rows_qmatmul / sizeof *op_rows_qmatmul;
