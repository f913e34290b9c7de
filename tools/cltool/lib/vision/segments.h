/* SPDX-License-Identifier: Apache-2.0
 *
 * --segments: the class of each pixel of an image.
 */
#ifndef CLTOOL_SEGMENTS_H
#define CLTOOL_SEGMENTS_H

#include "box_formats.h"
#include "place.h"

/* An output that has a class for each pixel: scores [N,C,H,W], of which the largest counts, or one
 * that is above 0.5 where C is 1; or integers [N,H,W] or [N,1,H,W]. */
typedef struct segment_source {
    named_value output;
    size_t n_rows, n_classes; /* n_classes 0: not known */
    int64_t height, width;
} segment_source;

/* The classes of the pixels of an image. */
typedef struct segment_map {
    int width, height;
    int32_t *classes; /* [height, width]; -1: none, outside of the input */
    int64_t *counts;  /* pixels of each class */
    size_t n_classes;
} segment_map;

/* Finds the output; that there is none is an error that says why. */
int segment_source_find(const named_value *outputs, size_t n, segment_source *out_source);
/* Gets the classes of the pixels of row `row`: of the image that is at this place in an input of
 * in_width x in_height, each by the nearest element. */
void segment_map_read(const segment_source *source, size_t row, const image_place *place,
                      int in_width, int in_height, segment_map *out_map);
void segment_map_free(segment_map *map);

#endif
