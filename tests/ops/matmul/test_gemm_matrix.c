/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests GEMM by matrix units (cl/matmul/gemm_matrix.cl): by those of the device if it has any,
 * otherwise emulated, in the same kernel except for the instruction. A fragment has 16 x 8 results
 * and sums of 16 terms; a tile has 64 x 64 or 128 x 128 results and a depth of 32. Where rows start
 * at multiples of 8 elements, 16 bytes are loaded at a time.
 */
/* ctest: timeout 900 */
#include "support/cases/gemm_cases.h"
#include "support/fakes/driver_faults.h"

#include "session/context_handle.h"

#include <math.h>
#include <stdlib.h>

static const clg_dtype dtypes[] = {CLG_FLOAT16, CLG_BFLOAT16};

TEST(matrix__sizes)
{
    static const int64_t sizes[][3] = {{1, 1, 1},    {16, 8, 16},  {17, 9, 15},  {15, 7, 33},
                                       {64, 64, 32}, {65, 63, 31}, {63, 65, 97}, {3, 130, 64},
                                       {130, 5, 48}, {3, 5, 0},    {29, 47, 531}};
    for (size_t d = 0; d < COUNT(dtypes); d++) {
        for (size_t i = 0; i < COUNT(sizes); i++)
            gemm_check_matmul(dtypes[d], sizes[i][0], sizes[i][1], sizes[i][2], i % 2 == 1, false);
    }
}

/* Tiles of 128 x 128, with remainders. */
TEST(matrix__large_tiles)
{
    gemm_check_matmul(CLG_FLOAT16, 1025, 1027, 35, false, false);
    gemm_check_matmul(CLG_BFLOAT16, 1024, 1032, 40, false, false);
}

/* Row lengths that are multiples of 8 elements, and others, in every transposition. */
TEST(matrix__all_attributes)
{
    for (int i = 0; i < 16; i++) {
        const bool even = i < 8;
        gemm_case g = {.m = even ? 72 : 67,
                       .n = even ? 40 : 37,
                       .k = even ? 48 : 53,
                       .trans_a = i & 1,
                       .trans_b = (i & 2) != 0,
                       .alpha = 0.5,
                       .beta = 0.25,
                       .c_rank = 2,
                       .constant = (i & 4) != 0};
        g.c_dims[0] = g.m;
        g.c_dims[1] = g.n;
        gemm_check(dtypes[i / 4 % 2], &g, false);
    }
}

TEST(matrix__bias_shapes)
{
    static const gemm_case cases[] = {
        {.c_rank = -1},
        {.c_rank = 0},
        {.c_rank = 1, .c_dims = {37}},
        {.c_rank = 2, .c_dims = {1, 37}},
        {.c_rank = 2, .c_dims = {21, 1}},
        {.c_rank = 2, .c_dims = {21, 37}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        gemm_case g = cases[i];
        g.m = 21;
        g.n = 37;
        g.k = 19;
        g.alpha = 1;
        g.beta = i % 2 ? -2 : 1;
        gemm_check(dtypes[i % 2], &g, i > 2);
    }
}

TEST(matrix__batches)
{
    gemm_check_batches(CLG_FLOAT16, DIMS(3), DIMS(3), DIMS(3), false);
    gemm_check_batches(CLG_FLOAT16, DIMS(2, 1), DIMS(1, 3), DIMS(2, 3), false);
    gemm_check_batches(CLG_FLOAT16, DIMS(2, 3), DIMS(2, 1), DIMS(2, 3), true);
    /* Batches computed by several GEMMs, one after the other. */
    gemm_check_batches(CLG_FLOAT16, DIMS(2, 1, 3, 1), DIMS(1, 2, 1, 4), DIMS(2, 2, 3, 4), false);
}

/* Bias, residual and each activation. */
TEST(matrix__followers) { gemm_check_followers(CLG_FLOAT16); }

TEST(matrix__mask) { gemm_check_mask(CLG_FLOAT16); }

/* A 1x1 convolution: the weights are the left matrix, and the bias has one element per row. */
TEST(matrix__convolution)
{
    enum { IMAGES = 2, IC = 35, OC = 21, PIXELS = 5 * 7 };
    const clg_dtype dtype = CLG_FLOAT16;
    const double *x = gemm_numbers(dtype, IMAGES * IC * PIXELS);
    const double *w = gemm_numbers(dtype, OC * IC), *bias = gemm_numbers(dtype, OC);
    double *y = run_node_zeros(IMAGES * OC * PIXELS);
    for (int i = 0; i < IMAGES; i++)
        gemm_reference(y + i * OC * PIXELS, OC, PIXELS, IC, w, IC, 1, x + i * IC * PIXELS, PIXELS,
                       1);
    for (int i = 0; i < IMAGES * OC * PIXELS; i++) y[i] += bias[i / PIXELS % OC];
    run_node r;
    run_node_start(&r, NULL, "Conv", 13);
    run_node_input(&r, dtype, DIMS(IMAGES, IC, 5, 7), x);
    run_node_constant(&r, dtype, DIMS(OC, IC, 1, 1), w);
    run_node_constant(&r, dtype, DIMS(OC), bias);
    run_node_expect(&r, dtype, DIMS(IMAGES, OC, 5, 7), y);
    run_node_check_scaled(&r, gemm_tolerance(dtype), gemm_scale(IC));
}

/* Padding elements of a tile must not be multiplied by elements of the matrices: 0 x infinity would
 * be NaN. */
TEST(matrix__nan_and_infinity)
{
    const double a[] = {NAN, 1, INFINITY, 1, -INFINITY, 1, 60000, 1}, b[] = {2, 1, 1, 1};
    const double y[] = {NAN, NAN, INFINITY, INFINITY, 0, 0, INFINITY, 60000};
    run_node r;
    run_node_start(&r, NULL, "MatMul", 13);
    run_node_input(&r, CLG_FLOAT16, 2, (int64_t[]){4, 2}, a);
    run_node_constant(&r, CLG_FLOAT16, 2, (int64_t[]){2, 2}, b);
    run_node_then(&r, "Relu");
    run_node_expect(&r, CLG_FLOAT16, 2, (int64_t[]){4, 2}, y);
    run_node_check(&r, gemm_tolerance(CLG_FLOAT16));
}

static void emulate(clg_context *context, const clg_session_options *options, const char *name,
                    void *user)
{
    (void)options;
    (void)name;
    (void)user;
    assert_ok(ocl_context_emulate_matrix(context->current->ocl));
    assert_int_not_equal(ocl_context_caps(context->current->ocl)->matrix, MATRIX_UNIT_NONE);
}

static int begin(void **state)
{
    const int result = run_node_open(state);
    if (run_node_leave_out(driver_miscompiles_emulated_unit) == 0) exit(77); /* skipped */
    run_node_each(emulate, NULL);
    run_node_by(CLG_KERNELS_SIMT, "gemm_matrix");
    return result;
}

TEST_GROUP(begin, run_node_close)
