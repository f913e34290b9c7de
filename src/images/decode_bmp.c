/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes BMP images by stb_image, which reads zeros after the end of a file: a file that ends too
 * early is found here.
 */
#include "images/decoder.h"

#include <stb_image.h>
#include <string.h>

typedef struct bmp_source {
    const images_request *request;
    size_t at;
    bool has_ended; /* more was requested than there is */
} bmp_source;

static int read_some(void *user, char *to, int n)
{
    bmp_source *s = user;
    const size_t left = s->request->n_bytes - s->at, part = (size_t)n < left ? (size_t)n : left;
    memcpy(to, s->request->bytes + s->at, part);
    s->at += part;
    if (part == 0) s->has_ended = true;
    return (int)part;
}

static void skip_some(void *user, int n)
{
    bmp_source *s = user;
    if (n < 0 && (size_t)-n > s->at) return;
    const size_t to = s->at + (size_t)n;
    s->at = to < s->request->n_bytes ? to : s->request->n_bytes;
}

static int at_end(void *user)
{
    const bmp_source *s = user;
    return s->at >= s->request->n_bytes;
}

static images_code fail_stb(image_job *j, const bmp_source *s)
{
    const char *reason = stbi_failure_reason();
    if (s->has_ended) return image_fail_cut(j);
    (void)image_fail(j, "is damaged or of an unsupported format (");
    const size_t n = strlen(j->result->why);
    for (size_t i = 0; reason && reason[i] && n + i + 2 < IMAGES_WHY_BYTES; i++) {
        j->result->why[n + i] = reason[i];
        j->result->why[n + i + 1] = ')';
        j->result->why[n + i + 2] = '\0';
    }
    return IMAGES_DAMAGED;
}

images_code decode_bmp(image_job *j)
{
    static const stbi_io_callbacks callbacks = {read_some, skip_some, at_end};
    const int channels = j->request->channels ? j->request->channels : 3;
    bmp_source s = {.request = j->request};
    int width = 0, height = 0, ignored;
    if (!stbi_info_from_callbacks(&callbacks, &s, &width, &height, &ignored)) {
        /* decoding fails for the same reason, and stb_image only says it then */
        s = (bmp_source){.request = j->request};
        void *none = stbi_load_from_callbacks(&callbacks, &s, &width, &height, &ignored, channels);
        stbi_image_free(none);
        return none ? image_fail(j, "has no pixels") : fail_stb(j, &s);
    }
    const int64_t rows = height; /* negative: from top to bottom */
    images_code code = image_size(j, (uint64_t)width, (uint64_t)(rows < 0 ? -rows : rows));
    if (code != IMAGES_OK || image_wants_size(j)) return code;
    /* RGBA: stb_image's gray has other weights */
    s = (bmp_source){.request = j->request};
    unsigned char *pixels =
        stbi_load_from_callbacks(&callbacks, &s, &width, &height, &ignored, STBI_rgb_alpha);
    if (!pixels || s.has_ended) {
        stbi_image_free(pixels);
        return fail_stb(j, &s);
    }
    code = image_size(j, (uint64_t)width, (uint64_t)height);
    if (code == IMAGES_OK) code = image_pixels(j, STBI_rgb_alpha, false);
    if (code == IMAGES_OK)
        memcpy(j->result->pixels, pixels, (size_t)width * (size_t)height * STBI_rgb_alpha);
    stbi_image_free(pixels);
    return code;
}
