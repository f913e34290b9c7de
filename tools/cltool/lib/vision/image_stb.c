/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements image_stb.h. stb_image reads zeros after the end of a file and ignores checksums;
 * files for which that matters are found here. JPEG files: jpeg_check.h.
 */
#include "image_stb.h"

#include "failure.h"
#include "host.h"
#include "jpeg_check.h"
#include "names.h"

#include <errno.h>
#include <limits.h>
#include <stb_image.h>
#include <string.h>
#include <zlib.h>

/* An open file. */
typedef struct source {
    const char *path;
    FILE *stream;
    bool has_ended;                 /* the decoder requested more than there is */
    bool is_deep;                   /* a PNG of 16 bits */
    unsigned png_width, png_height; /* 0: of another format */
} source;

/* ---- callbacks of stb_image ------------------------------------------------------------------ */

static int read_some(void *user, char *to, int n_bytes)
{
    source *s = user;
    const size_t n = fread(to, 1, (size_t)n_bytes, s->stream);
    if (n == 0) s->has_ended = true;
    return (int)n;
}

static void skip_some(void *user, int n_bytes)
{
    source *s = user;
    (void)fseek(s->stream, n_bytes, SEEK_CUR);
}

static int at_end(void *user)
{
    source *s = user;
    const int c = fgetc(s->stream);
    if (c != EOF) (void)ungetc(c, s->stream);
    return c == EOF;
}

static const stbi_io_callbacks callbacks = {read_some, skip_some, at_end};

/* ---- formats --------------------------------------------------------------------------------- */

static int fail_cut(const source *s)
{
    return fail_file("image '%s' is damaged: it ends too early", s->path);
}

static unsigned big_endian(const unsigned char *bytes, int n)
{
    unsigned number = 0;
    for (int i = 0; i < n; i++) number = number << 8 | bytes[i];
    return number;
}

/* Reads n bytes, and returns their checksum after that of the bytes before them in *crc. */
static bool check_bytes(FILE *stream, unsigned n, unsigned long *crc)
{
    unsigned char block[4096];
    while (n > 0) {
        const unsigned part = n < sizeof block ? n : (unsigned)sizeof block;
        if (fread(block, 1, part, stream) != part) return false;
        *crc = crc32(*crc, block, part);
        n -= part;
    }
    return true;
}

/* Checks that all chunks of a PNG file are there, and the checksums of those that make the image
 * (with a capital first letter). */
static int check_png(source *s)
{
    unsigned char head[8], sum[4];
    (void)fseek(s->stream, 8, SEEK_SET);
    for (bool is_first = true;; is_first = false) {
        if (fread(head, 1, sizeof head, s->stream) != sizeof head) return fail_cut(s);
        if (is_first && memcmp(head + 4, "IHDR", 4) != 0)
            return fail_file("image '%s' is not a PNG of the standard: it has no header first",
                             s->path);
        unsigned n = big_endian(head, 4);
        unsigned long crc = crc32(0, head + 4, 4);
        if (!check_bytes(s->stream, n, &crc)) return fail_cut(s);
        if (fread(sum, 1, sizeof sum, s->stream) != sizeof sum) return fail_cut(s);
        if (crc != big_endian(sum, 4) && !(head[4] & 0x20))
            return fail_file("image '%s' is damaged: the checksum of its chunk %.4s is wrong",
                             s->path, (const char *)head + 4);
        if (memcmp(head + 4, "IEND", 4) == 0) break;
    }
    (void)fseek(s->stream, 16, SEEK_SET);
    if (fread(head, 1, sizeof head, s->stream) != sizeof head) return fail_cut(s);
    s->png_width = big_endian(head, 4);
    s->png_height = big_endian(head + 4, 4);
    s->is_deep = fgetc(s->stream) == 16;
    return CODE_DONE;
}

/* Opens an image and checks its format. Without the first check, stb_image would accept some random
 * bytes as a TGA file. */
static int open_image(const char *path, source *out_source)
{
    unsigned char magic[12] = {0};
    source *s = out_source;
    *s = (source){.path = path};
    if (path_is_folder(path)) return fail_file("image '%s' cannot be read: it is a folder", path);
    s->stream = host_open(path, "rb");
    if (!s->stream) return fail_file("image '%s' cannot be read: %s", path, strerror(errno));
    const size_t n = fread(magic, 1, sizeof magic, s->stream);
    int code = CODE_DONE;
    if (n >= 4 && memcmp(magic, "\x89PNG", 4) == 0) {
        code = check_png(s);
    } else if (n >= 4 && memcmp(magic, "\xFF\xD8\xFF", 3) == 0) {
        code = jpeg_check(s->stream, path);
    } else if (n < 4 || memcmp(magic, "BM", 2) != 0) {
        code = fail_file("'%s' is not a readable image: it is neither PNG, JPEG nor BMP", path);
    }
    if (code != CODE_DONE) (void)fclose(s->stream);
    return code;
}

/* ---- decoding -------------------------------------------------------------------------------- */

static int decode(source *s, raster *image)
{
    int ignored, *width = &image->width, *height = &image->height;
    rewind(s->stream);
    s->has_ended = false; /* readers of headers may look further than a small file reaches */
    image->is_deep = s->is_deep;
    if (s->is_deep) {
        image->pixels =
            stbi_load_16_from_callbacks(&callbacks, s, width, height, &ignored, image->channels);
    } else {
        image->pixels =
            stbi_load_from_callbacks(&callbacks, s, width, height, &ignored, image->channels);
    }
    if (image->pixels && !s->has_ended) return CODE_DONE;
    image_stb_free(image);
    if (s->has_ended) return fail_cut(s);
    return fail_file("image '%s' is damaged or of an unsupported format (%s)", s->path,
                     stbi_failure_reason());
}

/* Records why the header of an image cannot be read: decoding fails for the same reason, and
 * stb_image only tells it then. */
static int fail_header(source *s)
{
    raster none = {.channels = 1};
    int code = decode(s, &none);
    image_stb_free(&none);
    return code != CODE_DONE ? code : fail_file("image '%s' has no pixels", s->path);
}

/* Reads the size from the header, without stb_image where that refuses large images. */
static int read_size(source *s, size_t max_pixels, int *out_width, int *out_height)
{
    int w = 0, h = 0, ignored;
    unsigned width = s->png_width, height = s->png_height;
    rewind(s->stream);
    if (width == 0 && stbi_info_from_callbacks(&callbacks, s, &w, &h, &ignored)) {
        width = (unsigned)w;
        height = h < 0 ? 0 - (unsigned)h : (unsigned)h; /* a BMP from top to bottom */
    }
    if (width == 0 || height == 0) return fail_header(s);
    *out_width = (int)width;
    *out_height = (int)height;
    if (width <= INT_MAX && height <= INT_MAX && height <= max_pixels / width) return CODE_DONE;
    (void)fail_file("image '%s' is %ux%u: more than %zu pixels", s->path, width, height,
                    max_pixels);
    fail_hint("--max-pixels N sets the limit");
    return CODE_FILE;
}

int image_stb_size(const char *path, size_t max_pixels, int *out_width, int *out_height)
{
    source s;
    int code = open_image(path, &s);
    if (code != CODE_DONE) return code;
    code = read_size(&s, max_pixels, out_width, out_height);
    (void)fclose(s.stream);
    return code;
}

int image_stb_read(const char *path, size_t max_pixels, raster *image)
{
    source s;
    int code = open_image(path, &s);
    if (code != CODE_DONE) return code;
    code = read_size(&s, max_pixels, &image->width, &image->height);
    if (code == CODE_DONE) code = decode(&s, image);
    (void)fclose(s.stream);
    return code;
}

bool image_stb_reads(const unsigned char *bytes, size_t n)
{
    return n >= 4 && (memcmp(bytes, "\x89PNG", 4) == 0 || memcmp(bytes, "\xFF\xD8\xFF", 3) == 0 ||
                      memcmp(bytes, "BM", 2) == 0);
}

void image_stb_free(raster *image)
{
    stbi_image_free(image->pixels);
    image->pixels = NULL;
}
