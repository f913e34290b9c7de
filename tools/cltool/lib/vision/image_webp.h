/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes WebP images that do not move, by libwebp. Without it at build time, files are refused.
 */
#ifndef CLTOOL_IMAGE_WEBP_H
#define CLTOOL_IMAGE_WEBP_H

#include "resample.h"

#include <stddef.h>
#include <stdio.h>

/* Returns whether the first 12 bytes of a file are those of WebP. */
bool webp_is_head(const unsigned char head[12]);
/* Gets the size of the image of an open file. A file of more than max_pixels, one that is cut or
 * damaged, and an animation are errors that name `path`. */
int webp_size(FILE *stream, const char *path, size_t max_pixels, int *out_width, int *out_height);
/* Decodes the image with image->channels; its pixels are freed by raster_free. */
int webp_read(FILE *stream, const char *path, size_t max_pixels, raster *image);

#endif
