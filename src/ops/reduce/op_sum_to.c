/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers the internal clgraph.SumTo: input 0 summed to the shape that input 1 lists, from which it
 * could have been broadcast. Gradients add it (ops/grad). Where nothing is to be summed it is a
 * view.
 */
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"
#include "ops/reduce/reduce.h"

/* Marks the axes of `from` that are summed to make `to`; returns whether there are any. */
static bool mark_summed(const shape *from, const shape *to, bool marks[CLG_MAX_RANK])
{
    bool any = false;
    const int shift = from->rank - to->rank;
    for (int i = 0; i < from->rank; i++) {
        marks[i] = i < shift || (to->dims[i - shift] == 1 && from->dims[i] != 1);
        any = any || (marks[i] && from->dims[i] != 1);
    }
    return any;
}

static clg_status sum_to_infer(op_context *c)
{
    bool known;
    shape to, whole;
    char wanted[SHAPE_TEXT_BYTES], given[SHAPE_TEXT_BYTES];
    const shape *from = &c->inputs[0].dims;
    CLG_TRY(op_need_dims(c, 1, &known, &to));
    if (known && !shape_is_known(&to))
        return op_error(c, CLG_ERROR_SHAPE, "a dimension to sum to is negative");
    if (known && (shape_broadcast(from, &to, &whole) != CLG_OK ||
                  (shape_is_known(from) && !shape_equal(&whole, from))))
        return op_error(c, CLG_ERROR_SHAPE, "shape %s is not broadcast from %s",
                        shape_text(from, given), shape_text(&to, wanted));
    fact_set(&c->outputs[0], c->inputs[0].dtype, &to);
    return CLG_OK;
}

static clg_status sum_to_lower(lower_context *c)
{
    bool marks[CLG_MAX_RANK] = {false};
    if (!mark_summed(&c->inputs[0].dims, &c->outputs[0].dims, marks)) {
        c->is_view = true;
        return CLG_OK;
    }
    CLG_TRY(work_check_dtype(c, c->inputs[0].dtype));
    return reduce_append_sum_to(c, step_candidate(&c->build, "reduce"), &c->inputs[0],
                                operand_input(0), marks, operand_output(0));
}

static const op_types types[] = {{'T', DTYPES_FLOAT}, {'I', DTYPE_BIT(CLG_INT64)}, {0, 0}};

const op_row op_rows_sum_to[] = {
    {.name = "SumTo",
     .domain = "clgraph",
     .since = 1,
     .grad = GRAD_BY(grad_pass_sum_to),
     OP_INPUTS(2, 2, "TI"),
     OP_OUTPUTS(1, 1, "T"),
     .types = types,
     .infer = sum_to_infer,
     .lower = sum_to_lower},
};
const size_t n_op_rows_sum_to = sizeof op_rows_sum_to / sizeof *op_rows_sum_to;
