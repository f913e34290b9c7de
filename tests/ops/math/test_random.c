/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares random number operators with a reference of Philox in 64-bit products, one number at a
 * time: devices must give the same random numbers. The reference itself is tested with published
 * vectors, and its distribution with chi-squared over 64 bins, the Kolmogorov-Smirnov distance,
 * mean, variance and the correlation of adjacent elements. One sample in some thousand exceeds each
 * limit.
 *
 * Tolerance: float64 1e-12, float32 1e-5, float16 2e-3, bfloat16 2e-2. A uniform number is exact
 * except for the rounding of its scaling; for a normal one, logarithm, root and sine are accurate
 * to a few ULP.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"
#include "support/fixtures/sized_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the reference --------------------------------------------------------------------------- */

static void philox(uint32_t c[4], uint64_t key)
{
    uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
    for (int i = 0; i < 10; i++) {
        const uint64_t p = (uint64_t)0xD2511F53u * c[0], q = (uint64_t)0xCD9E8D57u * c[2];
        const uint32_t next[4] = {(uint32_t)(q >> 32) ^ c[1] ^ key0, (uint32_t)q,
                                  (uint32_t)(p >> 32) ^ c[3] ^ key1, (uint32_t)p};
        memcpy(c, next, sizeof next);
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
}

static double uniform_of(const uint32_t *w, bool is_double)
{
    return is_double ? ldexp(ldexp(w[0] >> 5, 26) + (w[1] >> 6), -53) : ldexp(w[0] >> 8, -24);
}

/* Returns the random number of element e. Counters are assigned to tiles of 16 elements. */
static double number_of(int64_t e, uint64_t key, bool is_double, bool normal)
{
    const int64_t numbers = is_double ? 2 : 4, tile = numbers * 16;
    const int64_t w = e % tile / 16, counter = e / tile * 16 + e % 16;
    uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
    philox(c, key);
    if (!normal) return uniform_of(c + w * 4 / numbers, is_double);
    const double u1 = is_double ? uniform_of(c, true) + ldexp(1, -54)
                                : ldexp((double)((float)c[w & 2] + 0.5F), -32);
    const double u2 = is_double ? uniform_of(c + 2, true) : ldexp(c[(w & 2) + 1], -32);
    const double angle = 2 * acos(-1.0) * u2, r = sqrt(-2 * log(u1));
    return r * (w & 1 ? sin(angle) : cos(angle));
}

static uint64_t key_of(float seed)
{
    uint32_t bits;
    memcpy(&bits, &seed, sizeof bits);
    return bits;
}

/* ---- tests of the reference ------------------------------------------------------------------ */

TEST(random__published_vectors)
{
    uint32_t zero[4] = {0, 0, 0, 0}, ones[4] = {~0u, ~0u, ~0u, ~0u};
    static const uint32_t of_zero[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    static const uint32_t of_ones[] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    philox(zero, 0);
    philox(ones, ~(uint64_t)0);
    assert_memory_equal(zero, of_zero, sizeof of_zero);
    assert_memory_equal(ones, of_ones, sizeof of_ones);
}

#define SAMPLE 40000

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Tests random values after mapping them to 0..1 by their cumulative distribution function. */
static void look_uniform(double *u)
{
    int bins[64] = {0};
    double sum = 0, squares = 0, lagged = 0, chi = 0, distance = 0;
    for (int i = 0; i < SAMPLE; i++) {
        const double v = u[i] - 0.5;
        assert_true(u[i] >= 0 && u[i] < 1);
        bins[(int)(u[i] * 64)]++;
        sum += v;
        squares += v * v;
        if (i > 0) lagged += v * (u[i - 1] - 0.5);
    }
    for (int i = 0; i < 64; i++)
        chi += (bins[i] - SAMPLE / 64.0) * (bins[i] - SAMPLE / 64.0) / (SAMPLE / 64.0);
    qsort(u, SAMPLE, sizeof *u, by_size);
    for (int i = 0; i < SAMPLE; i++)
        distance = fmax(distance, fmax(u[i] - (double)i / SAMPLE, (i + 1.0) / SAMPLE - u[i]));
    assert_true(fabs(sum / SAMPLE) < 3.5 * sqrt(1.0 / 12 / SAMPLE));
    assert_true(fabs(squares / SAMPLE - 1.0 / 12) < 3.5 * sqrt(1.0 / 180 / SAMPLE));
    assert_true(fabs(lagged / SAMPLE) < 3.5 / 12 / sqrt(SAMPLE));
    assert_true(chi < 63 + 3.5 * sqrt(2 * 63));
    assert_true(distance * sqrt(SAMPLE) < 1.95);
}

TEST(random__distributions)
{
    double *u = run_node_zeros(SAMPLE);
    for (int is_double = 0; is_double < 2; is_double++)
        for (int seed = 0; seed < 3; seed++) {
            for (int i = 0; i < SAMPLE; i++)
                u[i] = number_of(i, key_of((float)seed), is_double, false);
            look_uniform(u);
            for (int i = 0; i < SAMPLE; i++)
                u[i] = erfc(-number_of(i, key_of((float)seed), is_double, true) / sqrt(2.0)) / 2;
            look_uniform(u);
        }
}

/* ---- uniform and normal ---------------------------------------------------------------------- */

static double tolerance(clg_dtype dtype)
{
    return dtype == CLG_FLOAT64    ? 1e-12
           : dtype == CLG_FLOAT32  ? 1e-5
           : dtype == CLG_BFLOAT16 ? 2e-2
                                   : 2e-3;
}

static void check_numbers(bool normal, bool like, clg_dtype dtype, int64_t n, float seed)
{
    run_node r;
    const bool is_double = dtype == CLG_FLOAT64;
    double *y = run_node_zeros(n);
    for (int64_t i = 0; i < n; i++) {
        const double v = number_of(i, key_of(seed), is_double, normal);
        y[i] = normal ? 0.5 + 2 * v : -1.5 + 4 * v;
    }
    run_node_start(&r, NULL,
                   normal ? (like ? "RandomNormalLike" : "RandomNormal")
                          : (like ? "RandomUniformLike" : "RandomUniform"),
                   15);
    run_node_float(&r, "seed", (double)seed);
    run_node_float(&r, normal ? "mean" : "low", normal ? 0.5 : -1.5);
    run_node_float(&r, normal ? "scale" : "high", normal ? 2 : 2.5);
    if (like)
        run_node_input(&r, dtype, 2, (int64_t[]){1, n}, run_node_zeros(n));
    else
        run_node_ints(&r, "shape", 2, (int64_t[]){1, n});
    if (!like && dtype != CLG_FLOAT32) run_node_int(&r, "dtype", dtype);
    run_node_expect(&r, dtype, 2, (int64_t[]){1, n}, y);
    r.heavy = n > 3000;
    run_node_check(&r, tolerance(dtype));
}

TEST(random__sizes)
{
    static const int64_t sizes[] = {0, 1, 15, 16, 17, 63, 64, 65, 1000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int normal = 0; normal < 2; normal++)
            check_numbers(normal, i % 2, CLG_FLOAT32, sizes[i], 17.25F);
}

TEST(random__dtypes)
{
    static const clg_dtype dtypes[] = {CLG_FLOAT16, CLG_BFLOAT16, CLG_FLOAT64};
    for (int i = 0; i < 3; i++)
        for (int bits = 0; bits < 4; bits++)
            check_numbers(bits & 1, (bits & 2) || dtypes[i] == CLG_FLOAT64, dtypes[i], 131, -3.0F);
}

/* Without a dtype the output has the input's, which must be a float then; with one, the input's
 * does not matter. */
TEST(random__like_an_integer)
{
    run_node r;
    for (int normal = 0; normal < 2; normal++)
        for (int has_dtype = 0; has_dtype < 2; has_dtype++) {
            double y[5];
            for (int64_t i = 0; i < 5; i++) y[i] = number_of(i, key_of(3), false, normal);
            run_node_start(&r, NULL, normal ? "RandomNormalLike" : "RandomUniformLike", 15);
            run_node_float(&r, "seed", 3);
            if (has_dtype) run_node_int(&r, "dtype", CLG_FLOAT32);
            run_node_input(&r, CLG_INT64, 1, (int64_t[]){5}, run_node_zeros(5));
            run_node_expect(&r, has_dtype ? CLG_FLOAT32 : CLG_INT64, 1, (int64_t[]){5}, y);
            if (has_dtype)
                run_node_check(&r, tolerance(CLG_FLOAT32));
            else
                run_node_refused(&r, CLG_ERROR_UNSUPPORTED_DTYPE, "int64");
        }
}

TEST(random__many)
{
    check_numbers(false, false, CLG_FLOAT32, SAMPLE, 1);
    check_numbers(true, false, CLG_FLOAT32, SAMPLE, 1);
}

/* ---- Bernoulli, Dropout ---------------------------------------------------------------------- */

static void bernoulli(clg_dtype in, clg_dtype out, int64_t n)
{
    run_node r;
    double *p = run_node_random(n), *y = run_node_zeros(n);
    for (int64_t i = 0; i < n; i++) {
        p[i] = i == 3 ? NAN : i == 4 ? 1 : i == 5 ? 0 : rint(fabs(p[i]) * 16) / 16;
        y[i] = number_of(i, key_of(5), in == CLG_FLOAT64, false) < p[i];
    }
    run_node_start(&r, NULL, "Bernoulli", 15);
    run_node_float(&r, "seed", 5);
    if (out != in) run_node_int(&r, "dtype", out);
    run_node_input(&r, in, 1, &n, p);
    run_node_expect(&r, out, 1, &n, y);
    r.float64 = out == CLG_FLOAT64;
    run_node_check(&r, 0);
}

TEST(random__bernoulli)
{
    static const clg_dtype out[] = {CLG_FLOAT32, CLG_FLOAT16, CLG_BFLOAT16, CLG_BOOL,
                                    CLG_INT8,    CLG_UINT8,   CLG_INT16,    CLG_UINT16,
                                    CLG_INT32,   CLG_UINT32,  CLG_INT64,    CLG_UINT64};
    for (size_t i = 0; i < sizeof out / sizeof *out; i++) bernoulli(CLG_FLOAT32, out[i], 70);
    bernoulli(CLG_FLOAT64, CLG_FLOAT64, 131);
    bernoulli(CLG_FLOAT32, CLG_FLOAT64, 37);
    bernoulli(CLG_FLOAT16, CLG_BOOL, 131);
    bernoulli(CLG_BFLOAT16, CLG_BFLOAT16, 131);
    bernoulli(CLG_FLOAT32, CLG_BOOL, 0);
}

static void dropout(clg_dtype dtype, clg_dtype ratios, double ratio, bool mask, int64_t n)
{
    run_node r;
    double *x = run_node_random(n), *y = run_node_zeros(n), *kept = run_node_zeros(n);
    for (int64_t i = 0; i < n; i++) {
        x[i] = rint(x[i] * 32) / 32;
        kept[i] = number_of(i, 77, dtype == CLG_FLOAT64, false) >= ratio;
        y[i] = kept[i] != 0 ? x[i] / (1 - ratio) : 0;
    }
    run_node_start(&r, NULL, "Dropout", 13);
    run_node_int(&r, "seed", 77);
    run_node_input(&r, dtype, 1, &n, x);
    if (ratio != 0.5)
        run_node_input(&r, ratios, 0, NULL, &ratio);
    else
        run_node_absent(&r);
    run_node_input(&r, CLG_BOOL, 0, NULL, (double[]){1});
    run_node_expect(&r, dtype, 1, &n, y);
    if (mask) run_node_expect(&r, CLG_BOOL, 1, &n, kept);
    run_node_check(&r, tolerance(dtype));
}

TEST(random__dropout)
{
    dropout(CLG_FLOAT32, CLG_FLOAT32, 0.5, true, 200);
    dropout(CLG_FLOAT32, CLG_FLOAT32, 0.25, false, 77);
    dropout(CLG_FLOAT16, CLG_FLOAT32, 0.75, true, 65);
    dropout(CLG_BFLOAT16, CLG_FLOAT16, 0.125, true, 130);
    dropout(CLG_FLOAT64, CLG_FLOAT64, 0.1, true, 67);
    dropout(CLG_FLOAT32, CLG_FLOAT32, 0, true, 19);
    run_node r;
    run_node_start(&r, NULL, "Dropout", 13);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){1}, (double[]){1});
    run_node_input(&r, CLG_FLOAT32, 0, NULL, (double[]){1});
    run_node_input(&r, CLG_BOOL, 0, NULL, (double[]){1});
    run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){1}, (double[]){1});
    run_node_refused(&r, CLG_ERROR_DATA, "ratio");
}

/* Dropout in inference copies its input: by is_test other than 0 in opset 6, always in opset 7. */
TEST(random__dropout_is_test)
{
    run_node r;
    for (int is_test = 0; is_test <= 2; is_test++) {
        run_node_start(&r, NULL, "Dropout", is_test ? 6 : 7);
        if (is_test) run_node_int(&r, "is_test", is_test);
        run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){3}, (double[]){1, 2, 3});
        run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){3}, (double[]){1, 2, 3});
        run_node_check(&r, 0);
    }
}

/* ---- Multinomial ----------------------------------------------------------------------------- */

static void multinomial(clg_dtype dtype, clg_dtype out, int64_t batch, int64_t classes,
                        int64_t samples)
{
    run_node r;
    double *x = run_node_random(batch * classes), *y = run_node_zeros(batch * samples);
    for (int64_t i = 0; i < batch * classes; i++)
        x[i] = i % 7 == 2 ? -INFINITY : rint(x[i] * 32) / 16;
    for (int64_t e = 0; e < batch * samples; e++) {
        const double *row = x + e / samples * classes;
        uint32_t c[4] = {(uint32_t)e, 0, 0, 0};
        long double total = 0, sum = 0;
        philox(c, key_of(2));
        for (int64_t i = 0; i < classes; i++) total += expl((long double)row[i]);
        total *= (long double)uniform_of(c, dtype == CLG_FLOAT64);
        int64_t at = 0;
        while ((sum += expl((long double)row[at])) <= total) at++;
        y[e] = (double)at;
    }
    run_node_start(&r, NULL, "Multinomial", 7);
    run_node_float(&r, "seed", 2);
    run_node_int(&r, "sample_size", samples);
    if (out != CLG_INT32) run_node_int(&r, "dtype", out);
    run_node_input(&r, dtype, 2, (int64_t[]){batch, classes}, x);
    run_node_expect(&r, out, 2, (int64_t[]){batch, samples}, y);
    run_node_check(&r, 0);
}

TEST(random__multinomial)
{
    multinomial(CLG_FLOAT32, CLG_INT32, 3, 5, 40);
    multinomial(CLG_FLOAT32, CLG_INT64, 1, 1, 3);
    multinomial(CLG_FLOAT32, CLG_INT64, 2, 257, 65);
    multinomial(CLG_FLOAT16, CLG_INT32, 2, 33, 17);
    multinomial(CLG_BFLOAT16, CLG_INT32, 2, 17, 17);
    multinomial(CLG_FLOAT64, CLG_INT32, 2, 33, 17);
    multinomial(CLG_FLOAT32, CLG_INT32, 0, 5, 4);
    multinomial(CLG_FLOAT32, CLG_INT32, 3, 5, 0);
    /* One class has all the probability: NaN and -infinity have none, nor have finite values if
     * another is +infinity. */
    run_node r;
    run_node_start(&r, NULL, "Multinomial", 7);
    run_node_int(&r, "sample_size", 5);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 4},
                   (double[]){-INFINITY, NAN, 3, -INFINITY, 7, INFINITY, 1, NAN});
    run_node_expect(&r, CLG_INT32, 2, (int64_t[]){2, 5}, (double[]){2, 2, 2, 2, 2, 1, 1, 1, 1, 1});
    run_node_check(&r, 0);
}

/* ---- without a seed -------------------------------------------------------------------------- */

#define DRAWN 64

static void run_once(clg_session *session, float *out)
{
    assert_ok(clg_session_run(session));
    assert_ok(clg_session_get_output_data(session, "y", out, DRAWN * sizeof *out));
}

/* Checks that the runs, sessions and nodes of one model draw different numbers, and with a seed the
 * same ones. */
static void draw_twice(clg_context *context, const clg_session_options *options, const char *place,
                       void *user)
{
    const bool seeded = *(const bool *)user;
    clg_builder *b;
    clg_model *model;
    clg_session *first, *second;
    float a[DRAWN], again[DRAWN], other[DRAWN], zeros[DRAWN] = {0};
    assert_ok(clg_builder_create(13, &b));
    for (int i = 0; i < 2; i++) {
        assert_ok(clg_builder_node(b, NULL, "RandomNormal", i ? "m" : "n", 0, NULL, 1,
                                   (const char *[]){i ? "v" : "u"}));
        assert_ok(clg_builder_attribute_ints(b, "shape", 1, (int64_t[]){DRAWN}));
        if (seeded) assert_ok(clg_builder_attribute_float(b, "seed", 3));
    }
    assert_ok(clg_builder_node(b, NULL, "Sub", "sub", 2, (const char *[]){"u", "v"}, 1,
                               (const char *[]){"difference"}));
    assert_ok(clg_builder_input(b, "x", CLG_FLOAT32, 1, (int64_t[]){DRAWN}, NULL));
    assert_ok(clg_builder_node(b, NULL, "Add", "add", 2, (const char *[]){"difference", "x"}, 1,
                               (const char *[]){"y"}));
    assert_ok(clg_builder_output(b, "y"));
    assert_ok(clg_builder_build(b, &model));
    assert_ok(clg_session_create(context, model, options, &first));
    assert_ok(clg_session_create(context, model, options, &second));
    clg_session *const sessions[] = {first, second};
    for (int i = 0; i < 2; i++)
        assert_ok(sized_input(sessions[i], "x", CLG_FLOAT32, 1, (int64_t[]){DRAWN}, zeros));
    run_once(first, a);
    run_once(first, again);
    run_once(second, other);
    const bool same[] = {memcmp(a, again, sizeof a) == 0, memcmp(a, other, sizeof a) == 0,
                         memcmp(again, other, sizeof a) == 0, memcmp(a, zeros, sizeof a) == 0};
    for (int i = 0; i < 4; i++)
        if (same[i] != seeded)
            fail_msg("%s: the numbers are %s", place, same[i] ? "the same" : "others");
    clg_session_free(second);
    clg_session_free(first);
    clg_model_free(model);
    clg_builder_free(b);
}

TEST(random__seeds)
{
    bool seeded = true;
    run_node_each(draw_twice, &seeded);
    seeded = false;
    run_node_each(draw_twice, &seeded);
}

TEST_GROUP(run_node_open, run_node_close)
