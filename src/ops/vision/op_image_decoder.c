/* SPDX-License-Identifier: Apache-2.0
 *
 * ImageDecoder (ONNX 20), on the host: an encoded image [n] becomes [height, width, channels] of
 * uint8. An image that cannot be decoded is an error, and not the empty result that ONNX's text
 * has: a model would go on with nothing.
 */
#include "ops/core/op.h"
#include "ops/grad/grad_rule.h"
#include "tensor/formats/image_module.h"

#include <string.h>

static bool is_format(const op_context *c, const char *format)
{
    return strcmp(node_string(c->node, "pixel_format", "RGB"), format) == 0;
}

/* Prefixes the node and the input to an error of the decoder. */
static clg_status input_error(const op_context *c, clg_status status)
{
    return op_prefix(c, error_prefix(status, "encoded_stream"));
}

static clg_status decoder_infer(op_context *c)
{
    const value_fact *in = &c->inputs[0];
    shape dims = {3, {DIM_UNKNOWN, DIM_UNKNOWN, is_format(c, "Grayscale") ? 1 : 3}};
    if (in->dims.rank != 1)
        return op_error(c, CLG_ERROR_SHAPE, "encoded_stream has %d axes; it has one, of bytes",
                        in->dims.rank);
    const tensor *x = op_need(c, 0);
    if (x)
        CLG_TRY(input_error(c, image_module_look(x->data, x->size_bytes, IMAGE_MODULE_MAX_PIXELS,
                                                 NULL, &dims.dims[1], &dims.dims[0])));
    fact_set(&c->outputs[0], CLG_UINT8, &dims);
    return CLG_OK;
}

static void swap_red_and_blue(tensor *t)
{
    unsigned char *pixels = t->data;
    for (size_t i = 0; i + 2 < t->size_bytes; i += 3) {
        const unsigned char red = pixels[i];
        pixels[i] = pixels[i + 2];
        pixels[i + 2] = red;
    }
}

static clg_status decoder_eval(op_context *c, tensor **out_tensors)
{
    const tensor *x = c->inputs[0].known;
    CLG_TRY(input_error(c, image_module_decode(x->data, x->size_bytes,
                                               is_format(c, "Grayscale") ? 1 : 3, false,
                                               IMAGE_MODULE_MAX_PIXELS, &out_tensors[0])));
    if (is_format(c, "BGR")) swap_red_and_blue(out_tensors[0]);
    return CLG_OK;
}

static const op_types types[] = {{'B', DTYPE_BIT(CLG_UINT8)}, {0}};
static const op_attribute attributes[] = {
    {"pixel_format", ATTRIBUTE_STRING, false, OP_ONE_OF("RGB", "BGR", "Grayscale")}, {0}};

const op_row op_rows_image_decoder[] = {
    {.name = "ImageDecoder",
     .grad = GRAD_ZERO,
     .since = 20,
     OP_INPUTS(1, 1, "B"),
     OP_OUTPUTS(1, 1, "B"),
     .types = types,
     .attributes = attributes,
     .flags = OP_HOST,
     .infer = decoder_infer,
     .eval = decoder_eval},
};
const size_t n_op_rows_image_decoder =
    sizeof op_rows_image_decoder / sizeof op_rows_image_decoder[0];
