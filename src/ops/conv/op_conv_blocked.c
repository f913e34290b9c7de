/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers and lowers clgraph.BlockedConv, which the pass `blocked` creates from two-dimensional
 * convolutions: a clgraph.FusedConv whose output y and residual are channel-blocked feature maps,
 * [N, ceil(C / lanes), H, W, lanes], where `lanes` is the number of elements of the device's
 * vectors. So is the input x, unless it has four dimensions and thus is in NCHW order. Weight and
 * bias are those of Conv; there is one group, or one per channel. Lanes of the last block beyond
 * the number of channels are padding: zero in x; in y, the results for zero weights and bias.
 *
 * With input 4 (weight [M, C, 1, 1]) and optionally 5 (bias [M]), the node is two convolutions
 * fused by the pass `expand`: a 1x1 convolution of x, followed by the convolution of input 1, which
 * is depthwise with M groups. `activated` says after which the activation is applied: 1 the first,
 * 2 the second, 3 (the default) both. There is no residual then.
 *
 * With inputs 6 and 7 (scale and shift, [blocks of x, 1, 1, lanes]), created by the pass
 * `prologue`, each channel of x is first multiplied by its scale, and its shift is added; with
 * prologue_relu 1 the result goes through Relu. x is channel-blocked then, with one group and no
 * inputs 4 and 5. Padding is zero after that.
 */
#include "ops/conv/conv_blocked.h"
#include "ops/conv/winograd.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"

#include <inttypes.h>

static bool prologue_is_valid(const node *n)
{
    const bool has_scale = node_has_input(n, BLOCKED_SCALE);
    if (has_scale != node_has_input(n, BLOCKED_SHIFT)) return false;
    if (!has_scale) return node_int(n, "prologue_relu", 0) == 0;
    return !node_has_input(n, BLOCKED_EXPAND_WEIGHT) && node_int(n, "group", 1) == 1;
}

static clg_status blocked_check(const node *n)
{
    char shown[NODE_TEXT_BYTES];
    CLG_TRY(window_check(n));
    if (node_has_input(n, BLOCKED_EXPAND_WEIGHT) ? node_has_input(n, 3)
                                                 : node_has_input(n, BLOCKED_EXPAND_BIAS))
        return error_set(
            CLG_ERROR_INVALID_MODEL,
            "%s has a residual beside two convolutions, or a bias of one that is not there",
            node_text(n, shown));
    if (!prologue_is_valid(n))
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "%s has an incomplete prologue, or one beside two convolutions or groups",
                         node_text(n, shown));
    return epilogue_check(n);
}

/* Returns whether `channels` is `wanted` rounded up to whole blocks of `lanes`; true where one of
 * them is unknown. */
static bool holds(int64_t channels, int64_t lanes, int64_t wanted)
{
    return channels == DIM_UNKNOWN || wanted == DIM_UNKNOWN ||
           channels == work_ceil_div(wanted, lanes) * lanes;
}

/* Checks the fused 1x1 convolution, and changes *flat, the shape of x in NCHW order, to that of its
 * output, which the depthwise convolution of input 1 reads. */
static clg_status infer_expanded(op_context *c, shape *flat)
{
    const shape *x = &op_input(c, 0)->dims, *w = &op_input(c, BLOCKED_EXPAND_WEIGHT)->dims;
    CLG_TRY(window_check_bias(c, BLOCKED_EXPAND_BIAS, w->rank > 0 ? w->dims[0] : 0));
    if (x->rank != 5 || w->rank != 4 || w->dims[2] != 1 || w->dims[3] != 1 ||
        w->dims[0] != node_int(c->node, "group", 1) || op_input(c, 1)->dims.dims[1] != 1 ||
        !holds(flat->dims[1], x->dims[4], w->dims[1]))
        return op_error(c, CLG_ERROR_SHAPE,
                        "a feature map of rank %d does not go through the 1x1 convolution before",
                        x->rank);
    flat->dims[1] = x->dims[4] == DIM_UNKNOWN ? DIM_UNKNOWN
                                              : work_ceil_div(w->dims[0], x->dims[4]) * x->dims[4];
    return CLG_OK;
}

/* Checks that input i of the prologue has an element for each channel of x. */
static clg_status check_by_channel(op_context *c, size_t i)
{
    const shape *x = &op_input(c, 0)->dims, *v = &op_input(c, i)->dims;
    bool fits = x->rank == 5 && v->rank == 4;
    for (int d = 0; fits && d < 4; d++) {
        const int64_t wanted = d == 0 ? x->dims[1] : d == 3 ? x->dims[4] : 1;
        fits = v->dims[d] == wanted || v->dims[d] == DIM_UNKNOWN || wanted == DIM_UNKNOWN;
    }
    if (fits) return CLG_OK;
    return op_error(c, CLG_ERROR_SHAPE, "input %zu does not have one element per channel", i);
}

static clg_status blocked_infer(op_context *c)
{
    const shape *x = &op_input(c, 0)->dims, *w = &op_input(c, 1)->dims;
    const int64_t lanes = node_int(c->node, "lanes", 1), groups = node_int(c->node, "group", 1);
    window_desc win;
    if ((x->rank != 4 && x->rank != 5) || w->rank != 4)
        return op_error(c, CLG_ERROR_SHAPE, "the input has rank %d and the weight %d", x->rank,
                        w->rank);
    shape flat = conv_blocked_flat(x);
    if (node_has_input(c->node, BLOCKED_EXPAND_WEIGHT)) CLG_TRY(infer_expanded(c, &flat));
    CLG_TRY(window_read(c->node, &flat, w, &win));
    const int64_t in = w->dims[1] == DIM_UNKNOWN ? DIM_UNKNOWN : w->dims[1] * groups;
    if (w->dims[0] == DIM_UNKNOWN || !holds(flat.dims[1], x->rank == 5 ? x->dims[4] : 1, in) ||
        (groups > 1 && (x->rank != 5 || w->dims[1] != 1 || w->dims[0] != groups)))
        return op_error(c, CLG_ERROR_SHAPE,
                        "a feature map of %" PRId64 " channels does not fit a weight of %" PRId64
                        " and %" PRId64 ", and %" PRId64 " groups",
                        flat.dims[1], w->dims[0], w->dims[1], groups);
    CLG_TRY(window_check_bias(c, 2, w->dims[0]));
    for (size_t i = BLOCKED_SCALE; i <= BLOCKED_SHIFT && node_has_input(c->node, i); i++)
        CLG_TRY(check_by_channel(c, i));
    shape y;
    window_shape(&win, flat.dims[0], w->dims[0], &y);
    y = conv_blocked_shape(&y, lanes);
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

static clg_status lower_expanded(lower_context *c, const conv_job *depthwise)
{
    const shape *w = &lower_input(c, BLOCKED_EXPAND_WEIGHT)->dims;
    const int64_t activated = node_int(c->node, "activated", BLOCKED_BOTH_ACTIVATED);
    conv_job first = *depthwise, last = *depthwise;
    first.weight = BLOCKED_EXPAND_WEIGHT;
    first.weight_constant = lower_input(c, BLOCKED_EXPAND_WEIGHT)->constant;
    first.groups = 1;
    first.ic = w->dims[1];
    first.oc = w->dims[0];
    for (int i = 0; i < WINDOW_MAX_AXES; i++) {
        const int64_t in = depthwise->axes[i].in;
        first.axes[i] = (window_axis){.in = in, .out = in, .kernel = 1, .stride = 1, .dilation = 1};
    }
    first.epilogue.bias = lower_has_input(c, BLOCKED_EXPAND_BIAS) ? BIAS_ROW : BIAS_NONE;
    first.epilogue.bias_at = operand_input(BLOCKED_EXPAND_BIAS);
    first.epilogue.bias_b1 = first.oc;
    if (!(activated & BLOCKED_FIRST_ACTIVATED)) first.epilogue.activation = 0;
    if (!(activated & BLOCKED_LAST_ACTIVATED)) last.epilogue.activation = 0;
    return conv_expand_blocked_add(c, &first, &last);
}

static clg_status blocked_lower(lower_context *c)
{
    const shape *x = &lower_input(c, 0)->dims;
    const int64_t lanes = node_int(c->node, "lanes", 1);
    const bool is_blocked = x->rank == 5;
    const shape flat = conv_blocked_flat(x);
    conv_job j;
    if (!lower_is_simd(c) || lanes != work_simd_lanes(c) || (is_blocked && x->dims[4] != lanes))
        return lower_error(c, CLG_ERROR_UNSUPPORTED_DEVICE,
                           "blocks of %" PRId64 " channels are not those of the device", lanes);
    CLG_TRY(conv_read(c, &flat, &j));
    j.blocked = true;
    for (int i = 1; i < 3; i++)
        if ((j.axes[i].kernel - 1) * j.axes[i].dilation >= BLOCKED_MAX_SIDE ||
            j.axes[i].stride > BLOCKED_MAX_STRIDE)
            return lower_error(c, CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                               "windows of more than %d pixels and strides of more than %d are not "
                               "for blocks of channels",
                               BLOCKED_MAX_SIDE, BLOCKED_MAX_STRIDE);
    if (j.batch == 0 || j.axes[1].out == 0 || j.axes[2].out == 0) {
        (void)step_candidate(&c->build, "nothing");
        return CLG_OK;
    }
    if (lower_has_input(c, BLOCKED_EXPAND_WEIGHT)) return lower_expanded(c, &j);
    if (lower_has_input(c, BLOCKED_SCALE))
        j.prologue = node_int(c->node, "prologue_relu", 0) ? PROLOGUE_SCALE_RELU : PROLOGUE_SCALE;
    else if (j.groups == 1)
        winograd_add(c, &j, is_blocked);
    if (j.groups > 1)
        conv_depthwise_blocked_append(c, step_candidate(&c->build, "conv_depthwise_blocked"), &j);
    else
        CLG_TRY(conv_blocked_add(c, &j, is_blocked));
    conv_blocked_direct_append(c, conv_blocked_direct_start(c), &j, is_blocked);
    return CLG_OK;
}

static const op_types types[] = {{'T', DTYPE_BIT(CLG_FLOAT32)}, {0}};
static const op_attribute attributes[] = {
    CONV_ATTRIBUTES EPILOGUE_ATTRIBUTES{"winograd", ATTRIBUTE_INT, false, OP_BETWEEN(0, 4)},
    {"lanes", ATTRIBUTE_INT, true, OP_COUNT},
    {"activated", ATTRIBUTE_INT, false, OP_ANY},
    {"prologue_relu", ATTRIBUTE_INT, false, OP_BETWEEN(0, 1)},
    {0}};

const op_row op_rows_conv_blocked[] = {
    {.name = "BlockedConv",
     .grad = GRAD_NONE(GRAD_OF_PASSES),
     .domain = "clgraph",
     .since = 1,
     OP_INPUTS(2, 8, "T"),
     OP_OUTPUTS(1, 1, "T"),
     .types = types,
     .attributes = attributes,
     .check = blocked_check,
     .infer = blocked_infer,
     .lower = blocked_lower},
};
const size_t n_op_rows_conv_blocked = sizeof op_rows_conv_blocked / sizeof *op_rows_conv_blocked;
