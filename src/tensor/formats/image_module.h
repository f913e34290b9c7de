/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes images by the module clgraph-images, which is opened for the first one.
 */
#ifndef CLG_TENSOR_IMAGE_MODULE_H
#define CLG_TENSOR_IMAGE_MODULE_H

#include "tensor/tensor.h"

/* Default of the most pixels of an image. */
#define IMAGE_MODULE_MAX_PIXELS UINT64_C(100000000)

/* Sets the size of an image, and the name of its format, which is static; either may be NULL.
 * Errors as image_module_decode. */
clg_status image_module_look(const void *bytes, size_t n_bytes, uint64_t max_pixels,
                             const char **out_format, int64_t *out_width, int64_t *out_height);
/* Creates a tensor [height, width, channels] of uint8, or of uint16 where keeps_16 is set and the
 * image has more than 8 bits; channels 1, 3 or 4. Any thread. Errors: DATA (none of the formats, or
 * damaged), LIMIT (more than max_pixels), UNSUPPORTED_OPERATOR (the module, or its library for the
 * format, is not there). Messages begin with "the image ". */
clg_status image_module_decode(const void *bytes, size_t n_bytes, int channels, bool keeps_16,
                               uint64_t max_pixels, tensor **out_tensor);

#endif
