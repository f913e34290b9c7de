/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers MatMulInteger and QLinearMatMul, GEMMs of 8-bit integers with exact int32 accumulation,
 * and com.microsoft's MatMulIntegerToFloat, which scales the sums and adds a bias, and
 * DynamicQuantizeMatMul, which first quantises its first operand. See qmatmul.h.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/matmul/matmul_shape.h"
#include "ops/quant/qmatmul.h"
#include "ops/quant/quantize.h"

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
                                              .a_scale = QMATMUL_NO_INPUT, /* run-time values */
                                              .a_zero = QMATMUL_NO_INPUT,
                                              .b_scale = 2,
                                              .b_zero = 3,
                                              .bias = 4,
                                              .result = TO_FLOAT};

clg_status qmatmul_check_lists(op_context *c, const qmatmul_inputs *at, int64_t m, int64_t n)
{
    CLG_TRY(quantize_check_list(c, at->a_zero, m, "the zero point of A"));
    CLG_TRY(quantize_check_list(c, at->b_zero, n, "the zero point of B"));
    if (at->result == TO_SUMS) return CLG_OK;
    CLG_TRY(quantize_check_list(c, at->a_scale, at->result == TO_FLOAT ? 1 : m, "the scale of A"));
    CLG_TRY(quantize_check_list(c, at->b_scale, n, "the scale of B"));
    if (at->result == TO_FLOAT) return quantize_check_list(c, at->bias, n, "the bias");
    CLG_TRY(quantize_check_list(c, at->y_scale, 1, "the scale of Y"));
    return quantize_check_list(c, at->y_zero, 1, "the zero point of Y");
}

static clg_status qmatmul_infer(op_context *c)
{
    const qmatmul_inputs *at = c->row->param;
    const shape *x = &op_input(c, at->a)->dims, *w = &op_input(c, at->b)->dims;
    const shape a = matmul_as_matrix(x, true), b = matmul_as_matrix(w, false);
    shape y;
    CLG_TRY(matmul_shape(c, x, &a, w, &b, &y));
    CLG_TRY(qmatmul_check_lists(c, at, a.dims[a.rank - 2], b.dims[b.rank - 1]));
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

#define MICROSOFT .domain = "com.microsoft", .since = 1
#define QMATMUL(inputs) .infer = qmatmul_infer, .lower = qmatmul_lower, .param = &(inputs)

const op_row op_rows_qmatmul[] = {
    {.name = "MatMulInteger",
     .grad = GRAD_NONE(GRAD_QUANTIZED),
     .batch = BATCH_PRODUCT(batch_pass_matmul, 0, 1),
     .since = 10,
     OP_INPUTS(2, 4, "ABAB"),
     OP_OUTPUTS(1, 1, "?"),
     .types = types,
     QMATMUL(integer_inputs)},
    {.name = "QLinearMatMul",
     .grad = GRAD_NONE(GRAD_QUANTIZED),
     .batch = BATCH_PRODUCT(batch_pass_matmul, 0, 3),
     .since = 21,
     OP_INPUTS(8, 8, "ASABSBSY"),
     OP_OUTPUTS(1, 1, "?"),
     .types = types_21,
     QMATMUL(linear_inputs)},
    {.name = "QLinearMatMul",
     .grad = GRAD_NONE(GRAD_QUANTIZED),
     .batch = BATCH_PRODUCT(batch_pass_matmul, 0, 3),
     .since = 10,
     .until = 20,
     OP_INPUTS(8, 8, "ASABSBSY"),
     OP_OUTPUTS(1, 1, "?"),
     .types = types,
     QMATMUL(linear_inputs)},
    {.name = "MatMulIntegerToFloat",
     .grad = GRAD_NONE(GRAD_QUANTIZED),
     .batch = BATCH_PRODUCT(batch_pass_matmul, 0, 1),
     MICROSOFT,
     OP_INPUTS(4, 7, "ABSSABS"),
     OP_OUTPUTS(1, 1, "S"),
     .types = types,
     QMATMUL(float_inputs)},
    {.name = "DynamicQuantizeMatMul",
     .grad = GRAD_NONE(GRAD_QUANTIZED),
     .batch = BATCH_NEVER("it finds one scale for all rows together"),
     MICROSOFT,
     OP_INPUTS(3, 5, "SBSBS"),
     OP_OUTPUTS(1, 1, "S"),
     .types = types,
     QMATMUL(dynamic_inputs)},
};
const size_t n_op_rows_qmatmul = sizeof op_rows_qmatmul / sizeof *op_rows_qmatmul;
