/* SPDX-License-Identifier: Apache-2.0
 *
 * Decomposes a node of ai.onnx.ml into nodes of other operators (pass_ml.c). Functions add nodes
 * and constants to the graph; the last one turns the decomposed node itself into the last node of
 * its decomposition, so that its outputs keep their names. All nodes get its label, for messages.
 */
#ifndef CLG_PASSES_DECOMPOSE_H
#define CLG_PASSES_DECOMPOSE_H

#include "passes/rewrite.h"

/* The node to be decomposed, `id` of this graph. */
typedef struct decomposition {
    graph *graph;
    const graph_info *info;
    node_id id;
    node node; /* a copy from before the decomposition */
} decomposition;

/* Adds a node of the default domain, with one output, *out, which may also be stored over an input.
 */
clg_status decompose_add(decomposition *w, const char *op, size_t n_inputs, const value_id *inputs,
                         value_id *out);
/* Adds a node of the domain clgraph. Outputs that are VALUE_NONE are replaced by new values. */
clg_status decompose_own(decomposition *w, const char *op, size_t n_inputs, const value_id *inputs,
                         size_t n_outputs, value_id *outputs, node_id *out_node);
/* Returns the node that produces v, for the caller to set its attributes. */
node_id decompose_producer(const decomposition *w, value_id v);
clg_status decompose_cast(decomposition *w, value_id v, clg_dtype to, value_id *out);
/* Turns the decomposed node into a node of the default domain, the last one of its decomposition.
 */
clg_status decompose_become(decomposition *w, const char *op, size_t n_inputs,
                            const value_id *inputs);

/* Add constants to the graph. decompose_tensor adds t and takes over the caller's reference;
 * decompose_numbers adds values of shape dims[rank]; decompose_number adds a scalar. */
clg_status decompose_tensor(decomposition *w, tensor *t, value_id *out);
clg_status decompose_numbers(decomposition *w, clg_dtype dtype, int rank, const int64_t *dims,
                             const double *numbers, value_id *out);
clg_status decompose_number(decomposition *w, clg_dtype dtype, double number, value_id *out);
/* Adds a constant [n] of int32. */
clg_status decompose_words(decomposition *w, const int32_t *words, size_t n, value_id *out);
/* Adds the float attribute `name` as a constant [n], or [n_rows, n / n_rows] if n_rows is not 0. */
clg_status decompose_floats(decomposition *w, const char *name, int64_t n_rows, value_id *out);

clg_dtype decompose_dtype(const decomposition *w, size_t i);
/* Set *out to input 0 converted to float32. decompose_input keeps its shape; decompose_rows makes
 * it [N, F], which is assumed if the rank is unknown. */
clg_status decompose_input(decomposition *w, value_id *out);
clg_status decompose_rows(decomposition *w, value_id *out);

/* Parameters of cl/ml/scores.cl, which turns scores into the model's outputs: P_FORM, and the limit
 * above which the second of two classes wins. */
typedef struct decompose_finish {
    int form;
    float limit;
} decompose_finish;

clg_status decompose_set_finish(decomposition *w, node_id n, const decompose_finish *f);
/* Turns a regressor's node into its post_transform, applied to `scores`. */
clg_status decompose_finish_regressor(decomposition *w, value_id scores);
/* Adds the node that makes output 1 of a classifier from scores. *out_index, if out_index is not
 * NULL, is the index of the winning class. */
clg_status decompose_scores(decomposition *w, value_id scores, const decompose_finish *f,
                            value_id *out_index);
/* Turns a classifier's node into the look-up of labels by class index. */
clg_status decompose_finish_labels(decomposition *w, value_id index);
/* Makes both outputs of a classifier from scores: the scores after post_transform, and the labels.
 */
clg_status decompose_finish_classifier(decomposition *w, value_id scores,
                                       const decompose_finish *f);

/* Decompose support vector machines (decompose_svm.c). */
clg_status decompose_svm_classifier(decomposition *w);
clg_status decompose_svm_regressor(decomposition *w);

#endif
