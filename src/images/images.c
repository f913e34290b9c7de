/* SPDX-License-Identifier: Apache-2.0
 *
 * The module clgraph-images: finds an image's format by its first bytes, decodes it, and converts
 * the channels to those that are wanted.
 */
#include "images/decoder.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ---- for decoders ---------------------------------------------------------------------------- */

bool image_wants_size(const image_job *j) { return j->request->channels == 0; }

uint32_t image_big_endian(const unsigned char *bytes, int n)
{
    uint32_t number = 0;
    for (int i = 0; i < n; i++) number = number << 8 | bytes[i];
    return number;
}

images_code image_fail(image_job *j, const char *why)
{
    (void)snprintf(j->result->why, IMAGES_WHY_BYTES, "%s", why);
    return IMAGES_DAMAGED;
}

images_code image_fail_cut(image_job *j) { return image_fail(j, "is damaged: it ends too early"); }

images_code image_size(image_job *j, uint64_t width, uint64_t height)
{
    const uint64_t max = j->request->max_pixels;
    if (width == 0 || height == 0) return image_fail(j, "has no pixels");
    if (width <= INT_MAX && height <= INT_MAX) {
        j->result->width = (uint32_t)width;
        j->result->height = (uint32_t)height;
        if (height <= max / width) return IMAGES_OK;
    }
    (void)snprintf(j->result->why, IMAGES_WHY_BYTES, "is %llux%llu: more than %llu pixels",
                   (unsigned long long)width, (unsigned long long)height, (unsigned long long)max);
    return IMAGES_TOO_LARGE;
}

images_code image_pixels(image_job *j, int channels, bool is_16)
{
    const int wanted = j->request->channels;
    const uint64_t n = (uint64_t)j->result->width * j->result->height;
    const uint64_t bytes = (uint64_t)(channels > wanted ? channels : wanted) * (is_16 ? 2 : 1);
    j->channels = channels;
    j->is_16 = is_16;
    if (n <= SIZE_MAX / bytes) j->result->pixels = j->request->alloc((size_t)(n * bytes));
    if (j->result->pixels) return IMAGES_OK;
    (void)snprintf(j->result->why, IMAGES_WHY_BYTES, "is %ux%u: out of host memory for its pixels",
                   (unsigned)j->result->width, (unsigned)j->result->height);
    return IMAGES_NO_MEMORY;
}

/* ---- channels -------------------------------------------------------------------------------- */

/* Gray by the weights of BT.601, rounded as Pillow does. */
static unsigned gray_of(const unsigned pixel[4])
{
    return (unsigned)(((uint64_t)pixel[0] * 19595 + (uint64_t)pixel[1] * 38470 +
                       (uint64_t)pixel[2] * 7471 + 0x8000) >>
                      16);
}

/* Reads a pixel as R, G, B, A; `max` is opaque. */
static void expand(const unsigned in[4], int channels, unsigned max, unsigned out[4])
{
    const bool is_gray = channels <= 2;
    for (int c = 0; c < 3; c++) out[c] = is_gray ? in[0] : in[c];
    out[3] = channels == 2 ? in[1] : channels == 4 ? in[3] : max;
}

/* Converts the pixels in place from j->channels to those that are wanted: from the first pixel on
 * where pixels become smaller, else from the last one on. */
static void convert_channels(const image_job *j)
{
    const int from = j->channels, to = j->request->channels;
    const size_t n = (size_t)j->result->width * j->result->height;
    unsigned char *bytes = j->result->pixels;
    uint16_t *words = j->result->pixels;
    if (from == to) return;
    for (size_t k = 0; k < n; k++) {
        const size_t i = to < from ? k : n - 1 - k;
        unsigned in[4] = {0}, pixel[4];
        for (int c = 0; c < from; c++)
            in[c] = j->is_16 ? words[i * (size_t)from + (size_t)c]
                             : bytes[i * (size_t)from + (size_t)c];
        expand(in, from, j->is_16 ? 65535 : 255, pixel);
        if (to == 1 && from >= 3) pixel[0] = gray_of(pixel);
        for (int c = 0; c < to; c++) {
            if (j->is_16)
                words[i * (size_t)to + (size_t)c] = (uint16_t)pixel[c];
            else
                bytes[i * (size_t)to + (size_t)c] = (unsigned char)pixel[c];
        }
    }
}

/* Keeps the upper 8 bits of elements, unless all 16 are wanted. */
static void convert_depth(image_job *j)
{
    const size_t n = (size_t)j->result->width * j->result->height * (size_t)j->request->channels;
    const uint16_t *words = j->result->pixels;
    unsigned char *bytes = j->result->pixels;
    if (!j->is_16 || j->request->keeps_16) return;
    for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)(words[i] >> 8);
    j->is_16 = false;
}

/* ---- formats --------------------------------------------------------------------------------- */

#ifdef CLG_HAS_JPEG
#define JPEG_DECODER decode_jpeg
#else
#define JPEG_DECODER NULL
#endif
#ifdef CLG_HAS_PNG
#define PNG_DECODER decode_png
#else
#define PNG_DECODER NULL
#endif
#ifdef CLG_HAS_WEBP
#define WEBP_DECODER decode_webp
#else
#define WEBP_DECODER NULL
#endif
#ifdef CLG_HAS_TIFF
#define TIFF_DECODER decode_tiff
#else
#define TIFF_DECODER NULL
#endif
#ifdef CLG_HAS_OPENJP2
#define JPEG2000_DECODER decode_jpeg2000
#else
#define JPEG2000_DECODER NULL
#endif

/* A format, and bytes that files of it begin with; '?' is any byte. */
typedef struct image_format {
    const char *name, *magic;
    size_t n_magic;
    image_decoder *decode; /* NULL: built without its library */
    const char *library;
} image_format;

static const image_format formats[] = {
    {"PNG", "\x89PNG\r\n\x1a\n", 8, PNG_DECODER, "libpng"},
    {"JPEG", "\xFF\xD8\xFF", 3, JPEG_DECODER, "libjpeg"},
    {"WebP", "RIFF????WEBP", 12, WEBP_DECODER, "libwebp"},
    {"TIFF", "II*\0", 4, TIFF_DECODER, "libtiff"},
    {"TIFF", "MM\0*", 4, TIFF_DECODER, "libtiff"},
    {"TIFF", "II+\0", 4, TIFF_DECODER, "libtiff"},
    {"TIFF", "MM\0+", 4, TIFF_DECODER, "libtiff"},
    {"JPEG 2000", "\0\0\0\x0CjP  \r\n\x87\n", 12, JPEG2000_DECODER, "openjpeg"},
    {"JPEG 2000", "\xFF\x4F\xFF\x51", 4, JPEG2000_DECODER, "openjpeg"},
    {"BMP", "BM", 2, decode_bmp, "stb"},
    {"PNM", "P1", 2, decode_pnm, ""},
    {"PNM", "P2", 2, decode_pnm, ""},
    {"PNM", "P3", 2, decode_pnm, ""},
    {"PNM", "P4", 2, decode_pnm, ""},
    {"PNM", "P5", 2, decode_pnm, ""},
    {"PNM", "P6", 2, decode_pnm, ""},
};

static bool begins_with(const images_request *r, const image_format *f)
{
    if (r->n_bytes < f->n_magic) return false;
    for (size_t i = 0; i < f->n_magic; i++)
        if (f->magic[i] != '?' && r->bytes[i] != (unsigned char)f->magic[i]) return false;
    return true;
}

static const image_format *format_of(const images_request *r)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (begins_with(r, &formats[i])) return &formats[i];
    return NULL;
}

#if defined _WIN32
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif
EXPORTED images_decode_function clgraph_images_decode_1;

images_code clgraph_images_decode_1(const images_request *request, images_result *out_result)
{
    image_job j = {.request = request, .result = out_result};
    memset(out_result, 0, sizeof *out_result);
    const image_format *f = format_of(request);
    if (!f) {
        (void)snprintf(
            out_result->why, IMAGES_WHY_BYTES,
            "is of no known format: it is neither PNG, JPEG, WebP, TIFF, JPEG 2000, BMP nor PNM");
        return IMAGES_UNKNOWN;
    }
    out_result->format = f->name;
    if (!f->decode) {
        (void)snprintf(out_result->why, IMAGES_WHY_BYTES,
                       "is %s, and clgraph-images was built without %s", f->name, f->library);
        return IMAGES_ABSENT;
    }
    const images_code code = f->decode(&j);
    if (code != IMAGES_OK) {
        request->free(out_result->pixels);
        out_result->pixels = NULL;
    } else if (!image_wants_size(&j)) {
        convert_channels(&j);
        convert_depth(&j);
        out_result->is_16 = j.is_16;
    }
    return code;
}
