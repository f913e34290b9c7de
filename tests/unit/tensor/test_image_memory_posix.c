/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the module clgraph-images where memory is missing when it is opened; and that decoding an
 * image takes none for what a small file has beside its pixels: text of PNG, compressed a thousand
 * times.
 */
#include "support/fakes/failing_alloc.h"
#include "support/process_use.h"
#include "support/unit.h"

#include "tensor/formats/image_module.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 258 * 200000, MOST_BYTES = 1 << 20 };

static clg_status look(void *user)
{
    (void)user;
    return image_module_look("P1 1 1 0", 8, 1000, NULL, NULL, NULL);
}

/* Skips all where the module is not built. */
static int only_with_module(void **state)
{
    const char *path = getenv("CLG_IMAGES");
    (void)state;
    if (path && access(path, R_OK) == 0) return 0;
    print_message("skipped: there is no module '%s'\n", path ? path : "clgraph-images");
    exit(77);
}
TEST_GROUP(only_with_module, NULL)

/* The first test, since the module is opened once. */
TEST(images__is_sought_again_after_memory_was_missing)
{
    assert_true(fault_loop_alone(look, NULL) > 0);
}

/* A file that is written; numbers of PNG have their most significant byte first. */
typedef struct png_file {
    unsigned char *bytes;
    size_t n, chunk; /* where the chunk begins that is written */
    unsigned bits, n_bits;
} png_file;

static void put(png_file *f, const void *bytes, size_t n)
{
    assert_true(f->n + n <= MOST_BYTES);
    memcpy(f->bytes + f->n, bytes, n);
    f->n += n;
}

static void number_at(png_file *f, size_t at, uint32_t x)
{
    for (int i = 0; i < 4; i++) f->bytes[at + (size_t)i] = (unsigned char)(x >> (24 - 8 * i));
}

static void put_number(png_file *f, uint32_t x)
{
    put(f, "    ", 4);
    number_at(f, f->n - 4, x);
}

static void start_chunk(png_file *f, const char *type)
{
    f->chunk = f->n;
    put_number(f, 0);
    put(f, type, 4);
}

static void end_chunk(png_file *f)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = f->chunk + 4; i < f->n; i++) {
        crc ^= f->bytes[i];
        for (int b = 0; b < 8; b++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
    }
    number_at(f, f->chunk, (uint32_t)(f->n - f->chunk - 8));
    put_number(f, ~crc);
}

/* Appends bits of a deflate stream, the lowest first; a code of Huffman is given reversed. */
static void put_bits(png_file *f, unsigned bits, unsigned n)
{
    f->bits |= bits << f->n_bits;
    for (f->n_bits += n; f->n_bits >= 8; f->n_bits -= 8, f->bits >>= 8) {
        const unsigned char byte = (unsigned char)f->bits;
        put(f, &byte, 1);
    }
}

/* Appends TEXT_BYTES + 1 zeros, compressed by zlib's format with fixed codes: a zero, and copies of
 * 258 bytes at distance 1. */
static void put_zeros(png_file *f)
{
    put(f, "\x78\x01", 2);
    put_bits(f, 3, 3);    /* the last block, of fixed codes */
    put_bits(f, 0x0C, 8); /* 0: 00110000 */
    for (int i = 0; i < TEXT_BYTES / 258; i++) put_bits(f, 0xA3, 8 + 5); /* 11000101 00000 */
    put_bits(f, 0, 7);                                                   /* the end */
    put_bits(f, 0, 7);
    f->bits = f->n_bits = 0;
    put_number(f, (uint32_t)((TEXT_BYTES + 1) % 65521) << 16 | 1); /* Adler-32 */
}

TEST(images__text_of_png_takes_no_memory)
{
    png_file f = {.bytes = malloc(MOST_BYTES)};
    tensor *t = NULL;
    assert_non_null(f.bytes);
    put(&f, "\x89PNG\r\n\x1a\n", 8);
    start_chunk(&f, "IHDR");
    put(&f, "\0\0\0\1\0\0\0\1\x08\0\0\0\0", 13); /* 1x1, gray */
    end_chunk(&f);
    start_chunk(&f, "zTXt");
    put(&f, "k\0\0", 3);
    put_zeros(&f);
    end_chunk(&f);
    start_chunk(&f, "IDAT");
    put(&f, "\x78\x01\x01\x02\0\xFD\xFF\0\x07\0\x09\0\x08", 13); /* filter 0, gray 7; stored */
    end_chunk(&f);
    start_chunk(&f, "IEND");
    end_chunk(&f);
    const size_t before = process_use_peak_bytes();
    const clg_status status = image_module_decode(f.bytes, f.n, 1, false, 1000, &t);
    const size_t after = process_use_peak_bytes();
    free(f.bytes);
    assert_int_equal(status, CLG_OK);
    assert_int_equal(*(const unsigned char *)t->data, 7);
    tensor_free(t);
    assert_true(after - before < TEXT_BYTES / 4);
}
