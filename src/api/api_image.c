/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_image_*.
 */
#include "api/arguments.h"
#include "tensor/formats/image_module.h"
#include "tensor/value.h"

#include <clgraph/image.h>

/* Copies the caller's options, and sets what they leave to the default. */
static clg_status read_options(const char *function, const clg_image_options *given,
                               clg_image_options *out_options)
{
    *out_options = (clg_image_options)CLG_IMAGE_OPTIONS_INIT;
    if (given)
        CLG_TRY(api_read_options(function, given, given->struct_size, out_options,
                                 sizeof *out_options));
    if (out_options->channels == 0) out_options->channels = 3;
    if (out_options->max_pixels == 0) out_options->max_pixels = IMAGE_MODULE_MAX_PIXELS;
    const int n = out_options->channels;
    if (n == 1 || n == 3 || n == 4) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: channels are 1, 3 or 4, not %d", function, n);
}

clg_status clg_image_size(const void *bytes, size_t n_bytes, const clg_image_options *options,
                          const char **out_format, int64_t *out_width, int64_t *out_height)
{
    clg_image_options o;
    if (out_format) *out_format = NULL;
    if (out_width) *out_width = 0;
    if (out_height) *out_height = 0;
    API_REQUIRE(bytes);
    CLG_TRY(read_options(__func__, options, &o));
    return image_module_look(bytes, n_bytes, o.max_pixels, out_format, out_width, out_height);
}

clg_status clg_image_decode(const void *bytes, size_t n_bytes, const clg_image_options *options,
                            clg_value **out_value)
{
    clg_image_options o;
    tensor *t;
    API_REQUIRE(out_value);
    *out_value = NULL;
    API_REQUIRE(bytes);
    CLG_TRY(read_options(__func__, options, &o));
    CLG_TRY(image_module_decode(bytes, n_bytes, o.channels, o.keep_16_bits, o.max_pixels, &t));
    const clg_status status = value_create_host(t, out_value);
    tensor_free(t);
    return status;
}
