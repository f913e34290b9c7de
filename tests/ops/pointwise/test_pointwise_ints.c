/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the pointwise operators on integers and bool, Where, and casts. Results must be exact, also
 * for wrapping, division by zero, and at the limits of every dtype.
 */
/* ctest: timeout 900 */
#include "support/cases/fused_node.h"

#include <math.h>

/* ---- rows over integers ---------------------------------------------------------------------- */

typedef struct int_row {
    const char *def;
    int64_t (*on_signed)(int64_t a, int64_t b);
    uint64_t (*on_unsigned)(uint64_t a, uint64_t b);
} int_row;

static int64_t s_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static uint64_t u_add(uint64_t a, uint64_t b) { return a + b; }
static int64_t s_sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static uint64_t u_sub(uint64_t a, uint64_t b) { return a - b; }
static int64_t s_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
static uint64_t u_mul(uint64_t a, uint64_t b) { return a * b; }
static int64_t s_div(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? s_sub(0, a) : a / b; }
static uint64_t u_div(uint64_t a, uint64_t b) { return b == 0 ? 0 : a / b; }
static int64_t s_rem(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a - a / b * b; }
static uint64_t u_rem(uint64_t a, uint64_t b) { return b == 0 ? 0 : a - a / b * b; }
/* Returns the remainder of floored division, as in Python. */
static int64_t s_mod(int64_t a, int64_t b)
{
    if (b == 0 || b == -1) return 0;
    const int64_t q = a / b - (a % b != 0 && (a < 0) != (b < 0));
    return (int64_t)((uint64_t)a - (uint64_t)q * (uint64_t)b);
}
static int64_t s_min(int64_t a, int64_t b) { return a < b ? a : b; }
static uint64_t u_min(uint64_t a, uint64_t b) { return a < b ? a : b; }
static int64_t s_max(int64_t a, int64_t b) { return a > b ? a : b; }
static uint64_t u_max(uint64_t a, uint64_t b) { return a > b ? a : b; }
static int64_t s_neg(int64_t a, int64_t b) { return (void)b, s_sub(0, a); }
static int64_t s_abs(int64_t a, int64_t b) { return (void)b, a < 0 ? s_sub(0, a) : a; }
static int64_t s_sign(int64_t a, int64_t b) { return (void)b, (a > 0) - (a < 0); }
static uint64_t u_sign(uint64_t a, uint64_t b) { return (void)b, a != 0; }
static int64_t s_relu(int64_t a, int64_t b) { return (void)b, a > 0 ? a : 0; }
static int64_t s_prelu(int64_t a, int64_t b) { return a < 0 ? s_mul(a, b) : a; }
/* Computes powers from the exponent's highest bit downwards; the kernel starts at the lowest one.
 */
static int64_t s_pow(int64_t a, int64_t b)
{
    int64_t r = 1;
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    for (int bit = 62; bit >= 0; bit--) {
        r = s_mul(r, r);
        if (b >> bit & 1) r = s_mul(r, a);
    }
    return r;
}
static int64_t s_and(int64_t a, int64_t b) { return a & b; }
static int64_t s_or(int64_t a, int64_t b) { return a | b; }
static int64_t s_xor(int64_t a, int64_t b) { return (a | b) - (a & b); }
static int64_t s_not(int64_t a, int64_t b) { return (void)b, -1 - a; }
static uint64_t u_copy(uint64_t a, uint64_t b) { return (void)b, a; }
static uint64_t u_and(uint64_t a, uint64_t b) { return a & b; }
static uint64_t u_or(uint64_t a, uint64_t b) { return a | b; }
static uint64_t u_xor(uint64_t a, uint64_t b) { return (a | b) - (a & b); }
static uint64_t u_not(uint64_t a, uint64_t b) { return (void)b, UINT64_MAX - a; }
static int64_t s_equal(int64_t a, int64_t b) { return a == b; }
static uint64_t u_equal(uint64_t a, uint64_t b) { return a == b; }
static int64_t s_less(int64_t a, int64_t b) { return a < b; }
static uint64_t u_less(uint64_t a, uint64_t b) { return a < b; }
static int64_t s_greater_equal(int64_t a, int64_t b) { return a >= b; }
static uint64_t u_greater_equal(uint64_t a, uint64_t b) { return a >= b; }

static const int_row int_rows[] = {
    {"Add", s_add, u_add},
    {"Sub", s_sub, u_sub},
    {"Mul", s_mul, u_mul},
    {"Div", s_div, u_div},
    {"Mod", s_mod, u_rem},
    {"Fmod", s_rem, u_rem},
    {"Min", s_min, u_min},
    {"Max", s_max, u_max},
    {"ClipLow", s_max, u_max},
    {"ClipHigh", s_min, u_min},
    {"Neg", s_neg, NULL},
    {"Abs", s_abs, u_copy},
    {"Sign", s_sign, u_sign},
    {"Relu", s_relu, u_copy},
    {"PRelu", s_prelu, u_copy},
    {"Pow", s_pow, NULL},
    {"And", s_and, u_and},
    {"Or", s_or, u_or},
    {"Xor", s_xor, u_xor},
    {"BitwiseNot", s_not, u_not},
    {"Equal", s_equal, u_equal},
    {"Less", s_less, u_less},
    {"GreaterOrEqual", s_greater_equal, u_greater_equal},
};

/* Fills in values around zero, and around both limits of the dtype. */
static void fill_ints(tensor *t, bool second)
{
    static const int64_t special[] = {
        0, 1, -1, 2, -2, 3, 7, -7, 100, -128, 127, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX, 5};
    for (int64_t i = 0; i < t->n_elements; i++)
        tensor_set_int(
            t, i, special[(second ? i / (int64_t)COUNT(special) : i) % (int64_t)COUNT(special)]);
}

static void add_row(fused *f, const int_row *row)
{
    pointwise_register r;
    const tensor *a = f->inputs[0], *b = f->inputs[1];
    const bool is_signed = dtype_find(a->dtype)->kind == DTYPE_KIND_SIGNED;
    if (is_signed ? !row->on_signed : !row->on_unsigned) return;
    assert_ok(pointwise_add(&f->group, row->def, (pointwise_register[]){0, 1}, NULL, &r));
    tensor *y = fused_output(f, r);
    for (int64_t i = 0; i < y->n_elements; i++) {
        const int64_t x = tensor_get_int(a, i), z = tensor_get_int(b, i);
        tensor_set_int(y, i,
                       is_signed ? row->on_signed(x, z)
                                 : (int64_t)row->on_unsigned((uint64_t)x, (uint64_t)z));
    }
}

static void check_ints(clg_dtype dtype, size_t n_rows)
{
    for (size_t next = 0; next < n_rows;) {
        fused f = {.tolerance = 0};
        pointwise_register r;
        fill_ints(fused_input(&f, dtype, 259, &r), false);
        fill_ints(fused_input(&f, dtype, 259, &r), true);
        while (next < n_rows && f.group.n_outputs < POINTWISE_MAX_OUTPUTS)
            add_row(&f, &int_rows[next++]);
        fused_check(&f);
    }
}

TEST(pointwise_ints__integers)
{
    static const clg_dtype dtypes[] = {CLG_INT32, CLG_UINT8, CLG_INT64};
    static const clg_dtype others[] = {CLG_INT8, CLG_INT16, CLG_UINT16, CLG_UINT32, CLG_UINT64};
    for (size_t i = 0; i < COUNT(dtypes); i++) check_ints(dtypes[i], COUNT(int_rows));
    /* Other dtypes share this kernel source with other type names: tests their arithmetic. */
    for (size_t i = 0; i < COUNT(others); i++) check_ints(others[i], 8);
}

TEST(pointwise_ints__shifts)
{
    static const clg_dtype dtypes[] = {CLG_UINT8, CLG_UINT16, CLG_UINT32, CLG_UINT64};
    for (size_t k = 0; k < COUNT(dtypes); k++) {
        fused f = {.tolerance = 0};
        pointwise_register x, by, left, right;
        const int bits = 8 * (int)dtype_size(dtypes[k]);
        tensor *a = fused_input(&f, dtypes[k], 40, &x), *b = fused_input(&f, dtypes[k], 40, &by);
        assert_ok(pointwise_add(&f.group, "ShiftLeft", (pointwise_register[]){x, by}, NULL, &left));
        assert_ok(
            pointwise_add(&f.group, "ShiftRight", (pointwise_register[]){x, by}, NULL, &right));
        tensor *up = fused_output(&f, left), *down = fused_output(&f, right);
        for (int64_t i = 0; i < 40; i++) {
            tensor_set_int(a, i, 0x123456789abcdef1 + i);
            tensor_set_int(b, i, i * 2);
            const uint64_t bits_of_a = (uint64_t)tensor_get_int(a, i);
            tensor_set_int(up, i, i * 2 < bits ? (int64_t)(bits_of_a << (i * 2)) : 0);
            tensor_set_int(down, i, i * 2 < bits ? (int64_t)(bits_of_a >> (i * 2)) : 0);
        }
        fused_check(&f);
    }
}

/* ---- bool and choices ------------------------------------------------------------------------ */

TEST(pointwise_ints__booleans)
{
    static const char *const defs[] = {"And", "Or", "Xor", "Not", "Equal", "Copy"};
    fused f = {.tolerance = 0};
    pointwise_register r;
    for (int k = 0; k < 2; k++) {
        tensor *x = fused_input(&f, CLG_BOOL, 21, &r);
        for (int64_t i = 0; i < 21; i++) tensor_set_int(x, i, (i >> k) & 1);
    }
    for (size_t d = 0; d < COUNT(defs); d++) {
        assert_ok(pointwise_add(&f.group, defs[d], (pointwise_register[]){0, 1}, NULL, &r));
        tensor *y = fused_output(&f, r);
        for (int64_t i = 0; i < 21; i++) {
            const int64_t a = i & 1, b = (i >> 1) & 1;
            const int64_t right[] = {a * b, a + b > 0, a + b == 1, 1 - a, a + b != 1, a};
            tensor_set_int(y, i, right[d]);
        }
    }
    fused_check(&f);
}

static void check_where(clg_dtype dtype, bool alone)
{
    fused f = {.tolerance = 1e-6};
    pointwise_register r, c, a, b;
    tensor *condition = fused_input(&f, CLG_BOOL, 35, &c);
    tensor *first = fused_input(&f, dtype, 35, &a), *second = fused_input(&f, dtype, 35, &b);
    assert_ok(pointwise_add(&f.group, "Where", (pointwise_register[]){c, a, b}, NULL, &r));
    if (!alone) assert_ok(pointwise_add(&f.group, "Add", (pointwise_register[]){r, a}, NULL, &r));
    tensor *y = fused_output(&f, r);
    for (int64_t i = 0; i < 35; i++) {
        const int64_t chosen = i % 3 == 0, x = dtype == CLG_BOOL ? i & 1 : i;
        const int64_t z = dtype == CLG_BOOL ? 0 : -i;
        tensor_set_int(condition, i, chosen);
        tensor_set_int(first, i, x);
        tensor_set_int(second, i, z);
        tensor_set_int(y, i, (chosen ? x : z) + (alone ? 0 : x));
    }
    fused_check(&f);
}

/* An unfused Where moves elements regardless of their dtype: also float64 on devices without fp64.
 */
TEST(pointwise_ints__where)
{
    check_where(CLG_FLOAT16, true);
    check_where(CLG_FLOAT64, true);
    check_where(CLG_INT8, true);
    check_where(CLG_BOOL, true);
    check_where(CLG_FLOAT32, false);
    check_where(CLG_FLOAT16, false);
    check_where(CLG_INT64, false);
}

/* ---- casts ----------------------------------------------------------------------------------- */

static const clg_dtype all_dtypes[] = {
    CLG_FLOAT32, CLG_FLOAT16, CLG_BFLOAT16, CLG_FLOAT64, CLG_INT8,   CLG_UINT8, CLG_INT16,
    CLG_UINT16,  CLG_INT32,   CLG_UINT32,   CLG_INT64,   CLG_UINT64, CLG_BOOL};

static void fill_for_cast(tensor *t)
{
    static const double floats[] = {0,      -0.0,    0.4,    -0.6,         1.5,           2.5,
                                    -2.5,   127.9,   -128.9, 255,          256,           3e4,
                                    -3.3e4, 65504,   7e4,    2147483647.0, -2147483648.0, 4e9,
                                    9.3e18, -9.3e18, 1.9e19, INFINITY,     -INFINITY,     NAN};
    static const int64_t ints[] = {0,         1,         -1,         127,       128,
                                   -128,      -129,      255,        256,       32767,
                                   32768,     65535,     65536,      INT32_MAX, INT32_MIN,
                                   INT64_MAX, INT64_MIN, 1000000007, 16777217,  -16777219};
    for (int64_t i = 0; i < t->n_elements; i++) {
        if (dtype_is_float(t->dtype))
            tensor_set_float(t, i, floats[i % (int64_t)COUNT(floats)]);
        else if (t->dtype == CLG_BOOL)
            tensor_set_int(t, i, i % 2);
        else
            tensor_set_int(t, i, ints[i % (int64_t)COUNT(ints)]);
    }
}

static void check_casts(clg_dtype from, size_t first, size_t end)
{
    fused f = {.tolerance = 0};
    pointwise_register x, r;
    tensor *in = fused_input(&f, from, 43, &x);
    fill_for_cast(in);
    for (size_t k = first; k < end; k++) {
        assert_ok(pointwise_add_cast(&f.group, x, all_dtypes[k], &r));
        assert_ok(pointwise_add_output(&f.group, r));
        assert_ok(tensor_cast(in, all_dtypes[k], &f.outputs[f.group.n_outputs - 1]));
        /* 64-bit integers and floats are converted to float16 by way of float: double rounding may
         * change the last bit. */
        if (all_dtypes[k] == CLG_FLOAT16) f.tolerance = 1.0 / 1024;
        if (all_dtypes[k] == CLG_BFLOAT16) f.tolerance = 1.0 / 128;
    }
    fused_check(&f);
}

TEST(pointwise_ints__casts)
{
    static const clg_dtype from[] = {CLG_FLOAT32, CLG_FLOAT16, CLG_FLOAT64, CLG_INT8,
                                     CLG_UINT32,  CLG_INT64,   CLG_BOOL};
    for (size_t i = 0; i < COUNT(from); i++) {
        check_casts(from[i], 0, 7);
        check_casts(from[i], 7, COUNT(all_dtypes));
    }
}

/* A cast within a fused kernel rounds as one whose result is stored. */
TEST(pointwise_ints__cast_rounds_in_registers)
{
    enum { N = 500 };
    static const clg_dtype narrow[] = {CLG_FLOAT16, CLG_BFLOAT16};
    /* Ties to even, the ends of float16's normal and denormal numbers, overflow. */
    static const float edges[] = {0.0f,       1.00048828125f, 1.00146484375f, 65504.0f, 65519.0f,
                                  65520.0f,   -65520.0f,      0x1p-14f,       0x1p-24f, 0x1p-25f,
                                  0x1.8p-25f, 0x1.8p-24f,     0x1.ffep-15f,   1e-38f,   3e38f};
    const int64_t n_edges = COUNT(edges);
    for (size_t k = 0; k < COUNT(narrow); k++) {
        fused f = {.tolerance = 0};
        pointwise_register x, r;
        tensor *in = fused_input(&f, CLG_FLOAT32, N, &x);
        assert_ok(pointwise_add_cast(&f.group, x, narrow[k], &r));
        assert_ok(pointwise_add_cast(&f.group, r, CLG_FLOAT32, &r));
        assert_ok(pointwise_add(&f.group, "Sub", (pointwise_register[]){x, r}, NULL, &r));
        tensor *y = fused_output(&f, r);
        for (int64_t i = 0; i < N; i++) {
            const float a = i < n_edges ? edges[i]
                                        : ldexpf(1.0f + (float)i / 7777.0f, (int)(i % 44) - 27) *
                                              (i % 3 == 0 ? -1.0f : 1.0f);
            const float rounded = k == 0 ? half_to_float(half_from_float(a))
                                         : bfloat16_to_float(bfloat16_from_float(a));
            tensor_set_float(in, i, a);
            tensor_set_float(y, i, a - rounded);
        }
        fused_check(&f);
    }
}

TEST_GROUP(run_node_open, run_node_close)
