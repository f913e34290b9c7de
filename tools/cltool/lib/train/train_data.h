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
/* Sets the trainer's inputs to batch `index` of an epoch; *out_n: its rows. */
int train_data_set(const train_data *d, clg_trainer *trainer, uint64_t epoch, uint64_t index,
                   size_t *out_n);
/* Returns the mean loss of the rows kept apart. */
int train_data_validate(const train_data *d, clg_trainer *trainer, double *out_loss);

#endif
