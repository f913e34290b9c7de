/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes scalars as TensorBoard reads them: a file of events in TFRecord framing.
 */
#ifndef CLTOOL_TENSORBOARD_H
#define CLTOOL_TENSORBOARD_H

#include "failure.h"

#include <stdio.h>

typedef struct tensorboard {
    FILE *file;
    char *path;
} tensorboard; /* all zeros: closed */

/* Makes the folder, and in it a new file "events.out.tfevents.SECONDS.cltool". */
int tensorboard_open(const char *folder, tensorboard *out);
/* Adds a number of a step; the file is complete after each. Not for NaN. */
int tensorboard_scalar(tensorboard *t, const char *tag, int64_t step, double number);
int tensorboard_close(tensorboard *t);

#endif
