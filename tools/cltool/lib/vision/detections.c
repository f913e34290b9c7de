/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements detections.h.
 */
#include "detections.h"

#include "drawing.h"
#include "image.h"
#include "image_file.h"
#include "names.h"
#include "output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BOXES 10000 /* of a row: suppression compares each with those kept before it */

/* ---- options --------------------------------------------------------------------------------- */

int detections_check(const options *o)
{
    const box_format *format;
    if (!o->boxes && (o->score_threshold >= 0 || o->nms >= 0))
        return fail_usage("--score-threshold and --nms belong to --boxes FORMAT");
    if (o->draw && !o->boxes && !o->segments)
        return fail_usage(
            "--draw shows boxes or segments: --boxes FORMAT or --segments is missing");
    if (o->nms > 1) return fail_usage("--nms takes an overlap of 0 to 1");
    int code = o->boxes ? box_format_find(o->boxes, &format) : CODE_DONE;
    if (code != CODE_DONE || !o->draw) return code;
    if (!path_ends_in(o->draw, ".png"))
        return fail_usage("--draw writes PNG: '%s' does not end in .png", o->draw);
    if (o->images.count == 0) return fail_usage("--draw needs an image: --image FILE is missing");
    if (o->images.count > 1)
        return fail_usage("--draw takes one image, %zu are given", o->images.count);
    return file_may_be_written(o->draw, o->force);
}

/* ---- the input ------------------------------------------------------------------------------- */

/* Finds the input that has images: one that was given as such, else one whose axes can be. */
static int find_input(const options *o, const input_set *inputs, detections *d,
                      const input_item **out_item)
{
    image_recipe axes;
    *out_item = NULL;
    for (size_t i = 0; i < inputs->count; i++) {
        const input_item *item = &inputs->items[i];
        if (!item->places || item->n_images == 0) continue;
        d->in_width = item->places[0].x.n;
        d->in_height = item->places[0].y.n;
        *out_item = item;
        return CODE_DONE;
    }
    for (size_t i = 0; i < inputs->count; i++) {
        const input_item *item = &inputs->items[i];
        if (!item->has_dims || item->rank != 4) continue;
        int code = image_axes(o, item->port, item->rank, item->dims, &axes);
        if (code != CODE_DONE) return code;
        const int64_t height = item->dims[axes.height_axis],
                      width = item->dims[axes.height_axis + 1];
        if (height < 1 || width < 1 || height > INT32_MAX || width > INT32_MAX) continue;
        d->in_width = (int)width;
        d->in_height = (int)height;
        return CODE_DONE;
    }
    return fail_usage("--boxes and --segments need an input that is an image: the model has none");
}

static void make_rows(const input_item *item, size_t n_rows, detections *d)
{
    d->n_rows = n_rows;
    d->rows = must_alloc(n_rows, sizeof *d->rows);
    for (size_t i = 0; i < n_rows; i++) {
        detected_row *row = &d->rows[i];
        const bool is_image = item && i < item->n_images;
        if (is_image) row->image = item->images[i];
        row->place = is_image ? item->places[i]
                              : (image_place){.width = d->in_width,
                                              .height = d->in_height,
                                              .x = {.size = d->in_width, .n = d->in_width},
                                              .y = {.size = d->in_height, .n = d->in_height}};
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Moves boxes from the input to the image. */
static void move_back(const image_place *place, box_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        box *b = &list->items[i];
        b->left = place_back(&place->x, place->width, b->left);
        b->right = place_back(&place->x, place->width, b->right);
        b->top = place_back(&place->y, place->height, b->top);
        b->bottom = place_back(&place->y, place->height, b->bottom);
    }
}

static void read_boxes(const box_source *source, detections *d)
{
    const options *o = d->options;
    const double threshold =
        o->score_threshold >= 0 ? o->score_threshold : box_format_threshold(source->format);
    const double iou = o->nms >= 0 ? o->nms : box_format_iou(source->format);
    for (size_t i = 0; i < d->n_rows && i < source->n_rows; i++) {
        detected_row *row = &d->rows[i];
        box_source_read(source, i, threshold, d->in_width, d->in_height, &row->boxes);
        const size_t n_left_out = boxes_sort(&row->boxes, MAX_BOXES);
        if (n_left_out > 0)
            output_note("%zu boxes of lower scores are left out: --score-threshold is low",
                        n_left_out);
        if (iou < 1) boxes_suppress(&row->boxes, iou);
        move_back(&row->place, &row->boxes);
        boxes_limit(&row->boxes, row->place.width, row->place.height);
    }
}

int detections_read(const options *o, const input_set *inputs, const label_list *labels,
                    const named_value *outputs, size_t n_outputs, detections *out_detections)
{
    detections *d = out_detections;
    const input_item *item;
    box_source boxes = {0};
    segment_source segments = {0};
    const box_format *format;
    *d = (detections){
        .options = o, .labels = labels, .has_boxes = o->boxes != NULL, .has_segments = o->segments};
    if (!d->has_boxes && !d->has_segments) return CODE_DONE;
    int code = find_input(o, inputs, d, &item);
    if (code == CODE_DONE && d->has_boxes) code = box_format_find(o->boxes, &format);
    if (code == CODE_DONE && d->has_boxes)
        code = box_source_find(format, outputs, n_outputs, d->in_width, d->in_height, &boxes);
    if (code == CODE_DONE && boxes.n_classes > 0)
        code =
            labels_check(labels, boxes.boxes.value ? boxes.boxes.name : "cls_8", boxes.n_classes);
    if (code == CODE_DONE && d->has_segments)
        code = segment_source_find(outputs, n_outputs, &segments);
    if (code == CODE_DONE && segments.n_classes > 0)
        code = labels_check(labels, segments.output.name, segments.n_classes);
    if (code != CODE_DONE) return code;
    make_rows(item, boxes.n_rows > segments.n_rows ? boxes.n_rows : segments.n_rows, d);
    if (d->has_boxes) read_boxes(&boxes, d);
    for (size_t i = 0; i < d->n_rows && i < segments.n_rows; i++)
        segment_map_read(&segments, i, &d->rows[i].place, d->in_width, d->in_height,
                         &d->rows[i].map);
    return CODE_DONE;
}

void detections_free(detections *d)
{
    for (size_t i = 0; i < d->n_rows; i++) {
        boxes_free(&d->rows[i].boxes);
        segment_map_free(&d->rows[i].map);
    }
    free(d->rows);
    *d = (detections){0};
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* Returns the label of a class, or its number; in one of the buffers of `printable`. */
static const char *class_text(const detections *d, int64_t class_index)
{
    char number[32];
    const char *label = label_at(d->labels, class_index);
    if (label[0]) return printable(label);
    (void)snprintf(number, sizeof number, "%" PRId64, class_index);
    return printable(number);
}

/* Class 0 is the background of most models, and stays as it is. */
static void draw_map(const segment_map *map, drawing *to)
{
    for (int y = 0; map->classes && y < map->height && y < to->height; y++) {
        for (int x = 0; x < map->width && x < to->width; x++) {
            const int32_t c = map->classes[(size_t)y * (size_t)map->width + (size_t)x];
            if (c > 0) drawing_blend(to, x, y, c);
        }
    }
}

int detections_draw(const detections *d)
{
    const options *o = d->options;
    drawing image;
    if (!o || !o->draw || d->n_rows == 0 || !d->rows[0].image) return CODE_DONE;
    const detected_row *row = &d->rows[0];
    int code =
        drawing_load(row->image, o->max_pixels > 0 ? o->max_pixels : IMAGE_MAX_PIXELS, &image);
    if (code != CODE_DONE) return code;
    draw_map(&row->map, &image);
    /* the box of the highest score is on top */
    for (size_t i = row->boxes.count; i-- > 0;) {
        const box *b = &row->boxes.items[i];
        char *text = must_printf("%s %.2f", class_text(d, b->class_index), b->score);
        drawing_box(&image, b, text);
        free(text);
    }
    code = drawing_write(&image, o->draw);
    drawing_free(&image);
    return code;
}

/* ---- text ------------------------------------------------------------------------------------ */

static const char *row_text(const detections *d, size_t i)
{
    char number[32];
    if (d->rows[i].image) return printable(path_base(d->rows[i].image));
    (void)snprintf(number, sizeof number, "row %zu", i);
    return printable(number);
}

static void print_boxes(const detections *d)
{
    static const char *const headers[] = {"image", "class",  ">score", ">left",
                                          ">top",  ">right", ">bottom"};
    table t;
    size_t n = 0;
    table_begin(&t, 7, headers);
    for (size_t i = 0; i < d->n_rows; i++) {
        for (size_t k = 0; k < d->rows[i].boxes.count; k++, n++) {
            const box *b = &d->rows[i].boxes.items[k];
            table_cell(&t, MARK_NONE, "%s", k == 0 ? row_text(d, i) : "");
            table_cell(&t, MARK_NONE, "%s", class_text(d, b->class_index));
            table_cell(&t, MARK_NONE, "%.3f", b->score);
            table_cell(&t, MARK_NONE, "%.1f", b->left);
            table_cell(&t, MARK_NONE, "%.1f", b->top);
            table_cell(&t, MARK_NONE, "%.1f", b->right);
            table_cell(&t, MARK_NONE, "%.1f", b->bottom);
        }
    }
    if (n > 0) table_print(&t, stdout, 0);
    table_free(&t);
    for (size_t i = 0; i < d->n_rows; i++)
        if (d->rows[i].boxes.count == 0) (void)printf("%s: no boxes\n", row_text(d, i));
}

static void print_segments(const detections *d)
{
    static const char *const headers[] = {"image", "class", ">pixels", ">share"};
    table t;
    table_begin(&t, 4, headers);
    for (size_t i = 0; i < d->n_rows; i++) {
        const segment_map *map = &d->rows[i].map;
        const double all = (double)map->width * map->height;
        bool is_first = true;
        for (size_t c = 0; c < map->n_classes; c++) {
            if (map->counts[c] == 0) continue;
            table_cell(&t, MARK_NONE, "%s", is_first ? row_text(d, i) : "");
            table_cell(&t, MARK_NONE, "%s", class_text(d, (int64_t)c));
            table_cell(&t, MARK_NONE, "%" PRId64, map->counts[c]);
            table_cell(&t, MARK_NONE, "%.1f %%", 100 * (double)map->counts[c] / all);
            is_first = false;
        }
    }
    table_print(&t, stdout, 0);
    table_free(&t);
}

void detections_print(const detections *d)
{
    if (d->has_boxes) print_boxes(d);
    if (d->has_segments) print_segments(d);
    if (d->options && d->options->draw) (void)printf("drawn to %s\n", d->options->draw);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *image_json(const detected_row *row)
{
    return row->image ? output_json_text(row->image) : json_null();
}

static json_t *boxes_json(const detections *d, const detected_row *row)
{
    json_t *list = json_array();
    for (size_t i = 0; i < row->boxes.count; i++) {
        const box *b = &row->boxes.items[i];
        (void)json_array_append_new(list,
                                    json_pack("{s:I, s:o, s:f, s:f, s:f, s:f, s:f}", "class",
                                              (json_int_t)b->class_index, "label",
                                              output_json_text(label_at(d->labels, b->class_index)),
                                              "score", b->score, "left", b->left, "top", b->top,
                                              "right", b->right, "bottom", b->bottom));
    }
    return json_pack("{s:o, s:o}", "image", image_json(row), "boxes", list);
}

static json_t *segments_json(const detections *d, const detected_row *row)
{
    json_t *list = json_array();
    for (size_t c = 0; c < row->map.n_classes; c++) {
        if (row->map.counts[c] == 0) continue;
        (void)json_array_append_new(list,
                                    json_pack("{s:I, s:o, s:I}", "class", (json_int_t)c, "label",
                                              output_json_text(label_at(d->labels, (int64_t)c)),
                                              "pixels", (json_int_t)row->map.counts[c]));
    }
    return json_pack("{s:o, s:i, s:i, s:o}", "image", image_json(row), "width", row->map.width,
                     "height", row->map.height, "classes", list);
}

void detections_add_json(const detections *d, json_t *document)
{
    if (d->has_boxes) {
        json_t *list = json_array();
        for (size_t i = 0; i < d->n_rows; i++)
            (void)json_array_append_new(list, boxes_json(d, &d->rows[i]));
        (void)json_object_set_new(document, "boxes", list);
    }
    if (d->has_segments) {
        json_t *list = json_array();
        for (size_t i = 0; i < d->n_rows; i++)
            (void)json_array_append_new(list, segments_json(d, &d->rows[i]));
        (void)json_object_set_new(document, "segments", list);
    }
}
