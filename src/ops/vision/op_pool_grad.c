/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers the internal clgraph.MaxPoolGrad, AveragePoolGrad and SumPoolGrad, which gradients add
 * (ops/grad): the gradient of a pooling by its input, from input 0, that by its output. Attributes
 * are those of the pooling. Inputs 1 and 2 of MaxPoolGrad are the pooling's input and output, of
 * which it finds the maxima: indices would cost the forward pass more. Input 1 of the others lists
 * the dimensions of the pooling's input. SumPoolGrad is of the sums of windows, of which LpPool is
 * made. Kernel: cl/vision/pool_grad.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/window.h"
#include "ops/lowering/work.h"

typedef enum pool_grad_op {
    GRAD_MAX,
    GRAD_AVERAGE,
    GRAD_AVERAGE_PADDED,
    GRAD_SUM
} pool_grad_op; /* P_OP of cl/vision/pool_grad.cl */

static const pool_grad_op grad_max = GRAD_MAX, grad_average = GRAD_AVERAGE, grad_sum = GRAD_SUM;

static clg_status pool_grad_infer(op_context *c)
{
    window_desc w;
    shape x = c->inputs[1].dims, y;
    bool known = shape_is_known(&x);
    char wanted[SHAPE_TEXT_BYTES], given[SHAPE_TEXT_BYTES];
    if (c->n_inputs == 2) CLG_TRY(op_need_dims(c, 1, &known, &x));
    if (!known) {
        fact_set(&c->outputs[0], c->inputs[0].dtype, &x);
        return CLG_OK;
    }
    if (!shape_is_known(&x)) return op_error(c, CLG_ERROR_SHAPE, "a dimension is negative");
    CLG_TRY(window_read(c->node, &x, NULL, &w));
    window_shape(&w, x.dims[0], x.dims[1], &y);
    for (size_t i = 0; i < c->n_inputs; i += 2)
        if (shape_is_known(&c->inputs[i].dims) && !shape_equal(&c->inputs[i].dims, &y))
            return op_error(c, CLG_ERROR_SHAPE, "input %zu has shape %s, the pooling's output %s",
                            i, shape_text(&c->inputs[i].dims, given), shape_text(&y, wanted));
    fact_set(&c->outputs[0], c->inputs[0].dtype, &x);
    return CLG_OK;
}

static clg_status pool_grad_lower(lower_context *c)
{
    const shape *x = &c->outputs[0].dims;
    const clg_dtype dtype = c->inputs[0].dtype;
    window_desc w;
    window_axis axes[WINDOW_MAX_AXES];
    CLG_TRY(work_check_dtype(c, dtype));
    CLG_TRY(window_read(c->node, x, NULL, &w));
    window_fill(&w, axes);
    pool_grad_op op = *(const pool_grad_op *)c->row->param;
    if (op == GRAD_AVERAGE && node_int(c->node, "count_include_pad", 0) != 0)
        op = GRAD_AVERAGE_PADDED;
    const int64_t planes = x->dims[0] * x->dims[1], n_in = window_count_in(axes);
    step_builder *b = &c->build;
    const bool in_planes = lower_is_simd(c) && dtype != CLG_FLOAT16, max = op == GRAD_MAX;
    const char *entry = in_planes ? "pool_grad_planes" : "pool_grad";
    step *k = step_kernel(
        b, step_candidate(b, entry), "pool_grad", entry,
        prelude_text(b, "P_OP=%d P_FORM=%d P_T=%d P_VEC=1", (int)op, in_planes, (int)dtype));
    STEP_BUFFERS(b, k, {operand_input(0), dtype}, {operand_input(max ? 1 : 0), dtype},
                 {operand_input(max ? 2 : 0), dtype}, {operand_output(0), dtype});
    step_arg_int(b, k, planes);
    for (int i = 0; i < WINDOW_MAX_AXES; i++) {
        const window_axis *a = &axes[i];
        STEP_INTS(b, k, a->in, a->out, a->kernel, a->stride, a->dilation, a->pad_begin, a->pad_end);
    }
    k->flops = (double)planes * (double)(window_count_out(axes) * window_count_taps(axes));
    k->bytes = (max ? 2.0 : 1.0) * (double)planes * (double)(n_in + window_count_out(axes)) *
               (double)dtype_size(dtype);
    if (in_planes)
        work_range_1d(c, k, n_in > 0 ? planes : 0, 1);
    else
        work_range_rows(c, k, axes[2].in, planes * axes[0].in * axes[1].in);
    return CLG_OK;
}

#define FLOATS (DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT64))
static const op_types types[] = {{'T', FLOATS}, {'I', DTYPE_BIT(CLG_INT64)}, {0}};

#define POOL_ATTRIBUTES WINDOW_ATTRIBUTES(true){"ceil_mode", ATTRIBUTE_INT, false, OP_BOOLEAN},
static const op_attribute average_attributes[] = {
    POOL_ATTRIBUTES{"count_include_pad", ATTRIBUTE_INT, false, OP_BOOLEAN}, {0}};
static const op_attribute plain_attributes[] = {POOL_ATTRIBUTES{0}};

#define POOL_GRAD(row_name, letters, n, list, rule, kind)                                          \
    {                                                                                              \
        .name = row_name, .domain = "clgraph", .since = 1, .grad = GRAD_BY(rule),                  \
        OP_INPUTS(n, n, letters), OP_OUTPUTS(1, 1, "T"), .types = types, .attributes = list,       \
        .check = window_check, .infer = pool_grad_infer, .lower = pool_grad_lower,                 \
        .param = &(kind)                                                                           \
    }

const op_row op_rows_pool_grad[] = {
    POOL_GRAD("MaxPoolGrad", "TTT", 3, plain_attributes, grad_pass_max_pool_grad, grad_max),
    POOL_GRAD("AveragePoolGrad", "TI", 2, average_attributes, grad_pass_average_pool_grad,
              grad_average),
    POOL_GRAD("SumPoolGrad", "TI", 2, plain_attributes, grad_pass_sum_pool_grad, grad_sum),
};
const size_t n_op_rows_pool_grad = sizeof op_rows_pool_grad / sizeof *op_rows_pool_grad;
