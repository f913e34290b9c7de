/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests ConvInteger and QLinearConv by the default implementation, with one to three spatial axes,
 * and by each of the implementations for CPUs.
 */
#include "support/cases/quantized_case.h"

static const qconv_case cases[] = {
    {2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, false, false, false, false},
    {2, 2, 1, 5, 7, 9, 11, 3, 3, 1, 1, 1, 1, 1, 1, false, true, true, true},
    {2, 1, 3, 2, 2, 10, 300, 3, 5, 2, 3, 2, 1, 2, 0, true, true, true, false},
    {1, 2, 1, 3, 4, 1, 17, 1, 4, 1, 2, 1, 2, 0, 3, false, false, false, true},
    {3, 1, 2, 2, 3, 6, 7, 2, 3, 1, 2, 1, 1, 0, 1, true, false, true, true},
};

TEST(qconv__integer)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        qconv_check(cases[i], false, (quantized_how){0});
}

TEST(qconv__linear)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        qconv_check(cases[i], true, (quantized_how){0});
}

/* Cases for the implementations for CPUs (which multiply bytes, shorts or floats), whose sizes
 * leave remainders of input and output channels, words, pixel tiles and blocks. */
static const struct {
    qconv_case t;
    bool furthest, w_computed;
} wide[] = {
    {{2, 2, 1, 5, 25, 9, 37, 3, 3, 1, 1, 1, 1, 1, 1, false, true, true, true}, false, false},
    {{2, 1, 3, 6, 13, 11, 40, 3, 3, 2, 2, 1, 2, 1, 2, false, true, false, true}, false, false},
    {{2, 1, 1, 130, 70, 7, 7, 1, 1, 1, 1, 1, 1, 0, 0, false, true, true, true}, false, false},
    {{2, 2, 1, 66, 12, 30, 31, 1, 1, 2, 2, 1, 1, 0, 0, false, true, true, true}, false, false},
    {{2, 1, 1, 2, 3, 20, 19, 9, 9, 1, 1, 1, 1, 4, 4, true, false, true, false}, false, true},
    {{2, 1, 1, 70000, 2, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, false, true, true, true}, false, false},
    {{2, 1, 1, 270000, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, false, true, true, true}, false, false},
    {{1, 1, 2, 261, 2, 1, 18, 1, 3, 1, 1, 1, 1, 0, 1, false, true, true, true}, true, false},
    {{2, 1, 1, 259, 1, 3, 3, 3, 3, 1, 1, 1, 1, 0, 0, true, false, true, false}, true, false},
};

static void check_simd(const char *impl)
{
    for (size_t i = 0; i < COUNT(wide); i++) {
        const quantized_how how = {wide[i].furthest ? FURTHEST : ANY_NUMBERS, wide[i].w_computed,
                                   impl, CLG_KERNELS_SIMD};
        qconv_check(wide[i].t, i % 2 == 0, how);
        if (how.range) qconv_check(wide[i].t, i % 2 != 0, how);
    }
}

TEST(qconv__simd_byte) { check_simd("qconv_simd_byte"); }

TEST(qconv__simd_short) { check_simd("qconv_simd_short"); }

TEST(qconv__simd_float) { check_simd("qconv_simd_float"); }

/* Depthwise convolution: with more than 16 x 16 taps, sums would not be exact in float. */
TEST(qconv__simd_depthwise)
{
    static const qconv_case usual[] = {
        {2, 2, 37, 1, 1, 9, 41, 3, 3, 1, 1, 1, 1, 1, 1, false, true, true, true},
        {2, 1, 5, 1, 2, 14, 15, 5, 3, 2, 2, 1, 2, 2, 1, true, false, true, true},
    };
    static const qconv_case extreme[] = {
        {2, 1, 3, 1, 1, 20, 30, 16, 16, 1, 1, 1, 1, 3, 3, false, true, true, false},
        {2, 1, 3, 1, 1, 20, 30, 16, 16, 1, 1, 1, 1, 0, 7, true, false, false, false},
    };
    const quantized_how plainly = {ANY_NUMBERS, false, "qconv_depthwise_simd", CLG_KERNELS_SIMD},
                        extremely = {FURTHEST, false, "qconv_depthwise_simd", CLG_KERNELS_SIMD};
    for (size_t i = 0; i < COUNT(usual); i++) {
        qconv_check(usual[i], true, plainly);
        qconv_check(usual[i], false, plainly);
        qconv_check(extreme[i], true, extremely);
        qconv_check(extreme[i], false, extremely);
    }
    qconv_check(
        (qconv_case){2, 1, 2, 1, 1, 20, 18, 17, 16, 1, 1, 1, 1, 0, 0, false, true, true, true},
        false, (quantized_how){.range = FURTHEST});
}

TEST(qconv__refuses)
{
    const double x[32] = {0};
    run_node r;
    run_node_start(&r, NULL, "ConvInteger", 10);
    run_node_input(&r, CLG_UINT8, 4, (int64_t[]){1, 2, 3, 3}, x);
    run_node_input(&r, CLG_INT8, 4, (int64_t[]){2, 1, 2, 2}, x);
    run_node_expect(&r, CLG_INT32, 4, (int64_t[]){1, 2, 2, 2}, x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "2 channels");
}

TEST_GROUP(run_node_open, run_node_close)
