/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads images as tensors: reads them with stb_image, converts size and channels, scales, and
 * stores them in the input's layout. An element is (pixel * scale - mean) / std, with pixels from 0
 * to 1; for integer inputs scale is multiplied by 255.
 */
#include "image.h"

#include "host.h"
#include "names.h"
#include "output.h"
#include "stats.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stb_image.h>
#include <stb_image_resize.h>
#include <stdlib.h>
#include <string.h>

/* Pixels as [height, width, channels] in row-major order, from 0 to 1. */
typedef struct image {
    int width, height, channels;
    float *pixels;
} image;

/* ---- reading --------------------------------------------------------------------------------- */

/* Returns whether a file starts like one of the formats that cltool reads. Without this check,
 * stb_image would accept some random bytes as a TGA file. */
static bool has_image_magic(FILE *stream)
{
    unsigned char magic[4] = {0};
    size_t n = fread(magic, 1, sizeof magic, stream);
    rewind(stream);
    return n == sizeof magic &&
           (memcmp(magic, "\x89PNG", 4) == 0 || memcmp(magic, "\xFF\xD8\xFF", 3) == 0 ||
            memcmp(magic, "BM", 2) == 0);
}

static float *read_pixels(FILE *stream, int channels, image *out_image)
{
    int ignored;
    size_t n;
    bool is_deep = stbi_is_16_bit_from_file(stream) != 0;
    void *raw = is_deep ? (void *)stbi_load_from_file_16(stream, &out_image->width,
                                                         &out_image->height, &ignored, channels)
                        : (void *)stbi_load_from_file(stream, &out_image->width, &out_image->height,
                                                      &ignored, channels);
    if (!raw) return NULL;
    n = (size_t)out_image->width * (size_t)out_image->height * (size_t)channels;
    float *pixels = must_alloc(n, sizeof *pixels);
    for (size_t i = 0; i < n; i++) {
        pixels[i] = is_deep ? (float)((const unsigned short *)raw)[i] / 65535.0f
                            : (float)((const unsigned char *)raw)[i] / 255.0f;
    }
    stbi_image_free(raw);
    return pixels;
}

static int read_image(const char *path, int channels, image *out_image)
{
    *out_image = (image){.channels = channels};
    FILE *stream = path_is_folder(path) ? NULL : host_open(path, "rb");
    if (!stream) {
        return fail_file("image '%s' cannot be read: %s", path,
                         path_is_folder(path) ? "it is a folder" : strerror(errno));
    }
    bool is_image = has_image_magic(stream);
    if (is_image) out_image->pixels = read_pixels(stream, channels, out_image);
    (void)fclose(stream);
    if (out_image->pixels) return CODE_DONE;
    if (!is_image)
        return fail_file("'%s' is not a readable image: it is neither PNG, JPEG nor BMP", path);
    return fail_file("image '%s' is damaged or of an unsupported format (%s)", path,
                     stbi_failure_reason());
}

/* ---- size ------------------------------------------------------------------------------------ */

/* Resizes an image by a triangle filter, which is widened for shrinking. */
static int resize_to(const image *from, int width, int height, image *out_to)
{
    *out_to = (image){width, height, from->channels, NULL};
    out_to->pixels =
        must_alloc((size_t)width * (size_t)height, (size_t)from->channels * sizeof(float));
    int done = stbir_resize_float_generic(from->pixels, from->width, from->height, 0,
                                          out_to->pixels, width, height, 0, from->channels,
                                          STBIR_ALPHA_CHANNEL_NONE, 0, STBIR_EDGE_CLAMP,
                                          STBIR_FILTER_TRIANGLE, STBIR_COLORSPACE_LINEAR, NULL);
    if (done) return CODE_DONE;
    free(out_to->pixels);
    return fail(CODE_WORK, CLG_ERROR_OUT_OF_HOST_MEMORY, "an image cannot be resized to %dx%d",
                width, height);
}

/* Crops a larger image to its centre, or centres a smaller one on black. */
static image recenter(const image *from, int width, int height)
{
    image to = {width, height, from->channels, NULL};
    size_t pixel = (size_t)from->channels;
    to.pixels = must_alloc((size_t)width * (size_t)height, pixel * sizeof(float));
    int left = (width - from->width) / 2, top = (height - from->height) / 2;
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            int sx = x - left, sy = y - top;
            if (sx < 0 || sy < 0 || sx >= from->width || sy >= from->height) continue;
            memcpy(to.pixels + ((size_t)y * (size_t)width + (size_t)x) * pixel,
                   from->pixels + ((size_t)sy * (size_t)from->width + (size_t)sx) * pixel,
                   pixel * sizeof(float));
        }
    }
    return to;
}

static int at_least_one(double x) { return x < 1 ? 1 : (int)lround(x); }

static int resize(const image_recipe *r, const char *path, image *p, int width, int height)
{
    if (p->width == width && p->height == height) return CODE_DONE;
    if (!r->resize) {
        (void)fail(CODE_USAGE, CLG_ERROR_SHAPE, "image '%s' is %dx%d, the input takes %dx%d", path,
                   p->width, p->height, width, height);
        fail_hint("--resize stretch, crop or pad");
        return CODE_USAGE;
    }
    double by_width = (double)width / p->width, by_height = (double)height / p->height;
    double factor =
        strcmp(r->resize, "crop") == 0 ? fmax(by_width, by_height) : fmin(by_width, by_height);
    bool keeps = strcmp(r->resize, "stretch") != 0;
    image stretched;
    int code = resize_to(p, keeps ? at_least_one(factor * p->width) : width,
                         keeps ? at_least_one(factor * p->height) : height, &stretched);
    if (code != CODE_DONE) return code;
    free(p->pixels);
    *p = stretched;
    if (keeps) {
        *p = recenter(&stretched, width, height);
        free(stretched.pixels);
    }
    return CODE_DONE;
}

/* ---- conversion options ---------------------------------------------------------------------- */

static bool may_be_channels(int64_t n) { return n == 1 || n == 3 || n == 4; }

/* Determines the axes of batch, channels and height: rank 4 has a batch, rank 3 has channels or a
 * batch. */
static int read_layout(const options *o, const input_item *item, image_recipe *r)
{
    const int64_t *dims = item->dims;
    size_t rank = item->rank;
    if (rank < 2 || rank > 4) {
        return fail(CODE_USAGE, CLG_ERROR_SHAPE,
                    "input '%s' has %zu axes: an image needs 2, 3 or 4",
                    printable(item->port->name), rank);
    }
    if (o->layout && strcmp(o->layout, "nchw") != 0 && strcmp(o->layout, "nhwc") != 0) {
        return fail_usage("--layout takes nchw or nhwc, not '%s'", o->layout);
    }
    int first = rank == 4 ? 1 : 0, last = (int)rank - 1; /* where channels may be */
    r->batch_axis = rank == 4 ? 0 : -1;
    r->is_nchw = o->layout ? o->layout[1] == 'c'
                           : may_be_channels(dims[first]) || !may_be_channels(dims[last]);
    bool has_channels =
        rank == 4 ||
        (rank == 3 && (o->layout || may_be_channels(dims[first]) || may_be_channels(dims[last])));
    r->channel_axis = !has_channels ? -1 : r->is_nchw ? first : last;
    if (rank == 3 && !has_channels) r->batch_axis = 0;
    r->height_axis = r->is_nchw || !has_channels ? last - 1 : last - 2;
    return CODE_DONE;
}

static int read_channels(const options *o, const input_item *item, image_recipe *r)
{
    int64_t wanted = r->channel_axis < 0 ? 1 : item->dims[r->channel_axis];
    const char *name = o->channels ? o->channels : wanted == 1 ? "gray" : "rgb";
    bool is_gray = strcmp(name, "gray") == 0, is_bgr = strcmp(name, "bgr") == 0;
    if (!is_gray && !is_bgr && strcmp(name, "rgb") != 0) {
        return fail_usage("--channels takes rgb, bgr or gray, not '%s'", name);
    }
    r->channels = is_gray ? 1 : wanted == 4 ? 4 : 3;
    r->swaps = is_bgr;
    if (wanted < 0 || wanted == r->channels) return CODE_DONE;
    return fail(CODE_USAGE, CLG_ERROR_SHAPE,
                "input '%s' takes %" PRId64 " channels, an image as %s has %d",
                printable(item->port->name), wanted, name, r->channels);
}

/* Parses one number for all channels, or one per channel. */
static int read_list(const char *what, const char *text, int channels, double out[4])
{
    if (!text) return CODE_DONE;
    char *copy = must_copy(text), *rest = copy, *part;
    int n = 0, code = CODE_DONE;
    while (code == CODE_DONE && (part = split_next(&rest, ',')) != NULL && n < 4)
        code = option_real(what, part, &out[n++]);
    if (code == CODE_DONE && (part || (n != 1 && n != channels))) {
        code = channels == 1
                   ? fail_usage("%s takes one number, not '%s'", what, text)
                   : fail_usage("%s takes one number or %d, not '%s'", what, channels, text);
    }
    for (int i = 1; n == 1 && i < 4; i++) out[i] = out[0];
    free(copy);
    return code;
}

static int read_recipe(const options *o, const input_item *item, image_recipe *r)
{
    *r = (image_recipe){.scale = o->scale, .std = {1, 1, 1, 1}, .resize = o->resize};
    clg_dtype dtype = item->port->dtype;
    if (!dtype_is_floating(dtype) && !dtype_is_integral(dtype)) {
        return fail_usage("input '%s' takes %s: it cannot take an image",
                          printable(item->port->name), clg_dtype_name(dtype));
    }
    r->rounds = dtype_is_integral(dtype);
    if (r->rounds) r->scale *= 255;
    if (o->resize && strcmp(o->resize, "stretch") != 0 && strcmp(o->resize, "crop") != 0 &&
        strcmp(o->resize, "pad") != 0) {
        return fail_usage("--resize takes stretch, crop or pad, not '%s'", o->resize);
    }
    int code = read_layout(o, item, r);
    if (code == CODE_DONE) code = read_channels(o, item, r);
    if (code == CODE_DONE) code = read_list("--mean", o->mean, r->channels, r->mean);
    if (code == CODE_DONE) code = read_list("--std", o->std, r->channels, r->std);
    for (int i = 0; i < 4 && code == CODE_DONE; i++) {
        if (r->std[i] == 0) code = fail_usage("--std must not be 0");
    }
    return code;
}

/* ---- storing in the tensor ------------------------------------------------------------------- */

static void store(const image_recipe *r, const image *p, float *to)
{
    size_t area = (size_t)p->width * (size_t)p->height, channels = (size_t)p->channels;
    for (size_t c = 0; c < channels; c++) {
        size_t from = r->swaps && c < 3
                          ? 2 - c
                          : c; /* mean and std are in the order of the tensor's channels */
        for (size_t i = 0; i < area; i++) {
            double x = ((double)p->pixels[i * channels + from] * r->scale - r->mean[c]) / r->std[c];
            to[r->is_nchw ? c * area + i : i * channels + c] =
                (float)(r->rounds ? nearbyint(x) : x);
        }
    }
}

/* Sets the free dimensions from the first image and the number of images, and checks all
 * dimensions. */
static int decide_dims(const image_recipe *r, input_item *item)
{
    int64_t *dims = item->dims, n = (int64_t)item->n_images;
    if (r->batch_axis >= 0 && dims[r->batch_axis] < 0) dims[r->batch_axis] = n;
    if (r->channel_axis >= 0 && dims[r->channel_axis] < 0) dims[r->channel_axis] = r->channels;
    if (dims[r->height_axis] < 0 || dims[r->height_axis + 1] < 0) {
        image first;
        int code = read_image(item->images[0], r->channels, &first);
        if (code != CODE_DONE) return code;
        if (dims[r->height_axis] < 0) dims[r->height_axis] = first.height;
        if (dims[r->height_axis + 1] < 0) dims[r->height_axis + 1] = first.width;
        free(first.pixels);
    }
    int64_t rows = r->batch_axis >= 0 ? dims[r->batch_axis] : 1;
    if (rows != n) {
        return fail(CODE_USAGE, CLG_ERROR_SHAPE,
                    "input '%s' takes %" PRId64 " images, %zu are given",
                    printable(item->port->name), rows, item->n_images);
    }
    if (dims[r->height_axis] > INT32_MAX || dims[r->height_axis + 1] > INT32_MAX ||
        dims[r->height_axis] < 1 || dims[r->height_axis + 1] < 1) {
        return fail(CODE_USAGE, CLG_ERROR_SHAPE, "input '%s' has shape %s: no image has that size",
                    printable(item->port->name), dims_text(item->rank, dims));
    }
    return CODE_DONE;
}

void image_note(const options *o, const input_item *item, const image_recipe *r)
{
    const char *order = r->swaps ? "bgr" : r->channels == 4 ? "rgba" : "rgb";
    if (r->channels == 1) {
        output_note("input '%s' %s: gray images", printable(item->port->name),
                    dims_text(item->rank, item->dims));
    } else {
        output_note("input '%s' %s: %s images, %s%s", printable(item->port->name),
                    dims_text(item->rank, item->dims), order,
                    r->is_nchw ? "channels first" : "channels last",
                    o->layout ? "" : " (guessed from the shape; --layout nchw or nhwc sets it)");
    }
}

int image_begin(const options *o, input_item *item, image_recipe *out_recipe)
{
    int code = read_recipe(o, item, out_recipe);
    return code == CODE_DONE ? decide_dims(out_recipe, item) : code;
}

int image_rows(const image_recipe *r, const input_item *item, size_t first, size_t n, float *to)
{
    int height = (int)item->dims[r->height_axis], width = (int)item->dims[r->height_axis + 1];
    for (size_t i = first; i < first + n; i++) {
        image p;
        int code = read_image(item->images[i], r->channels, &p);
        if (code == CODE_DONE) code = resize(r, item->images[i], &p, width, height);
        if (code == CODE_DONE) {
            store(r, &p, to);
            to += (size_t)p.width * (size_t)p.height * (size_t)p.channels;
        }
        free(p.pixels);
        if (code != CODE_DONE) return code;
    }
    return CODE_DONE;
}

int image_load(const options *o, input_item *item)
{
    image_recipe r;
    clg_value *made = NULL, *cast;
    int code = image_begin(o, item, &r);
    if (code == CODE_DONE) {
        clg_status status = clg_value_create(CLG_FLOAT32, item->rank, item->dims, &made);
        if (status != CLG_OK) code = fail_status(status, STAGE_INPUT, NULL);
    }
    if (code == CODE_DONE) code = image_rows(&r, item, 0, item->n_images, clg_value_data(made));
    if (code == CODE_DONE) {
        clg_status status = clg_value_cast(made, item->port->dtype, &cast, NULL);
        if (status == CLG_OK) {
            item->value = cast;
        } else {
            code = fail_status(status, STAGE_INPUT, "input '%s'", printable(item->port->name));
        }
    }
    clg_value_free(made);
    if (code == CODE_DONE) image_note(o, item, &r);
    return code;
}
