/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements image_webp.h. A file is read as a whole, as libwebp takes it; its header says how many
 * bytes it has, and the size of the image is checked before them.
 */
#include "image_webp.h"

#include "failure.h"

#include <stdlib.h>
#include <string.h>

bool webp_is_head(const unsigned char head[12])
{
    return memcmp(head, "RIFF", 4) == 0 && memcmp(head + 8, "WEBP", 4) == 0;
}

#ifdef CLG_HAS_WEBP
#include <webp/decode.h>

#define HEAD_BYTES 4096 /* which the size of an image is among */

static int fail_damaged(const char *path)
{
    return fail_file("image '%s' is damaged or of an unsupported format (WebP)", path);
}

static int check_head(FILE *stream, const char *path, size_t max_pixels,
                      WebPBitstreamFeatures *out_features)
{
    unsigned char head[HEAD_BYTES];
    rewind(stream);
    const size_t n = fread(head, 1, sizeof head, stream);
    if (WebPGetFeatures(head, n, out_features) != VP8_STATUS_OK) return fail_damaged(path);
    if (out_features->has_animation)
        return fail_file("image '%s' is an animation, which is not read", path);
    const size_t width = (size_t)out_features->width, height = (size_t)out_features->height;
    if (width > 0 && height > 0 && height <= max_pixels / width) return CODE_DONE;
    (void)fail_file("image '%s' is %zux%zu: more than %zu pixels", path, width, height, max_pixels);
    fail_hint("--max-pixels N sets the limit");
    return CODE_FILE;
}

int webp_size(FILE *stream, const char *path, size_t max_pixels, int *out_width, int *out_height)
{
    WebPBitstreamFeatures features;
    const int code = check_head(stream, path, max_pixels, &features);
    if (code != CODE_DONE) return code;
    *out_width = features.width;
    *out_height = features.height;
    return CODE_DONE;
}

/* Reads the whole file; *out_n: its bytes, those that its header tells. free(). */
static int read_all(FILE *stream, const char *path, size_t max_pixels, unsigned char **out_data,
                    size_t *out_n)
{
    unsigned char head[8];
    *out_data = NULL;
    rewind(stream);
    if (fread(head, 1, sizeof head, stream) != sizeof head) return fail_damaged(path);
    const size_t n = 8 + ((size_t)head[4] | (size_t)head[5] << 8 | (size_t)head[6] << 16 |
                          (size_t)head[7] << 24);
    /* pixels without compression, and 64 MB of profiles and other data */
    if (n > 4 * max_pixels + ((size_t)64 << 20))
        return fail_file("image '%s' is of %zu bytes: too many", path, n);
    /* grows with what is read: the header may tell any size */
    size_t have = 8, capacity = 1 << 16;
    unsigned char *data = must_alloc(capacity, 1);
    memcpy(data, head, sizeof head);
    while (have < n) {
        if (have == capacity) {
            capacity *= 2;
            data = must_resize(data, capacity, 1);
        }
        const size_t wanted = (n < capacity ? n : capacity) - have;
        const size_t got = fread(data + have, 1, wanted, stream);
        have += got;
        if (got == 0) break;
    }
    *out_data = data;
    *out_n = have;
    return have == n ? CODE_DONE : fail_file("image '%s' is damaged: it ends too early", path);
}

/* Gray by the weights of BT.601, as stb_image has them. */
static void to_gray(unsigned char *pixels, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char *p = pixels + 3 * i;
        pixels[i] = (unsigned char)((p[0] * 77 + p[1] * 150 + p[2] * 29) >> 8);
    }
}

int webp_read(FILE *stream, const char *path, size_t max_pixels, raster *image)
{
    WebPBitstreamFeatures features;
    unsigned char *data = NULL;
    size_t n = 0;
    int code = check_head(stream, path, max_pixels, &features);
    if (code == CODE_DONE) code = read_all(stream, path, max_pixels, &data, &n);
    const size_t width = (size_t)features.width, height = (size_t)features.height;
    const size_t channels = image->channels == 4 ? 4 : 3;
    if (code == CODE_DONE) {
        const size_t size_bytes = width * height * channels;
        const int stride = (int)(width * channels);
        unsigned char *pixels = malloc(size_bytes);
        if (!pixels)
            code = fail(CODE_WORK, CLG_ERROR_OUT_OF_HOST_MEMORY,
                        "image '%s': out of host memory for %zux%zu pixels", path, width, height);
        else if (!(channels == 4 ? WebPDecodeRGBAInto(data, n, pixels, size_bytes, stride)
                                 : WebPDecodeRGBInto(data, n, pixels, size_bytes, stride)))
            code = fail_damaged(path);
        if (code == CODE_DONE && image->channels == 1) to_gray(pixels, width * height);
        image->pixels = pixels;
    }
    free(data);
    if (code == CODE_DONE) {
        image->width = features.width;
        image->height = features.height;
        return code;
    }
    free(image->pixels);
    image->pixels = NULL;
    return code;
}

#else

static int refuse(const char *path)
{
    return fail_file("image '%s' is WebP, which this cltool was built without", path);
}

int webp_size(FILE *stream, const char *path, size_t max_pixels, int *out_width, int *out_height)
{
    (void)stream;
    (void)max_pixels;
    (void)out_width;
    (void)out_height;
    return refuse(path);
}

int webp_read(FILE *stream, const char *path, size_t max_pixels, raster *image)
{
    (void)stream;
    (void)max_pixels;
    (void)image;
    return refuse(path);
}

#endif
