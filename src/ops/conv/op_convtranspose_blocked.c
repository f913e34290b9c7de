/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers and lowers clgraph.BlockedConvTranspose, which the pass `blocked` creates from
 * two-dimensional ConvTransposes: x and y are channel-blocked feature maps, [N, ceil(C / lanes), H,
 * W, lanes], weight and bias those of ConvTranspose; one group. The other differences are those of
 * clgraph.BlockedConv (op_conv_blocked.c).
 *
 * Output pixels whose coordinates have the same remainders by the strides (a phase) are a
 * convolution of x with every stride-th line and column of the kernel, backwards; each phase is
 * one by cl/conv/conv_blocked.cl. See decision 85.
 */
#include "ops/conv/conv_blocked.h"
#include "ops/conv/conv_transpose.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"

#include <inttypes.h>

bool conv_blocked_has_phases(const window_desc *w)
{
    for (int i = 0; i < w->n_axes; i++) {
        const window_axis *a = &w->axes[i];
        if (a->dilation != 1 || a->kernel > BLOCKED_MAX_SIDE || a->stride > BLOCKED_MAX_STRIDE ||
            a->pad_begin > a->kernel - a->stride)
            return false;
    }
    return w->n_axes == 2;
}

/* Sets the shape of y in NCHW order. Returns an error where x does not have the weight's channels
 * in blocks. */
static clg_status flat_result(op_context *c, const shape *x, const shape *w, shape *out)
{
    const int64_t lanes = node_int(c->node, "lanes", 1);
    if (x->rank != 5 || w->rank != 4 || node_int(c->node, "group", 1) != 1)
        return op_error(c, CLG_ERROR_SHAPE, "the input has rank %d and the weight %d", x->rank,
                        w->rank);
    shape flat = conv_blocked_flat(x);
    if (dims_differ(x->dims[4], lanes) ||
        dims_differ(x->dims[1],
                    w->dims[0] == DIM_UNKNOWN ? DIM_UNKNOWN : work_ceil_div(w->dims[0], lanes)))
        return op_error(c, CLG_ERROR_SHAPE,
                        "a feature map of %" PRId64 " channels does not fit a weight of %" PRId64,
                        flat.dims[1], w->dims[0]);
    flat.dims[1] = w->dims[0];
    return conv_transpose_shape(c, &flat, w, out);
}

static clg_status transpose_infer(op_context *c)
{
    shape y = {0};
    CLG_TRY(flat_result(c, &op_input(c, 0)->dims, &op_input(c, 1)->dims, &y));
    CLG_TRY(window_check_bias(c, 2, y.dims[1]));
    y = conv_blocked_shape(&y, node_int(c->node, "lanes", 1));
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

/* Sets *out to the convolution along an axis that computes the outputs with this remainder by the
 * stride, and *first to the kernel's element that its first tap is. */
static void phase_of(const window_axis *a, int64_t remainder, window_axis *out, int64_t *first)
{
    const int64_t tap0 = (remainder + a->pad_begin) % a->stride;
    *out = (window_axis){.in = a->in,
                         .out = work_ceil_div(a->out - remainder, a->stride),
                         .kernel = work_ceil_div(a->kernel - tap0, a->stride),
                         .stride = 1,
                         .dilation = 1};
    *first = tap0 + a->stride * (out->kernel - 1);
    out->pad_begin = out->kernel - 1 - (remainder + a->pad_begin) / a->stride;
    out->pad_end = window_seen(out, out->out) - out->in - out->pad_begin;
}

/* Appends the phase at this line and column of the first window to two candidates. */
static clg_status append_phase(lower_context *c, candidate *impl, candidate *direct,
                               const conv_job *whole, const window_axis *a, int64_t line,
                               int64_t column)
{
    const int64_t taps = a[1].kernel * a[2].kernel;
    conv_job j = *whole;
    conv_phase at = {.lines = a[1].out,
                     .columns = a[2].out,
                     .step_h = a[1].stride,
                     .step_w = a[2].stride,
                     .by_output = taps,
                     .by_input = j.oc * taps,
                     .by_line = -a[1].stride * a[2].kernel,
                     .by_column = -a[2].stride};
    int64_t first_line, first_column;
    phase_of(&a[1], line, &j.axes[1], &first_line);
    phase_of(&a[2], column, &j.axes[2], &first_column);
    at.first = first_line * a[2].kernel + first_column;
    j.phase = &at;
    j.y.offset_elems = (line * a[2].out + column) * work_simd_lanes(c);
    CLG_TRY(conv_blocked_append(c, impl, &j, true));
    conv_blocked_direct_append(c, direct, &j, true);
    return CLG_OK;
}

static clg_status transpose_lower(lower_context *c)
{
    const shape *x = &lower_input(c, 0)->dims, *w = &lower_input(c, 1)->dims;
    const int64_t lanes = node_int(c->node, "lanes", 1);
    shape flat = conv_blocked_flat(x);
    window_desc win;
    window_axis a[WINDOW_MAX_AXES];
    if (!lower_is_simd(c) || lanes != work_simd_lanes(c))
        return lower_error(c, CLG_ERROR_UNSUPPORTED_DEVICE,
                           "blocks of %" PRId64 " channels are not those of the device", lanes);
    CLG_TRY(conv_transpose_read(c->node, &flat, w, &win));
    if (!conv_blocked_has_phases(&win))
        return lower_error(c, CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                           "its window is not for blocks of channels");
    window_fill(&win, a);
    conv_job j = {.dtype = lower_input(c, 0)->dtype,
                  .x = operand_input(0),
                  .y = operand_output(0),
                  .weight = 1,
                  .batch = x->dims[0],
                  .groups = 1,
                  .ic = w->dims[0],
                  .oc = w->dims[1],
                  .axes = {a[0], a[1], a[2]},
                  .weight_constant = lower_input(c, 1)->constant,
                  .blocked = true,
                  .epilogue = {.alpha = 1, .beta = 1}};
    if (lower_has_input(c, 2)) {
        j.epilogue.bias = BIAS_ROW;
        j.epilogue.bias_at = operand_input(2);
        j.epilogue.bias_b1 = j.oc;
    }
    if (j.batch == 0 || a[1].out == 0 || a[2].out == 0) {
        (void)step_candidate(&c->build, "nothing");
        return CLG_OK;
    }
    candidate *impl = step_candidate(&c->build, "conv_blocked_phases");
    candidate *direct = conv_blocked_direct_start(c);
    for (int64_t line = 0; line < work_min(a[1].stride, a[1].out); line++)
        for (int64_t column = 0; column < work_min(a[2].stride, a[2].out); column++)
            CLG_TRY(append_phase(c, impl, direct, &j, a, line, column));
    return CLG_OK;
}

static const op_types types[] = {{'T', DTYPE_BIT(CLG_FLOAT32)}, {0}};
static const op_attribute attributes[] = {
    CONV_TRANSPOSE_ATTRIBUTES{"lanes", ATTRIBUTE_INT, true, OP_COUNT}, {0}};

const op_row op_rows_convtranspose_blocked[] = {
    {.name = "BlockedConvTranspose",
     .grad = GRAD_NONE(GRAD_OF_PASSES),
     .domain = "clgraph",
     .since = 1,
     OP_INPUTS(2, 3, "T"),
     OP_OUTPUTS(1, 1, "T"),
     .types = types,
     .attributes = attributes,
     .check = window_check,
     .infer = transpose_infer,
     .lower = transpose_lower},
};
const size_t n_op_rows_convtranspose_blocked =
    sizeof op_rows_convtranspose_blocked / sizeof *op_rows_convtranspose_blocked;
