/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests clg_image_*: options, sizes, and images as inputs of a graph with an ImageDecoder.
 */
#include "support/fixtures/images/encoded_images.h"
#include "support/unit.h"

#include <clgraph/image.h>

#include <stdlib.h>
#include <string.h>

static const char map[] = "P5 2 1 65535\n\x12\x34\xff\xff";
#define MAP_BYTES (sizeof map - 1)

static int only_with_module(void **state)
{
    (void)state;
    const clg_status status = clg_image_size(map, MAP_BYTES, NULL, NULL, NULL, NULL);
    if (status != CLG_ERROR_UNSUPPORTED_OPERATOR) return 0;
    print_message("skipped: %s\n", clg_last_error());
    exit(77);
}
TEST_GROUP(only_with_module, NULL)

TEST(image__options_decide_channels_and_depth)
{
    clg_image_options options = CLG_IMAGE_OPTIONS_INIT;
    clg_value *value;
    assert_int_equal(clg_image_decode(map, MAP_BYTES, NULL, &value), CLG_OK);
    assert_int_equal(clg_value_dtype(value), CLG_UINT8);
    assert_int_equal(clg_value_dims(value)[2], 3);
    assert_memory_equal(clg_value_data(value), "\x12\x12\x12\xff\xff\xff", 6);
    clg_value_free(value);
    options.channels = 4;
    options.keep_16_bits = true;
    assert_int_equal(clg_image_decode(map, MAP_BYTES, &options, &value), CLG_OK);
    const uint16_t expected[] = {0x1234, 0x1234, 0x1234, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff};
    assert_int_equal(clg_value_dtype(value), CLG_UINT16);
    assert_memory_equal(clg_value_data(value), expected, sizeof expected);
    clg_value_free(value);
}

TEST(image__sizes_come_from_headers)
{
    const char *format;
    int64_t width, height;
    assert_int_equal(clg_image_size(map, MAP_BYTES - 4, NULL, &format, &width, &height), CLG_OK);
    assert_string_equal(format, "PNM");
    assert_int_equal(width, 2);
    assert_int_equal(height, 1);
}

TEST(image__what_is_refused)
{
    clg_image_options options = CLG_IMAGE_OPTIONS_INIT;
    clg_value *value;
    int64_t width = 1;
    assert_int_equal(clg_image_decode(NULL, 1, NULL, &value), CLG_ERROR_INVALID_ARGUMENT);
    assert_int_equal(clg_image_decode(map, MAP_BYTES, NULL, NULL), CLG_ERROR_INVALID_ARGUMENT);
    assert_int_equal(clg_image_size(NULL, 1, NULL, NULL, NULL, NULL), CLG_ERROR_INVALID_ARGUMENT);
    assert_int_equal(clg_image_decode(map, 0, NULL, &value), CLG_ERROR_DATA);
    assert_null(value);
    assert_int_equal(clg_image_size("text", 4, NULL, NULL, &width, NULL), CLG_ERROR_DATA);
    assert_int_equal(width, 0);
    assert_int_equal(clg_image_decode(map, MAP_BYTES - 1, NULL, &value), CLG_ERROR_DATA);
    assert_string_equal(clg_last_error(), "the image is damaged: it ends too early");
    options.channels = 2;
    assert_int_equal(clg_image_decode(map, MAP_BYTES, &options, &value),
                     CLG_ERROR_INVALID_ARGUMENT);
    options.channels = 1;
    options.max_pixels = 1;
    assert_int_equal(clg_image_decode(map, MAP_BYTES, &options, &value), CLG_ERROR_LIMIT);
}
