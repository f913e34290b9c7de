/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph that is built node by node with the public builder: names, constants and random weights.
 * The first failure is kept, and later calls do nothing, so that callers check net_end only.
 */
#ifndef CLTOOL_NET_H
#define CLTOOL_NET_H

#include "weights.h"

#include <clgraph/clgraph.h>

typedef struct net {
    clg_builder *builder;
    weights_scheme scheme;
    uint64_t seed;
    uint32_t n_layers;   /* with random weights, so far */
    uint64_t n_elements; /* of trained parameters, so far */
    clg_status status;   /* of the first failure */
    int code;            /* of a failure that is already recorded; CODE_DONE: none */
    char **names;        /* every name, until net_end */
    size_t n_names, capacity;
} net;

/* Starts a graph with ONNX's operators of version `opset`. */
void net_begin(net *n, int64_t opset, weights_scheme scheme, uint64_t seed);
/* Checks the graph and makes a model of it; frees the net in any case. */
int net_end(net *n, clg_model **out_model);

/* Formats a name, which lives until net_end. */
const char *net_name(net *n, const char *format, ...) TOOL_PRINTF(2, 3);
/* Adds an input with the free first dimension "batch" and `rank` more; returns its name. */
const char *net_input(net *n, const char *name, clg_dtype dtype, size_t rank, const int64_t *dims);
/* Adds a node whose only output is "NAME.output"; returns that. */
const char *net_node(net *n, const char *op_type, const char *name, size_t n_inputs,
                     const char *const *inputs);
/* As net_node, with outputs of the caller's names; "" omits one. */
void net_node_to(net *n, const char *op_type, const char *name, size_t n_inputs,
                 const char *const *inputs, size_t n_outputs, const char *const *outputs);
/* Set attributes of the last node. */
void net_set_int(net *n, const char *name, int64_t number);
void net_set_ints(net *n, const char *name, size_t count, const int64_t *numbers);
void net_output(net *n, const char *name);

/* Add constants; return their names. net_floats takes ownership of data, which it frees. */
const char *net_floats(net *n, const char *name, size_t rank, const int64_t *dims, float *data);
const char *net_filled(net *n, const char *name, int64_t count, float number);
const char *net_scalar(net *n, const char *name, float number);
const char *net_int64s(net *n, const char *name, size_t count, const int64_t *numbers);

/* Adds the random weights of the next layer, see weights.h; returns its name, NULL after a failure.
 */
const char *net_weights(net *n, const char *name, size_t rank, const int64_t *dims, double fan_in,
                        double fan_out);
/* Adds the bias of the layer whose weights were added last. */
const char *net_bias(net *n, const char *name, int64_t count, double fan_in);
/* Adds gamma, beta, mean and variance of a normalization that has no effect yet, as "LAYER.weight"
 * and so on; n_parts 2: only gamma and beta, 4: all. */
void net_norm_parameters(net *n, const char *layer, int64_t count, size_t n_parts,
                         const char **out_names);
/* Adds x W^T + b with random W and b; x: [batch, n_in]. Returns the result's name. */
const char *net_gemm(net *n, const char *x, const char *layer, int64_t n_in, int64_t n_out);
/* Adds x (1 + erf(x / sqrt(2))) / 2, with nodes "LAYER.gelu..."; returns the result's name. */
const char *net_gelu(net *n, const char *x, const char *layer);

#endif
