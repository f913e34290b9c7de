/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of operators that are several of ONNX in one: com.microsoft's FusedConv, FusedGemm and
 * EmbedLayerNormalization, and CausalConvWithState.
 */
#include "ops/grad/grad_rule.h"
#include "ops/lowering/epilogue.h"

#include <string.h>

/* The first opset that has all activations: Swish is the last. */
#define NEWEST_ACTIVATION 24

/* Copies the node's attributes except those of the activation to the node that computes v. Returns
 * v. */
static value_id with_attributes(grad_node *c, value_id v)
{
    static const char *const others[] = {"activation", "activation_params", "activation_alpha",
                                         "activation_beta", "activation_gamma"};
    return grad_copy_other_attributes(c, v, sizeof others / sizeof *others, others);
}

/* Returns v after the node's activation. */
static value_id activated(grad_node *c, value_id v)
{
    const char *name = node_string(&c->node, "activation", "");
    const epilogue_activation *known = epilogue_find(name);
    size_t n;
    const float *params = node_floats(&c->node, "activation_params", &n);
    if (name[0] == '\0') return v;
    if (!known) {
        grad_refuse(c, "its activation '%s' is not supported", name);
        return v;
    }
    const float alpha = n > 0 ? params[0] : node_float(&c->node, "activation_alpha", known->alpha),
                beta = n > 1 ? params[1] : node_float(&c->node, "activation_beta", known->beta);
    if (strcmp(name, "Clip") == 0)
        return GRAD_ADD(c, "Clip", v, grad_number(c, (double)alpha), grad_number(c, (double)beta));
    v = grad_of_opset(c, GRAD_ADD(c, name, v), NEWEST_ACTIVATION);
    const bool is_hard = strcmp(name, "HardSigmoid") == 0;
    if (is_hard || strcmp(name, "LeakyRelu") == 0 || strcmp(name, "Elu") == 0)
        v = grad_set_float(c, v, "alpha", alpha);
    return is_hard ? grad_set_float(c, v, "beta", beta) : v;
}

void grad_pass_fused_conv(grad_node *c)
{
    const size_t first = c->graph->n_nodes;
    const value_id inputs[3] = {grad_in(c, 0), grad_in(c, 1), grad_in(c, 2)};
    const size_t n = inputs[2] == VALUE_NONE ? 2 : 3;
    value_id y = with_attributes(c, grad_add(c, "Conv", n, inputs));
    if (grad_in(c, 3) != VALUE_NONE) y = GRAD_ADD(c, "Add", y, grad_in(c, 3));
    y = activated(c, y);
    grad_through(c, first, 1, &y);
}

void grad_pass_fused_gemm(grad_node *c)
{
    const size_t first = c->graph->n_nodes;
    const value_id inputs[3] = {grad_in(c, 0), grad_in(c, 1), grad_in(c, 2)};
    const size_t n = inputs[2] == VALUE_NONE ? 2 : 3;
    const value_id y = activated(c, with_attributes(c, grad_add(c, "Gemm", n, inputs)));
    grad_through(c, first, 1, &y);
}

/* ---- EmbedLayerNormalization ----------------------------------------------------------------- */

enum { IDS, SEGMENT_IDS, WORDS, POSITIONS, SEGMENTS, GAMMA, BETA, MASK, POSITION_IDS };

/* The rows of the tables, summed, then normalised. Outputs 0 and 2 are floats. */
void grad_pass_embed_layernorm(grad_node *c)
{
    const size_t first = c->graph->n_nodes;
    const float epsilon = node_float(&c->node, "epsilon", 1e-12f);
    value_id at = grad_in(c, POSITION_IDS);
    if (at == VALUE_NONE) at = grad_indices(c, grad_size_along(c, grad_in(c, IDS), 1));
    value_id sum = GRAD_ADD(c, "Add", GRAD_ADD(c, "Gather", grad_in(c, WORDS), grad_in(c, IDS)),
                            GRAD_ADD(c, "Gather", grad_in(c, POSITIONS), at));
    if (grad_in(c, SEGMENTS) != VALUE_NONE)
        sum = GRAD_ADD(c, "Add", sum,
                       GRAD_ADD(c, "Gather", grad_in(c, SEGMENTS), grad_in(c, SEGMENT_IDS)));
    const value_id normal =
        GRAD_ADD(c, "LayerNormalization", sum, grad_in(c, GAMMA), grad_in(c, BETA));
    const value_id y = grad_set_float(c, grad_of_opset(c, normal, 17), "epsilon", epsilon);
    grad_through(c, first, 3, (value_id[]){y, VALUE_NONE, sum});
}

/* ---- CausalConvWithState --------------------------------------------------------------------- */

/* A convolution of each channel of the past state, then x; the new state is the end of these. */
void grad_pass_causal_conv(grad_node *c)
{
    const size_t first = c->graph->n_nodes;
    const value_id x = grad_in(c, 0), state = grad_in(c, 3);
    const shape *w = &grad_fact(c, grad_in(c, 1))->dims;
    if (w->rank != 3 || w->dims[0] < 1 || w->dims[2] < 1) {
        grad_refuse(c, "the sizes of its weight are not known");
        return;
    }
    const int64_t kept = w->dims[2] - 1, pads[2] = {kept, 0}, axis = 2;
    const value_id all = state != VALUE_NONE
                             ? grad_concat(c, axis, 2, (value_id[]){state, x})
                             : grad_of_opset(c,
                                             GRAD_ADD(c, "Pad", x, grad_list(c, 2, pads),
                                                      grad_number(c, 0), grad_list(c, 1, &axis)),
                                             18);
    const value_id inputs[3] = {all, grad_in(c, 1), grad_in(c, 2)};
    value_id y = grad_add(c, "Conv", inputs[2] == VALUE_NONE ? 2 : 3, inputs);
    y = grad_set_int(c, y, "group", w->dims[0]);
    if (strcmp(node_string(&c->node, "activation", "none"), "none") != 0)
        y = GRAD_ADD(c, "Mul", y, GRAD_ADD(c, "Sigmoid", y));
    const value_id present = kept == 0 ? VALUE_NONE : grad_slice(c, all, axis, -kept, INT64_MAX, 1);
    grad_through(c, first, 2, (value_id[]){y, present});
}
