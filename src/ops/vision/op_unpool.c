/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers MaxUnpool: writes each element of a MaxPool's result to the position given by its index,
 * and zeros elsewhere. Indices refer to the smallest tensor that the windows cover. output_shape
 * may be larger, which appends zeros to each axis.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/grid.h"
#include "ops/lowering/window.h"
#include "ops/lowering/work.h"

#include <inttypes.h>

/* Work per work-item of the SIMD class. Estimated, not measured; checked by:
 *     cltool profile MODEL    (GB/s of max_unpool) */
#define SIMD_CHUNK 4096 /* elements, which are scattered */

/* Returns the length of a spatial axis that windows cover, for an input of length `in`: DIM_UNKNOWN
 * if that is unknown, -2 if the result would be negative or too large. */
static int64_t covered(const node *n, int axis, int n_axes, int64_t in)
{
    size_t n_kernel, n_strides, n_pads;
    const int64_t *kernel = node_ints(n, "kernel_shape", &n_kernel);
    const int64_t *strides = node_ints(n, "strides", &n_strides);
    const int64_t *pads = node_ints(n, "pads", &n_pads);
    if (in == DIM_UNKNOWN) return DIM_UNKNOWN;
    const int64_t stride = n_strides ? strides[axis] : 1,
                  padding = n_pads ? pads[axis] + pads[n_axes + axis] : 0;
    if (in > OP_MAX_SIZE / stride) return -2;
    const int64_t size = (in - 1) * stride - padding + kernel[axis];
    return in == 0 ? 0 : size < 0 ? -2 : size;
}

/* Sets *out to the shape of the tensor to which the indices refer. */
static clg_status covered_shape(const node *n, const shape *x, shape *out)
{
    char shown[NODE_TEXT_BYTES];
    size_t n_kernel, n_strides, n_pads;
    const int axes = x->rank - 2;
    (void)node_ints(n, "kernel_shape", &n_kernel);
    (void)node_ints(n, "strides", &n_strides);
    (void)node_ints(n, "pads", &n_pads);
    if (axes < 1 || axes > WINDOW_MAX_AXES || n_kernel != (size_t)axes ||
        (n_strides && n_strides != (size_t)axes) || (n_pads && n_pads != 2 * (size_t)axes))
        return error_set(CLG_ERROR_SHAPE,
                         "%s: kernel_shape, strides and pads must fit an input of rank 3 to %d",
                         node_text(n, shown), WINDOW_MAX_AXES + 2);
    *out = *x;
    for (int i = 0; i < axes; i++) {
        out->dims[2 + i] = covered(n, i, axes, x->dims[2 + i]);
        if (out->dims[2 + i] < DIM_UNKNOWN)
            return error_set(CLG_ERROR_SHAPE, "%s: spatial axis %d is too long or all padding",
                             node_text(n, shown), i);
    }
    return CLG_OK;
}

static clg_status unpool_infer(op_context *c)
{
    const shape *x = &op_input(c, 0)->dims, *index = &op_input(c, 1)->dims;
    shape inner, y;
    bool known = false;
    CLG_TRY(covered_shape(c->node, x, &inner));
    if (shape_is_known(x) && shape_is_known(index) && !shape_equal(x, index))
        return op_error(c, CLG_ERROR_SHAPE, "there must be one index for each element");
    y = inner;
    if (op_has_input(c, 2)) {
        CLG_TRY(op_need_dims(c, 2, &known, &y));
        if (y.rank != x->rank)
            return op_error(c, CLG_ERROR_SHAPE, "output_shape has %d numbers for a rank of %d",
                            y.rank, x->rank);
        for (int i = 0; known && i < y.rank; i++)
            if (y.dims[i] < 0 || (inner.dims[i] != DIM_UNKNOWN &&
                                  (i < 2 ? y.dims[i] != inner.dims[i] : y.dims[i] < inner.dims[i])))
                return op_error(c, CLG_ERROR_SHAPE,
                                "output_shape has %" PRId64
                                " along axis %d where the windows cover %" PRId64,
                                y.dims[i], i, inner.dims[i]);
    }
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

static clg_status unpool_lower(lower_context *c)
{
    const lower_operand *x = lower_input(c, 0), *y = &c->outputs[0];
    shape inner;
    int64_t n, n_outputs, total;
    size_t size_bytes;
    const uint8_t zero = 0;
    CLG_TRY(covered_shape(c->node, &x->dims, &inner));
    CLG_TRY(shape_n_elements(&x->dims, &n));
    CLG_TRY(shape_n_elements(&inner, &total));
    CLG_TRY(shape_n_elements(&y->dims, &n_outputs));
    if (!dtype_bytes(x->dtype, n_outputs, &size_bytes))
        return lower_error(c, CLG_ERROR_SHAPE, "needs more memory than can be addressed");
    step_builder *b = &c->build;
    candidate *impl = step_candidate(b, "unpool");
    if (size_bytes == 0) return CLG_OK;
    (void)step_fill(b, impl, operand_output(0), size_bytes, &zero, 1);
    const bool wide_index = n_outputs > INT32_MAX / 2 || n > INT32_MAX / 2;
    const int chunk = lower_is_simd(c) ? SIMD_CHUNK : 1;
    step *s = step_kernel(b, impl, "unpool", "unpool",
                          prelude_text(b, "P_SIZE=%d P_VEC=1 P_FP64=0 P_INDEX=%d",
                                       (int)dtype_size(x->dtype), wide_index ? 64 : 32));
    grid_arg(c, s, wide_index, n);
    const shape *sizes[] = {&inner, &y->dims};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < WINDOW_MAX_AXES; i++) {
            const int axis = i + x->dims.rank - WINDOW_MAX_AXES;
            grid_arg(c, s, wide_index, axis < 2 ? 1 : sizes[k]->dims[axis]);
        }
    grid_arg(c, s, wide_index, total);
    step_arg_int(b, s, chunk);
    STEP_BUFFERS(b, s, {operand_input(0), x->dtype}, {operand_input(1), CLG_INT64},
                 {operand_output(0), x->dtype});
    step_arg_fault(b, s, STEP_FAULT_INDEX);
    s->bytes = (double)n * (double)(8 + 2 * dtype_size(x->dtype));
    grid_range_1d(c, s, (n + chunk - 1) / chunk);
    return CLG_OK;
}

static const op_types types[] = {{'T', DTYPES_FLOAT}, {'I', DTYPE_BIT(CLG_INT64)}, {0}};
static const op_attribute attributes[] = {{"kernel_shape", ATTRIBUTE_INTS, true, OP_SIZE},
                                          {"pads", ATTRIBUTE_INTS, false, OP_PADDING},
                                          {"strides", ATTRIBUTE_INTS, false, OP_SIZE},
                                          {0}};

const op_row op_rows_unpool[] = {
    {.name = "MaxUnpool",
     .grad = GRAD_BY(grad_pass_max_unpool),
     .batch = BATCH_NEVER("its indices count the elements of all rows"),
     .since = 9,
     OP_INPUTS(2, 3, "TII"),
     OP_OUTPUTS(1, 1, "T"),
     .types = types,
     .attributes = attributes,
     .check = window_check,
     .infer = unpool_infer,
     .lower = unpool_lower},
};
const size_t n_op_rows_unpool = sizeof op_rows_unpool / sizeof *op_rows_unpool;
