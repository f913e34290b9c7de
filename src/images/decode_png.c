/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes PNG images by libpng: of an animation, the default image. Checksums of all chunks that
 * make the image are checked.
 */
#include "images/decoder.h"

#ifdef CLG_HAS_PNG
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#define MAX_CHUNK_BYTES (64u << 20) /* of text and profiles, which are skipped */

typedef struct png_decoder {
    image_job *job;
    png_struct *png;
    png_info *info;
    png_byte **lines;
    size_t at; /* of the bytes */
    bool has_ended;
} png_decoder;

static void read_some(png_struct *png, png_byte *to, size_t n)
{
    png_decoder *d = png_get_io_ptr(png);
    const images_request *r = d->job->request;
    if (n > r->n_bytes - d->at) {
        d->has_ended = true;
        png_error(png, "it ends too early");
    }
    memcpy(to, r->bytes + d->at, n);
    d->at += n;
}

/* Records the message, which names the chunk, and jumps. */
static void fail_error(png_struct *png, const char *message)
{
    png_decoder *d = png_get_error_ptr(png);
    (void)snprintf(d->job->result->why, IMAGES_WHY_BYTES, "is damaged (libpng: %s)", message);
    png_longjmp(png, 1);
}

static void ignore_warning(png_struct *png, const char *message)
{
    (void)png;
    (void)message;
}

/* Sets what libpng converts: palettes and few bits to bytes, words to this machine's order. */
static void set_conversions(const png_decoder *d, bool is_16)
{
    const uint16_t one = 1;
    png_set_expand(d->png);
    if (is_16 && *(const unsigned char *)&one == 1) png_set_swap(d->png);
    (void)png_set_interlace_handling(d->png);
    png_read_update_info(d->png, d->info);
}

/* Lets libpng skip the chunks that do not make the image. It would decompress and keep up to a
 * thousand texts, each a thousand times as large as in the file. */
static void skip_chunks(png_struct *png)
{
#ifdef PNG_SET_UNKNOWN_CHUNKS_SUPPORTED
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
#else
    png_set_chunk_cache_max(png, 1); /* of them all; 0 would be no limit */
#endif
}

/* Jumps on failure. */
static images_code decode(png_decoder *d)
{
    image_job *j = d->job;
    png_set_read_fn(d->png, d, read_some);
    skip_chunks(d->png);
    png_set_user_limits(d->png, 0x7fffffff, 0x7fffffff);
    png_set_chunk_malloc_max(d->png, MAX_CHUNK_BYTES);
    png_read_info(d->png, d->info);
    const uint32_t width = png_get_image_width(d->png, d->info),
                   height = png_get_image_height(d->png, d->info);
    images_code code = image_size(j, width, height);
    if (code != IMAGES_OK || image_wants_size(j)) return code;
    const bool is_16 = png_get_bit_depth(d->png, d->info) == 16;
    set_conversions(d, is_16);
    code = image_pixels(j, png_get_channels(d->png, d->info), is_16);
    if (code != IMAGES_OK) return code;
    const size_t line_bytes = (size_t)width * (size_t)j->channels * (is_16 ? 2 : 1);
    if (png_get_rowbytes(d->png, d->info) != line_bytes)
        return image_fail(j, "is of an unsupported kind of PNG");
    d->lines = j->request->alloc(height * sizeof *d->lines);
    if (!d->lines) return IMAGES_NO_MEMORY;
    for (size_t i = 0; i < height; i++)
        d->lines[i] = (png_byte *)j->result->pixels + i * line_bytes;
    png_read_image(d->png, d->lines);
    png_read_end(d->png, NULL);
    return IMAGES_OK;
}

static images_code decode_guarded(png_decoder *d)
{
    if (setjmp(png_jmpbuf(d->png)) == 0) return decode(d);
    return d->has_ended ? image_fail_cut(d->job) : IMAGES_DAMAGED;
}

images_code decode_png(image_job *j)
{
    png_decoder *d = j->request->alloc(sizeof *d);
    if (!d) return IMAGES_NO_MEMORY;
    *d = (png_decoder){.job = j};
    images_code code = IMAGES_NO_MEMORY;
    d->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, d, fail_error, ignore_warning);
    if (d->png) d->info = png_create_info_struct(d->png);
    if (d->info) code = decode_guarded(d);
    if (d->png) png_destroy_read_struct(&d->png, &d->info, NULL);
    j->request->free(d->lines);
    j->request->free(d);
    return code;
}
#endif
