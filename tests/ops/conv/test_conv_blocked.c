/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests clgraph.BlockedConv, the convolution of channel-blocked feature maps: 1x1 and larger
 * windows, prologues, depthwise kernels, and depthwise convolutions after a 1x1 convolution.
 */
/* ctest: timeout 900 */
#include "support/cases/conv_blocked_case.h"
#include "support/fakes/driver_faults.h"

#include <stdlib.h>

/* ---- cases ----------------------------------------------------------------------------------- */

#define ONES                                                                                       \
    {                                                                                              \
        1, 1, 1, 1                                                                                 \
    }

/* Sets the sizes of a case: images, blocks of input and of output channels, height and width of the
 * input, and those of the kernel. */
#define CONV(images, blocks, to, height, width, k_height, k_width)                                 \
    .n = images, .c_blocks = blocks, .m_blocks = to, .h = height, .w = width,                      \
    .kernel = {k_height, k_width}

TEST(conv_blocked__points)
{
    static const conv_case cases[] = {
        {CONV(1, 1, 1, 1, 1, 1, 1)},
        {CONV(1, 1, 1, 5, 7, 1, 1), .bias = true},
        {CONV(1, 3, 3, 7, 5, 1, 1), .bias = true},
        {CONV(3, 2, 4, 3, 13, 1, 1)},
        {CONV(2, 2, 3, 9, 7, 1, 1), .strides = {2, 2}},
        {CONV(1, 3, 1, 8, 6, 1, 1), .strides = {2, 2}},
        {CONV(1, 1, 2, 3, 4, 1, 1), .pads = {1, 0, 2, 3}},
    };
    conv_case_check(cases, COUNT(cases));
}

TEST(conv_blocked__windows)
{
    static const conv_case cases[] = {
        {CONV(1, 1, 1, 3, 3, 3, 3)},
        {CONV(1, 1, 1, 1, 1, 3, 3), .pads = ONES},
        {CONV(2, 2, 3, 7, 9, 3, 3), .pads = ONES},
        {CONV(1, 3, 1, 5, 13, 3, 3), .bias = true},
        {CONV(2, 1, 2, 8, 11, 3, 3), .pads = {0, 1, 2, 0}, .strides = {2, 2}, .bias = true},
        {CONV(1, 1, 1, 11, 10, 3, 3), .strides = {3, 3}},
        {CONV(1, 2, 1, 13, 17, 3, 3), .pads = ONES, .strides = {4, 4}},
        {CONV(1, 1, 3, 9, 14, 2, 5), .pads = {0, 2, 1, 2}, .strides = {3, 4}},
        {CONV(1, 1, 2, 14, 15, 4, 2), .strides = {4, 3}},
        {CONV(1, 2, 1, 11, 7, 5, 3), .dilations = {2, 1}},
        {CONV(1, 1, 3, 9, 8, 5, 3), .pads = {4, 1, 3, 1}, .dilations = {2, 1}, .bias = true},
        {CONV(2, 1, 1, 10, 13, 3, 3), .pads = {2, 3, 2, 3}, .strides = {2, 2}, .dilations = {2, 3}},
        {CONV(1, 1, 1, 2, 3, 3, 3), .pads = {5, 4, 6, 7}},
    };
    conv_case_check(cases, COUNT(cases));
}

TEST(conv_blocked__auto_pad)
{
    static const conv_case cases[] = {
        {CONV(1, 1, 1, 7, 6, 3, 3), .pads = {1, 0, 1, 1}, .strides = {2, 2},
         .auto_pad = "SAME_UPPER"},
        {CONV(1, 2, 1, 5, 6, 4, 3), .pads = {2, 1, 1, 1}, .auto_pad = "SAME_LOWER"},
        {CONV(1, 1, 3, 5, 6, 3, 2), .auto_pad = "VALID"},
        {CONV(1, 2, 1, 7, 9, 3, 3), .pads = ONES, .auto_pad = "SAME_UPPER", .side = 4},
    };
    conv_case_check(cases, COUNT(cases));
}

/* Tests 16x16 kernels. With 20 input blocks of 16 channels the pixels of one window do not fit in
 * private memory, with smaller blocks those of 40 blocks do not: the kernel splits the window. The
 * windows of 1 and 3 blocks fit. */
TEST(conv_blocked__large_kernels)
{
    static const conv_case cases[] = {
        {CONV(1, 1, 1, 17, 18, 16, 16)},
        {CONV(1, 3, 1, 17, 18, 16, 16), .bias = true},
        {CONV(1, 20, 1, 17, 18, 16, 16), .pads = ONES, .bias = true},
        {CONV(1, 20, 3, 17, 18, 16, 16), .pads = {0, 1, 1, 0}},
        {CONV(1, 40, 1, 15, 16, 16, 16), .pads = ONES},
    };
    conv_case_check(cases, COUNT(cases));
}

TEST(conv_blocked__sums_wait_between_chunks)
{
    static const conv_case cases[] = {
        {CONV(1, 20, 3, 7, 9, 3, 3), .pads = ONES, .bias = true, .residual = true,
         .activation = "Relu"},
        {CONV(2, 20, 1, 5, 7, 3, 3), .bias = true},
        {CONV(1, 40, 3, 7, 11, 1, 1), .bias = true},
        {CONV(2, 70, 1, 3, 5, 1, 1)},
        {CONV(1, 40, 2, 7, 9, 1, 1), .strides = {2, 2}},
        {CONV(1, 20, 1, 6, 7, 5, 5), .pads = {2, 2, 2, 2}},
    };
    conv_case_check(cases, COUNT(cases));
}

TEST(conv_blocked__feature_maps_with_many_channels)
{
    static const conv_case cases[] = {
        {CONV(1, 2, 3, 3, 263, 1, 1), .bias = true},
        {CONV(2, 1, 1, 5, 131, 3, 3), .pads = ONES},
        {CONV(1, 1, 2, 5, 131, 3, 3)},
        {CONV(1, 1, 1, 131, 3, 3, 3), .pads = ONES},
        {CONV(7, 1, 1, 3, 3, 3, 3), .pads = ONES},
    };
    conv_case_check(cases, COUNT(cases));
}

#define POST_OPS(...)                                                                              \
    {                                                                                              \
        CONV(2, 1, 3, 5, 7, 3, 3), .pads = ONES, __VA_ARGS__                                       \
    }

TEST(conv_blocked__epilogues)
{
    static const conv_case cases[] = {
        POST_OPS(.residual = true),
        POST_OPS(.bias = true, .residual = true),
        POST_OPS(.activation = "Relu"),
        POST_OPS(.bias = true, .residual = true, .activation = "Relu"),
        POST_OPS(.bias = true, .activation = "LeakyRelu", .alpha = 0.3f),
        POST_OPS(.residual = true, .activation = "HardSwish"),
        POST_OPS(.bias = true, .activation = "Sigmoid"),
        {CONV(1, 2, 1, 5, 7, 1, 1), .residual = true, .activation = "LeakyRelu", .alpha = 0.125f},
    };
    conv_case_check(cases, COUNT(cases));
}

TEST(conv_blocked__images)
{
    static const int64_t channels[] = {1, 3, 4};
    static const conv_case cases[] = {
        {CONV(2, 0, 1, 15, 17, 7, 7), .pads = {3, 3, 3, 3}, .strides = {2, 2}, .bias = true,
         .activation = "Relu"},
        {CONV(1, 0, 3, 7, 9, 3, 3), .pads = ONES},
        {CONV(1, 0, 2, 6, 31, 3, 3), .bias = true, .residual = true},
        {CONV(2, 0, 1, 5, 7, 1, 1)},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t k = 0; k < COUNT(channels); k++) {
            conv_case t = cases[i];
            t.image = channels[k];
            conv_case_check(&t, 1);
        }
}

TEST(conv_blocked__winograd)
{
    static const conv_case cases[] = {
        {CONV(1, 1, 1, 3, 3, 3, 3)},
        {CONV(1, 1, 1, 1, 1, 3, 3), .pads = ONES},
        {CONV(2, 3, 1, 7, 6, 3, 3), .pads = {0, 1, 2, 0}},
        {CONV(1, 1, 3, 9, 17, 3, 3), .pads = ONES, .bias = true},
        {CONV(1, 5, 2, 2, 5, 3, 3), .pads = {3, 4, 0, 5}, .bias = true},
        {CONV(7, 3, 3, 7, 7, 3, 3), .pads = ONES, .bias = true},
        {CONV(1, 1, 1, 3, 263, 3, 3), .pads = ONES},
        {CONV(2, 5, 3, 10, 17, 3, 3), .pads = ONES, .bias = true, .residual = true,
         .activation = "Relu"},
        {CONV(1, 1, 1, 5, 6, 3, 3), .residual = true},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int64_t side = 2; side <= 4; side += 2) {
            conv_case t = cases[i];
            t.side = side;
            conv_case_check(&t, 1);
        }
}

/* 3x3 windows with stride 2: even and odd sides, tiles that end outside of y, paddings beyond the
 * window, several strips of columns, and more than a work-group's tiles. */
TEST(conv_blocked__winograd_with_stride_2)
{
    static const conv_case cases[] = {
        {CONV(1, 1, 1, 3, 3, 3, 3)},
        {CONV(1, 1, 1, 1, 2, 3, 3), .pads = ONES},
        {CONV(2, 3, 1, 8, 7, 3, 3), .pads = {0, 1, 1, 0}, .bias = true},
        {CONV(1, 2, 3, 14, 17, 3, 3), .pads = ONES, .bias = true, .activation = "Relu"},
        {CONV(1, 5, 2, 6, 9, 3, 3), .pads = {3, 4, 0, 5}, .c_less = 3, .m_less = 1},
        {CONV(3, 3, 3, 15, 14, 3, 3), .pads = ONES, .bias = true, .residual = true},
        {CONV(1, 1, 1, 5, 263, 3, 3), .pads = ONES, .residual = true},
        {CONV(1, 1, 2, 71, 66, 3, 3), .m_less = 3},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        conv_case t = cases[i];
        t.strides[0] = t.strides[1] = 2;
        t.side = 2;
        conv_case_check(&t, 1);
    }
}

/* Windows of 5x5 to 8x8 with stride 2 on images, in blocks and in NCHW order: odd sizes, paddings,
 * several strips of columns, and more channels than one vector has after the space-to-depth
 * transform. */
TEST(conv_blocked__winograd_of_strided_images)
{
    static const int64_t channels[] = {1, 3, 5};
    static const conv_case cases[] = {
        {CONV(2, 0, 1, 15, 17, 7, 7), .pads = {3, 3, 3, 3}, .bias = true, .activation = "Relu"},
        {CONV(1, 0, 3, 20, 23, 8, 7), .pads = {3, 2, 4, 3}, .m_less = 1},
        {CONV(1, 0, 2, 31, 12, 7, 8), .residual = true},
        {CONV(1, 0, 1, 9, 590, 7, 7), .pads = {2, 1, 4, 0}},
        {CONV(1, 0, 1, 1, 2, 7, 7), .pads = {3, 3, 3, 3}},
        {CONV(3, 0, 1, 22, 25, 6, 6), .pads = {2, 2, 2, 2}, .bias = true},
        {CONV(1, 0, 2, 14, 19, 5, 6), .pads = {0, 3, 1, 0}, .m_less = 2, .residual = true},
        {CONV(1, 0, 1, 11, 11, 5, 5), .bias = true, .residual = true, .activation = "Relu"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t k = 0; k < COUNT(channels); k++)
            for (int plain = 0; plain < 2; plain++) {
                conv_case t = cases[i];
                t.image = channels[k];
                t.strides[0] = t.strides[1] = 2;
                t.side = t.kernel[0] > 6 ? 3 : 4;
                t.plain = plain;
                conv_case_check(&t, 1);
            }
}

TEST(conv_blocked__last_block_lacks_channels)
{
    static const conv_case cases[] = {
        {CONV(2, 1, 1, 5, 7, 1, 1), .c_less = 3, .m_less = 1, .bias = true},
        {CONV(2, 2, 3, 5, 7, 3, 3), .c_less = 1, .m_less = 3, .pads = ONES, .bias = true,
         .residual = true, .activation = "Relu"},
        {CONV(1, 2, 2, 5, 7, 3, 3), .m_less = 2},
        {CONV(2, 0, 2, 9, 7, 3, 3), .image = 3, .m_less = 3, .strides = {2, 2}, .bias = true},
        {CONV(2, 3, 2, 7, 9, 3, 3), .c_less = 1, .m_less = 3, .pads = ONES, .bias = true,
         .residual = true, .side = 2},
        {CONV(2, 2, 3, 7, 9, 3, 3), .c_less = 3, .m_less = 1, .pads = ONES, .bias = true,
         .activation = "Relu", .side = 4},
    };
    conv_case_check(cases, COUNT(cases));
}

TEST(conv_blocked__depthwise)
{
    static const conv_case cases[] = {
        {CONV(1, 1, 0, 5, 7, 3, 3), .pads = ONES, .bias = true},
        {CONV(3, 3, 0, 9, 8, 3, 3), .pads = {0, 1, 2, 0}, .strides = {2, 2}},
        {CONV(2, 2, 0, 7, 11, 5, 5), .c_less = 3, .pads = {2, 2, 2, 2}, .bias = true,
         .residual = true, .activation = "HardSwish"},
        {CONV(1, 2, 0, 11, 13, 3, 2), .dilations = {2, 3}},
        {CONV(1, 1, 0, 3, 131, 3, 7), .pads = {1, 3, 1, 3}},
        {CONV(1, 1, 0, 1, 1, 3, 3), .c_less = 1, .pads = ONES},
        {CONV(2, 1, 0, 13, 15, 3, 3), .pads = ONES, .strides = {3, 4}, .bias = true,
         .activation = "LeakyRelu", .alpha = 0.3f},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        conv_case t = cases[i];
        t.depthwise = true;
        conv_case_check(&t, 1);
    }
}

/* Depthwise convolutions after a 1x1 convolution, in one kernel and in two: parts of lines and
 * whole ones, windows in padding only, more than one part of a feature map. */
TEST(conv_blocked__expanded)
{
    static const conv_case cases[] = {
        {CONV(1, 1, 0, 5, 7, 3, 3), .x_blocks = 1, .pads = ONES, .bias = true},
        {CONV(1, 1, 0, 1, 1, 1, 1), .x_blocks = 1, .points_bias = true},
        {CONV(2, 3, 0, 9, 8, 3, 3), .x_blocks = 2, .pads = {0, 1, 2, 0}, .strides = {2, 2},
         .points_bias = true, .bias = true, .activation = "Relu"},
        {CONV(1, 2, 0, 14, 14, 3, 3), .x_blocks = 2, .c_less = 3, .x_less = 2, .pads = ONES,
         .points_bias = true, .bias = true, .activation = "LeakyRelu", .alpha = 0.3f},
        {CONV(2, 3, 0, 7, 11, 5, 5), .x_blocks = 1, .c_less = 1, .pads = {2, 2, 2, 2},
         .points_bias = true, .activation = "HardSwish"},
        {CONV(1, 1, 0, 9, 10, 3, 3), .x_blocks = 3, .pads = ONES, .points_bias = true, .bias = true,
         .activation = "Relu", .activated = 1},
        {CONV(1, 1, 0, 9, 10, 3, 3), .x_blocks = 2, .points_bias = true, .bias = true,
         .activation = "Relu", .activated = 2},
        {CONV(1, 1, 0, 6, 5, 3, 3), .x_blocks = 1, .pads = ONES, .activation = "Sigmoid",
         .points_bias = true},
        {CONV(1, 2, 0, 11, 13, 3, 2), .x_blocks = 1, .dilations = {2, 3}, .bias = true},
        {CONV(1, 1, 0, 13, 15, 3, 3), .x_blocks = 2, .pads = ONES, .strides = {3, 4},
         .points_bias = true, .activation = "Relu"},
        {CONV(1, 3, 0, 3, 263, 3, 7), .x_blocks = 1, .pads = {1, 3, 1, 3}, .points_bias = true},
        {CONV(1, 1, 0, 131, 40, 3, 3), .x_blocks = 1, .pads = ONES, .bias = true},
        {CONV(1, 1, 0, 2, 3, 3, 3), .x_blocks = 1, .pads = {5, 4, 6, 7}, .points_bias = true},
        {CONV(1, 1, 0, 18, 41, 16, 16), .x_blocks = 1, .pads = {3, 15, 2, 9}, .strides = {1, 4}},
        {CONV(1, 2, 0, 7, 7, 3, 3), .x_blocks = 21, .pads = ONES, .points_bias = true, .bias = true,
         .activation = "Relu"},
        {CONV(0, 2, 0, 5, 7, 3, 3), .x_blocks = 1, .pads = ONES},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int apart = 0; apart < 2; apart++) {
            conv_case t = cases[i];
            t.depthwise = true;
            t.apart = apart == 1;
            conv_case_check(&t, 1);
        }
}

/* Prologues: with and without Relu, a last block that is not full, padding (zero after the
 * prologue), strides, everything after the sum, more pixels than a work-group copies at a time. */
TEST(conv_blocked__prologue)
{
    static const conv_case cases[] = {
        {CONV(1, 1, 1, 1, 1, 1, 1), .scaled = true},
        {CONV(2, 3, 2, 5, 7, 1, 1), .prologue_relu = true, .bias = true, .activation = "Relu"},
        {CONV(1, 2, 1, 7, 5, 1, 1), .c_less = 3, .m_less = 1, .prologue_relu = true},
        {CONV(3, 1, 5, 3, 13, 1, 1), .bias = true, .residual = true},
        {CONV(2, 2, 3, 9, 7, 1, 1), .strides = {2, 2}, .prologue_relu = true},
        {CONV(1, 1, 2, 3, 4, 1, 1), .pads = {1, 0, 2, 3}},
        {CONV(2, 2, 3, 7, 9, 3, 3), .pads = ONES, .prologue_relu = true, .bias = true},
        {CONV(1, 2, 1, 11, 7, 5, 3), .dilations = {2, 1}, .activation = "Sigmoid"},
        {CONV(1, 41, 5, 13, 17, 1, 1), .prologue_relu = true},
        {CONV(1, 3, 9, 61, 67, 1, 1), .prologue_relu = true, .residual = true},
        {CONV(0, 2, 3, 5, 7, 1, 1)},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        conv_case t = cases[i];
        t.scaled = true;
        conv_case_check(&t, 1);
    }
}

/* With zero images no convolution is planned, so none can be rejected. */
TEST(conv_blocked__no_images)
{
    static const conv_case cases[] = {
        {CONV(0, 2, 3, 5, 7, 3, 3), .pads = ONES},
        {CONV(0, 1, 1, 5, 7, 3, 3), .side = 2},
        {CONV(0, 0, 1, 5, 7, 1, 1), .image = 3, .residual = true},
    };
    conv_case_check(cases, COUNT(cases));
}

/* All classes of kernels support feature maps in NCHW order, so these cases run on every device. */
TEST(conv_blocked__plain_maps_do_with_all_kernels)
{
    static const conv_case cases[] = {
        POST_OPS(.bias = true, .residual = true, .activation = "Relu", .plain = true),
        {CONV(1, 0, 1, 5, 6, 3, 3), .image = 3, .plain = true},
    };
    conv_case_check(cases, COUNT(cases));
}

static const conv_case small = {CONV(1, 1, 1, 3, 5, 1, 1)};
static const conv_case scaled = {CONV(1, 1, 1, 3, 5, 1, 1), .scaled = true};
static const conv_case scaled_image = {CONV(1, 0, 1, 3, 5, 1, 1), .image = 3, .scaled = true};
static const conv_case after_points = {CONV(1, 1, 0, 3, 5, 1, 1), .depthwise = true, .x_blocks = 1};

static void refuse(clg_context *context, const clg_session_options *options, const char *place,
                   void *user)
{
    (void)place;
    (void)user;
    conv_run r = conv_case_on(&small, context);
    r.depth += 1;
    conv_case_numbers(&r);
    conv_case_refused(context, options, &r, CLG_ERROR_SHAPE, "not fit a weight of");

    r = conv_case_on(&after_points, context);
    r.t.residual = true;
    conv_case_numbers(&r);
    conv_case_refused(context, options, &r, CLG_ERROR_INVALID_MODEL, "a residual beside");

    r = conv_case_on(&after_points, context);
    r.x_c += r.lanes;
    conv_case_numbers(&r);
    conv_case_refused(context, options, &r, CLG_ERROR_SHAPE, "1x1 convolution before");

    r = conv_case_on(&after_points, context);
    r.c -= 1; /* of the 1x1 convolution alone */
    conv_case_numbers(&r);
    conv_case_refused(context, options, &r, CLG_ERROR_SHAPE, "1x1 convolution before");

    r = conv_case_on(&scaled, context);
    conv_case_numbers(&r);
    r.shift = NULL;
    conv_case_refused(context, options, &r, CLG_ERROR_INVALID_MODEL, "prologue");

    r = conv_case_on(&small, context);
    r.t.prologue_relu = true;
    conv_case_numbers(&r);
    conv_case_refused(context, options, &r, CLG_ERROR_INVALID_MODEL, "prologue");

    r = conv_case_on(&after_points, context);
    r.t.scaled = true;
    conv_case_numbers(&r);
    conv_case_refused(context, options, &r, CLG_ERROR_INVALID_MODEL, "prologue");

    r = conv_case_on(&scaled_image, context);
    conv_case_numbers(&r);
    conv_case_refused(context, options, &r, CLG_ERROR_SHAPE, "one element per channel");

    r = conv_case_on(&small, context);
    r.x_dims.rank = 3;
    conv_case_numbers(&r);
    conv_case_refused(context, options, &r, CLG_ERROR_SHAPE, "has rank 3 and the weight 4");

    r = conv_case_on(&small, context);
    r.lanes = 0;
    conv_case_numbers(&r);
    conv_case_refused(context, options, &r, CLG_ERROR_INVALID_MODEL, "'lanes' is 0");

    r = conv_case_on(&small, context);
    r.lanes /= 2;
    conv_case_numbers(&r);
    conv_case_refused(context, options, &r, CLG_ERROR_UNSUPPORTED_DEVICE,
                      "not those of the device");

    r = conv_case_on(&small, context);
    r.x_dims.dims[1] *= 2;
    r.x_dims.dims[4] /= 2;
    conv_case_numbers(&r);
    conv_case_refused(context, options, &r, CLG_ERROR_UNSUPPORTED_DEVICE,
                      "not those of the device");
}

TEST(conv_blocked__refusals) { run_node_each(refuse, NULL); }

static int begin(void **state)
{
    const int result = run_node_open(state);
    if (run_node_leave_out(driver_has_small_private_memory) == 0) exit(77); /* skipped */
    return result;
}

TEST_GROUP(begin, run_node_close)
