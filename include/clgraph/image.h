/* SPDX-License-Identifier: Apache-2.0
 *
 * Images as tensors: PNG, JPEG, WebP, TIFF, JPEG 2000, BMP and PNM files in memory, decoded as
 * ONNX's operator ImageDecoder does. clgraph.h does not include this header; its rules apply.
 *
 * The module clgraph-images decodes: it is opened for the first image, so that programs without
 * images load no libraries for them. Where it, or its library for a format, is not installed, the
 * functions fail with UNSUPPORTED_OPERATOR, and so do models with an ImageDecoder.
 */
#ifndef CLGRAPH_IMAGE_H
#define CLGRAPH_IMAGE_H

#include <clgraph/value.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clg_image_options {
    size_t struct_size;
    int channels;        /* of the result: 1 (gray), 3 (RGB) or 4 (RGB and alpha); 0: 3 */
    bool keep_16_bits;   /* uint16 where the image has more than 8 bits; else the upper 8 */
    uint64_t max_pixels; /* an image of more is an error; 0: 100 million */
} clg_image_options;
#define CLG_IMAGE_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(clg_image_options), 0, false, 0                                                     \
    }

/* Reads the size of an image in memory from its header, and the name of its format, "PNG", which is
 * static; each may be NULL. options may be NULL. Any thread. Errors: as clg_image_decode. */
CLG_API CLG_MUST_USE clg_status clg_image_size(const void *bytes, size_t n_bytes,
                                               const clg_image_options *options,
                                               const char **out_format, int64_t *out_width,
                                               int64_t *out_height);

/* Decodes an image in memory to a tensor [height, width, channels] of uint8, or of uint16. Gray is
 * computed as Pillow does; alpha is dropped, or opaque where the image has none. Of several images
 * in a file, the first. options may be NULL. The caller owns *out_value. Any thread. Errors: DATA
 * (none of the formats, or damaged; the message says how and begins with "the image "), LIMIT (more
 * than max_pixels), UNSUPPORTED_OPERATOR, INVALID_ARGUMENT. */
CLG_API CLG_MUST_USE clg_status clg_image_decode(const void *bytes, size_t n_bytes,
                                                 const clg_image_options *options,
                                                 clg_value **out_value);

#ifdef __cplusplus
}
#endif

#endif
