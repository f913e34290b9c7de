/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a linear regression with 10 inputs and 1 output by C calls, without an ONNX file, runs it
 * on a batch of 1000 rows, and compares the result with a computation on the host.
 */
#include <clgraph/clgraph.h>

#include <math.h>
#include <stdio.h>

enum { N_ROWS = 1000, N_FEATURES = 10 };

/* Builds the model y = x W + b, x: [rows, 10]. */
static clg_status build(const float *weights, const float *bias, clg_model **out_model)
{
    const char *const rows[] = {"rows", NULL};
    clg_builder *b;
    clg_status status = clg_builder_create(13, &b);
    if (status != CLG_OK) return status;
    status = clg_builder_input(b, "x", CLG_FLOAT32, 2, (const int64_t[]){-1, N_FEATURES}, rows);
    if (status == CLG_OK)
        status =
            clg_builder_constant(b, "weights", CLG_FLOAT32, 2, (const int64_t[]){N_FEATURES, 1},
                                 weights, N_FEATURES * sizeof *weights);
    if (status == CLG_OK)
        status = clg_builder_constant(b, "bias", CLG_FLOAT32, 1, (const int64_t[]){1}, bias,
                                      sizeof *bias);
    if (status == CLG_OK)
        status = clg_builder_node(b, NULL, "Gemm", "regression", 3,
                                  (const char *const[]){"x", "weights", "bias"}, 1,
                                  (const char *const[]){"y"});
    if (status == CLG_OK) status = clg_builder_output(b, "y");
    if (status == CLG_OK) status = clg_builder_build(b, out_model);
    clg_builder_free(b);
    return status;
}

static clg_status predict(clg_context *context, clg_model *model, const float *x, float *y)
{
    clg_session *session;
    clg_status status = clg_session_create(context, model, NULL, &session);
    if (status != CLG_OK) return status;
    status = clg_session_set_input_data(session, "x", CLG_FLOAT32, 2,
                                        (const int64_t[]){N_ROWS, N_FEATURES}, x,
                                        (size_t)N_ROWS * N_FEATURES * sizeof *x);
    if (status == CLG_OK) status = clg_session_run(session);
    if (status == CLG_OK) status = clg_session_get_output_data(session, "y", y, N_ROWS * sizeof *y);
    clg_session_free(session);
    return status;
}

int main(void)
{
    static float x[N_ROWS * N_FEATURES], y[N_ROWS];
    float weights[N_FEATURES];
    const float bias = 0.5f;
    for (int k = 0; k < N_FEATURES; k++) weights[k] = 0.1f * (float)(k + 1);
    for (int i = 0; i < N_ROWS * N_FEATURES; i++) x[i] = sinf(0.01f * (float)i);

    clg_context *context = NULL;
    clg_model *model = NULL;
    clg_status status = clg_context_create(NULL, NULL, &context);
    if (status == CLG_OK) status = build(weights, &bias, &model);
    if (status == CLG_OK) status = predict(context, model, x, y);
    if (status != CLG_OK) fprintf(stderr, "linear_regression: %s\n", clg_last_error());
    if (status != CLG_OK && clg_last_hint()[0]) fprintf(stderr, "hint: %s\n", clg_last_hint());

    double worst = 0;
    for (int r = 0; r < N_ROWS && status == CLG_OK; r++) {
        double want = (double)bias;
        for (int k = 0; k < N_FEATURES; k++)
            want += (double)x[r * N_FEATURES + k] * (double)weights[k];
        const double difference = fabs((double)y[r] - want);
        if (!isnan(worst) && !(difference <= worst)) worst = difference; /* keeps a NaN */
    }
    if (status == CLG_OK)
        printf("%d rows on %s: y[0] = %.6f, y[%d] = %.6f, largest difference from the host %.1e\n",
               N_ROWS, clg_context_device(context)->name, (double)y[0], N_ROWS - 1,
               (double)y[N_ROWS - 1], worst);
    clg_model_free(model);
    clg_context_free(context);
    if (status == CLG_ERROR_NO_OPENCL || status == CLG_ERROR_NO_DEVICE) return 3;
    return status == CLG_OK && worst < 1e-5 ? 0 : 1;
}
