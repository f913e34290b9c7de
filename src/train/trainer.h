/* SPDX-License-Identifier: Apache-2.0
 *
 * The implementation of clg_trainer. Parameters are inputs of the sessions, and lie one after
 * another in one tensor on the device; so do their gradients, and each state of the optimizer. A
 * session computes the gradients there, a second one updates parameters and states in place.
 */
#ifndef CLG_TRAIN_TRAINER_H
#define CLG_TRAIN_TRAINER_H

#include "session/session.h"
#include "train/optimizer.h"
#include "train/parameters.h"
#include "train/schedule.h"

/* The tensors that hold one number for each element of the parameters. */
typedef enum trainer_tensor {
    TRAINER_PARAMETERS,
    TRAINER_GRADIENTS, /* sums of those of a step's batches */
    TRAINER_BATCH,     /* gradients of the second and later batches of a step; NULL if it has one */
    TRAINER_STATES,    /* the first of OPTIMIZER_MAX_STATES */
    TRAINER_N_TENSORS = TRAINER_STATES + OPTIMIZER_MAX_STATES
} trainer_tensor;

struct clg_trainer {
    atomic_bool busy;
    clg_model *model;       /* as given; a reference */
    clg_model *with_loss;   /* owns the names of parameters */
    clg_model *cut;         /* the same with the parameters as inputs */
    device_context *device; /* a reference */
    parameter_list parameters;
    optimizer_update update;
    clg_schedule_options schedule;
    clg_loss_options loss; /* without its names */
    clg_value *tensors[TRAINER_N_TENSORS];
    clg_value **views[TRAINER_N_TENSORS]; /* by parameter: its part of the tensor */
    clg_session *gradients, *evaluation, *updates;
    clg_session *sums; /* NULL: a step has one batch */
    size_t n_batches;  /* of a step */
    size_t n_done;     /* batches of the step in progress */
    double loss_sum;   /* of these */
    uint64_t n_steps;
};

/* What clg_trainer_create takes, with everything decided. */
typedef struct trainer_options {
    clg_loss_options loss;
    optimizer_update update;
    clg_schedule_options schedule;
    parameter_patterns patterns;
    uint32_t n_batches;
    exec_options exec;
    clg_cancel *cancel;
    clg_progress_callback progress;
    void *progress_user;
} trainer_options;

/* Creates a trainer in `device`, the current one of owner. */
clg_status trainer_create(clg_context *owner, device_context *device, const clg_model *model,
                          const trainer_options *options, clg_trainer **out_trainer);
void trainer_free(clg_trainer *t);

/* Enters the trainer for one request; BUSY if another request has entered it. The functions below
 * need that. */
clg_status trainer_enter(clg_trainer *t);
void trainer_leave(clg_trainer *t);

/* Sets an input of one of the trainer's sessions. */
clg_status trainer_give(clg_session *s, const char *name, clg_value *v);
clg_status trainer_set_input(clg_trainer *t, const char *name, clg_value *value);
clg_status trainer_step(clg_trainer *t, clg_train_stats *out_stats);
clg_status trainer_evaluate(clg_trainer *t, double *out_loss);
/* Returns the part of a tensor that belongs to the parameter of this name; borrowed. NOT_FOUND. */
clg_status trainer_view(const clg_trainer *t, trainer_tensor which, const char *name,
                        clg_value **out_view);
clg_status trainer_model(const clg_trainer *t, clg_model **out_model);
/* As clg_trainer_memory (trainer_memory.c); *out is zero before. */
clg_status trainer_memory(clg_trainer *t, clg_memory_estimate *out);

#endif
