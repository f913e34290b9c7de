/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear with their formulas in
 * double.
 *
 * Quantised values must be equal: the inputs are such that x / scale is a tie, or at least 1e-6
 * from one. Tolerance of dequantised values, which are one product: float32 1e-6, float16 1e-3,
 * bfloat16 8e-3. For float8 and float4, the host's conversions find the nearest value;
 * tests/unit/tensor/test_half.c tests these.
 */
#include "support/cases/run_node.h"
#include "tensor/dtype.h"

#include <math.h>

/* Describes x as [outer, n, inner]. There is one scale for all of x (block 0, not per_axis), one
 * for each index of n (per_axis), or one for each block of `block` elements along n. */
typedef struct layout {
    int64_t outer, n, inner, block;
    bool per_axis;
} layout;

static int64_t scale_at(const layout *l, int64_t i)
{
    const int64_t a = i / l->inner % l->n, o = i / l->inner / l->n;
    if (l->block > 0)
        return (o * ((l->n + l->block - 1) / l->block) + a / l->block) * l->inner + i % l->inner;
    return l->per_axis ? a : 0;
}

static int64_t n_scales(const layout *l)
{
    return l->block > 0  ? l->outer * ((l->n + l->block - 1) / l->block) * l->inner
           : l->per_axis ? l->n
                         : 1;
}

static void range_of(clg_dtype dtype, double *low, double *high)
{
    const dtype_info *info = dtype_find(dtype);
    const bool is_signed = info->kind == DTYPE_KIND_SIGNED;
    *low = is_signed ? -ldexp(1, info->bits - 1) : 0;
    *high = ldexp(1, info->bits - is_signed) - 1;
}

static double saturated(double x, clg_dtype dtype)
{
    double low, high;
    if (dtype_is_float(dtype))
        return minifloat_to_float(dtype, minifloat_from_float(dtype, (float)x));
    range_of(dtype, &low, &high);
    return x < low ? low : x > high ? high : x;
}

static void add_scales(run_node *r, const layout *l, clg_dtype dtype, const double *numbers)
{
    if (l->block > 0)
        run_node_input(r, dtype, 3,
                       (int64_t[]){l->outer, (l->n + l->block - 1) / l->block, l->inner}, numbers);
    else
        run_node_input(r, dtype, l->per_axis ? 1 : 0, &l->n, numbers);
}

/* Checks quantisation and dequantisation. Scales are powers of two: quotients are exact, and some
 * are ties. */
static void both(clg_dtype real, clg_dtype quantised, layout l, bool has_zero, int64_t opset)
{
    const int64_t n = l.outer * l.n * l.inner, m = n_scales(&l), dims[3] = {l.outer, l.n, l.inner};
    double *x = run_node_random(n), *scale = run_node_zeros(m), *zero = run_node_zeros(m);
    double *q = run_node_zeros(n), *back = run_node_zeros(n), low, high;
    const double *random = run_node_random(m);
    const bool floats = dtype_is_float(quantised);
    const int bits = dtype_find(quantised)->bits;
    range_of(quantised, &low, &high);
    for (int64_t i = 0; i < m; i++) {
        scale[i] = ldexp(1, (bits > 8 ? -9 : 1 - bits) + (int)(i % 4));
        zero[i] = floor(low + (high - low) / 2 + random[i] * (bits < 8 ? 2 : 20));
        zero[i] = has_zero ? saturated(zero[i], quantised) : 0;
        if (floats) zero[i] = has_zero ? saturated(random[i], quantised) : 0;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = scale_at(&l, i);
        if (real == CLG_BFLOAT16) x[i] = bfloat16_to_float(bfloat16_from_float((float)x[i]));
        q[i] = saturated((floats ? x[i] / scale[at] : nearbyint(x[i] / scale[at])) + zero[at],
                         quantised);
        back[i] = (q[i] - zero[at]) * scale[at];
    }
    run_node r;
    run_node_start(&r, NULL, "QuantizeLinear", opset);
    if (l.per_axis || l.block > 0) run_node_int(&r, "axis", -2);
    if (l.block > 0) run_node_int(&r, "block_size", l.block);
    if (!has_zero && quantised != CLG_UINT8) run_node_int(&r, "output_dtype", quantised);
    run_node_input(&r, real, 3, dims, x);
    add_scales(&r, &l, real, scale);
    if (has_zero) add_scales(&r, &l, quantised, zero);
    run_node_expect(&r, quantised, 3, dims, q);
    run_node_check(&r, 0);
    run_node_start(&r, NULL, "DequantizeLinear", opset);
    if (l.per_axis || l.block > 0) run_node_int(&r, "axis", 1);
    if (l.block > 0) run_node_int(&r, "block_size", l.block);
    run_node_input(&r, quantised, 3, dims, q);
    add_scales(&r, &l, real, scale);
    if (has_zero) add_scales(&r, &l, quantised, zero);
    run_node_expect(&r, real, 3, dims, back);
    run_node_check(&r, real == CLG_FLOAT16 ? 1e-3 : real == CLG_BFLOAT16 ? 8e-3 : 1e-6);
}

TEST(quantize__tensors)
{
    static const clg_dtype dtypes[] = {CLG_INT8, CLG_UINT8, CLG_INT16, CLG_UINT16};
    for (int i = 0; i < 4; i++) {
        both(CLG_FLOAT32, dtypes[i], (layout){1, 3, 37, 0, false}, true, 21);
        both(CLG_FLOAT32, dtypes[i], (layout){2, 1, 1, 0, false}, false, 21);
    }
    both(CLG_FLOAT16, CLG_INT8, (layout){1, 3, 37, 0, false}, true, 21);
    both(CLG_FLOAT32, CLG_UINT8, (layout){3, 40, 257, 0, false}, true, 10);
    both(CLG_FLOAT32, CLG_UINT8, (layout){3, 0, 5, 0, false}, true, 13);
}

TEST(quantize__axes)
{
    both(CLG_FLOAT32, CLG_INT8, (layout){2, 5, 17, 0, true}, true, 13);
    both(CLG_FLOAT32, CLG_UINT8, (layout){3, 33, 1, 0, true}, true, 13);
    both(CLG_FLOAT32, CLG_INT8, (layout){1, 64, 16, 0, true}, false, 21);
    both(CLG_FLOAT16, CLG_UINT8, (layout){2, 9, 4, 0, true}, true, 21);
}

TEST(quantize__blocks)
{
    both(CLG_FLOAT32, CLG_INT8, (layout){2, 8, 1, 4, false}, true, 21);
    both(CLG_FLOAT32, CLG_UINT8, (layout){2, 7, 1, 3, false}, true, 21);
    both(CLG_FLOAT32, CLG_INT16, (layout){2, 6, 19, 2, false}, true, 21);
    both(CLG_FLOAT16, CLG_INT8, (layout){3, 5, 4, 3, false}, false, 21);
}

static const clg_dtype narrow[] = {CLG_FLOAT8E4M3FN,   CLG_FLOAT8E4M3FNUZ, CLG_FLOAT8E5M2,
                                   CLG_FLOAT8E5M2FNUZ, CLG_FLOAT4E2M1,     CLG_INT4,
                                   CLG_UINT4,          CLG_INT2,           CLG_UINT2};

/* Rows that end within a byte, and lengths around multiples of the vector width. */
TEST(quantize__narrow_types)
{
    for (int i = 0; i < 9; i++) {
        both(CLG_FLOAT32, narrow[i], (layout){1, 3, 37, 0, false}, true, 25);
        both(CLG_FLOAT32, narrow[i], (layout){2, 5, 17, 0, true}, i % 2 == 0, 21);
        both(CLG_FLOAT32, narrow[i], (layout){3, 33, 1, 0, true}, true, 21);
    }
    both(CLG_FLOAT16, CLG_INT4, (layout){1, 3, 40, 0, false}, true, 21);
    both(CLG_FLOAT16, CLG_FLOAT8E4M3FN, (layout){1, 3, 40, 0, false}, true, 23);
    both(CLG_FLOAT32, CLG_UINT4, (layout){1, 1, 1, 0, false}, true, 21);
    both(CLG_FLOAT32, CLG_UINT4, (layout){3, 0, 5, 0, false}, true, 21);
}

TEST(quantize__narrow_blocks)
{
    both(CLG_FLOAT32, CLG_INT4, (layout){1, 64, 48, 32, false}, true, 21);
    both(CLG_FLOAT32, CLG_UINT4, (layout){5, 64, 1, 32, false}, true, 21);
    both(CLG_FLOAT32, CLG_UINT4, (layout){2, 7, 1, 3, false}, true, 21);
    both(CLG_FLOAT16, CLG_INT2, (layout){2, 6, 19, 4, false}, true, 25);
    both(CLG_FLOAT32, CLG_FLOAT4E2M1, (layout){4, 32, 1, 16, false}, false, 23);
    both(CLG_FLOAT32, CLG_FLOAT8E5M2, (layout){3, 5, 4, 3, false}, true, 21);
}

TEST(quantize__bfloat16)
{
    both(CLG_BFLOAT16, CLG_INT8, (layout){1, 3, 37, 0, false}, true, 23);
    both(CLG_BFLOAT16, CLG_UINT4, (layout){2, 5, 17, 0, true}, true, 23);
    both(CLG_BFLOAT16, CLG_FLOAT8E4M3FN, (layout){2, 8, 1, 4, false}, false, 23);
}

/* Blocks of a large constant tensor, as models store quantised weights: it is dequantised when the
 * session is created. */
TEST(dequantize__weights_of_a_matmul)
{
    enum { N = 24, K = 96, BLOCK = 32 };
    double *w = run_node_random(N * K), *scale = run_node_random(N * K / BLOCK),
           *zero = run_node_zeros(N * K / BLOCK), *x = run_node_random(K * 3),
           *y = run_node_zeros(N * 3);
    for (int i = 0; i < N * K; i++) w[i] = floor(w[i] * 8 + 8);
    for (int i = 0; i < N * K / BLOCK; i++) zero[i] = i % 16;
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++)
            for (int j = 0; j < 3; j++) {
                const int at = n * (K / BLOCK) + k / BLOCK;
                y[n * 3 + j] += (w[n * K + k] - zero[at]) * scale[at] * x[k * 3 + j];
            }
    run_node r;
    run_node_start(&r, NULL, "DequantizeLinear", 21);
    run_node_int(&r, "block_size", BLOCK);
    run_node_constant(&r, CLG_UINT4, 2, (int64_t[]){N, K}, w);
    run_node_constant(&r, CLG_FLOAT32, 2, (int64_t[]){N, K / BLOCK}, scale);
    run_node_constant(&r, CLG_UINT4, 2, (int64_t[]){N, K / BLOCK}, zero);
    run_node_then(&r, "MatMul");
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){K, 3}, x);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){N, 3}, y);
    run_node_check_scaled(&r, 1e-5, 100);
}

/* Scales of a dtype that has only powers of two, and outputs of another dtype. */
TEST(dequantize__scales_of_e8m0)
{
    const double x[] = {0.5, -1, 1.5, 6, -6, 3, 2, -0.5}, scale[] = {0x1p-3, 8},
                 y[] = {0.0625, -0.125, 0.1875, 0.75, -48, 24, 16, -4};
    static const clg_dtype outputs[] = {CLG_FLOAT32, CLG_FLOAT16, CLG_BFLOAT16};
    for (int i = 0; i < 3; i++) {
        run_node r;
        run_node_start(&r, NULL, "DequantizeLinear", 24);
        run_node_int(&r, "axis", 0);
        run_node_int(&r, "block_size", 4);
        run_node_int(&r, "output_dtype", outputs[i]);
        run_node_input(&r, CLG_FLOAT4E2M1, 1, (int64_t[]){8}, x);
        run_node_input(&r, CLG_FLOAT8E8M0, 1, (int64_t[]){2}, scale);
        run_node_expect(&r, outputs[i], 1, (int64_t[]){8}, y);
        run_node_check(&r, 0);
        run_node_start(&r, NULL, "QuantizeLinear", 24);
        run_node_int(&r, "axis", 0);
        run_node_int(&r, "block_size", 4);
        run_node_int(&r, "output_dtype", CLG_FLOAT4E2M1);
        run_node_input(&r, outputs[i], 1, (int64_t[]){8}, y);
        run_node_input(&r, CLG_FLOAT8E8M0, 1, (int64_t[]){2}, scale);
        run_node_expect(&r, CLG_FLOAT4E2M1, 1, (int64_t[]){8}, x);
        run_node_check(&r, 0);
    }
}

/* A quotient a little below 1.5 that float16 rounds to 1.5, which is rounded to 2. */
TEST(quantize__precision)
{
    double x = 0, scale = 1;
    for (int i = 1; i < 1024 && !(x / scale < 1.5 && x / scale > 1.5 - 0x1p-12); i++) {
        scale = 1 + i / 1024.0;
        x = half_to_float(half_from_float((float)(1.5 * scale)));
    }
    const struct {
        int64_t opset;
        clg_dtype dtype, precision;
        double y;
    } rows[] = {{21, CLG_FLOAT16, CLG_DTYPE_NONE, 1}, {23, CLG_FLOAT16, CLG_DTYPE_NONE, 2},
                {23, CLG_FLOAT16, CLG_FLOAT32, 1},    {23, CLG_FLOAT32, CLG_DTYPE_NONE, 1},
                {23, CLG_FLOAT32, CLG_FLOAT16, 2},    {23, CLG_FLOAT32, CLG_BFLOAT16, 2}};
    assert_true(x / scale < 1.5);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        run_node r;
        run_node_start(&r, NULL, "QuantizeLinear", rows[i].opset);
        if (rows[i].precision) run_node_int(&r, "precision", rows[i].precision);
        run_node_input(&r, rows[i].dtype, 0, NULL, &x);
        run_node_input(&r, rows[i].dtype, 0, NULL, &scale);
        run_node_expect(&r, CLG_UINT8, 0, NULL, &rows[i].y);
        run_node_check(&r, 0);
    }
}

/* Values out of range, with and without saturation, in types with and without infinity. */
TEST(quantize__narrow_extremes)
{
    const double x[] = {1e30, -1e30, INFINITY, -INFINITY, 464, 465, NAN}, one = 1;
    const struct {
        clg_dtype dtype;
        int saturate;
        double y[7];
    } rows[] = {{CLG_FLOAT8E4M3FN, 1, {448, -448, 448, -448, 448, 448, NAN}},
                {CLG_FLOAT8E4M3FN, 0, {NAN, NAN, NAN, NAN, 448, NAN, NAN}},
                {CLG_FLOAT8E5M2, 0, {INFINITY, -INFINITY, INFINITY, -INFINITY, 448, 448, NAN}},
                {CLG_FLOAT8E5M2FNUZ, 1, {57344, -57344, 57344, -57344, 448, 448, NAN}},
                {CLG_FLOAT4E2M1, 1, {6, -6, 6, -6, 6, 6, 0}},
                {CLG_INT4, 1, {7, -8, 7, -8, 7, 7, -8}}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        run_node r;
        run_node_start(&r, NULL, "QuantizeLinear", 24);
        run_node_int(&r, "output_dtype", rows[i].dtype);
        run_node_int(&r, "saturate", rows[i].saturate);
        run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){7}, x);
        run_node_input(&r, CLG_FLOAT32, 0, NULL, &one);
        run_node_expect(&r, rows[i].dtype, 1, (int64_t[]){7}, rows[i].y);
        run_node_check(&r, 0);
    }
}

TEST(quantize__extremes)
{
    const double x[] = {1e30, -1e30, INFINITY, -INFINITY, 0.0,  -0.0,
                        0.5,  1.5,   2.5,      -0.5,      -1.5, 126.5},
                 one = 1, zero = 1;
    const double q[] = {127, -128, 127, -128, 1, 1, 1, 3, 3, 1, -1, 127};
    run_node r;
    run_node_start(&r, NULL, "QuantizeLinear", 13);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){12}, x);
    run_node_input(&r, CLG_FLOAT32, 0, NULL, &one);
    run_node_input(&r, CLG_INT8, 0, NULL, &zero);
    run_node_expect(&r, CLG_INT8, 1, (int64_t[]){12}, q);
    run_node_check(&r, 0);
}

TEST(quantize__int32)
{
    const double x[] = {-1000000, 0, 7, 123456}, scale = 0.25, y[] = {-250000, 0, 1.75, 30864},
                 q[] = {0, 0, 28, 255};
    const double small[] = {-3, 0, 7, 1000};
    run_node r;
    run_node_start(&r, NULL, "DequantizeLinear", 13);
    run_node_input(&r, CLG_INT32, 1, (int64_t[]){4}, x);
    run_node_input(&r, CLG_FLOAT32, 0, NULL, &scale);
    run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){4}, y);
    run_node_check(&r, 0);
    run_node_start(&r, NULL, "QuantizeLinear", 13);
    run_node_input(&r, CLG_INT32, 1, (int64_t[]){4}, small);
    run_node_input(&r, CLG_FLOAT32, 0, NULL, &scale);
    run_node_expect(&r, CLG_UINT8, 1, (int64_t[]){4}, q);
    run_node_check(&r, 0);
}

static void dynamic(int64_t n, double shift, double factor)
{
    double *x = run_node_random(n), *y = run_node_zeros(n), low = 0, high = 0;
    for (int64_t i = 0; i < n; i++) {
        x[i] = x[i] * factor + shift;
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    const double scale = high == low ? 1 : (double)(((float)high - (float)low) / 255.0f);
    const double zero = saturated(nearbyint(-low / scale), CLG_UINT8);
    for (int64_t i = 0; i < n; i++)
        y[i] = saturated(nearbyint((double)((float)x[i] / (float)scale)) + zero, CLG_UINT8);
    run_node r;
    run_node_start(&r, NULL, "DynamicQuantizeLinear", 11);
    run_node_input(&r, CLG_FLOAT32, 1, &n, x);
    run_node_expect(&r, CLG_UINT8, 1, &n, y);
    run_node_expect(&r, CLG_FLOAT32, 0, NULL, &scale);
    run_node_expect(&r, CLG_UINT8, 0, NULL, &zero);
    run_node_check(&r, 1e-7);
}

TEST(quantize__dynamic)
{
    dynamic(1, 0.75, 0.5);
    dynamic(37, 0, 2);
    dynamic(300, 5, 1);
    dynamic(300, -5, 1);
    dynamic(20011, 0.25, 1);
    dynamic(4, 0, 0);
}

TEST(quantize__refuses)
{
    const double x[6] = {0}, scale[] = {1, 1, 1};
    run_node r;
    run_node_start(&r, NULL, "QuantizeLinear", 13);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){3, 2}, x);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){3}, scale);
    run_node_expect(&r, CLG_UINT8, 2, (int64_t[]){3, 2}, x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "3 scales for 2");
    run_node_start(&r, NULL, "QuantizeLinear", 24);
    run_node_int(&r, "output_dtype", CLG_FLOAT8E8M0);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){3, 2}, x);
    run_node_input(&r, CLG_FLOAT32, 0, NULL, scale);
    run_node_expect(&r, CLG_FLOAT8E8M0, 2, (int64_t[]){3, 2}, x);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_DTYPE, "'output_dtype' is 24 (float8e8m0)");
    run_node_start(&r, NULL, "DequantizeLinear", 24);
    run_node_input(&r, CLG_INT4, 2, (int64_t[]){3, 2}, x);
    run_node_input(&r, CLG_FLOAT8E8M0, 0, NULL, scale);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){3, 2}, x);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_DTYPE, "an output of float8e8m0");
}

TEST_GROUP(run_node_open, run_node_close)
