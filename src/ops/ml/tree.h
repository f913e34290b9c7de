/* SPDX-License-Identifier: Apache-2.0
 *
 * Ensembles of decision trees (ai.onnx.ml TreeEnsembleClassifier and TreeEnsembleRegressor 1 and 3,
 * TreeEnsemble 5): checks the lists of the attributes and sorts them in the order in which a kernel
 * walks them (cl/ml/tree.cl).
 */
#ifndef CLG_OPS_TREE_H
#define CLG_OPS_TREE_H

#include "ops/core/op.h"

/* Words of a node: feature; TREE_LEAF, or the relations of feature and value for which the true
 * branch is taken; and two numbers: of a leaf the index of its first vote and their count, else the
 * nodes for true and false. */
#define TREE_NODE_WORDS 4

enum { TREE_LESS = 1, TREE_EQUAL = 2, TREE_GREATER = 4, TREE_UNORDERED = 8, TREE_LEAF = 16 };

typedef enum tree_aggregate { TREE_SUM, TREE_AVERAGE, TREE_MIN, TREE_MAX } tree_aggregate;

typedef struct tree_forest {
    int32_t *nodes;    /* [n_nodes, 4], each tree contiguous, parents before children */
    double *values;    /* [n_nodes]: the value with which the feature is compared */
    int32_t *roots;    /* [n_trees] */
    int32_t *vote_ids; /* [n_votes]: targets, in the order of leaves */
    double *vote_weights;
    double *base; /* [n_targets] */
    size_t n_nodes, n_trees, n_votes, n_base;
    int64_t n_targets, n_features; /* n_features: the largest index read, plus 1 */
    tree_aggregate aggregate;
    int64_t first_id;       /* the only target that is voted for, or -1 */
    bool is_never_negative; /* no vote has a negative weight */
    arena memory;
} tree_forest;

/* Reads a forest; the targets of a classifier are its classes. INVALID_MODEL for invalid trees:
 * nodes missing, duplicated or in a cycle, numbers out of range. */
clg_status tree_read(const node *n, bool is_classifier, tree_forest *out_forest);
/* Reads a TreeEnsemble of version 5 (tree5.c). */
clg_status tree_read_5(const node *n, tree_forest *out_forest);
void tree_deinit(tree_forest *f);

/* Values of the attribute post_transform; ml_transform_of returns the node's value, or -1 if
 * it is unknown. */
typedef enum ml_transform {
    ML_NONE,
    ML_SOFTMAX,
    ML_LOGISTIC,
    ML_SOFTMAX_ZERO,
    ML_PROBIT
} ml_transform;
int ml_transform_of(const node *n);

#endif
