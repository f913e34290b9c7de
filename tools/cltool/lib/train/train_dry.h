/* SPDX-License-Identifier: Apache-2.0
 *
 * What cltool train --dry-run prints: parameters and memory of a training that is not started.
 */
#ifndef CLTOOL_TRAIN_DRY_H
#define CLTOOL_TRAIN_DRY_H

#include "options.h"

#include <clgraph/train.h>

/* Prints the parameters, and the device memory of a step for the inputs that are set. n_rows: of a
 * batch. */
int train_dry_print(const options *o, clg_trainer *trainer, size_t n_rows);

#endif
