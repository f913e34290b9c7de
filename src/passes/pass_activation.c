/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces activations that exporters write as several nodes by the equivalent ONNX operator, which
 * pass_epilogue.c can then fuse with a convolution or GEMM.
 */
#include "passes/pattern.h"

typedef struct activation_pattern {
    const char *pattern; /* of the input x; see pattern.h */
    const char *op_type;
    int opset;                    /* first opset that has the operator */
    const char *attribute, *text; /* NULL: none */
} activation_pattern;

#define GELU(pattern)                                                                              \
    {                                                                                              \
        pattern, "Gelu", 20, NULL, NULL                                                            \
    }
#define GELU_TANH(pattern)                                                                         \
    {                                                                                              \
        pattern, "Gelu", 20, "approximate", "tanh"                                                 \
    }

static const activation_pattern activations[] = {
    {"Mul(x, Sigmoid(x))", "Swish", 24, NULL, NULL},
    {"Div(Mul(x, Clip(Add(x, 3), 0, 6)), 6)", "HardSwish", 14, NULL, NULL},
    {"Mul(x, Div(Clip(Add(x, 3), 0, 6), 6))", "HardSwish", 14, NULL, NULL},
    {"Mul(Mul(x, Clip(Add(x, 3), 0, 6)), 0.1666667)", "HardSwish", 14, NULL, NULL},
    {"Mul(x, Mul(Clip(Add(x, 3), 0, 6), 0.1666667))", "HardSwish", 14, NULL, NULL},
    {"Mul(x, Tanh(Softplus(x)))", "Mish", 18, NULL, NULL},
    GELU("Mul(Mul(x, Add(Erf(Div(x, 1.4142136)), 1)), 0.5)"),
    GELU("Mul(Mul(x, 0.5), Add(Erf(Div(x, 1.4142136)), 1))"),
    GELU("Mul(x, Mul(Add(Erf(Div(x, 1.4142136)), 1), 0.5))"),
    GELU("Mul(Mul(x, Add(Erf(Mul(x, 0.70710678)), 1)), 0.5)"),
    GELU("Mul(Mul(x, 0.5), Add(Erf(Mul(x, 0.70710678)), 1))"),
    GELU("Mul(x, Mul(Add(Erf(Mul(x, 0.70710678)), 1), 0.5))"),
    GELU_TANH("Mul(Mul(x, 0.5), Add(Tanh(Mul(Add(x, Mul(Pow(x, 3), 0.044715)), 0.79788456)), 1))"),
    GELU_TANH("Mul(x, Mul(Add(Tanh(Mul(Add(x, Mul(Pow(x, 3), 0.044715)), 0.79788456)), 1), 0.5))"),
    GELU_TANH("Mul(Mul(x, Add(Tanh(Mul(Add(x, Mul(Pow(x, 3), 0.044715)), 0.79788456)), 1)), 0.5)"),
    GELU_TANH("Mul(Mul(x, 0.5), Add(Tanh(Mul(Mul(x, 0.79788456), Add(Mul(Mul(x, 0.044715), x), "
              "1))), 1))"),
};

/* Returns whether x and y have the same float dtype and rank, and hence the same shape: only a
 * one-element constant of higher rank than x adds leading dimensions. */
static bool has_one_shape(const graph_info *s, value_id x, value_id y)
{
    const value_fact *in = &s->facts[x], *out = &s->facts[y];
    return in->dtype == out->dtype && dtype_is_float(in->dtype) && in->dims.rank != RANK_UNKNOWN &&
           in->dims.rank == out->dims.rank;
}

static clg_status become(graph *g, node_id n, const activation_pattern *a, value_id x)
{
    CLG_TRY(rewrite_become(g, n, "", a->op_type, a->opset, 1, &x));
    return a->attribute ? node_set_string(g, n, a->attribute, a->text) : CLG_OK;
}

/* Matches x * HardSigmoid(x), which is HardSwish when the attributes slope and offset are 1/6 and
 * 1/2. */
static bool is_hard_swish(const graph_info *s, node_id n, pattern_match *m)
{
    if (!pattern_find(s, "Mul(x, HardSigmoid(x))", n, m)) return false;
    const node *sigmoid = &s->graph->nodes[m->nodes[1]];
    const float alpha = node_float(sigmoid, "alpha", 0.2f),
                beta = node_float(sigmoid, "beta", 0.5f);
    return alpha > 0.16665f && alpha < 0.16668f && beta == 0.5f;
}

static clg_status recognise(graph_info *s, node_id n)
{
    static const activation_pattern hard_swish = {"", "HardSwish", 14, NULL, NULL};
    pattern_match m;
    const value_id y = s->graph->nodes[n].outputs[0];
    if (!node_is(&s->graph->nodes[n], "Mul") && !node_is(&s->graph->nodes[n], "Div")) return CLG_OK;
    for (size_t i = 0; i < sizeof activations / sizeof activations[0]; i++) {
        if (!pattern_find(s, activations[i].pattern, n, &m)) continue;
        if (!has_one_shape(s, pattern_value(&m, 'x'), y)) continue;
        return become(s->graph, n, &activations[i], pattern_value(&m, 'x'));
    }
    if (is_hard_swish(s, n, &m) && has_one_shape(s, pattern_value(&m, 'x'), y))
        return become(s->graph, n, &hard_swish, pattern_value(&m, 'x'));
    return CLG_OK;
}

clg_status pass_activation(graph *g, const pass_options *options)
{
    graph_info s;
    CLG_TRY(graph_info_make(g, &s));
    clg_status status = CLG_OK;
    const size_t n_nodes = g->n_nodes;
    for (node_id n = 0; n < n_nodes && status == CLG_OK; n++) status = recognise(&s, n);
    graph_info_deinit(&s);
    return status == CLG_OK ? pass_dead(g, options) : status; /* the next passes count consumers */
}
