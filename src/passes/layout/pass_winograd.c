/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks 3x3 convolutions, and their data gradients, that may be computed by Winograd's minimal
 * filtering: in float32 throughout, also for float16 tensors, with the wider error bound of
 * docs/numerics.md. With this pass disabled, all convolutions are computed directly.
 */
#include "passes/rewrite.h"

#include <string.h>

static bool all_ones(const node *n, const char *name)
{
    size_t count;
    const int64_t *values = node_ints(n, name, &count);
    for (size_t i = 0; i < count; i++)
        if (values[i] != 1) return false;
    return true;
}

static bool is_data_gradient(const node *n)
{
    return strcmp(n->domain, DOMAIN_INTERNAL) == 0 && strcmp(n->op_type, "ConvDataGrad") == 0;
}

static bool may_filter(const graph_info *s, const node *n)
{
    if (!(node_is_conv(n) || is_data_gradient(n)) || !node_has_input(n, 1)) return false;
    const value_fact *w = &s->facts[n->inputs[1]];
    return (w->dtype == CLG_FLOAT32 || w->dtype == CLG_FLOAT16) && w->dims.rank == 4 &&
           w->dims.dims[2] == 3 && w->dims.dims[3] == 3 && node_int(n, "group", 1) == 1 &&
           !node_attribute(n, "winograd") && all_ones(n, "strides") && all_ones(n, "dilations");
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
