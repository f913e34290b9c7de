/* SPDX-License-Identifier: Apache-2.0
 *
 * Which model and which checkpoints a training keeps: the best of the epochs, and the last ones.
 */
#ifndef CLTOOL_TRAIN_BEST_H
#define CLTOOL_TRAIN_BEST_H

#include "options.h"
#include "train_data.h"

/* The best epoch so far. */
typedef struct train_best {
    const char *file; /* --best; NULL: none is kept */
    bool by_accuracy; /* of the validation; else by its loss */
    bool has_value;
    double value;
} train_best;

/* Reads --best and --best-by. has_accuracy: the loss is of classes. */
int train_best_open(const options *o, bool has_accuracy, train_best *out);
/* Takes the model that --best names, of an earlier part of the training, as the best so far. given:
 * options of the trainer. Does nothing where there is no such file. */
int train_best_resume(train_best *b, const train_data *data, clg_context *context,
                      const clg_train_options *given);
/* Writes the trainer's model if it is better than the best so far. */
int train_best_keep(train_best *b, clg_trainer *trainer, const clg_measures *validation);
/* Saves the trainer's checkpoint also as FILE-STEP.npz, and removes that of keep * every steps
 * before. */
int train_keep_checkpoint(const options *o, clg_trainer *trainer);

#endif
