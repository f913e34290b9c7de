/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds networks layer by layer. See network.h.
 */
#include "network.h"

#include "net.h"
#include "options.h"
#include "output.h"

#include <string.h>

/* Version of ONNX's operators: Dropout and BatchNormalization as the trainer takes them. */
#define NETWORK_OPSET 17

typedef struct making {
    const network_plan *plan;
    net net;
    const char *value; /* the last layer's result */
    int64_t dims[3];   /* of a row of it; dims[1] and dims[2] are 1 after Flatten */
} making;

#define refuse(m, ...)                                                                             \
    ((m)->net.code = fail_usage(__VA_ARGS__), (m)->net.status = CLG_ERROR_INVALID_ARGUMENT)

/* Adds a node of an operator with weights [dims] and, where has_bias, a bias [dims[0]]; output: the
 * name of its result, NULL: by the node's. */
static void add_weighted(making *m, const char *op_type, const char *layer, size_t rank,
                         const int64_t *dims, bool has_bias, const char *output)
{
    net *n = &m->net;
    const double n_receptive = rank == 4 ? (double)dims[2] * (double)dims[3] : 1;
    const double fan_in = (double)dims[1] * n_receptive;
    const char *inputs[3] = {m->value};
    inputs[1] = net_weights(n, net_name(n, "%s.weight", layer), rank, dims, fan_in,
                            (double)dims[0] * n_receptive);
    if (!inputs[1]) return;
    if (has_bias) inputs[2] = net_bias(n, net_name(n, "%s.bias", layer), dims[0], fan_in);
    m->value = output ? output : net_name(n, "%s.output", layer);
    net_node_to(n, op_type, layer, has_bias ? 3 : 2, inputs, 1, &m->value);
}

static void add_batchnorm(making *m, const char *layer)
{
    const char *inputs[5] = {m->value};
    if (!m->plan->batchnorm) return;
    const char *name = net_name(&m->net, "%s.norm", layer);
    net_norm_parameters(&m->net, name, m->dims[0], 4, inputs + 1);
    m->value = net_node(&m->net, "BatchNormalization", name, 5, inputs);
}

static const struct activation {
    const char *word, *op_type; /* op_type NULL: several nodes */
} activations[] = {{"relu", "Relu"}, {"tanh", "Tanh"}, {"gelu", NULL}, {NULL, NULL}};

int network_activation_of(const char *word, size_t *out_activation)
{
    return option_word("--activation", word, &activations->word, sizeof *activations,
                       out_activation);
}

static void add_activation(making *m, const char *layer)
{
    const struct activation *a = &activations[m->plan->activation];
    m->value = a->op_type ? net_node(&m->net, a->op_type,
                                     net_name(&m->net, "%s.%s", layer, a->word), 1, &m->value)
                          : net_gelu(&m->net, m->value, layer);
}

static void add_dropout(making *m, const char *layer)
{
    net *n = &m->net;
    if (m->plan->dropout == 0) return;
    const char *ratio =
        net_scalar(n, net_name(n, "%s.dropout.ratio", layer), (float)m->plan->dropout);
    m->value = net_node(n, "Dropout", net_name(n, "%s.dropout", layer), 2,
                        (const char *[]){m->value, ratio});
}

/* Adds a convolution that keeps height and width, then pooling. */
static void add_conv(making *m, size_t index)
{
    const int64_t k = (int64_t)m->plan->kernel, p = (int64_t)m->plan->pool;
    const char *layer = net_name(&m->net, "conv%zu", index + 1);
    const int64_t dims[] = {(int64_t)m->plan->convs[index], m->dims[0], k, k};
    add_weighted(m, "Conv", layer, 4, dims, !m->plan->batchnorm, NULL);
    net_set_ints(&m->net, "kernel_shape", 2, (int64_t[]){k, k});
    net_set_ints(&m->net, "pads", 4, (int64_t[]){k / 2, k / 2, k / 2, k / 2});
    m->dims[0] = dims[0];
    add_batchnorm(m, layer);
    add_activation(m, layer);
    if (m->net.status == CLG_OK && (m->dims[1] < p || m->dims[2] < p))
        refuse(m, "'%s': nothing is left of %lld x %lld pixels after --pool %lld", layer,
               (long long)m->dims[1], (long long)m->dims[2], (long long)p);
    if (p > 1) {
        m->value = net_node(&m->net, "MaxPool", net_name(&m->net, "%s.pool", layer), 1, &m->value);
        net_set_ints(&m->net, "kernel_shape", 2, (int64_t[]){p, p});
        net_set_ints(&m->net, "strides", 2, (int64_t[]){p, p});
        m->dims[1] /= p;
        m->dims[2] /= p;
    }
}

static void add_dense(making *m, size_t index)
{
    const bool is_last = index + 1 == m->plan->n_denses;
    const char *layer = net_name(&m->net, "dense%zu", index + 1);
    const int64_t dims[] = {(int64_t)m->plan->denses[index], m->dims[0]};
    add_weighted(m, "Gemm", layer, 2, dims, is_last || !m->plan->batchnorm,
                 is_last ? "logits" : NULL);
    net_set_int(&m->net, "transB", 1);
    m->dims[0] = dims[0];
    if (is_last) return;
    add_batchnorm(m, layer);
    add_activation(m, layer);
    add_dropout(m, layer);
}

int network_build(const network_plan *plan, clg_model **out_model, uint64_t *out_n_elements)
{
    making m = {.plan = plan};
    net_begin(&m.net, NETWORK_OPSET, plan->scheme, plan->seed);
    for (size_t i = 0; i < 3; i++) m.dims[i] = i < plan->rank ? plan->dims[i] : 1;
    m.value =
        net_input(&m.net, plan->rank == 1 ? "x" : "image", CLG_FLOAT32, plan->rank, plan->dims);
    for (size_t i = 0; i < plan->n_convs; i++) add_conv(&m, i);
    if (plan->rank > 1) {
        m.value = net_node(&m.net, "Flatten", "flatten", 1, &m.value);
        m.dims[0] *= m.dims[1] * m.dims[2];
        m.dims[1] = m.dims[2] = 1;
    }
    for (size_t i = 0; i < plan->n_denses; i++) add_dense(&m, i);
    net_output(&m.net, m.value);
    *out_n_elements = m.net.n_elements;
    return net_end(&m.net, out_model);
}
