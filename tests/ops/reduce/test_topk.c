/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares TopK with selecting the best remaining element k times: of equal elements the one with
 * the lowest index first, and NaN as the largest value. It only selects, so results must be exact.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>

static bool is_better(double a, double b, bool largest)
{
    if (isnan(a) || isnan(b)) return largest ? isnan(a) && !isnan(b) : !isnan(a) && isnan(b);
    return largest ? a > b : a < b;
}

/* Selects the k best of n elements of x, which are `step` elements apart, as those of y and
 * `index`. */
static void pick(const double *x, int64_t n, int64_t step, int64_t k, bool largest, double *y,
                 double *index)
{
    bool *taken = (bool *)run_node_zeros(n);
    for (int64_t r = 0; r < k; r++) {
        int64_t best = -1;
        for (int64_t i = 0; i < n; i++)
            if (!taken[i] && (best < 0 || is_better(x[i * step], x[best * step], largest)))
                best = i;
        taken[best] = true;
        y[r * step] = x[best * step];
        index[r * step] = (double)best;
    }
}

static void topk_of(clg_dtype dtype, const double *x, int64_t outer, int64_t n, int64_t inner,
                    int64_t k, bool largest)
{
    double *y = run_node_zeros(outer * k * inner), *index = run_node_zeros(outer * k * inner);
    const double wanted = (double)k;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++)
            pick(x + o * n * inner + i, n, inner, k, largest, y + o * k * inner + i,
                 index + o * k * inner + i);
    run_node r;
    run_node_start(&r, NULL, "TopK", 11);
    run_node_int(&r, "axis", -2);
    run_node_int(&r, "largest", largest);
    run_node_input(&r, dtype, 3, (int64_t[]){outer, n, inner}, x);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, &wanted);
    run_node_expect(&r, dtype, 3, (int64_t[]){outer, k, inner}, y);
    run_node_expect(&r, CLG_INT64, 3, (int64_t[]){outer, k, inner}, index);
    run_node_check(&r, 0);
}

static void topk(clg_dtype dtype, int64_t outer, int64_t n, int64_t inner, int64_t k, bool largest)
{
    double *x = run_node_random(outer * n * inner);
    const bool is_unsigned = dtype == CLG_UINT8 || dtype == CLG_UINT32 || dtype == CLG_UINT64;
    for (int64_t i = 0; dtype != CLG_FLOAT32 && dtype != CLG_FLOAT16 && i < outer * n * inner; i++)
        x[i] = floor(x[i] * 60) + (is_unsigned ? 64 : 0);
    topk_of(dtype, x, outer, n, inner, k, largest);
}

TEST(topk__sizes)
{
    for (int largest = 0; largest < 2; largest++) {
        topk(CLG_FLOAT32, 1, 1, 1, 1, largest);
        topk(CLG_FLOAT32, 3, 7, 1, 7, largest);
        topk(CLG_FLOAT32, 2, 255, 3, 10, largest);
        topk(CLG_FLOAT32, 1, 257, 1, 257, largest);
        topk(CLG_FLOAT32, 1, 3000, 1, 50, largest);
        topk(CLG_FLOAT32, 40, 13, 5, 2, largest);
    }
    topk(CLG_FLOAT32, 2, 5, 3, 0, true);
    topk(CLG_FLOAT32, 0, 5, 3, 2, true);
}

TEST(topk__dtypes)
{
    static const clg_dtype dtypes[] = {CLG_FLOAT16, CLG_INT8,  CLG_UINT8,  CLG_INT16,
                                       CLG_INT32,   CLG_INT64, CLG_UINT32, CLG_UINT64};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        topk(dtypes[i], 2, 300, 1, 20, true);
        topk(dtypes[i], 1, 33, 4, 5, false);
    }
}

TEST(topk__special_numbers)
{
    const double x[] = {0.0,      -0.0,     INFINITY,  NAN, -INFINITY, 0x1p120,
                        -0x1p120, 0x1p-120, -0x1p-120, NAN, 0.0,       INFINITY};
    for (int64_t k = 1; k <= 12; k += 11) {
        topk_of(CLG_FLOAT32, x, 1, 12, 1, k, true);
        topk_of(CLG_FLOAT32, x, 1, 12, 1, k, false);
    }
}

TEST(topk__versions)
{
    const double x[] = {3, 9, 1, 9, 5}, y[] = {9, 9, 5}, index[] = {1, 3, 4};
    run_node r;
    run_node_start(&r, NULL, "TopK", 1);
    run_node_int(&r, "k", 3);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){5}, x);
    run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){3}, y);
    run_node_expect(&r, CLG_INT64, 1, (int64_t[]){3}, index);
    run_node_check(&r, 0);
}

TEST(topk__refuses)
{
    const double x[] = {3, 9, 1, 9, 5}, k = 6;
    run_node r;
    run_node_start(&r, NULL, "TopK", 11);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){5}, x);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, &k);
    run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){5}, x);
    run_node_expect(&r, CLG_INT64, 1, (int64_t[]){5}, x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "k is 6");
}

TEST_GROUP(run_node_open, run_node_close)
