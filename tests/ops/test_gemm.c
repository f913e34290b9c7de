/* SPDX-License-Identifier: Apache-2.0
 *
 * Gemm and MatMul against sums in double, taken from the last term to the first.
 *
 * Tolerance: float32 sums of k terms of size 1 differ from the double's by at most k * 2^-24 and, with random signs,
 * by far less: 2e-6 of the larger of the result and sqrt(k). float16 stores 11 bits: 1e-3; bfloat16 8: 4e-3, and
 * operands that it holds.
 */
/* ctest: timeout 900 */
#include "support/run_node.h"

#include <math.h>

#define FLOAT_TOLERANCE 2e-6
#define HALF_TOLERANCE 1e-3
#define BFLOAT_TOLERANCE 4e-3

static double tolerance_of(clg_dtype dtype)
{
    return dtype == CLG_FLOAT16    ? HALF_TOLERANCE
           : dtype == CLG_BFLOAT16 ? BFLOAT_TOLERANCE
           : dtype == CLG_FLOAT64  ? 1e-12
                                   : FLOAT_TOLERANCE;
}

/* Numbers that the dtype holds. */
static double *draw(clg_dtype dtype, int64_t n)
{
    double *x = run_node_random(n);
    for (int64_t i = 0; i < n && dtype == CLG_BFLOAT16; i++) x[i] = nearbyint(x[i] * 128) / 128;
    return x;
}

static double scale_of(int64_t k) { return k > 1 ? sqrt((double)k) : 1.0; }

/* out[m,n] = a x b, element (i, j) of a at i * rs + j * cs. */
static void product(double *out, int64_t m, int64_t n, int64_t k, const double *a, int64_t a_rs,
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

/* ---- MatMul ------------------------------------------------------------------------------------------ */

static void matmul(clg_dtype dtype, int64_t m, int64_t n, int64_t k, bool constant_b,
                   bool constant_a)
{
    run_node r;
    const double *a = draw(dtype, m * k), *b = draw(dtype, k * n);
    double *y = run_node_zeros(m * n);
    product(y, m, n, k, a, k, 1, b, n, 1);
    run_node_start(&r, NULL, "MatMul", 13);
    (constant_a ? run_node_constant : run_node_input)(&r, dtype, 2, (int64_t[]){m, k}, a);
    (constant_b ? run_node_constant : run_node_input)(&r, dtype, 2, (int64_t[]){k, n}, b);
    run_node_expect(&r, dtype, 2, (int64_t[]){m, n}, y);
    r.heavy = m * n * k > 20000;
    run_node_check_scaled(&r, tolerance_of(dtype), scale_of(k));
}

static void gemm__matmul_sizes(void **state)
{
    (void)state;
    /* Around the tiles: 12 rows and 32 columns wide, 64 simt, blocks of 256 deep; primes; ones; nothing. */
    static const int64_t sizes[][3] = {
        {1, 1, 1},     {1, 17, 31},   {2, 1, 512},  {11, 31, 255}, {12, 32, 256},   {12, 32, 257},
        {11, 31, 511}, {12, 32, 513}, {13, 33, 64}, {7, 65, 129},  {64, 64, 16},    {65, 63, 17},
        {0, 5, 3},     {5, 0, 3},     {5, 3, 0},    {128, 16, 8},  {37, 101, 1031},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        matmul(CLG_FLOAT32, sizes[i][0], sizes[i][1], sizes[i][2], false, false);
        matmul(CLG_FLOAT32, sizes[i][0], sizes[i][1], sizes[i][2], true, false);
    }
    matmul(CLG_FLOAT32, 29, 47, 530, false, true);
}

static void gemm__matmul_dtypes(void **state)
{
    (void)state;
    matmul(CLG_FLOAT16, 13, 33, 70, false, false);
    matmul(CLG_FLOAT16, 13, 33, 70, true, false);
    matmul(CLG_FLOAT16, 3, 5, 0, false, false);
    matmul(CLG_FLOAT64, 13, 33, 70, false, false);
    matmul(CLG_BFLOAT16, 13, 33, 70, false, false);
    matmul(CLG_BFLOAT16, 1, 100, 70, true, false); /* one row: every width of a store */
    matmul(CLG_BFLOAT16, 29, 47, 530, true, false);
    matmul(CLG_BFLOAT16, 29, 47, 66, false, true);
    matmul(CLG_BFLOAT16, 3, 5, 0, false, false);
}

static void gemm__matmul_integers(void **state)
{
    (void)state;
    static const clg_dtype dtypes[] = {CLG_INT32, CLG_INT64, CLG_UINT32, CLG_UINT64};
    enum { M = 3, N = 5, K = 7 };
    double a[M * K], b[K * N], y[M * N];
    for (size_t d = 0; d < 4; d++) {
        const bool negative = d < 2;
        for (int i = 0; i < M * K; i++) a[i] = (i * 37 % 101) - (negative ? 50 : 0);
        for (int i = 0; i < K * N; i++) b[i] = (i * 53 % 97) - (negative ? 40 : 0);
        product(y, M, N, K, a, K, 1, b, N, 1);
        run_node r;
        run_node_start(&r, NULL, "MatMul", 13);
        run_node_input(&r, dtypes[d], 2, (int64_t[]){M, K}, a);
        run_node_input(&r, dtypes[d], 2, (int64_t[]){K, N}, b);
        run_node_expect(&r, dtypes[d], 2, (int64_t[]){M, N}, y);
        run_node_check(&r, 0);
    }
}

/* The reference walks batches by index arithmetic of its own: right-aligned, 0 where a dimension is 1. */
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

static void batched(int rank_a, const int64_t *a_dims, int rank_b, const int64_t *b_dims, int rank,
                    const int64_t *over, bool constant_b)
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
    const double *a = run_node_random(n_a), *b = run_node_random(n_b);
    double *y = run_node_zeros(n_over * M * N);
    for (int64_t i = 0; i < n_over; i++) {
        const int64_t at_a = batch_of(rank_a, a_dims, rank, over, i),
                      at_b = batch_of(rank_b, b_dims, rank, over, i);
        product(y + i * M * N, M, N, K, a + at_a * M * K, K, 1, b + at_b * K * N, N, 1);
    }
    run_node r;
    run_node_start(&r, NULL, "MatMul", 9);
    run_node_input(&r, CLG_FLOAT32, rank_a + 2, a_all, a);
    (constant_b ? run_node_constant : run_node_input)(&r, CLG_FLOAT32, rank_b + 2, b_all, b);
    run_node_expect(&r, CLG_FLOAT32, rank + 2, y_all, y);
    run_node_check_scaled(&r, FLOAT_TOLERANCE, scale_of(K));
}

static void gemm__matmul_batches(void **state)
{
    (void)state;
    for (int constant = 0; constant < 2; constant++) {
        batched(DIMS(3), DIMS(3), DIMS(3), constant);
        batched(DIMS(3), 0, NULL, DIMS(3), constant);
        batched(0, NULL, DIMS(3), DIMS(3), constant);
        batched(DIMS(2, 3), DIMS(1, 3), DIMS(2, 3), constant);
        batched(DIMS(2, 1), DIMS(1, 3), DIMS(2, 3), constant);
        batched(DIMS(2, 3), DIMS(2, 1), DIMS(2, 3), constant);
        /* Alternating repeats need more batch dimensions than the kernels have. */
        batched(DIMS(2, 1, 3, 1), DIMS(1, 2, 1, 4), DIMS(2, 2, 3, 4), constant);
        batched(DIMS(0), DIMS(1), DIMS(0), constant);
    }
}

static void gemm__matmul_vectors(void **state)
{
    (void)state;
    enum { M = 5, N = 7, K = 11, B = 3 };
    const double *a = run_node_random(B * M * K), *b = run_node_random(B * K * N);
    double *y = run_node_zeros(B * M * N);
    run_node r;

    product(y, 1, 1, K, a, K, 1, b, 1, 1);
    run_node_start(&r, NULL, "MatMul", 13);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){K}, a);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){K}, b);
    run_node_expect(&r, CLG_FLOAT32, 0, NULL, y);
    run_node_check_scaled(&r, FLOAT_TOLERANCE, scale_of(K));

    product(y, 1, N, K, a, K, 1, b, N, 1);
    run_node_start(&r, NULL, "MatMul", 13);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){K}, a);
    run_node_constant(&r, CLG_FLOAT32, 2, (int64_t[]){K, N}, b);
    run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){N}, y);
    run_node_check_scaled(&r, FLOAT_TOLERANCE, scale_of(K));

    for (int i = 0; i < B; i++) product(y + i * M, M, 1, K, a + i * M * K, K, 1, b, 1, 1);
    run_node_start(&r, NULL, "MatMul", 13);
    run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){B, M, K}, a);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){K}, b);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){B, M}, y);
    run_node_check_scaled(&r, FLOAT_TOLERANCE, scale_of(K));

    for (int i = 0; i < B; i++) product(y + i * N, 1, N, K, a, K, 1, b + i * K * N, N, 1);
    run_node_start(&r, NULL, "MatMul", 13);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){K}, a);
    run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){B, K, N}, b);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){B, N}, y);
    run_node_check_scaled(&r, FLOAT_TOLERANCE, scale_of(K));
}

/* ---- Gemm -------------------------------------------------------------------------------------------------- */

typedef struct gemm_case {
    int64_t m, n, k;
    bool trans_a, trans_b;
    double alpha, beta;
    int c_rank; /* -1: no C */
    int64_t c_dims[2];
    bool constant;
} gemm_case;

static void gemm(clg_dtype dtype, const gemm_case *g, bool relu)
{
    run_node r;
    const double *a = draw(dtype, g->m * g->k), *b = draw(dtype, g->k * g->n);
    double *y = run_node_zeros(g->m * g->n);
    const int64_t n_c =
        g->c_rank < 0 ? 0 : (g->c_rank > 0 ? g->c_dims[0] : 1) * (g->c_rank > 1 ? g->c_dims[1] : 1);
    const double *c = draw(dtype, n_c);
    product(y, g->m, g->n, g->k, a, g->trans_a ? 1 : g->k, g->trans_a ? g->m : 1, b,
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
    run_node_check_scaled(&r, tolerance_of(dtype), scale_of(g->k));
}

static void gemm__all_attributes(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        const gemm_case g = {.m = 13,
                             .n = 37,
                             .k = 29,
                             .trans_a = i & 1,
                             .trans_b = (i & 2) != 0,
                             .alpha = 0.5,
                             .beta = 0.25,
                             .c_rank = 2,
                             .c_dims = {13, 37},
                             .constant = (i & 4) != 0};
        gemm(CLG_FLOAT32, &g, false);
    }
}

/* Beyond 16 MiB a constant is packed in pieces: along either side of it, as left and as right matrix. */
static void gemm__large_constants(void **state)
{
    (void)state;
    matmul(CLG_FLOAT32, 2, 2603, 1701, true, false);
    matmul(CLG_FLOAT32, 2603, 2, 1701, false, true);
    const gemm_case right = {
        2, 2603, 1701, .trans_b = true, .alpha = 1, .c_rank = -1, .constant = true};
    gemm(CLG_FLOAT32, &right, false);
    run_node r;
    enum { M = 2603, N = 2, K = 1701 };
    const double *a = draw(CLG_FLOAT32, (int64_t)M * K), *b = draw(CLG_FLOAT32, K * N);
    double *y = run_node_zeros(M * N);
    product(y, M, N, K, a, 1, M, b, N, 1);
    run_node_start(&r, NULL, "Gemm", 13);
    run_node_constant(&r, CLG_FLOAT32, 2, (int64_t[]){K, M}, a);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){K, N}, b);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){M, N}, y);
    run_node_int(&r, "transA", 1);
    r.heavy = true;
    run_node_check_scaled(&r, FLOAT_TOLERANCE, scale_of(K));
}

static void gemm__bias_shapes(void **state)
{
    (void)state;
    static const gemm_case cases[] = {
        {.c_rank = -1},
        {.c_rank = 0},
        {.c_rank = 1, .c_dims = {1}},
        {.c_rank = 1, .c_dims = {37}},
        {.c_rank = 2, .c_dims = {1, 1}},
        {.c_rank = 2, .c_dims = {1, 37}},
        {.c_rank = 2, .c_dims = {13, 1}},
        {.c_rank = 2, .c_dims = {13, 37}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gemm_case g = cases[i];
        g.m = 13;
        g.n = 37;
        g.k = 5;
        g.alpha = 1;
        g.beta = 1;
        gemm(CLG_FLOAT32, &g, false);
        g.beta = -2;
        gemm(CLG_FLOAT32, &g, false);
        g.k = 0;
        gemm(CLG_FLOAT32, &g, false);
    }
    const gemm_case empty = {.m = 5, .n = 33, .alpha = 1, .beta = 1, .c_rank = 1, .c_dims = {33}};
    gemm(CLG_FLOAT32, &empty, true);
    const gemm_case half = {
        .m = 5, .n = 33, .k = 20, .alpha = 1, .beta = 1, .c_rank = 1, .c_dims = {33}};
    gemm(CLG_FLOAT16, &half, false);
    gemm(CLG_BFLOAT16, &half, false);
    gemm(CLG_BFLOAT16, &half, true);
    const gemm_case turned = {.m = 13,
                              .n = 37,
                              .k = 29,
                              .trans_a = true,
                              .trans_b = true,
                              .alpha = 0.5,
                              .beta = 0.25,
                              .c_rank = 2,
                              .c_dims = {13, 37},
                              .constant = true};
    gemm(CLG_BFLOAT16, &turned, true);
}

/* beta 0 leaves C out, whatever it holds. */
static void gemm__beta_zero(void **state)
{
    (void)state;
    const double a[] = {1, 2, 3, 4}, b[] = {1, 0, 0, 1}, c[] = {NAN, INFINITY};
    run_node r;
    run_node_start(&r, NULL, "Gemm", 13);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 2}, a);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 2}, b);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){2}, c);
    run_node_float(&r, "beta", 0);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){2, 2}, a);
    run_node_check(&r, FLOAT_TOLERANCE);
}

static void gemm__integers_with_whole_factors(void **state)
{
    (void)state;
    const double a[] = {1, -2, 3, 4}, b[] = {5, 6, -7, 8}, c[] = {10}, y[] = {58, 0, -6, 120};
    run_node r;
    run_node_start(&r, NULL, "Gemm", 13);
    run_node_input(&r, CLG_INT32, 2, (int64_t[]){2, 2}, a);
    run_node_input(&r, CLG_INT32, 2, (int64_t[]){2, 2}, b);
    run_node_input(&r, CLG_INT32, 0, NULL, c);
    run_node_float(&r, "alpha", 2);
    run_node_float(&r, "beta", 2);
    run_node_expect(&r, CLG_INT32, 2, (int64_t[]){2, 2}, y);
    run_node_check(&r, 0);
    run_node_start(&r, NULL, "Gemm", 13);
    run_node_input(&r, CLG_INT32, 2, (int64_t[]){2, 2}, a);
    run_node_input(&r, CLG_INT32, 2, (int64_t[]){2, 2}, b);
    run_node_float(&r, "alpha", 0.5);
    run_node_expect(&r, CLG_INT32, 2, (int64_t[]){2, 2}, y);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "alpha or beta is not whole");
}

/* ---- epilogues ------------------------------------------------------------------------------------------------ */

/* An operator that follows, and what it does to a sum. opset 13 has no Gelu: the pass knows its formula. */
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

/* act(a x b + bias + residual): with and without the pass that fuses, the same. */
static void gemm__followers(void **state)
{
    (void)state;
    enum { M = 9, N = 35, K = 4 };
    const double *a = run_node_random(M * K), *b = run_node_random(K * N);
    const double *bias = run_node_random(N), *residual = run_node_random(M * N);
    double *sum = run_node_zeros(M * N), *y = run_node_zeros(M * N);
    product(sum, M, N, K, a, K, 1, b, N, 1);
    for (int i = 0; i < M * N; i++) sum[i] += bias[i % N] + residual[i];
    for (size_t k = 0; k < sizeof followers / sizeof *followers; k++) {
        const follower *f = &followers[k];
        for (int i = 0; i < M * N; i++) y[i] = f->value(sum[i]);
        run_node r;
        run_node_start(&r, NULL, "MatMul", 20);
        run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){M, K}, a);
        run_node_constant(&r, CLG_FLOAT32, 2, (int64_t[]){K, N}, b);
        run_node_then(&r, "Add");
        run_node_constant(&r, CLG_FLOAT32, 1, (int64_t[]){N}, bias);
        run_node_then(&r, "Add");
        run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){M, N}, residual);
        run_node_then(&r, f->op_type);
        if (!isnan(f->alpha)) run_node_float(&r, "alpha", f->alpha);
        if (!isnan(f->beta)) run_node_float(&r, "beta", f->beta);
        run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){M, N}, y);
        r.blas_only = k % 4 != 0; /* all kernels include one text of them */
        run_node_check_scaled(&r, FLOAT_TOLERANCE, scale_of(K));
    }
}

static void gemm__nan_and_infinity(void **state)
{
    (void)state;
    const double a[] = {NAN, 1, INFINITY, 1, -INFINITY, 1, 1e30, 1}, b[] = {1e30, 1, 1, 1};
    const double y[] = {NAN, NAN, INFINITY, INFINITY, 0, 0, INFINITY, 1e30};
    run_node r;
    run_node_start(&r, NULL, "MatMul", 13);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){4, 2}, a);
    run_node_constant(&r, CLG_FLOAT32, 2, (int64_t[]){2, 2}, b);
    run_node_then(&r, "Relu");
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){4, 2}, y);
    run_node_check(&r, FLOAT_TOLERANCE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemm__matmul_sizes),
        cmocka_unit_test(gemm__matmul_dtypes),
        cmocka_unit_test(gemm__matmul_integers),
        cmocka_unit_test(gemm__matmul_batches),
        cmocka_unit_test(gemm__matmul_vectors),
        cmocka_unit_test(gemm__all_attributes),
        cmocka_unit_test(gemm__large_constants),
        cmocka_unit_test(gemm__bias_shapes),
        cmocka_unit_test(gemm__beta_zero),
        cmocka_unit_test(gemm__integers_with_whole_factors),
        cmocka_unit_test(gemm__followers),
        cmocka_unit_test(gemm__nan_and_infinity),
    };
    return cmocka_run_group_tests(tests, run_node_open, run_node_close);
}
