/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the class labels of ai.onnx.ml operators: attribute classlabels_strings, or
 * classlabels_int64s (classlabels_ints in some operators).
 */
#ifndef CLG_OPS_LABELS_H
#define CLG_OPS_LABELS_H

#include "graph/graph.h"

/* Returns the number of labels; 0 without any. */
size_t labels_count(const node *n);
/* Returns INVALID_MODEL if the node has no labels, or both strings and integers; else CLG_OK. */
clg_status labels_check(const node *n);
clg_dtype labels_dtype(const node *n);
/* Creates a tensor [C] with the labels, strings or int64. The caller owns it. */
clg_status labels_of(const node *n, tensor **out_labels);

#endif
