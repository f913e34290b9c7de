/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a network of two layers in C, 784 -> 128 -> 10 with ReLU and Softmax, and runs it on a
 * batch of 32. Weights and inputs are synthetic; the first row is compared with the same network
 * computed on the host.
 */
#include <clgraph/clgraph.h>

#include <math.h>
#include <stdio.h>

enum { N_BATCH = 32, N_IN = 784, N_HIDDEN = 128, N_OUT = 10 };

static float w1[N_IN * N_HIDDEN], b1[N_HIDDEN], w2[N_HIDDEN * N_OUT], b2[N_OUT];
static float x[N_BATCH * N_IN], y[N_BATCH * N_OUT];

static void make_up(float *values, int n, float scale, float step)
{
    for (int i = 0; i < n; i++) values[i] = scale * sinf(step * (float)(i + 1));
}

static clg_status node(clg_builder *b, const char *op, const char *in, const char *weights,
                       const char *bias, const char *out)
{
    const char *inputs[3] = {in, weights, bias};
    return clg_builder_node(b, NULL, op, out, weights ? 3 : 1, inputs, 1, &out);
}

static clg_status build(clg_model **out_model)
{
    clg_builder *b;
    clg_status s = clg_builder_create(13, &b);
    if (s != CLG_OK) return s;
    s = clg_builder_input(b, "x", CLG_FLOAT32, 2, (const int64_t[]){-1, N_IN}, NULL);
    if (s == CLG_OK)
        s = clg_builder_constant(b, "w1", CLG_FLOAT32, 2, (const int64_t[]){N_IN, N_HIDDEN}, w1,
                                 sizeof w1);
    if (s == CLG_OK)
        s = clg_builder_constant(b, "b1", CLG_FLOAT32, 1, (const int64_t[]){N_HIDDEN}, b1,
                                 sizeof b1);
    if (s == CLG_OK)
        s = clg_builder_constant(b, "w2", CLG_FLOAT32, 2, (const int64_t[]){N_HIDDEN, N_OUT}, w2,
                                 sizeof w2);
    if (s == CLG_OK)
        s = clg_builder_constant(b, "b2", CLG_FLOAT32, 1, (const int64_t[]){N_OUT}, b2, sizeof b2);
    if (s == CLG_OK) s = node(b, "Gemm", "x", "w1", "b1", "sums");
    if (s == CLG_OK) s = node(b, "Relu", "sums", NULL, NULL, "hidden");
    if (s == CLG_OK) s = node(b, "Gemm", "hidden", "w2", "b2", "scores");
    if (s == CLG_OK) s = node(b, "Softmax", "scores", NULL, NULL, "y");
    if (s == CLG_OK) s = clg_builder_output(b, "y");
    if (s == CLG_OK) s = clg_builder_build(b, out_model);
    clg_builder_free(b);
    return s;
}

static clg_status predict(clg_context *context, clg_model *model)
{
    clg_session *session;
    clg_status s = clg_session_create(context, model, NULL, &session);
    if (s != CLG_OK) return s;
    s = clg_session_set_input_data(session, "x", CLG_FLOAT32, 2, (const int64_t[]){N_BATCH, N_IN},
                                   x, sizeof x);
    if (s == CLG_OK) s = clg_session_run(session);
    if (s == CLG_OK) s = clg_session_get_output_data(session, "y", y, sizeof y);
    clg_session_free(session);
    return s;
}

/* Computes the first row on the host, in double precision; returns the largest absolute difference
 * from the device's y. */
static double check_first_row(void)
{
    double hidden[N_HIDDEN], scores[N_OUT], sum = 0, worst = 0;
    for (int j = 0; j < N_HIDDEN; j++) {
        hidden[j] = (double)b1[j];
        for (int k = 0; k < N_IN; k++) hidden[j] += (double)x[k] * (double)w1[k * N_HIDDEN + j];
        if (hidden[j] < 0) hidden[j] = 0;
    }
    for (int j = 0; j < N_OUT; j++) {
        double score = (double)b2[j];
        for (int k = 0; k < N_HIDDEN; k++) score += hidden[k] * (double)w2[k * N_OUT + j];
        scores[j] = exp(score);
        sum += scores[j];
    }
    for (int j = 0; j < N_OUT; j++) {
        const double difference = fabs(scores[j] / sum - (double)y[j]);
        if (!isnan(worst) && !(difference <= worst)) worst = difference; /* keeps a NaN */
    }
    return worst;
}

int main(void)
{
    make_up(w1, N_IN * N_HIDDEN, 0.05f, 0.37f);
    make_up(b1, N_HIDDEN, 0.1f, 1.1f);
    make_up(w2, N_HIDDEN * N_OUT, 0.1f, 0.73f);
    make_up(b2, N_OUT, 0.1f, 2.3f);
    make_up(x, N_BATCH * N_IN, 1.0f, 0.013f);

    clg_context *context = NULL;
    clg_model *model = NULL;
    clg_status status = clg_context_create(NULL, NULL, &context);
    if (status == CLG_OK) status = build(&model);
    if (status == CLG_OK) status = predict(context, model);
    if (status != CLG_OK) fprintf(stderr, "mlp: %s\n", clg_last_error());
    if (status != CLG_OK && clg_last_hint()[0]) fprintf(stderr, "hint: %s\n", clg_last_hint());

    double worst = 0;
    if (status == CLG_OK) {
        worst = check_first_row();
        printf("batch of %d on %s: first row", N_BATCH, clg_context_device(context)->name);
        for (int j = 0; j < N_OUT; j++) printf(" %.4f", (double)y[j]);
        printf(", largest difference from the host %.1e\n", worst);
    }
    clg_model_free(model);
    clg_context_free(context);
    if (status == CLG_ERROR_NO_OPENCL || status == CLG_ERROR_NO_DEVICE) return 3;
    return status == CLG_OK && worst < 1e-5 ? 0 : 1;
}
