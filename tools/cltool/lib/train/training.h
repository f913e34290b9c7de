/* SPDX-License-Identifier: Apache-2.0
 *
 * What cltool train works with: the model with its loss, the data, the trainer.
 */
#ifndef CLTOOL_TRAINING_H
#define CLTOOL_TRAINING_H

#include "engine.h"
#include "train_best.h"
#include "train_log.h"
#include "train_reader.h"

typedef struct training {
    const options *options;
    struct options with_target; /* the options, in which the targets are an input */
    text_list files, images;    /* theirs */
    text_list head;             /* initializers of the new layer of --head */
    engine engine;
    clg_model *with_loss;
    const char *target; /* the input of the targets; NULL: none */
    input_set inputs;
    train_data data;
    clg_loss_options loss;
    float *class_weights;
    char *classes; /* what --classes writes */
    clg_optimizer_options optimizer;
    clg_schedule_options schedule;
    bool has_own_total; /* the schedule's steps were given */
    clg_trainer *trainer;
    bool has_checkpoint; /* from which the training goes on, or that it saved */
    train_reader *reader;
    double idle_share; /* part of the time for which data were waited for */
    train_log *log;
    uint64_t n_steps;            /* of the whole training */
    size_t n_parts;              /* into which --memory divides a batch; 1: none */
    bool is_exact;               /* with parts the training is the same up to rounding */
    uint64_t first_step;         /* done before this command */
    double begun_ms;             /* when its first step began */
    double started_ms;           /* when the epoch's first step began */
    double sum;                  /* of losses of rows in this epoch */
    uint64_t n_rows;             /* of its steps */
    uint64_t n_open;             /* of the batches of the step in progress */
    uint64_t n_right, n_counted; /* of its steps, of losses of classes */
    bool has_accuracy;
    train_best best;
} training;

/* Opens model, data and trainer as the options say; with --resume, at the checkpoint. All zeros but
 * options is valid before; training_close is called also after a failure. */
int training_open(training *t);
void training_close(training *t);
/* Returns the batches of a step, as the trainer has them. */
uint64_t training_batches_of_step(const training *t);
/* Sets the trainer's inputs to the first batch; *out_n: its rows. */
int training_first_batch(const training *t, size_t *out_n);

#endif
