/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes the first image of TIFF files by libtiff's interface for RGBA: all of its compressions
 * and colours, in 8 bits, upright by the tag Orientation. Errors are those of the call alone
 * (TIFFOpenOptions of libtiff 4.5), so that a program's own handlers stay as they are.
 */
#include "images/decoder.h"

#ifdef CLG_HAS_TIFF
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <tiffio.h>

typedef struct tiff_source {
    image_job *job;
    uint64_t at;
} tiff_source;

static tmsize_t read_some(thandle_t user, void *to, tmsize_t n)
{
    tiff_source *s = user;
    const images_request *r = s->job->request;
    if (n < 0 || s->at >= r->n_bytes) return 0;
    const size_t left = r->n_bytes - (size_t)s->at, part = (size_t)n < left ? (size_t)n : left;
    memcpy(to, r->bytes + s->at, part);
    s->at += part;
    return (tmsize_t)part;
}

static tmsize_t write_nothing(thandle_t user, void *from, tmsize_t n)
{
    (void)user;
    (void)from;
    (void)n;
    return -1;
}

static toff_t seek(thandle_t user, toff_t offset, int whence)
{
    tiff_source *s = user;
    s->at = offset + (whence == SEEK_CUR   ? s->at
                      : whence == SEEK_END ? s->job->request->n_bytes
                                           : 0);
    return s->at;
}

static int close_nothing(thandle_t user)
{
    (void)user;
    return 0;
}

static toff_t size_of(thandle_t user) { return ((tiff_source *)user)->job->request->n_bytes; }

static int keep_error(TIFF *tiff, void *user, const char *module, const char *format, va_list args)
{
    image_job *j = user;
    char text[IMAGES_WHY_BYTES / 2];
    (void)tiff;
    (void)module;
    (void)vsnprintf(text, sizeof text, format, args);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7E) *c = '?';
    if (!j->result->why[0])
        (void)snprintf(j->result->why, IMAGES_WHY_BYTES,
                       "is damaged or of an unsupported kind (libtiff: %s)", text);
    return 1;
}

static int ignore_warning(TIFF *tiff, void *user, const char *module, const char *format,
                          va_list args)
{
    (void)tiff;
    (void)user;
    (void)module;
    (void)format;
    (void)args;
    return 1;
}

static TIFF *open_tiff(tiff_source *s)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options) return NULL;
    TIFFOpenOptionsSetErrorHandlerExtR(options, keep_error, s->job);
    TIFFOpenOptionsSetWarningHandlerExtR(options, ignore_warning, NULL);
    /* a strip or tile, before it is known to be there */
    const uint64_t max = s->job->request->max_pixels, least = (uint64_t)1 << 28;
    const uint64_t bytes = max < least / 16 ? least : max < INT_MAX / 16 ? max * 16 : INT_MAX;
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)bytes);
    TIFF *tiff = TIFFClientOpenExt("image", "rm", s, read_some, write_nothing, seek, close_nothing,
                                   size_of, NULL, NULL, options);
    TIFFOpenOptionsFree(options);
    return tiff;
}

/* Turns libtiff's pixels, 32-bit numbers of A, B, G, R, into bytes of R, G, B, A. */
static void to_bytes(const image_job *j)
{
    uint32_t *pixels = j->result->pixels;
    const size_t n = (size_t)j->result->width * j->result->height;
    for (size_t i = 0; i < n; i++) {
        const uint32_t p = pixels[i];
        const unsigned char rgba[4] = {(unsigned char)TIFFGetR(p), (unsigned char)TIFFGetG(p),
                                       (unsigned char)TIFFGetB(p), (unsigned char)TIFFGetA(p)};
        memcpy(&pixels[i], rgba, sizeof rgba);
    }
}

static images_code decode(image_job *j, TIFF *tiff)
{
    uint32_t width = 0, height = 0;
    if (TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width) != 1 ||
        TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height) != 1)
        return image_fail(j, "is damaged: it has no size");
    images_code code = image_size(j, width, height);
    if (code != IMAGES_OK || image_wants_size(j)) return code;
    code = image_pixels(j, 4, false);
    if (code != IMAGES_OK) return code;
    if (TIFFReadRGBAImageOriented(tiff, width, height, j->result->pixels, ORIENTATION_TOPLEFT, 1) !=
        1)
        return IMAGES_DAMAGED;
    to_bytes(j);
    return IMAGES_OK;
}

images_code decode_tiff(image_job *j)
{
    tiff_source s = {.job = j};
    TIFF *tiff = open_tiff(&s);
    const images_code code = tiff ? decode(j, tiff) : IMAGES_DAMAGED;
    if (tiff) TIFFClose(tiff);
    if (code == IMAGES_DAMAGED && !j->result->why[0])
        return image_fail(j, "is damaged or of an unsupported format (TIFF)");
    return code;
}
#endif
