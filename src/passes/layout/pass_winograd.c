/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks 3x3 convolutions with stride 1 or 2, data gradients of those with stride 1, and
 * convolutions with windows of 5x5 to 8x8 and stride 2 that may be computed by Winograd's minimal
 * filtering: in float32 throughout, also for float16 tensors, with the wider error bound of
 * docs/numerics.md. With this pass disabled, all convolutions are computed directly.
 */
#include "passes/rewrite.h"

#include <string.h>

/* Returns whether each element of the attribute, of which absent ones are 1, is `number`. */
static bool all_are(const node *n, const char *name, int64_t number)
{
    size_t count;
    const int64_t *values = node_ints(n, name, &count);
    for (size_t i = 0; i < count; i++)
        if (values[i] != number) return false;
    return count > 0 || number == 1;
}

static bool is_data_gradient(const node *n)
{
    return strcmp(n->domain, DOMAIN_INTERNAL) == 0 && strcmp(n->op_type, "ConvDataGrad") == 0;
}

/* Returns whether both sides of the window are between these lengths. */
static bool window_is(const value_fact *w, int64_t min, int64_t max)
{
    const int64_t *sides = w->dims.dims + 2;
    return sides[0] >= min && sides[0] <= max && sides[1] >= min && sides[1] <= max;
}

static bool may_filter(const graph_info *s, const node *n)
{
    if (!(node_is_conv(n) || is_data_gradient(n)) || !node_has_input(n, 1)) return false;
    const value_fact *w = &s->facts[n->inputs[1]];
    if ((w->dtype != CLG_FLOAT32 && w->dtype != CLG_FLOAT16) || w->dims.rank != 4 ||
        node_int(n, "group", 1) != 1 || node_attribute(n, "winograd") ||
        !all_are(n, "dilations", 1))
        return false;
    if (all_are(n, "strides", 1)) return window_is(w, 3, 3);
    return all_are(n, "strides", 2) && !is_data_gradient(n) &&
           (window_is(w, 3, 3) || window_is(w, 5, 8));
}

clg_status pass_winograd(graph *g, const pass_options *options)
{
    graph_info s;
    if (options->kernel_class != CLG_KERNELS_SIMD) return CLG_OK; /* only that class has a kernel */
    CLG_TRY(graph_info_make(g, &s));
    clg_status status = CLG_OK;
    for (node_id i = 0; i < g->n_nodes && status == CLG_OK; i++) {
        node *n = &g->nodes[i];
        if (n->removed || !may_filter(&s, n)) continue;
        if (!is_data_gradient(n)) {
            n->domain = DOMAIN_INTERNAL;
            n->op_type = "FusedConv";
            n->opset = graph_opset(g, DOMAIN_INTERNAL);
        }
        status = node_set_int(g, i, "winograd", 1);
    }
    graph_info_deinit(&s);
    return status;
}
