/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoders of the module clgraph-images, one for each format.
 */
#ifndef CLG_IMAGES_DECODER_H
#define CLG_IMAGES_DECODER_H

#include "images/images.h"

/* An image that is decoded. */
typedef struct image_job {
    const images_request *request;
    images_result *result;
    int channels; /* as decoded: gray, gray and alpha, RGB, RGBA */
    bool is_16;   /* as decoded */
} image_job;

/* Decodes j->request->bytes, or only their header. Calls image_size and image_pixels before it
 * writes the pixels. */
typedef images_code image_decoder(image_job *j);

image_decoder decode_bmp, decode_jpeg, decode_jpeg2000, decode_png, decode_pnm, decode_tiff,
    decode_webp;

/* Sets the size of the image, and checks it against the limit. */
images_code image_size(image_job *j, uint64_t width, uint64_t height);
/* Allocates the pixels of an image whose size is set: [height, width, channels], which may become
 * those that are wanted in place. The decoder sets j->result->pixels to NULL on failure by no
 * means itself: that is freed by the caller. */
images_code image_pixels(image_job *j, int channels, bool is_16);
/* Return DAMAGED and record why. */
images_code image_fail(image_job *j, const char *why);
images_code image_fail_cut(image_job *j); /* "is damaged: it ends too early" */
/* Returns whether only the size is wanted. */
bool image_wants_size(const image_job *j);
/* Returns a number of n bytes, most significant first. */
uint32_t image_big_endian(const unsigned char *bytes, int n);

#endif
