/* SPDX-License-Identifier: Apache-2.0
 *
 * Rewrites a ConvTranspose of a feature map of a single pixel, without padding, as a Gemm: y[n, o,
 * tap] = sum of x[n, c] * w[c, o, tap] over c, plus bias[o]. Generators begin with it. The general
 * form is a matrix product of one column for each image, followed by a sum of windows that do not
 * overlap.
 */
#include "passes/rewrite.h"

#include <string.h>

static bool all_are(const node *n, const char *name, int64_t wanted)
{
    size_t count;
    const int64_t *values = node_ints(n, name, &count);
    for (size_t i = 0; i < count; i++)
        if (values[i] != wanted) return false;
    return true;
}

static bool is_transposed(const node *n)
{
    return node_is(n, "ConvTranspose") && node_has_input(n, 1) && node_int(n, "group", 1) == 1;
}

/* Returns whether every element of each window is an output pixel, and there are no others. */
static bool is_one_pixel(const graph_info *s, const node *n)
{
    const shape *x = &s->facts[n->inputs[0]].dims, *w = &s->facts[n->inputs[1]].dims;
    const char *how = node_string(n, "auto_pad", "NOTSET");
    size_t n_sizes;
    (void)node_ints(n, "output_shape", &n_sizes);
    if (x->rank < 3 || x->rank != w->rank || !shape_is_known(w) || n_sizes > 0 ||
        (strcmp(how, "NOTSET") != 0 && strcmp(how, "VALID") != 0) || !all_are(n, "pads", 0) ||
        !all_are(n, "output_padding", 0) || !all_are(n, "dilations", 1))
        return false;
    for (int i = 0; i < x->rank; i++)
        if ((i >= 2 && x->dims[i] != 1) || w->dims[i] < 1) return false;
    return true;
}

static clg_status add_reshape(graph *g, node_id whole, value_id x, size_t rank, const int64_t *dims,
                              value_id *out)
{
    value_id to;
    CLG_TRY(graph_add_ints(g, rank, dims, &to));
    return rewrite_part(g, whole, "", "Reshape", 13, 2, (value_id[]){x, to}, out);
}

/* Adds the bias of each output channel once for each of `taps` elements. */
static clg_status add_bias(graph *g, node_id whole, value_id bias, int64_t channels, int64_t taps,
                           value_id *out)
{
    const int64_t column[] = {channels, 1}, all[] = {channels, taps}, row[] = {channels * taps};
    value_id to, wide;
    CLG_TRY(add_reshape(g, whole, bias, 2, column, &wide));
    CLG_TRY(graph_add_ints(g, 2, all, &to));
    CLG_TRY(rewrite_part(g, whole, "", "Expand", 13, 2, (value_id[]){wide, to}, &wide));
    return add_reshape(g, whole, wide, 1, row, out);
}

static clg_status rewrite(const graph_info *s, node_id id)
{
    graph *g = s->graph;
    const node *n = &g->nodes[id];
    if (!is_one_pixel(s, n)) return CLG_OK;
    const shape w = s->facts[n->inputs[1]].dims;
    value_id x = n->inputs[0], weight = n->inputs[1], to;
    value_id bias = node_has_input(n, 2) ? n->inputs[2] : VALUE_NONE, product;
    int64_t taps = 1, dims[CLG_MAX_RANK] = {0, w.dims[1]}; /* 0: the batch as it is */
    for (int i = 2; i < w.rank; i++) {
        taps *= w.dims[i];
        dims[i] = w.dims[i];
    }
    CLG_TRY(add_reshape(g, id, x, 2, (int64_t[]){0, w.dims[0]}, &x));
    CLG_TRY(add_reshape(g, id, weight, 2, (int64_t[]){w.dims[0], w.dims[1] * taps}, &weight));
    if (bias != VALUE_NONE) CLG_TRY(add_bias(g, id, bias, w.dims[1], taps, &bias));
    CLG_TRY(rewrite_part(g, id, "", "Gemm", 13, bias == VALUE_NONE ? 2 : 3,
                         (value_id[]){x, weight, bias}, &product));
    CLG_TRY(graph_add_ints(g, (size_t)w.rank, dims, &to));
    return rewrite_become(g, id, "", "Reshape", 13, 2, (value_id[]){product, to});
}

clg_status pass_one_pixel(graph *g, const pass_options *options)
{
    (void)options;
    return rewrite_each(g, is_transposed, rewrite);
}
