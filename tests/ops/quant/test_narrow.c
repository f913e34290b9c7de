/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests casts from and to ONNX's types of one byte or less, exactly. The reference computes all
 * values of a floating-point type from its exponent, mantissa and bias, and finds the nearest one;
 * in a tie, the one with the even code.
 */
#include "support/cases/run_node.h"
#include "support/fixtures/sized_data.h"
#include "tensor/dtype.h"

#include <clgraph/inspect.h>

#include <math.h>

typedef struct kind {
    clg_dtype dtype;
    /* largest: the code of the largest finite value; sign: the mask of the sign bit. */
    int mantissa_bits, bias, largest, sign;
    bool has_nan, has_infinity, has_minus_zero;
} kind;

static const kind kinds[] = {
    {CLG_FLOAT8E4M3FN, 3, 7, 0x7e, 0x80, true, false, true},
    {CLG_FLOAT8E4M3FNUZ, 3, 8, 0x7f, 0x80, true, false, false},
    {CLG_FLOAT8E5M2, 2, 15, 0x7b, 0x80, true, true, true},
    {CLG_FLOAT8E5M2FNUZ, 2, 16, 0x7f, 0x80, true, false, false},
    {CLG_FLOAT4E2M1, 1, 1, 0x07, 0x08, false, false, true},
};
#define N_KINDS ((int)(sizeof kinds / sizeof kinds[0]))

static double size_of(const kind *k, int code)
{
    const int exponent = code >> k->mantissa_bits, first = 1 << k->mantissa_bits;
    const int mantissa = code % first + (exponent > 0 ? first : 0);
    return ldexp(mantissa, (exponent > 0 ? exponent : 1) - k->bias - k->mantissa_bits);
}

/* Returns the value of the type that is nearest to x. The code after the largest one represents all
 * values out of range. */
static double nearest(const kind *k, double x, int saturate, int64_t opset)
{
    const double largest = size_of(k, k->largest);
    const double over = k->has_infinity ? INFINITY : NAN;
    if (isnan(x)) return k->has_nan ? NAN : 0;
    int best = 0;
    for (int code = 1; code <= k->largest + 1; code++) {
        const double now = fabs(size_of(k, code) - fabs(x)),
                     before = fabs(size_of(k, best) - fabs(x));
        if (now < before || (now == before && code % 2 == 0)) best = code;
    }
    if (fabs(x) > largest * 2) best = k->largest + 1; /* differences would be equal when rounded */
    double y = size_of(k, best);
    if (isinf(x) || best > k->largest) y = saturate || !k->has_nan ? largest : over;
    if (isinf(x) && saturate && opset < 24 && !k->has_minus_zero) y = NAN;
    return copysign(y, x);
}

/* Rounds values to the dtype of the model's input. */
static void round_all(clg_dtype dtype, int64_t n, double *x)
{
    for (int64_t i = 0; i < n; i++) {
        if (dtype == CLG_FLOAT32) x[i] = (double)(float)x[i];
        if (dtype == CLG_FLOAT16) x[i] = half_to_float(half_from_float(float_for_narrowing(x[i])));
        if (dtype == CLG_BFLOAT16)
            x[i] = bfloat16_to_float(bfloat16_from_float(float_for_narrowing(x[i])));
    }
}

static void to_float(const kind *k, clg_dtype from, int64_t n, const double *x, int saturate,
                     int64_t opset)
{
    double *y = run_node_zeros(n);
    run_node r;
    for (int64_t i = 0; i < n; i++) y[i] = nearest(k, x[i], saturate, opset);
    run_node_start(&r, NULL, "Cast", opset);
    run_node_int(&r, "to", k->dtype);
    if (!saturate) run_node_int(&r, "saturate", 0);
    run_node_input(&r, from, 1, &n, x);
    run_node_expect(&r, k->dtype, 1, &n, y);
    run_node_check(&r, 0);
}

/* ---- floats ---------------------------------------------------------------------------------- */

/* Casts every float16. */
TEST(cast__all_of_float16)
{
    double *x = run_node_zeros(65536);
    for (int i = 0; i < 65536; i++) x[i] = half_to_float((uint16_t)i);
    for (int k = 0; k < N_KINDS; k++) {
        to_float(&kinds[k], CLG_FLOAT16, 65536, x, 1, 24);
        to_float(&kinds[k], CLG_FLOAT16, 65533, x, 0, 24);
    }
}

/* Casts values of the type, the midpoints between them, and the neighbours of these in dtype
 * `from`, to the type. */
static void around_middles(const kind *k, clg_dtype from, double ulp)
{
    enum { EACH = 7 };
    const int64_t n = (k->largest + 3) * EACH;
    double *x = run_node_zeros(n);
    int64_t at = 0;
    for (int code = 0; code <= k->largest; code++) {
        const double low = size_of(k, code), middle = (low + size_of(k, code + 1)) / 2;
        const double sign = code % 3 == 1 ? -1 : 1;
        const double numbers[EACH] = {low,
                                      low * (1 + ulp),
                                      low * (1 - ulp),
                                      middle,
                                      middle * (1 + ulp),
                                      middle * (1 - ulp),
                                      (low + middle) / 2};
        for (int i = 0; i < EACH; i++) x[at++] = sign * numbers[i];
    }
    const double specials[] = {0.0,   -0.0,   NAN,  INFINITY, -INFINITY, 1e6,  -1e6,
                               1e-30, -1e-30, 3e38, -3e38,    0x1p-149,  1e-7, -1e-7};
    for (int i = 0; i < 14; i++) x[at++] = specials[i];
    round_all(from, n, x);
    for (int saturate = 0; saturate < 2; saturate++) to_float(k, from, n, x, saturate, 24);
    to_float(k, from, n, x, 1, 19);
}

TEST(cast__ties)
{
    for (int k = 0; k < N_KINDS; k++) {
        around_middles(&kinds[k], CLG_FLOAT32, 0x1p-22);
        around_middles(&kinds[k], CLG_BFLOAT16, 0x1p-6);
        around_middles(&kinds[k], CLG_FLOAT64, 0x1p-50); /* float32 would round it away */
    }
}

/* 1 / x shows the sign of a zero: types without -0, whose code is NaN, must give +0. */
TEST(cast__zeros)
{
    const double x[] = {0.0, -0.0, 1e-9, -1e-9};
    for (int k = 0; k < N_KINDS; k++) {
        const double minus = kinds[k].has_minus_zero ? -INFINITY : INFINITY,
                     y[] = {INFINITY, minus, INFINITY, minus};
        run_node r;
        run_node_start(&r, NULL, "Cast", 24);
        run_node_int(&r, "to", kinds[k].dtype);
        run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){4}, x);
        run_node_then(&r, "Cast");
        run_node_int(&r, "to", CLG_FLOAT32);
        run_node_then(&r, "Reciprocal");
        run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){4}, y);
        run_node_check(&r, 0);
    }
}

TEST(cast__integers_to_floats)
{
    const double x[] = {0,   1,   -1,    2,     3,     5,     -7,       17,           19,  27,
                        448, 449, 463,   464,   465,   480,   -464,     -465,         249, 248,
                        1e6, 5e4, 61439, 57345, 61440, 61441, 16777217, -2147483648.0},
                 bools[] = {0, 1, 1};
    for (int k = 0; k < N_KINDS; k++) {
        to_float(&kinds[k], CLG_INT64, 28, x, 1, 24);
        to_float(&kinds[k], CLG_INT32, 28, x, 0, 24);
        to_float(&kinds[k], CLG_UINT8, 3, x + 7, 1, 24);
        to_float(&kinds[k], CLG_BOOL, 3, bools, 1, 24);
    }
}

/* ---- codes ----------------------------------------------------------------------------------- */

/* Returns the value that a code of any type represents. */
static double meaning(clg_dtype dtype, int code)
{
    if (dtype == CLG_UINT4 || dtype == CLG_UINT2) return code;
    if (dtype == CLG_INT4) return code < 8 ? code : code - 16;
    if (dtype == CLG_INT2) return code < 2 ? code : code - 4;
    if (dtype == CLG_FLOAT8E8M0) return code == 255 ? (double)NAN : ldexp(1, code - 127);
    const kind *k = kinds;
    while (k->dtype != dtype) k++;
    const int size = code % k->sign;
    const double sign = code < k->sign ? 1 : -1;
    if (size <= k->largest)
        return code == k->sign && !k->has_minus_zero ? (double)NAN : sign * size_of(k, size);
    return k->has_infinity && size == k->largest + 1 ? sign * INFINITY : (double)NAN;
}

typedef struct reading {
    clg_dtype dtype, to;
    int bits;
    int64_t n;
} reading;

/* Casts n elements with all codes of a dtype to `to`, checks their values, and casts them back,
 * which must give the same bytes. user: the `reading`. */
static void read_codes(clg_context *context, const clg_session_options *options, const char *name,
                       void *user)
{
    const reading *what = user;
    const char *in = "in", *mid = "mid", *out = "out";
    uint8_t bytes[256] = {0};
    const int per_byte = 8 / what->bits, n_codes = 1 << what->bits;
    clg_builder *b;
    clg_model *model;
    clg_session *session;
    clg_value *numbers, *codes;
    if (what->to == CLG_FLOAT64 && !clg_context_device(context)->fp64) return;
    for (int64_t i = 0; i < what->n; i++)
        bytes[i / per_byte] |= (uint8_t)((i % n_codes) << (i % per_byte * what->bits));
    assert_ok(clg_builder_create(24, &b));
    assert_ok(clg_builder_input(b, in, what->dtype, 1, &what->n, NULL));
    assert_ok(clg_builder_node(b, NULL, "Cast", "", 1, &in, 1, &mid));
    assert_ok(clg_builder_attribute_int(b, "to", what->to));
    assert_ok(clg_builder_node(b, NULL, "Cast", "", 1, &mid, 1, &out));
    assert_ok(clg_builder_attribute_int(b, "to", what->dtype));
    assert_ok(clg_builder_attribute_int(b, "saturate", 0));
    assert_ok(clg_builder_output(b, mid));
    assert_ok(clg_builder_output(b, out));
    assert_ok(clg_builder_build(b, &model));
    assert_ok(clg_session_create(context, model, options, &session));
    assert_ok(sized_input(session, in, what->dtype, 1, &what->n, bytes));
    assert_ok(clg_session_run(session));
    assert_ok(clg_session_get_output(session, mid, &numbers));
    assert_ok(clg_session_get_output(session, out, &codes));
    for (int64_t i = 0; i < what->n; i++) {
        const double got = clg_value_get_double(numbers, i),
                     want = meaning(what->dtype, (int)(i % n_codes));
        if (got != want && !(isnan(got) && isnan(want)))
            fail_msg("%s on %s: code %d is read as %g, not %g", clg_dtype_name(what->dtype), name,
                     (int)(i % n_codes), got, want);
        /* All NaN codes are equivalent. */
        if (what->bits < 8 || isnan(want)) continue;
        assert_int_equal(((const uint8_t *)clg_value_data(codes))[i], bytes[i]);
    }
    if (what->bits < 8)
        assert_memory_equal(clg_value_data(codes), bytes, clg_value_size_bytes(codes));
    clg_value_free(numbers);
    clg_value_free(codes);
    clg_session_free(session);
    clg_model_free(model);
    clg_builder_free(b);
}

TEST(cast__all_codes)
{
    static const clg_dtype bytes[] = {CLG_FLOAT8E4M3FN, CLG_FLOAT8E4M3FNUZ, CLG_FLOAT8E5M2,
                                      CLG_FLOAT8E5M2FNUZ, CLG_FLOAT8E8M0};
    static const clg_dtype fours[] = {CLG_FLOAT4E2M1, CLG_INT4, CLG_UINT4};
    static const clg_dtype wider[] = {CLG_FLOAT32, CLG_FLOAT64, CLG_BFLOAT16};
    for (int to = 0; to < 3; to++) {
        for (int i = 0; i < 5; i++)
            run_node_each(read_codes, &(reading){bytes[i], wider[to], 8, 256});
        for (int i = 0; i < 3; i++)
            for (int64_t n = 14; n < 18; n++)
                run_node_each(read_codes, &(reading){fours[i], wider[to], 4, n});
        for (int64_t n = 1; n < 12; n += 2) {
            run_node_each(read_codes, &(reading){CLG_INT2, wider[to], 2, n});
            run_node_each(read_codes, &(reading){CLG_UINT2, wider[to], 2, n});
        }
    }
    run_node_each(read_codes, &(reading){CLG_INT4, CLG_INT8, 4, 255});
    run_node_each(read_codes, &(reading){CLG_UINT4, CLG_UINT64, 4, 16});
    run_node_each(read_codes, &(reading){CLG_INT2, CLG_INT64, 2, 1000});
    run_node_each(read_codes, &(reading){CLG_UINT2, CLG_INT32, 2, 5});
    run_node_each(read_codes, &(reading){CLG_FLOAT4E2M1, CLG_FLOAT8E5M2, 4, 16});
    run_node_each(read_codes, &(reading){CLG_INT4, CLG_FLOAT8E4M3FN, 4, 16});
    run_node_each(read_codes, &(reading){CLG_UINT2, CLG_INT4, 2, 9});
}

/* ---- integers -------------------------------------------------------------------------------- */

static void to_integer(clg_dtype from, clg_dtype to, int64_t n, const double *x, const double *y)
{
    run_node r;
    run_node_start(&r, NULL, "Cast", 21);
    run_node_int(&r, "to", to);
    run_node_input(&r, from, 1, &n, x);
    run_node_expect(&r, to, 1, &n, y);
    run_node_check(&r, 0);
}

/* Values are truncated to integers, of which the low bits are stored. */
TEST(cast__to_few_bits)
{
    const double x[] = {0, 1, -1, 7, 8, 15, 16, -8, -9, 100, -100},
                 int4[] = {0, 1, -1, 7, -8, -1, 0, -8, 7, 4, -4},
                 uint4[] = {0, 1, 15, 7, 8, 15, 0, 8, 7, 4, 12},
                 int2[] = {0, 1, -1, -1, 0, -1, 0, 0, -1, 0, 0},
                 uint2[] = {0, 1, 3, 3, 0, 3, 0, 0, 3, 0, 0};
    static const clg_dtype from[] = {CLG_FLOAT32, CLG_FLOAT16, CLG_FLOAT64, CLG_BFLOAT16,
                                     CLG_INT8,    CLG_INT16,   CLG_INT32,   CLG_INT64};
    for (size_t i = 0; i < sizeof from / sizeof from[0]; i++) {
        to_integer(from[i], CLG_INT4, 11, x, int4);
        to_integer(from[i], CLG_UINT4, 11, x, uint4);
        to_integer(from[i], CLG_INT2, 11, x, int2);
        to_integer(from[i], CLG_UINT2, 11, x, uint2);
    }
    const double parts[] = {0.99, -0.99, 2.5, -2.5, 3.999, NAN, 6.5},
                 whole[] = {0, 0, 2, -2, 3, 0, 6};
    to_integer(CLG_FLOAT32, CLG_INT4, 7, parts, whole);
    const double numbers[] = {-448, 3.5, -0.875, 448, NAN}, bytes[] = {-128, 3, 0, 127, 0},
                 trues[] = {1, 1, 1, 1, 1};
    to_integer(CLG_FLOAT8E4M3FN, CLG_INT8, 5, numbers, bytes);
    to_integer(CLG_FLOAT8E4M3FN, CLG_BOOL, 5, numbers, trues);
    const double ones[] = {-1, 1}, low[] = {255, 1};
    to_integer(CLG_INT2, CLG_UINT8, 2, ones, low);
}

/* ---- float8e8m0 ------------------------------------------------------------------------------ */

static double power(double x, const char *mode, bool saturate)
{
    const double min = ldexp(1, -127), largest = ldexp(1, 127);
    if (isnan(x)) return NAN;
    if (x < min) return saturate ? min : NAN;
    int exponent;
    const double fraction = isinf(x) ? 1 : 2 * frexp(x, &exponent); /* significand in [1, 2) */
    if (isinf(x)) return saturate ? largest : NAN;
    double y = ldexp(1, exponent - 1);
    if (mode[0] == 'u' ? fraction > 1 : mode[0] == 'n' && fraction >= 1.5) y *= 2;
    return y <= largest ? y : saturate ? largest : NAN;
}

static void to_power(clg_dtype from, int64_t n, const double *numbers)
{
    static const char *const modes[] = {"up", "down", "nearest"};
    double *x = run_node_zeros(n), *y = run_node_zeros(n);
    for (int64_t i = 0; i < n; i++) x[i] = numbers[i];
    round_all(from, n, x);
    for (int m = 0; m < 3; m++) {
        for (int saturate = 0; saturate < 2; saturate++) {
            run_node r;
            for (int64_t i = 0; i < n; i++) y[i] = power(x[i], modes[m], saturate);
            run_node_start(&r, NULL, "Cast", 24);
            run_node_int(&r, "to", CLG_FLOAT8E8M0);
            run_node_string(&r, "round_mode", modes[m]);
            run_node_int(&r, "saturate", saturate);
            run_node_input(&r, from, 1, &n, x);
            run_node_expect(&r, CLG_FLOAT8E8M0, 1, &n, y);
            run_node_check(&r, 0);
        }
    }
}

TEST(cast__powers_of_two)
{
    const double floats[] = {0,          1,           1.25,        1.4999998, 1.5,
                             1.75,       1.9999999,   2,           3,         0.1,
                             1e-20,      1e30,        1.7e38,      1.8e38,    2.6e38,
                             3e38,       INFINITY,    NAN,         0x1p-126,  0x1p-127,
                             0x1.8p-127, 0x1.7fp-127, 0x1.01p-127, 0x1p-128,  0x1p-149};
    const double integers[] =
        {1,        2,        3,        5,      6,          7,        16777216,
         16777217, 25165823, 25165824, 0x1p40, 0x1p40 + 1, 0x1.8p40, 0x1.8p40 - 1,
         0x1p62},
                 doubles[] = {1, 1 + 0x1p-50, 1.5 - 0x1p-50, 1.5, 2 - 0x1p-50, 1e300, 1e-300, 0};
    to_power(CLG_FLOAT32, 25, floats);
    to_power(CLG_FLOAT16, 10, floats);
    to_power(CLG_INT64, 15, integers);
    to_power(CLG_UINT64, 15, integers);
    to_power(CLG_FLOAT64, 8, doubles);
}

/* ---- CastLike, views, moves ------------------------------------------------------------------ */

TEST(cast_like__takes_the_type)
{
    const double x[] = {1, -2.6, 300, 0.01, 7}, y[] = {1, -2.5, 240, 0.009765625, 7},
                 w[] = {1, -2, -4, 0, 7};
    run_node r;
    run_node_start(&r, NULL, "CastLike", 24);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){5}, x);
    run_node_input(&r, CLG_FLOAT8E4M3FNUZ, 1, (int64_t[]){0}, NULL);
    run_node_expect(&r, CLG_FLOAT8E4M3FNUZ, 1, (int64_t[]){5}, y);
    run_node_check(&r, 0);
    run_node_start(&r, NULL, "CastLike", 21);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){5}, x);
    run_node_constant(&r, CLG_INT4, 1, (int64_t[]){3}, x);
    run_node_expect(&r, CLG_INT4, 1, (int64_t[]){5}, w);
    run_node_check(&r, 0);
}

/* Rows of three 4-bit elements do not end at byte boundaries: a view must keep the bytes of the
 * whole tensor. */
TEST(views__keep_the_bytes)
{
    const double x[] = {1, -2, 3, -4, 5, -6, 7, -8, 0, 1, 2, -3, 4, -5, 6}, dims[] = {3, -1},
                 *cast = x;
    static const clg_dtype dtypes[] = {CLG_INT4, CLG_FLOAT8E5M2};
    for (int i = 0; i < 2; i++) {
        run_node r;
        run_node_start(&r, NULL, "Reshape", 21);
        run_node_input(&r, dtypes[i], 2, (int64_t[]){5, 3}, x);
        run_node_constant(&r, CLG_INT64, 1, (int64_t[]){2}, dims);
        run_node_then(&r, "Cast");
        run_node_int(&r, "to", CLG_FLOAT32);
        run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){3, 5}, cast);
        run_node_check(&r, 0);
        run_node_start(&r, NULL, "Identity", 21);
        run_node_input(&r, dtypes[i], 2, (int64_t[]){5, 3}, x);
        run_node_then(&r, "Flatten");
        run_node_int(&r, "axis", 0);
        run_node_expect(&r, dtypes[i], 2, (int64_t[]){1, 15}, x);
        run_node_check(&r, 0);
    }
}

TEST(cast__between_strided_and_fused_nodes)
{
    const double x[] = {1, 2, 3, -4, -5, -6}, y[] = {1, -4, 2, -5, 3, -6}, z[] = {1, 0, 2, 0, 3, 0};
    run_node r;
    run_node_start(&r, NULL, "Transpose", 21);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, x);
    run_node_then(&r, "Cast");
    run_node_int(&r, "to", CLG_INT4);
    run_node_expect(&r, CLG_INT4, 2, (int64_t[]){3, 2}, y);
    run_node_check(&r, 0);
    run_node_start(&r, NULL, "Transpose", 21);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, x);
    run_node_then(&r, "Relu");
    run_node_then(&r, "Cast");
    run_node_int(&r, "to", CLG_FLOAT4E2M1);
    run_node_then(&r, "Cast");
    run_node_int(&r, "to", CLG_FLOAT32);
    run_node_then(&r, "Abs");
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){3, 2}, z);
    run_node_check(&r, 0);
}

/* One-byte elements are moved as those of all other dtypes are. */
TEST(bytes__are_moved)
{
    const double x[] = {1, 2, 3, -4, -5, -6}, transposed[] = {1, -4, 2, -5, 3, -6},
                 part[] = {2, 3, -5, -6}, twice[] = {1, 2, 3, 1, 2, 3, -4, -5, -6, -4, -5, -6},
                 index[] = {1, 0, 1}, rows[] = {-4, -5, -6, 1, 2, 3, -4, -5, -6}, starts[] = {1},
                 ends[] = {3}, axes[] = {1};
    const clg_dtype dtype = CLG_FLOAT8E4M3FN;
    run_node r;
    run_node_start(&r, NULL, "Transpose", 21);
    run_node_input(&r, dtype, 2, (int64_t[]){2, 3}, x);
    run_node_expect(&r, dtype, 2, (int64_t[]){3, 2}, transposed);
    run_node_check(&r, 0);
    run_node_start(&r, NULL, "Transpose", 21);
    run_node_input(&r, dtype, 2, (int64_t[]){2, 3}, x);
    run_node_then(&r, "Cast");
    run_node_int(&r, "to", CLG_FLOAT32);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){3, 2}, transposed);
    run_node_check(&r, 0);
    run_node_start(&r, NULL, "Slice", 13);
    run_node_input(&r, dtype, 2, (int64_t[]){2, 3}, x);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, starts);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, ends);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, axes);
    run_node_expect(&r, dtype, 2, (int64_t[]){2, 2}, part);
    run_node_check(&r, 0);
    run_node_start(&r, NULL, "Concat", 13);
    run_node_int(&r, "axis", 1);
    run_node_input(&r, dtype, 2, (int64_t[]){2, 3}, x);
    run_node_constant(&r, dtype, 2, (int64_t[]){2, 3}, x);
    run_node_expect(&r, dtype, 2, (int64_t[]){2, 6}, twice);
    run_node_check(&r, 0);
    run_node_start(&r, NULL, "Gather", 13);
    run_node_input(&r, dtype, 2, (int64_t[]){2, 3}, x);
    run_node_input(&r, CLG_INT64, 1, (int64_t[]){3}, index);
    run_node_expect(&r, dtype, 2, (int64_t[]){3, 3}, rows);
    run_node_check(&r, 0);
}

TEST(cast__nothing)
{
    run_node r;
    run_node_start(&r, NULL, "Cast", 21);
    run_node_int(&r, "to", CLG_INT4);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){0, 3}, NULL);
    run_node_expect(&r, CLG_INT4, 2, (int64_t[]){0, 3}, NULL);
    run_node_check(&r, 0);
}

TEST(narrow__refuses)
{
    const double x[4] = {0};
    run_node r;
    run_node_start(&r, NULL, "Add", 21);
    run_node_input(&r, CLG_INT4, 1, (int64_t[]){4}, x);
    run_node_input(&r, CLG_INT4, 1, (int64_t[]){4}, x);
    run_node_expect(&r, CLG_INT4, 1, (int64_t[]){4}, x);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_DTYPE, "(Add, opset 21): input 0 is int4");
    run_node_start(&r, NULL, "Transpose", 21);
    run_node_input(&r, CLG_INT4, 1, (int64_t[]){4}, x);
    run_node_expect(&r, CLG_INT4, 1, (int64_t[]){4}, x);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_DTYPE, "(Transpose, opset 21): input 0 is int4");
    run_node_start(&r, NULL, "Cast", 24);
    run_node_int(&r, "to", CLG_COMPLEX64);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){4}, x);
    run_node_expect(&r, CLG_COMPLEX64, 1, (int64_t[]){4}, x);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_DTYPE, "'to' is 14 (complex64)");
    run_node_start(&r, NULL, "Cast", 24);
    run_node_int(&r, "to", CLG_FLOAT8E8M0);
    run_node_string(&r, "round_mode", "sideways");
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){4}, x);
    run_node_expect(&r, CLG_FLOAT8E8M0, 1, (int64_t[]){4}, x);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "'round_mode' is 'sideways'");
}

TEST_GROUP(run_node_open, run_node_close)
