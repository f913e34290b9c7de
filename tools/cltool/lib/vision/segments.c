/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements segments.h.
 */
#include "segments.h"

#include "output.h"
#include "stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CLASSES 65536

static bool fits(const named_value *output, segment_source *s)
{
    const clg_value *v = output->value;
    if (clg_value_get_kind(v) != CLG_VALUE_TENSOR) return false;
    const size_t rank = clg_value_rank(v);
    const int64_t *dims = clg_value_dims(v);
    const bool is_scores = dtype_is_floating(clg_value_dtype(v));
    if (is_scores ? rank != 4
                  : !dtype_is_integral(clg_value_dtype(v)) || rank < 3 || rank > 4 ||
                        (rank == 4 && dims[1] != 1))
        return false;
    *s = (segment_source){.output = *output,
                          .n_rows = (size_t)dims[0],
                          .height = dims[rank - 2],
                          .width = dims[rank - 1]};
    if (is_scores) s->n_classes = dims[1] == 1 ? 2 : (size_t)dims[1];
    return s->height > 0 && s->width > 0 && (!is_scores || (dims[1] > 0 && dims[1] <= MAX_CLASSES));
}

int segment_source_find(const named_value *outputs, size_t n, segment_source *out_source)
{
    char *list = must_copy("");
    for (size_t i = 0; i < n; i++) {
        if (fits(&outputs[i], out_source)) {
            free(list);
            return CODE_DONE;
        }
        const clg_value *v = outputs[i].value;
        char *longer =
            must_printf("%s%s'%s' %s", list, i == 0 ? "" : ", ", printable(outputs[i].name),
                        clg_value_get_kind(v) == CLG_VALUE_TENSOR
                            ? dims_text(clg_value_rank(v), clg_value_dims(v))
                            : value_kind_name(clg_value_get_kind(v)));
        free(list);
        list = longer;
    }
    const int code = fail(CODE_USAGE, CLG_ERROR_SHAPE,
                          "--segments: no output is [N,C,H,W] of scores, or [N,H,W] of classes; "
                          "there are %s",
                          list);
    free(list);
    return code;
}

/* Returns the class of an element of the output; -1 where that is no class. */
static int32_t class_at(const segment_source *s, size_t row, int64_t y, int64_t x)
{
    const clg_value *v = s->output.value;
    const int64_t area = s->height * s->width, at = y * s->width + x;
    if (!dtype_is_floating(clg_value_dtype(v))) {
        const double c = clg_value_get_double(v, (int64_t)row * area + at);
        return c >= 0 && c < MAX_CLASSES ? (int32_t)c : -1;
    }
    const int64_t n = clg_value_dims(v)[1], first = (int64_t)row * n * area + at;
    if (n == 1) return clg_value_get_double(v, first) > 0.5;
    double best = -INFINITY;
    int32_t best_class = -1;
    for (int64_t c = 0; c < n; c++) {
        const double score = clg_value_get_double(v, first + c * area);
        if (!(score > best)) continue;
        best = score;
        best_class = (int32_t)c;
    }
    return best_class;
}

/* Returns the classes of all elements of a row; free(). */
static int32_t *row_classes(const segment_source *s, size_t row)
{
    int32_t *classes = must_alloc((size_t)(s->height * s->width), sizeof *classes);
    for (int64_t y = 0; y < s->height; y++)
        for (int64_t x = 0; x < s->width; x++) classes[y * s->width + x] = class_at(s, row, y, x);
    return classes;
}

/* Returns the element of an output of n_out elements along an axis for a pixel of the image; -1
 * where the input does not have the pixel. */
static int64_t element_of(const resample_axis *axis, int image_size, int pixel, int n_in,
                          int64_t n_out)
{
    const double at = ((double)pixel + 0.5) * (double)axis->size / image_size - (double)axis->first;
    if (at < 0 || at >= n_in) return -1;
    const int64_t i = (int64_t)(at * (double)n_out / n_in);
    return i < n_out ? i : n_out - 1;
}

void segment_map_read(const segment_source *source, size_t row, const image_place *place,
                      int in_width, int in_height, segment_map *out_map)
{
    segment_map *m = out_map;
    *m = (segment_map){.width = place->width, .height = place->height};
    int32_t *elements = row_classes(source, row);
    int64_t *columns = must_alloc((size_t)m->width, sizeof *columns);
    m->classes = must_alloc((size_t)m->width * (size_t)m->height, sizeof *m->classes);
    m->n_classes = source->n_classes;
    for (int64_t i = 0; i < source->height * source->width; i++)
        if (elements[i] >= 0 && (size_t)elements[i] >= m->n_classes)
            m->n_classes = (size_t)elements[i] + 1;
    m->counts = must_alloc(m->n_classes + 1, sizeof *m->counts);
    for (int x = 0; x < m->width; x++)
        columns[x] = element_of(&place->x, m->width, x, in_width, source->width);
    int32_t *to = m->classes;
    for (int y = 0; y < m->height; y++) {
        const int64_t line = element_of(&place->y, m->height, y, in_height, source->height);
        for (int x = 0; x < m->width; x++, to++) {
            const bool is_in = line >= 0 && columns[x] >= 0;
            *to = is_in ? elements[line * source->width + columns[x]] : -1;
            if (*to >= 0) m->counts[*to]++;
        }
    }
    free(columns);
    free(elements);
}

void segment_map_free(segment_map *map)
{
    free(map->classes);
    free(map->counts);
    *map = (segment_map){0};
}
