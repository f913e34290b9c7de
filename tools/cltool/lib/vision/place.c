/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements place.h. RESIZE_SHORT and the crop round as torchvision's Resize and CenterCrop do:
 * the longer side down, half a pixel of the crop's position to the even number.
 */
#include "place.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- options --------------------------------------------------------------------------------- */

/* Parses "N" or "HEIGHTxWIDTH". */
static int read_size(const char *what, const char *text, int *out_height, int *out_width)
{
    size_t rank = 0;
    int64_t dims[CLG_MAX_RANK] = {0};
    int code = option_dims(what, text, &rank, dims);
    if (code == CODE_DONE && rank == 1) dims[1] = dims[0];
    const bool fits = rank >= 1 && rank <= 2 && dims[0] >= 1 && dims[0] <= INT32_MAX &&
                      dims[1] >= 1 && dims[1] <= INT32_MAX;
    if (code == CODE_DONE && !fits)
        code = fail_usage("%s takes a size, N or HEIGHTxWIDTH, not '%s'", what, text);
    if (code != CODE_DONE) return code;
    *out_height = (int)dims[0];
    *out_width = (int)dims[1];
    return CODE_DONE;
}

/* Parses "N" or "N:MAXIMUM" after "short:". */
static int read_short(const char *text, resize_rule *rule)
{
    char *copy = must_copy(text), *rest = copy;
    size_t side = 0, maximum = 0;
    int code = option_size("--resize short", split_next(&rest, ':'), 1, &side);
    if (code == CODE_DONE && rest) code = option_size("--resize short", rest, 1, &maximum);
    if (code == CODE_DONE && (side > INT32_MAX || maximum > INT32_MAX))
        code = fail_usage("--resize short:%s is too large", text);
    if (code == CODE_DONE && rest && maximum < side)
        code = fail_usage("--resize short:%s: the longer side is at least the shorter one", text);
    free(copy);
    rule->short_side = (int64_t)side;
    rule->maximum = (int64_t)maximum;
    return code;
}

static int read_kind(const char *text, resize_rule *rule)
{
    static const struct {
        const char *word;
        resize_kind kind;
    } words[] = {{"stretch", RESIZE_STRETCH},
                 {"crop", RESIZE_CROP},
                 {"pad", RESIZE_PAD},
                 {"corner", RESIZE_CORNER},
                 {"short", RESIZE_SHORT}};
    const char *colon = strchr(text, ':');
    const size_t n = colon ? (size_t)(colon - text) : strlen(text);
    rule->kind = RESIZE_NONE;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i].word) == n && strncmp(words[i].word, text, n) == 0)
            rule->kind = words[i].kind;
    }
    if (rule->kind == RESIZE_NONE || (rule->kind == RESIZE_SHORT && !colon))
        return fail_usage("--resize takes stretch, crop, pad, corner or short:N, not '%s'", text);
    if (!colon) return CODE_DONE;
    return rule->kind == RESIZE_SHORT
               ? read_short(colon + 1, rule)
               : read_size("--resize", colon + 1, &rule->height, &rule->width);
}

int resize_read(const options *o, resize_rule *out_rule)
{
    resize_rule *r = out_rule;
    size_t gray = 0;
    *r = (resize_rule){.filter = RESAMPLE_BILINEAR};
    int code = o->resize ? read_kind(o->resize, r) : CODE_DONE;
    if (code == CODE_DONE && o->crop)
        code = read_size("--crop", o->crop, &r->crop_height, &r->crop_width);
    if (code == CODE_DONE && o->crop && r->kind != RESIZE_NONE && r->kind != RESIZE_SHORT) {
        code = fail_usage("--crop goes with --resize short:N or none, not '%s'", o->resize);
        fail_hint("--resize crop resizes and takes the centre");
    }
    if (code == CODE_DONE && o->pad) code = option_size("--pad", o->pad, 0, &gray);
    if (code == CODE_DONE && gray > 255)
        code = fail_usage("--pad takes a level of 0 to 255, not '%s'", o->pad);
    r->gray = (double)gray / 255;
    if (code != CODE_DONE || !o->filter || strcmp(o->filter, "bilinear") == 0) return code;
    r->filter = RESAMPLE_BICUBIC;
    if (strcmp(o->filter, "bicubic") == 0) return code;
    return fail_usage("--filter takes bilinear or bicubic, not '%s'", o->filter);
}

bool resize_fits_all(const resize_rule *rule)
{
    return rule->crop_width > 0 || (rule->kind != RESIZE_NONE && rule->kind != RESIZE_SHORT);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Gets the size of an image before the crop, where it does not depend on the input's. */
static void resized_size(const resize_rule *rule, int width, int height, int64_t *out_width,
                         int64_t *out_height)
{
    *out_width = width;
    *out_height = height;
    if (rule->kind != RESIZE_SHORT) return;
    const int64_t s = width < height ? width : height, l = width < height ? height : width;
    int64_t new_short = rule->short_side;
    int64_t new_long = (int64_t)((double)(new_short * l) / (double)s);
    if (rule->maximum > 0 && new_long > rule->maximum) {
        new_short = (int64_t)((double)(rule->maximum * new_short) / (double)new_long);
        new_long = rule->maximum;
    }
    if (new_short < 1) new_short = 1;
    *out_width = width < height ? new_short : new_long;
    *out_height = width < height ? new_long : new_short;
}

static int to_int(int64_t n) { return n > INT32_MAX ? INT32_MAX : (int)n; }

void place_size(const resize_rule *rule, int width, int height, int *out_width, int *out_height)
{
    int64_t resized_width, resized_height;
    resized_size(rule, width, height, &resized_width, &resized_height);
    *out_width = rule->crop_width > 0 ? rule->crop_width : to_int(resized_width);
    *out_height = rule->crop_height > 0 ? rule->crop_height : to_int(resized_height);
    if (rule->width > 0) *out_width = rule->width;
    if (rule->height > 0) *out_height = rule->height;
}

/* Returns the centre n elements of `size`: as torchvision, which pads smaller images. */
static resample_axis centre(int64_t size, int n)
{
    const int64_t rest = size - n;
    const int64_t first = rest < 0 ? -(-rest / 2) : (int64_t)nearbyint((double)rest / 2);
    return (resample_axis){.size = size, .first = first, .n = n};
}

/* Returns the axis of an image that is resized by a factor. */
static resample_axis scaled(resize_kind kind, int n, double factor, int in)
{
    resample_axis axis = {.size = n, .n = n};
    if (kind == RESIZE_NONE || kind == RESIZE_STRETCH) return axis;
    const int64_t size = kind == RESIZE_CORNER ? (int64_t)(factor * in) : llround(factor * in);
    axis.size = size < 1 ? 1 : size;
    if (kind != RESIZE_CORNER) axis.first = (axis.size - n) / 2;
    return axis;
}

image_place place_image(const resize_rule *rule, int width, int height, int in_width, int in_height)
{
    image_place place = {.width = width, .height = height};
    const double by_width = (double)in_width / width, by_height = (double)in_height / height;
    const double factor =
        rule->kind == RESIZE_CROP ? fmax(by_width, by_height) : fmin(by_width, by_height);
    if (rule->kind == RESIZE_SHORT || rule->crop_width > 0) {
        int64_t resized_width, resized_height;
        resized_size(rule, width, height, &resized_width, &resized_height);
        place.x = centre(resized_width, in_width);
        place.y = centre(resized_height, in_height);
        return place;
    }
    place.x = scaled(rule->kind, in_width, factor, width);
    place.y = scaled(rule->kind, in_height, factor, height);
    return place;
}

double place_back(const resample_axis *axis, int size, double at)
{
    return (at + (double)axis->first) * size / (double)axis->size;
}
