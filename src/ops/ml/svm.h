/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and checks the attributes of support vector machines: SVMClassifier and SVMRegressor of
 * ai.onnx.ml 1.
 */
#ifndef CLG_OPS_SVM_H
#define CLG_OPS_SVM_H

#include "graph/graph.h"

typedef enum svm_kernel { SVM_LINEAR, SVM_POLY, SVM_RBF, SVM_SIGMOID } svm_kernel;

/* The words of kernel_type, in the order of svm_kernel; ends with NULL. */
extern const char *const svm_kernel_types[];

/* A support vector machine; svm_read sets all fields. */
typedef struct svm_model {
    svm_kernel kernel;
    float gamma, coef0, degree;
    /* 0 for a linear model, which has only coefficients; its kernel is SVM_LINEAR */
    int64_t n_vectors;
    int64_t n_features;
    int64_t n_classes; /* 1 for a regressor */
    int64_t n_scores;  /* pairs of classes for a classifier with vectors; else n_classes */
    bool has_probabilities;
    const int64_t *per_class; /* numbers of vectors; NULL for linear models and regressors */
    float rho;                /* first entry of attribute rho */
} svm_model;

/* Reads the attributes. INVALID_MODEL if the lengths of lists contradict each other. */
clg_status svm_read(const node *n, svm_model *out_svm);

#endif
