/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements image_file.h. A file is read as a whole, as the library's decoders take it.
 */
#include "image_file.h"

#include "failure.h"
#include "host.h"
#include "image_stb.h"
#include "names.h"

#include <clgraph/image.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES ((size_t)1 << 16)
#define OTHER_BYTES ((size_t)64 << 20) /* of profiles and other data */

typedef struct file_bytes {
    unsigned char *data;
    size_t n;
} file_bytes;

/* Reads a file, of at most the bytes of uncompressed pixels and some more. */
static int read_stream(FILE *stream, const char *path, size_t max_pixels, file_bytes *out_file)
{
    const size_t most =
        max_pixels < (SIZE_MAX - OTHER_BYTES) / 8 ? 8 * max_pixels + OTHER_BYTES : SIZE_MAX / 2;
    size_t capacity = FIRST_BYTES;
    file_bytes *f = out_file;
    f->data = must_alloc(capacity, 1);
    for (;;) {
        if (f->n == capacity) {
            capacity *= 2;
            f->data = must_resize(f->data, capacity, 1);
        }
        const size_t n = fread(f->data + f->n, 1, capacity - f->n, stream);
        f->n += n;
        if (n == 0) break;
        if (f->n > most) return fail_file("image '%s' has more than %zu bytes", path, most);
    }
    return ferror(stream) ? fail_file("image '%s' cannot be read: %s", path, strerror(errno))
                          : CODE_DONE;
}

static int read_bytes(const char *path, size_t max_pixels, file_bytes *out_file)
{
    *out_file = (file_bytes){0};
    if (path_is_folder(path)) return fail_file("image '%s' cannot be read: it is a folder", path);
    FILE *stream = host_open(path, "rb");
    if (!stream) return fail_file("image '%s' cannot be read: %s", path, strerror(errno));
    const int code = read_stream(stream, path, max_pixels, out_file);
    (void)fclose(stream);
    return code;
}

/* Records why the library did not decode an image. */
static int fail_image(const char *path, clg_status status)
{
    static const char start[] = "the image ";
    const char *why = clg_last_error();
    const bool is_sentence = strncmp(why, start, sizeof start - 1) == 0;
    if (status == CLG_ERROR_OUT_OF_HOST_MEMORY)
        return fail(CODE_WORK, status, "image '%s': %s", path, why);
    (void)fail_file(is_sentence ? "image '%s' %s" : "image '%s': %s", path,
                    is_sentence ? why + sizeof start - 1 : why);
    if (status == CLG_ERROR_LIMIT) fail_hint("--max-pixels N sets the limit");
    return CODE_FILE;
}

/* Returns whether stb_image is to decode what the library could not. */
static bool falls_back(clg_status status, const file_bytes *f)
{
    return status == CLG_ERROR_UNSUPPORTED_OPERATOR && image_stb_reads(f->data, f->n);
}

int image_file_size(const char *path, size_t max_pixels, int *out_width, int *out_height)
{
    clg_image_options o = CLG_IMAGE_OPTIONS_INIT;
    int64_t width = 0, height = 0;
    file_bytes f;
    o.max_pixels = max_pixels;
    int code = read_bytes(path, max_pixels, &f);
    if (code == CODE_DONE) {
        const clg_status status = clg_image_size(f.data, f.n, &o, NULL, &width, &height);
        *out_width = (int)width;
        *out_height = (int)height;
        if (falls_back(status, &f))
            code = image_stb_size(path, max_pixels, out_width, out_height);
        else if (status != CLG_OK)
            code = fail_image(path, status);
    }
    free(f.data);
    return code;
}

int image_file_read(const char *path, int channels, size_t max_pixels, raster *out_image)
{
    clg_image_options o = CLG_IMAGE_OPTIONS_INIT;
    file_bytes f;
    o.channels = channels;
    o.keep_16_bits = true;
    o.max_pixels = max_pixels;
    *out_image = (raster){.channels = channels};
    int code = read_bytes(path, max_pixels, &f);
    if (code == CODE_DONE) {
        const clg_status status = clg_image_decode(f.data, f.n, &o, &out_image->value);
        if (falls_back(status, &f))
            code = image_stb_read(path, max_pixels, out_image);
        else if (status != CLG_OK)
            code = fail_image(path, status);
    }
    free(f.data);
    if (!out_image->value) return code;
    out_image->height = (int)clg_value_dims(out_image->value)[0];
    out_image->width = (int)clg_value_dims(out_image->value)[1];
    out_image->is_deep = clg_value_dtype(out_image->value) == CLG_UINT16;
    out_image->pixels = clg_value_data(out_image->value);
    return code;
}

void raster_free(raster *image)
{
    if (!image->value) image_stb_free(image);
    clg_value_free(image->value);
    image->value = NULL;
    image->pixels = NULL;
}
