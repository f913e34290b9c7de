/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements image_jpeg.h. libjpeg goes on after damage, with a warning and gray pixels: those that
 * say that data is missing or wrong are errors here.
 */
#include "image_jpeg.h"

#include "failure.h"

#include <setjmp.h>
#include <stdlib.h>

#ifdef CLG_HAS_JPEG
#include <jpeglib.h>

#include <jerror.h>

#define MAX_SCANS 200 /* of a progressive image: each goes over all pixels */

/* A decoder, and where it returns to when it fails. */
typedef struct jpeg_decoder {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf failed;
    const char *path;
    unsigned char *pixels, *line; /* line: of four components */
    bool has_ended;               /* the file ends too early */
} jpeg_decoder;

bool jpeg_is_built(void) { return true; }

static void fail_error(j_common_ptr info)
{
    jpeg_decoder *d = info->client_data;
    longjmp(d->failed, 1);
}

static void see_message(j_common_ptr info, int level)
{
    jpeg_decoder *d = info->client_data;
    const int code = info->err->msg_code;
    if (level >= 0) return;
    d->has_ended = code == JWRN_JPEG_EOF;
    if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
        code == JWRN_ARITH_BAD_CODE)
        longjmp(d->failed, 1);
}

static void see_progress(j_common_ptr info)
{
    jpeg_decoder *d = info->client_data;
    if (d->info.input_scan_number > MAX_SCANS) longjmp(d->failed, 1);
}

/* Converts a line of four components to three: Adobe's programs store them inverted. */
static void from_cmyk(const unsigned char *cmyk, size_t n, unsigned char *to)
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++)
            to[3 * i + c] = (unsigned char)((cmyk[4 * i + c] * cmyk[4 * i + 3] + 127) / 255);
}

/* Makes n pixels of the channels that are wanted of n of three. In place, `to` may be `rgb`. */
static void from_rgb(size_t n, int channels, unsigned char *pixels)
{
    for (size_t i = 0; channels == 1 && i < n; i++) {
        const unsigned char *p = pixels + 3 * i;
        pixels[i] = (unsigned char)((p[0] * 77 + p[1] * 150 + p[2] * 29) >> 8);
    }
    for (size_t i = n; channels == 4 && i-- > 0;) {
        unsigned char *p = pixels + 4 * i;
        const unsigned char r = pixels[3 * i], g = pixels[3 * i + 1], b = pixels[3 * i + 2];
        p[0] = r;
        p[1] = g;
        p[2] = b;
        p[3] = 255;
    }
}

/* Decodes all lines into d->pixels, [height, width, 3], or [height, width] if that is_gray. */
static void read_lines(jpeg_decoder *d, bool is_cmyk, size_t line_bytes)
{
    while (d->info.output_scanline < d->info.output_height) {
        unsigned char *to = d->pixels + (size_t)d->info.output_scanline * line_bytes;
        JSAMPROW line = is_cmyk ? d->line : to;
        (void)jpeg_read_scanlines(&d->info, &line, 1);
        if (is_cmyk) from_cmyk(d->line, d->info.output_width, to);
    }
}

/* Returns false if memory is missing or the size is another than that of the image. */
static bool decode(jpeg_decoder *d, FILE *stream, const raster *image)
{
    jpeg_create_decompress(&d->info);
    d->info.client_data = d; /* creating clears it */
    d->info.progress = &d->progress;
    d->progress.progress_monitor = see_progress;
    jpeg_stdio_src(&d->info, stream);
    (void)jpeg_read_header(&d->info, TRUE);
    const bool is_cmyk = d->info.num_components == 4;
    const bool is_gray = image->channels == 1 && !is_cmyk;
    d->info.out_color_space = is_cmyk ? JCS_CMYK : is_gray ? JCS_GRAYSCALE : JCS_RGB;
    (void)jpeg_start_decompress(&d->info);
    const size_t width = d->info.output_width, height = d->info.output_height;
    if (width != (size_t)image->width || height != (size_t)image->height) return false;
    d->pixels = malloc(width * height * (size_t)(is_gray ? 1 : image->channels == 4 ? 4 : 3));
    d->line = malloc(width * 4);
    if (!d->pixels || !d->line) return false;
    read_lines(d, is_cmyk, width * (is_gray ? 1 : 3));
    (void)jpeg_finish_decompress(&d->info);
    if (!is_gray) from_rgb(width * height, image->channels, d->pixels);
    return true;
}

int jpeg_read(FILE *stream, const char *path, raster *image)
{
    jpeg_decoder *d = must_alloc(1, sizeof *d);
    int code = CODE_DONE;
    d->path = path;
    d->info.err = jpeg_std_error(&d->errors);
    d->info.client_data = d;
    d->errors.error_exit = fail_error;
    d->errors.emit_message = see_message;
    rewind(stream);
    if (setjmp(d->failed) != 0 || !decode(d, stream, image)) {
        const bool lacks_memory = d->errors.msg_code == JERR_OUT_OF_MEMORY || !d->pixels;
        code = d->has_ended || d->errors.msg_code == JERR_INPUT_EOF
                   ? fail_file("image '%s' is damaged: it ends too early", path)
               : lacks_memory && d->errors.msg_code == 0
                   ? fail(CODE_WORK, CLG_ERROR_OUT_OF_HOST_MEMORY,
                          "image '%s': out of host memory for %dx%d pixels", path, image->width,
                          image->height)
                   : fail_file("image '%s' is damaged or of an unsupported format (JPEG)", path);
        free(d->pixels);
        d->pixels = NULL;
    }
    jpeg_destroy_decompress(&d->info);
    image->pixels = d->pixels;
    free(d->line);
    free(d);
    return code;
}

#else

bool jpeg_is_built(void) { return false; }

int jpeg_read(FILE *stream, const char *path, raster *image)
{
    (void)stream;
    (void)image;
    return fail_file("image '%s': this cltool has no libjpeg", path);
}

#endif
