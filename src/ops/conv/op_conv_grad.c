/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers and lowers the gradients of Conv and ConvTranspose, y = conv(x, w), which ops/grad adds.
 * They have the attributes of the convolution, and as input 2 the shape of their result:
 *
 *     dx = ConvDataGrad(g, w, shape of x)      dw = ConvFilterGrad(x, g, shape of w)
 *
 * and so ConvTransposeDataGrad and ConvTransposeFilterGrad. The data gradient of each is the other
 * convolution, with the sizes of the forward one, and is computed by its kernels; that of a Conv
 * with strides of 1 is also the convolution of g with the weight rotated by half a turn, see
 * decision 70. The attribute `winograd` of ConvDataGrad is that of FusedConv.
 */
#include "base/checked.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv_filter.h"
#include "ops/conv/conv_grad.h"
#include "ops/conv/conv_transpose.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"

conv_grad_roles conv_grad_roles_of(const op_row *row, const shape *in0, const shape *in1,
                                   const shape *result)
{
    const conv_grad_op *op = row->param;
    return op->is_filter ? (conv_grad_roles){.x = in0, .g = in1, .w = result}
                         : (conv_grad_roles){.g = in0, .w = in1, .x = result};
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Sets the shape of the output of the forward convolution. */
static clg_status forward_shape(op_context *c, const conv_grad_roles *r, shape *out)
{
    const conv_grad_op *op = c->row->param;
    window_desc win;
    if (op->is_transposed) return conv_transpose_shape(c, r->x, r->w, out);
    CLG_TRY(window_read_conv(c, r->x, r->w, &win));
    window_shape(&win, r->x->dims[0], r->w->dims[0], out);
    return CLG_OK;
}

static bool shapes_differ(const shape *a, const shape *b)
{
    bool differ = a->rank != b->rank;
    for (int i = 0; i < a->rank && !differ; i++) differ = dims_differ(a->dims[i], b->dims[i]);
    return differ;
}

static clg_status conv_grad_infer(op_context *c)
{
    char wanted[SHAPE_TEXT_BYTES], given[SHAPE_TEXT_BYTES];
    bool known;
    shape result, y;
    CLG_TRY(op_need_dims(c, 2, &known, &result));
    if (known && !shape_is_known(&result))
        return op_error(c, CLG_ERROR_SHAPE, "a dimension of its result is negative");
    const conv_grad_roles r =
        conv_grad_roles_of(c->row, &c->inputs[0].dims, &c->inputs[1].dims, &result);
    if (result.rank != RANK_UNKNOWN) {
        CLG_TRY(forward_shape(c, &r, &y));
        if (shapes_differ(&y, r.g))
            return op_error(c, CLG_ERROR_SHAPE, "the convolution's output is %s, its gradient %s",
                            shape_text(&y, wanted), shape_text(r.g, given));
    }
    fact_set(&c->outputs[0], c->inputs[0].dtype, &result);
    return CLG_OK;
}

/* ---- lowering -------------------------------------------------------------------------------- */

clg_status conv_grad_axes(const lower_context *c, window_axis a[WINDOW_MAX_AXES])
{
    const conv_grad_op *op = c->row->param;
    const conv_grad_roles r = conv_grad_roles_of(c->row, &lower_input(c, 0)->dims,
                                                 &lower_input(c, 1)->dims, &c->outputs[0].dims);
    window_desc win;
    if (!op->is_transposed) {
        CLG_TRY(window_read(c->node, r.x, r.w, &win));
        window_fill(&win, a);
        return CLG_OK;
    }
    CLG_TRY(conv_transpose_read(c->node, r.x, r.w, &win));
    window_fill(&win, a);
    for (int i = 0; i < WINDOW_MAX_AXES; i++) {
        const int64_t windows = a[i].in;
        a[i].in = a[i].out;
        a[i].out = windows;
        a[i].pad_end = window_seen(&a[i], windows) - a[i].in - a[i].pad_begin;
    }
    return CLG_OK;
}

/* Sets the axes of the convolution of g that is the data gradient, with the weight rotated; `a` are
 * those of data_lower. Returns false if there is none: strides are larger than 1, or some windows
 * see nothing but padding. */
static bool rotated_axes(const window_axis a[WINDOW_MAX_AXES], window_axis out[WINDOW_MAX_AXES])
{
    for (int i = 0; i < WINDOW_MAX_AXES; i++) {
        const int64_t reach = (a[i].kernel - 1) * a[i].dilation;
        out[i] = a[i];
        out[i].pad_begin = reach - a[i].pad_begin;
        out[i].pad_end = a[i].out + reach - a[i].in - out[i].pad_begin;
        if (a[i].stride != 1 || out[i].pad_begin < 0 || out[i].pad_end < 0) return false;
    }
    return true;
}

/* Returns the convolution of input 0 with the weight, input 1, but for its axes. */
static conv_job conv_of(const lower_context *c, int64_t ic, int64_t oc)
{
    return (conv_job){.dtype = c->inputs[0].dtype,
                      .x = operand_input(0),
                      .y = operand_output(0),
                      .weight = 1,
                      .batch = c->inputs[0].dims.dims[0],
                      .groups = node_int(c->node, "group", 1),
                      .ic = ic,
                      .oc = oc,
                      .weight_constant = lower_input(c, 1)->constant,
                      .epilogue = {.alpha = 1, .beta = 1}};
}

/* Adds the candidates of the convolution of g with the rotated weight; none where it is not known
 * to be faster than the sum of windows. */
static void add_rotated(lower_context *c, const window_axis a[WINDOW_MAX_AXES])
{
    const lower_operand *w = lower_input(c, 1);
    const int64_t groups = node_int(c->node, "group", 1);
    conv_job j = conv_of(c, w->dims.dims[0] / groups, w->dims.dims[1]);
    j.is_rotated = true;
    j.winograd = node_int(c->node, "winograd", 0);
    if (lower_is_simd(c) && rotated_axes(a, j.axes)) conv_add_rotated(c, &j);
}

static clg_status data_lower(lower_context *c)
{
    window_axis a[WINDOW_MAX_AXES];
    CLG_TRY(work_check_dtype(c, c->inputs[0].dtype));
    CLG_TRY(conv_grad_axes(c, a));
    for (int i = 0; i < WINDOW_MAX_AXES; i++) {
        const int64_t windows = a[i].out;
        a[i].out = a[i].in;
        a[i].in = windows;
    }
    add_rotated(c, a);
    if (c->build.candidates || c->build.status != CLG_OK) return c->build.status;
    const shape *y = &c->outputs[0].dims;
    const int64_t max = node_int(c->node, "together", 0);
    int64_t elements;
    if (!checked_mul_i64(y->dims[1], window_count_taps(a), &elements) ||
        !checked_mul_i64(elements, window_count_in(a), &elements))
        return lower_error(c, CLG_ERROR_SHAPE, "its windows are too large to address");
    return conv_transpose_add(c, a, 0, conv_images_together(c, elements, y->dims[0], max));
}

static clg_status transpose_data_lower(lower_context *c)
{
    const lower_operand *w = lower_input(c, 1);
    const int64_t groups = node_int(c->node, "group", 1);
    conv_job j = conv_of(c, w->dims.dims[1], w->dims.dims[0] / groups);
    CLG_TRY(work_check_dtype(c, j.dtype));
    CLG_TRY(conv_grad_axes(c, j.axes));
    return conv_add(c, &j);
}

static clg_status filter_lower(lower_context *c)
{
    const conv_grad_op *op = c->row->param;
    conv_filter_job j = {.dtype = c->inputs[0].dtype,
                         .small = op->is_transposed ? 0 : 1,
                         .groups = node_int(c->node, "group", 1),
                         .together = node_int(c->node, "together", 0)};
    CLG_TRY(work_check_dtype(c, j.dtype));
    CLG_TRY(conv_grad_axes(c, j.axes));
    return conv_filter_add(c, &j);
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_types types[] = {
    {'T', DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_FLOAT64)},
    {'I', DTYPE_BIT(CLG_INT64)},
    {0}};
/* together: images whose windows are in memory at once, at most; absent: as many as are fast.
 * Self-tests set it. */
#define PART_ATTRIBUTES {"together", ATTRIBUTE_INT, false, OP_COUNT},

static const op_attribute transpose_attributes[] = {CONV_TRANSPOSE_ATTRIBUTES{0}};
static const op_attribute part_attributes[] = {CONV_ATTRIBUTES PART_ATTRIBUTES{0}};
static const op_attribute data_attributes[] = {
    CONV_ATTRIBUTES PART_ATTRIBUTES{"winograd", ATTRIBUTE_INT, false, OP_BETWEEN(0, 4)}, {0}};
static const op_attribute transpose_part_attributes[] = {
    CONV_TRANSPOSE_ATTRIBUTES PART_ATTRIBUTES{0}};

#define CONV_GRAD(transposed, filter)                                                              \
    .domain = "clgraph", .since = 1, OP_INPUTS(3, 3, "TTI"), OP_OUTPUTS(1, 1, "T"),                \
    .types = types, .check = window_check, .infer = conv_grad_infer,                               \
    .param = &(const conv_grad_op)                                                                 \
    {                                                                                              \
        transposed, filter                                                                         \
    }

const op_row op_rows_conv_grad[] = {
    {.name = "ConvDataGrad",
     .grad = GRAD_BY(grad_pass_conv_data),
     .attributes = data_attributes,
     .lower = data_lower,
     CONV_GRAD(false, false)},
    {.name = "ConvFilterGrad",
     .grad = GRAD_BY(grad_pass_conv_filter),
     .attributes = part_attributes,
     .lower = filter_lower,
     CONV_GRAD(false, true)},
    {.name = "ConvTransposeDataGrad",
     .grad = GRAD_BY(grad_pass_conv_transpose_data),
     .attributes = transpose_attributes,
     .lower = transpose_data_lower,
     CONV_GRAD(true, false)},
    {.name = "ConvTransposeFilterGrad",
     .grad = GRAD_BY(grad_pass_conv_transpose_filter),
     .attributes = transpose_part_attributes,
     .lower = filter_lower,
     CONV_GRAD(true, true)},
};
const size_t n_op_rows_conv_grad = sizeof op_rows_conv_grad / sizeof *op_rows_conv_grad;
