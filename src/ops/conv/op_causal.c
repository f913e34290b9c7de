/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers and lowers CausalConvWithState (ONNX 27): a depthwise convolution over each channel's
 * current and past inputs, which also returns the last k - 1 inputs as the state for the next part
 * of the sequence. Kernels: cl/conv/causal.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/grid.h"
#include "ops/lowering/work.h"

#include <string.h>

enum { X, W, BIAS, STATE };

static clg_status causal_infer(op_context *c)
{
    const shape *x = &op_input(c, X)->dims, *w = &op_input(c, W)->dims;
    const shape *bias = &op_input(c, BIAS)->dims, *state = &op_input(c, STATE)->dims;
    if (x->rank != 3 || w->rank != 3 || dims_differ(w->dims[0], x->dims[1]) ||
        dims_differ(w->dims[1], 1) || w->dims[2] == 0)
        return op_error(c, CLG_ERROR_SHAPE,
                        "the input must be [batch, channels, length], the weight [channels, 1, k]");
    if (op_has_input(c, BIAS) && (bias->rank != 1 || dims_differ(bias->dims[0], x->dims[1])))
        return op_error(c, CLG_ERROR_SHAPE, "the bias must be [channels]");
    const int64_t kept = w->dims[2] == DIM_UNKNOWN ? DIM_UNKNOWN : w->dims[2] - 1;
    const shape present = {.rank = 3, .dims = {x->dims[0], x->dims[1], kept}};
    if (op_has_input(c, STATE)) {
        bool fits = state->rank == 3;
        for (int i = 0; fits && i < 3; i++) fits = !dims_differ(state->dims[i], present.dims[i]);
        if (!fits)
            return op_error(c, CLG_ERROR_SHAPE, "the past state must be [batch, channels, k - 1]");
    }
    fact_set(&c->outputs[0], op_input(c, X)->dtype, x);
    if (c->n_outputs > 1) fact_set(&c->outputs[1], op_input(c, X)->dtype, &present);
    return CLG_OK;
}

static clg_status causal_lower(lower_context *c)
{
    const lower_operand *x = lower_input(c, X), *w = lower_input(c, W);
    const bool simd = lower_is_simd(c), has_bias = lower_has_input(c, BIAS),
               has_state = lower_has_input(c, STATE);
    const int64_t channels = x->dims.dims[1], length = x->dims.dims[2], taps = w->dims.dims[2];
    const int64_t rows = x->dims.dims[0] * channels;
    const int lanes = simd ? work_lanes(c, length) : 1;
    const operand state = operand_input(has_state ? STATE : X);
    step_builder *b = &c->build;
    candidate *impl = step_candidate(b, "causal_conv");
    const char *prelude =
        prelude_text(b, "P_T=%d P_VEC=%d P_FP64=0 P_INDEX=32 P_BIAS=%d P_STATE=%d P_SILU=%d",
                     (int)x->dtype, lanes, has_bias, has_state,
                     strcmp(node_string(c->node, "activation", "none"), "none") != 0);
    if (work_has_output(c, 0)) {
        step *s = step_kernel(b, impl, "causal", "causal_conv", prelude);
        STEP_INTS(b, s, rows, channels, length, taps);
        STEP_BUFFERS(b, s, {operand_input(X), x->dtype}, {operand_input(W), x->dtype},
                     {operand_input(has_bias ? BIAS : X), x->dtype}, {state, x->dtype},
                     {operand_output(0), x->dtype});
        s->flops = 2.0 * (double)rows * (double)length * (double)taps;
        s->bytes = 2.0 * (double)rows * (double)length * (double)dtype_size(x->dtype);
        const uint64_t across = simd ? 1 : work_power_of_two(length, 64);
        work_range_2d(c, s, (length + lanes - 1) / lanes, across, rows, simd ? 16 : 64 / across);
    }
    if (work_has_output(c, 1)) {
        step *s = step_kernel(b, impl, "causal", "causal_state", prelude);
        s->label = "causal_conv: state";
        STEP_INTS(b, s, rows, length, taps);
        STEP_BUFFERS(b, s, {operand_input(X), x->dtype}, {state, x->dtype},
                     {operand_output(1), x->dtype});
        work_range_2d(c, s, taps - 1, 1, rows, simd ? 16 : 64);
    }
    return CLG_OK;
}

static const op_attribute attributes[] = {
    {"activation", ATTRIBUTE_STRING, false, OP_ONE_OF("none", "silu", "swish")}, {0}};
static const op_types types[] = {
    {'T', DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_BFLOAT16)}, {0}};

const op_row op_rows_causal[] = {
    {.name = "CausalConvWithState",
     .grad = GRAD_BY(grad_pass_causal_conv),
     .batch = BATCH_AT("0..0", "0"),
     .since = 27,
     OP_INPUTS(2, 4, "T"),
     OP_OUTPUTS(1, 2, "T"),
     .types = types,
     .attributes = attributes,
     .infer = causal_infer,
     .lower = causal_lower},
};
const size_t n_op_rows_causal = sizeof op_rows_causal / sizeof *op_rows_causal;
