/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares MatMul and Gemm with a reference in double. See gemm_cases.h.
 */
#include "support/cases/gemm_cases.h"

#include "support/fixtures/graph_text.h"

#include "tensor/value.h"

#include <math.h>
#include <stdio.h>

double gemm_tolerance(clg_dtype dtype)
{
    return dtype == CLG_FLOAT16    ? 1e-3
           : dtype == CLG_BFLOAT16 ? 4e-3
           : dtype == CLG_FLOAT64  ? 1e-12
                                   : GEMM_FLOAT_TOLERANCE;
}

double *gemm_numbers(clg_dtype dtype, int64_t n)
{
    double *x = run_node_random(n);
    for (int64_t i = 0; i < n && dtype == CLG_BFLOAT16; i++) x[i] = nearbyint(x[i] * 128) / 128;
    return x;
}

double gemm_scale(int64_t k) { return k > 1 ? sqrt((double)k) : 1.0; }

void gemm_reference(double *out, int64_t m, int64_t n, int64_t k, const double *a, int64_t a_rs,
                    int64_t a_cs, const double *b, int64_t b_rs, int64_t b_cs)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t p = k; p-- > 0;) sum += a[i * a_rs + p * a_cs] * b[p * b_rs + j * b_cs];
            out[i * n + j] = sum;
        }
    }
}

/* ---- MatMul ---------------------------------------------------------------------------------- */

void gemm_check_matmul(clg_dtype dtype, int64_t m, int64_t n, int64_t k, bool constant_b,
                       bool constant_a)
{
    run_node r;
    const double *a = gemm_numbers(dtype, m * k), *b = gemm_numbers(dtype, k * n);
    double *y = run_node_zeros(m * n);
    gemm_reference(y, m, n, k, a, k, 1, b, n, 1);
    run_node_start(&r, NULL, "MatMul", 13);
    (constant_a ? run_node_constant : run_node_input)(&r, dtype, 2, (int64_t[]){m, k}, a);
    (constant_b ? run_node_constant : run_node_input)(&r, dtype, 2, (int64_t[]){k, n}, b);
    run_node_expect(&r, dtype, 2, (int64_t[]){m, n}, y);
    r.heavy = m * n * k > 20000;
    run_node_check_scaled(&r, gemm_tolerance(dtype), gemm_scale(k));
}

/* Returns the index of the batch of a matrix with batch dimensions `dims` that broadcasts to batch
 * `index` of `over`. Dimensions are right-aligned, and those of 1 repeat. */
static int64_t batch_of(int rank, const int64_t *dims, int over_rank, const int64_t *over,
                        int64_t index)
{
    int64_t at = 0, stride = 1;
    for (int i = over_rank - 1; i >= 0; i--) {
        const int own = i - (over_rank - rank);
        const int64_t here = index % over[i];
        index /= over[i];
        if (own < 0) continue;
        at += dims[own] == 1 ? 0 : here * stride;
        stride *= dims[own];
    }
    return at;
}

void gemm_check_batches(clg_dtype dtype, int rank_a, const int64_t *a_dims, int rank_b,
                        const int64_t *b_dims, int rank, const int64_t *over, bool constant_b)
{
    enum { M = 5, N = 9, K = 6 };
    int64_t a_all[CLG_MAX_RANK], b_all[CLG_MAX_RANK], y_all[CLG_MAX_RANK], n_a = M * K, n_b = K * N,
                                                                           n_over = 1;
    for (int i = 0; i < rank_a; i++) n_a *= a_all[i] = a_dims[i];
    for (int i = 0; i < rank_b; i++) n_b *= b_all[i] = b_dims[i];
    for (int i = 0; i < rank; i++) n_over *= y_all[i] = over[i];
    a_all[rank_a] = y_all[rank] = M;
    a_all[rank_a + 1] = b_all[rank_b] = K;
    b_all[rank_b + 1] = y_all[rank + 1] = N;
    const double *a = gemm_numbers(dtype, n_a), *b = gemm_numbers(dtype, n_b);
    double *y = run_node_zeros(n_over * M * N);
    for (int64_t i = 0; i < n_over; i++) {
        const int64_t at_a = batch_of(rank_a, a_dims, rank, over, i),
                      at_b = batch_of(rank_b, b_dims, rank, over, i);
        gemm_reference(y + i * M * N, M, N, K, a + at_a * M * K, K, 1, b + at_b * K * N, N, 1);
    }
    run_node r;
    run_node_start(&r, NULL, "MatMul", 9);
    run_node_input(&r, dtype, rank_a + 2, a_all, a);
    (constant_b ? run_node_constant : run_node_input)(&r, dtype, rank_b + 2, b_all, b);
    run_node_expect(&r, dtype, rank + 2, y_all, y);
    run_node_check_scaled(&r, gemm_tolerance(dtype), gemm_scale(K));
}

/* ---- Gemm ------------------------------------------------------------------------------------ */

void gemm_check(clg_dtype dtype, const gemm_case *g, bool relu)
{
    run_node r;
    const double *a = gemm_numbers(dtype, g->m * g->k), *b = gemm_numbers(dtype, g->k * g->n);
    double *y = run_node_zeros(g->m * g->n);
    const int64_t n_c =
        g->c_rank < 0 ? 0 : (g->c_rank > 0 ? g->c_dims[0] : 1) * (g->c_rank > 1 ? g->c_dims[1] : 1);
    const double *c = gemm_numbers(dtype, n_c);
    gemm_reference(y, g->m, g->n, g->k, a, g->trans_a ? 1 : g->k, g->trans_a ? g->m : 1, b,
                   g->trans_b ? 1 : g->n, g->trans_b ? g->k : 1);
    for (int64_t i = 0; i < g->m * g->n; i++) {
        y[i] *= g->alpha;
        if (g->c_rank < 0) continue;
        const int64_t row = i / g->n, col = i % g->n,
                      last = g->c_rank > 0 ? g->c_dims[g->c_rank - 1] : 1;
        const int64_t rows = g->c_rank > 1 ? g->c_dims[0] : 1;
        y[i] += g->beta * c[(rows == 1 ? 0 : row * last) + (last == 1 ? 0 : col)];
        if (relu) y[i] = y[i] < 0 ? 0 : y[i];
    }
    run_node_start(&r, NULL, "Gemm", 13);
    run_node_input(&r, dtype, 2, (int64_t[]){g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k},
                   a);
    (g->constant ? run_node_constant : run_node_input)(
        &r, dtype, 2, (int64_t[]){g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n}, b);
    if (g->c_rank >= 0) run_node_input(&r, dtype, g->c_rank, g->c_dims, c);
    run_node_int(&r, "transA", g->trans_a);
    run_node_int(&r, "transB", g->trans_b);
    run_node_float(&r, "alpha", g->alpha);
    run_node_float(&r, "beta", g->beta);
    if (relu) run_node_then(&r, "Relu");
    run_node_expect(&r, dtype, 2, (int64_t[]){g->m, g->n}, y);
    r.heavy = g->m * g->n * g->k > 1000000;
    run_node_check_scaled(&r, gemm_tolerance(dtype), gemm_scale(g->k));
}

/* ---- following operators --------------------------------------------------------------------- */

/* Describes an operator that follows a GEMM, with its attributes and its function. */
typedef struct follower {
    const char *op_type;
    double alpha, beta; /* NAN: no such attribute */
    double (*value)(double x);
} follower;

static double relu(double x) { return x < 0 ? 0 : x; }
static double leaky(double x) { return x < 0 ? 0.25 * x : x; }
static double sigmoid(double x) { return 0.5 * (1.0 + tanh(0.5 * x)); }
static double tanh_by_exp(double x) { return (exp(2 * x) - 1) / (exp(2 * x) + 1); }
static double hard_sigmoid(double x) { return fmin(fmax(0.25 * x + 0.5, 0), 1); }
static double hard_swish(double x) { return x * fmin(fmax(x + 3, 0), 6) / 6; }
static double gelu(double x) { return 0.5 * x * erfc(-x / sqrt(2.0)); }
static double elu(double x) { return x < 0 ? 0.25 * (exp(x) - 1) : x; }

static const follower followers[] = {
    {"Relu", NAN, NAN, relu},
    {"LeakyRelu", 0.25, NAN, leaky},
    {"Sigmoid", NAN, NAN, sigmoid},
    {"Tanh", NAN, NAN, tanh_by_exp},
    {"HardSigmoid", 0.25, 0.5, hard_sigmoid},
    {"HardSwish", NAN, NAN, hard_swish},
    {"Gelu", NAN, NAN, gelu},
    {"Elu", 0.25, NAN, elu},
};

void gemm_check_followers(clg_dtype dtype)
{
    enum { M = 9, N = 35, K = 4 };
    const double *a = gemm_numbers(dtype, M * K), *b = gemm_numbers(dtype, K * N);
    const double *bias = gemm_numbers(dtype, N), *residual = gemm_numbers(dtype, M * N);
    double *sum = run_node_zeros(M * N), *y = run_node_zeros(M * N);
    gemm_reference(sum, M, N, K, a, K, 1, b, N, 1);
    for (int i = 0; i < M * N; i++) sum[i] += bias[i % N] + residual[i];
    for (size_t k = 0; k < sizeof followers / sizeof *followers; k++) {
        const follower *f = &followers[k];
        for (int i = 0; i < M * N; i++) y[i] = f->value(sum[i]);
        run_node r;
        run_node_start(&r, NULL, "MatMul", 20);
        run_node_input(&r, dtype, 2, (int64_t[]){M, K}, a);
        run_node_constant(&r, dtype, 2, (int64_t[]){K, N}, b);
        run_node_then(&r, "Add");
        run_node_constant(&r, dtype, 1, (int64_t[]){N}, bias);
        run_node_then(&r, "Add");
        run_node_input(&r, dtype, 2, (int64_t[]){M, N}, residual);
        run_node_then(&r, f->op_type);
        if (!isnan(f->alpha)) run_node_float(&r, "alpha", f->alpha);
        if (!isnan(f->beta)) run_node_float(&r, "beta", f->beta);
        run_node_expect(&r, dtype, 2, (int64_t[]){M, N}, y);
        r.blas_only = dtype == CLG_FLOAT32 && k % 4 != 0; /* all kernels share epilogues */
        run_node_check_scaled(&r, gemm_tolerance(dtype), gemm_scale(K));
    }
}

/* ---- mask ------------------------------------------------------------------------------------ */

enum { MASK_M = 29, MASK_N = 35, MASK_K = 4 };

typedef struct mask_case {
    clg_dtype dtype;
    const double *a, *b, *h, *want;
} mask_case;

static clg_value *numbers_of(const mask_case *k, int64_t rows, int64_t cols, const double *from)
{
    clg_value *v;
    tensor *t;
    const shape dims = {.rank = 2, .dims = {rows, cols}};
    assert_ok(tensor_create(k->dtype, &dims, &t));
    for (int64_t i = 0; i < rows * cols; i++) tensor_set_float(t, i, from[i]);
    assert_ok(value_create_host(t, &v));
    tensor_free(t);
    return v;
}

static clg_session *open_mask(clg_context *context, const clg_session_options *options,
                              const mask_case *k)
{
    clg_session *s;
    const char *type = k->dtype == CLG_FLOAT16 ? "f16" : "f32";
    const int to = k->dtype == CLG_FLOAT16 ? 10 : 1;
    char text[256];
    (void)snprintf(text, sizeof text,
                   "a: %s[%d,%d]; b: %s[%d,%d]; h: %s[%d,%d]; i = 0; z = Cast(i) to=%d; "
                   "p = MatMul(a, b); c = Greater(h, z); y = Where(c, p, z); out y",
                   type, MASK_M, MASK_K, type, MASK_K, MASK_N, type, MASK_M, MASK_N, to);
    clg_model *m = graph_text_model(15, text);
    assert_ok(clg_session_create(context, m, options, &s));
    clg_model_free(m);
    return s;
}

static void run_mask(clg_context *context, const clg_session_options *options, const char *name,
                     void *user)
{
    const mask_case *k = user;
    clg_session *s = open_mask(context, options, k);
    clg_value *in[] = {numbers_of(k, MASK_M, MASK_K, k->a), numbers_of(k, MASK_K, MASK_N, k->b),
                       numbers_of(k, MASK_M, MASK_N, k->h)};
    const char *const names[] = {"a", "b", "h"};
    clg_value *y;
    for (int i = 0; i < 3; i++) assert_ok(clg_session_set_input(s, names[i], in[i]));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output(s, "y", &y));
    for (int64_t i = 0; i < MASK_M * MASK_N; i++) {
        const double got = tensor_get_float(y->host, i), want = k->want[i];
        const bool right = isnan(want)
                               ? isnan(got)
                               : fabs(got - want) <= gemm_tolerance(k->dtype) *
                                                         fmax(gemm_scale(MASK_K), fabs(want));
        if (!right)
            fail_msg("%s: element %lld is %.9g where %.9g is right", name, (long long)i, got, want);
    }
    clg_value_free(y);
    for (int i = 0; i < 3; i++) clg_value_free(in[i]);
    clg_session_free(s);
}

void gemm_check_mask(clg_dtype dtype)
{
    double *a = run_node_random(MASK_M * MASK_K), *h = run_node_random(MASK_M * MASK_N);
    const double *b = run_node_random(MASK_K * MASK_N);
    double *y = run_node_zeros(MASK_M * MASK_N);
    a[0] = (double)NAN; /* of the first row: 0 where h is not positive */
    h[0] = 1;
    h[1] = h[MASK_N] = 0;
    h[2] = h[MASK_N + 1] = (double)NAN; /* is not positive */
    h[MASK_N + 2] = (double)INFINITY;
    gemm_reference(y, MASK_M, MASK_N, MASK_K, a, MASK_K, 1, b, MASK_N, 1);
    for (int64_t i = 0; i < MASK_M * MASK_N; i++)
        if (!(h[i] > 0)) y[i] = 0;
    mask_case k = {dtype, a, b, h, y};
    run_node_each_case(run_mask, &k);
}
