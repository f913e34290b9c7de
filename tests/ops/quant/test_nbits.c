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

static void nbits(nbits_case k)
{
    const int64_t blocks = (k.k + k.block - 1) / k.block, row_bytes = blocks * k.block * k.bits / 8;
    const int64_t zero_bytes = (blocks * k.bits + 7) / 8;
    const bool packed = k.zero_dtype == CLG_UINT8, zeros = k.zero_dtype != CLG_DTYPE_NONE;
    double *a = run_node_random(k.m * k.k);
    const double *scales = run_node_random(k.n * blocks), *bias = run_node_random(k.n),
                 *random = run_node_random(k.n * blocks * k.block),
                 *zero_random = run_node_random(k.n * blocks);
    if (k.accuracy == 4)
        for (int64_t i = 0; i < k.m * k.k; i++)
            a[i] = i % k.k % k.block == 0 ? 127.0 / 64 : floor(a[i] * 127) / 64;
    double *b = run_node_zeros(k.n * row_bytes), *packed_zeros = run_node_zeros(k.n * zero_bytes);
    double *y = run_node_zeros(k.m * k.n);
    for (int64_t c = 0; c < k.n; c++) {
        for (int64_t i = 0; i < blocks * k.block; i++)
            pack(b + c * row_bytes, i, draw(random[c * blocks * k.block + i], k.bits), k.bits);
        for (int64_t i = 0; i < blocks; i++)
            pack(packed_zeros + c * zero_bytes, i, draw(zero_random[c * blocks + i], k.bits),
                 k.bits);
        for (int64_t r = 0; r < k.m; r++) {
            double sum = k.bias ? bias[c] : 0;
            for (int64_t i = 0; i < k.k; i++) {
                const int64_t at = c * blocks + i / k.block;
                const double zero = !zeros   ? (double)(1 << (k.bits - 1))
                                    : packed ? (double)draw(zero_random[at], k.bits)
                                             : zero_random[at];
                const double q = (double)draw(random[c * blocks * k.block + i], k.bits);
                sum += a[r * k.k + i] * (q - zero) * scales[at];
            }
            y[r * k.n + c] = sum;
        }
    }
    run_node r;
    run_node_start(&r, "com.microsoft", "MatMulNBits", 1);
    run_node_int(&r, "K", k.k);
    run_node_int(&r, "N", k.n);
    run_node_int(&r, "bits", k.bits);
    run_node_int(&r, "block_size", k.block);
    run_node_int(&r, "accuracy_level", k.accuracy);
    run_node_input(&r, k.dtype, DIMS(1, k.m, k.k), a);
    run_node_constant(&r, CLG_UINT8, DIMS(k.n, blocks, k.block * k.bits / 8), b);
    run_node_constant(&r, k.dtype, DIMS(k.n * blocks), scales);
    if (packed)
        run_node_constant(&r, CLG_UINT8, DIMS(k.n * zero_bytes), packed_zeros);
    else if (zeros)
        run_node_constant(&r, k.zero_dtype, DIMS(k.n, blocks), zero_random);
    else if (k.bias)
        run_node_absent(&r);
    if (k.bias) {
        run_node_absent(&r);
        run_node_constant(&r, k.dtype, DIMS(k.n), bias);
    }
    run_node_expect(&r, k.dtype, DIMS(1, k.m, k.n), y);
    run_node_check_scaled(&r, k.dtype == CLG_FLOAT16 ? 2e-3 : 1e-5, k.bits == 4 ? 64 : 1024);
}

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

/* accuracy_level 4: elements of A may be rounded to 8 bits. Those that are drawn have no more:
 * multiples of 1/64, the largest of each block 127/64, so that results are exact in both ways. */
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
