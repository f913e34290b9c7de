/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv.h"

#include "ops/gemm.h"
#include "ops/work.h"

static int64_t count_in(const conv_job *j) { return j->axes[0].in * j->axes[1].in * j->axes[2].in; }
static int64_t count_out(const conv_job *j)
{
    return j->axes[0].out * j->axes[1].out * j->axes[2].out;
}
static int64_t count_taps(const conv_job *j)
{
    return j->axes[0].kernel * j->axes[1].kernel * j->axes[2].kernel;
}

static void count_work(const conv_job *j, step *s)
{
    const double planes = (double)j->batch * (double)j->groups;
    const double elements = planes * (double)(j->ic * count_in(j) + j->oc * count_out(j)) +
                            (double)(j->groups * j->oc * j->ic * count_taps(j));
    s->flops = 2.0 * planes * (double)(j->oc * count_out(j)) * (double)(j->ic * count_taps(j));
    s->bytes = elements * (double)clg_dtype_size(j->dtype);
}

/* ---- straight: cl/conv_direct.cl ---------------------------------------------------------------------- */

static void direct_candidate(lower_context *c, const conv_job *j)
{
    step_builder *b = &c->build;
    const int64_t width = j->axes[2].out, rows = j->axes[0].out * j->axes[1].out;
    const int64_t planes = j->batch * j->groups * j->oc;
    const bool in_rows = lower_is_wide(c) && j->ic == 1 && width >= 4;
    const int lanes = in_rows ? work_lanes(c, width) : 1;
    const char *entry = in_rows ? "conv_rows" : "conv_items";
    step *s = step_kernel(b, step_candidate(b, entry), "conv_direct", entry,
                          prelude_text(b, "P_FORM=%d P_T=%d P_VEC=%d %s", in_rows, (int)j->dtype,
                                       lanes, epilogue_prelude(c, &j->tail)));
    step_arg_int(b, s, j->batch);
    step_arg_int(b, s, j->groups);
    step_arg_int(b, s, j->ic);
    step_arg_int(b, s, j->oc);
    for (int i = 0; i < WINDOW_MAX_AXES; i++) {
        const window_axis *a = &j->axes[i];
        step_arg_int(b, s, a->in);
        step_arg_int(b, s, a->out);
        step_arg_int(b, s, a->kernel);
        step_arg_int(b, s, a->stride);
        step_arg_int(b, s, a->dilation);
        step_arg_int(b, s, a->pad_begin);
    }
    step_arg_buffer(b, s, operand_input(0), j->dtype);
    step_arg_buffer(b, s, operand_input(1), j->dtype);
    step_arg_buffer(b, s, operand_output(0), j->dtype);
    epilogue_args(c, s, &j->tail, j->dtype, operand_output(0));
    count_work(j, s);
    if (in_rows) {
        work_range_2d(c, s, rows, 1, planes, 1);
    } else {
        const uint64_t across = work_power_of_two(count_out(j), 64);
        work_range_2d(c, s, count_out(j), across, planes, 64 / across);
    }
}

/* ---- 1x1: a product ---------------------------------------------------------------------------------------- */

static bool is_product(const conv_job *j)
{
    for (int i = 0; i < WINDOW_MAX_AXES; i++) {
        const window_axis *a = &j->axes[i];
        if (a->kernel != 1 || a->stride != 1 || a->pad_begin != 0 || a->pad_end != 0) return false;
    }
    return true;
}

/* y[image, group] = weight[group] x x[image, group]. */
static clg_status product_candidates(lower_context *c, const conv_job *j)
{
    const int64_t n = count_out(j), in = j->ic * n, out = j->oc * n;
    const bool by_group = j->groups > 1;
    gemm_job g = {.dtype = j->dtype,
                  .m = j->oc,
                  .n = n,
                  .k = j->ic,
                  .batch = j->batch * j->groups,
                  .batch_in = by_group ? j->groups : j->batch,
                  .tail = j->tail};
    g.batch_in = g.batch_in > 0 ? g.batch_in : 1;
    g.a = (gemm_matrix){operand_input(1),  j->ic, 1, 0, by_group ? j->oc * j->ic : 0,
                        j->weight_constant};
    g.b = (gemm_matrix){operand_input(0), n, 1, j->groups * in, in, false};
    g.c = (gemm_matrix){operand_output(0), n, 1, j->groups * out, out, false};
    g.tail.bias_b1 = by_group ? j->tail.bias_b1 : 0;
    return gemm_lower(c, &g, 1);
}

/* ---- all together ---------------------------------------------------------------------------------------------- */

clg_status conv_add(lower_context *c, const conv_job *j)
{
    const bool tiled = j->dtype == CLG_FLOAT32 || j->dtype == CLG_FLOAT16;
    const bool depthwise = j->ic == 1 && j->groups > 1 && j->oc <= 4;
    if (j->batch == 0 || j->oc == 0 || count_out(j) == 0) {
        (void)step_candidate(&c->build, "nothing");
        return CLG_OK;
    }
    if (!tiled || depthwise) {
        direct_candidate(c, j);
        return CLG_OK;
    }
    if (is_product(j)) return product_candidates(c, j);
    direct_candidate(c, j);
    return CLG_OK;
}
