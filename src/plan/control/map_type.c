/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans operators on maps: ZipMap, DictVectorizer and CastMap (ai.onnx.ml 1). ZipMap does no work
 * on the device: it pairs labels with the tensor of scores, and the maps are created when the
 * caller reads the output; no operator consumes them. DictVectorizer and CastMap take maps that are
 * inputs of the model, whose keys and values the host knows. See decision 24.
 */
#include "plan/state.h"

#include "ops/ml/labels.h"
#include "ops/ml/maps.h"
#include "tensor/value.h"

static clg_status check_scores(const node *n, const value_fact *x, const tensor *labels)
{
    char text[NODE_TEXT_BYTES];
    if (x->kind != CLG_VALUE_TENSOR || x->dtype != CLG_FLOAT32)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "%s: its input is not a tensor of float32",
                         node_text(n, text));
    if (x->dims.rank != 1 && x->dims.rank != 2)
        return error_set(CLG_ERROR_SHAPE, "%s: its input must be rows of scores [N,C]",
                         node_text(n, text));
    const int64_t columns = x->dims.dims[x->dims.rank - 1];
    if (columns == labels->n_elements) return CLG_OK;
    return error_set(CLG_ERROR_SHAPE, "%s: it has %lld labels for %lld scores a row",
                     node_text(n, text), (long long)labels->n_elements, (long long)columns);
}

/* Makes scores of shape [C] a view of shape [1,C]; leaves [N,C] unchanged. */
static void make_row(plan_value *v)
{
    if (v->fact.dims.rank == 2) return;
    v->fact.dims = (shape){.rank = 2, .dims = {1, v->fact.dims.dims[0]}};
    v->strides[1] = v->strides[0];
    v->strides[0] = v->strides[1] * v->fact.dims.dims[1];
}

/* Plans ZipMap: the output is a pair of keys (the labels) and values (the scores). */
static clg_status zip(plan_state *s, const node *n)
{
    tensor *labels;
    CLG_TRY(labels_of(n, &labels));
    clg_status status = check_scores(n, &s->values[n->inputs[0]].fact, labels);
    if (status != CLG_OK) {
        tensor_free(labels);
        return status;
    }
    CLG_TRY(state_hold(s, labels)); /* takes ownership of the reference, also when it fails */
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

/* ---- maps become tensors --------------------------------------------------------------------- */

/* Plans DictVectorizer and CastMap, which the host computes. */
static clg_status read_map(plan_state *s, const node *n)
{
    const plan_value *m = &s->values[n->inputs[0]];
    const tensor *parts[2] = {NULL, NULL};
    char text[NODE_TEXT_BYTES];
    tensor *t;
    if (m->fact.kind != CLG_VALUE_MAP)
        return error_set(CLG_ERROR_INVALID_MODEL, "%s: its input is not a map", node_text(n, text));
    for (size_t i = 0; i < m->n_items; i++) parts[i] = m->items[i].fact.known;
    if (m->n_items > 0 && (!parts[VALUE_VALUES] || m->items[VALUE_VALUES].fact.dims.rank != 1))
        return error_set(CLG_ERROR_UNSUPPORTED_OPERATOR,
                         "%s: only maps that are inputs of the model are supported",
                         node_text(n, text));
    CLG_TRY(maps_to_tensor(n, parts[VALUE_KEYS], parts[VALUE_VALUES], &t));
    CLG_TRY(state_hold(s, t));
    plan_value *to = &s->values[n->outputs[0]];
    *to = (plan_value){
        .fact = {.dtype = t->dtype, .dims = t->dims, .known = t}, .root = ROOT_NONE, .dense = true};
    shape_strides(&t->dims, to->strides);
    return CLG_OK;
}

clg_status maps_node(plan_state *s, const node *n, op_control_kind kind)
{
    return kind == CONTROL_ZIP_MAP ? zip(s, n) : read_map(s, n);
}
