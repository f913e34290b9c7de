/* SPDX-License-Identifier: Apache-2.0
 *
 * --boxes FORMAT: how detectors write boxes and scores to their outputs.
 */
#ifndef CLTOOL_BOX_FORMATS_H
#define CLTOOL_BOX_FORMATS_H

#include "boxes.h"
#include "options.h"

typedef struct named_value {
    const char *name;
    const clg_value *value;
} named_value;

typedef struct box_format box_format;

/* Finds a format by its name; another name is a usage error that lists them. */
int box_format_find(const char *name, const box_format **out_format);
/* The defaults of --score-threshold and --nms; an iou of 1 suppresses nothing. */
double box_format_threshold(const box_format *format);
double box_format_iou(const box_format *format);

/* The outputs of a model in their roles. */
typedef struct box_source {
    const box_format *format;
    named_value boxes, scores, labels; /* value NULL: the format has no such output */
    named_value levels[3][3];          /* of strides 8, 16 and 32: scores, objectness, boxes */
    size_t n_rows, n_boxes, n_classes; /* n_classes 0: not known */
} box_source;

/* Finds the outputs; that there are none of the shapes of the format is an error which names
 * them. The input is in_width x in_height. */
int box_source_find(const box_format *format, const named_value *outputs, size_t n, int in_width,
                    int in_height, box_source *out_source);
/* Appends the boxes of a row with scores of at least `threshold`, in pixels of the input. */
void box_source_read(const box_source *source, size_t row, double threshold, int in_width,
                     int in_height, box_list *to);
/* Returns whether the table of formats is requested: --boxes list. */
bool box_formats_are_listed(const options *o);
/* Prints the table, as text or JSON. */
int box_formats_print(const options *o);

#endif
