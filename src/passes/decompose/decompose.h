/* SPDX-License-Identifier: Apache-2.0
 *
 * Decomposes an operator of ai.onnx.ml into other operators (pass_ml.c): adds nodes and constants;
 * finally the operator's own node is replaced in place by the last of them, so that its outputs
 * keep their names. All nodes get its label, for messages.
 */
#ifndef CLG_PASSES_DECOMPOSE_H
#define CLG_PASSES_DECOMPOSE_H

#include "passes/rewrite.h"

#define DECOMPOSE_OPSET 13 /* opset of the nodes that are added to the default domain */

typedef struct decomposition {
    graph *graph;
    const graph_info *info;
    node_id id;
    node node; /* a copy from before the decomposition */
} decomposition;

/* Adds an operator of the default domain; *out may be among the inputs. */
clg_status decompose_add(decomposition *w, const char *op, size_t n_inputs, const value_id *inputs,
                         value_id *out);
/* Adds an operator of the domain clgraph. Outputs that are VALUE_NONE become new values. */
clg_status decompose_own(decomposition *w, const char *op, size_t n_inputs, const value_id *inputs,
                         size_t n_outputs, value_id *outputs, node_id *out_node);
/* Returns the node that produces v, to set its attributes. */
node_id decompose_producer(const decomposition *w, value_id v);
clg_status decompose_cast(decomposition *w, value_id v, clg_dtype to, value_id *out);
/* Replaces the node itself by the last operator of its decomposition. */
clg_status decompose_become(decomposition *w, const char *op, size_t n_inputs,
                            const value_id *inputs);

/* Add constants: a tensor, whose reference decompose_tensor takes; values in the shape dims[rank];
 * a scalar. */
clg_status decompose_tensor(decomposition *w, tensor *t, value_id *out);
clg_status decompose_numbers(decomposition *w, clg_dtype dtype, int rank, const int64_t *dims,
                             const double *numbers, value_id *out);
clg_status decompose_number(decomposition *w, clg_dtype dtype, double number, value_id *out);
/* Adds a constant of int32 words, [n]. */
clg_status decompose_words(decomposition *w, const int32_t *words, size_t n, value_id *out);
/* Adds the floats of an attribute as a constant [n] or, with n_rows, [n_rows, n / n_rows]. */
clg_status decompose_floats(decomposition *w, const char *name, int64_t n_rows, value_id *out);

clg_dtype decompose_dtype(const decomposition *w, size_t i);
/* Set *out to input 0 in float32: decompose_input in its shape, decompose_rows as [N,F], the form
 * that is assumed if the rank is unknown. */
clg_status decompose_input(decomposition *w, value_id *out);
clg_status decompose_rows(decomposition *w, value_id *out);

/* Parameters of the kernel that turns scores into the model's outputs, cl/ml/scores.cl. */
typedef struct decompose_finish {
    int form;
    float limit;
} decompose_finish;

clg_status decompose_set_finish(decomposition *w, node_id n, const decompose_finish *f);
/* Replaces a regressor's node by its post_transform. */
clg_status decompose_finish_regressor(decomposition *w, value_id scores);
/* Makes output 1 of a classifier from scores; *out_index: the class with the highest score (NULL:
 * not needed). */
clg_status decompose_scores(decomposition *w, value_id scores, const decompose_finish *f,
                            value_id *out_index);
/* Replaces a classifier's node by the look-up of its labels. */
clg_status decompose_finish_labels(decomposition *w, value_id index);
/* Makes both outputs of a classifier: scores and labels. */
clg_status decompose_finish_classifier(decomposition *w, value_id scores,
                                       const decompose_finish *f);

/* Decompose support vector machines (decompose_svm.c). */
clg_status decompose_svm_classifier(decomposition *w);
clg_status decompose_svm_regressor(decomposition *w);

#endif
