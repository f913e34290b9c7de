/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers and lowers Conv over one to three axes, clgraph.FusedConv, which passes create from it,
 * and com.microsoft.FusedConv. conv.c selects the implementations: matrix products, Winograd,
 * tiled, depthwise and direct kernels. The attribute `winograd` of clgraph.FusedConv allows
 * Winograd's minimal filtering, whose rounding differs, for 3x3 kernels: 1 where it is estimated to
 * be faster, 2 or 4 always, with tiles of 2x2 or 4x4 outputs.
 */
#include "ops/batch/batch_rule.h"
#include "ops/conv/conv.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/window.h"
#include "ops/lowering/work.h"

static clg_status conv_check(const node *n)
{
    CLG_TRY(window_check(n));
    return epilogue_check(n);
}

static clg_status conv_infer(op_context *c)
{
    const shape *x = &op_input(c, 0)->dims, *w = &op_input(c, 1)->dims;
    window_desc win;
    shape y;
    CLG_TRY(window_read_conv(c, x, w, &win));
    CLG_TRY(window_check_bias(c, 2, w->dims[0]));
    window_shape(&win, x->dims[0], w->dims[0], &y);
    CLG_TRY(epilogue_check_residual(c, 3, &y));
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

static clg_status conv_lower(lower_context *c)
{
    const lower_operand *x = lower_input(c, 0);
    conv_job j;
    CLG_TRY(work_check_dtype(c, x->dtype));
    CLG_TRY(conv_read(c, &x->dims, &j));
    return conv_add(c, &j);
}

#define TILED (DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT16))
static const op_types types[] = {{'T', TILED | DTYPE_BIT(CLG_FLOAT64)}, {0}};
static const op_types fused_types[] = {{'T', TILED}, {0}};

static const op_attribute attributes[] = {CONV_ATTRIBUTES{0}};
static const op_attribute fused_attributes[] = {
    CONV_ATTRIBUTES EPILOGUE_ATTRIBUTES{"winograd", ATTRIBUTE_INT, false, OP_BETWEEN(0, 4)}, {0}};
static const op_attribute microsoft_attributes[] = {
    CONV_ATTRIBUTES{"activation", ATTRIBUTE_STRING, false, OP_ANY},
    {"activation_params", ATTRIBUTE_FLOATS, false, OP_ANY},
    {0}};

#define CONV OP_OUTPUTS(1, 1, "T"), .check = conv_check, .infer = conv_infer, .lower = conv_lower

const op_row op_rows_conv[] = {
    {.name = "Conv",
     .grad = GRAD_BY(grad_pass_conv),
     .batch = BATCH_FIRST,
     .since = 1,
     OP_INPUTS(2, 3, "T"),
     .types = types,
     .attributes = attributes,
     CONV},
    {.name = "FusedConv",
     .grad = GRAD_NONE(GRAD_OF_PASSES),
     .domain = "clgraph",
     .since = 1,
     OP_INPUTS(2, 4, "T"),
     .types = fused_types,
     .attributes = fused_attributes,
     CONV},
    {.name = "FusedConv",
     .grad = GRAD_BY(grad_pass_fused_conv),
     .domain = "com.microsoft",
     .batch = BATCH_AT("0..0", "0"),
     .since = 1,
     OP_INPUTS(2, 4, "T"),
     .types = fused_types,
     .attributes = microsoft_attributes,
     CONV},
};
const size_t n_op_rows_conv = sizeof op_rows_conv / sizeof *op_rows_conv;
