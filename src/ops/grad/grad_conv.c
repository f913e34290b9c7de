/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of Conv and ConvTranspose. Both are linear in the data and in the weight, and their
 * gradients are the internal operators of ops/conv/op_conv_grad.c, which have the attributes of the
 * convolution and a shape as the last input: where strides are larger than 1, data of several sizes
 * give an output of one size. With y = Conv(x, w), dx = data(g, w) and dw = filter(x, g), the
 * cotangent of any of these operands is again one of the three.
 */
#include "ops/grad/grad_rule.h"

/* A convolution and its gradients. */
typedef struct family {
    const char *forward, *data, *filter;
} family;

static const family conv = {"Conv", "ConvDataGrad", "ConvFilterGrad"};
static const family transpose = {"ConvTranspose", "ConvTransposeDataGrad",
                                 "ConvTransposeFilterGrad"};

/* Gives the node that computes v the attributes of the node at hand; returns v. */
static value_id with_attributes(grad_node *c, value_id v)
{
    return grad_copy_other_attributes(c, v, 0, NULL);
}

static value_id forward(grad_node *c, const family *f, value_id x, value_id w)
{
    return with_attributes(c, GRAD_ADD(c, f->forward, x, w));
}

/* Returns the cotangent of x, from g and the weight. */
static value_id data(grad_node *c, const family *f, value_id g, value_id w, value_id x)
{
    const value_id inputs[3] = {g, w, grad_dims(c, x)};
    return with_attributes(c, grad_add_of(c, DOMAIN_INTERNAL, f->data, 3, inputs));
}

/* Returns the cotangent of the weight w, from x and g. */
static value_id filter(grad_node *c, const family *f, value_id x, value_id g, value_id w)
{
    const value_id inputs[3] = {x, g, grad_dims(c, w)};
    return with_attributes(c, grad_add_of(c, DOMAIN_INTERNAL, f->filter, 3, inputs));
}

/* Gives the bias, one number for each channel, the sum of g over batch and space. */
static void give_bias(grad_node *c, value_id g)
{
    int64_t axes[CLG_MAX_RANK];
    size_t n = 0;
    const int rank = grad_rank(c, 0);
    for (int i = 0; i < rank; i++)
        if (i != 1) axes[n++] = i;
    const value_id sums = GRAD_ADD(c, "ReduceSum", g, grad_list(c, n, axes));
    grad_give(c, 2, grad_set_int(c, sums, "keepdims", 0));
}

static void pass_forward(grad_node *c, const family *f)
{
    const value_id x = grad_in(c, 0), w = grad_in(c, 1), g = grad_cotangent(c, 0);
    if (grad_wants(c, 0)) grad_give(c, 0, data(c, f, g, w, x));
    if (grad_wants(c, 1)) grad_give(c, 1, filter(c, f, x, g, w));
    if (grad_wants(c, 2)) give_bias(c, g);
}

/* The cotangent h of dx = data(g, w) has the shape of x. */
static void pass_data(grad_node *c, const family *f)
{
    const value_id g = grad_in(c, 0), w = grad_in(c, 1), h = grad_cotangent(c, 0);
    if (grad_wants(c, 0)) grad_give(c, 0, forward(c, f, h, w));
    if (grad_wants(c, 1)) grad_give(c, 1, filter(c, f, h, g, w));
}

/* The cotangent h of dw = filter(x, g) has the shape of the weight. */
static void pass_filter(grad_node *c, const family *f)
{
    const value_id x = grad_in(c, 0), g = grad_in(c, 1), h = grad_cotangent(c, 0);
    if (grad_wants(c, 0)) grad_give(c, 0, data(c, f, g, h, x));
    if (grad_wants(c, 1)) grad_give(c, 1, forward(c, f, x, h));
}

void grad_pass_conv(grad_node *c) { pass_forward(c, &conv); }
void grad_pass_conv_data(grad_node *c) { pass_data(c, &conv); }
void grad_pass_conv_filter(grad_node *c) { pass_filter(c, &conv); }
void grad_pass_conv_transpose(grad_node *c) { pass_forward(c, &transpose); }
void grad_pass_conv_transpose_data(grad_node *c) { pass_data(c, &transpose); }
void grad_pass_conv_transpose_filter(grad_node *c) { pass_filter(c, &transpose); }
