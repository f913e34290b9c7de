/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of which operators of ai.onnx.ml are spelled. See spelling.h.
 */
#include "passes/decompose/spelling.h"

#include "ops/ml/labels.h"
#include "ops/ml/tree.h"

#include <string.h>

/* ---- parts --------------------------------------------------------------------------------------------------- */

clg_status spelling_add(spelling *w, const char *op, size_t n_inputs, const value_id *inputs,
                        value_id *out)
{
    return rewrite_part(w->g, w->id, "", op, SPELLING_OPSET, n_inputs, inputs, out);
}

node_id spelling_producer(const spelling *w, value_id v) { return w->g->values[v].producer; }

clg_status spelling_become(spelling *w, const char *op, size_t n_inputs, const value_id *inputs)
{
    return rewrite_become(w->g, w->id, "", op, SPELLING_OPSET, n_inputs, inputs);
}

clg_status spelling_tensor(spelling *w, tensor *t, value_id *out)
{
    const clg_status status = graph_add_constant(w->g, "", t, out);
    tensor_free(t);
    return status;
}

clg_status spelling_numbers(spelling *w, clg_dtype dtype, int rank, const int64_t *dims,
                            const double *numbers, value_id *out)
{
    shape s = {.rank = rank};
    tensor *t;
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= s.dims[i] = dims[i];
    CLG_TRY(tensor_create(dtype, &s, &t));
    for (int64_t i = 0; i < n; i++) tensor_set_float(t, i, numbers[i]);
    return spelling_tensor(w, t, out);
}

clg_status spelling_number(spelling *w, clg_dtype dtype, double number, value_id *out)
{
    return spelling_numbers(w, dtype, 0, NULL, &number, out);
}

clg_status spelling_floats(spelling *w, const char *name, int64_t n_rows, value_id *out)
{
    size_t n;
    const float *floats = node_floats(&w->n, name, &n);
    shape s = {.rank = 1, .dims = {(int64_t)n}};
    if (n_rows > 0) s = (shape){.rank = 2, .dims = {n_rows, (int64_t)n / n_rows}};
    tensor *t;
    CLG_TRY(tensor_create(CLG_FLOAT32, &s, &t));
    if (n) memcpy(t->data, floats, n * sizeof *floats);
    return spelling_tensor(w, t, out);
}

clg_status spelling_words(spelling *w, const int32_t *words, size_t n, value_id *out)
{
    const shape dims = {.rank = 1, .dims = {(int64_t)n}};
    tensor *t;
    CLG_TRY(tensor_create(CLG_INT32, &dims, &t));
    if (n) memcpy(t->data, words, n * sizeof *words);
    return spelling_tensor(w, t, out);
}

clg_dtype spelling_dtype(const spelling *w, size_t i) { return w->s->facts[w->n.inputs[i]].dtype; }

clg_status spelling_cast(spelling *w, value_id v, clg_dtype to, value_id *out)
{
    CLG_TRY(spelling_add(w, "Cast", 1, &v, out));
    return node_set_int(w->g, spelling_producer(w, *out), "to", to);
}

clg_status spelling_input(spelling *w, value_id *out)
{
    *out = w->n.inputs[0];
    return spelling_dtype(w, 0) == CLG_FLOAT32 ? CLG_OK : spelling_cast(w, *out, CLG_FLOAT32, out);
}

clg_status spelling_rows(spelling *w, value_id *out)
{
    value_id dims;
    CLG_TRY(spelling_input(w, out));
    if (w->s->facts[w->n.inputs[0]].dims.rank != 1) return CLG_OK;
    CLG_TRY(rewrite_ints(w->g, 2, (int64_t[]){1, -1}, &dims));
    return spelling_add(w, "Reshape", 2, (value_id[]){*out, dims}, out);
}

/* ---- scores and labels ------------------------------------------------------------------------------------------ */

/* Output i of the node is given by somebody else from here on; a value of its own when it was not asked for. */
static clg_status take_output(spelling *w, size_t i, value_id *out)
{
    node *n = &w->g->nodes[w->id];
    if (i >= n->n_outputs || n->outputs[i] == VALUE_NONE) return graph_add_value(w->g, "", out);
    *out = n->outputs[i];
    n->outputs[i] = VALUE_NONE;
    w->g->values[*out].producer = NODE_NONE;
    return CLG_OK;
}

clg_status spelling_set_finish(spelling *w, node_id n, const spelling_finish *f)
{
    CLG_TRY(node_set_int(w->g, n, "form", f->form));
    CLG_TRY(node_set_int(w->g, n, "transform", ml_transform_of(&w->n)));
    return node_set_float(w->g, n, "limit", f->limit);
}

clg_status spelling_finish_regressor(spelling *w, value_id scores)
{
    if (ml_transform_of(&w->n) == ML_NONE) return spelling_become(w, "Identity", 1, &scores);
    CLG_TRY(rewrite_become(w->g, w->id, DOMAIN_INTERNAL, "Scores",
                           graph_opset(w->g, DOMAIN_INTERNAL), 1, &scores));
    return spelling_set_finish(w, w->id, &(spelling_finish){0, 0});
}

static clg_status add_labels(spelling *w, value_id *out)
{
    tensor *t;
    CLG_TRY(labels_of(&w->n, &t));
    return spelling_tensor(w, t, out);
}

clg_status spelling_own(spelling *w, const char *op, size_t n_inputs, const value_id *inputs,
                        size_t n_outputs, value_id *outputs, node_id *out_node)
{
    for (size_t i = 0; i < n_outputs; i++)
        if (outputs[i] == VALUE_NONE) CLG_TRY(graph_add_value(w->g, "", &outputs[i]));
    CLG_TRY(graph_add_node(w->g, DOMAIN_INTERNAL, op, "", n_inputs, inputs, n_outputs, outputs,
                           out_node));
    w->g->nodes[*out_node].label = w->n.label;
    return CLG_OK;
}

clg_status spelling_scores(spelling *w, value_id scores, const spelling_finish *f,
                           value_id *out_index)
{
    value_id outputs[2] = {VALUE_NONE, VALUE_NONE};
    node_id n;
    CLG_TRY(take_output(w, 1, &outputs[0]));
    CLG_TRY(spelling_own(w, "Scores", 1, &scores, out_index ? 2 : 1, outputs, &n));
    if (out_index) *out_index = outputs[1];
    return spelling_set_finish(w, n, f);
}

clg_status spelling_finish_labels(spelling *w, value_id index)
{
    value_id labels;
    if (w->g->nodes[w->id].outputs[0] == VALUE_NONE) {
        graph_remove_node(w->g, w->id);
        return CLG_OK;
    }
    CLG_TRY(add_labels(w, &labels));
    w->g->nodes[w->id].n_outputs = 1;
    return spelling_become(w, "Gather", 2, (value_id[]){labels, index});
}

clg_status spelling_finish_classifier(spelling *w, value_id scores, const spelling_finish *f)
{
    value_id index;
    CLG_TRY(spelling_scores(w, scores, f, &index));
    return spelling_finish_labels(w, index);
}
