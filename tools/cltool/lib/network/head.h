/* SPDX-License-Identifier: Apache-2.0
 *
 * A new classification layer for a model, for transfer learning.
 */
#ifndef CLTOOL_HEAD_H
#define CLTOOL_HEAD_H

#include "options.h"

#include <clgraph/clgraph.h>

/* Replaces the last Gemm, MatMul or Conv before --of, or before the only output, by one of --head
 * classes, with new weights from --init and --seed; *model is then another. *out_names: its
 * initializers, which head_free_names frees. */
int head_replace(const options *o, clg_model **model, text_list *out_names);
void head_free_names(text_list *names);

#endif
