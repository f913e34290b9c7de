/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests ONNX's pointwise operators: broadcast and strided inputs, many inputs, optional inputs and
 * mixed dtypes. test_pointwise_floats.c and test_pointwise_ints.c test their formulas.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"
#include "support/fixtures/sized_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- broadcast and strided inputs ------------------------------------------------------------ */

/* Compares y = a - b, with broadcasting, with a reference that computes with coordinates. */
static void check_broadcast(int rank_a, const int64_t *a_dims, int rank_b, const int64_t *b_dims)
{
    run_node r;
    const int rank = rank_a > rank_b ? rank_a : rank_b;
    int64_t dims[CLG_MAX_RANK], n = 1, n_a = 1, n_b = 1;
    for (int i = 0; i < rank; i++) {
        const int64_t da = i < rank - rank_a ? 1 : a_dims[i - rank + rank_a];
        const int64_t db = i < rank - rank_b ? 1 : b_dims[i - rank + rank_b];
        dims[i] = da == 1 ? db : da;
        n *= dims[i];
        n_a *= da;
        n_b *= db;
    }
    const double *a = run_node_random(n_a), *b = run_node_random(n_b);
    double *y = run_node_zeros(n);
    for (int64_t at = 0; at < n; at++) {
        int64_t rest = at, ia = 0, ib = 0, sa = 1, sb = 1;
        for (int i = rank - 1; i >= 0; i--) {
            const int64_t place = rest % dims[i];
            rest /= dims[i];
            const int64_t da = i < rank - rank_a ? 1 : a_dims[i - rank + rank_a];
            const int64_t db = i < rank - rank_b ? 1 : b_dims[i - rank + rank_b];
            ia += da == 1 ? 0 : place * sa;
            ib += db == 1 ? 0 : place * sb;
            sa *= da;
            sb *= db;
        }
        y[at] = a[ia] - b[ib];
    }
    run_node_start(&r, NULL, "Sub", 13);
    run_node_input(&r, CLG_FLOAT32, rank_a, a_dims, a);
    run_node_input(&r, CLG_FLOAT32, rank_b, b_dims, b);
    run_node_expect(&r, CLG_FLOAT32, rank, dims, y);
    run_node_check(&r, 1e-7);
}

TEST(pointwise__broadcasts)
{
    check_broadcast(0, NULL, 0, NULL);
    check_broadcast(DIMS(1), DIMS(1));
    check_broadcast(DIMS(131), DIMS(131));
    check_broadcast(DIMS(7, 19), 0, NULL);             /* a scalar */
    check_broadcast(0, NULL, DIMS(40001));             /* more than one iteration */
    check_broadcast(DIMS(5, 33), DIMS(33));            /* a row */
    for (int64_t lanes = 4; lanes <= 16; lanes *= 2) { /* channel-blocked feature maps */
        check_broadcast(DIMS(2, 3, 5, 7, lanes), DIMS(3, 1, 1, lanes));
        check_broadcast(DIMS(2, 3, 1, 1, lanes), DIMS(2, 3, 5, 7, lanes));
        check_broadcast(DIMS(1, 1200, lanes), DIMS(lanes));
        check_broadcast(DIMS(3, 5, lanes), DIMS(3, 5, 1)); /* a scalar for each vector */
    }
    check_broadcast(DIMS(37, 1), DIMS(37, 70));                      /* a column */
    check_broadcast(DIMS(2, 3, 5, 7), DIMS(3, 1, 1));                /* channels, short rows */
    check_broadcast(DIMS(2, 3, 9, 11), DIMS(3, 1, 1));               /* channels, long rows */
    check_broadcast(DIMS(3, 1, 5), DIMS(1, 4, 1));                   /* both */
    check_broadcast(DIMS(2, 1, 3, 1, 2, 1), DIMS(1, 2, 1, 3, 1, 2)); /* nothing merges, rank 6 */
    check_broadcast(DIMS(2, 1, 3, 1, 2, 1, 2, 17), DIMS(2, 2, 1, 3, 1, 2, 1, 17)); /* rank 8 */
    check_broadcast(DIMS(2, 70, 1), DIMS(70, 16)); /* rows as long as a vector */
    check_broadcast(DIMS(0, 3), DIMS(3));
    check_broadcast(DIMS(4, 0), DIMS(1));
}

/* Checks Abs of views of x, which kernels must access in place. */
TEST(pointwise__views)
{
    const int64_t n = 4 * 6 * 40;
    const double *x = run_node_random(n);
    run_node r;
    /* every second column from 1 on */
    double *y = run_node_zeros(4 * 6 * 20);
    for (int64_t i = 0; i < 4 * 6 * 20; i++) y[i] = fabs(x[i / 20 * 40 + 1 + 2 * (i % 20)]);
    run_node_start(&r, NULL, "Slice", 13);
    run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){4, 6, 40}, x);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, (double[]){1});
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, (double[]){40});
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, (double[]){2});
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, (double[]){2});
    run_node_then(&r, "Abs");
    run_node_expect(&r, CLG_FLOAT32, 3, (int64_t[]){4, 6, 20}, y);
    run_node_check(&r, 1e-7);
    /* outer dimensions exchanged */
    double *z = run_node_zeros(n);
    for (int64_t i = 0; i < n; i++) z[i] = fabs(x[i / 40 % 4 * 240 + i / 160 * 40 + i % 40]);
    run_node_start(&r, NULL, "Transpose", 13);
    run_node_ints(&r, "perm", 3, (int64_t[]){1, 0, 2});
    run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){4, 6, 40}, x);
    run_node_then(&r, "Abs");
    run_node_expect(&r, CLG_FLOAT32, 3, (int64_t[]){6, 4, 40}, z);
    run_node_check(&r, 1e-7);
}

/* ---- operators ------------------------------------------------------------------------------- */

/* Checks Mean or Max of 41 inputs, x / 2 and x alternately, which is more than one kernel accesses.
 */
static void run_many(clg_context *context, const clg_session_options *options, const char *place,
                     void *user)
{
    const char *op = user, *inputs[41];
    clg_builder *b;
    clg_model *model;
    clg_session *session;
    float x[37], y[37], got[37];
    const bool is_mean = strcmp(op, "Mean") == 0;
    for (int i = 0; i < 41; i++) inputs[i] = i % 2 ? "x" : "y";
    for (int i = 0; i < 37; i++) {
        x[i] = (float)(i - 12);
        y[i] = x[i] / 2;
    }
    assert_ok(clg_builder_create(13, &b));
    assert_ok(clg_builder_input(b, "x", CLG_FLOAT32, 1, (int64_t[]){37}, NULL));
    assert_ok(clg_builder_input(b, "y", CLG_FLOAT32, 1, (int64_t[]){37}, NULL));
    assert_ok(clg_builder_node(b, NULL, op, "many", 41, inputs, 1, (const char *[]){"out"}));
    assert_ok(clg_builder_output(b, "out"));
    assert_ok(clg_builder_build(b, &model));
    assert_ok(clg_session_create(context, model, options, &session));
    assert_ok(sized_input(session, "x", CLG_FLOAT32, 1, (int64_t[]){37}, x));
    assert_ok(sized_input(session, "y", CLG_FLOAT32, 1, (int64_t[]){37}, y));
    assert_ok(clg_session_run(session));
    assert_ok(clg_session_get_output_data(session, "out", got, sizeof got));
    for (int i = 0; i < 37; i++) {
        const float right = is_mean ? (20 * x[i] + 21 * y[i]) / 41 : fmaxf(x[i], y[i]);
        if (!(fabsf(got[i] - right) <= 1e-5f * fabsf(right)))
            fail_msg("%s of 41 on %s: %g, not %g", op, place, got[i], right);
    }
    clg_session_free(session);
    clg_model_free(model);
    clg_builder_free(b);
}

TEST(pointwise__many_inputs)
{
    run_node_each(run_many, "Mean");
    run_node_each(run_many, "Max");
}

/* Pow's dtypes: the result has that of the base, and integer results are exact. */
TEST(pointwise__powers)
{
    run_node r;
    const double base[] = {3, -2, 5, 7, 2}, whole[] = {6, 3, 0, 2, 30},
                 fraction[] = {0.5, 2, 1.5, -1, 0};
    run_node_start(&r, NULL, "Pow", 13);
    run_node_input(&r, CLG_INT32, 1, (int64_t[]){5}, base);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){5}, whole);
    run_node_expect(&r, CLG_INT32, 1, (int64_t[]){5}, (double[]){729, -8, 1, 49, 1073741824});
    run_node_check(&r, 0);
    run_node_start(&r, NULL, "Pow", 13);
    run_node_input(&r, CLG_INT64, 1, (int64_t[]){5}, base);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){5}, fraction);
    run_node_expect(&r, CLG_INT64, 1, (int64_t[]){5}, (double[]){1, 4, 11, 0, 1});
    run_node_check(&r, 0);
    run_node_start(&r, NULL, "Pow", 13);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){5}, base);
    run_node_input(&r, CLG_INT64, 1, (int64_t[]){5}, whole);
    run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){5}, (double[]){729, -8, 1, 49, 1073741824});
    run_node_check(&r, 1e-6);
    static const double known[] = {1, 2, 3, -1, 0.5};
    const double bases[] = {3, -2, -0.0, -INFINITY, 2};
    for (int k = 0; k < 5; k++) {
        double y[5];
        for (int i = 0; i < 5; i++) y[i] = pow(bases[i], known[k]);
        run_node_start(&r, NULL, "Pow", 13);
        run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){5}, bases);
        run_node_constant(&r, CLG_FLOAT32, 0, NULL, &known[k]);
        run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){5}, y);
        run_node_check(&r, 1e-7);
    }
}

/* Whole exponents of float64: PoCL 3.1's pow of vectors is wrong by powers of two in some lanes. */
static void run_double_powers(clg_dtype exponents)
{
    enum { ROWS = 5, COLUMNS = 20, N = ROWS * COLUMNS };
    static const double bases[] = {1.59120869, -2.61046085, 1.5936441, -0.23618456};
    static const int powers[] = {3, 1, 0, 3, 2, 3, 2, 1, 0, 3, 1, 0, 0, 2, 0, 2, 1, 2, 2, -1};
    run_node r;
    double a[COLUMNS], b[N], y[N];
    for (int i = 0; i < COLUMNS; i++) a[i] = bases[i % 4];
    for (int i = 0; i < N; i++) {
        const double base = bases[i % 4];
        const int power = powers[i / COLUMNS * 4 + i % 4];
        b[i] = power;
        y[i] = 1;
        for (int k = 0; k < abs(power); k++) y[i] = power < 0 ? y[i] / base : y[i] * base;
    }
    run_node_start(&r, NULL, "Pow", 13);
    run_node_input(&r, CLG_FLOAT64, 1, (int64_t[]){COLUMNS}, a);
    run_node_input(&r, exponents, 2, (int64_t[]){ROWS, COLUMNS}, b);
    run_node_expect(&r, CLG_FLOAT64, 2, (int64_t[]){ROWS, COLUMNS}, y);
    run_node_check(&r, 1e-12);
}

TEST(pointwise__powers_of_double)
{
    run_double_powers(CLG_FLOAT64);
    run_double_powers(CLG_FLOAT32);
    run_double_powers(CLG_INT64);
    run_double_powers(CLG_INT32);
}

/* Small angles beside a large one: PoCL 3.1's functions of vectors are wrong in the other lanes. */
TEST(pointwise__small_angles_beside_a_large_one)
{
    static const struct {
        const char *op_type;
        double (*reference)(double);
    } rows[] = {{"Sin", sin}, {"Cos", cos}, {"Tan", tan}};
    enum { N = 64 };
    for (int k = 0; k < 3; k++) {
        run_node r;
        double x[N], y[N];
        for (int i = 0; i < N; i++) {
            x[i] = (double)(float)(i % 16 == 5 ? 1e8 : 0.0036 / (1 << i % 12));
            y[i] = rows[k].reference(x[i]);
        }
        run_node_start(&r, NULL, rows[k].op_type, 7);
        run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){N}, x);
        run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){N}, y);
        run_node_check(&r, 1e-6);
    }
}

TEST(pointwise__clip)
{
    run_node r;
    const double x[] = {-3, -1, 0, 1, 3, NAN, INFINITY, -INFINITY}, bounds[] = {-2, 2};
    const int64_t dims[] = {8};
    for (int k = 0; k < 4; k++) {
        const bool low = k & 1, high = k & 2;
        double y[8];
        for (int i = 0; i < 8; i++) y[i] = low && x[i] < -2 ? -2 : high && x[i] > 2 ? 2 : x[i];
        run_node_start(&r, NULL, "Clip", 13);
        run_node_input(&r, CLG_FLOAT32, 1, dims, x);
        if (low)
            run_node_input(&r, CLG_FLOAT32, 0, NULL, &bounds[0]);
        else
            run_node_absent(&r);
        if (high) run_node_input(&r, CLG_FLOAT32, 0, NULL, &bounds[1]);
        run_node_expect(&r, CLG_FLOAT32, 1, dims, y);
        run_node_check(&r, 0);
    }
    /* Where min is above max, the result is max. */
    run_node_start(&r, NULL, "Clip", 13);
    run_node_input(&r, CLG_INT8, 1, (int64_t[]){3}, (double[]){-9, 0, 9});
    run_node_input(&r, CLG_INT8, 0, NULL, (double[]){5});
    run_node_input(&r, CLG_INT8, 0, NULL, (double[]){-5});
    run_node_expect(&r, CLG_INT8, 1, (int64_t[]){3}, (double[]){-5, -5, -5});
    run_node_check(&r, 0);
    run_node_start(&r, NULL, "Clip", 6);
    run_node_float(&r, "min", -2);
    run_node_float(&r, "max", 2);
    run_node_input(&r, CLG_FLOAT32, 1, dims, x);
    run_node_expect(&r, CLG_FLOAT32, 1, dims, (double[]){-2, -1, 0, 1, 2, NAN, 2, -2});
    run_node_check(&r, 0);
}

/* Before opset 7 the second input was aligned to an axis. */
TEST(pointwise__aligned)
{
    run_node r;
    double y[12];
    const double *x = run_node_random(12), b[] = {1, 2, 3};
    for (int i = 0; i < 12; i++) y[i] = x[i] + b[i / 2 % 3];
    run_node_start(&r, NULL, "Add", 6);
    run_node_int(&r, "broadcast", 1);
    run_node_int(&r, "axis", 1);
    run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){2, 3, 2}, x);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){3}, b);
    run_node_expect(&r, CLG_FLOAT32, 3, (int64_t[]){2, 3, 2}, y);
    run_node_check(&r, 1e-7);
}

/* Checks Mod of multiples of 1/8, whose quotients and remainders are exact. */
static void check_mod(clg_dtype dtype)
{
    enum { N = 77 };
    double x[N], b[N], y[N];
    run_node r;
    for (int i = 0; i < N; i++) {
        x[i] = (i * 37 % 101 - 50) / 8.0;
        b[i] = (i % 7 + 1) / (i % 3 ? 2.0 : -4.0);
        y[i] = x[i] - floor(x[i] / b[i]) * b[i];
    }
    static const double special[][3] = {{INFINITY, 3, NAN},  {3, 0, NAN},
                                        {NAN, 3, NAN},       {3, NAN, NAN},
                                        {3, INFINITY, 3},    {-3, INFINITY, INFINITY},
                                        {-3, -INFINITY, -3}, {3, -INFINITY, -INFINITY},
                                        {0, -INFINITY, 0},   {0.125, 4, 0.125}};
    for (size_t i = 0; i < sizeof special / sizeof special[0] && dtype != CLG_FLOAT16; i++) {
        x[i] = special[i][0];
        b[i] = special[i][1];
        y[i] = special[i][2];
    }
    run_node_start(&r, NULL, "Mod", 28);
    run_node_input(&r, dtype, 2, (int64_t[]){7, 11}, x);
    run_node_input(&r, dtype, 2, (int64_t[]){7, 11}, b);
    run_node_expect(&r, dtype, 2, (int64_t[]){7, 11}, y);
    run_node_check(&r, 0);
}

TEST(pointwise__mod_of_floats)
{
    check_mod(CLG_FLOAT32);
    check_mod(CLG_FLOAT64);
    check_mod(CLG_FLOAT16);
    check_mod(CLG_BFLOAT16);
}

/* Checks BitShift against multiplication and division, reduced to the range of the dtype. folded:
 * of constants. */
static void check_shift(clg_dtype dtype, int bits, bool left, bool folded)
{
    enum { N = 63 };
    static const double amounts[] = {0, 1, 3, 7, -1, 100, -128};
    const double low = -ldexp(1, bits - 1), top = ldexp(1, bits);
    double x[N], b[N], y[N];
    run_node r;
    for (int i = 0; i < N; i++) {
        x[i] = i % 9 == 0 ? low : i % 9 == 1 ? -1 : (i * 29 % 127 - 63);
        b[i] = amounts[i % 7];
        const bool beyond = b[i] < 0 || b[i] >= bits;
        y[i] = floor(x[i] / ldexp(1, (int)b[i]));
        if (left) y[i] = x[i] * ldexp(1, (int)b[i]);
        if (left) y[i] = y[i] - floor((y[i] - low) / top) * top;
        if (beyond) y[i] = !left && x[i] < 0 ? -1 : 0;
    }
    run_node_start(&r, NULL, "BitShift", 28);
    run_node_string(&r, "direction", left ? "LEFT" : "RIGHT");
    (folded ? run_node_constant : run_node_input)(&r, dtype, 1, (int64_t[]){N}, x);
    (folded ? run_node_constant : run_node_input)(&r, dtype, 1, (int64_t[]){N}, b);
    run_node_expect(&r, dtype, 1, (int64_t[]){N}, y);
    run_node_check(&r, 0);
}

TEST(pointwise__signed_shifts)
{
    for (int i = 0; i < 4; i++) {
        check_shift(CLG_INT8, 8, i % 2, i / 2);
        check_shift(CLG_INT16, 16, i % 2, i / 2);
        check_shift(CLG_INT32, 32, i % 2, i / 2);
        check_shift(CLG_INT64, 64, i % 2, i / 2);
    }
}

/* Checks SwiGLU. float16 and bfloat16 round the result by at most half an ULP, of 11 and 8 bits. */
static void check_swiglu(clg_dtype dtype, double alpha, double tolerance)
{
    enum { N = 85 };
    const double *a = run_node_random(N), *b = run_node_random(N);
    double gate[N], y[N];
    run_node r;
    for (int i = 0; i < N; i++) {
        gate[i] = dtype == CLG_BFLOAT16 ? (i - 42) / 4.0 : a[i] * 8;
        const double other = dtype == CLG_BFLOAT16 ? 1 : b[i];
        y[i] = gate[i] * other * (0.5 + 0.5 * tanh(alpha * gate[i] / 2));
    }
    run_node_start(&r, NULL, "SwiGLU", 28);
    if (alpha != 1) run_node_float(&r, "alpha", alpha);
    run_node_input(&r, dtype, 2, (int64_t[]){5, 17}, gate);
    double *ones = run_node_zeros(N);
    for (int i = 0; i < N; i++) ones[i] = 1;
    run_node_input(&r, dtype, 2, (int64_t[]){5, 17}, dtype == CLG_BFLOAT16 ? ones : b);
    run_node_expect(&r, dtype, 2, (int64_t[]){5, 17}, y);
    run_node_check(&r, tolerance);
}

TEST(pointwise__swiglu)
{
    check_swiglu(CLG_FLOAT32, 1, 2e-6);
    check_swiglu(CLG_FLOAT32, 1.75, 2e-6);
    check_swiglu(CLG_FLOAT64, 0.5, 1e-6);
    check_swiglu(CLG_FLOAT16, 1, 1e-3);
    check_swiglu(CLG_BFLOAT16, -1, 8e-3);
    run_node r;
    run_node_start(&r, NULL, "SwiGLU", 28);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){2}, (double[]){1, 2});
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){1}, (double[]){1});
    run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){2}, (double[]){1, 2});
    run_node_refused(&r, CLG_ERROR_SHAPE, "the same shape");
}

TEST(pointwise__refusals)
{
    run_node r;
    run_node_start(&r, NULL, "BitShift", 13);
    run_node_string(&r, "direction", "UP");
    run_node_input(&r, CLG_UINT8, 1, (int64_t[]){2}, (double[]){1, 2});
    run_node_input(&r, CLG_UINT8, 1, (int64_t[]){2}, (double[]){1, 2});
    run_node_expect(&r, CLG_UINT8, 1, (int64_t[]){2}, (double[]){1, 2});
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "direction");
    run_node_start(&r, NULL, "Add", 13);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){2}, (double[]){1, 2});
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){3}, (double[]){1, 2, 3});
    run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){2}, (double[]){1, 2});
    run_node_refused(&r, CLG_ERROR_SHAPE, "broadcast");
    run_node_start(&r, NULL, "BitShift", 27);
    run_node_string(&r, "direction", "LEFT");
    run_node_input(&r, CLG_INT8, 1, (int64_t[]){2}, (double[]){1, 2});
    run_node_input(&r, CLG_INT8, 1, (int64_t[]){2}, (double[]){1, 2});
    run_node_expect(&r, CLG_INT8, 1, (int64_t[]){2}, (double[]){1, 2});
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_DTYPE, "int8");
    run_node_start(&r, NULL, "Mod", 27);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){2}, (double[]){1, 2});
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){2}, (double[]){1, 2});
    run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){2}, (double[]){1, 2});
    run_node_refused(&r, CLG_ERROR_INVALID_MODEL, "fmod");
}

TEST_GROUP(run_node_open, run_node_close)
