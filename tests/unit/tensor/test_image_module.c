/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the module clgraph-images: one image in each format, in all kinds of pixels, and files that
 * are cut, changed, or tell sizes that they do not have.
 */
#include "support/fakes/failing_alloc.h"
#include "support/fixtures/images/encoded_images.h"
#include "support/unit.h"

#include "base/error.h"
#include "base/memory.h"
#include "tensor/formats/image_module.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PIXELS 1000

/* Skips all where the module is not built, as for Windows. */
static int only_with_module(void **state)
{
    (void)state;
    const char map[] = "P1 1 1 0";
    const clg_status status = image_module_look(map, sizeof map - 1, MAX_PIXELS, NULL, NULL, NULL);
    if (status != CLG_ERROR_UNSUPPORTED_OPERATOR) return 0;
    print_message("skipped: %s\n", error_text());
    exit(77);
}
TEST_GROUP(only_with_module, NULL)

static clg_status decode(const encoded_image *e, int channels, tensor **out_tensor)
{
    return image_module_decode(e->bytes, e->n_bytes, channels, false, MAX_PIXELS, out_tensor);
}

/* Returns whether the module was built with the format's library, and names those that are left
 * out. */
static bool is_built(const encoded_image *e)
{
    tensor *t = NULL;
    const clg_status status = decode(e, 3, &t);
    tensor_free(t);
    if (status != CLG_ERROR_UNSUPPORTED_OPERATOR) return true;
    print_message("left out: %s\n", error_text());
    return false;
}

static unsigned gray_of(int x, int y)
{
    return (299 * encoded_image_element(x, y, 0) + 587 * encoded_image_element(x, y, 1) +
            114 * encoded_image_element(x, y, 2)) /
           1000;
}

static void check_pixels(const encoded_image *e, const tensor *t, int channels)
{
    const unsigned char *pixels = t->data;
    assert_int_equal(t->dtype, CLG_UINT8);
    assert_int_equal(t->dims.rank, 3);
    assert_int_equal(t->dims.dims[0], ENCODED_HEIGHT);
    assert_int_equal(t->dims.dims[1], ENCODED_WIDTH);
    assert_int_equal(t->dims.dims[2], channels);
    for (int y = 0; y < ENCODED_HEIGHT; y++)
        for (int x = 0; x < ENCODED_WIDTH; x++)
            for (int c = 0; c < channels; c++) {
                const int expected = c == 3          ? 255
                                     : channels == 1 ? (int)gray_of(x, y)
                                                     : (int)encoded_image_element(x, y, c);
                const int got = pixels[(y * ENCODED_WIDTH + x) * channels + c];
                /* gray: the weights of Pillow, in 16 bits, against those in thousandths */
                if (abs(got - expected) > e->tolerance + (channels == 1))
                    fail_msg("%s, %d channels, (%d, %d, %d): %d, expected %d", e->format, channels,
                             x, y, c, got, expected);
            }
}

TEST(images__formats_have_the_same_pixels)
{
    size_t n_built = 0;
    for (size_t i = 0; i < n_encoded_images; i++) {
        const encoded_image *e = &encoded_images[i];
        const int channels[] = {1, 3, 4};
        if (!is_built(e)) continue;
        n_built++;
        for (size_t k = 0; k < sizeof channels / sizeof *channels; k++) {
            tensor *t;
            assert_int_equal(decode(e, channels[k], &t), CLG_OK);
            check_pixels(e, t, channels[k]);
            tensor_free(t);
        }
    }
    assert_true(n_built >= 2); /* BMP and PNM need no library of their own */
}

TEST(images__sizes_are_read_from_headers)
{
    for (size_t i = 0; i < n_encoded_images; i++) {
        const encoded_image *e = &encoded_images[i];
        const char *format = NULL;
        int64_t width = 0, height = 0;
        if (!is_built(e)) continue;
        assert_int_equal(
            image_module_look(e->bytes, e->n_bytes, MAX_PIXELS, &format, &width, &height), CLG_OK);
        assert_string_equal(format, e->format);
        assert_int_equal(width, ENCODED_WIDTH);
        assert_int_equal(height, ENCODED_HEIGHT);
        assert_int_equal(image_module_look(e->bytes, e->n_bytes, 76, NULL, NULL, NULL),
                         CLG_ERROR_LIMIT);
        assert_non_null(strstr(error_text(), "the image is 11x7: more than 76 pixels"));
    }
}

/* Decodes bytes that need not be an image: fails with a message, or makes a tensor. Returns whether
 * it failed. */
static bool fails(const unsigned char *bytes, size_t n_bytes)
{
    tensor *t = NULL;
    const clg_status status = image_module_decode(bytes, n_bytes, 3, false, MAX_PIXELS, &t);
    if (status == CLG_OK) {
        assert_non_null(t);
        assert_true(t->n_elements > 0 && t->n_elements <= 3 * MAX_PIXELS);
        tensor_free(t);
        return false;
    }
    assert_null(t);
    assert_true(status == CLG_ERROR_DATA || status == CLG_ERROR_LIMIT ||
                status == CLG_ERROR_UNSUPPORTED_OPERATOR || status == CLG_ERROR_OUT_OF_HOST_MEMORY);
    assert_true(strncmp(error_text(), "the image ", 10) == 0);
    return true;
}

TEST(images__cut_files_are_refused)
{
    for (size_t i = 0; i < n_encoded_images; i++) {
        const encoded_image *e = &encoded_images[i];
        size_t n_failed = 0;
        if (!is_built(e)) continue;
        for (size_t n = 0; n < e->n_bytes; n++) {
            unsigned char *cut = malloc(n + 1); /* of exact size: tools see what lies beyond */
            assert_non_null(cut);
            memcpy(cut, e->bytes, n);
            n_failed += fails(cut, n);
            free(cut);
        }
        /* a file may end with what no pixel needs: at most its last 16 bytes */
        if (n_failed + 16 < e->n_bytes)
            fail_msg("%s: %zu of %zu cut files fail", e->format, n_failed, e->n_bytes);
    }
}

TEST(images__changed_bytes_are_errors_or_other_pixels)
{
    static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
    const size_t n_live = memory_n_live();
    for (size_t i = 0; i < n_encoded_images; i++) {
        const encoded_image *e = &encoded_images[i];
        unsigned char *bytes = malloc(e->n_bytes);
        assert_non_null(bytes);
        for (size_t at = 0; at < e->n_bytes; at++)
            for (size_t k = 0; k < sizeof values; k++) {
                memcpy(bytes, e->bytes, e->n_bytes);
                bytes[at] = values[k];
                (void)fails(bytes, e->n_bytes);
            }
        free(bytes);
    }
    assert_int_equal(memory_n_live(), n_live);
}

TEST(images__sizes_that_files_do_not_have_are_refused)
{
    /* 60000 x 60000 where the header has the size, at these places; most significant byte first */
    static const struct {
        const char *format;
        size_t width, height;
        int n_bytes;
        bool is_little;
    } places[] = {{"PNG", 16, 20, 4, false}, {"BMP", 18, 22, 4, true}};
    for (size_t i = 0; i < n_encoded_images; i++)
        for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
            const encoded_image *e = &encoded_images[i];
            unsigned char bytes[1024];
            if (strcmp(e->format, places[k].format) != 0 || !is_built(e)) continue;
            assert_true(e->n_bytes <= sizeof bytes);
            memcpy(bytes, e->bytes, e->n_bytes);
            const size_t ats[] = {places[k].width, places[k].height};
            for (size_t n = 0; n < 2; n++)
                for (int b = 0; b < places[k].n_bytes; b++)
                    bytes[ats[n] + (size_t)b] =
                        (unsigned char)(60000u >> 8 * (places[k].is_little ? b : 3 - b));
            assert_true(fails(bytes, e->n_bytes));
        }
    static const char *const texts[] = {"P6 100000 100000 255\n",
                                        "P6 4294967295 4294967295 255\n",
                                        "P5 99999999999 1 255\n",
                                        "P2 10 10 255\n1 2 3",
                                        "P3 30 30 70000\n",
                                        "P4 31 32\n....",
                                        "P1 31 32\n0101",
                                        "P6 0 4 255\n",
                                        "P6 30 30 0\n",
                                        "P6",
                                        "P6 10 10",
                                        "P5 20 20 65535\n0123"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_true(fails((const unsigned char *)texts[i], strlen(texts[i])));
}

TEST(images__portable_maps_of_each_kind)
{
    static const struct {
        const char *text;
        size_t n_bytes;
        unsigned char expected[4];
    } cases[] = {
        {"P1\n# a comment\n2 2\n1 0\n01", 0, {0, 255, 255, 0}},
        {"P2 2 2 3 0 1\n2 3", 0, {0, 85, 170, 255}},
        {"P4 2 2\n\x80\x40", 0, {0, 255, 255, 0}},
        {"P5 2 2 255\n\x01\x02\x03\x04", 0, {1, 2, 3, 4}},
        {"P5 2 2 65535\n\x01\xff\x02\0\xff\xff\0\0", 21, {1, 2, 255, 0}},
        {"P3 2 2 255 9 9 9 8 8 8 7 7 7 6 6 6", 0, {9, 8, 7, 6}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t n = cases[i].n_bytes ? cases[i].n_bytes : strlen(cases[i].text);
        tensor *t;
        assert_int_equal(image_module_decode(cases[i].text, n, 1, false, MAX_PIXELS, &t), CLG_OK);
        assert_int_equal(t->n_elements, 4);
        assert_memory_equal(t->data, cases[i].expected, 4);
        tensor_free(t);
    }
    tensor *t;
    const char deep[] = "P5 1 1 65535\n\x12\x34";
    assert_int_equal(image_module_decode(deep, sizeof deep - 1, 1, true, MAX_PIXELS, &t), CLG_OK);
    assert_int_equal(t->dtype, CLG_UINT16);
    assert_int_equal(*(const uint16_t *)t->data, 0x1234);
    tensor_free(t);
}

/* A JPEG 2000 code stream of one tile without content. */
static const unsigned char code_stream[] = {
    0xFF, 0x4F, 0xFF, 0x51, 0,    41,   0, 0, /* SOC, SIZ */
    0,    0,    3,    0xE8, 0,    0,    3, 0xE8, 0, 0, 0, 0, 0,    0,
    0,    0, /* 1000 x 1000, offset */
    0,    0,    3,    0xE8, 0,    0,    3, 0xE8, 0, 0, 0, 0, 0,    0,
    0,    0,                   /* the same of tiles */
    0,    1,    7,    1,    1, /* one component of 8 bits */
    0xFF, 0x52, 0,    13,   1,    0,    0, 1,    0, 0, 4, 4, 0,    1,
    0x44,                               /* COD: precincts of 16 x 16 */
    0xFF, 0x5C, 0,    4,    0x40, 0x40, /* QCD */
    0xFF, 0x90, 0,    10,   0,    0,    0, 0,    0, 0, 0, 1, 0xFF, 0x93, /* SOT of the rest, SOD */
    0,    0,    0,    0,    0xFF, 0xD9};

static bool decodes_with(size_t at, unsigned char byte)
{
    unsigned char bytes[sizeof code_stream];
    tensor *t = NULL;
    memcpy(bytes, code_stream, sizeof bytes);
    bytes[at] = byte;
    const clg_status status = image_module_decode(bytes, sizeof bytes, 1, false, 1000000, &t);
    tensor_free(t);
    return status == CLG_OK;
}

/* openjpeg allocates 500 bytes for each precinct, and 10 kB for each tile, of the header alone. */
TEST(images__jpeg2000_has_no_tiny_precincts_and_no_missing_tiles)
{
    enum { TILE_WIDTH = 26, PRECINCT = 59 }; /* the upper of the two bytes that are not 0 */
    for (size_t i = 0; i < n_encoded_images; i++) {
        if (strcmp(encoded_images[i].format, "JPEG 2000") != 0) continue;
        if (!is_built(&encoded_images[i])) return;
    }
    assert_true(decodes_with(PRECINCT, 0xFF));
    assert_true(decodes_with(PRECINCT, 0x44));
    assert_false(decodes_with(PRECINCT, 0x00)); /* a million precincts */
    assert_true(decodes_with(PRECINCT, 0xF0));  /* a thousand, of a column each */
    assert_false(decodes_with(TILE_WIDTH, 2));  /* of 744 pixels: the second one is missing */
}

static clg_status decode_first(void *user)
{
    tensor *t = NULL;
    const clg_status status = decode(user, 3, &t);
    tensor_free(t);
    return status;
}

TEST(images__memory_that_is_missing_is_an_error)
{
    for (size_t i = 0; i < n_encoded_images; i++) {
        encoded_image e = encoded_images[i];
        if (is_built(&e)) (void)fault_loop_alone(decode_first, &e);
    }
}
