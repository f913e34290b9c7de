/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements augment.h.
 */
#include "augment.h"

#include "names.h"
#include "options.h"
#include "output.h"
#include "splitmix.h"

#include <stdlib.h>
#include <string.h>

/* What an image is moved by, with its mirror image. */
typedef struct movement {
    bool is_mirrored, repeats_edge;
    int64_t x, y; /* pixels to the left and up */
} movement;

static const struct {
    const char *name;
    bool has_pixels;
} words[] = {
    [AUGMENT_FLIP] = {"flip", false},
    [AUGMENT_CROP] = {"crop", true},
    [AUGMENT_SHIFT] = {"shift", true},
    {NULL, false},
};

/* ---- options --------------------------------------------------------------------------------- */

static int read_word(char *word, augment *a)
{
    size_t kind, pixels = 0;
    char *number = word;
    const char *name = split_next(&number, ':');
    int code = option_word("--augment", name, &words->name, sizeof *words, &kind);
    if (code != CODE_DONE) return code;
    if (words[kind].has_pixels != (number != NULL))
        return fail_usage("--augment: %s takes %s", name,
                          number ? "no number" : "a number of pixels, as in 'crop:4'");
    if (a->n == AUGMENT_MAX) return fail_usage("--augment takes at most %d changes", AUGMENT_MAX);
    if (number) code = option_size("--augment", number, 1, &pixels);
    a->kinds[a->n] = (augment_kind)kind;
    a->pixels[a->n++] = pixels;
    return code;
}

int augment_read(const char *text, uint64_t seed, augment *out_augment)
{
    *out_augment = (augment){.seed = seed};
    if (!text) return CODE_DONE;
    char *copy = must_copy(text), *rest = copy, *word;
    int code = CODE_DONE;
    while (code == CODE_DONE && (word = split_next(&rest, ',')) != NULL)
        code = read_word(word, out_augment);
    free(copy);
    return code;
}

int augment_check(const augment *a, const input_set *inputs, const char *target)
{
    bool has_image = false;
    for (size_t i = 0; i < inputs->count && a->n > 0; i++) {
        const input_item *item = &inputs->items[i];
        const dataset_image *image = item->rows ? dataset_image_of(item->rows) : NULL;
        if (!image) continue;
        if (target && strcmp(item->port->name, target) == 0)
            return fail_usage("--augment: the targets '%s' are images, which are not changed",
                              item->from);
        const size_t size = image->height < image->width ? image->height : image->width;
        for (size_t k = 0; k < a->n; k++)
            if (a->pixels[k] >= size)
                return fail_usage("--augment: %s:%zu is too much for images of %zux%zu in '%s'",
                                  words[a->kinds[k]].name, a->pixels[k], image->width,
                                  image->height, item->from);
        has_image = true;
    }
    return a->n == 0 || has_image ? CODE_DONE
                                  : fail_usage("--augment: no input has rows of images");
}

/* ---- random numbers -------------------------------------------------------------------------- */

/* Returns draw number `index` of a row, 0 to n - 1; n is less than 2^32. */
static uint64_t draw(const augment *a, uint64_t epoch, int64_t row, uint64_t index, uint64_t n)
{
    static const uint64_t salt = UINT64_C(0x6175676d656e74); /* other numbers than the order's */
    const uint64_t of_epoch = splitmix(splitmix(a->seed ^ salt) + epoch);
    const uint64_t key = splitmix(of_epoch + (uint64_t)row);
    return (splitmix(key + index) >> 32) * n >> 32;
}

static movement draw_movement(const augment *a, uint64_t epoch, int64_t row, size_t k)
{
    movement m = {.repeats_edge = a->kinds[k] == AUGMENT_SHIFT};
    const uint64_t first = 2 * (uint64_t)k, n = 2 * (uint64_t)a->pixels[k] + 1;
    if (a->kinds[k] == AUGMENT_FLIP) {
        m.is_mirrored = draw(a, epoch, row, first, 2) == 1;
    } else {
        m.x = (int64_t)draw(a, epoch, row, first, n) - (int64_t)a->pixels[k];
        m.y = (int64_t)draw(a, epoch, row, first + 1, n) - (int64_t)a->pixels[k];
    }
    return m;
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static int64_t clamp(int64_t at, int64_t n) { return at < 0 ? 0 : at >= n ? n - 1 : at; }

/* Moves one plane: height x width pixels of size_bytes each. black: what lies outside. */
static void move_plane(const dataset_image *image, const movement *m, size_t size_bytes,
                       const char *from, const char *black, char *to)
{
    const int64_t height = (int64_t)image->height, width = (int64_t)image->width;
    for (int64_t y = 0; y < height; y++) {
        for (int64_t x = 0; x < width; x++, to += size_bytes) {
            int64_t from_x = (m->is_mirrored ? width - 1 - x : x) + m->x, from_y = y + m->y;
            if (m->repeats_edge) {
                from_x = clamp(from_x, width);
                from_y = clamp(from_y, height);
            }
            const bool is_inside = from_x >= 0 && from_x < width && from_y >= 0 && from_y < height;
            memcpy(to, is_inside ? from + (size_t)(from_y * width + from_x) * size_bytes : black,
                   size_bytes);
        }
    }
}

void augment_row(const augment *a, const dataset *rows, uint64_t epoch, int64_t row, char *data,
                 char *scratch, size_t size_bytes)
{
    const dataset_image *image = dataset_image_of(rows);
    if (!image || size_bytes == 0) return;
    const size_t n_planes = image->is_nchw ? image->channels : 1;
    const size_t plane_bytes = size_bytes / n_planes;
    const size_t pixel_bytes = plane_bytes / (image->height * image->width);
    for (size_t k = 0; k < a->n; k++) {
        const movement m = draw_movement(a, epoch, row, k);
        if (!m.is_mirrored && m.x == 0 && m.y == 0) continue;
        memcpy(scratch, data, size_bytes);
        for (size_t p = 0; p < n_planes; p++)
            move_plane(image, &m, pixel_bytes, scratch + p * plane_bytes,
                       image->black + p * pixel_bytes, data + p * plane_bytes);
    }
}
