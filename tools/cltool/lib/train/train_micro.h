/* SPDX-License-Identifier: Apache-2.0
 *
 * --memory of cltool train: batches divided so that a step fits into device memory, with the same
 * result up to rounding.
 */
#ifndef CLTOOL_TRAIN_MICRO_H
#define CLTOOL_TRAIN_MICRO_H

#include "options.h"

#include <clgraph/train.h>

/* Checks that the gradient of a batch is the mean of those of its parts, and sets *out_is_exact:
 * clg_trainer_check_parts says so, and each batch has as many rows. Fails where it is not, unless
 * --inexact is given. n_rows: of an epoch. */
int train_micro_check(const options *o, clg_trainer *trainer, uint64_t n_rows, size_t batch,
                      bool *out_is_exact);
/* Returns the next larger number of equal parts of a batch; 0: there is none. */
size_t train_micro_next(size_t batch, size_t n_parts);

#endif
