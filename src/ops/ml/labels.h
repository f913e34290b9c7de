/* SPDX-License-Identifier: Apache-2.0
 *
 * The classes that an operator of ai.onnx.ml names: classlabels_strings, or classlabels_int64s,
 * which some operators call classlabels_ints.
 */
#ifndef CLG_OPS_LABELS_H
#define CLG_OPS_LABELS_H

#include "graph/graph.h"

/* 0 when there are none. */
size_t labels_count(const node *n);
/* INVALID_MODEL when there are none, or words and numbers both. */
clg_status labels_check(const node *n);
clg_dtype labels_dtype(const node *n);
/* [C]; of strings where there are strings. */
clg_status labels_of(const node *n, tensor **out_labels);

#endif
