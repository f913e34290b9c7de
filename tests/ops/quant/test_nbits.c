/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares MatMulNBits with matrix products of weights that the test draws before it packs them.
 *
 * Tolerance, relative to the largest element: float32 1e-5, for sums of at most 300 products, with
 * weights up to 8 and 128; float16 2e-3, since scales and results are rounded.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>

typedef struct nbits_case {
    clg_dtype dtype, zero_dtype; /* zero_dtype: of zero points: none, uint8 or a float type */
    int64_t m, n, k, block;
    int bits;
    bool bias;
    int accuracy; /* accuracy_level */
} nbits_case;

/* Returns an integer in 0 .. 2^bits - 1. */
static int64_t draw(double random, int bits)
{
    return (int64_t)floor((random + 1) / 2.001 * (double)(1 << bits));
}

static void pack(double *bytes, int64_t i, int64_t number, int bits)
{
    if (bits == 8)
        bytes[i] = (double)number;
    else
        bytes[i / 2] += (double)(number << (i % 2 * 4));
}

/* Returns whether elements of A are rounded where the device can. */
static bool may_round(const nbits_case *k)
{
    return k->accuracy == 4 && (k->zero_dtype == CLG_DTYPE_NONE || k->zero_dtype == CLG_UINT8);
}

/* Draws A. Where it may be rounded to integers times a scale for each block, or each 256 elements
 * of a longer one, the integers are drawn, -126 to 125 and a 127 in each, and scales are 2^-6 to
 * 2^-9: largest / 127 is exact. Adds up to `off` to each of the other integers in out_a. Returns A
 * as rounded. */
static double *draw_a(const nbits_case *k, double off, double **out_a)
{
    const int64_t length = k->block < 256 ? k->block : 256;
    double *a = run_node_random(k->m * k->k), *rounded = run_node_zeros(k->m * k->k);
    const double *offsets = run_node_random(k->m * k->k);
    for (int64_t i = 0; i < k->m * k->k; i++) {
        const int64_t at = i % k->k;
        const double scale = ldexp(1, -6 - (int)(at / length % 4)),
                     number = at % length == 0 ? 127 : floor(a[i] * 126);
        rounded[i] = may_round(k) ? number * scale : a[i];
        a[i] = rounded[i];
        if (may_round(k) && at % length != 0) a[i] += off * offsets[i] * scale;
    }
    *out_a = a;
    return rounded;
}

/* What the node computes, with the weights before they are packed. */
typedef struct nbits_inputs {
    int64_t blocks;
    const double *scales, *bias, *weights, *zeros; /* weights, zeros: as draw takes them */
} nbits_inputs;

/* Returns a * B^T + bias. */
static double *product(const nbits_case *k, const nbits_inputs *in, const double *a)
{
    double *y = run_node_zeros(k->m * k->n);
    for (int64_t i = 0; i < k->m * k->n; i++) {
        const int64_t c = i % k->n;
        double sum = k->bias ? in->bias[c] : 0;
        for (int64_t j = 0; j < k->k; j++) {
            const int64_t at = c * in->blocks + j / k->block;
            const double zero = k->zero_dtype == CLG_DTYPE_NONE ? (double)(1 << (k->bits - 1))
                                : k->zero_dtype == CLG_UINT8 ? (double)draw(in->zeros[at], k->bits)
                                                             : in->zeros[at];
            const double q = (double)draw(in->weights[c * in->blocks * k->block + j], k->bits);
            sum += a[i / k->n * k->k + j] * (q - zero) * in->scales[at];
        }
        y[i] = sum;
    }
    return y;
}

/* Adds the inputs from B on. */
static void add_weights(run_node *r, const nbits_case *k, const nbits_inputs *in)
{
    const int64_t block_bytes = k->block * k->bits / 8, row_bytes = in->blocks * block_bytes,
                  zero_bytes = (in->blocks * k->bits + 7) / 8;
    double *b = run_node_zeros(k->n * row_bytes), *packed_zeros = run_node_zeros(k->n * zero_bytes);
    for (int64_t c = 0; c < k->n; c++) {
        for (int64_t i = 0; i < in->blocks * k->block; i++)
            pack(b + c * row_bytes, i, draw(in->weights[c * in->blocks * k->block + i], k->bits),
                 k->bits);
        for (int64_t i = 0; i < in->blocks; i++)
            pack(packed_zeros + c * zero_bytes, i, draw(in->zeros[c * in->blocks + i], k->bits),
                 k->bits);
    }
    run_node_constant(r, CLG_UINT8, DIMS(k->n, in->blocks, block_bytes), b);
    run_node_constant(r, k->dtype, DIMS(k->n * in->blocks), in->scales);
    if (k->zero_dtype == CLG_UINT8)
        run_node_constant(r, CLG_UINT8, DIMS(k->n * zero_bytes), packed_zeros);
    else if (k->zero_dtype != CLG_DTYPE_NONE)
        run_node_constant(r, k->zero_dtype, DIMS(k->n, in->blocks), in->zeros);
    else if (k->bias)
        run_node_absent(r);
    if (k->bias) {
        run_node_absent(r);
        run_node_constant(r, k->dtype, DIMS(k->n), in->bias);
    }
}

/* off: how far elements of A are from those that it is rounded to. invalid: NaN, an
 * element of the last row, whose results are NaN; 0: none. */
static void check_nbits(nbits_case k, double off, double invalid)
{
    const int64_t blocks = (k.k + k.block - 1) / k.block;
    const nbits_inputs in = {blocks, run_node_random(k.n * blocks), run_node_random(k.n),
                             run_node_random(k.n * blocks * k.block),
                             run_node_random(k.n * blocks)};
    double *a, *rounded = draw_a(&k, off, &a);
    if (invalid != 0) a[k.m * k.k - 2] = rounded[k.m * k.k - 2] = invalid;
    run_node r;
    run_node_start(&r, "com.microsoft", "MatMulNBits", 1);
    run_node_int(&r, "K", k.k);
    run_node_int(&r, "N", k.n);
    run_node_int(&r, "bits", k.bits);
    run_node_int(&r, "block_size", k.block);
    run_node_int(&r, "accuracy_level", k.accuracy);
    run_node_input(&r, k.dtype, DIMS(1, k.m, k.k), a);
    add_weights(&r, &k, &in);
    run_node_expect(&r, k.dtype, DIMS(1, k.m, k.n), product(&k, &in, a));
    if (may_round(&k)) {
        r.other_impl = "nbits_dot";
        r.other_numbers = product(&k, &in, rounded);
    }
    run_node_check_scaled(&r, k.dtype == CLG_FLOAT16 ? 2e-3 : 1e-5, k.bits == 4 ? 64 : 1024);
}

static void nbits(nbits_case k) { check_nbits(k, 0, 0); }

TEST(nbits__matmuls)
{
    const clg_dtype none = CLG_DTYPE_NONE, f = CLG_FLOAT32, h = CLG_FLOAT16, u = CLG_UINT8;
    nbits((nbits_case){f, none, 1, 33, 64, 32, 4, false, 0});
    nbits((nbits_case){f, u, 1, 7, 96, 32, 4, true, 0});
    nbits((nbits_case){f, u, 9, 5, 300, 16, 4, false, 0});
    nbits((nbits_case){f, f, 4, 6, 70, 32, 4, true, 0});
    nbits((nbits_case){f, none, 6, 9, 129, 128, 4, true, 0});
    nbits((nbits_case){f, u, 5, 10, 80, 32, 8, false, 0});
    nbits((nbits_case){f, none, 1, 3, 37, 16, 8, true, 0});
    nbits((nbits_case){h, u, 3, 8, 64, 32, 4, true, 0});
    nbits((nbits_case){h, h, 1, 8, 64, 32, 4, false, 0});
    nbits((nbits_case){f, none, 0, 3, 32, 32, 4, false, 0});
    nbits((nbits_case){f, u, 23, 6, 160, 32, 4, true, 0});
    nbits((nbits_case){f, none, 2, 5, 288, 16, 8, true, 0});
}

/* accuracy_level 4, with elements of A that need no rounding: results are exact in both ways. */
TEST(nbits__accuracy_level_4)
{
    const clg_dtype none = CLG_DTYPE_NONE, f = CLG_FLOAT32, h = CLG_FLOAT16, u = CLG_UINT8;
    nbits((nbits_case){f, none, 1, 9, 192, 32, 4, true, 4});
    nbits((nbits_case){f, u, 7, 5, 100, 16, 4, false, 4});
    nbits((nbits_case){f, f, 2, 6, 70, 32, 4, true, 4});
    nbits((nbits_case){f, none, 3, 4, 130, 128, 8, false, 4});
    nbits((nbits_case){f, u, 5, 11, 80, 16, 8, true, 4});
    nbits((nbits_case){h, u, 4, 8, 64, 64, 4, true, 4});
}

/* Rounding is to the nearest integer, by scales of at most 256 elements. Offsets are below a half,
 * and above a quarter often enough that float32 sums would differ by more than the tolerance. */
TEST(nbits__accuracy_level_4_rounds)
{
    const clg_dtype none = CLG_DTYPE_NONE, f = CLG_FLOAT32, u = CLG_UINT8;
    check_nbits((nbits_case){f, none, 1, 9, 192, 32, 4, true, 4}, 0.45, 0);
    check_nbits((nbits_case){f, u, 7, 5, 100, 16, 4, false, 4}, 0.45, 0);
    check_nbits((nbits_case){f, none, 3, 4, 130, 128, 8, false, 4}, 0.45, 0);
    check_nbits((nbits_case){f, u, 5, 11, 300, 256, 8, true, 4}, 0.45, 0);
    check_nbits((nbits_case){f, u, 2, 6, 900, 512, 4, false, 4}, 0.45, 0);
    check_nbits((nbits_case){f, none, 1, 4, 1500, 1024, 8, false, 4}, 0.45, 0);
    check_nbits((nbits_case){f, f, 3, 6, 70, 32, 4, true, 4}, 0.45, 0);
}

TEST(nbits__keeps_nan)
{
    const clg_dtype none = CLG_DTYPE_NONE, f = CLG_FLOAT32, u = CLG_UINT8;
    for (int accuracy = 0; accuracy <= 4; accuracy += 4) {
        check_nbits((nbits_case){f, none, 1, 5, 64, 32, 4, false, accuracy}, 0, NAN);
        check_nbits((nbits_case){f, u, 3, 5, 80, 16, 8, true, accuracy}, 0, NAN);
    }
}

TEST(nbits__refuses)
{
    const double zeros[64] = {0};
    const char *const messages[] = {"bits 3", "require 32", "weight_prepacked"};
    for (int i = 0; i < 3; i++) {
        run_node r;
        run_node_start(&r, "com.microsoft", "MatMulNBits", 1);
        run_node_int(&r, "K", 32);
        run_node_int(&r, "N", i == 1 ? 2 : 1);
        run_node_int(&r, "bits", i == 0 ? 3 : 4);
        if (i != 0) run_node_int(&r, "weight_prepacked", i == 2); /* 0 is accepted */
        run_node_int(&r, "block_size", 32);
        run_node_input(&r, CLG_FLOAT32, DIMS(1, 32), zeros);
        run_node_input(&r, CLG_UINT8, DIMS(1, 1, 16), zeros);
        run_node_input(&r, CLG_FLOAT32, DIMS(1), zeros);
        run_node_expect(&r, CLG_FLOAT32, DIMS(1, 1), zeros);
        run_node_refused(&r, i == 1 ? CLG_ERROR_SHAPE : CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                         messages[i]);
    }
}

TEST_GROUP(run_node_open, run_node_close)
