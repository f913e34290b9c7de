/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements drawing.h. Letters are those of stb_easy_font, rectangles in a list of vertices.
 */
#include "drawing.h"

#include "image_file.h"
#include "names.h"

#include <math.h>
#include <stb_image_write.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include <stb_easy_font.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#define MAX_TEXT 80
#define FONT_HEIGHT 9 /* of a line of letters, with room around it */

/* A corner of a rectangle of letters. */
typedef struct vertex {
    float x, y, z;
    unsigned char color[4];
} vertex;

/* ---- files ----------------------------------------------------------------------------------- */

int drawing_load(const char *path, size_t max_pixels, drawing *out_drawing)
{
    raster image;
    *out_drawing = (drawing){0};
    const int code = image_file_read(path, 3, max_pixels, &image);
    if (code != CODE_DONE) return code;
    const size_t n = (size_t)image.width * (size_t)image.height * 3;
    out_drawing->width = image.width;
    out_drawing->height = image.height;
    out_drawing->pixels = must_alloc(n, 1);
    for (size_t i = 0; i < n; i++)
        out_drawing->pixels[i] = image.is_deep
                                     ? (unsigned char)(((const uint16_t *)image.pixels)[i] >> 8)
                                     : ((const unsigned char *)image.pixels)[i];
    raster_free(&image);
    return CODE_DONE;
}

void drawing_free(drawing *d)
{
    free(d->pixels);
    *d = (drawing){0};
}

typedef struct growing_bytes {
    char *data;
    size_t count, capacity;
} growing_bytes;

static void append_bytes(void *user, void *data, int n)
{
    growing_bytes *b = user;
    if (n <= 0) return;
    if (b->capacity - b->count < (size_t)n) {
        b->capacity = b->capacity * 2 + (size_t)n;
        b->data = must_resize(b->data, b->capacity, 1);
    }
    memcpy(b->data + b->count, data, (size_t)n);
    b->count += (size_t)n;
}

int drawing_write(const drawing *d, const char *path)
{
    growing_bytes png = {0};
    const bool is_made =
        d->width <= INT32_MAX / 3 && stbi_write_png_to_func(append_bytes, &png, d->width, d->height,
                                                            3, d->pixels, d->width * 3) != 0;
    const int code = is_made ? output_write(path, png.data, png.count)
                             : fail(CODE_WORK, CLG_ERROR_OUT_OF_HOST_MEMORY,
                                    "'%s' cannot be made: out of host memory", path);
    free(png.data);
    return code;
}

/* ---- colours --------------------------------------------------------------------------------- */

/* Gets the colour of a class: hues a golden angle apart, so that classes that follow each other
 * differ. */
static void class_color(int64_t class_index, unsigned char out_color[3])
{
    const double hue = fmod((double)class_index * 0.618033988749895, 1) * 6;
    for (int c = 0; c < 3; c++) {
        const double distance = fabs(fmod(hue - 2 * c + 9, 6) - 3); /* 0 at the opposite hue */
        out_color[c] = (unsigned char)(40 + 215 * fmin(fmax(distance - 1, 0), 1));
    }
}

static void fill(drawing *d, int left, int top, int right, int bottom, const unsigned char color[3])
{
    if (left < 0) left = 0;
    if (top < 0) top = 0;
    if (right > d->width) right = d->width;
    if (bottom > d->height) bottom = d->height;
    for (int y = top; y < bottom; y++) {
        for (int x = left; x < right; x++)
            memcpy(d->pixels + ((size_t)y * (size_t)d->width + (size_t)x) * 3, color, 3);
    }
}

void drawing_blend(drawing *d, int x, int y, int64_t class_index)
{
    unsigned char color[3];
    unsigned char *to = d->pixels + ((size_t)y * (size_t)d->width + (size_t)x) * 3;
    class_color(class_index, color);
    for (int c = 0; c < 3; c++) to[c] = (unsigned char)((to[c] + color[c]) / 2);
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* Returns the width of lines and of the dots of letters. */
static int line_width(const drawing *d)
{
    const int side = d->width < d->height ? d->width : d->height;
    return 1 + side / 400;
}

static void draw_text(drawing *d, int left, int top, const char *text, const unsigned char back[3])
{
    const size_t n_vertices = (size_t)MAX_TEXT * 4 * 20; /* letters have at most 20 rectangles */
    vertex *vertices = must_alloc(n_vertices, sizeof *vertices);
    char line[MAX_TEXT + 1];
    size_t n = 0;
    /* the font has printable ASCII alone */
    for (; n < MAX_TEXT && text[n]; n++) line[n] = text[n] > ' ' && text[n] < 127 ? text[n] : ' ';
    line[n] = '\0';
    const int unit = line_width(d), width = (stb_easy_font_width(line) + 3) * unit;
    const int height = (FONT_HEIGHT + 2) * unit;
    if (top < 0) top = 0;
    if (left + width > d->width) left = d->width - width;
    if (left < 0) left = 0;
    fill(d, left, top, left + width, top + height, back);
    static const unsigned char black[3] = {0};
    const int n_rectangles =
        stb_easy_font_print(0, 0, line, NULL, vertices, (int)(n_vertices * sizeof *vertices));
    for (int i = 0; i < n_rectangles; i++) {
        const vertex *from = &vertices[4 * i], *to = &vertices[4 * i + 2];
        fill(d, left + ((int)from->x + 2) * unit, top + ((int)from->y + 1) * unit,
             left + ((int)to->x + 2) * unit, top + ((int)to->y + 1) * unit, black);
    }
    free(vertices);
}

void drawing_box(drawing *d, const box *b, const char *text)
{
    unsigned char color[3];
    const int w = line_width(d);
    const int left = (int)b->left, top = (int)b->top;
    const int right = (int)ceil(b->right), bottom = (int)ceil(b->bottom);
    class_color(b->class_index, color);
    fill(d, left, top, right, top + w, color);
    fill(d, left, bottom - w, right, bottom, color);
    fill(d, left, top, left + w, bottom, color);
    fill(d, right - w, top, right, bottom, color);
    if (text[0]) draw_text(d, left, top - (FONT_HEIGHT + 2) * w, text, color);
}
