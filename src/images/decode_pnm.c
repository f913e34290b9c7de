/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes portable bitmaps, graymaps and pixmaps (PBM, PGM, PPM; P1 to P6), as text or binary.
 */
#include "images/decoder.h"

#include <limits.h>

typedef struct pnm_reader {
    const unsigned char *bytes;
    size_t n_bytes, at;
} pnm_reader;

static bool is_space(unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Skips white space and comments, which are of the header alone. */
static void skip_space(pnm_reader *r)
{
    while (r->at < r->n_bytes && (is_space(r->bytes[r->at]) || r->bytes[r->at] == '#')) {
        if (r->bytes[r->at] == '#')
            while (r->at < r->n_bytes && r->bytes[r->at] != '\n') r->at++;
        else
            r->at++;
    }
}

/* Reads a number; a bit, of P1, is one digit, and the next may follow at once. */
static bool read_number(pnm_reader *r, bool is_bit, uint32_t *out_number)
{
    uint32_t number = 0;
    skip_space(r);
    const size_t start = r->at;
    while (r->at < r->n_bytes && r->bytes[r->at] >= '0' && r->bytes[r->at] <= '9') {
        if (number > (UINT32_MAX - 9) / 10) return false;
        number = number * 10 + (uint32_t)(r->bytes[r->at++] - '0');
        if (is_bit) break;
    }
    *out_number = number;
    return r->at > start;
}

/* Returns an element of 0 to max as one of 0 to 255, or to 65535 where the image is of 16 bits. */
static uint32_t scaled(uint32_t x, uint32_t max, uint32_t to)
{
    if (x > max) x = max;
    return max == to ? x : (uint32_t)(((uint64_t)x * to + max / 2) / max);
}

static void put(const image_job *j, size_t i, uint32_t x)
{
    if (j->is_16)
        ((uint16_t *)j->result->pixels)[i] = (uint16_t)x;
    else
        ((unsigned char *)j->result->pixels)[i] = (unsigned char)x;
}

static images_code read_text(image_job *j, pnm_reader *r, size_t n, bool is_bitmap, uint32_t max)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t x;
        if (!read_number(r, is_bitmap, &x))
            return r->at >= r->n_bytes ? image_fail_cut(j)
                                       : image_fail(j, "is damaged: an element is not a number");
        if (is_bitmap) x = !x;
        put(j, i, scaled(x, max, j->is_16 ? 65535 : 255));
    }
    return IMAGES_OK;
}

/* Reads rows of bits, the first in the highest bit of a byte; 1 is black. */
static images_code read_bits(image_job *j, const pnm_reader *r)
{
    const size_t width = j->result->width, row_bytes = (width + 7) / 8;
    if (r->n_bytes - r->at < row_bytes * j->result->height) return image_fail_cut(j);
    for (size_t y = 0; y < j->result->height; y++)
        for (size_t x = 0; x < width; x++) {
            const unsigned char byte = r->bytes[r->at + y * row_bytes + x / 8];
            put(j, y * width + x, byte >> (7 - x % 8) & 1 ? 0 : 255);
        }
    return IMAGES_OK;
}

static images_code read_binary(image_job *j, const pnm_reader *r, size_t n, uint32_t max)
{
    const size_t bytes = max > 255 ? 2 : 1;
    if ((r->n_bytes - r->at) / bytes < n) return image_fail_cut(j);
    for (size_t i = 0; i < n; i++) {
        const uint32_t x = image_big_endian(r->bytes + r->at + i * bytes, (int)bytes);
        put(j, i, scaled(x, max, j->is_16 ? 65535 : 255));
    }
    return IMAGES_OK;
}

images_code decode_pnm(image_job *j)
{
    pnm_reader r = {j->request->bytes, j->request->n_bytes, 2};
    const int kind = r.bytes[1] - '0';
    const bool is_bitmap = kind == 1 || kind == 4, is_text = kind <= 3;
    const int channels = kind == 3 || kind == 6 ? 3 : 1;
    uint32_t width = 0, height = 0, max = 1;
    if (!read_number(&r, false, &width) || !read_number(&r, false, &height) ||
        (!is_bitmap && !read_number(&r, false, &max)))
        return r.at >= r.n_bytes ? image_fail_cut(j)
                                 : image_fail(j, "is damaged: its header is wrong");
    if (max == 0 || max > 65535) return image_fail(j, "is damaged: its header is wrong");
    images_code code = image_size(j, width, height);
    if (code != IMAGES_OK || image_wants_size(j)) return code;
    /* one byte of white space ends the header */
    if (!is_text && r.at++ >= r.n_bytes) return image_fail_cut(j);
    /* each element has a bit at least: what cannot be there is not allocated */
    const uint64_t n = (uint64_t)width * height * (uint64_t)channels;
    if (n / 8 > r.n_bytes - r.at) return image_fail_cut(j);
    code = image_pixels(j, channels, max > 255);
    if (code != IMAGES_OK) return code;
    if (is_text) return read_text(j, &r, (size_t)n, is_bitmap, max);
    return is_bitmap ? read_bits(j, &r) : read_binary(j, &r, (size_t)n, max);
}
