/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the pointwise operators on floating-point inputs, up to eight fused into one kernel,
 * against references in double precision: libm, and formulas that differ from those of the kernels.
 *
 * Relative tolerance: float32 8e-6 and float64 2e-14, since OpenCL allows most functions a few ULP,
 * and tan and pow 5 to 16, and since expressions accumulate errors; float16 and bfloat16 1.5 ULP of
 * 1 (1.5 / 1024 and 1.5 / 128).
 */
/* ctest: timeout 900 */
#include "support/cases/fused_node.h"

#include <math.h>

/* ---- rows over floats ------------------------------------------------------------------------ */

typedef struct float_row {
    const char *def;
    double (*right)(double a, double b);
    /* Range of the inputs that are compared; inputs outside of it are replaced, except NaN. */
    double low, high;
    float scalars[2];
} float_row;

static double add(double a, double b) { return a + b; }
static double sub(double a, double b) { return a - b; }
static double mul(double a, double b) { return a * b; }
static double divide(double a, double b) { return a / b; }
static double copy(double a, double b) { return (void)b, a; }
static double quarter(double a, double b) { return (void)b, a * 0.25; }
static double square(double a, double b) { return (void)b, a * a; }
static double cube(double a, double b) { return (void)b, a * a * a; }
static double minimum(double a, double b) { return isnan(a) || isnan(b) ? NAN : a < b ? a : b; }
static double maximum(double a, double b) { return isnan(a) || isnan(b) ? NAN : a < b ? b : a; }
static double clip_low(double a, double b) { return a < b ? b : a; }
static double clip_high(double a, double b) { return a > b ? b : a; }
static double negative(double a, double b) { return (void)b, -a; }
static double absolute(double a, double b) { return (void)b, a < 0 ? -a : a; }
static double sign_of(double a, double b)
{
    return (void)b, isnan(a) ? NAN : (double)((a > 0) - (a < 0));
}
static double inverse(double a, double b) { return (void)b, 1 / a; }
static double round_even(double a, double b) { return (void)b, nearbyint(a); }
#define UNARY(name)                                                                                \
    static double one_##name(double a, double b) { return (void)b, name(a); }
// clang-format off
UNARY(sqrt)
UNARY(floor)
UNARY(ceil)
UNARY(exp)
UNARY(log)
UNARY(erf)
UNARY(sin)
UNARY(cos)
UNARY(tan) UNARY(asin) UNARY(acos) UNARY(atan) UNARY(sinh) UNARY(cosh) UNARY(tanh) UNARY(asinh)
    UNARY(acosh) UNARY(atanh) static double relu(double a, double b)
// clang-format on
{
    return (void)b, isnan(a) ? NAN : fmax(a, 0);
}
static double leaky(double a, double b) { return (void)b, a < 0 ? 0.25 * a : a; }
static double prelu(double a, double b) { return a < 0 ? b * a : a; }
static double thresholded(double a, double b) { return (void)b, a > 0.5 ? a : 0; }
static double elu(double a, double b) { return (void)b, a < 0 ? 1.5 * expm1(a) : a; }
static double selu(double a, double b) { return (void)b, a > 0 ? 1.25 * a : 1.25 * 1.5 * expm1(a); }
static double celu(double a, double b) { return (void)b, a < 0 ? 2 * expm1(a / 2) : a; }
static double sigmoid(double a, double b)
{
    return (void)b, a < 0 ? exp(a) / (1 + exp(a)) : 0.5 + 0.5 * tanh(a / 2);
}
static double clamp01(double a) { return isnan(a) ? NAN : a < 0 ? 0 : a > 1 ? 1 : a; }
static double hard_sigmoid(double a, double b) { return (void)b, clamp01(0.25 * a + 0.5); }
static double hard_swish(double a, double b) { return (void)b, a * clamp01((a + 3) / 6); }
static double gelu(double a, double b) { return (void)b, a * 0.5 * erfc(-a / sqrt(2)); }
static double gelu_tanh(double a, double b)
{
    const double pi = acos(-1), u = sqrt(2 / pi) * (a + 0.044715 * pow(a, 3));
    return a * sigmoid(2 * u, b);
}
static double softplus(double a, double b) { return (void)b, a > 30 ? a : log1p(exp(a)); }
static double softsign(double a, double b) { return (void)b, a / (1 + fabs(a)); }
static double mish(double a, double b) { return a * tanh(softplus(a, b)); }
static double swish(double a, double b) { return a * sigmoid(1.5 * a, b); }
static double shrink(double a, double b)
{
    return (void)b, isnan(a) ? 0 : a < -0.5 ? a + 0.25 : a > 0.5 ? a - 0.25 : 0;
}
static double clipped(double a, double b)
{
    return (void)b, isnan(a) ? NAN : a < -1 ? -1 : a > 1 ? 1 : a;
}
static double equal(double a, double b) { return a == b; }
static double less(double a, double b) { return a < b; }
static double less_equal(double a, double b) { return a <= b; }
static double greater(double a, double b) { return a > b; }
static double greater_equal(double a, double b) { return a >= b; }
static double is_nan(double a, double b) { return (void)b, isnan(a) != 0; }
static double is_inf(double a, double b) { return (void)b, isinf(a) != 0; }
static double is_positive_inf(double a, double b) { return (void)b, isinf(a) && a > 0; }
static double is_negative_inf(double a, double b) { return (void)b, isinf(a) && a < 0; }
static double never(double a, double b) { return (void)a, (void)b, 0; }

#define ALL -INFINITY, INFINITY
static const float_row float_rows[] = {
    {"Copy", copy, ALL, {0}},
    {"Add", add, ALL, {0}},
    {"Sub", sub, ALL, {0}},
    {"Mul", mul, ALL, {0}},
    {"Div", divide, ALL, {0}},
    {"Fmod", fmod, ALL, {0}},
    {"Pow", pow, -8, 8, {0}},
    {"DivScalar", quarter, ALL, {4}},
    {"Square", square, ALL, {0}},
    {"Cube", cube, ALL, {0}},
    {"Min", minimum, ALL, {0}},
    {"Max", maximum, ALL, {0}},
    {"ClipLow", clip_low, ALL, {0}},
    {"ClipHigh", clip_high, ALL, {0}},
    {"Neg", negative, ALL, {0}},
    {"Abs", absolute, ALL, {0}},
    {"Sign", sign_of, ALL, {0}},
    {"Sqrt", one_sqrt, ALL, {0}},
    {"Reciprocal", inverse, ALL, {0}},
    {"Floor", one_floor, ALL, {0}},
    {"Ceil", one_ceil, ALL, {0}},
    {"Round", round_even, ALL, {0}},
    {"Exp", one_exp, -20, 10, {0}},
    {"Log", one_log, ALL, {0}},
    {"Erf", one_erf, ALL, {0}},
    {"Sin", one_sin, -100, 100, {0}},
    {"Cos", one_cos, -100, 100, {0}},
    {"Tan", one_tan, -100, 100, {0}},
    {"Asin", one_asin, ALL, {0}},
    {"Acos", one_acos, ALL, {0}},
    {"Atan", one_atan, ALL, {0}},
    {"Sinh", one_sinh, -10, 10, {0}},
    {"Cosh", one_cosh, -10, 10, {0}},
    {"Tanh", one_tanh, ALL, {0}},
    {"Asinh", one_asinh, -1e4, 1e4, {0}},
    {"Acosh", one_acosh, -1e4, 1e4, {0}},
    {"Atanh", one_atanh, ALL, {0}},
    {"Relu", relu, ALL, {0}},
    {"LeakyRelu", leaky, ALL, {0.25f}},
    {"PRelu", prelu, ALL, {0}},
    {"ThresholdedRelu", thresholded, ALL, {0.5f}},
    {"Elu", elu, -20, 100, {1.5f}},
    {"Selu", selu, -20, 100, {1.5f, 1.25f}},
    {"Celu", celu, -20, 100, {2}},
    {"Sigmoid", sigmoid, -15, INFINITY, {0}},
    {"HardSigmoid", hard_sigmoid, ALL, {0.25f, 0.5f}},
    {"HardSwish", hard_swish, -1e4, 1e4, {0}},
    {"Gelu", gelu, -2, 100, {0}},
    {"Gelu.tanh", gelu_tanh, ALL, {0}},
    {"Softplus", softplus, -15, INFINITY, {0}},
    {"Softsign", softsign, -1e4, 1e4, {0}},
    {"Mish", mish, -10, 1e4, {0}},
    {"Swish", swish, -8, 1e4, {1.5f}},
    {"Shrink", shrink, ALL, {0.25f, 0.5f}},
    {"Clip", clipped, ALL, {-1, 1}},
    {"Equal", equal, ALL, {0}},
    {"Less", less, ALL, {0}},
    {"LessOrEqual", less_equal, ALL, {0}},
    {"Greater", greater, ALL, {0}},
    {"GreaterOrEqual", greater_equal, ALL, {0}},
    {"IsNaN", is_nan, ALL, {0}},
    {"IsInf", is_inf, ALL, {0}},
    {"IsInf.positive", is_positive_inf, ALL, {0}},
    {"IsInf.negative", is_negative_inf, ALL, {0}},
    {"Never", never, ALL, {0}},
};

static double float_tolerance(clg_dtype dtype)
{
    switch (dtype) {
    case CLG_FLOAT16: return 1.5 / 1024;
    case CLG_BFLOAT16: return 1.5 / 128;
    case CLG_FLOAT64: return 2e-14;
    default: return 8e-6;
    }
}

/* Fills in all pairs of special values (zeros, ones, halves, a huge and a tiny number, infinities,
 * NaN), then random values of magnitudes around 1. second: for the second operand. */
static void fill_floats(tensor *t, bool second)
{
    static const double special[] = {0, -0.0, 1,        -1,        0.5, -0.5,  1.5,  -2.5,
                                     3, -3,   INFINITY, -INFINITY, NAN, 65504, -1e-7};
    const double *random = run_node_random(t->n_elements);
    for (int64_t i = 0; i < t->n_elements; i++) {
        const int64_t k = second ? i / (int64_t)COUNT(special) : i % (int64_t)COUNT(special);
        double x = random[i] * ldexp(1, (int)(i % 7) - 2);
        if (i < (int64_t)(COUNT(special) * COUNT(special))) x = special[k];
        tensor_set_float(t, i, x);
    }
}

/* Replaces inputs outside of the range that the operator is compared in by 0.75. */
static void limit(tensor *t, const float_row *row)
{
    for (int64_t i = 0; i < t->n_elements; i++) {
        const double x = tensor_get_float(t, i);
        if (x < row->low || x > row->high) tensor_set_float(t, i, 0.75);
    }
}

static void add_row(fused *f, const float_row *row, clg_dtype dtype, int64_t n)
{
    pointwise_register operands[3] = {0}, r;
    tensor *a = fused_input(f, dtype, n, &operands[0]), *b = fused_input(f, dtype, n, &operands[1]);
    fill_floats(a, false);
    fill_floats(b, true);
    limit(a, row);
    limit(b, row);
    assert_ok(pointwise_add(&f->group, row->def, operands, row->scalars, &r));
    tensor *y = fused_output(f, r);
    for (int64_t i = 0; i < n; i++)
        tensor_set_float(y, i, row->right(tensor_get_float(a, i), tensor_get_float(b, i)));
}

static void check_floats(clg_dtype dtype, int64_t n, size_t n_rows)
{
    for (size_t next = 0; next < n_rows;) {
        fused f = {.tolerance = float_tolerance(dtype)};
        while (next < n_rows && f.group.n_outputs < POINTWISE_MAX_OUTPUTS)
            add_row(&f, &float_rows[next++], dtype, n);
        fused_check(&f);
    }
}

TEST(pointwise_floats__float32) { check_floats(CLG_FLOAT32, 301, COUNT(float_rows)); }

TEST(pointwise_floats__float64) { check_floats(CLG_FLOAT64, 259, COUNT(float_rows)); }

/* float16 and bfloat16 are computed in float, so a few operators suffice to test their loads and
 * stores. */
TEST(pointwise_floats__narrow)
{
    check_floats(CLG_FLOAT16, 259, 16);
    check_floats(CLG_BFLOAT16, 259, 16);
}

TEST_GROUP(run_node_open, run_node_close)
