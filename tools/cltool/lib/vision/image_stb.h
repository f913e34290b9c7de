/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes PNG, JPEG and BMP files by stb_image, where the library has no module for images, or the
 * module no library for the format. A file that stb_image would decode in part or with wrong
 * colours is refused.
 */
#ifndef CLTOOL_IMAGE_STB_H
#define CLTOOL_IMAGE_STB_H

#include "resample.h"

#include <stddef.h>

/* Returns whether a file that begins with these bytes is of a format that stb_image decodes. */
bool image_stb_reads(const unsigned char *bytes, size_t n);
/* As image_file_size and, with image->channels, image_file_read. */
int image_stb_size(const char *path, size_t max_pixels, int *out_width, int *out_height);
int image_stb_read(const char *path, size_t max_pixels, raster *image);
void image_stb_free(raster *image);

#endif
