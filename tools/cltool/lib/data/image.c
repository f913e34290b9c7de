/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads images as tensors: converts size and channels, scales, and stores pixels in the input's
 * layout. An element is (pixel * scale - mean) / std, with pixels from 0 to 1; for integer inputs
 * scale is multiplied by 255.
 */
#include "image.h"

#include "image_file.h"
#include "names.h"
#include "output.h"
#include "stats.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- size ------------------------------------------------------------------------------------ */

/* Checks that an image has the input's size, if it is not resized to that. */
static int check_size(const image_recipe *r, const input_item *item, const char *path, int width,
                      int height)
{
    const int64_t in_height = item->dims[r->height_axis], in_width = item->dims[r->height_axis + 1];
    const resize_rule *rule = &r->resize;
    int w = width, h = height;
    if (resize_fits_all(rule) && rule->crop_width == 0) return CODE_DONE;
    place_size(rule, width, height, &w, &h);
    if (w == in_width && h == in_height) return CODE_DONE;
    if (rule->crop_width > 0) {
        (void)fail(CODE_USAGE, CLG_ERROR_SHAPE,
                   "input '%s' takes images of %" PRId64 "x%" PRId64 ", the crop is %dx%d",
                   printable(item->port->name), in_width, in_height, w, h);
        fail_hint("--crop %" PRId64 "x%" PRId64 " (height and width)", in_height, in_width);
        return CODE_USAGE;
    }
    (void)fail(CODE_USAGE, CLG_ERROR_SHAPE,
               "image '%s' is %dx%d%s, the input takes %" PRId64 "x%" PRId64, path, w, h,
               rule->kind == RESIZE_SHORT ? " when resized" : "", in_width, in_height);
    fail_hint(rule->kind == RESIZE_SHORT ? "--crop N takes the centre"
                                         : "--resize stretch, crop or pad");
    return CODE_USAGE;
}

/* Sets what is around an image in [height, width, channels]. */
static void fill_around(const image_recipe *r, const image_place *place, double *pixels)
{
    const resample_axis *x = &place->x, *y = &place->y;
    const size_t channels = (size_t)r->channels;
    for (int64_t i = 0; i < y->n; i++) {
        const bool is_row = i + y->first >= 0 && i + y->first < y->size;
        for (int64_t k = 0; k < x->n; k++) {
            if (is_row && k + x->first >= 0 && k + x->first < x->size) continue;
            double *to = pixels + (size_t)(i * x->n + k) * channels;
            for (size_t c = 0; c < channels && c < 3; c++) to[c] = r->resize.gray;
        }
    }
}

/* Returns [height, width, channels] from 0 to 1, to be freed with free(); NULL: no memory. */
static double *resize(const image_recipe *r, const raster *p, const image_place *place)
{
    double *pixels = resample(p, r->resize.filter, &place->x, &place->y);
    if (pixels && r->resize.gray > 0) fill_around(r, place, pixels);
    return pixels;
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
    *r = (image_recipe){.scale = o->scale < 0 ? 1 : o->scale, .std = {1, 1, 1, 1}};
    r->max_pixels = o->max_pixels > 0 ? o->max_pixels : IMAGE_MAX_PIXELS;
    clg_dtype dtype = item->port->dtype;
    if (!dtype_is_floating(dtype) && !dtype_is_integral(dtype)) {
        return fail_usage("input '%s' takes %s: it cannot take an image",
                          printable(item->port->name), clg_dtype_name(dtype));
    }
    r->rounds = dtype_is_integral(dtype);
    if (r->rounds) r->scale *= 255;
    int code = resize_read(o, &r->resize);
    if (code == CODE_DONE) code = read_layout(o, item, r);
    if (code == CODE_DONE) code = read_channels(o, item, r);
    if (code == CODE_DONE) code = read_list("--mean", o->mean, r->channels, r->mean);
    if (code == CODE_DONE) code = read_list("--std", o->std, r->channels, r->std);
    for (int i = 0; i < 4 && code == CODE_DONE; i++) {
        if (r->std[i] == 0) code = fail_usage("--std must not be 0");
    }
    return code;
}

/* ---- storing in the tensor ------------------------------------------------------------------- */

/* pixels: `area` of them, from 0 to 1. */
static void store(const image_recipe *r, const double *pixels, size_t area, float *to)
{
    const size_t channels = (size_t)r->channels;
    for (size_t c = 0; c < channels; c++) {
        /* mean and std are in the order of the tensor's channels */
        const size_t from = r->swaps && c < 3 ? 2 - c : c;
        for (size_t i = 0; i < area; i++) {
            const double x = (pixels[i * channels + from] * r->scale - r->mean[c]) / r->std[c];
            to[r->is_nchw ? c * area + i : i * channels + c] =
                (float)(r->rounds ? nearbyint(x) : x);
        }
    }
}

/* Returns an item of the shape of rows. */
static input_item item_of_rows(const clg_port *port, size_t rank, const int64_t *dims)
{
    input_item item = {.port = port, .rank = rank};
    memcpy(item.dims, dims, rank * sizeof *dims);
    if (rank > 0) item.dims[0] = -1; /* few rows are not channels */
    return item;
}

int image_axes(const options *o, const clg_port *port, size_t rank, const int64_t *dims,
               image_recipe *out_recipe)
{
    const input_item item = item_of_rows(port, rank, dims);
    *out_recipe = (image_recipe){0};
    return read_layout(o, &item, out_recipe);
}

int image_bytes_begin(const options *o, const clg_port *port, size_t rank, const int64_t *dims,
                      image_recipe *out_recipe)
{
    options given = *o;
    const input_item item = item_of_rows(port, rank, dims);
    given.channels = NULL; /* bytes are neither exchanged nor resized */
    given.resize = given.crop = NULL;
    int code = read_recipe(&given, &item, out_recipe);
    for (size_t i = 0; code == CODE_DONE && i < 4 * 256; i++) {
        const image_recipe *r = out_recipe;
        const size_t c = i / 256, byte = i % 256;
        const double x = ((double)byte / 255 * r->scale - r->mean[c]) / r->std[c];
        out_recipe->of_byte[c][byte] = (float)(r->rounds ? nearbyint(x) : x);
    }
    return code;
}

void image_bytes(const image_recipe *r, const unsigned char *bytes, size_t n_elems, float *to)
{
    const size_t channels = (size_t)r->channels, area = n_elems / channels;
    for (size_t i = 0; i < n_elems; i++)
        to[i] = r->of_byte[r->is_nchw ? i / area : i % channels][bytes[i]];
}

/* Gets the size of the first image, or, if bad ones are skipped, of the first that can be read. An
 * error is that of the first image. */
static int first_size(const image_recipe *r, const input_item *item, bool skips_bad,
                      const char **out_path, int *out_width, int *out_height)
{
    failure_record first = {0};
    int first_code = CODE_DONE;
    for (size_t i = 0; i < item->n_images; i++) {
        *out_path = item->images[i];
        int code = image_file_size(*out_path, r->max_pixels, out_width, out_height);
        if (code == CODE_DONE) {
            failure_clear();
            return code;
        }
        if (i == 0) failure_take(&first);
        if (i == 0) first_code = code;
        if (!skips_bad) break;
    }
    failure_put(&first);
    return first_code;
}

/* Sets the free dimensions from the first image and the number of images, and checks all
 * dimensions. */
static int decide_dims(const image_recipe *r, input_item *item, bool skips_bad)
{
    const char *path = NULL;
    int width = 0, height = 0;
    int64_t *dims = item->dims, n = (int64_t)item->n_images;
    if (r->batch_axis >= 0 && dims[r->batch_axis] < 0) dims[r->batch_axis] = n;
    if (r->channel_axis >= 0 && dims[r->channel_axis] < 0) dims[r->channel_axis] = r->channels;
    int code = first_size(r, item, skips_bad, &path, &width, &height);
    if (code != CODE_DONE) return code;
    int in_width, in_height;
    place_size(&r->resize, width, height, &in_width, &in_height);
    if (dims[r->height_axis] < 0) dims[r->height_axis] = in_height;
    if (dims[r->height_axis + 1] < 0) dims[r->height_axis + 1] = in_width;
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
    return check_size(r, item, path, width, height);
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

int image_begin(const options *o, input_item *item, bool skips_bad, image_recipe *out_recipe)
{
    int code = read_recipe(o, item, out_recipe);
    return code == CODE_DONE ? decide_dims(out_recipe, item, skips_bad) : code;
}

int image_row(const image_recipe *r, const input_item *item, size_t row, float *to,
              image_place *out_place)
{
    const int height = (int)item->dims[r->height_axis], width = (int)item->dims[r->height_axis + 1];
    const char *path = item->images[row];
    raster p;
    int code = image_file_read(path, r->channels, r->max_pixels, &p);
    if (code != CODE_DONE) return code;
    code = check_size(r, item, path, p.width, p.height);
    image_place place = {0};
    if (code == CODE_DONE) place = place_image(&r->resize, p.width, p.height, width, height);
    if (out_place) *out_place = place;
    double *pixels = code == CODE_DONE ? resize(r, &p, &place) : NULL;
    if (pixels) {
        store(r, pixels, (size_t)width * (size_t)height, to);
    } else if (code == CODE_DONE) {
        code = fail(CODE_WORK, CLG_ERROR_OUT_OF_HOST_MEMORY,
                    "image '%s': out of host memory for %dx%d pixels", path, width, height);
    }
    free(pixels);
    raster_free(&p);
    return code;
}

size_t image_row_elems(const image_recipe *r, const input_item *item)
{
    return (size_t)item->dims[r->height_axis] * (size_t)item->dims[r->height_axis + 1] *
           (size_t)r->channels;
}

int image_load(const options *o, input_item *item)
{
    image_recipe r;
    clg_value *made = NULL, *cast;
    int code = image_begin(o, item, false, &r);
    if (code == CODE_DONE) {
        clg_status status = clg_value_create(CLG_FLOAT32, item->rank, item->dims, &made);
        if (status != CLG_OK) code = fail_status(status, STAGE_INPUT, NULL);
    }
    item->places = must_alloc(item->n_images, sizeof *item->places);
    for (size_t i = 0; i < item->n_images && code == CODE_DONE; i++) {
        float *to = clg_value_data(made);
        code = image_row(&r, item, i, to + i * image_row_elems(&r, item), &item->places[i]);
    }
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
