/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws boxes and classes of pixels on images, and writes them as PNG.
 */
#ifndef CLTOOL_DRAWING_H
#define CLTOOL_DRAWING_H

#include "boxes.h"

/* An image of 8 bits in red, green and blue. */
typedef struct drawing {
    int width, height;
    unsigned char *pixels; /* [height, width, 3] */
} drawing;

/* Loads an image file of at most max_pixels. */
int drawing_load(const char *path, size_t max_pixels, drawing *out_drawing);
void drawing_free(drawing *d);
/* Draws the outline of a box in the colour of its class, with the text in its corner. */
void drawing_box(drawing *d, const box *b, const char *text);
/* Blends half of the colour of a class into a pixel. */
void drawing_blend(drawing *d, int x, int y, int64_t class_index);
/* Writes the image as PNG, atomically. */
int drawing_write(const drawing *d, const char *path);

#endif
