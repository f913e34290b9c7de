/* SPDX-License-Identifier: Apache-2.0
 *
 * The results of --boxes and --segments: of outputs of a model, in pixels of the images that it was
 * given, or of its input where that was no image.
 */
#ifndef CLTOOL_DETECTIONS_H
#define CLTOOL_DETECTIONS_H

#include "box_formats.h"
#include "inputs.h"
#include "scores.h"
#include "segments.h"

typedef struct detected_row {
    const char *image; /* its path; NULL: the input was no image */
    image_place place;
    box_list boxes;
    segment_map map;
} detected_row;

typedef struct detections {
    const options *options;
    const label_list *labels;
    bool has_boxes, has_segments;
    int in_width, in_height; /* of the model's input */
    detected_row *rows;
    size_t n_rows;
} detections; /* all zeros is valid and empty */

/* Checks --boxes, --segments, --draw and what goes with them, before any work. */
int detections_check(const options *o);
/* Reads the outputs of a run. The options, inputs and labels are borrowed. */
int detections_read(const options *o, const input_set *inputs, const label_list *labels,
                    const named_value *outputs, size_t n_outputs, detections *out_detections);
/* Draws on the image, and writes it, for --draw. */
int detections_draw(const detections *d);
void detections_print(const detections *d);
/* Adds "boxes" and "segments", lists with an element for each row, to a document. */
void detections_add_json(const detections *d, json_t *document);
void detections_free(detections *d);

#endif
