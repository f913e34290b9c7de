/* SPDX-License-Identifier: Apache-2.0
 *
 * Where an image is in an input of a model: --resize, --crop and --pad, and the way back from
 * positions in the input to positions in the image.
 */
#ifndef CLTOOL_PLACE_H
#define CLTOOL_PLACE_H

#include "options.h"
#include "resample.h"

typedef enum resize_kind {
    RESIZE_NONE,
    RESIZE_STRETCH, /* to the input's size */
    RESIZE_CROP,    /* keeps the ratio and covers the input: the centre is taken */
    RESIZE_PAD,     /* keeps the ratio and fits into the input, in its centre */
    RESIZE_CORNER,  /* as pad, in the corner at the top left, with sizes rounded down */
    RESIZE_SHORT    /* the shorter side to a size, keeping the ratio */
} resize_kind;

typedef struct resize_rule {
    resize_kind kind;
    int height, width;           /* of inputs whose size is free; 0: that of the first image */
    int64_t short_side, maximum; /* of RESIZE_SHORT; maximum: of the longer side, or 0 */
    int crop_height, crop_width; /* 0: no crop */
    double gray;                 /* of what is around an image, from 0 to 1 */
    resample_filter filter;
} resize_rule;

/* A resized image of a width and height before, of which the input has a part. */
typedef struct image_place {
    int width, height;
    resample_axis x, y;
} image_place;

/* Reads the options; wrong words are usage errors. */
int resize_read(const options *o, resize_rule *out_rule);
/* Returns whether images of any size fit into an input. */
bool resize_fits_all(const resize_rule *rule);
/* Gets the size of the input that an image of this size asks for, where the input's is free. */
void place_size(const resize_rule *rule, int width, int height, int *out_width, int *out_height);
/* Returns the place of an image of this size in an input of in_width x in_height. */
image_place place_image(const resize_rule *rule, int width, int height, int in_width,
                        int in_height);
/* Returns the position in the image, of 0 to its width or height in `size` elements before it was
 * resized, of a position in the input. */
double place_back(const resample_axis *axis, int size, double at);

#endif
