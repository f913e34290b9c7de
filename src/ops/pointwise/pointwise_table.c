/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the table of pointwise expressions. A new operator needs an entry of op_pointwise.c and,
 * unless existing expressions suffice, entries here. Formulas are those of the ONNX operators of
 * the same name. NaNs propagate unless ONNX defines otherwise, and no integer operation traps.
 */
#include "ops/pointwise/pointwise.h"

#include <math.h>
#include <string.h>

/* ---- host arithmetic ------------------------------------------------------------------------- */

#define EVAL_FLOAT(name, expression)                                                               \
    static double name##_float(double a, double b, double c)                                       \
    {                                                                                              \
        (void)a, (void)b, (void)c;                                                                 \
        return expression;                                                                         \
    }
#define EVAL_INT(name, expression)                                                                 \
    static int64_t name##_int(int64_t a, int64_t b, int64_t c)                                     \
    {                                                                                              \
        (void)a, (void)b, (void)c;                                                                 \
        return expression;                                                                         \
    }
#define EVAL(name, on_float, on_int) EVAL_FLOAT(name, on_float) EVAL_INT(name, on_int)

static int64_t wrap(uint64_t x)
{
    int64_t y;
    memcpy(&y, &x, sizeof y);
    return y;
}

static int64_t divide(int64_t a, int64_t b)
{
    return b == 0 ? 0 : b == -1 ? wrap(0u - (uint64_t)a) : a / b;
}

static int64_t remainder_of(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

static int64_t modulo(int64_t a, int64_t b)
{
    const int64_t r = remainder_of(a, b);
    return r != 0 && (r ^ b) < 0 ? r + b : r;
}

/* Computes a modulo b with the sign of b, which a zero result has too. */
static double modulo_of(double a, double b)
{
    const double r = fmod(a, b);
    return r == 0 ? copysign(r, b) : (r < 0) != (b < 0) ? r + b : r;
}

static int64_t power(int64_t a, int64_t e)
{
    if (e < 0) return a == 1 ? 1 : a == -1 ? (e & 1 ? -1 : 1) : 0;
    uint64_t r = 1, square = (uint64_t)a;
    for (; e; e >>= 1, square *= square)
        if (e & 1) r *= square;
    return wrap(r);
}

/* Shift a by b bits, of which a negative number or more than the width leaves nothing. */
static int64_t shift_left(int64_t a, int64_t b)
{
    return (uint64_t)b < 64 ? wrap((uint64_t)a << b) : 0;
}

static int64_t shift_right(int64_t a, int64_t b)
{
    const int64_t last = (uint64_t)b < 64 ? b : 63;
    return a < 0 ? ~(~a >> last) : (uint64_t)b < 64 ? a >> b : 0;
}

EVAL(copy, a, a)
EVAL(add, a + b, wrap((uint64_t)a + (uint64_t)b))
EVAL(sub, a - b, wrap((uint64_t)a - (uint64_t)b))
EVAL(mul, a *b, wrap((uint64_t)a *(uint64_t)b))
EVAL(div, a / b, divide(a, b))
EVAL(mod, modulo_of(a, b), modulo(a, b))
EVAL(fmod, fmod(a, b), remainder_of(a, b))
EVAL_FLOAT(pow, pow(a, b))
EVAL_INT(pow, power(a, b))
EVAL(min, a < b || a != a ? a : b, a < b ? a : b)
EVAL(max, a > b || a != a ? a : b, a > b ? a : b)
EVAL(clip_low, a < b ? b : a, a < b ? b : a)
EVAL(clip_high, a > b ? b : a, a > b ? b : a)
EVAL(neg, -a, wrap(0u - (uint64_t)a))
EVAL(abs, fabs(a), a < 0 ? wrap(0u - (uint64_t)a) : a)
EVAL(sign, a > 0 ? 1 : a < 0 ? -1 : a, a > 0 ? 1 : a < 0 ? -1 : 0)
EVAL_FLOAT(square, a *a)
EVAL_FLOAT(sqrt, sqrt(a))
EVAL_FLOAT(reciprocal, 1 / a)
EVAL_FLOAT(floor, floor(a))
EVAL_FLOAT(ceil, ceil(a))
EVAL_FLOAT(round, nearbyint(a))
EVAL_FLOAT(exp, exp(a))
EVAL_FLOAT(log, log(a))
EVAL(equal, a == b, a == b)
EVAL(less, a < b, a < b)
EVAL(less_equal, a <= b, a <= b)
EVAL(greater, a > b, a > b)
EVAL(greater_equal, a >= b, a >= b)
EVAL_INT(and, a &b)
EVAL_INT(or, a | b)
EVAL_INT(xor, a ^ b)
EVAL_INT(not, !a)
EVAL_INT(complement, ~a)
EVAL_INT(shift_left, shift_left(a, b))
EVAL_INT(shift_right, shift_right(a, b))
EVAL(where, a != 0 ? b : c, a != 0 ? b : c)
EVAL(relu, a < 0 ? 0 : a, a < 0 ? 0 : a)

/* ---- references for self-tests --------------------------------------------------------------- */

/* By other formulas than the kernels', where there is a stable one. */
#define REFERENCE(name, expression)                                                                \
    static double name##_reference(double a, double b, double c)                                   \
    {                                                                                              \
        (void)a, (void)b, (void)c;                                                                 \
        return expression;                                                                         \
    }

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}
static double sigmoid(double x) { return 0.5 * (1 + tanh(x / 2)); }
static double softplus(double x) { return x > 30 ? x : log1p(exp(x)); }
static double quantized(double a, double zero, double scale)
{
    return nearbyint(clamp(a / scale, -1024, 1024)) + zero;
}

REFERENCE(div_or_zero, b == 0 ? 0 : a / b)
REFERENCE(half_power, pow(a, 0.5))
REFERENCE(cube, a *(a *a))
REFERENCE(clip, clamp(a, b, c))
REFERENCE(round_near, nearbyint(clamp(a, -1024, 1024)))
REFERENCE(dequantize, a *c - b * c)
REFERENCE(quantize, quantized(a, b, c))
REFERENCE(erf, 1 - erfc(a))
REFERENCE(sin, sin(a))
REFERENCE(cos, cos(a))
REFERENCE(tan, sin(a) / cos(a))
REFERENCE(asin, asin(a))
REFERENCE(acos, acos(a))
REFERENCE(atan, atan2(a, 1))
REFERENCE(sinh, (exp(a) - exp(-a)) / 2)
REFERENCE(cosh, (exp(a) + exp(-a)) / 2)
REFERENCE(tanh, 1 - 2 / (exp(2 * a) + 1))
REFERENCE(asinh, asinh(a))
REFERENCE(acosh, acosh(a))
REFERENCE(atanh, (log1p(a) - log1p(-a)) / 2)
REFERENCE(leaky_relu, a < 0 ? a * b : a)
REFERENCE(thresholded_relu, a > b ? a : 0)
REFERENCE(elu, a < 0 ? b * (exp(a) - 1) : a)
REFERENCE(selu, a > 0 ? c * a : c * b * (exp(a) - 1))
REFERENCE(celu, a < 0 ? b * (exp(a / b) - 1) : a)
REFERENCE(sigmoid, sigmoid(a))
REFERENCE(hard_sigmoid, clamp(a *b + c, 0, 1))
REFERENCE(hard_swish, a *clamp(a / 6 + 0.5, 0, 1))
REFERENCE(gelu, a *erfc(-a / sqrt(2)) / 2)
REFERENCE(gelu_tanh, a / 2 * (1 + tanh(0.79788456080286536 * (a + 0.044715 * a * a * a))))
REFERENCE(softplus, softplus(a))
REFERENCE(softsign, a / (1 + fabs(a)))
REFERENCE(mish, a *tanh(softplus(a)))
REFERENCE(swish, a *sigmoid(b *a))
REFERENCE(shrink, a<-c ? a + b : a> c ? a - b : 0)
REFERENCE(is_nan, isnan(a))
REFERENCE(is_inf, isinf(a) != 0)
REFERENCE(is_inf_positive, isinf(a) && a > 0)
REFERENCE(is_inf_negative, isinf(a) && a < 0)
REFERENCE(never, 0)

/* ---- table of expressions -------------------------------------------------------------------- */

#define ON_HOST(name) .eval_float = name##_float, .eval_int = name##_int
#define BY_FLOAT(name) .eval_float = name##_float
#define BY_INT(name) .eval_int = name##_int
#define FOR_TESTS(name) .reference = name##_reference

/* Set one expression for all dtypes of a kind: FLOATS for floats, INTEGERS for integers, NUMBERS
 * for both, ALL also for bool. */
#define FLOATS(x) .on_float = x
#define INTEGERS(x) .on_signed = x, .on_unsigned = x
#define NUMBERS(x) FLOATS(x), INTEGERS(x)
#define ALL(x) NUMBERS(x), .on_bool = x

#define UNARY_FLOAT(name, expression, ...)                                                         \
    {                                                                                              \
        name, 1, 0, __VA_ARGS__, FLOATS(expression)                                                \
    }
#define COMPARISON(name, op, function)                                                             \
    {                                                                                              \
        name, 2, 0, POINTWISE_TO_BOOL, ALL("$a " op " $b"), ON_HOST(function)                      \
    }
#define LANES POINTWISE_LANES_INT | POINTWISE_HEAVY
#define SOFTPLUS "(($a > ($T)0 ? $a : ($T)0) + log1p(exp(-fabs($a))))"

const pointwise_def pointwise_defs[] = {
    {"Copy", 1, 0, POINTWISE_MOVES_BITS, ALL("$a"), ON_HOST(copy)},
    {"Cast", 1, 0, POINTWISE_CAST, FLOATS(NULL)},
    {"Where", 3, 0, POINTWISE_KIND_OF_B | POINTWISE_MOVES_BITS, ALL("$m($a) != ($M)0 ? $b : $c"),
     ON_HOST(where)},

    /* Signed integers are added, subtracted and multiplied as unsigned ones, whose overflow is
     * defined. */
    {"Add", 2, 0, 0, FLOATS("$a + $b"), INTEGERS("$t($u($a) + $u($b))"), ON_HOST(add)},
    {"Sub", 2, 0, 0, FLOATS("$a - $b"), INTEGERS("$t($u($a) - $u($b))"), ON_HOST(sub)},
    {"Mul", 2, 0, 0, FLOATS("$a * $b"), INTEGERS("$t($u($a) * $u($b))"), ON_HOST(mul)},
    {"Div", 2, 0, LANES, FLOATS("$a / $b"), .on_signed = "DIV_SIGNED($S, $V, $a, $b)",
     .on_unsigned = "DIV_UNSIGNED($S, $a, $b)", ON_HOST(div)},
    {"DivOrZero", 2, 0, 0, FLOATS("$b == ($T)0 ? ($T)0 : $a / $b"), FOR_TESTS(div_or_zero)},
    {"DivScalar", 1, 1, 0, FLOATS("$a / $p"), BY_FLOAT(div)},
    {"Mod", 2, 0, LANES | POINTWISE_LANES_ALL, FLOATS("MOD_FLOAT($a, $b)"),
     .on_signed = "MOD_SIGNED($S, $a, $b)", .on_unsigned = "REM_UNSIGNED($S, $a, $b)",
     ON_HOST(mod)},
    /* PoCL 3.1's fmod of double vectors is wrong in some lanes. */
    {"Fmod", 2, 0, LANES | POINTWISE_LANES_ALL, FLOATS("fmod($a, $b)"),
     .on_signed = "REM_SIGNED($S, $a, $b)", .on_unsigned = "REM_UNSIGNED($S, $a, $b)",
     ON_HOST(fmod)},
    /* PoCL 3.1's pow of double vectors is wrong by powers of two for whole exponents. */
    {"Pow", 2, 0, LANES | POINTWISE_LANES_DOUBLE | POINTWISE_MIXED, FLOATS("pow($a, $b)"),
     .on_signed = "POWER_OF($S, $a, $b)", ON_HOST(pow)},
    {"Pow.float", 2, 0, LANES | POINTWISE_MIXED, .on_signed = "POWER_OF_FLOAT($S, $a, $b)"},
    {"Square", 1, 0, 0, FLOATS("$a * $a"), BY_FLOAT(square)},
    /* Computes pow(a, 0.5) by sqrt; as with pow, -infinity gives infinity, and -0 gives 0. */
    {"Pow.half", 1, 0, 0, FLOATS("$a == -($T)INFINITY ? ($T)INFINITY : fabs(sqrt($a))"),
     FOR_TESTS(half_power)},
    {"Cube", 1, 0, 0, FLOATS("$a * $a * $a"), FOR_TESTS(cube)},
    {"Min", 2, 0, 0, FLOATS("MIN_OF($a, $b)"), INTEGERS("min($a, $b)"), ON_HOST(min)},
    {"Max", 2, 0, 0, FLOATS("MAX_OF($a, $b)"), INTEGERS("max($a, $b)"), ON_HOST(max)},
    {"ClipLow", 2, 0, 0, NUMBERS("$a < $b ? $b : $a"), ON_HOST(clip_low)},
    {"ClipHigh", 2, 0, 0, NUMBERS("$a > $b ? $b : $a"), ON_HOST(clip_high)},
    {"Clip", 1, 2, 0, FLOATS("CLAMP_OF($a, $p, $q)"), FOR_TESTS(clip)},

    {"Neg", 1, 0, 0, FLOATS("-$a"), .on_signed = "$t(($U)0 - $u($a))", ON_HOST(neg)},
    {"Abs", 1, 0, 0, FLOATS("fabs($a)"), .on_signed = "$a < ($T)0 ? $t(($U)0 - $u($a)) : $a",
     .on_unsigned = "$a", ON_HOST(abs)},
    {"Sign", 1, 0, 0, FLOATS("$a > ($T)0 ? ($T)1 : ($a < ($T)0 ? ($T)-1 : $a)"),
     .on_signed = "$a > ($T)0 ? ($T)1 : ($a < ($T)0 ? ($T)-1 : ($T)0)",
     .on_unsigned = "min($a, ($T)1)", ON_HOST(sign)},
    UNARY_FLOAT("Sqrt", "sqrt($a)", 0, BY_FLOAT(sqrt)),
    UNARY_FLOAT("Reciprocal", "($T)1 / $a", 0, BY_FLOAT(reciprocal)),
    UNARY_FLOAT("Floor", "floor($a)", 0, BY_FLOAT(floor)),
    UNARY_FLOAT("Ceil", "ceil($a)", 0, BY_FLOAT(ceil)),
    UNARY_FLOAT("Round", "rint($a)", 0, BY_FLOAT(round)),
    /* Rounds float32 as rint within +-1024, and clamps other values to that, which saturates in 8
     * bits anyway. On CPUs rint takes 20 instructions. */
    {"RoundNear", 1, 0, 0,
     FLOATS("CLAMP_OF($a, ($T)-1024, ($T)1024) + $k(12582912.0) - $k(12582912.0)"),
     FOR_TESTS(round_near)},
    /* Dequantize and quantize with zero point $p and scale $q; the quantised result is not
     * saturated. */
    {"Dequantize", 1, 2, 0, FLOATS("($a - $p) * $q"), FOR_TESTS(dequantize)},
    {"Quantize", 1, 2, 0,
     FLOATS("CLAMP_OF($a / $q, ($T)-1024, ($T)1024) + $k(12582912.0) - $k(12582912.0) + $p"),
     FOR_TESTS(quantize)},
    UNARY_FLOAT("Exp", "exp($a)", POINTWISE_HEAVY, BY_FLOAT(exp)),
    UNARY_FLOAT("Log", "log($a)", POINTWISE_HEAVY, BY_FLOAT(log)),
    UNARY_FLOAT("Erf", "erf_$T($a)", POINTWISE_HEAVY, FOR_TESTS(erf)),
    /* PoCL 3.1's functions of float vectors are wrong beside a lane of 1e8 or more. */
    UNARY_FLOAT("Sin", "sin($a)", POINTWISE_HEAVY | POINTWISE_LANES_ALL, FOR_TESTS(sin)),
    UNARY_FLOAT("Cos", "cos($a)", POINTWISE_HEAVY | POINTWISE_LANES_ALL, FOR_TESTS(cos)),
    UNARY_FLOAT("Tan", "tan($a)", POINTWISE_HEAVY | POINTWISE_LANES_ALL, FOR_TESTS(tan)),
    UNARY_FLOAT("Asin", "asin($a)", POINTWISE_HEAVY, FOR_TESTS(asin)),
    UNARY_FLOAT("Acos", "acos($a)", POINTWISE_HEAVY, FOR_TESTS(acos)),
    UNARY_FLOAT("Atan", "atan($a)", POINTWISE_HEAVY, FOR_TESTS(atan)),
    UNARY_FLOAT("Sinh", "sinh($a)", POINTWISE_HEAVY, FOR_TESTS(sinh)),
    UNARY_FLOAT("Cosh", "cosh($a)", POINTWISE_HEAVY, FOR_TESTS(cosh)),
    UNARY_FLOAT("Tanh", "tanh($a)", POINTWISE_HEAVY, FOR_TESTS(tanh)),
    UNARY_FLOAT("Asinh", "asinh($a)", POINTWISE_HEAVY, FOR_TESTS(asinh)),
    UNARY_FLOAT("Acosh", "acosh($a)", POINTWISE_HEAVY, FOR_TESTS(acosh)),
    UNARY_FLOAT("Atanh", "atanh($a)", POINTWISE_HEAVY, FOR_TESTS(atanh)),

    {"Relu", 1, 0, 0, FLOATS("$a < ($T)0 ? ($T)0 : $a"), .on_signed = "max($a, ($T)0)",
     .on_unsigned = "$a", ON_HOST(relu)},
    {"LeakyRelu", 1, 1, 0, FLOATS("$a < ($T)0 ? $p * $a : $a"), FOR_TESTS(leaky_relu)},
    {"PRelu", 2, 0, 0, FLOATS("$a < ($T)0 ? $a * $b : $a"),
     .on_signed = "$a < ($T)0 ? $t($u($a) * $u($b)) : $a", .on_unsigned = "$a",
     FOR_TESTS(leaky_relu)},
    {"ThresholdedRelu", 1, 1, 0, FLOATS("$a > $p ? $a : ($T)0"), FOR_TESTS(thresholded_relu)},
    {"Elu", 1, 1, POINTWISE_HEAVY, FLOATS("$a < ($T)0 ? $p * expm1($a) : $a"), FOR_TESTS(elu)},
    {"Selu", 1, 2, POINTWISE_HEAVY, FLOATS("$q * ($a > ($T)0 ? $a : $p * expm1($a))"),
     FOR_TESTS(selu)},
    {"Celu", 1, 1, POINTWISE_HEAVY, FLOATS("$a < ($T)0 ? $p * expm1($a / $p) : $a"),
     FOR_TESTS(celu)},
    UNARY_FLOAT("Sigmoid", "($T)1 / (($T)1 + exp(-$a))", POINTWISE_HEAVY, FOR_TESTS(sigmoid)),
    {"HardSigmoid", 1, 2, 0, FLOATS("CLAMP_OF($a * $p + $q, ($T)0, ($T)1)"),
     FOR_TESTS(hard_sigmoid)},
    UNARY_FLOAT("HardSwish", "$a * CLAMP_OF($a / ($T)6 + $k(0.5), ($T)0, ($T)1)", 0,
                FOR_TESTS(hard_swish)),
    UNARY_FLOAT("Gelu", "$k(0.5) * $a * (($T)1 + erf_$T($a * $k(0.70710678118654752)))",
                POINTWISE_HEAVY, FOR_TESTS(gelu)),
    /* a / 2 * (1 + tanh(u)) as a / (1 + exp(-2 u)): exact at infinities also where tanh is not */
    UNARY_FLOAT("Gelu.tanh",
                "$a / (($T)1 + exp($k(-1.5957691216057308) * ($a + $k(0.044715) * $a * $a * $a)))",
                POINTWISE_HEAVY, FOR_TESTS(gelu_tanh)),
    UNARY_FLOAT("Softplus", SOFTPLUS, POINTWISE_HEAVY, FOR_TESTS(softplus)),
    UNARY_FLOAT("Softsign", "$a / (($T)1 + fabs($a))", 0, FOR_TESTS(softsign)),
    UNARY_FLOAT("Mish", "$a * tanh(" SOFTPLUS ")", POINTWISE_HEAVY, FOR_TESTS(mish)),
    {"Swish", 1, 1, POINTWISE_HEAVY, FLOATS("$a / (($T)1 + exp(-$p * $a))"), FOR_TESTS(swish)},
    {"Shrink", 1, 2, 0, FLOATS("$a < -$q ? $a + $p : ($a > $q ? $a - $p : ($T)0)"),
     FOR_TESTS(shrink)},

    COMPARISON("Equal", "==", equal),
    COMPARISON("Less", "<", less),
    COMPARISON("LessOrEqual", "<=", less_equal),
    COMPARISON("Greater", ">", greater),
    COMPARISON("GreaterOrEqual", ">=", greater_equal),
    {"IsNaN", 1, 0, POINTWISE_TO_BOOL, FLOATS("$a != $a"), FOR_TESTS(is_nan)},
    {"IsInf", 1, 0, POINTWISE_TO_BOOL, FLOATS("fabs($a) == ($T)INFINITY"), FOR_TESTS(is_inf)},
    {"IsInf.positive", 1, 0, POINTWISE_TO_BOOL, FLOATS("$a == ($T)INFINITY"),
     FOR_TESTS(is_inf_positive)},
    {"IsInf.negative", 1, 0, POINTWISE_TO_BOOL, FLOATS("$a == -($T)INFINITY"),
     FOR_TESTS(is_inf_negative)},
    {"Never", 1, 0, POINTWISE_TO_BOOL, FLOATS("($M)0"), FOR_TESTS(never)},

    {"And", 2, 0, 0, INTEGERS("$a & $b"), .on_bool = "$a & $b", BY_INT(and)},
    {"Or", 2, 0, 0, INTEGERS("$a | $b"), .on_bool = "$a | $b", BY_INT(or)},
    {"Xor", 2, 0, 0, INTEGERS("$a ^ $b"), .on_bool = "$a ^ $b", BY_INT(xor)},
    {"Not", 1, 0, 0, .on_bool = "$a ^ ($T)1", BY_INT(not )},
    {"BitwiseNot", 1, 0, 0, INTEGERS("~$a"), BY_INT(complement)},
    {"ShiftLeft", 2, 0, 0, .on_signed = "$t($u($b) < ($U)$bits ? $u($u($a) << $u($b)) : ($U)0)",
     .on_unsigned = "$b < ($T)$bits ? $t($a << $b) : ($T)0", BY_INT(shift_left)},
    {"ShiftRight", 2, 0, 0,
     .on_signed = "$u($b) < ($U)$bits ? ($a < ($T)0 ? $t(~($u(~$u($a)) >> $u($b))) : $t($u($a) >> "
                  "$u($b))) : ($a < ($T)0 ? ($T)-1 : ($T)0)",
     .on_unsigned = "$b < ($T)$bits ? $t($a >> $b) : ($T)0", BY_INT(shift_right)},
};
const size_t n_pointwise_defs = sizeof pointwise_defs / sizeof pointwise_defs[0];

const pointwise_def *pointwise_find(const char *name)
{
    for (size_t i = 0; i < n_pointwise_defs; i++)
        if (strcmp(pointwise_defs[i].name, name) == 0) return &pointwise_defs[i];
    return NULL;
}

const char *pointwise_expression(const pointwise_def *def, clg_dtype dtype)
{
    switch (dtype_find(dtype)->kind) {
    case DTYPE_KIND_FLOAT: return def->on_float;
    case DTYPE_KIND_SIGNED: return def->on_signed;
    case DTYPE_KIND_UNSIGNED: return def->on_unsigned;
    case DTYPE_KIND_BOOL: return def->on_bool;
    default: return NULL;
    }
}
