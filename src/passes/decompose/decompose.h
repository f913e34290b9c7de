/* SPDX-License-Identifier: Apache-2.0
 *
 * Decomposing an operator of ai.onnx.ml into others (pass_ml.c): nodes and constants are added, and
 * at last the operator's node itself becomes one of them, so that its outputs keep their names. All
 * nodes get its label, for messages.
 */
#ifndef CLG_PASSES_DECOMPOSE_H
#define CLG_PASSES_DECOMPOSE_H

#include "passes/rewrite.h"

#define DECOMPOSE_OPSET 13 /* what operators of the default domain mean here */

typedef struct decomposition {
    graph *graph;
    const graph_info *info;
    node_id id;
    node node; /* as it was */
} decomposition;

/* An operator of the default domain; *out may be among the inputs. */
clg_status decompose_add(decomposition *w, const char *op, size_t n_inputs, const value_id *inputs,
                         value_id *out);
/* An operator of the domain clgraph. Outputs that are VALUE_NONE become new values. */
clg_status decompose_own(decomposition *w, const char *op, size_t n_inputs, const value_id *inputs,
                         size_t n_outputs, value_id *outputs, node_id *out_node);
/* For the attributes of what was added. */
node_id decompose_producer(const decomposition *w, value_id v);
clg_status decompose_cast(decomposition *w, value_id v, clg_dtype to, value_id *out);
/* The node itself becomes the last operator of its decomposition. */
clg_status decompose_become(decomposition *w, const char *op, size_t n_inputs,
                            const value_id *inputs);

/* Constants. The tensor's reference is taken over. */
clg_status decompose_tensor(decomposition *w, tensor *t, value_id *out);
clg_status decompose_numbers(decomposition *w, clg_dtype dtype, int rank, const int64_t *dims,
                             const double *numbers, value_id *out);
clg_status decompose_number(decomposition *w, clg_dtype dtype, double number, value_id *out);
/* int32 numbers [n]. */
clg_status decompose_words(decomposition *w, const int32_t *words, size_t n, value_id *out);
/* Floats of an attribute as [n] or, with n_rows, [n_rows, n / n_rows]. */
clg_status decompose_floats(decomposition *w, const char *name, int64_t n_rows, value_id *out);

clg_dtype decompose_dtype(const decomposition *w, size_t i);
/* Input 0 in float32; the same as [N,F], which one of unknown rank is taken for. */
clg_status decompose_input(decomposition *w, value_id *out);
clg_status decompose_rows(decomposition *w, value_id *out);

/* How scores become what the model gives, cl/ml/scores.cl. */
typedef struct decompose_finish {
    int form;
    float limit;
} decompose_finish;

clg_status decompose_set_finish(decomposition *w, node_id n, const decompose_finish *f);
/* A regressor's node becomes its post_transform. */
clg_status decompose_finish_regressor(decomposition *w, value_id scores);
/* Output 1 of a classifier, from scores; *out_index: which class wins (NULL: not requested). */
clg_status decompose_scores(decomposition *w, value_id scores, const decompose_finish *f,
                            value_id *out_index);
/* A classifier's node becomes the look-up of its labels. */
clg_status decompose_finish_labels(decomposition *w, value_id index);
/* Both of these. */
clg_status decompose_finish_classifier(decomposition *w, value_id scores,
                                       const decompose_finish *f);

/* Support vector machines (decompose_svm.c). */
clg_status decompose_svm_classifier(decomposition *w);
clg_status decompose_svm_regressor(decomposition *w);

#endif
