/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers ConvInteger and QLinearConv over one to three axes: convolutions of 8-bit integers with
 * exact int32 sums; see cl/quant/qconv.cl. com.microsoft.QLinearConv may be channels-last: a pass
 * makes it channels-first (passes/quant/pass_quantized.c).
 */
#include "ops/batch/batch_rule.h"
#include "ops/conv/conv_desc.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"
#include "ops/quant/qconv.h"
#include "ops/quant/quantize.h"

#define LINE 256 /* P_LINE: pixels per work-item in SIMD; 1 KiB of sums; estimated, not measured */

static const qconv_inputs integer_inputs = {.x = 0, .w = 1, .x_zero = 2, .w_zero = 3};
static const qconv_inputs linear_inputs = {.x = 0,
                                           .x_scale = 1,
                                           .x_zero = 2,
                                           .w = 3,
                                           .w_scale = 4,
                                           .w_zero = 5,
                                           .y_scale = 6,
                                           .y_zero = 7,
                                           .bias = 8};

static clg_status check_lists(const op_context *c, const qconv_inputs *at, int64_t outputs)
{
    CLG_TRY(quantize_check_list(c, at->x_zero, 1, "the zero point of x"));
    CLG_TRY(quantize_check_list(c, at->w_zero, outputs, "the zero point of w"));
    CLG_TRY(quantize_check_list(c, at->x_scale, 1, "the scale of x"));
    CLG_TRY(quantize_check_list(c, at->w_scale, outputs, "the scale of w"));
    CLG_TRY(quantize_check_list(c, at->y_scale, 1, "the scale of y"));
    CLG_TRY(quantize_check_list(c, at->y_zero, 1, "the zero point of y"));
    return at->bias == 0 ? CLG_OK : window_check_bias(c, at->bias, outputs);
}

static clg_status qconv_infer(op_context *c)
{
    const qconv_inputs *at = c->row->param;
    const bool last = node_int(c->node, "channels_last", 0) != 0;
    const shape *w = &op_input(c, at->w)->dims, given = op_input(c, at->x)->dims,
                transposed = window_channels_first(&given), *x = last ? &transposed : &given;
    window_desc win;
    shape y;
    CLG_TRY(window_read_conv(c, x, w, &win));
    CLG_TRY(check_lists(c, at, w->dims[0]));
    window_shape(&win, x->dims[0], w->dims[0], &y);
    if (last) y = window_channels_last(&y);
    fact_set(&c->outputs[0], at->y_zero ? op_input(c, at->y_zero)->dtype : CLG_INT32, &y);
    return CLG_OK;
}

/* ---- any device: cl/quant/qconv.cl ----------------------------------------------------------- */

static void add_plain(lower_context *c, const qconv_job *j)
{
    const bool simd = lower_is_simd(c), bias = j->at->bias && lower_has_input(c, j->at->bias);
    step_builder *b = &c->build;
    step *s = step_kernel(
        b, step_candidate(b, "qconv"), "qconv", "qconv",
        prelude_text(b,
                     "P_A=%d P_B=%d P_Y=%d P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=%d P_ZERO_B=%d "
                     "P_BIAS=%d P_FORM=%d P_LINE=%d",
                     (int)j->x_dtype, (int)j->w_dtype, (int)j->y_dtype,
                     lower_has_input(c, j->at->x_zero), lower_has_input(c, j->at->w_zero), bias,
                     !simd, simd ? LINE : 1));
    qconv_size_args(b, s, j);
    STEP_BUFFERS(b, s, {operand_input(j->at->x), j->x_dtype}, {operand_input(j->at->w), j->w_dtype},
                 {operand_output(0), j->y_dtype});
    qconv_last_args(c, s, j);
    s->flops = qconv_flops(j);
    const int64_t pixels = window_count_out(j->axes), planes = j->batch * j->groups * j->oc;
    if (simd) {
        work_range_2d(c, s, (j->axes[2].out + LINE - 1) / LINE, 1,
                      planes * j->axes[0].out * j->axes[1].out, 1);
    } else {
        work_range_rows(c, s, pixels, planes);
    }
}

static clg_status qconv_lower(lower_context *c)
{
    const qconv_inputs *at = c->row->param;
    if (node_int(c->node, "channels_last", 0) != 0)
        return lower_error(c, CLG_ERROR_INTERNAL,
                           "its channels were to be transposed to the front");
    const lower_operand *x = lower_input(c, at->x), *w = lower_input(c, at->w);
    qconv_job j = {.at = at,
                   .x_dtype = x->dtype,
                   .w_dtype = w->dtype,
                   .y_dtype = c->outputs[0].dtype,
                   .batch = x->dims.dims[0],
                   .groups = node_int(c->node, "group", 1),
                   .ic = w->dims.dims[1]};
    window_desc win;
    j.oc = w->dims.dims[0] / j.groups;
    CLG_TRY(window_read(c->node, &x->dims, &w->dims, &win));
    window_fill(&win, j.axes);
    if (lower_is_simd(c))
        qconv_simd_add(c, &j, true);
    else
        qconv_simt_add(c, &j);
    add_plain(c, &j);
    if (lower_is_simd(c)) qconv_simd_add(c, &j, false);
    return CLG_OK;
}

#define BYTES (DTYPE_BIT(CLG_INT8) | DTYPE_BIT(CLG_UINT8))
static const op_types types[] = {{'A', BYTES},
                                 {'B', BYTES},
                                 {'Y', BYTES},
                                 {'S', DTYPE_BIT(CLG_FLOAT32)},
                                 {'I', DTYPE_BIT(CLG_INT32)},
                                 {0}};
static const op_attribute attributes[] = {CONV_ATTRIBUTES{0}};
static const op_attribute microsoft_attributes[] = {
    {"channels_last", ATTRIBUTE_INT, false, OP_BOOLEAN}, CONV_ATTRIBUTES{0}};

#define CONV                                                                                       \
    OP_OUTPUTS(1, 1, "?"), .types = types, .check = window_check, .infer = qconv_infer,            \
                           .batch = BATCH_FIRST, .lower = qconv_lower

const op_row op_rows_qconv[] = {
    {.name = "ConvInteger",
     .grad = GRAD_NONE(GRAD_QUANTIZED),
     .since = 10,
     OP_INPUTS(2, 4, "ABAB"),
     CONV,
     .attributes = attributes,
     .param = &integer_inputs},
    {.name = "QLinearConv",
     .grad = GRAD_NONE(GRAD_QUANTIZED),
     .since = 10,
     OP_INPUTS(8, 9, "ASABSBSYI"),
     CONV,
     .attributes = attributes,
     .param = &linear_inputs},
    {.name = "QLinearConv",
     .grad = GRAD_NONE(GRAD_QUANTIZED),
     .domain = "com.microsoft",
     .since = 1,
     OP_INPUTS(8, 9, "ASABSBSYI"),
     CONV,
     .attributes = microsoft_attributes,
     .param = &linear_inputs},
};
const size_t n_op_rows_qconv = sizeof op_rows_qconv / sizeof *op_rows_qconv;
