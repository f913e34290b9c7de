/* SPDX-License-Identifier: Apache-2.0
 *
 * Two networks as tables of layers: dense layers with ReLU, and LSTM.
 */
#include "suite.h"

#define N_STEPS 128

struct dense_layer {
    int64_t n_inputs, n_outputs;
};

static const struct dense_layer mlp_layers[] = {{784, 2048}, {2048, 2048}, {2048, 10}, {0, 0}};

struct lstm_layer {
    int64_t n_inputs, n_units;
};

static const struct lstm_layer lstm_layers[] = {{512, 512}, {512, 512}, {0, 0}};

static void add_dense(net *n, const void *table, int64_t shrink)
{
    const struct dense_layer *rows = table;
    const int64_t n_inputs = rows[0].n_inputs / shrink;
    const char *x = net_input(n, "x", CLG_FLOAT32, 1, &n_inputs);
    for (int i = 0; rows[i].n_inputs > 0; i++) {
        const bool is_last = rows[i + 1].n_inputs == 0;
        const char *layer = net_name(n, "dense%d", i);
        x = net_gemm(n, x, layer, rows[i].n_inputs / shrink,
                     is_last ? rows[i].n_outputs : rows[i].n_outputs / shrink);
        if (!is_last) x = net_node(n, "Relu", net_name(n, "%s.relu", layer), 1, &x);
    }
    net_output(n, x);
}

/* x: [steps, batch, n_inputs]. Sets out_values to the names of the state of each step,
 * [steps, 1, batch, units], and of the last step, [1, batch, units]. */
static void add_lstm_layer(net *n, const char *x, const char *layer, int64_t n_inputs, int64_t h,
                           const char *out_values[2])
{
    const char *inputs[4] = {x};
    inputs[1] = net_weights(n, net_name(n, "%s.input", layer), 3, (int64_t[]){1, 4 * h, n_inputs},
                            (double)h, (double)h);
    inputs[2] = net_weights(n, net_name(n, "%s.recurrent", layer), 3, (int64_t[]){1, 4 * h, h},
                            (double)h, (double)h);
    inputs[3] = net_weights(n, net_name(n, "%s.bias", layer), 2, (int64_t[]){1, 8 * h}, (double)h,
                            (double)h);
    out_values[0] = net_name(n, "%s.states", layer);
    out_values[1] = net_name(n, "%s.state", layer);
    net_node_to(n, "LSTM", layer, 4, inputs, 2, out_values);
    net_set_int(n, "hidden_size", h);
}

static const char *squeeze(net *n, const char *x, const char *name, int64_t axis)
{
    const char *axes = net_int64s(n, net_name(n, "%s.axes", name), 1, &axis);
    return net_node(n, "Squeeze", name, 2, (const char *[]){x, axes});
}

static void add_lstm(net *n, const void *table, int64_t shrink)
{
    const struct lstm_layer *rows = table;
    const int64_t dims[] = {N_STEPS / shrink, rows[0].n_inputs / shrink};
    const char *x = net_input(n, "x", CLG_FLOAT32, 2, dims);
    x = net_node(n, "Transpose", "steps_first", 1, &x);
    net_set_ints(n, "perm", 3, (int64_t[]){1, 0, 2});
    for (int i = 0; rows[i].n_units > 0; i++) {
        const char *values[2], *layer = net_name(n, "lstm%d", i);
        add_lstm_layer(n, x, layer, rows[i].n_inputs / shrink, rows[i].n_units / shrink, values);
        const bool is_last = rows[i + 1].n_units == 0;
        x = squeeze(n, values[is_last], net_name(n, "%s.squeeze", layer), is_last ? 0 : 1);
    }
    net_output(n, x);
}

const suite_model suite_mlp = {.name = "mlp",
                               .title = "MLP",
                               .input = "784 numbers",
                               .n_parameters = 5824522,
                               .scheme = WEIGHTS_KAIMING,
                               .add = add_dense,
                               .table = mlp_layers};

const suite_model suite_lstm = {.name = "lstm",
                                .title = "LSTM",
                                .input = "128 steps of 512 numbers",
                                .n_parameters = 4202496,
                                .scheme = WEIGHTS_PYTORCH,
                                .add = add_lstm,
                                .table = lstm_layers};
