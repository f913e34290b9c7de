/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers and lowers DeformConv over two axes: cl/conv/deform.cl samples the input at each kernel
 * element's offset position (im2col), and a matrix product per group with the weight computes the
 * sums.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/window.h"
#include "ops/lowering/work.h"
#include "ops/matmul/gemm.h"

#include <inttypes.h>

/* P_BLOCK: output pixels per work-item in the SIMD class, the lanes of a vector; estimated, not
 * measured. */
#define SIMD_BLOCK 16

/* Checks that an input (offset or mask) has the shape [batch, numbers, outputs along H, outputs
 * along W]. */
static clg_status check_field(const op_context *c, uint32_t input, int64_t numbers,
                              const window_desc *w)
{
    const shape *s = &op_input(c, input)->dims;
    if (!op_has_input(c, input)) return CLG_OK;
    if (s->rank == 4 && !dims_differ(s->dims[0], op_input(c, 0)->dims.dims[0]) &&
        !dims_differ(s->dims[1], numbers) && !dims_differ(s->dims[2], w->axes[0].out) &&
        !dims_differ(s->dims[3], w->axes[1].out))
        return CLG_OK;
    char text[SHAPE_TEXT_BYTES];
    return op_error(c, CLG_ERROR_SHAPE,
                    "input %" PRIu32 " of shape %s does not have %" PRId64
                    " numbers for each pixel of the output",
                    input, shape_text(s, text), numbers);
}

static clg_status deform_infer(op_context *c)
{
    const shape *x = &op_input(c, 0)->dims, *w = &op_input(c, 1)->dims;
    const int64_t group = node_int(c->node, "group", 1),
                  fields = node_int(c->node, "offset_group", 1);
    window_desc win;
    shape y;
    if (x->rank != 4 || w->rank != 4)
        return op_error(c, CLG_ERROR_SHAPE,
                        "takes an input and a weight of rank 4, not of %d and %d", x->rank,
                        w->rank);
    CLG_TRY(window_read(c->node, x, w, &win));
    const int64_t outputs = w->dims[0], channels = x->dims[1];
    if ((channels != DIM_UNKNOWN && (channels % group != 0 || channels % fields != 0 ||
                                     dims_differ(w->dims[1], channels / group))) ||
        (outputs != DIM_UNKNOWN && outputs % group != 0))
        return op_error(c, CLG_ERROR_SHAPE,
                        "%" PRId64 " channels meet a weight for %" PRId64 " in %" PRId64
                        " groups, with %" PRId64 " groups of offsets",
                        channels, w->dims[1], group, fields);
    const bool known = win.axes[0].kernel != DIM_UNKNOWN && win.axes[1].kernel != DIM_UNKNOWN;
    if (known && win.axes[0].kernel > INT32_MAX / win.axes[1].kernel / 2 / fields)
        return op_error(c, CLG_ERROR_SHAPE, "the window is too large");
    const int64_t taps = known ? win.axes[0].kernel * win.axes[1].kernel : DIM_UNKNOWN;
    CLG_TRY(check_field(c, 2, known ? 2 * fields * taps : DIM_UNKNOWN, &win));
    CLG_TRY(check_field(c, 4, known ? fields * taps : DIM_UNKNOWN, &win));
    CLG_TRY(window_check_bias(c, 3, outputs));
    window_shape(&win, x->dims[0], outputs, &y);
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

static void columns_step(lower_context *c, candidate *impl, const window_axis *a, operand cols)
{
    const shape *x = &lower_input(c, 0)->dims;
    const clg_dtype dtype = lower_input(c, 0)->dtype;
    const bool simd = lower_is_simd(c), mask = lower_has_input(c, 4);
    const int block = simd ? SIMD_BLOCK : 1;
    const int64_t fields = node_int(c->node, "offset_group", 1), pixels = a[0].out * a[1].out,
                  rows = x->dims[0] * fields * a[0].kernel * a[1].kernel;
    step_builder *b = &c->build;
    step *s = step_kernel(
        b, impl, "deform", "deform_columns",
        prelude_text(b, "P_MASK=%d P_BLOCK=%d P_T=%d P_VEC=1", mask, block, (int)dtype));
    work_check_work(c, s, x->dims[2] * x->dims[3]);
    work_check_work(c, s, pixels);
    STEP_BUFFERS(b, s, {operand_input(0), dtype}, {operand_input(2), dtype},
                 {operand_input(mask ? 4 : 2), dtype}, {cols, dtype});
    STEP_INTS(b, s, x->dims[0], x->dims[1], fields, a[0].in, a[1].in, a[0].out, a[1].out,
              a[0].kernel, a[1].kernel, a[0].stride, a[1].stride, a[0].dilation, a[1].dilation,
              a[0].pad_begin, a[1].pad_begin);
    s->bytes = (double)rows * (double)pixels * (double)dtype_size(dtype);
    const uint64_t across = simd ? 1 : work_power_of_two(pixels, 64);
    work_range_2d(c, s, (pixels + block - 1) / block, across, rows, simd ? 1 : 64 / across);
}

static clg_status deform_lower(lower_context *c)
{
    const lower_operand *x = lower_input(c, 0), *w = lower_input(c, 1);
    const int64_t group = node_int(c->node, "group", 1), images = x->dims.dims[0];
    window_desc win;
    size_t size_bytes;
    CLG_TRY(work_check_dtype(c, x->dtype));
    CLG_TRY(window_read(c->node, &x->dims, &w->dims, &win));
    const int64_t taps = win.axes[0].kernel * win.axes[1].kernel,
                  pixels = win.axes[0].out * win.axes[1].out, rows = x->dims.dims[1] * taps;
    if ((pixels > 0 && rows > INT64_MAX / 8 / pixels) ||
        (images > 0 && rows * pixels > INT64_MAX / 8 / images) ||
        !dtype_bytes(x->dtype, images * rows * pixels, &size_bytes))
        return lower_error(c, CLG_ERROR_SHAPE, "its windows are too large to address");
    gemm_job j = {.dtype = x->dtype,
                  .m = w->dims.dims[0] / group,
                  .n = pixels,
                  .k = rows / group,
                  .batch = images * group,
                  .batch_in = group,
                  .epilogue = {.alpha = 1, .beta = 1}};
    candidate *impl = step_candidate(&c->build, "deform_conv");
    if (j.m == 0 || j.n == 0 || j.batch == 0) return CLG_OK;
    const operand cols = step_scratch(&c->build, impl, size_bytes);
    if (size_bytes > 0) columns_step(c, impl, win.axes, cols);
    j.a = (gemm_matrix){operand_input(1), j.k, 1, 0, group > 1 ? j.m * j.k : 0, w->constant};
    j.b = (gemm_matrix){cols, pixels, 1, rows * pixels, group > 1 ? j.k * pixels : 0, false};
    j.c = (gemm_matrix){
        operand_output(0), pixels, 1, group * j.m * pixels, group > 1 ? j.m * pixels : 0, false};
    if (lower_has_input(c, 3)) {
        j.epilogue.bias = BIAS_ROW;
        j.epilogue.bias_at = operand_input(3);
        j.epilogue.bias_rs = 1;
        j.epilogue.bias_b1 = group > 1 ? j.m : 0;
    }
    return gemm_append(c, impl, &j, false);
}

static const op_types types[] = {
    {'T', DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT64)}, {0}};
static const op_attribute attributes[] = {{"dilations", ATTRIBUTE_INTS, false, OP_SIZE},
                                          {"group", ATTRIBUTE_INT, false, OP_COUNT},
                                          {"kernel_shape", ATTRIBUTE_INTS, false, OP_SIZE},
                                          {"offset_group", ATTRIBUTE_INT, false, OP_COUNT},
                                          {"pads", ATTRIBUTE_INTS, false, OP_PADDING},
                                          {"strides", ATTRIBUTE_INTS, false, OP_SIZE},
                                          {0}};

const op_row op_rows_deform[] = {
    {.name = "DeformConv",
     .grad = GRAD_BY(grad_pass_deform_conv),
     .batch = BATCH_AT("0.0.0", "0"),
     .since = 19,
     OP_INPUTS(3, 5, "T"),
     OP_OUTPUTS(1, 1, "T"),
     .types = types,
     .attributes = attributes,
     .check = window_check,
     .infer = deform_infer,
     .lower = deform_lower},
};
const size_t n_op_rows_deform = sizeof op_rows_deform / sizeof *op_rows_deform;
