/* SPDX-License-Identifier: Apache-2.0
 *
 * The implementation of clg_trainer. Parameters are inputs of the sessions, and lie one after
 * another in one tensor on the device; so do their gradients, and each state of the optimizer. A
 * session computes the gradients there, a second one updates parameters and states in place.
 */
#ifndef CLG_TRAIN_TRAINER_H
#define CLG_TRAIN_TRAINER_H

#include "session/session.h"
#include "train/forms.h"
#include "train/metrics.h"
#include "train/optimizer.h"
#include "train/parameters.h"
#include "train/schedule.h"
#include "train/watch.h"

/* The tensors that hold one number for each element of the parameters or of the running statistics,
 * which may be none. */
typedef enum trainer_tensor {
    TRAINER_PARAMETERS,
    TRAINER_GRADIENTS, /* sums of those of a step's batches */
    TRAINER_BATCH,     /* gradients of the second and later batches of a step; NULL if it has one */
    TRAINER_STATISTICS,
    TRAINER_NEW,    /* statistics after the first, third ... batch of a step */
    TRAINER_NEWER,  /* after the second, fourth ...; NULL if it has one */
    TRAINER_STATES, /* the first of OPTIMIZER_MAX_STATES */
    TRAINER_N_TENSORS = TRAINER_STATES + OPTIMIZER_MAX_STATES
} trainer_tensor;

struct clg_trainer {
    atomic_bool busy;
    clg_cancel cancel;    /* of the call in progress: clg_trainer_cancel */
    clg_model *model;     /* as given, but for what forms_separate changes; a reference */
    clg_model *with_loss; /* owns the names of parameters */
    loss_values values;   /* of with_loss */
    /* The same in the form of training, with parameters and statistics as inputs; outputs: the
     * loss, with has_step_metrics metrics, new statistics. */
    clg_model *cut;
    bool has_metrics, has_step_metrics; /* evaluations and steps have those of classes */
    device_context *device;             /* a reference */
    parameter_list parameters, statistics;
    train_forms forms;
    optimizer_update update;
    clg_schedule_options schedule;
    clg_loss_options loss;              /* without its names and weights */
    uint64_t weights_hash, output_hash; /* of these, and of the name of y */
    clg_value *tensors[TRAINER_N_TENSORS];
    clg_value **views[TRAINER_N_TENSORS]; /* by parameter: its part of the tensor */
    clg_session *gradients, *evaluation, *updates;
    size_t *statistic_inputs; /* by statistic: the input of gradients */
    clg_session *sums;        /* NULL: a step has one batch */
    size_t n_batches;         /* of a step, or their parts */
    size_t n_parts;           /* of a batch */
    size_t n_done;            /* n_batches of the step in progress */
    /* of these: sums of losses and counts */
    double loss_sum;
    uint64_t n_right, n_counted;
    bool has_nan; /* one of these is not finite: the step is skipped */
    /* An update may be in flight, in the queue of the gradients: trainer_enter_settled waits. */
    bool is_updating;
    bool has_run_updates; /* t->updates has run: its inputs are set */
    bool has_updated;     /* that of the step in progress was enqueued with its gradients */
    clg_value *numbers;   /* which that update reads; NULL: no update is known to be in flight */
    bool is_shared; /* sessions of the application's read parameters: steps wait for updates */
    uint64_t n_steps, n_skipped; /* n_skipped of n_steps had no update */
    gradient_watch watch;
    clg_on_nan on_nan;
    uint64_t seed;       /* of random numbers in steps */
    char *data_settings; /* of the options */
};

/* What clg_trainer_create takes, with everything decided. */
typedef struct trainer_options {
    clg_loss_options loss;
    optimizer_update update;
    clg_schedule_options schedule;
    train_forms forms;
    parameter_patterns patterns;
    uint32_t n_batches, n_parts; /* n_batches: parts of batches */
    uint64_t seed;
    bool has_step_metrics;
    clg_on_nan on_nan;
    const char *data_settings; /* lines of text; NULL: none */
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
/* As trainer_enter, and waits for the update of the last step: for functions that read or change
 * parameters, statistics or states. */
clg_status trainer_enter_settled(clg_trainer *t);
void trainer_leave(clg_trainer *t);

/* These are in trainer_update.c. */
/* Computes the gradients of a batch, and where possible enqueues the update after them
 * (has_updated). The caller has entered and refreshed t->gradients, and entered t->updates. */
clg_status trainer_run_gradients(clg_trainer *t);
/* Updates now. *out_norm: the norm of the gradients, where clip_norm limits that. */
clg_status trainer_update(clg_trainer *t, double *out_norm);
/* Waits for an update in flight. */
clg_status trainer_settle(clg_trainer *t);

/* Makes the random numbers of the next run of a session, which the caller has entered, a function
 * of the trainer's seed and of the batch's place in the training. */
void trainer_seed(const clg_trainer *t, clg_session *s);
/* Sets an input of one of the trainer's sessions. */
clg_status trainer_give(clg_session *s, const char *name, clg_value *v);
clg_status trainer_set_input(clg_trainer *t, const char *name, clg_value *value);
clg_status trainer_step(clg_trainer *t, clg_train_stats *out_stats);
/* Ends the call in progress, if any, unless it has begun to change parameters. Any thread. */
void trainer_cancel(clg_trainer *t);
clg_status trainer_evaluate(clg_trainer *t, clg_measures *out);
/* Returns the index of the first new statistic among the outputs of t->gradients, after gradients,
 * the loss and its metrics. */
size_t trainer_first_statistic(const clg_trainer *t);
/* Returns what the elements of a tensor belong to. */
const parameter_list *trainer_list(const clg_trainer *t, trainer_tensor which);
/* Returns the part of a tensor that belongs to the parameter of this name, or with
 * TRAINER_PARAMETERS to the statistic; borrowed. NOT_FOUND. */
clg_status trainer_view(const clg_trainer *t, trainer_tensor which, const char *name,
                        clg_value **out_view);
clg_status trainer_model(const clg_trainer *t, clg_model **out_model);
/* Creates a session of the model that reads parameters and statistics where they are. */
clg_status trainer_session(clg_trainer *t, clg_session **out_session);
/* Sets the inputs of a session that are parameters and statistics. */
clg_status trainer_give_all(const clg_trainer *t, clg_session *s);
/* As clg_trainer_check_parts (trainer_parts.c). */
clg_status trainer_check_parts(const clg_trainer *t);
/* As clg_trainer_memory (trainer_memory.c); *out is zero before. */
clg_status trainer_memory(clg_trainer *t, clg_memory_estimate *out);

#endif
