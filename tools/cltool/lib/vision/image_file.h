/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes image files by the library (clgraph/image.h): PNG, JPEG, WebP, TIFF, JPEG 2000, BMP and
 * PNM. Where it has no decoder for them, stb_image decodes PNG, JPEG and BMP.
 */
#ifndef CLTOOL_IMAGE_FILE_H
#define CLTOOL_IMAGE_FILE_H

#include "resample.h"

#include <stddef.h>

/* The default limit of an image's pixels: decoding takes up to three times their bytes, on each of
 * the threads that decode. */
#define IMAGE_MAX_PIXELS 100000000

/* Reads the size of an image from its header. An image of more than max_pixels is an error. */
int image_file_size(const char *path, size_t max_pixels, int *out_width, int *out_height);
/* Decodes an image of at most max_pixels, with 1, 3 or 4 channels whatever the file has: gray by
 * the weights of BT.601, opaque where it has no alpha. Of an animation, reads the default image. */
int image_file_read(const char *path, int channels, size_t max_pixels, raster *out_image);
void raster_free(raster *image);

#endif
