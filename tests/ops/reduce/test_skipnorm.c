/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares RMSNormalization, com.microsoft's SkipLayerNormalization and
 * SkipSimplifiedLayerNormalization, and EmbedLayerNormalization with their formulas in double.
 *
 * Tolerance: float32 1e-5 for values of magnitude 1; float16 4e-3; bfloat16 8e-3, with operands
 * that it represents exactly.
 */
#include "support/cases/run_node.h"

#include <math.h>

static double tolerance_of(clg_dtype dtype)
{
    return dtype == CLG_FLOAT16 ? 4e-3 : dtype == CLG_BFLOAT16 ? 8e-3 : 1e-5;
}

/* Returns random values that the dtype represents exactly. */
static double *draw(clg_dtype dtype, int64_t n)
{
    double *x = run_node_random(n);
    for (int64_t i = 0; i < n && dtype == CLG_BFLOAT16; i++) x[i] = nearbyint(x[i] * 128) / 128;
    return x;
}

/* Normalises one row of n in place. */
static void normalise(double *s, int64_t n, const double *gamma, int64_t n_gamma,
                      const double *beta, bool simple, double epsilon)
{
    double mean = 0, variance = 0;
    for (int64_t i = 0; !simple && i < n; i++) mean += s[i] / (double)n;
    for (int64_t i = 0; i < n; i++) variance += (s[i] - mean) * (s[i] - mean) / (double)n;
    for (int64_t i = 0; i < n; i++)
        s[i] = (s[i] - mean) / sqrt(variance + epsilon) * gamma[i % n_gamma] + (beta ? beta[i] : 0);
}

static void rms(clg_dtype dtype, int64_t a, int64_t b, int64_t cols, int axis, bool short_scale)
{
    const int64_t n = a * b * cols, dims[] = {a, b, cols},
                  each = axis == -1 || axis == 2 ? cols : b * cols;
    const int64_t n_gamma = short_scale ? cols : each;
    const double *x = draw(dtype, n), *gamma = draw(dtype, n_gamma);
    double *y = run_node_zeros(n);
    for (int64_t i = 0; i < n; i++) y[i] = x[i];
    for (int64_t r = 0; each > 0 && r < n / each; r++)
        normalise(y + r * each, each, gamma, n_gamma, NULL, true, 1e-5);
    run_node r;
    run_node_start(&r, NULL, "RMSNormalization", 23);
    run_node_int(&r, "axis", axis);
    run_node_input(&r, dtype, 3, dims, x);
    if (n_gamma == cols)
        run_node_constant(&r, dtype, 1, &cols, gamma);
    else
        run_node_constant(&r, dtype, 2, dims + 1, gamma);
    run_node_expect(&r, dtype, 3, dims, y);
    run_node_check(&r, tolerance_of(dtype));
}

TEST(skipnorm__rms)
{
    rms(CLG_FLOAT32, 2, 3, 1, -1, false);
    rms(CLG_FLOAT32, 2, 3, 37, -1, false);
    rms(CLG_FLOAT32, 2, 3, 768, 2, false);
    rms(CLG_FLOAT32, 3, 5, 16, 1, false);
    rms(CLG_FLOAT32, 3, 5, 16, -2, true);
    rms(CLG_FLOAT16, 2, 3, 64, -1, false);
    rms(CLG_BFLOAT16, 2, 3, 64, -1, false);
    rms(CLG_BFLOAT16, 2, 3, 37, -1, false);
    rms(CLG_FLOAT32, 0, 3, 8, -1, false);
}

static void sum_of(clg_dtype dtype, bool simple, int skip_rank, bool one_batch, bool beta,
                   bool bias, bool sum)
{
    enum { BATCH = 2, PLACES = 3, COLS = 50 };
    const int64_t dims[] = {BATCH, PLACES, COLS}, cols = COLS, n = BATCH * PLACES * COLS;
    const int64_t skip_dims[] = {one_batch ? 1 : BATCH, PLACES, COLS};
    const double *x = draw(dtype, n), *other = draw(dtype, n), *gamma = draw(dtype, COLS);
    const double *shift = draw(dtype, COLS), *more = draw(dtype, COLS);
    double *s = run_node_zeros(n), *y = run_node_zeros(n);
    const bool repeats = one_batch || skip_rank == 2;
    for (int64_t i = 0; i < n; i++)
        y[i] = s[i] = x[i] + other[repeats ? i % (PLACES * COLS) : i] + (bias ? more[i % COLS] : 0);
    for (int64_t r = 0; r < BATCH * PLACES; r++)
        normalise(y + r * COLS, COLS, gamma, COLS, beta ? shift : NULL, simple, 1e-3);
    run_node r;
    run_node_start(&r, "com.microsoft",
                   simple ? "SkipSimplifiedLayerNormalization" : "SkipLayerNormalization", 1);
    run_node_float(&r, "epsilon", 1e-3);
    run_node_input(&r, dtype, 3, dims, x);
    run_node_input(&r, dtype, skip_rank, skip_rank == 2 ? dims + 1 : skip_dims, other);
    run_node_constant(&r, dtype, 1, &cols, gamma);
    if (beta)
        run_node_constant(&r, dtype, 1, &cols, shift);
    else if (!simple && bias)
        run_node_absent(&r);
    if (bias) run_node_constant(&r, dtype, 1, &cols, more);
    run_node_expect(&r, dtype, 3, dims, y);
    if (sum) {
        run_node_expect_absent(&r);
        run_node_expect_absent(&r);
        run_node_expect(&r, dtype, 3, dims, s);
    }
    run_node_check(&r, tolerance_of(dtype));
}

TEST(skipnorm__sums)
{
    sum_of(CLG_FLOAT32, false, 3, false, true, true, true);
    sum_of(CLG_FLOAT32, false, 3, true, true, false, false);
    sum_of(CLG_FLOAT32, false, 2, false, false, true, true);
    sum_of(CLG_FLOAT16, false, 3, false, true, true, true);
    sum_of(CLG_FLOAT32, true, 3, false, false, true, true);
    sum_of(CLG_FLOAT16, true, 3, true, false, false, true);
    sum_of(CLG_BFLOAT16, true, 3, false, false, false, true);
    sum_of(CLG_BFLOAT16, false, 3, false, true, true, true);
}

static void embed(bool segments, bool mask, bool positions)
{
    enum { BATCH = 2, PLACES = 5, COLS = 33, WORDS = 11, POSITIONS = 7, SEGMENTS = 2 };
    const double ids[BATCH * PLACES] = {3, 0, 10, 10, 1, 2, 5, 6, 7, 0},
                             kinds[BATCH * PLACES] = {0, 1, 1, 0, 0, 1, 1, 1, 0, 0};
    const double seen[BATCH * PLACES] = {1, 1, 1, 0, 0, 1, 1, 1, 1, 0},
                              places[PLACES] = {6, 0, 3, 3, 1}, counts[BATCH] = {3, 4};
    const double none[BATCH] = {0}, *words = run_node_random(WORDS * COLS),
                 *where = run_node_random(POSITIONS * COLS);
    const double *which = run_node_random(SEGMENTS * COLS), *gamma = run_node_random(COLS),
                 *beta = run_node_random(COLS);
    double *s = run_node_zeros(BATCH * PLACES * COLS), *y = run_node_zeros(BATCH * PLACES * COLS);
    const int64_t dims[] = {BATCH, PLACES, COLS}, cols = COLS, batch = BATCH;
    for (int i = 0; i < BATCH * PLACES * COLS; i++) {
        const int row = i / COLS, col = i % COLS,
                  place = positions ? (int)places[row % PLACES] : row % PLACES;
        s[i] = words[(int)ids[row] * COLS + col] + where[place * COLS + col];
        if (segments) s[i] += which[(int)kinds[row] * COLS + col];
        y[i] = s[i];
    }
    for (int r = 0; r < BATCH * PLACES; r++)
        normalise(y + r * COLS, COLS, gamma, COLS, beta, false, 1e-12);
    run_node r;
    run_node_start(&r, "com.microsoft", "EmbedLayerNormalization", 1);
    run_node_input(&r, CLG_INT32, 2, dims, ids);
    segments ? run_node_input(&r, CLG_INT32, 2, dims, kinds) : run_node_absent(&r);
    run_node_constant(&r, CLG_FLOAT32, 2, (int64_t[]){WORDS, COLS}, words);
    run_node_constant(&r, CLG_FLOAT32, 2, (int64_t[]){POSITIONS, COLS}, where);
    segments ? run_node_constant(&r, CLG_FLOAT32, 2, (int64_t[]){SEGMENTS, COLS}, which)
             : run_node_absent(&r);
    run_node_constant(&r, CLG_FLOAT32, 1, &cols, gamma);
    run_node_constant(&r, CLG_FLOAT32, 1, &cols, beta);
    mask ? run_node_input(&r, CLG_INT32, 2, dims, seen) : run_node_absent(&r);
    if (positions) run_node_input(&r, CLG_INT32, 2, (int64_t[]){1, PLACES}, places);
    run_node_expect(&r, CLG_FLOAT32, 3, dims, y);
    run_node_expect(&r, CLG_INT32, 1, &batch, mask ? counts : none);
    run_node_expect(&r, CLG_FLOAT32, 3, dims, s);
    run_node_check(&r, 1e-5);
}

TEST(skipnorm__embed)
{
    embed(true, true, false);
    embed(false, false, true);
    embed(true, false, true);
}

TEST(skipnorm__embed_out_of_range)
{
    const double ids[2] = {0, 4}, table[8] = {0};
    run_node r;
    run_node_start(&r, "com.microsoft", "EmbedLayerNormalization", 1);
    run_node_input(&r, CLG_INT32, 2, (int64_t[]){1, 2}, ids);
    run_node_absent(&r);
    run_node_constant(&r, CLG_FLOAT32, 2, (int64_t[]){4, 2}, table);
    run_node_constant(&r, CLG_FLOAT32, 2, (int64_t[]){4, 2}, table);
    run_node_absent(&r);
    run_node_constant(&r, CLG_FLOAT32, 1, (int64_t[]){2}, table);
    run_node_constant(&r, CLG_FLOAT32, 1, (int64_t[]){2}, table);
    run_node_expect(&r, CLG_FLOAT32, 3, (int64_t[]){1, 2, 2}, table);
    run_node_refused(&r, CLG_ERROR_DATA, "out of range");
}

TEST_GROUP(run_node_open, run_node_close)
