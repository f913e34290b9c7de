/* SPDX-License-Identifier: Apache-2.0
 *
 * --memory of cltool train: batches divided so that a step fits into device memory, with the same
 * result up to rounding.
 */
#ifndef CLTOOL_TRAIN_MICRO_H
#define CLTOOL_TRAIN_MICRO_H

#include "options.h"

#include <clgraph/train.h>

/* Checks that the gradient of a batch is the mean of those of its parts: the loss is a mean over
 * rows that do not depend on each other, and each batch has as many rows. --inexact skips that.
 * n_rows: of an epoch. */
int train_micro_check(const options *o, const clg_model *model, const clg_loss_options *loss,
                      uint64_t n_rows, size_t batch);
/* Returns the next larger number of equal parts of a batch; 0: there is none. */
size_t train_micro_next(size_t batch, size_t n_parts);

#endif
