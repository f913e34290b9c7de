/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests ConvInteger and QLinearConv by the tiled implementation for GPUs and by the plain one, with
 * signed and unsigned inputs and weights. Sizes leave remainders of tiles, of words of four
 * channels, and of the tiles' depth (16 words).
 */
/* ctest: timeout 1800 */
#include "support/cases/quantized_case.h"

#define TILED .impl = "qconv_simt", .impl_kernels = CLG_KERNELS_SIMT

static void both(qconv_case t, quantized_how how)
{
    qconv_check(t, false, how);
    qconv_check(t, true, how);
}

static const quantized_how tiled = {TILED};

static const qconv_case ragged = {.rank = 2,
                                  .batch = 2,
                                  .groups = 1,
                                  .ic = 7,
                                  .oc = 70,
                                  .h = 9,
                                  .w = 11,
                                  .kh = 3,
                                  .kw = 3,
                                  .sh = 1,
                                  .sw = 1,
                                  .dh = 1,
                                  .dw = 1,
                                  .ph = 1,
                                  .pw = 1,
                                  .w_lists = true,
                                  .bias = true};

TEST(qconv_simt__signs)
{
    for (int signs = 0; signs < 4; signs++) {
        qconv_case t = ragged;
        t.x_signed = signs & 1;
        t.w_signed = signs & 2;
        both(t, tiled);
        both(t, (quantized_how){.range = ENDS, TILED});
    }
}

TEST(qconv_simt__windows)
{
    static const qconv_case cases[] = {
        /* groups, strides, dilations */
        {2, 2, 3, 5, 10, 11, 17, 3, 2, 2, 3, 2, 1, 2, 0, false, true, true, true},
        {2, 1, 2, 6, 3, 7, 9, 1, 3, 1, 1, 1, 2, 0, 2, true, true, false, false},
        /* one axis, three axes */
        {1, 3, 1, 9, 12, 1, 37, 1, 5, 1, 2, 1, 3, 0, 4, false, true, true, true},
        {3, 1, 2, 4, 9, 6, 7, 2, 3, 1, 2, 1, 1, 0, 1, true, false, true, true},
        /* 1x1 kernels, one pixel, one channel */
        {2, 2, 1, 67, 33, 7, 7, 1, 1, 1, 1, 1, 1, 0, 0, false, true, false, true},
        {2, 1, 1, 130, 65, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, true, true, true, false},
        {2, 1, 1, 1, 16, 12, 12, 5, 5, 1, 1, 1, 1, 2, 2, false, false, true, true},
        /* more padding than image */
        {2, 1, 1, 3, 11, 2, 2, 3, 3, 1, 1, 1, 1, 3, 3, false, false, true, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) both(cases[i], tiled);
}

TEST(qconv_simt__computed_weights) { both(ragged, (quantized_how){.w_computed = true, TILED}); }

TEST(qconv_simt__large)
{
    const qconv_case t = {2, 1, 1, 5, 1029, 33,    35,   1,    1,   1,
                          1, 1, 1, 0, 0,    false, true, true, true};
    both(t, tiled);
}

TEST(qconv_simt__plain)
{
    both(ragged, (quantized_how){.impl = "qconv", .impl_kernels = CLG_KERNELS_SIMT});
}

TEST_GROUP(run_node_open, run_node_close)
