/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads ensembles of decision trees (ai.onnx.ml TreeEnsembleClassifier and TreeEnsembleRegressor 1
 * and 3, TreeEnsemble 5): checks the lists of the attributes, and writes nodes in the layout that
 * cl/ml/tree.cl walks.
 */
#ifndef CLG_OPS_TREE_H
#define CLG_OPS_TREE_H

#include "ops/core/op.h"

/* The int32 words of a node:
 *
 *   word  inner node                                               leaf
 *   0     index of a feature                                       0
 *   1     which results of the comparison take the true branch     TREE_LEAF
 *   2     index of the true branch's node                          index of its first vote
 *   3     index of the false branch's node                         number of votes */
#define TREE_NODE_WORDS 4

/* Bits of word 1. TREE_UNORDERED: the feature is NaN. */
enum { TREE_LESS = 1, TREE_EQUAL = 2, TREE_GREATER = 4, TREE_UNORDERED = 8, TREE_LEAF = 16 };

typedef enum tree_aggregate { TREE_SUM, TREE_AVERAGE, TREE_MIN, TREE_MAX } tree_aggregate;

/* Trees in the layout of cl/ml/tree.cl. Each leaf has weighted votes for targets (classes
 * of a classifier, outputs of a regressor). A target's votes are aggregated over all trees. */
typedef struct tree_forest {
    int32_t *nodes;    /* [n_nodes, 4], each tree contiguous, parents before children */
    double *values;    /* [n_nodes]: the value with which the feature is compared */
    int32_t *roots;    /* [n_trees] */
    int32_t *vote_ids; /* [n_votes]: the targets, grouped by leaf */
    double *vote_weights;
    double *base; /* [n_targets]: added to the aggregated votes */
    size_t n_nodes, n_trees, n_votes, n_base;
    /* n_features: the largest feature index that a node reads, plus 1 */
    int64_t n_targets, n_features;
    tree_aggregate aggregate;
    int64_t first_id;       /* the target of all votes; -1 if they have several */
    bool is_never_negative; /* no vote has a negative weight */
    arena memory;
} tree_forest;

/* Reads a forest of versions 1 and 3; a classifier's targets are its classes. The caller frees
 * *out_forest with tree_deinit. INVALID_MODEL for nodes that are missing, duplicated or in a cycle,
 * and for numbers out of range. */
clg_status tree_read(const node *n, bool is_classifier, tree_forest *out_forest);
/* The same for TreeEnsemble of ai.onnx.ml 5 (tree5.c). */
clg_status tree_read_5(const node *n, tree_forest *out_forest);
void tree_deinit(tree_forest *f);

/* Values of the attribute post_transform. ml_transform_of returns the node's value, be it a word of
 * ml_transforms or, in TreeEnsemble of ai.onnx.ml 5, an integer. */
typedef enum ml_transform {
    ML_NONE,
    ML_SOFTMAX,
    ML_LOGISTIC,
    ML_SOFTMAX_ZERO,
    ML_PROBIT
} ml_transform;
extern const char *const ml_transforms[]; /* in the order of ml_transform; ends with NULL */
int ml_transform_of(const node *n);
/* The words of aggregate_function, in the order of tree_aggregate; ends with NULL. */
extern const char *const ml_aggregates[];

#endif
