/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the descriptor of a convolution from its node, counts its operations, and adds the kernel
 * arguments that several implementations have in common.
 */
#include "ops/conv/conv_impls.h"
#include "tensor/dtype.h"

/* Elements of windows that are in memory at once, if an image has no more. For gradients of weights
 * on CPUs, 8 MiB of float32 took 0.6 to 1.0 times as long as 64 MiB, with 56x56x64 to 7x7x512, and
 * about as long as 4: x86-64 with AVX-512, two cores, PoCL 3.1, 2026-11-26. On GPUs estimated, not
 * measured. */
#define SIMD_WINDOWS ((int64_t)1 << 21)
#define SIMT_WINDOWS ((int64_t)1 << 24)

int64_t conv_images_together(const lower_context *c, int64_t elements, int64_t images, int64_t max)
{
    const int64_t limit = lower_is_simd(c) ? SIMD_WINDOWS : SIMT_WINDOWS;
    int64_t together = elements > 0 ? limit / elements : images;
    if (max > 0 && together > max) together = max;
    if (together > images) together = images;
    return together > 0 ? together : 1;
}

clg_status conv_read(lower_context *c, const shape *x, conv_job *out)
{
    const lower_operand *w = lower_input(c, 1);
    const int64_t groups = node_int(c->node, "group", 1);
    window_desc win;
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
    epilogue_read(c, &out->epilogue);
    if (lower_has_input(c, 2)) {
        out->epilogue.bias = BIAS_ROW;
        out->epilogue.bias_at = operand_input(2);
        out->epilogue.bias_b1 = out->oc;
    }
    return CLG_OK;
}

bool conv_is_depthwise(const conv_job *j) { return j->ic == 1 && j->groups > 1 && j->oc <= 4; }

double conv_count_macs(const conv_job *j)
{
    return (double)j->batch * (double)j->groups * (double)(j->oc * window_count_out(j->axes)) *
           (double)(j->ic * window_count_taps(j->axes));
}

void conv_count_work(const conv_job *j, step *s)
{
    const double planes = (double)j->batch * (double)j->groups;
    const double elements =
        planes * (double)(j->ic * window_count_in(j->axes) + j->oc * window_count_out(j->axes)) +
        (double)(j->groups * j->oc * j->ic * window_count_taps(j->axes));
    s->flops = 2.0 * conv_count_macs(j);
    s->bytes = elements * (double)dtype_size(j->dtype);
}

void conv_image_args(step_builder *b, step *s, const conv_job *j, operand weight)
{
    step_arg_buffer(b, s, j->x, j->dtype);
    step_arg_long(b, s, j->groups * j->ic * window_count_in(j->axes));
    STEP_BUFFERS(b, s, {weight, j->dtype}, {j->y, j->dtype});
    step_arg_long(b, s, j->groups * j->oc * window_count_out(j->axes));
}

conv_weight_strides conv_weight_strides_of(const conv_job *j)
{
    const int64_t taps = window_count_taps(j->axes), group = j->oc * j->ic * taps;
    operand first = operand_input(j->weight);
    first.offset_elems = j->is_rotated ? taps - 1 : 0;
    return j->is_rotated ? (conv_weight_strides){first, group, taps, j->oc * taps, -1}
                         : (conv_weight_strides){first, group, j->ic * taps, taps, 1};
}

const char *conv_epilogue_prelude(lower_context *c, const conv_job *j)
{
    epilogue_ops epilogue = j->epilogue;
    epilogue.bias = epilogue.bias == BIAS_NONE ? BIAS_NONE : BIAS_COLUMN;
    return epilogue_prelude(c, &epilogue);
}
