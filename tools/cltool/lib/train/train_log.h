/* SPDX-License-Identifier: Apache-2.0
 *
 * The course of a training as files: --log (lines of JSON, or CSV), --tensorboard and --plot.
 */
#ifndef CLTOOL_TRAIN_LOG_H
#define CLTOOL_TRAIN_LOG_H

#include "options.h"

#include <jansson.h>

typedef struct train_log train_log;

/* Checks names of files, before anything is opened: they do not exist, unless --force or --resume
 * is given. */
int train_log_check(const options *o);
/* Opens the files that the options name; *out_log is closed by train_log_close, also after a
 * failure. With --resume, --log is continued after its lines up to `step`, the checkpoint's. */
int train_log_open(const options *o, uint64_t step, train_log **out_log);
/* Writes a line: an object with "step", and "epoch_loss" at the end of an epoch. Numbers of other
 * keys are written where the file has a place for them; null is left out. */
int train_log_write(train_log *log, const json_t *line);
int train_log_close(train_log *log);

#endif
