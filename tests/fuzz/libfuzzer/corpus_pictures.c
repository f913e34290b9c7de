/* SPDX-License-Identifier: Apache-2.0
 *
 * Corpus of the target image: pictures of a few pixels as PNG, JPEG and BMP, and one in each other
 * format, each with the byte that selects channels and layout before it. PNG files are put together
 * here, so that they have 16 bits, palettes and interlacing too.
 */
#include "corpus.h"
#include "fuzz.h"

#include "support/fixtures/images/encoded_images.h"

#include <stb_image_write.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static void put_u32(ow_bytes *b, unsigned long value)
{
    /* ow_put_bytes writes a protobuf field: bytes are appended here. */
    if (b->n + 4 > b->capacity) {
        b->capacity = b->capacity * 2 + 1024;
        b->data = realloc(b->data, b->capacity);
        fuzz_require(b->data);
    }
    for (int i = 3; i >= 0; i--) b->data[b->n++] = (uint8_t)(value >> (8 * i));
}

static void put(ow_bytes *b, const void *data, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        put_u32(b, (unsigned long)((const uint8_t *)data)[i] << 24);
        b->n -= 3;
    }
}

static void chunk(ow_bytes *b, const char *type, const void *data, size_t n)
{
    put_u32(b, (unsigned long)n);
    const size_t at = b->n;
    put(b, type, 4);
    put(b, data, n);
    put_u32(b, crc32(0, b->data + at, (uInt)(b->n - at)));
}

/* A PNG of 5 x 4 pixels; colour: 0 gray, 2 rgb, 3 palette, 4 gray and alpha, 6 rgba. */
static void png(const char *name, uint8_t how, int depth, int colour, bool interlaced)
{
    static const int channels[] = {1, 0, 3, 1, 2, 0, 4};
    uint8_t head[13] = {0, 0, 0, 5, 0, 0, 0, 4, (uint8_t)depth, (uint8_t)colour, 0, 0, interlaced};
    uint8_t raw[512] = {0}, packed[600];
    /* Interlaced passes are of rows of these numbers of pixels. */
    static const int passes[][2] = {{1, 1}, {1, 1}, {2, 1}, {1, 1}, {3, 1}, {2, 2}, {5, 2}};
    const int whole[][2] = {{5, 4}};
    size_t n = 0;
    const int n_passes = interlaced ? 7 : 1;
    for (int p = 0; p < n_passes; p++) {
        const int *size = interlaced ? passes[p] : whole[0];
        const size_t row = ((size_t)size[0] * (size_t)channels[colour] * (size_t)depth + 7) / 8;
        for (int y = 0; y < size[1]; y++) {
            raw[n++] = (uint8_t)(y % 5); /* the filter of the row */
            for (size_t i = 0; i < row; i++) raw[n++] = (uint8_t)(i * 17 + (size_t)y * 5);
        }
    }
    uLongf n_packed = sizeof packed;
    fuzz_require(compress2(packed, &n_packed, raw, n, 9) == Z_OK);
    ow_bytes b = {0};
    put(&b, &how, 1);
    put(&b, "\x89PNG\r\n\x1a\n", 8);
    chunk(&b, "IHDR", head, sizeof head);
    if (colour == 3) {
        uint8_t palette[48];
        for (size_t i = 0; i < sizeof palette; i++) palette[i] = (uint8_t)(i * 5);
        chunk(&b, "PLTE", palette, sizeof palette);
        chunk(&b, "tRNS", "\0\x80\xff", 3);
    }
    chunk(&b, "IDAT", packed, n_packed);
    chunk(&b, "IEND", NULL, 0);
    corpus_bytes("image", name, b);
}

static void append(void *user, void *data, int n) { put(user, data, (size_t)n); }

static void written(const char *name, uint8_t how, bool jpeg, int width, int height, int channels)
{
    uint8_t pixels[32 * 32 * 4];
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)(i * i / 7);
    ow_bytes b = {0};
    put(&b, &how, 1);
    const int done = jpeg ? stbi_write_jpg_to_func(append, &b, width, height, channels, pixels, 60)
                          : stbi_write_bmp_to_func(append, &b, width, height, channels, pixels);
    fuzz_require(done);
    corpus_bytes("image", name, b);
}

/* One image in a format that stb_image does not write. */
static void encoded(size_t i)
{
    static const char *const names[] = {"encoded.png",  "encoded.jpg", "encoded.webp",
                                        "encoded.tiff", "encoded.jp2", "encoded.j2k",
                                        "encoded.bmp",  "encoded.ppm"};
    ow_bytes b = {0};
    fuzz_require(i < sizeof names / sizeof *names);
    put(&b, i % 2 ? "\4" : "\0", 1);
    put(&b, encoded_images[i].bytes, encoded_images[i].n_bytes);
    corpus_bytes("image", names[i], b);
}

void corpus_pictures(void)
{
    png("gray.png", 4, 8, 0, false);
    png("gray_1.png", 12, 1, 0, false);
    png("gray_4_interlaced.png", 0, 4, 0, true);
    png("rgb.png", 0, 8, 2, false);
    png("rgb_16.png", 1, 16, 2, false);
    png("rgb_interlaced.png", 2 + 8, 8, 2, true);
    png("palette_2.png", 3, 2, 3, false);
    png("palette.png", 16, 4, 3, false);
    png("gray_alpha.png", 4 + 32, 8, 4, false);
    png("rgba_16.png", 16 + 1, 16, 6, true);
    written("rgb.jpg", 0, true, 17, 9, 3);
    written("gray.jpg", 4, true, 8, 8, 1);
    written("bgr.jpg", 2 + 8 + 32, true, 5, 7, 3);
    written("rgb.bmp", 0, false, 3, 2, 3);
    written("rgba.bmp", 16, false, 5, 7, 4);
    for (size_t i = 0; i < n_encoded_images; i++) encoded(i);
    corpus_file("image", "pbm", "\0P4 9 2\n\x80\0\x40\0", 12);
    corpus_text("image", "pgm_text", "xP2 # comment\n2 2 7\n1 2 3 4");
    corpus_file("image", "png_cut", "\0\x89PNG\r\n\x1a\n", 9);
    corpus_file("image", "jpeg_cut", "\0\xff\xd8\xff\xe0\0\0", 7);
    corpus_file("image", "bmp_cut", "\0BM\0\0\0\0", 7);
    corpus_text("image", "text", "xthis is no picture");
}
