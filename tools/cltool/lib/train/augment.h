/* SPDX-License-Identifier: Apache-2.0
 *
 * Augmentation of images: random changes of rows that are trained with. What is drawn follows from
 * (seed, epoch, row) alone, so that a training that goes on draws the same.
 */
#ifndef CLTOOL_AUGMENT_H
#define CLTOOL_AUGMENT_H

#include "dataset.h"

#define AUGMENT_MAX 8 /* changes */

typedef enum augment_kind {
    AUGMENT_FLIP, /* exchanges left and right, of every other image */
    AUGMENT_CROP, /* cuts out the image's size after black was added on all sides */
    AUGMENT_SHIFT /* moves the image; the pixels at its edge are repeated */
} augment_kind;

typedef struct augment {
    uint64_t seed;
    size_t n;
    augment_kind kinds[AUGMENT_MAX];
    size_t pixels[AUGMENT_MAX]; /* of padding, or the longest shift along each axis */
} augment;                      /* n 0: nothing is changed */

/* Parses "flip,crop:4,shift:2"; NULL: nothing. Changes are made in this order. */
int augment_read(const char *text, uint64_t seed, augment *out_augment);
/* Checks that one of the inputs at least has images, that all of them are larger than what is cut
 * off or moved, and that `target`, which may be NULL, has none: it would not be changed alike. */
int augment_check(const augment *a, const input_set *inputs, const char *target);
/* Changes one row of an input in place; rows without an image stay as they are. Inputs get the same
 * changes in the same row and epoch. scratch: size_bytes. Any thread. */
void augment_row(const augment *a, const dataset *rows, uint64_t epoch, int64_t row, char *data,
                 char *scratch, size_t size_bytes);

#endif
