/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds graphs node by node. See net.h.
 */
#include "net.h"

#include "output.h"

#include <stdlib.h>
#include <string.h>

/* 2 GiB: what an ONNX file without external data holds. */
#define MAX_ELEMENTS 0x1p29

void net_begin(net *n, int64_t opset, weights_scheme scheme, uint64_t seed)
{
    *n = (net){.scheme = scheme, .seed = seed};
    n->status = clg_builder_create(opset, &n->builder);
}

int net_end(net *n, clg_model **out_model)
{
    *out_model = NULL;
    if (n->status == CLG_OK) n->status = clg_builder_build(n->builder, out_model);
    const int code = n->code != CODE_DONE  ? n->code
                     : n->status == CLG_OK ? CODE_DONE
                                           : fail_status(n->status, STAGE_WORK, NULL);
    clg_builder_free(n->builder);
    for (size_t i = 0; i < n->n_names; i++) free(n->names[i]);
    free(n->names);
    *n = (net){0};
    return code;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

const char *net_name(net *n, const char *format, ...)
{
    va_list args;
    if (n->n_names == n->capacity) {
        n->capacity = n->capacity * 2 + 64;
        n->names = must_resize(n->names, n->capacity, sizeof *n->names);
    }
    va_start(args, format);
    n->names[n->n_names] = must_vprintf(format, args);
    va_end(args);
    return n->names[n->n_names++];
}

const char *net_input(net *n, const char *name, clg_dtype dtype, size_t rank, const int64_t *dims)
{
    int64_t all[CLG_MAX_RANK + 1] = {-1};
    const char *names[CLG_MAX_RANK + 1] = {"batch"};
    for (size_t i = 0; i < rank; i++) all[i + 1] = dims[i];
    if (n->status == CLG_OK)
        n->status = clg_builder_input(n->builder, name, dtype, rank + 1, all, names);
    return name;
}

void net_node_to(net *n, const char *op_type, const char *name, size_t n_inputs,
                 const char *const *inputs, size_t n_outputs, const char *const *outputs)
{
    if (n->status == CLG_OK)
        n->status =
            clg_builder_node(n->builder, "", op_type, name, n_inputs, inputs, n_outputs, outputs);
}

const char *net_node(net *n, const char *op_type, const char *name, size_t n_inputs,
                     const char *const *inputs)
{
    const char *output = net_name(n, "%s.output", name);
    net_node_to(n, op_type, name, n_inputs, inputs, 1, &output);
    return output;
}

void net_set_int(net *n, const char *name, int64_t number)
{
    if (n->status == CLG_OK) n->status = clg_builder_attribute_int(n->builder, name, number);
}

void net_set_ints(net *n, const char *name, size_t count, const int64_t *numbers)
{
    if (n->status == CLG_OK)
        n->status = clg_builder_attribute_ints(n->builder, name, count, numbers);
}

void net_output(net *n, const char *name)
{
    if (n->status == CLG_OK) n->status = clg_builder_output(n->builder, name);
}

/* ---- constants ------------------------------------------------------------------------------- */

const char *net_floats(net *n, const char *name, size_t rank, const int64_t *dims, float *data)
{
    size_t count = 1;
    for (size_t i = 0; i < rank; i++) count *= (size_t)dims[i];
    if (n->status == CLG_OK)
        n->status = clg_builder_constant(n->builder, name, CLG_FLOAT32, rank, dims, data,
                                         count * sizeof *data);
    free(data);
    return name;
}

const char *net_filled(net *n, const char *name, int64_t count, float number)
{
    float *data = must_alloc((size_t)count, sizeof *data);
    for (int64_t i = 0; i < count; i++) data[i] = number;
    return net_floats(n, name, 1, &count, data);
}

const char *net_scalar(net *n, const char *name, float number)
{
    float *data = must_alloc(1, sizeof *data);
    *data = number;
    return net_floats(n, name, 0, NULL, data);
}

const char *net_int64s(net *n, const char *name, size_t count, const int64_t *numbers)
{
    const int64_t dim = (int64_t)count;
    if (n->status == CLG_OK)
        n->status = clg_builder_constant(n->builder, name, CLG_INT64, 1, &dim, numbers,
                                         count * sizeof *numbers);
    return name;
}

/* ---- layers ---------------------------------------------------------------------------------- */

const char *net_weights(net *n, const char *name, size_t rank, const int64_t *dims, double fan_in,
                        double fan_out)
{
    const weights_layer random = {.scheme = n->scheme,
                                  .seed = n->seed,
                                  .index = n->n_layers++,
                                  .fan_in = fan_in,
                                  .fan_out = fan_out};
    double count = 1;
    for (size_t i = 0; i < rank; i++) count *= (double)dims[i];
    if (n->status != CLG_OK) return NULL;
    if (count > MAX_ELEMENTS) {
        n->code = fail_usage("'%s' has more than 2 GiB of weights", printable(name));
        n->status = CLG_ERROR_INVALID_ARGUMENT;
        return NULL;
    }
    float *weights = must_alloc((size_t)count, sizeof *weights);
    weights_fill(&random, weights, (size_t)count);
    n->n_elements += (uint64_t)count;
    return net_floats(n, name, rank, dims, weights);
}

const char *net_bias(net *n, const char *name, int64_t count, double fan_in)
{
    const weights_layer random = {
        .scheme = n->scheme, .seed = n->seed, .index = n->n_layers - 1, .fan_in = fan_in};
    if (n->status != CLG_OK) return NULL;
    float *bias = must_alloc((size_t)count, sizeof *bias);
    weights_fill_bias(&random, bias, (size_t)count);
    n->n_elements += (uint64_t)count;
    return net_floats(n, name, 1, &count, bias);
}

void net_norm_parameters(net *n, const char *layer, int64_t count, size_t n_parts,
                         const char **out_names)
{
    static const struct {
        const char *name;
        float number;
    } parts[] = {{"weight", 1}, {"bias", 0}, {"mean", 0}, {"var", 1}};
    for (size_t i = 0; i < n_parts; i++)
        out_names[i] =
            net_filled(n, net_name(n, "%s.%s", layer, parts[i].name), count, parts[i].number);
    n->n_elements += 2 * (uint64_t)count;
}

const char *net_gemm(net *n, const char *x, const char *layer, int64_t n_in, int64_t n_out)
{
    const char *inputs[3] = {x};
    inputs[1] = net_weights(n, net_name(n, "%s.weight", layer), 2, (int64_t[]){n_out, n_in},
                            (double)n_in, (double)n_out);
    inputs[2] = net_bias(n, net_name(n, "%s.bias", layer), n_out, (double)n_in);
    const char *y = net_node(n, "Gemm", layer, 3, inputs);
    net_set_int(n, "transB", 1);
    return y;
}

const char *net_gelu(net *n, const char *x, const char *layer)
{
    static const float numbers[] = {0.70710678118654752f, 1, 0.5f};
    static const char *const parts[] = {"scale", "one", "half"};
    const char *names[3];
    for (size_t i = 0; i < 3; i++)
        names[i] = net_scalar(n, net_name(n, "%s.gelu.%s", layer, parts[i]), numbers[i]);
    const char *y =
        net_node(n, "Mul", net_name(n, "%s.gelu.scaled", layer), 2, (const char *[]){x, names[0]});
    y = net_node(n, "Erf", net_name(n, "%s.gelu.erf", layer), 1, &y);
    y = net_node(n, "Add", net_name(n, "%s.gelu.sum", layer), 2, (const char *[]){y, names[1]});
    y = net_node(n, "Mul", net_name(n, "%s.gelu.product", layer), 2, (const char *[]){y, x});
    return net_node(n, "Mul", net_name(n, "%s.gelu", layer), 2, (const char *[]){y, names[2]});
}
