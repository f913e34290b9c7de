/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear against the formulas in double, element by element.
 *
 * Quantised numbers are exact: the inputs are such that x / scale is not within 1e-6 of a tie unless it is one. What is
 * dequantised is one product: 1e-6; float16 1e-3.
 */
#include "support/run_node.h"

#include <math.h>

/* x as [outer, n, inner]; one scale for all (block 0, per 0), for each n (per 1), for each block of n. */
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
    *low = dtype == CLG_INT8 ? -128 : dtype == CLG_INT16 ? -32768 : 0;
    *high = dtype == CLG_INT8 ? 127 : dtype == CLG_INT16 ? 32767 : dtype == CLG_UINT8 ? 255 : 65535;
}

static double saturated(double x, clg_dtype dtype)
{
    double low, high;
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

/* Scales are powers of two: quotients are exact, and some are ties. */
static void both(clg_dtype real, clg_dtype quantised, layout l, bool has_zero, int64_t opset)
{
    const int64_t n = l.outer * l.n * l.inner, m = n_scales(&l), dims[3] = {l.outer, l.n, l.inner};
    double *x = run_node_random(n), *scale = run_node_zeros(m), *zero = run_node_zeros(m);
    double *q = run_node_zeros(n), *back = run_node_zeros(n), low, high;
    const double *random = run_node_random(m);
    const bool bytes = quantised == CLG_INT8 || quantised == CLG_UINT8;
    range_of(quantised, &low, &high);
    for (int64_t i = 0; i < m; i++) {
        scale[i] = ldexp(1, (bytes ? -7 : -9) + (int)(i % 4));
        zero[i] = has_zero ? floor(low + (high - low) / 2 + random[i] * 20) : 0;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = scale_at(&l, i);
        q[i] = saturated(nearbyint(x[i] / scale[at]) + zero[at], quantised);
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
    run_node_check(&r, real == CLG_FLOAT16 ? 1e-3 : 1e-6);
}

static void quantize__tensors(void **state)
{
    (void)state;
    static const clg_dtype dtypes[] = {CLG_INT8, CLG_UINT8, CLG_INT16, CLG_UINT16};
    for (int i = 0; i < 4; i++) {
        both(CLG_FLOAT32, dtypes[i], (layout){1, 3, 37, 0, false}, true, 21);
        both(CLG_FLOAT32, dtypes[i], (layout){2, 1, 1, 0, false}, false, 21);
    }
    both(CLG_FLOAT16, CLG_INT8, (layout){1, 3, 37, 0, false}, true, 21);
    both(CLG_FLOAT32, CLG_UINT8, (layout){3, 40, 257, 0, false}, true, 10);
    both(CLG_FLOAT32, CLG_UINT8, (layout){3, 0, 5, 0, false}, true, 13);
}

static void quantize__axes(void **state)
{
    (void)state;
    both(CLG_FLOAT32, CLG_INT8, (layout){2, 5, 17, 0, true}, true, 13);
    both(CLG_FLOAT32, CLG_UINT8, (layout){3, 33, 1, 0, true}, true, 13);
    both(CLG_FLOAT32, CLG_INT8, (layout){1, 64, 16, 0, true}, false, 21);
    both(CLG_FLOAT16, CLG_UINT8, (layout){2, 9, 4, 0, true}, true, 21);
}

static void quantize__blocks(void **state)
{
    (void)state;
    both(CLG_FLOAT32, CLG_INT8, (layout){2, 8, 1, 4, false}, true, 21);
    both(CLG_FLOAT32, CLG_UINT8, (layout){2, 7, 1, 3, false}, true, 21);
    both(CLG_FLOAT32, CLG_INT16, (layout){2, 6, 19, 2, false}, true, 21);
    both(CLG_FLOAT16, CLG_INT8, (layout){3, 5, 4, 3, false}, false, 21);
}

static void quantize__extremes(void **state)
{
    (void)state;
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

static void quantize__int32(void **state)
{
    (void)state;
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

static void quantize__dynamic(void **state)
{
    (void)state;
    dynamic(1, 0.75, 0.5);
    dynamic(37, 0, 2);
    dynamic(300, 5, 1);
    dynamic(300, -5, 1);
    dynamic(20011, 0.25, 1);
    dynamic(4, 0, 0);
}

static void quantize__refuses(void **state)
{
    (void)state;
    const double x[6] = {0}, scale[] = {1, 1, 1};
    run_node r;
    run_node_start(&r, NULL, "QuantizeLinear", 13);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){3, 2}, x);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){3}, scale);
    run_node_expect(&r, CLG_UINT8, 2, (int64_t[]){3, 2}, x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "3 scales for 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantize__tensors), cmocka_unit_test(quantize__axes),
        cmocka_unit_test(quantize__blocks),  cmocka_unit_test(quantize__extremes),
        cmocka_unit_test(quantize__int32),   cmocka_unit_test(quantize__dynamic),
        cmocka_unit_test(quantize__refuses),
    };
    return cmocka_run_group_tests(tests, run_node_open, run_node_close);
}
