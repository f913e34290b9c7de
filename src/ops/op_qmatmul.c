/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMulInteger and QLinearMatMul: products of 8-bit matrices with int32 sums, exact; see cl/qmatmul.cl.
 */
#include "ops/grid.h"
#include "ops/work.h"

#include <inttypes.h>

/* Where the inputs of the two operators stand. */
typedef struct qmatmul_inputs {
    uint32_t a, b, a_zero, b_zero, a_scale, b_scale, y_scale, y_zero;
    bool requantizes;
} qmatmul_inputs;

static const qmatmul_inputs integer_inputs = {.a = 0, .b = 1, .a_zero = 2, .b_zero = 3};
static const qmatmul_inputs linear_inputs = {.a = 0,
                                             .a_scale = 1,
                                             .a_zero = 2,
                                             .b = 3,
                                             .b_scale = 4,
                                             .b_zero = 5,
                                             .y_scale = 6,
                                             .y_zero = 7,
                                             .requantizes = true};

/* The dimensions that a product adds to vectors. */
static shape as_matrix(const shape *x, bool is_left)
{
    if (x->rank != 1) return *x;
    return (shape){.rank = 2, .dims = {is_left ? 1 : x->dims[0], is_left ? x->dims[0] : 1}};
}

static shape leading(const shape *x)
{
    shape s = *x;
    s.rank -= 2;
    return s;
}

static int64_t count(const shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++) n *= s->dims[i];
    return n;
}

/* One number, or one for each of n. */
static clg_status check_list(const op_context *c, uint32_t input, int64_t n, const char *what)
{
    const shape *dims = &op_input(c, input)->dims;
    if (!op_has_input(c, input) || !shape_is_known(dims) || count(dims) == 1) return CLG_OK;
    if (n == DIM_UNKNOWN || count(dims) == n) return CLG_OK;
    return op_error(c, CLG_ERROR_SHAPE, "%s has %" PRId64 " numbers; 1 or %" PRId64 " are wanted",
                    what, count(dims), n);
}

static clg_status qmatmul_infer(op_context *c)
{
    const qmatmul_inputs *at = c->row->param;
    const shape *x = &op_input(c, at->a)->dims, *w = &op_input(c, at->b)->dims;
    if (x->rank < 1 || w->rank < 1)
        return op_error(c, CLG_ERROR_SHAPE, "a scalar is no operand of a matrix product");
    const shape a = as_matrix(x, true), b = as_matrix(w, false);
    const int64_t k = a.dims[a.rank - 1], k_of_b = b.dims[b.rank - 2], m = a.dims[a.rank - 2],
                  n = b.dims[b.rank - 1];
    if (k != k_of_b && k != DIM_UNKNOWN && k_of_b != DIM_UNKNOWN)
        return op_error(c, CLG_ERROR_SHAPE, "A has %" PRId64 " columns and B %" PRId64 " rows", k,
                        k_of_b);
    const shape batch_a = leading(&a), batch_b = leading(&b);
    shape y;
    if (shape_broadcast(&batch_a, &batch_b, &y) != CLG_OK)
        return op_error(c, CLG_ERROR_SHAPE, "the leading dimensions of A and B do not broadcast");
    if (x->rank > 1) y.dims[y.rank++] = m;
    if (w->rank > 1) y.dims[y.rank++] = n;
    CLG_TRY(check_list(c, at->a_zero, m, "the zero point of A"));
    CLG_TRY(check_list(c, at->b_zero, n, "the zero point of B"));
    fact_set(&c->outputs[0], CLG_INT32, &y);
    if (!at->requantizes) return CLG_OK;
    CLG_TRY(check_list(c, at->a_scale, m, "the scale of A"));
    CLG_TRY(check_list(c, at->b_scale, n, "the scale of B"));
    CLG_TRY(check_list(c, at->y_scale, 1, "the scale of Y"));
    CLG_TRY(check_list(c, at->y_zero, 1, "the zero point of Y"));
    fact_set(&c->outputs[0], op_input(c, at->y_zero)->dtype, &y);
    return CLG_OK;
}

/* A buffer of one number or a list, and the step from one to the next; `unused` stands in for one that is left out. */
static void list_args(lower_context *c, step *s, uint32_t input, clg_dtype dtype, operand unused)
{
    const bool given = lower_has_input(c, input);
    step_arg_buffer(&c->build, s, given ? operand_input(input) : unused, dtype);
    step_arg_int(&c->build, s, given && count(&lower_input(c, input)->dims) != 1);
}

/* Strides of a matrix' leading dimensions. */
static lower_operand batches_of(const shape *x)
{
    lower_operand o = {.dims = leading(x)};
    int64_t stride = x->dims[x->rank - 2] * x->dims[x->rank - 1];
    for (int i = o.dims.rank - 1; i >= 0; i--) {
        o.strides[i] = stride;
        stride *= o.dims.dims[i];
    }
    return o;
}

static clg_status qmatmul_lower(lower_context *c)
{
    const qmatmul_inputs *at = c->row->param;
    const lower_operand *x = lower_input(c, at->a), *w = lower_input(c, at->b);
    const shape a = as_matrix(&x->dims, true), b = as_matrix(&w->dims, false);
    const lower_operand batch_a = batches_of(&a), batch_b = batches_of(&b);
    shape over;
    CLG_TRY(shape_broadcast(&batch_a.dims, &batch_b.dims, &over));
    grid *g = grid_create(c->memory, &over, 2);
    if (!g) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    grid_set_operand(g, 0, &batch_a);
    grid_set_operand(g, 1, &batch_b);
    grid_collapse(g);
    const int64_t m = a.dims[a.rank - 2], n = b.dims[b.rank - 1], k = a.dims[a.rank - 1],
                  batch = grid_n_elements(g);
    const bool wide = lower_is_wide(c);
    const int lanes = wide ? work_lanes(c, n) : 1, rows = m >= 4 ? 4 : 1;
    step_builder *to = &c->build;
    step *s = step_kernel(to, step_candidate(to, "qmatmul"), "qmatmul", "qmatmul",
                          prelude_text(to,
                                       "P_A=%d P_B=%d P_Y=%d P_VEC=%d P_FP64=0 P_INDEX=32 "
                                       "P_ZERO_A=%d P_ZERO_B=%d P_ROWS=%d P_RANK=%d",
                                       (int)x->dtype, (int)w->dtype, (int)c->outputs[0].dtype,
                                       lanes, lower_has_input(c, at->a_zero),
                                       lower_has_input(c, at->b_zero), rows, g->rank));
    step_arg_int(to, s, m);
    step_arg_int(to, s, n);
    step_arg_int(to, s, k);
    step_arg_int(to, s, batch);
    for (int i = 0; i < g->rank; i++) {
        step_arg_int(to, s, g->dims[i]);
        step_arg_long(to, s, g->strides[0][i]);
        step_arg_long(to, s, g->strides[1][i]);
    }
    step_arg_buffer(to, s, operand_input(at->a), x->dtype);
    step_arg_buffer(to, s, operand_input(at->b), w->dtype);
    step_arg_buffer(to, s, operand_output(0), c->outputs[0].dtype);
    list_args(c, s, at->a_zero, x->dtype, operand_input(at->a));
    list_args(c, s, at->b_zero, w->dtype, operand_input(at->b));
    if (at->requantizes) {
        list_args(c, s, at->a_scale, CLG_FLOAT32, operand_input(at->a));
        list_args(c, s, at->b_scale, CLG_FLOAT32, operand_input(at->b));
        step_arg_buffer(to, s, operand_input(at->y_scale), CLG_FLOAT32);
        step_arg_buffer(to, s, operand_input(at->y_zero), c->outputs[0].dtype);
    }
    s->flops = 2.0 * (double)batch * (double)m * (double)n * (double)k;
    s->bytes =
        (double)batch * ((double)m * (double)k + (double)k * (double)n + (double)m * (double)n);
    const uint64_t across = wide ? 1 : work_power_of_two(n, 64),
                   local[3] = {across, wide ? 1 : 64 / across, 1};
    const int64_t pieces[3] = {(n + lanes - 1) / lanes, (m + rows - 1) / rows, batch};
    grid_range(c, s, 3, pieces, local);
    return CLG_OK;
}

#define BYTES (DTYPE_BIT(CLG_INT8) | DTYPE_BIT(CLG_UINT8))
static const op_types types[] = {
    {'A', BYTES}, {'B', BYTES}, {'Y', BYTES}, {'S', DTYPE_BIT(CLG_FLOAT32)}, {0}};

const op_row op_rows_qmatmul[] = {
    {.name = "MatMulInteger",
     .since = 10,
     .min_inputs = 2,
     .max_inputs = 4,
     .min_outputs = 1,
     .max_outputs = 1,
     .input_types = "ABAB",
     .output_types = "?",
     .types = types,
     .infer = qmatmul_infer,
     .lower = qmatmul_lower,
     .param = &integer_inputs},
    {.name = "QLinearMatMul",
     .since = 10,
     .min_inputs = 8,
     .max_inputs = 8,
     .min_outputs = 1,
     .max_outputs = 1,
     .input_types = "ASABSBSY",
     .output_types = "?",
     .types = types,
     .infer = qmatmul_infer,
     .lower = qmatmul_lower,
     .param = &linear_inputs},
};
const size_t n_op_rows_qmatmul = sizeof op_rows_qmatmul / sizeof *op_rows_qmatmul;
