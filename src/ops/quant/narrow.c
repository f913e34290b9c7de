/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers casts from and to dtypes of one byte or less. See narrow.h.
 */
#include "ops/quant/narrow.h"

#include "ops/lowering/work.h"
#include "ops/pointwise/pointwise.h"

#include <string.h>

/* Returns 0 if attribute `saturate` is 0. Else returns 2 in ONNX's domain before opset 24, where
 * infinity becomes NaN in the types without -0; otherwise 1: infinity saturates like other values.
 */
int narrow_saturation(const node *n)
{
    if (node_int(n, "saturate", 1) == 0) return 0;
    return n->opset >= 24 || n->domain[0] ? 1 : 2;
}

const char *const narrow_round_modes[] = {"up", "down", "nearest", NULL};

/* Sets *out_where to input 0 if that is dense, else to a dense copy in scratch. */
static clg_status make_dense(lower_context *c, candidate *impl, operand *out_where)
{
    lower_operand from = c->inputs[0], to = from;
    pointwise_group copy = {0};
    pointwise_register r;
    size_t size_bytes;
    int64_t n;
    if (from.dense) return CLG_OK;
    CLG_TRY(shape_n_elements(&from.dims, &n));
    if (narrow_is(from.dtype)) from.dtype = to.dtype = CLG_UINT8;
    if (!dtype_bytes(from.dtype, n, &size_bytes))
        return lower_error(c, CLG_ERROR_SHAPE, "its input is larger than memory can be");
    to.dense = true;
    shape_strides(&to.dims, to.strides);
    const pointwise_binding input = {operand_input(0), &from},
                            scratch = {step_scratch(&c->build, impl, size_bytes), &to};
    CLG_TRY(pointwise_add_input(&copy, from.dtype, &r));
    CLG_TRY(pointwise_add(&copy, "Copy", &r, NULL, &r));
    CLG_TRY(pointwise_add_output(&copy, r));
    *out_where = scratch.where;
    return pointwise_lower(c, impl, &copy, &input, &scratch);
}

clg_status narrow_lower_cast(lower_context *c)
{
    const clg_dtype from = c->inputs[0].dtype, to = c->outputs[0].dtype;
    step_builder *b = &c->build;
    operand x = operand_input(0);
    int64_t n;
    if (from == to) {
        c->is_view = true;
        memcpy(c->views[0].strides, c->inputs[0].strides, sizeof c->views[0].strides);
        return CLG_OK;
    }
    CLG_TRY(work_check_dtype(c, from));
    CLG_TRY(work_check_dtype(c, to));
    const int mode = op_word(c->node, "round_mode", "up", narrow_round_modes);
    CLG_TRY(shape_n_elements(&c->outputs[0].dims, &n));
    candidate *impl = step_candidate(b, "cast_narrow");
    CLG_TRY(make_dense(c, impl, &x));
    step *s = step_kernel(b, impl, "narrow", "cast_narrow",
                          prelude_text(b, "P_IN=%d P_OUT=%d P_SATURATE=%d P_MODE=%d P_FP64=%d",
                                       (int)from, (int)to, narrow_saturation(c->node), mode,
                                       from == CLG_FLOAT64 || to == CLG_FLOAT64));
    step_arg_long(b, s, n);
    STEP_BUFFERS(b, s, {x, from}, {operand_output(0), to});
    s->bytes = (double)n * (dtype_find(from)->bits + dtype_find(to)->bits) / 8;
    work_range_1d(c, s, (n + 7) / 8, lower_is_simd(c) ? 16 : 64);
    return CLG_OK;
}
