/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads image files as tensors.
 */
#ifndef CLTOOL_IMAGE_H
#define CLTOOL_IMAGE_H

#include "inputs.h"
#include "place.h"

/* How pixels become elements of a tensor: (pixel * scale - mean) / std, with pixels from 0 to 1. An
 * axis that is missing is -1; the axis of width follows that of height. */
typedef struct image_recipe {
    bool is_nchw;
    int batch_axis, channel_axis, height_axis;
    int channels;
    bool swaps; /* exchange red and blue, for bgr */
    double mean[4], std[4], scale;
    bool rounds;           /* to whole numbers, for integer inputs */
    resize_rule resize;    /* if it does not fit all images, one of another size is an error */
    size_t max_pixels;     /* of a file; more are an error */
    float of_byte[4][256]; /* for image_bytes: the element of each byte, in each channel */
} image_recipe;

/* Derives the conversion from the options. Sets those dimensions of the item that are -1, from the
 * number of images and the size of the first one; skips_bad: of the first one that can be read. If
 * images are not resized, that one must have the input's size. */
int image_begin(const options *o, input_item *item, bool skips_bad, image_recipe *out_recipe);
/* Loads image `row` as float32, image_row_elems elements. out_place, which may be NULL, gets its
 * place in the input. May be called on any thread. */
int image_row(const image_recipe *r, const input_item *item, size_t row, float *to,
              image_place *out_place);
size_t image_row_elems(const image_recipe *r, const input_item *item);
/* Derives the axes of images in rows of numbers, which are not converted. */
int image_axes(const options *o, const clg_port *port, size_t rank, const int64_t *dims,
               image_recipe *out_recipe);
/* Derives the conversion of bytes of 0 to 255 in the order of the input's elements: scale, mean and
 * std alone. dims: of rows of the input, rank of them; the first is the number of rows. */
int image_bytes_begin(const options *o, const clg_port *port, size_t rank, const int64_t *dims,
                      image_recipe *out_recipe);
/* Converts the n_elems bytes of one row. */
void image_bytes(const image_recipe *r, const unsigned char *bytes, size_t n_elems, float *to);
/* Prints a note that tells the layout, and whether it was guessed. */
void image_note(const options *o, const input_item *item, const image_recipe *r);
/* Loads all images of the item into its value, and sets its places. */
int image_load(const options *o, input_item *item);

#endif
