/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds the kernel arguments that 8-bit convolutions have in common, and counts their operations.
 */
#include "ops/quant/qconv.h"

static bool is_list(const lower_context *c, uint32_t input)
{
    int64_t n;
    return input != 0 && lower_has_input(c, input) &&
           shape_n_elements(&lower_input(c, input)->dims, &n) == CLG_OK && n != 1;
}

void qconv_size_args(step_builder *b, step *s, const qconv_job *j)
{
    STEP_INTS(b, s, j->batch, j->groups, j->ic, j->oc);
    window_args(b, s, j->axes);
}

/* Adds an input as an argument, or input `unused` in place of an absent one. */
static void input_arg(lower_context *c, step *s, uint32_t input, uint32_t unused, clg_dtype dtype)
{
    step_arg_buffer(&c->build, s, operand_input(lower_has_input(c, input) ? input : unused), dtype);
}

void qconv_last_args(lower_context *c, step *s, const qconv_job *j)
{
    step_builder *b = &c->build;
    input_arg(c, s, j->at->x_zero, j->at->x, j->x_dtype);
    input_arg(c, s, j->at->w_zero, j->at->w, j->w_dtype);
    step_arg_int(b, s, is_list(c, j->at->w_zero));
    if (!j->at->y_zero) return;
    step_arg_buffer(b, s, operand_input(j->at->x_scale), CLG_FLOAT32);
    step_arg_buffer(b, s, operand_input(j->at->w_scale), CLG_FLOAT32);
    step_arg_int(b, s, is_list(c, j->at->w_scale));
    step_arg_buffer(b, s, operand_input(j->at->y_scale), CLG_FLOAT32);
    step_arg_buffer(b, s, operand_input(j->at->y_zero), j->y_dtype);
    input_arg(c, s, j->at->bias, j->at->x_scale, CLG_INT32);
}

double qconv_flops(const qconv_job *j)
{
    const window_axis *a = j->axes;
    return 2.0 * (double)(j->batch * j->groups * j->oc) * (double)window_count_out(j->axes) *
           (double)(j->ic * a[0].kernel * a[1].kernel * a[2].kernel);
}
