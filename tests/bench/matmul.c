/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures which fraction of the device's multiply-add peak a MatMul model reaches through the
 * public interface, and compares it with oneDNN where the build found libdnnl-dev. Both are
 * measured alternately, several times; the result is the ratio within each round, so that a
 * temporarily slow machine does not affect it.
 *
 *     matmul [M N K [ROUNDS [left|right [IN_A_ROW]]]]     default 1024 1024 1024, 9 rounds, right,
 *                                                         1
 *
 * "right": the right matrix is constant, as in a fully connected layer; "left": the left one, as in
 * a 1x1 convolution. oneDNN's matmul primitive gets the same inputs, with the constant matrix
 * converted once to the layout that it prefers, and all cores. IN_A_ROW: the model has this many
 * independent GEMMs, each with its own input, and oneDNN's primitive runs as often, so that the
 * cost of starting and waiting is amortised. clgraph may start a GEMM before the previous one ends;
 * oneDNN computes them one by one.
 */
#include "support/fixtures/sized_data.h"

#include "peer/onednn.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>

#define MAX_ROUNDS 99
#define MAX_IN_A_ROW 64

typedef struct product {
    int64_t m, n, k;
    bool constant_a;
    int in_a_row;
    float *a, *b, *c, *peer_c;
    clg_session *session;
    onednn_matmul *peer;
} product;

static double seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Sleeps until the worker threads of the other library, which may spin while idle, are asleep. */
static void settle(void) { (void)thrd_sleep(&(struct timespec){.tv_nsec = 50000000}, NULL); }

static bool make_matrices(product *p)
{
    const size_t na = (size_t)(p->m * p->k), nb = (size_t)(p->k * p->n), nc = (size_t)(p->m * p->n);
    p->a = malloc(na * sizeof(float));
    p->b = malloc(nb * sizeof(float));
    p->c = malloc(nc * sizeof(float));
    p->peer_c = malloc((size_t)p->in_a_row * nc * sizeof(float));
    if (!p->a || !p->b || !p->c || !p->peer_c) return false;
    for (size_t i = 0; i < na; i++) p->a[i] = (float)((i * 7907) % 103) * 0.01f - 0.5f;
    for (size_t i = 0; i < nb; i++) p->b[i] = (float)((i * 7919) % 101) * 0.01f - 0.5f;
    return true;
}

/* Writes the name of the i-th input or output. */
static const char *numbered(char buffer[16], char letter, int i)
{
    (void)snprintf(buffer, 16, "%c%d", letter, i);
    return buffer;
}

static clg_status add_matmul(const product *p, clg_builder *b, int i)
{
    char x[16], y[16];
    const int64_t dims[] = {p->constant_a ? p->k : p->m, p->constant_a ? p->n : p->k};
    numbered(x, 'x', i);
    numbered(y, 'y', i);
    clg_status s = clg_builder_input(b, x, CLG_FLOAT32, 2, dims, NULL);
    if (s == CLG_OK)
        s = clg_builder_node(
            b, NULL, "MatMul", y, 2,
            (const char *const[]){p->constant_a ? "w" : x, p->constant_a ? x : "w"}, 1,
            (const char *const[]){y});
    return s == CLG_OK ? clg_builder_output(b, y) : s;
}

static clg_status build(const product *p, clg_model **out_model)
{
    const int64_t dims[] = {p->constant_a ? p->m : p->k, p->constant_a ? p->k : p->n};
    clg_builder *b;
    clg_status s = clg_builder_create(13, &b);
    if (s == CLG_OK) s = sized_constant(b, "w", CLG_FLOAT32, 2, dims, p->constant_a ? p->a : p->b);
    for (int i = 0; i < p->in_a_row && s == CLG_OK; i++) s = add_matmul(p, b, i);
    if (s == CLG_OK) s = clg_builder_build(b, out_model);
    clg_builder_free(b);
    return s;
}

/* Runs the GEMMs by clgraph, or by oneDNN. */
static bool run_once(product *p, bool peer)
{
    if (!peer) return clg_session_run(p->session) == CLG_OK;
    for (int i = 0; i < p->in_a_row; i++)
        if (!onednn_run(p->peer, p->peer_c + (size_t)i * (size_t)(p->m * p->n))) return false;
    return true;
}

/* Runs at least 8 times and for 0.1 s; returns the best throughput in GFLOP/s, 0 on failure. */
static double time_matmul(product *p, bool peer)
{
    const double flops = 2.0 * (double)p->m * (double)p->n * (double)p->k * p->in_a_row;
    double best = 1e30, begin = seconds();
    settle();
    for (int i = 0; i < 8 || seconds() - begin < 0.15; i++) {
        const double start = seconds();
        if (!run_once(p, peer)) return 0;
        const double spent = seconds() - start;
        if (spent < best) best = spent;
    }
    return flops / best * 1e-9;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, compare);
    return v[n / 2];
}

static clg_status measure(clg_context *context, product *p, int rounds)
{
    double of_peak[MAX_ROUNDS], of_peer[MAX_ROUNDS];
    for (int r = 0; r < rounds; r++) {
        clg_measurement peak = CLG_MEASUREMENT_INIT;
        settle();
        clg_status s = clg_context_measure(context, &peak);
        if (s != CLG_OK) return s;
        const double gflops = time_matmul(p, false);
        if (gflops <= 0) return CLG_ERROR_DEVICE_LOST;
        of_peak[r] = gflops / peak.fp32_gflops;
        printf("peak %7.1f GFLOP/s, product %7.1f, %5.1f %%", peak.fp32_gflops, gflops,
               100 * of_peak[r]);
        if (p->peer) {
            const double peer = time_matmul(p, true);
            of_peer[r] = peer > 0 ? gflops / peer : 0;
            printf("; oneDNN %7.1f, %5.1f %% of it", peer, 100 * of_peer[r]);
        }
        putchar('\n');
    }
    printf("%lld x %lld x %lld, %d in a row: median %.1f %% of the peak", (long long)p->m,
           (long long)p->n, (long long)p->k, p->in_a_row, 100 * median(of_peak, rounds));
    if (p->peer) printf(", %.1f %% of oneDNN", 100 * median(of_peer, rounds));
    printf(" on %s\n", clg_context_device(context)->name);
    return CLG_OK;
}

/* Prints the largest difference between both results, relative to the largest element. */
static void compare_results(const product *p)
{
    double max = 0, off = 0;
    for (int64_t i = 0; i < p->m * p->n; i++) {
        const double d = fabs((double)p->c[i] - (double)p->peer_c[i]);
        if (!(d <= off)) off = d;
        if (fabs((double)p->c[i]) > max) max = fabs((double)p->c[i]);
    }
    printf("largest difference from oneDNN %.2g of the largest value\n", max > 0 ? off / max : off);
}

/* Binds one input to all GEMMs, and a separate output to each. */
static clg_status bind(clg_context *context, product *p, clg_value **out_x, clg_value **out_y)
{
    const int64_t x_dims[] = {p->constant_a ? p->k : p->m, p->constant_a ? p->n : p->k},
                  y_dims[] = {p->m, p->n};
    char name[16];
    clg_status s = clg_value_create_device(context, CLG_FLOAT32, 2, x_dims, out_x);
    if (s == CLG_OK)
        s = clg_value_write(*out_x, p->constant_a ? p->b : p->a,
                            (size_t)(x_dims[0] * x_dims[1]) * sizeof(float));
    for (int i = 0; i < p->in_a_row && s == CLG_OK; i++) {
        s = clg_value_create_device(context, CLG_FLOAT32, 2, y_dims, &out_y[i]);
        if (s == CLG_OK) s = clg_session_set_input(p->session, numbered(name, 'x', i), *out_x);
        if (s == CLG_OK) s = clg_session_bind_output(p->session, numbered(name, 'y', i), out_y[i]);
    }
    return s;
}

static clg_status bench(clg_context *context, product *p, int rounds)
{
    clg_model *model = NULL;
    clg_value *x = NULL, *y[MAX_IN_A_ROW] = {NULL};
    clg_status s = build(p, &model);
    if (s == CLG_OK) s = clg_session_create(context, model, NULL, &p->session);
    if (s == CLG_OK) s = bind(context, p, &x, y);
    if (s == CLG_OK) s = clg_session_run(p->session);
    if (s == CLG_OK)
        s = clg_value_read(y[p->in_a_row - 1], p->c, (size_t)(p->m * p->n) * sizeof(float));
    p->peer = onednn_create(p->m, p->n, p->k, p->a, p->b, p->constant_a);
    if (s == CLG_OK && p->peer && run_once(p, true)) compare_results(p);
    if (s == CLG_OK) s = measure(context, p, rounds);
    onednn_free(p->peer);
    for (int i = 0; i < p->in_a_row; i++) clg_value_free(y[i]);
    clg_value_free(x);
    clg_session_free(p->session);
    clg_model_free(model);
    return s;
}

static int64_t number(const char *text) { return strtoll(text, NULL, 10); }

int main(int argc, char **argv)
{
    product p = {.m = argc > 3 ? number(argv[1]) : 1024,
                 .n = argc > 3 ? number(argv[2]) : 1024,
                 .k = argc > 3 ? number(argv[3]) : 1024,
                 .constant_a = argc > 5 && strcmp(argv[5], "left") == 0,
                 .in_a_row = argc > 6 ? (int)number(argv[6]) : 1};
    const int rounds = argc > 4 ? (int)number(argv[4]) : 9;
    if (p.m < 1 || p.n < 1 || p.k < 1 || rounds < 1 || rounds > MAX_ROUNDS) return 2;
    if (p.in_a_row < 1 || p.in_a_row > MAX_IN_A_ROW) return 2;
    clg_context *context = NULL;
    clg_status s = make_matrices(&p) ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (s == CLG_OK) s = clg_context_create(NULL, NULL, &context);
    if (s == CLG_OK) s = bench(context, &p, rounds);
    if (s != CLG_OK) fprintf(stderr, "matmul: %s\n", clg_last_error());
    clg_context_free(context);
    free(p.a);
    free(p.b);
    free(p.c);
    free(p.peer_c);
    return s == CLG_OK ? 0 : 1;
}
