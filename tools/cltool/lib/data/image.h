/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads images as tensors.
 */
#ifndef CLTOOL_IMAGE_H
#define CLTOOL_IMAGE_H

#include "inputs.h"

/* How pixels become elements of a tensor. An axis that is missing is -1; width follows height. */
typedef struct image_recipe {
    bool is_nchw;
    int batch_axis, channel_axis, height_axis;
    int channels;
    bool swaps; /* red and blue, for bgr */
    double mean[4], std[4], scale;
    bool rounds;
    const char *resize;
} image_recipe;

/* Derives the conversion from the options, and sets those dims of the item that are -1 from the
 * number of images and the first of them. */
int image_begin(const options *o, input_item *item, image_recipe *out_recipe);
/* Loads images first..first+n as float32, one row each. May be called on any thread. */
int image_rows(const image_recipe *r, const input_item *item, size_t first, size_t n, float *to);
/* Prints a note about the layout, and whether it was guessed. */
void image_note(const options *o, const input_item *item, const image_recipe *r);
/* Loads the item's images into its value. */
int image_load(const options *o, input_item *item);

#endif
