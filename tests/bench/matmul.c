/* SPDX-License-Identifier: Apache-2.0
 *
 * How much of the device's multiply-add peak a MatMul model reaches through the library's own interface. Peak and product are
 * measured in turn, several times; the ratio of each pair counts, so that a machine that is slow for a while does not decide.
 *
 *     matmul [M N K [ROUNDS]]        default 1024 1024 1024, 7 rounds
 */
#include <clgraph/inspect.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static clg_status build(int64_t n, int64_t k, clg_model **out_model)
{
    clg_builder *b;
    float *weights = malloc((size_t)(n * k) * sizeof *weights);
    if (!weights) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int64_t i = 0; i < n * k; i++) weights[i] = (float)((i * 7919) % 101 - 50) * 0.01f;
    clg_status s = clg_builder_create(13, &b);
    if (s == CLG_OK) s = clg_builder_input(b, "a", CLG_FLOAT32, 2, (const int64_t[]){-1, k}, NULL);
    if (s == CLG_OK)
        s = clg_builder_constant(b, "b", CLG_FLOAT32, 2, (const int64_t[]){k, n}, weights);
    if (s == CLG_OK)
        s = clg_builder_node(b, NULL, "MatMul", "product", 2, (const char *const[]){"a", "b"}, 1,
                             (const char *const[]){"c"});
    if (s == CLG_OK) s = clg_builder_output(b, "c");
    if (s == CLG_OK) s = clg_builder_build(b, out_model);
    clg_builder_free(b);
    free(weights);
    return s;
}

/* The best of several runs on device values: GFLOP/s. */
static clg_status time_product(clg_session *session, double flops, double *out_gflops)
{
    double best = 1e30;
    for (int i = 0; i < 8; i++) {
        double start = seconds();
        clg_status s = clg_session_run(session);
        if (s != CLG_OK) return s;
        double spent = seconds() - start;
        if (spent < best) best = spent;
    }
    *out_gflops = flops / best * 1e-9;
    return CLG_OK;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static clg_status measure(clg_context *context, clg_session *session, double flops, int rounds)
{
    double ratios[99];
    for (int r = 0; r < rounds; r++) {
        clg_measurement peak = CLG_MEASUREMENT_INIT;
        double gflops;
        clg_status s = clg_context_measure(context, &peak);
        if (s == CLG_OK) s = time_product(session, flops, &gflops);
        if (s != CLG_OK) return s;
        ratios[r] = gflops / peak.fp32_gflops;
        printf("peak %7.1f GFLOP/s, product %7.1f GFLOP/s, %5.1f %%\n", peak.fp32_gflops, gflops,
               100 * ratios[r]);
    }
    qsort(ratios, (size_t)rounds, sizeof *ratios, compare);
    printf("median %.1f %% of the peak on %s\n", 100 * ratios[rounds / 2],
           clg_context_device(context)->name);
    return CLG_OK;
}

int main(int argc, char **argv)
{
    int64_t m = argc > 3 ? atoll(argv[1]) : 1024, n = argc > 3 ? atoll(argv[2]) : 1024,
            k = argc > 3 ? atoll(argv[3]) : 1024;
    int rounds = argc > 4 ? atoi(argv[4]) : 7;
    if (m < 1 || n < 1 || k < 1 || rounds < 1 || rounds > 99) return 2;
    clg_context *context = NULL;
    clg_model *model = NULL;
    clg_session *session = NULL;
    clg_value *a = NULL, *c = NULL;
    clg_status s = clg_context_create(NULL, NULL, &context);
    if (s == CLG_OK) s = build(n, k, &model);
    if (s == CLG_OK) s = clg_session_create(context, model, NULL, &session);
    if (s == CLG_OK)
        s = clg_value_create_device(context, CLG_FLOAT32, 2, (const int64_t[]){m, k}, &a);
    if (s == CLG_OK)
        s = clg_value_create_device(context, CLG_FLOAT32, 2, (const int64_t[]){m, n}, &c);
    if (s == CLG_OK) s = clg_session_set_input(session, "a", a);
    if (s == CLG_OK) s = clg_session_bind_output(session, "c", c);
    if (s == CLG_OK) s = clg_session_run(session);
    if (s == CLG_OK) s = measure(context, session, 2.0 * (double)m * (double)n * (double)k, rounds);
    if (s != CLG_OK) fprintf(stderr, "matmul: %s\n", clg_last_error());
    clg_value_free(c);
    clg_value_free(a);
    clg_session_free(session);
    clg_model_free(model);
    clg_context_free(context);
    return s == CLG_OK ? 0 : 1;
}
