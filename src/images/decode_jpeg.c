/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes JPEG images by libjpeg-turbo, with the numbers of Pillow. libjpeg goes on after damage,
 * with a warning and gray pixels: those that say that data is missing or wrong are errors here.
 */
#include "images/decoder.h"

#ifdef CLG_HAS_JPEG
#include <setjmp.h>
#include <stdio.h> /* which jpeglib.h needs first */

#include <jpeglib.h>

#include <jerror.h>

#define MAX_SCANS 200 /* of a progressive image: each goes over all pixels */

/* A decoder, and where it returns to when it fails. */
typedef struct jpeg_decoder {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf failed;
    image_job *job;
    images_code code;
    unsigned char *line; /* of four components */
    bool has_ended;      /* the file ends too early */
} jpeg_decoder;

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

/* Decodes all lines into the pixels, [height, width, 3] or, of a gray image, [height, width]. */
static images_code read_lines(jpeg_decoder *d, bool is_cmyk, int channels)
{
    const size_t line_bytes = (size_t)d->info.output_width * (size_t)channels;
    const images_code code = image_pixels(d->job, channels, false);
    if (code != IMAGES_OK) return code;
    d->line = d->job->request->alloc(is_cmyk ? (size_t)d->info.output_width * 4 : 1);
    if (!d->line) return IMAGES_NO_MEMORY;
    while (d->info.output_scanline < d->info.output_height) {
        unsigned char *pixels = d->job->result->pixels;
        unsigned char *to = pixels + (size_t)d->info.output_scanline * line_bytes;
        JSAMPROW line = is_cmyk ? d->line : to;
        (void)jpeg_read_scanlines(&d->info, &line, 1);
        if (is_cmyk) from_cmyk(d->line, d->info.output_width, to);
    }
    (void)jpeg_finish_decompress(&d->info);
    return IMAGES_OK;
}

static images_code decode(jpeg_decoder *d)
{
    const images_request *r = d->job->request;
    jpeg_create_decompress(&d->info);
    d->info.client_data = d; /* creating clears it */
    d->info.progress = &d->progress;
    d->progress.progress_monitor = see_progress;
    jpeg_mem_src(&d->info, r->bytes, (unsigned long)r->n_bytes);
    (void)jpeg_read_header(&d->info, TRUE);
    const images_code code = image_size(d->job, d->info.image_width, d->info.image_height);
    if (code != IMAGES_OK) return code;
    const bool is_cmyk = d->info.num_components == 4, is_gray = d->info.num_components == 1;
    if (is_cmyk && (!d->info.saw_Adobe_marker ||
                    (d->info.Adobe_transform != 0 && d->info.Adobe_transform != 2)))
        return image_fail(d->job, "is a JPEG of four components that does not say their colours");
    if (image_wants_size(d->job)) return IMAGES_OK;
    d->info.out_color_space = is_cmyk ? JCS_CMYK : is_gray ? JCS_GRAYSCALE : JCS_RGB;
    (void)jpeg_start_decompress(&d->info);
    if (d->info.output_width != d->job->result->width ||
        d->info.output_height != d->job->result->height)
        return image_fail(d->job, "is damaged: it has two sizes");
    return read_lines(d, is_cmyk, is_gray ? 1 : 3);
}

/* Calls decode, and returns its code, or why it was left by a jump. */
static images_code decode_guarded(jpeg_decoder *d)
{
    if (setjmp(d->failed) == 0) return decode(d);
    if (d->has_ended || d->errors.msg_code == JERR_INPUT_EOF) return image_fail_cut(d->job);
    if (d->errors.msg_code == JERR_OUT_OF_MEMORY) {
        (void)image_fail(d->job, "cannot be decoded: out of host memory");
        return IMAGES_NO_MEMORY;
    }
    return image_fail(d->job, "is damaged or of an unsupported format (JPEG)");
}

images_code decode_jpeg(image_job *j)
{
    jpeg_decoder *d = j->request->alloc(sizeof *d);
    if (!d) return IMAGES_NO_MEMORY;
    *d = (jpeg_decoder){.job = j};
    d->info.err = jpeg_std_error(&d->errors);
    d->info.client_data = d;
    d->errors.error_exit = fail_error;
    d->errors.emit_message = see_message;
    const images_code code = decode_guarded(d);
    jpeg_destroy_decompress(&d->info);
    j->request->free(d->line);
    j->request->free(d);
    return code;
}
#endif
