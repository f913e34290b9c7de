/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds nodes and constants to the graph for decompositions of ai.onnx.ml operators. See
 * decompose.h.
 */
#include "passes/decompose/decompose.h"

#include "ops/ml/labels.h"
#include "ops/ml/tree.h"

#include <string.h>

/* ---- nodes and constants --------------------------------------------------------------------- */

clg_status decompose_add(decomposition *w, const char *op, size_t n_inputs, const value_id *inputs,
                         value_id *out)
{
    return rewrite_part(w->graph, w->id, "", op, GRAPH_ADDED_OPSET, n_inputs, inputs, out);
}

node_id decompose_producer(const decomposition *w, value_id v)
{
    return w->graph->values[v].producer;
}

clg_status decompose_become(decomposition *w, const char *op, size_t n_inputs,
                            const value_id *inputs)
{
    return rewrite_become(w->graph, w->id, "", op, GRAPH_ADDED_OPSET, n_inputs, inputs);
}

clg_status decompose_tensor(decomposition *w, tensor *t, value_id *out)
{
    const clg_status status = graph_add_constant(w->graph, "", t, out);
    tensor_free(t);
    return status;
}

clg_status decompose_numbers(decomposition *w, clg_dtype dtype, int rank, const int64_t *dims,
                             const double *numbers, value_id *out)
{
    shape s = {.rank = rank};
    tensor *t;
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= s.dims[i] = dims[i];
    CLG_TRY(tensor_create(dtype, &s, &t));
    for (int64_t i = 0; i < n; i++) tensor_set_float(t, i, numbers[i]);
    return decompose_tensor(w, t, out);
}

clg_status decompose_number(decomposition *w, clg_dtype dtype, double number, value_id *out)
{
    return decompose_numbers(w, dtype, 0, NULL, &number, out);
}

clg_status decompose_floats(decomposition *w, const char *name, int64_t n_rows, value_id *out)
{
    size_t n;
    const float *floats = node_floats(&w->node, name, &n);
    shape s = {.rank = 1, .dims = {(int64_t)n}};
    if (n_rows > 0) s = (shape){.rank = 2, .dims = {n_rows, (int64_t)n / n_rows}};
    tensor *t;
    CLG_TRY(tensor_create(CLG_FLOAT32, &s, &t));
    if (n) memcpy(t->data, floats, n * sizeof *floats);
    return decompose_tensor(w, t, out);
}

clg_status decompose_words(decomposition *w, const int32_t *words, size_t n, value_id *out)
{
    const shape dims = {.rank = 1, .dims = {(int64_t)n}};
    tensor *t;
    CLG_TRY(tensor_create(CLG_INT32, &dims, &t));
    if (n) memcpy(t->data, words, n * sizeof *words);
    return decompose_tensor(w, t, out);
}

clg_dtype decompose_dtype(const decomposition *w, size_t i)
{
    return w->info->facts[w->node.inputs[i]].dtype;
}

clg_status decompose_cast(decomposition *w, value_id v, clg_dtype to, value_id *out)
{
    CLG_TRY(decompose_add(w, "Cast", 1, &v, out));
    return node_set_int(w->graph, decompose_producer(w, *out), "to", to);
}

clg_status decompose_input(decomposition *w, value_id *out)
{
    *out = w->node.inputs[0];
    return decompose_dtype(w, 0) == CLG_FLOAT32 ? CLG_OK
                                                : decompose_cast(w, *out, CLG_FLOAT32, out);
}

clg_status decompose_rows(decomposition *w, value_id *out)
{
    value_id dims;
    CLG_TRY(decompose_input(w, out));
    if (w->info->facts[w->node.inputs[0]].dims.rank != 1) return CLG_OK;
    CLG_TRY(graph_add_ints(w->graph, 2, (int64_t[]){1, -1}, &dims));
    return decompose_add(w, "Reshape", 2, (value_id[]){*out, dims}, out);
}

/* ---- scores and labels ----------------------------------------------------------------------- */

/* Detaches output i from the node, so that another node can produce it: *out is that value, or a
 * new one if the output is omitted. */
static clg_status take_output(decomposition *w, size_t i, value_id *out)
{
    node *n = &w->graph->nodes[w->id];
    if (i >= n->n_outputs || n->outputs[i] == VALUE_NONE) return graph_add_value(w->graph, "", out);
    *out = n->outputs[i];
    n->outputs[i] = VALUE_NONE;
    w->graph->values[*out].producer = NODE_NONE;
    return CLG_OK;
}

clg_status decompose_set_finish(decomposition *w, node_id n, const decompose_finish *f)
{
    CLG_TRY(node_set_int(w->graph, n, "form", f->form));
    CLG_TRY(node_set_int(w->graph, n, "transform", ml_transform_of(&w->node)));
    return node_set_float(w->graph, n, "limit", f->limit);
}

clg_status decompose_finish_regressor(decomposition *w, value_id scores)
{
    if (ml_transform_of(&w->node) == ML_NONE) return decompose_become(w, "Identity", 1, &scores);
    CLG_TRY(rewrite_become(w->graph, w->id, DOMAIN_INTERNAL, "Scores",
                           graph_opset(w->graph, DOMAIN_INTERNAL), 1, &scores));
    return decompose_set_finish(w, w->id, &(decompose_finish){0, 0});
}

static clg_status add_labels(decomposition *w, value_id *out)
{
    tensor *t;
    CLG_TRY(labels_of(&w->node, &t));
    return decompose_tensor(w, t, out);
}

clg_status decompose_own(decomposition *w, const char *op, size_t n_inputs, const value_id *inputs,
                         size_t n_outputs, value_id *outputs, node_id *out_node)
{
    for (size_t i = 0; i < n_outputs; i++)
        if (outputs[i] == VALUE_NONE) CLG_TRY(graph_add_value(w->graph, "", &outputs[i]));
    CLG_TRY(graph_add_node(w->graph, DOMAIN_INTERNAL, op, "", n_inputs, inputs, n_outputs, outputs,
                           out_node));
    w->graph->nodes[*out_node].label = w->node.label;
    return CLG_OK;
}

clg_status decompose_scores(decomposition *w, value_id scores, const decompose_finish *f,
                            value_id *out_index)
{
    value_id outputs[2] = {VALUE_NONE, VALUE_NONE};
    node_id n;
    CLG_TRY(take_output(w, 1, &outputs[0]));
    CLG_TRY(decompose_own(w, "Scores", 1, &scores, out_index ? 2 : 1, outputs, &n));
    if (out_index) *out_index = outputs[1];
    return decompose_set_finish(w, n, f);
}

clg_status decompose_finish_labels(decomposition *w, value_id index)
{
    value_id labels;
    if (w->graph->nodes[w->id].outputs[0] == VALUE_NONE) {
        graph_remove_node(w->graph, w->id);
        return CLG_OK;
    }
    CLG_TRY(add_labels(w, &labels));
    w->graph->nodes[w->id].n_outputs = 1;
    return decompose_become(w, "Gather", 2, (value_id[]){labels, index});
}

clg_status decompose_finish_classifier(decomposition *w, value_id scores, const decompose_finish *f)
{
    value_id index;
    CLG_TRY(decompose_scores(w, scores, f, &index));
    return decompose_finish_labels(w, index);
}
