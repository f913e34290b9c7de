/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a convolution from its node, its work, and the arguments that several kernels begin with.
 */
#include "ops/conv_impls.h"
#include "tensor/dtype.h"

clg_status conv_read(lower_context *c, const shape *x, conv_job *out)
{
    const lower_operand *w = lower_input(c, 1);
    const int64_t groups = node_int(c->node, "group", 1);
    window win;
    *out = (conv_job){.dtype = lower_input(c, 0)->dtype,
                      .x = operand_input(0),
                      .y = operand_output(0),
                      .weight = 1,
                      .batch = x->dims[0],
                      .groups = groups,
                      .ic = w->dims.dims[1],
                      .oc = w->dims.dims[0] / groups,
                      .weight_constant = w->constant,
                      .winograd = node_int(c->node, "winograd", 0)};
    CLG_TRY(window_read(c->node, x, &w->dims, &win));
    window_fill(&win, out->axes);
    epilogue_read(c, &out->tail);
    if (lower_has_input(c, 2)) {
        out->tail.bias = BIAS_ROW;
        out->tail.bias_at = operand_input(2);
        out->tail.bias_b1 = out->oc;
    }
    return CLG_OK;
}

static int64_t count_in(const conv_job *j) { return j->axes[0].in * j->axes[1].in * j->axes[2].in; }
int64_t conv_count_out(const conv_job *j)
{
    return j->axes[0].out * j->axes[1].out * j->axes[2].out;
}
static int64_t count_taps(const conv_job *j)
{
    return j->axes[0].kernel * j->axes[1].kernel * j->axes[2].kernel;
}

bool conv_is_depthwise(const conv_job *j) { return j->ic == 1 && j->groups > 1 && j->oc <= 4; }

void conv_count_work(const conv_job *j, step *s)
{
    const double planes = (double)j->batch * (double)j->groups;
    const double elements = planes * (double)(j->ic * count_in(j) + j->oc * conv_count_out(j)) +
                            (double)(j->groups * j->oc * j->ic * count_taps(j));
    s->flops = 2.0 * planes * (double)(j->oc * conv_count_out(j)) * (double)(j->ic * count_taps(j));
    s->bytes = elements * (double)dtype_size(j->dtype);
}

void conv_size_args(step_builder *b, step *s, const conv_job *j)
{
    const window_axis *a = j->axes;
    for (int i = 0; i < WINDOW_MAX_AXES; i++) step_arg_int(b, s, a[i].in);
    for (int i = 0; i < WINDOW_MAX_AXES; i++) step_arg_int(b, s, a[i].out);
    for (int i = 0; i < WINDOW_MAX_AXES; i++) step_arg_int(b, s, a[i].kernel);
    for (int i = 0; i < WINDOW_MAX_AXES; i++) step_arg_int(b, s, a[i].stride);
    for (int i = 0; i < WINDOW_MAX_AXES; i++) step_arg_int(b, s, a[i].dilation);
    for (int i = 0; i < WINDOW_MAX_AXES; i++) step_arg_int(b, s, a[i].pad_begin);
}

void conv_image_args(step_builder *b, step *s, const conv_job *j, operand weight)
{
    step_arg_buffer(b, s, j->x, j->dtype);
    step_arg_long(b, s, j->groups * j->ic * count_in(j));
    step_arg_buffer(b, s, weight, j->dtype);
    step_arg_buffer(b, s, j->y, j->dtype);
    step_arg_long(b, s, j->groups * j->oc * conv_count_out(j));
}

const char *conv_tail_prelude(lower_context *c, const conv_job *j)
{
    epilogue tail = j->tail;
    tail.bias = tail.bias == BIAS_NONE ? BIAS_NONE : BIAS_COLUMN;
    return epilogue_prelude(c, &tail);
}
