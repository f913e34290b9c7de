/* SPDX-License-Identifier: Apache-2.0
 *
 * Support vector machines (ai.onnx.ml SVMClassifier and SVMRegressor 1): reads and checks their
 * attributes.
 */
#ifndef CLG_OPS_SVM_H
#define CLG_OPS_SVM_H

#include "graph/graph.h"

typedef enum svm_kernel { SVM_LINEAR, SVM_POLY, SVM_RBF, SVM_SIGMOID } svm_kernel;

typedef struct svm_model {
    svm_kernel kernel;
    float gamma, coef0, degree;
    int64_t n_vectors; /* 0: a linear model, with coefficients only; the kernel is then LINEAR */
    int64_t n_features;
    int64_t n_classes; /* 1 for a regressor */
    int64_t n_scores;  /* for a classifier with vectors: one per pair of classes; else n_classes */
    bool has_probabilities;
    const int64_t *per_class; /* vectors of each class; NULL: no classifier with vectors */
    float rho;                /* the first one of the attribute */
} svm_model;

/* Reads the attributes. INVALID_MODEL where lengths of lists contradict each other, or a word is
 * unknown. */
clg_status svm_read(const node *n, svm_model *out_svm);

#endif
