/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements box_formats.h: one table of formats, the search for their outputs, and one reader.
 */
#include "box_formats.h"

#include "names.h"
#include "options.h"
#include "output.h"
#include "stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum box_corners { CENTRE_SIZE, CORNERS, CORNERS_YX } box_corners;
typedef enum box_unit {
    UNIT_PIXELS, /* of the input */
    UNIT_INPUT,  /* 0 to 1 for the input's width and height */
    UNIT_CELLS   /* of grids of strides 8, 16, 32: offsets in cells, logarithms of sizes */
} box_unit;
typedef enum box_scores {
    SCORES_OBJECT,     /* in the same output: objectness, then classes, which are multiplied */
    SCORES_CLASSES,    /* in the same output: classes */
    SCORES_LABELLED,   /* in the same output: a score and the class */
    SCORES_LIST,       /* outputs of a score for each box, and of the classes */
    SCORES_BACKGROUND, /* an output of scores of classes, the first of which is background */
    SCORES_NONE_LAST,  /* an output of logits, the last of which is no object: softmax */
    SCORES_SIGMOID,    /* an output of logits: sigmoid */
    SCORES_LEVELS      /* outputs cls_N, obj_N, bbox_N for strides N */
} box_scores;

struct box_format {
    const char *name;
    box_corners corners;
    box_unit unit;
    box_scores scores;
    bool is_transposed; /* [N, 4 + C, P] */
    double threshold, iou;
    const char *what;
};

static const box_format formats[] = {
    {"yolov5", CENTRE_SIZE, UNIT_PIXELS, SCORES_OBJECT, false, 0.25, 0.45,
     "[N,P,5+C]: centre, size, objectness, classes (YOLOv5 to v7)"},
    {"yolov8", CENTRE_SIZE, UNIT_PIXELS, SCORES_CLASSES, true, 0.25, 0.45,
     "[N,4+C,P]: centre, size, classes (YOLOv8, v9, v11)"},
    {"yolov10", CORNERS, UNIT_PIXELS, SCORES_LABELLED, false, 0.25, 1,
     "[N,P,6]: corners, score, class (YOLOv10, exports with nms)"},
    {"yolox", CENTRE_SIZE, UNIT_CELLS, SCORES_OBJECT, false, 0.3, 0.45,
     "[N,P,5+C]: cells of grids of strides 8, 16, 32, objectness, classes"},
    {"ssd", CORNERS, UNIT_INPUT, SCORES_LIST, false, 0.5, 1,
     "boxes [N,P,4] of 0 to 1, scores [N,P], labels [N,P]"},
    {"tf-ssd", CORNERS_YX, UNIT_INPUT, SCORES_LIST, false, 0.5, 1,
     "as ssd, with y before x (TensorFlow's detection_boxes)"},
    {"torchvision", CORNERS, UNIT_PIXELS, SCORES_LIST, false, 0.5, 1,
     "boxes [P,4] in pixels, scores [P], labels [P]"},
    {"ultraface", CORNERS, UNIT_INPUT, SCORES_BACKGROUND, false, 0.7, 0.3,
     "boxes [N,P,4] of 0 to 1, scores [N,P,1+C], the first of the background"},
    {"yunet", CENTRE_SIZE, UNIT_CELLS, SCORES_LEVELS, false, 0.6, 0.3,
     "cls_S, obj_S [N,P,1] and bbox_S [N,P,4] for strides S of 8, 16, 32"},
    {"detr", CENTRE_SIZE, UNIT_INPUT, SCORES_NONE_LAST, false, 0.7, 1,
     "boxes [N,P,4], centre and size of 0 to 1, logits [N,P,C+1], the last of no object"},
    {"rtdetr", CENTRE_SIZE, UNIT_INPUT, SCORES_SIGMOID, false, 0.5, 1,
     "boxes [N,P,4], centre and size of 0 to 1, logits [N,P,C], independent of each other"},
};
#define N_FORMATS (sizeof formats / sizeof *formats)

static const int strides[3] = {8, 16, 32};

int box_format_find(const char *name, const box_format **out_format)
{
    const char *names[N_FORMATS + 1] = {NULL};
    size_t i = 0;
    for (size_t k = 0; k < N_FORMATS; k++) names[k] = formats[k].name;
    const int code = option_word("--boxes", name, names, sizeof *names, &i);
    *out_format = &formats[i];
    return code;
}

double box_format_threshold(const box_format *format) { return format->threshold; }

double box_format_iou(const box_format *format) { return format->iou; }

bool box_formats_are_listed(const options *o) { return o->boxes && strcmp(o->boxes, "list") == 0; }

int box_formats_print(const options *o)
{
    json_t *list = json_array();
    for (size_t i = 0; i < N_FORMATS; i++) {
        const box_format *f = &formats[i];
        if (o->json)
            (void)json_array_append_new(list, json_pack("{s:s, s:s, s:f, s:f}", "name", f->name,
                                                        "outputs", f->what, "score_threshold",
                                                        f->threshold, "nms", f->iou));
        else
            (void)printf("%s\n    %s\n    --score-threshold %g --nms %g\n", f->name, f->what,
                         f->threshold, f->iou);
    }
    if (o->json) return output_json(json_pack("{s:o}", "formats", list));
    json_decref(list);
    return CODE_DONE;
}

/* ---- outputs --------------------------------------------------------------------------------- */

static int64_t dim(const clg_value *v, size_t from_last)
{
    const size_t rank = clg_value_rank(v);
    return from_last < rank ? clg_value_dims(v)[rank - 1 - from_last] : 1;
}

static bool has_rank(const named_value *v, size_t least, size_t most)
{
    return clg_value_get_kind(v->value) == CLG_VALUE_TENSOR &&
           dtype_is_numeric(clg_value_dtype(v->value)) && clg_value_rank(v->value) >= least &&
           clg_value_rank(v->value) <= most;
}

static bool is_named(const named_value *v, const char *part) { return strstr(v->name, part); }

/* Returns the output that has boxes of four numbers: the one whose name says so, else the first. */
static const named_value *find_boxes(const named_value *outputs, size_t n)
{
    const named_value *found = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!has_rank(&outputs[i], 2, 3) || dim(outputs[i].value, 0) != 4) continue;
        if (!found || (is_named(&outputs[i], "box") && !is_named(found, "box")))
            found = &outputs[i];
    }
    return found;
}

/* Returns the output of scores of classes for each box. */
static const named_value *find_classes(const named_value *outputs, size_t n,
                                       const named_value *boxes)
{
    for (size_t i = 0; i < n; i++) {
        const named_value *v = &outputs[i];
        if (v != boxes && has_rank(v, 2, 3) &&
            clg_value_rank(v->value) == clg_value_rank(boxes->value) &&
            dim(v->value, 1) == dim(boxes->value, 1) && dim(v->value, 2) == dim(boxes->value, 2))
            return v;
    }
    return NULL;
}

/* Returns the output of one number for each box that is, or is not, of labels. */
static const named_value *find_list(const named_value *outputs, size_t n, const named_value *boxes,
                                    bool is_label)
{
    const named_value *found = NULL;
    for (size_t i = 0; i < n; i++) {
        const named_value *v = &outputs[i];
        if (!has_rank(v, 1, 2) || clg_value_rank(v->value) + 1 != clg_value_rank(boxes->value) ||
            dim(v->value, 0) != dim(boxes->value, 1) || dim(v->value, 1) != dim(boxes->value, 2))
            continue;
        const bool says_label = is_named(v, "label") || is_named(v, "class");
        const bool fits = is_label ? says_label || dtype_is_integral(clg_value_dtype(v->value))
                                   : !says_label && dtype_is_floating(clg_value_dtype(v->value));
        if (fits && (!found || is_named(v, "score"))) found = v;
    }
    return found;
}

static int fail_outputs(const box_format *format, const named_value *outputs, size_t n)
{
    char *list = must_copy("");
    for (size_t i = 0; i < n && i < 12; i++) {
        const bool is_tensor = clg_value_get_kind(outputs[i].value) == CLG_VALUE_TENSOR;
        char *longer =
            must_printf("%s%s'%s' %s", list, i == 0 ? "" : ", ", printable(outputs[i].name),
                        is_tensor ? dims_text(clg_value_rank(outputs[i].value),
                                              clg_value_dims(outputs[i].value))
                                  : value_kind_name(clg_value_get_kind(outputs[i].value)));
        free(list);
        list = longer;
    }
    const int code = fail(CODE_USAGE, CLG_ERROR_SHAPE, "--boxes %s: no outputs of %s; there are %s",
                          format->name, format->what, list);
    fail_hint("'cltool run --boxes list' shows the formats");
    free(list);
    return code;
}

/* Returns the number of cells of the grids of all strides. */
static int64_t n_cells(int in_width, int in_height)
{
    int64_t n = 0;
    for (size_t i = 0; i < 3; i++) n += (int64_t)(in_width / strides[i]) * (in_height / strides[i]);
    return n;
}

static bool find_levels(const named_value *outputs, size_t n, int in_width, int in_height,
                        box_source *s)
{
    static const char *const parts[3] = {"cls", "obj", "bbox"};
    size_t n_found = 0;
    for (size_t level = 0; level < 3; level++) {
        for (size_t part = 0; part < 3; part++) {
            char name[32];
            (void)snprintf(name, sizeof name, "%s_%d", parts[part], strides[level]);
            const int64_t cells =
                (int64_t)(in_width / strides[level]) * (in_height / strides[level]);
            for (size_t i = 0; i < n; i++) {
                if (strcmp(outputs[i].name, name) != 0 || !has_rank(&outputs[i], 2, 3) ||
                    dim(outputs[i].value, 1) != cells ||
                    dim(outputs[i].value, 0) != (part < 2 ? 1 : 4))
                    continue;
                s->levels[level][part] = outputs[i];
                n_found++;
            }
        }
    }
    s->n_classes = 1;
    return n_found == 9;
}

/* Finds an output that has all in one: [N,P,K], or [N,K,P]. */
static bool find_single(const named_value *outputs, size_t n, int in_width, int in_height,
                        box_source *s)
{
    const box_format *f = s->format;
    const int64_t n_before = f->scores == SCORES_OBJECT ? 5 : f->scores == SCORES_CLASSES ? 4 : 6;
    for (size_t i = 0; i < n; i++) {
        if (!has_rank(&outputs[i], 2, 3)) continue;
        const clg_value *v = outputs[i].value;
        const int64_t columns = dim(v, f->is_transposed ? 1 : 0);
        const int64_t boxes = dim(v, f->is_transposed ? 0 : 1);
        if (f->scores == SCORES_LABELLED ? columns != 6 : columns <= n_before) continue;
        if (f->unit == UNIT_CELLS && boxes != n_cells(in_width, in_height)) continue;
        s->boxes = outputs[i];
        s->n_boxes = (size_t)boxes;
        s->n_classes = f->scores == SCORES_LABELLED ? 0 : (size_t)(columns - n_before);
        return true;
    }
    return false;
}

static bool find_separate(const named_value *outputs, size_t n, box_source *s)
{
    const named_value *boxes = find_boxes(outputs, n), *scores = NULL, *labels = NULL;
    const bool is_list = s->format->scores == SCORES_LIST;
    if (boxes && is_list) {
        scores = find_list(outputs, n, boxes, false);
        labels = find_list(outputs, n, boxes, true);
    } else if (boxes) {
        scores = find_classes(outputs, n, boxes);
    }
    if (!scores || (is_list && !labels)) return false;
    s->boxes = *boxes;
    s->scores = *scores;
    if (labels) s->labels = *labels;
    s->n_boxes = (size_t)dim(boxes->value, 1);
    const size_t columns = (size_t)dim(scores->value, 0);
    const bool has_extra =
        s->format->scores == SCORES_BACKGROUND || s->format->scores == SCORES_NONE_LAST;
    s->n_classes = is_list ? 0 : has_extra ? columns - 1 : columns;
    return is_list || columns > has_extra;
}

int box_source_find(const box_format *format, const named_value *outputs, size_t n, int in_width,
                    int in_height, box_source *out_source)
{
    box_source *s = out_source;
    *s = (box_source){.format = format};
    bool is_found = false;
    switch (format->scores) {
    case SCORES_LEVELS: is_found = find_levels(outputs, n, in_width, in_height, s); break;
    case SCORES_OBJECT:
    case SCORES_CLASSES:
    case SCORES_LABELLED: is_found = find_single(outputs, n, in_width, in_height, s); break;
    default: is_found = find_separate(outputs, n, s);
    }
    if (!is_found) return fail_outputs(format, outputs, n);
    const clg_value *first =
        format->scores == SCORES_LEVELS ? s->levels[0][2].value : s->boxes.value;
    s->n_rows = (size_t)dim(first, 2);
    return CODE_DONE;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Returns a number of box p in a row of an output. */
static double at(const box_source *s, const clg_value *v, size_t row, size_t p, size_t column)
{
    const int64_t n_last = dim(v, 0), n_before = dim(v, 1);
    const int64_t i = s->format->is_transposed ? (int64_t)column * n_last + (int64_t)p
                                               : (int64_t)p * n_last + (int64_t)column;
    return clg_value_get_double(v, (int64_t)row * n_last * n_before + i);
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* Returns the largest of n columns of box p from `first` on, and its index from 0. */
static double largest(const box_source *s, const clg_value *v, size_t row, size_t p, size_t first,
                      size_t n, int64_t *out_index)
{
    double best = -INFINITY;
    *out_index = 0;
    for (size_t c = 0; c < n; c++) {
        const double x = at(s, v, row, p, first + c);
        if (!(x > best)) continue;
        best = x;
        *out_index = (int64_t)c;
    }
    return best;
}

/* Returns the best class of box p and its score. */
static double score_of(const box_source *s, size_t row, size_t p, int64_t *out_class)
{
    const clg_value *boxes = s->boxes.value, *scores = s->scores.value;
    const size_t n = s->n_classes;
    double best, sum = 0;
    *out_class = 0;
    switch (s->format->scores) {
    case SCORES_OBJECT:
        best = largest(s, boxes, row, p, 5, n, out_class);
        return at(s, boxes, row, p, 4) * best;
    case SCORES_CLASSES: return largest(s, boxes, row, p, 4, n, out_class);
    case SCORES_BACKGROUND: return largest(s, scores, row, p, 1, n, out_class);
    case SCORES_SIGMOID: return sigmoid(largest(s, scores, row, p, 0, n, out_class));
    case SCORES_NONE_LAST:
        best = largest(s, scores, row, p, 0, n, out_class);
        for (size_t c = 0; c <= n; c++) sum += exp(at(s, scores, row, p, c) - best);
        return 1 / sum;
    case SCORES_LABELLED: best = at(s, boxes, row, p, 5); break;
    default: best = clg_value_get_double(s->labels.value, (int64_t)(row * s->n_boxes + p));
    }
    /* a class that is written as a number: one that no integer holds counts as none */
    if (!(best >= 0 && best < 1e9)) return NAN;
    *out_class = (int64_t)best;
    return s->format->scores == SCORES_LABELLED
               ? at(s, boxes, row, p, 4)
               : clg_value_get_double(scores, (int64_t)(row * s->n_boxes + p));
}

/* Returns a box of four numbers in units of x and y. */
static box make_box(box_corners corners, const double n[4], double x_unit, double y_unit)
{
    if (corners == CENTRE_SIZE)
        return (box){.left = (n[0] - n[2] / 2) * x_unit,
                     .top = (n[1] - n[3] / 2) * y_unit,
                     .right = (n[0] + n[2] / 2) * x_unit,
                     .bottom = (n[1] + n[3] / 2) * y_unit};
    const size_t x = corners == CORNERS_YX ? 1 : 0, y = 1 - x;
    return (box){.left = n[x] * x_unit,
                 .top = n[y] * y_unit,
                 .right = n[2 + x] * x_unit,
                 .bottom = n[2 + y] * y_unit};
}

/* Returns the box of a cell: its offsets from the cell and the logarithms of its size, in cells. */
static box cell_box(const double n[4], size_t cell, int stride, int in_width)
{
    const size_t columns = (size_t)(in_width / stride);
    const size_t column = cell % columns, line = cell / columns;
    const double decoded[4] = {n[0] + (double)column, n[1] + (double)line, exp(n[2]), exp(n[3])};
    return make_box(CENTRE_SIZE, decoded, stride, stride);
}

static void read_levels(const box_source *s, size_t row, double threshold, int in_width,
                        box_list *to)
{
    for (size_t level = 0; level < 3; level++) {
        const named_value *parts = s->levels[level];
        for (size_t p = 0; p < (size_t)dim(parts[2].value, 1); p++) {
            const double class_score = fmin(fmax(at(s, parts[0].value, row, p, 0), 0), 1);
            const double object = fmin(fmax(at(s, parts[1].value, row, p, 0), 0), 1);
            double numbers[4];
            for (size_t i = 0; i < 4; i++) numbers[i] = at(s, parts[2].value, row, p, i);
            box b = cell_box(numbers, p, strides[level], in_width);
            b.score = sqrt(class_score * object);
            if (b.score >= threshold) boxes_add(to, b);
        }
    }
}

/* Returns the stride of cell p of the grids of all strides, and the cell's index in its grid. */
static int find_cell(size_t p, int in_width, int in_height, size_t *out_cell)
{
    size_t i = 0;
    *out_cell = p;
    for (; i < 2; i++) {
        const size_t n = (size_t)(in_width / strides[i]) * (size_t)(in_height / strides[i]);
        if (*out_cell < n) break;
        *out_cell -= n;
    }
    return strides[i];
}

void box_source_read(const box_source *source, size_t row, double threshold, int in_width,
                     int in_height, box_list *to)
{
    const box_format *f = source->format;
    const bool is_part = f->unit == UNIT_INPUT;
    if (f->scores == SCORES_LEVELS) {
        read_levels(source, row, threshold, in_width, to);
        return;
    }
    for (size_t p = 0; p < source->n_boxes; p++) {
        int64_t class_index;
        double numbers[4];
        const double score = score_of(source, row, p, &class_index);
        if (!(score >= threshold)) continue;
        for (size_t i = 0; i < 4; i++) numbers[i] = at(source, source->boxes.value, row, p, i);
        size_t cell;
        const int stride = find_cell(p, in_width, in_height, &cell);
        box b = f->unit == UNIT_CELLS ? cell_box(numbers, cell, stride, in_width)
                                      : make_box(f->corners, numbers, is_part ? in_width : 1,
                                                 is_part ? in_height : 1);
        b.score = score;
        b.class_index = class_index;
        boxes_add(to, b);
    }
}
