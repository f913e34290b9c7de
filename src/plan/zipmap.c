/* SPDX-License-Identifier: Apache-2.0
 *
 * ZipMap (ai.onnx.ml 1) while planning: labels beside scores, which stay where they are. The maps are made when the output
 * is read; nothing else reads them.
 */
#include "plan/state.h"

#include "ops/labels.h"
#include "tensor/value.h"

static clg_status check_scores(const node *n, const value_fact *x, const tensor *labels)
{
    char text[NODE_TEXT_BYTES];
    if (x->kind != CLG_VALUE_TENSOR || x->dtype != CLG_FLOAT32)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "%s: its input is no tensor of float32",
                         node_text(n, text));
    if (x->dims.rank != 1 && x->dims.rank != 2)
        return error_set(CLG_ERROR_SHAPE, "%s: its input must be rows of scores [N,C]",
                         node_text(n, text));
    const int64_t columns = x->dims.dims[x->dims.rank - 1];
    if (columns == labels->n_elements) return CLG_OK;
    return error_set(CLG_ERROR_SHAPE, "%s: it has %lld labels for %lld scores a row",
                     node_text(n, text), (long long)labels->n_elements, (long long)columns);
}

/* [C] as [1,C]. */
static void make_row(plan_value *v)
{
    if (v->fact.dims.rank == 2) return;
    v->fact.dims = (shape){.rank = 2, .dims = {1, v->fact.dims.dims[0]}};
    v->strides[1] = v->strides[0];
    v->strides[0] = v->strides[1] * v->fact.dims.dims[1];
}

clg_status zipmap_node(plan_state *s, const node *n)
{
    tensor *labels;
    CLG_TRY(labels_of(n, &labels));
    clg_status status = check_scores(n, &s->values[n->inputs[0]].fact, labels);
    if (status != CLG_OK) {
        tensor_free(labels);
        return status;
    }
    CLG_TRY(state_hold(s, labels)); /* takes the reference over, also when it fails */
    plan_value *items = arena_alloc(&s->segment->memory, 2, sizeof *items);
    if (!items) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    items[VALUE_KEYS] = (plan_value){.fact = {.kind = CLG_VALUE_TENSOR,
                                              .dtype = labels->dtype,
                                              .dims = labels->dims,
                                              .known = labels},
                                     .root = ROOT_NONE,
                                     .dense = true};
    CLG_TRY(control_settle(s, n->inputs[0], &items[VALUE_VALUES]));
    make_row(&items[VALUE_VALUES]);
    s->values[n->outputs[0]] = (plan_value){.fact = {.kind = CLG_VALUE_MAP,
                                                     .dtype = CLG_FLOAT32,
                                                     .dims = shape_scalar(),
                                                     .key_dtype = labels->dtype},
                                            .root = ROOT_NONE,
                                            .dense = true,
                                            .items = items,
                                            .n_items = 2};
    return CLG_OK;
}
