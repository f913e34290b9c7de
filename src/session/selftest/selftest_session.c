/* SPDX-License-Identifier: Apache-2.0
 *
 * The self-test of what is around kernels: a small graph (Conv, Relu, MaxPool, MatMul, Add,
 * Softmax) is run twice in a new session, as an application runs it, with different inputs.
 * Uploads, packed weights, memory that steps share and the first run of a session are wrong on some
 * drivers whose kernels are right.
 */
#include "session/selftest/selftest.h"
#include "session/session.h"

#include <math.h>

/* Sizes of x [N,C,H,W], of the convolution's K channels of 3x3, and of the result [N,M]. */
enum { N = 2, C = 3, H = 13, W = 18, K = 8, M = 7, POOLED = (H / 2) * (W / 2), DEEP = K * POOLED };
/* Each probability's error, relative to 1. */
#define BOUND 4e-6

/* ---- numbers --------------------------------------------------------------------------------- */

/* Returns element i of x in a run, of a weight or of a bias: multiples of 1/64, at most 1/4. */
static double x_at(int run, int64_t i) { return (double)((i * 7 + run * 5) % 33 - 16) / 64; }
static double weight_at(int64_t i) { return (double)(i * 11 % 29 - 14) / 64; }
static double bias_at(int64_t i) { return (double)(i % 5 - 2) / 16; }

/* Returns pixel (row, column) of channel k of the convolution, padded by 1, after Relu. */
static double feature(int run, int64_t image, int64_t k, int64_t row, int64_t column)
{
    double sum = bias_at(k);
    for (int64_t tap = 0; tap < (int64_t)C * 9; tap++) {
        const int64_t c = tap / 9, r = row + tap % 9 / 3 - 1, q = column + tap % 3 - 1;
        if (r >= 0 && r < H && q >= 0 && q < W)
            sum += x_at(run, ((image * C + c) * H + r) * W + q) * weight_at(k * C * 9 + tap);
    }
    return fmax(sum, 0);
}

/* Returns element `at` of the flattened result of a 2x2 pooling of the features. */
static double pooled(int run, int64_t image, int64_t at)
{
    const int64_t k = at / POOLED, row = at % POOLED / (W / 2) * 2, column = at % (W / 2) * 2;
    return fmax(
        fmax(feature(run, image, k, row, column), feature(run, image, k, row, column + 1)),
        fmax(feature(run, image, k, row + 1, column), feature(run, image, k, row + 1, column + 1)));
}

/* Computes the probabilities of an image. */
static void expect(int run, int64_t image, double y[M])
{
    double sums[M], total = 0;
    for (int64_t m = 0; m < M; m++) sums[m] = bias_at(m);
    for (int64_t at = 0; at < DEEP; at++) {
        const double v = pooled(run, image, at);
        for (int64_t m = 0; m < M; m++) sums[m] += v * weight_at(at * M + m);
    }
    for (int64_t m = 0; m < M; m++) total += exp(sums[m]);
    for (int64_t m = 0; m < M; m++) y[m] = exp(sums[m]) / total;
}

/* ---- the model ------------------------------------------------------------------------------- */

static clg_status make_tensor(const shape *dims, double (*element)(int64_t i), tensor **out_tensor)
{
    CLG_TRY(tensor_create(CLG_FLOAT32, dims, out_tensor));
    for (int64_t i = 0; i < (*out_tensor)->n_elements; i++)
        tensor_set_float(*out_tensor, i, element(i));
    return CLG_OK;
}

static clg_status add_constant(graph *g, const char *name, shape dims, double (*element)(int64_t i),
                               value_id *out)
{
    tensor *t;
    CLG_TRY(make_tensor(&dims, element, &t));
    const clg_status status = graph_add_constant(g, name, t, out);
    tensor_free(t);
    return status;
}

/* Adds a node of which input 0 is *last, and makes *last its output. */
static clg_status add_node(graph *g, const char *op_type, size_t n_inputs, value_id inputs[3],
                           value_id *last, node_id *out_node)
{
    inputs[0] = *last;
    CLG_TRY(graph_add_value(g, op_type, last));
    return graph_add_node(g, "", op_type, op_type, n_inputs, inputs, 1, last, out_node);
}

static clg_status fill_graph(graph *g)
{
    static const int64_t pads[] = {1, 1, 1, 1}, two[] = {2, 2};
    value_id last, conv[3], matrix[3], add[3], alone[3];
    node_id n;
    CLG_TRY(graph_set_opset(g, "", 13));
    CLG_TRY(graph_add_value(g, "x", &last));
    g->values[last].dtype = CLG_FLOAT32;
    g->values[last].dims = (shape){4, {N, C, H, W}};
    CLG_TRY(graph_add_input(g, last));
    CLG_TRY(add_constant(g, "w", (shape){4, {K, C, 3, 3}}, weight_at, &conv[1]));
    CLG_TRY(add_constant(g, "b", (shape){1, {K}}, bias_at, &conv[2]));
    CLG_TRY(add_constant(g, "m", (shape){2, {DEEP, M}}, weight_at, &matrix[1]));
    CLG_TRY(add_constant(g, "a", (shape){1, {M}}, bias_at, &add[1]));
    CLG_TRY(add_node(g, "Conv", 3, conv, &last, &n));
    CLG_TRY(node_set_ints(g, n, "pads", 4, pads));
    CLG_TRY(add_node(g, "Relu", 1, alone, &last, &n));
    CLG_TRY(add_node(g, "MaxPool", 1, alone, &last, &n));
    CLG_TRY(node_set_ints(g, n, "kernel_shape", 2, two));
    CLG_TRY(node_set_ints(g, n, "strides", 2, two));
    CLG_TRY(add_node(g, "Flatten", 1, alone, &last, &n));
    CLG_TRY(add_node(g, "MatMul", 2, matrix, &last, &n));
    CLG_TRY(add_node(g, "Add", 2, add, &last, &n));
    CLG_TRY(add_node(g, "Softmax", 1, alone, &last, &n));
    return graph_add_output(g, last);
}

static clg_status make_model(clg_model **out_model)
{
    graph *g;
    CLG_TRY(graph_create("self-test", &g));
    const clg_status status = fill_graph(g);
    if (status == CLG_OK) return model_create(g, false, out_model);
    graph_free(g);
    return status;
}

/* ---- running --------------------------------------------------------------------------------- */

static clg_status set_input(clg_session *s, int run)
{
    static const shape dims = {4, {N, C, H, W}};
    tensor *t;
    clg_value *v;
    CLG_TRY(tensor_create(CLG_FLOAT32, &dims, &t));
    for (int64_t i = 0; i < t->n_elements; i++) tensor_set_float(t, i, x_at(run, i));
    clg_status status = value_create_host(t, &v);
    tensor_free(t);
    CLG_TRY(status);
    status = session_set_input(s, 0, v);
    value_free(v);
    return status;
}

static clg_status run_once(clg_session *s, int run, selftest_result *out)
{
    clg_value *v;
    double y[M];
    *out = (selftest_result){.bound = BOUND};
    CLG_TRY(set_input(s, run));
    CLG_TRY(session_run(s));
    CLG_TRY(session_output_host(s, 0, &v));
    for (int64_t image = 0; image < N; image++) {
        expect(run, image, y);
        for (int64_t m = 0; m < M; m++) {
            const double error = fabs(tensor_get_float(v->host, image * M + m) - y[m]);
            if (!(error <= out->worst)) out->worst = isnan(error) ? INFINITY : error;
        }
    }
    value_free(v);
    out->passed = out->worst <= out->bound;
    return CLG_OK;
}

clg_status selftest_session(device_context *context, clg_kernel_class kernel_class,
                            selftest_result out_results[SELFTEST_SESSION_RUNS])
{
    const exec_options options = {.kernel_class = kernel_class};
    clg_model *model;
    clg_session *s = NULL;
    CLG_TRY(make_model(&model));
    clg_status status = session_create(NULL, context, model, &options, NULL, NULL, NULL, &s);
    model_free(model);
    for (int run = 0; run < SELFTEST_SESSION_RUNS && status == CLG_OK; run++)
        status = run_once(s, run, &out_results[run]);
    session_free(s);
    return status;
}
