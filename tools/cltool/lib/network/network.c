/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds networks layer by layer. See network.h.
 */
#include "network.h"

#include "options.h"
#include "output.h"

#include <stdlib.h>
#include <string.h>

/* Version of ONNX's operators: Dropout and BatchNormalization as the trainer takes them. */
#define NETWORK_OPSET 17
/* 2 GiB: what an ONNX file without external data holds. */
#define MAX_ELEMENTS 0x1p29

typedef struct making {
    const network_plan *plan;
    clg_builder *builder;
    clg_status status;
    int code;           /* of what is refused before the builder sees it; status is set too */
    char *value;        /* the last layer's result */
    const char *output; /* the name of the next node's result; NULL: by the node's */
    int64_t dims[3];    /* of a row of it; dims[1] and dims[2] are 1 after Flatten */
    uint32_t n_layers;
    uint64_t n_elements;
} making;

#define refuse(m, ...)                                                                             \
    ((m)->code = fail_usage(__VA_ARGS__), (m)->status = CLG_ERROR_INVALID_ARGUMENT)

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Adds OUTPUT = OP(the last value, a, b...), which becomes the last value. The node has the name
 * LAYER, or LAYER.PART. */
static void add_node(making *m, const char *op_type, const char *layer, const char *part,
                     size_t n_more, const char *const *more)
{
    const char *inputs[5] = {m->value};
    char *name = must_printf("%s%s%s", layer, part ? "." : "", part ? part : "");
    char *output = m->output ? must_copy(m->output) : must_printf("%s.output", name);
    m->output = NULL;
    for (size_t i = 0; i < n_more; i++) inputs[i + 1] = more[i];
    if (m->status == CLG_OK)
        m->status = clg_builder_node(m->builder, "", op_type, name, n_more + 1, inputs, 1,
                                     (const char *[]){output});
    free(name);
    free(m->value);
    m->value = output;
}

static void set_ints(making *m, const char *name, size_t n, const int64_t *values)
{
    if (m->status == CLG_OK) m->status = clg_builder_attribute_ints(m->builder, name, n, values);
}

/* Adds an initializer "LAYER.PART", whose elements it frees; returns its name, free(). */
static char *add_constant(making *m, const char *layer, const char *part, size_t rank,
                          const int64_t *dims, float *data, size_t n)
{
    char *name = must_printf("%s.%s", layer, part);
    if (m->status == CLG_OK)
        m->status =
            clg_builder_constant(m->builder, name, CLG_FLOAT32, rank, dims, data, n * sizeof *data);
    free(data);
    return name;
}

static char *add_filled(making *m, const char *layer, const char *part, int64_t n, float number)
{
    float *data = must_alloc((size_t)n, sizeof *data);
    for (int64_t i = 0; i < n; i++) data[i] = number;
    return add_constant(m, layer, part, 1, &n, data, (size_t)n);
}

/* ---- layers ---------------------------------------------------------------------------------- */

/* Adds a node of an operator with weights [dims] and, where has_bias, a bias [dims[0]]. */
static void add_weighted(making *m, const char *op_type, const char *layer, size_t rank,
                         const int64_t *dims, bool has_bias)
{
    const size_t n_receptive = rank == 4 ? (size_t)(dims[2] * dims[3]) : 1;
    const weights_layer random = {.scheme = m->plan->scheme,
                                  .seed = m->plan->seed,
                                  .index = m->n_layers++,
                                  .fan_in = (double)dims[1] * (double)n_receptive,
                                  .fan_out = (double)dims[0] * (double)n_receptive};
    if (m->status != CLG_OK || random.fan_in * (double)dims[0] > MAX_ELEMENTS) {
        if (m->status == CLG_OK) refuse(m, "'%s' has more than 2 GiB of weights", layer);
        return;
    }
    const size_t n_bias = (size_t)dims[0], n = n_bias * (size_t)dims[1] * n_receptive;
    float *weights = must_alloc(n, sizeof *weights);
    char *names[2] = {NULL, NULL};
    weights_fill(&random, weights, n);
    names[0] = add_constant(m, layer, "weight", rank, dims, weights, n);
    m->n_elements += n;
    if (has_bias) {
        float *bias = must_alloc(n_bias, sizeof *bias);
        weights_fill_bias(&random, bias, n_bias);
        names[1] = add_constant(m, layer, "bias", 1, dims, bias, n_bias);
        m->n_elements += n_bias;
    }
    add_node(m, op_type, layer, NULL, has_bias ? 2 : 1, (const char *const *)names);
    for (size_t i = 0; i < 2; i++) free(names[i]);
}

static void add_batchnorm(making *m, const char *layer)
{
    static const struct {
        const char *name;
        float number;
    } parts[] = {{"norm.weight", 1}, {"norm.bias", 0}, {"norm.mean", 0}, {"norm.var", 1}};
    char *names[4];
    if (!m->plan->batchnorm) return;
    for (size_t i = 0; i < 4; i++)
        names[i] = add_filled(m, layer, parts[i].name, m->dims[0], parts[i].number);
    m->n_elements += 2 * (uint64_t)m->dims[0];
    add_node(m, "BatchNormalization", layer, "norm", 4, (const char *const *)names);
    for (size_t i = 0; i < 4; i++) free(names[i]);
}

/* x (1 + erf(x / sqrt(2))) / 2 */
static void add_gelu(making *m, const char *layer)
{
    static const float numbers[] = {0.70710678118654752f, 1, 0.5f};
    static const char *const parts[] = {"gelu.scale", "gelu.one", "gelu.half"};
    char *x = must_copy(m->value), *names[3];
    for (size_t i = 0; i < 3; i++)
        names[i] =
            add_constant(m, layer, parts[i], 0, NULL,
                         memcpy(must_alloc(1, sizeof(float)), &numbers[i], sizeof(float)), 1);
    add_node(m, "Mul", layer, "gelu.scaled", 1, (const char *[]){names[0]});
    add_node(m, "Erf", layer, "gelu.erf", 0, NULL);
    add_node(m, "Add", layer, "gelu.sum", 1, (const char *[]){names[1]});
    add_node(m, "Mul", layer, "gelu.product", 1, (const char *[]){x});
    add_node(m, "Mul", layer, "gelu", 1, (const char *[]){names[2]});
    for (size_t i = 0; i < 3; i++) free(names[i]);
    free(x);
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
    if (a->op_type)
        add_node(m, a->op_type, layer, a->word, 0, NULL);
    else
        add_gelu(m, layer);
}

static void add_dropout(making *m, const char *layer)
{
    if (m->plan->dropout == 0) return;
    float *ratio = must_alloc(1, sizeof *ratio);
    *ratio = (float)m->plan->dropout;
    char *name = add_constant(m, layer, "dropout.ratio", 0, NULL, ratio, 1);
    add_node(m, "Dropout", layer, "dropout", 1, (const char *[]){name});
    free(name);
}

/* Adds a convolution that keeps height and width, then pooling. */
static void add_conv(making *m, size_t index)
{
    const int64_t k = (int64_t)m->plan->kernel, p = (int64_t)m->plan->pool;
    char *layer = must_printf("conv%zu", index + 1);
    const int64_t dims[] = {(int64_t)m->plan->convs[index], m->dims[0], k, k};
    add_weighted(m, "Conv", layer, 4, dims, !m->plan->batchnorm);
    set_ints(m, "kernel_shape", 2, (int64_t[]){k, k});
    set_ints(m, "pads", 4, (int64_t[]){k / 2, k / 2, k / 2, k / 2});
    m->dims[0] = dims[0];
    add_batchnorm(m, layer);
    add_activation(m, layer);
    if (m->status == CLG_OK && (m->dims[1] < p || m->dims[2] < p))
        refuse(m, "'%s': nothing is left of %lld x %lld pixels after --pool %lld", layer,
               (long long)m->dims[1], (long long)m->dims[2], (long long)p);
    if (p > 1) {
        add_node(m, "MaxPool", layer, "pool", 0, NULL);
        set_ints(m, "kernel_shape", 2, (int64_t[]){p, p});
        set_ints(m, "strides", 2, (int64_t[]){p, p});
        m->dims[1] /= p;
        m->dims[2] /= p;
    }
    free(layer);
}

static void add_dense(making *m, size_t index)
{
    const bool is_last = index + 1 == m->plan->n_denses;
    char *layer = must_printf("dense%zu", index + 1);
    const int64_t dims[] = {(int64_t)m->plan->denses[index], m->dims[0]};
    if (is_last) m->output = "logits";
    add_weighted(m, "Gemm", layer, 2, dims, is_last || !m->plan->batchnorm);
    if (m->status == CLG_OK) m->status = clg_builder_attribute_int(m->builder, "transB", 1);
    m->dims[0] = dims[0];
    if (!is_last) {
        add_batchnorm(m, layer);
        add_activation(m, layer);
        add_dropout(m, layer);
    }
    free(layer);
}

/* ---- networks -------------------------------------------------------------------------------- */

static void add_input(making *m)
{
    const network_plan *plan = m->plan;
    int64_t dims[CLG_MAX_RANK + 1] = {-1};
    const char *names[CLG_MAX_RANK + 1] = {"batch"};
    const char *name = plan->rank == 1 ? "x" : "image";
    for (size_t i = 0; i < plan->rank; i++) dims[i + 1] = plan->dims[i];
    for (size_t i = 0; i < 3; i++) m->dims[i] = i < plan->rank ? plan->dims[i] : 1;
    m->value = must_copy(name);
    m->status = clg_builder_input(m->builder, name, CLG_FLOAT32, plan->rank + 1, dims, names);
}

int network_build(const network_plan *plan, clg_model **out_model, uint64_t *out_n_elements)
{
    making m = {.plan = plan};
    *out_model = NULL;
    m.status = clg_builder_create(NETWORK_OPSET, &m.builder);
    if (m.status != CLG_OK) return fail_status(m.status, STAGE_WORK, NULL);
    add_input(&m);
    for (size_t i = 0; i < plan->n_convs; i++) add_conv(&m, i);
    if (plan->rank > 1) {
        add_node(&m, "Flatten", "flatten", NULL, 0, NULL);
        m.dims[0] *= m.dims[1] * m.dims[2];
        m.dims[1] = m.dims[2] = 1;
    }
    for (size_t i = 0; i < plan->n_denses; i++) add_dense(&m, i);
    if (m.status == CLG_OK) m.status = clg_builder_output(m.builder, m.value);
    if (m.status == CLG_OK) m.status = clg_builder_build(m.builder, out_model);
    *out_n_elements = m.n_elements;
    clg_builder_free(m.builder);
    free(m.value);
    if (m.code != CODE_DONE) return m.code;
    return m.status == CLG_OK ? CODE_DONE : fail_status(m.status, STAGE_WORK, NULL);
}
