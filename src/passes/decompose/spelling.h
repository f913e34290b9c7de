/* SPDX-License-Identifier: Apache-2.0
 *
 * Spelling an operator of ai.onnx.ml in others (pass_ml.c): nodes and constants are added, and at last the operator's node
 * itself becomes one of them, so that its outputs keep their names. All nodes get its label, for messages.
 */
#ifndef CLG_PASSES_SPELLING_H
#define CLG_PASSES_SPELLING_H

#include "passes/rewrite.h"

#define SPELLING_OPSET 13 /* what operators of the default domain mean here */

typedef struct spelling {
    graph *g;
    const survey *s;
    node_id id;
    node n; /* as it was */
} spelling;

/* An operator of the default domain; *out may be among the inputs. */
clg_status spelling_add(spelling *w, const char *op, size_t n_inputs, const value_id *inputs,
                        value_id *out);
/* An operator of the domain clgraph. Outputs that are VALUE_NONE become new values. */
clg_status spelling_own(spelling *w, const char *op, size_t n_inputs, const value_id *inputs,
                        size_t n_outputs, value_id *outputs, node_id *out_node);
/* For the attributes of what was added. */
node_id spelling_producer(const spelling *w, value_id v);
clg_status spelling_cast(spelling *w, value_id v, clg_dtype to, value_id *out);
/* The node itself becomes the last operator of its spelling. */
clg_status spelling_become(spelling *w, const char *op, size_t n_inputs, const value_id *inputs);

/* Constants. The tensor's reference is taken over. */
clg_status spelling_tensor(spelling *w, tensor *t, value_id *out);
clg_status spelling_numbers(spelling *w, clg_dtype dtype, int rank, const int64_t *dims,
                            const double *numbers, value_id *out);
clg_status spelling_number(spelling *w, clg_dtype dtype, double number, value_id *out);
/* int32 numbers [n]. */
clg_status spelling_words(spelling *w, const int32_t *words, size_t n, value_id *out);
/* Floats of an attribute as [n] or, with n_rows, [n_rows, n / n_rows]. */
clg_status spelling_floats(spelling *w, const char *name, int64_t n_rows, value_id *out);

clg_dtype spelling_dtype(const spelling *w, size_t i);
/* Input 0 in float32; the same as [N,F], which one of unknown rank is taken for. */
clg_status spelling_input(spelling *w, value_id *out);
clg_status spelling_rows(spelling *w, value_id *out);

/* How scores become what the model gives, cl/ml/scores.cl. */
typedef struct spelling_finish {
    int form;
    float limit;
} spelling_finish;

clg_status spelling_set_finish(spelling *w, node_id n, const spelling_finish *f);
/* A regressor's node becomes its post_transform. */
clg_status spelling_finish_regressor(spelling *w, value_id scores);
/* Output 1 of a classifier, from scores; *out_index: which class wins (NULL: not asked for). */
clg_status spelling_scores(spelling *w, value_id scores, const spelling_finish *f,
                           value_id *out_index);
/* A classifier's node becomes the look-up of its labels. */
clg_status spelling_finish_labels(spelling *w, value_id index);
/* Both of these. */
clg_status spelling_finish_classifier(spelling *w, value_id scores, const spelling_finish *f);

/* Support vector machines (spelling_svm.c). */
clg_status spelling_svm_classifier(spelling *w);
clg_status spelling_svm_regressor(spelling *w);

#endif
