/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements epilogue.h: the table of activations that can be fused, and the parameters and
 * arguments of the fused epilogue.
 */
#include "ops/lowering/epilogue.h"

#include <float.h>
#include <string.h>

const epilogue_activation epilogue_activations[] = {
    {"Relu", 1, 0, 0},
    {"LeakyRelu", 2, 0.01f, 0},
    {"Clip", 3, -FLT_MAX, FLT_MAX},
    {"Sigmoid", 4, 0, 0},
    {"Tanh", 5, 0, 0},
    {"HardSigmoid", 6, 0.2f, 0.5f},
    {"HardSwish", 7, 0, 0},
    {"Swish", 8, 0, 0},
    {"Gelu", 9, 0, 0},
    {"Elu", 10, 1.0f, 0},
    {NULL, 0, 0, 0},
};

const epilogue_activation *epilogue_find(const char *name)
{
    const epilogue_activation *a = epilogue_activations;
    while (a->name && strcmp(a->name, name) != 0) a++;
    return a->name ? a : NULL;
}

clg_status epilogue_check(const node *n)
{
    const char *name = node_string(n, "activation", "");
    if (name[0] == '\0' || epilogue_find(name)) return CLG_OK;
    char shown[NODE_TEXT_BYTES];
    return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                     "%s has the activation '%s', which cannot be fused", node_text(n, shown),
                     name);
}

clg_status epilogue_check_residual(const op_context *c, size_t i, const shape *result)
{
    const shape *residual = &op_input(c, i)->dims;
    char text[2][SHAPE_TEXT_BYTES];
    if (!op_has_input(c, i) || !shape_is_known(residual) || !shape_is_known(result) ||
        shape_equal(residual, result))
        return CLG_OK;
    return op_error(c, CLG_ERROR_SHAPE, "the residual of shape %s is not of the result's, %s",
                    shape_text(residual, text[0]), shape_text(result, text[1]));
}

void epilogue_read(const lower_context *c, epilogue_ops *out)
{
    const epilogue_activation *a = epilogue_find(node_string(c->node, "activation", ""));
    *out = (epilogue_ops){.alpha = 1, .beta = 1};
    if (a) {
        out->activation = a->code;
        size_t n;
        const float *params = node_floats(c->node, "activation_params", &n);
        out->act_a = n > 0 ? params[0] : node_float(c->node, "activation_alpha", a->alpha);
        out->act_b = n > 1 ? params[1] : node_float(c->node, "activation_beta", a->beta);
    }
    if (lower_has_input(c, 3)) {
        out->has_residual = true;
        out->is_mask = node_int(c->node, "residual_mask", 0) != 0;
        out->residual = operand_input(3);
    }
}

bool epilogue_is_empty(const epilogue_ops *e)
{
    return e->activation == 0 && e->bias == BIAS_NONE && !e->has_residual;
}

const char *epilogue_prelude(lower_context *c, const epilogue_ops *e)
{
    const int residual = !e->has_residual ? 0 : e->is_mask ? 2 : 1;
    const char *text = arena_printf(c->memory, "P_BIAS=%d P_RESIDUAL=%d P_ACT=%d", (int)e->bias,
                                    residual, e->activation);
    if (!text && c->build.status == CLG_OK) c->build.status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    return text ? text : "";
}

void epilogue_args(lower_context *c, step *s, const epilogue_ops *e, clg_dtype dtype,
                   operand unused)
{
    step_builder *b = &c->build;
    step_arg_buffer(b, s, e->bias != BIAS_NONE ? e->bias_at : unused, dtype);
    STEP_INTS(b, s, e->bias_rs, e->bias_cs);
    STEP_LONGS(b, s, e->bias_b0, e->bias_b1);
    step_arg_buffer(b, s, e->has_residual ? e->residual : unused, dtype);
    STEP_FLOATS(b, s, e->alpha, e->beta, e->act_a, e->act_b);
}
