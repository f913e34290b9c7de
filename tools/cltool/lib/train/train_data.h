/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches of a training: rows of datasets in the order of an epoch, the last rows of another order
 * kept apart for validation.
 */
#ifndef CLTOOL_TRAIN_DATA_H
#define CLTOOL_TRAIN_DATA_H

#include "augment.h"
#include "train_classes.h"

typedef struct train_data {
    const input_set *inputs;
    uint64_t seed;
    size_t batch;
    train_checks checks;   /* of each row that is read */
    augment augment;       /* of rows to train with */
    uint64_t n_rows;       /* of the datasets */
    uint64_t n_validation; /* of these, kept apart */
} train_data;

/* Checks that the datasets have equally many rows, and classes that the model has, and divides the
 * rows. share: of the validation. */
int train_data_open(const input_set *inputs, const train_checks *checks, uint64_t seed,
                    size_t batch, double share, train_data *out_data);
/* Returns the number of batches of an epoch; the last may have fewer rows. */
uint64_t train_data_batches(const train_data *d);
/* The values of the inputs in one batch. */
typedef struct train_batch {
    size_t n_rows;
    clg_value **values; /* of each input; NULL where there is none */
} train_batch;          /* all zeros is valid and empty */
/* Reads a batch: of the training, where batch i is batch i % train_data_batches of epoch
 * i / train_data_batches, or of the validation. Datasets are read by one thread at a time. */
int train_data_gather(const train_data *d, bool validates, uint64_t index, train_batch *out_batch);
/* Sets the trainer's inputs, which keep references. */
int train_batch_set(const train_data *d, const train_batch *batch, clg_trainer *trainer);
void train_batch_free(const train_data *d, train_batch *batch);
/* Returns the mean loss of the rows kept apart, and the sums of what else is measured. */
int train_data_validate(const train_data *d, clg_trainer *trainer, clg_measures *out_measures);

#endif
