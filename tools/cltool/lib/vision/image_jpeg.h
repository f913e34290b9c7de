/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes JPEG images by libjpeg-turbo, with the numbers of Pillow. Where it is missing at build
 * time, stb_image decodes them.
 */
#ifndef CLTOOL_IMAGE_JPEG_H
#define CLTOOL_IMAGE_JPEG_H

#include "resample.h"

#include <stdio.h>

/* Returns whether jpeg_read decodes. */
bool jpeg_is_built(void);
/* Decodes the image of an open file with image->channels; its pixels are freed by raster_free. The
 * size in its header must be image->width x image->height, which the caller has checked. A file
 * that is cut or damaged is an error that names `path`. */
int jpeg_read(FILE *stream, const char *path, raster *image);

#endif
