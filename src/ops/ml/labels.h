/* SPDX-License-Identifier: Apache-2.0
 *
 * Class labels of ai.onnx.ml operators: classlabels_strings, or classlabels_int64s, which some
 * operators call classlabels_ints.
 */
#ifndef CLG_OPS_LABELS_H
#define CLG_OPS_LABELS_H

#include "graph/graph.h"

/* Returns the number of labels; 0 without any. */
size_t labels_count(const node *n);
/* Returns INVALID_MODEL when the node has no labels, or both strings and integers. */
clg_status labels_check(const node *n);
clg_dtype labels_dtype(const node *n);
/* Creates a tensor [C] of the labels, of strings or int64; the caller owns it. */
clg_status labels_of(const node *n, tensor **out_labels);

#endif
