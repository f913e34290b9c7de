/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the batches of a training on a separate thread, a few ahead of the device. Batches and
 * their order are those of train_data_gather; what is wrong with one is reported when it is taken.
 */
#ifndef CLTOOL_TRAIN_READER_H
#define CLTOOL_TRAIN_READER_H

#include "train_data.h"

/* How many batches may be ready: one is computed with, one waits, one is being read. */
#define TRAIN_READER_AHEAD 2

typedef struct train_reader train_reader;

/* Starts to read batches first to end - 1: of the training, where batch i is batch
 * i % train_data_batches of epoch i / train_data_batches, or of the validation. The data must stay
 * as they are until the reader is stopped. Several readers may read the same datasets. */
int train_reader_start(const train_data *data, bool validates, uint64_t first, uint64_t end,
                       train_reader **out_reader);
/* Waits for the next batch and moves it to *out_batch. A failure to read it, or Ctrl-C, is an
 * error, after which there are no batches. One thread. */
int train_reader_take(train_reader *reader, train_batch *out_batch);
/* Waits for the next batch and sets the trainer's inputs to it; *out_n: its rows. */
int train_reader_set(train_reader *reader, clg_trainer *trainer, size_t *out_n);
/* Returns for how long batches were waited for, in milliseconds. */
double train_reader_waited_ms(const train_reader *reader);
/* Waits for the batch that is being read, and frees the reader and its batches; accepts NULL. */
void train_reader_stop(train_reader *reader);

#endif
