/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks FlexAttention (ai.onnx.preview 1) and infers its shapes: attention with subgraphs that
 * modify scores and probabilities. A pass that always runs decomposes it into other operators
 * (passes/decompose/pass_flex.c), so that it is not lowered.
 */
#include "ops/core/op.h"
#include "ops/grad/grad_rule.h"

enum { Q, K, V };

#define FLOATS                                                                                     \
    (DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT64) | DTYPE_BIT(CLG_FLOAT16) |                    \
     DTYPE_BIT(CLG_BFLOAT16))

static clg_status flex_check(const node *n)
{
    static const char *const names[] = {"score_mod", "prob_mod"};
    char shown[NODE_TEXT_BYTES];
    for (int i = 0; i < 2; i++) {
        const graph_attribute *a = node_attribute(n, names[i]);
        if (a && (a->as.graph->n_inputs != 1 || a->as.graph->n_outputs != 1))
            return error_set(CLG_ERROR_INVALID_MODEL, "%s: %s does not make one tensor of one",
                             node_text(n, shown), names[i]);
    }
    return CLG_OK;
}

static clg_status flex_infer(op_context *c)
{
    const shape *q = &op_input(c, Q)->dims, *k = &op_input(c, K)->dims, *v = &op_input(c, V)->dims;
    bool fits = q->rank == 4 && k->rank == 4 && v->rank == 4;
    fits = fits && !dims_differ(q->dims[0], k->dims[0]) && !dims_differ(q->dims[3], k->dims[3]);
    for (int i = 0; fits && i < 3; i++) fits = !dims_differ(k->dims[i], v->dims[i]);
    if (fits && q->dims[1] != DIM_UNKNOWN && k->dims[1] != DIM_UNKNOWN)
        fits = k->dims[1] > 0 && q->dims[1] % k->dims[1] == 0;
    if (!fits)
        return op_error(c, CLG_ERROR_SHAPE,
                        "Q, K and V [batch, heads, positions, size] do not match");
    const shape y = {.rank = 4, .dims = {q->dims[0], q->dims[1], q->dims[2], v->dims[3]}};
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

/* Reports a node that the pass did not decompose. */
static clg_status not_decomposed(lower_context *c)
{
    return lower_error(c, CLG_ERROR_UNSUPPORTED_OPERATOR,
                       "it is supported outside of branches and loops, with inputs of known dtype");
}

static const op_types types[] = {{'T', FLOATS}, {0}};
static const op_attribute attributes[] = {
    {"score_mod", ATTRIBUTE_GRAPH, false, OP_ANY},
    {"prob_mod", ATTRIBUTE_GRAPH, false, OP_ANY},
    {"softmax_precision", ATTRIBUTE_INT, false, OP_DTYPES(FLOATS)},
    {"scale", ATTRIBUTE_FLOAT, false, OP_ANY},
    {0}};

const op_row op_rows_flex[] = {
    {.name = "FlexAttention",
     .grad = GRAD_BY(grad_pass_flex_attention),
     .domain = "ai.onnx.preview",
     .since = 1,
     OP_INPUTS(3, 3, "T"),
     OP_OUTPUTS(1, 1, "T"),
     .types = types,
     .attributes = attributes,
     .check = flex_check,
     .infer = flex_infer,
     .lower = not_decomposed},
};
const size_t n_op_rows_flex = sizeof op_rows_flex / sizeof *op_rows_flex;
