/* SPDX-License-Identifier: Apache-2.0
 *
 * Images as tensors.
 */
#ifndef CLTOOL_IMAGE_H
#define CLTOOL_IMAGE_H

#include "inputs.h"

/* Conversion from pixels to elements. Missing axes are -1; width follows height. */
typedef struct image_recipe {
    bool is_nchw;
    int batch_axis, channel_axis, height_axis;
    int channels;
    bool swaps; /* bgr */
    double mean[4], std[4], scale;
    bool rounds;
    const char *resize;
} image_recipe;

/* Reads the options, and sets dims of the item that are -1 from the number of images and the first
 * of them. */
int image_begin(const options *o, input_item *item, image_recipe *out_recipe);
/* Loads images first..first+n as float32, each the elements of one row. Any thread. */
int image_rows(const image_recipe *r, const input_item *item, size_t first, size_t n, float *to);
/* Notes the layout, and the parts of it that were guessed. */
void image_note(const options *o, const input_item *item, const image_recipe *r);
/* Loads the item's images into its value. */
int image_load(const options *o, input_item *item);

#endif
