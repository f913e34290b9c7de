/* SPDX-License-Identifier: Apache-2.0
 *
 * Training: a model's float initializers are changed so that a loss becomes smaller. The rules of
 * clgraph.h apply.
 *
 *     clg_loss_options loss = CLG_LOSS_OPTIONS_INIT;
 *     clg_optimizer_options optimizer = CLG_OPTIMIZER_OPTIONS_INIT;
 *     clg_train_options options = CLG_TRAIN_OPTIONS_INIT;
 *     loss.kind = CLG_LOSS_CROSS_ENTROPY;
 *     optimizer.kind = CLG_OPTIMIZER_ADAM;
 *     options.loss = &loss;
 *     options.optimizer = &optimizer;
 *     clg_trainer_create(context, model, &options, &trainer);
 *     for each batch {
 *         clg_trainer_set_input(trainer, "image", images);
 *         clg_trainer_set_input(trainer, "target", labels);
 *         clg_trainer_step(trainer, &stats);
 *     }
 *     clg_trainer_model(trainer, &trained);
 *     clg_model_save(trained, "trained.onnx", NULL);
 */
#ifndef CLGRAPH_TRAIN_H
#define CLGRAPH_TRAIN_H

#include <clgraph/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- losses ---------------------------------------------------------------------------------- */

/* A number that compares an output of the model, y, with targets t of the same first dimension: the
 * mean over all elements (over the targets that count, for classes). */
typedef enum clg_loss {
    /* y is the loss: a tensor of one element. There are no targets. */
    CLG_LOSS_OUTPUT = 0,
    /* Softmax and cross-entropy; y: scores (logits) [N,C,...], t: class numbers [N,...], int64. */
    CLG_LOSS_CROSS_ENTROPY = 1,
    /* y: logarithms of probabilities [N,C,...]; t: class numbers [N,...], int64. */
    CLG_LOSS_NLL = 2,
    /* Sigmoid and binary cross-entropy; y: scores (logits); t, of y's shape and dtype: 0 to 1. */
    CLG_LOSS_BCE_WITH_LOGITS = 3,
    CLG_LOSS_MSE = 4, /* (y - t)^2, t of y's shape and dtype */
    CLG_LOSS_L1 = 5,  /* |y - t| */
    /* (y - t)^2 / 2 where |y - t| <= delta, else delta (|y - t| - delta / 2) */
    CLG_LOSS_HUBER = 6
} clg_loss;

typedef struct clg_loss_options {
    size_t struct_size;
    clg_loss kind;
    /* The output of the model, or another of its values; NULL: its only output. Where it is the
     * result of a Softmax (of a Sigmoid, with CLG_LOSS_BCE_WITH_LOGITS), what that reads is taken
     * in its place, and the log says so. */
    const char *output;
    const char *target;    /* the name of the input that is added; NULL: "target" */
    bool has_ignore_index; /* of CROSS_ENTROPY and NLL: targets of ignore_index do not count */
    int64_t ignore_index;
    /* Of CROSS_ENTROPY, 0 to 1: the share of a target that all classes divide. Not together with
     * ignore_index. */
    float label_smoothing;
    float delta; /* of HUBER, above 0 */
    /* Of CROSS_ENTROPY and NLL: a weight for each class, finite and at least 0; the mean is
     * weighted by those of the targets. NULL: 1. */
    const float *weights;
    size_t n_weights;
} clg_loss_options;
#define CLG_LOSS_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(clg_loss_options), CLG_LOSS_OUTPUT, NULL, NULL, false, -100, 0.0f, 1.0f, NULL, 0    \
    }

/* Adds a loss to a model: *out_model has, after the inputs of `model`, the targets, and one output,
 * "loss", of shape []. Where the rows of y are free, those of the targets have the name of the
 * first free first dimension of an input. A name that the model has already gets "_2" and so on.
 * Formulas are PyTorch's.
 *
 * Any thread. Errors: NOT_FOUND (output), INVALID_ARGUMENT (options; several outputs and none
 * chosen; probabilities of a Softmax with NLL; a Softmax or LogSoftmax that is not over the classes
 * alone), UNSUPPORTED_DTYPE (y is not float), SHAPE, and why
 * sessions refuse the model. */
CLG_API CLG_MUST_USE clg_status clg_model_add_loss(const clg_model *model,
                                                   const clg_loss_options *options,
                                                   clg_model **out_model);

/* ---- optimizers ------------------------------------------------------------------------------ */

/* How parameters follow from their gradients: PyTorch's formulas (torch.optim). */
typedef enum clg_optimizer {
    CLG_OPTIMIZER_SGD = 0, /* with momentum, dampening, nesterov */
    CLG_OPTIMIZER_ADAM = 1,
    CLG_OPTIMIZER_ADAMW = 2, /* Adam, with weight decay apart from the gradient */
    CLG_OPTIMIZER_ADAGRAD = 3,
    CLG_OPTIMIZER_RMSPROP = 4 /* with momentum, centered */
} clg_optimizer;

/* Numbers in [0, 1) unless stated otherwise. */
typedef struct clg_optimizer_options {
    size_t struct_size;
    clg_optimizer kind;
    double weight_decay; /* at least 0 */
    double momentum;     /* of SGD and RMSPROP */
    double dampening;    /* of SGD with momentum, 0 to 1 */
    bool nesterov;       /* of SGD with momentum, without dampening */
    double beta1, beta2; /* of ADAM and ADAMW */
    double alpha;        /* of RMSPROP */
    bool centered;       /* of RMSPROP */
    double epsilon;      /* at least 0; negative: 1e-8, for ADAGRAD 1e-10 */
    double rate_decay;   /* of ADAGRAD, at least 0 */
} clg_optimizer_options;
#define CLG_OPTIMIZER_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(clg_optimizer_options), CLG_OPTIMIZER_SGD, 0.0, 0.0, 0.0, false, 0.9, 0.999, 0.99,  \
            false, -1.0, 0.0                                                                       \
    }

/* How the learning rate of a step follows from the step's number. */
typedef enum clg_schedule {
    CLG_SCHEDULE_CONSTANT = 0,
    CLG_SCHEDULE_STEP = 1,        /* times gamma after every `period` steps */
    CLG_SCHEDULE_EXPONENTIAL = 2, /* times gamma after each step */
    CLG_SCHEDULE_LINEAR = 3,      /* from rate to last_rate at total_steps, then last_rate */
    CLG_SCHEDULE_COSINE = 4       /* the same along half a cosine */
} clg_schedule;

typedef struct clg_schedule_options {
    size_t struct_size;
    clg_schedule kind;
    double rate;           /* at least 0 */
    double last_rate;      /* of LINEAR and COSINE, at least 0 */
    double gamma;          /* of STEP and EXPONENTIAL, above 0 */
    uint64_t period;       /* of STEP, at least 1 */
    uint64_t total_steps;  /* of LINEAR and COSINE, more than warmup_steps */
    uint64_t warmup_steps; /* before the schedule: step n of them has rate (n + 1) / warmup_steps */
} clg_schedule_options;
#define CLG_SCHEDULE_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(clg_schedule_options), CLG_SCHEDULE_CONSTANT, 1e-3, 0.0, 0.1, 1, 0, 0               \
    }

/* ---- trainers -------------------------------------------------------------------------------- */

typedef struct clg_trainer clg_trainer;

/* In which form a kind of operator computes in steps. Evaluation is in the form of prediction. */
typedef enum clg_train_form {
    CLG_FORM_MODEL = 0, /* each node in its own */
    CLG_FORM_PREDICTION = 1,
    CLG_FORM_TRAINING = 2
} clg_train_form;

/* What a step does whose loss, or norm of the gradients, is not finite. */
typedef enum clg_on_nan {
    CLG_ON_NAN_STOP = 0, /* fails */
    CLG_ON_NAN_SKIP = 1  /* counts as a step, but changes no parameters */
} clg_on_nan;

typedef struct clg_train_options {
    size_t struct_size;
    const clg_loss_options *loss;           /* NULL: the model's only output is the loss */
    const clg_optimizer_options *optimizer; /* NULL: SGD */
    const clg_schedule_options *schedule;   /* NULL: a constant rate of 1e-3 */
    /* Names of initializers, where '*' matches any characters and '?' one. Parameters are the float
     * initializers that influence the loss, that match one of `train` (NULL: all but those without
     * a dimension, which are constants of formulas) and none of `freeze`. Settings of operators,
     * such as the ratio of Dropout, are none. */
    const char *const *train;
    size_t n_train;
    const char *const *freeze;
    size_t n_freeze;
    double clip_value;   /* gradients are cut to [-clip_value, clip_value]; 0: off */
    double clip_norm;    /* gradients are scaled down to this norm of all of them; 0: off */
    uint32_t accumulate; /* batches a step, whose gradients' mean is taken; 0: 1 */
    const clg_session_options *session; /* NULL: as usual; precision is FP32 */
    /* BatchNormalization: in the form of training it uses mean and variance of the batch, and each
     * batch of a step moves the running ones, new = old * momentum + batch's * (1 - momentum): the
     * initializers of its inputs 3 and 4, if `train` and `freeze` choose them as they choose
     * parameters. CLG_FORM_TRAINING changes only nodes whose initializers are chosen so. */
    clg_train_form batchnorm;
    /* Running variances are of the batch, as ONNX defines them; else of the sample, with n - 1 in
     * place of n, as PyTorch does, which refuses batches of one value. */
    bool population_variance;
    /* Dropout: in the form of training it drops, in CLG_FORM_MODEL where training_mode is true (up
     * to opset 6, is_test 0). What is dropped follows from `seed`, the step, its batch and the
     * node, as the numbers of other random operators do; an attribute seed is not read. */
    clg_train_form dropout;
    uint64_t seed;
    bool step_metrics; /* steps count right predictions: a few kernels more, of losses of classes */
    clg_on_nan on_nan;
    /* What the caller says about the data and their order, lines of "NAME VALUE"; checkpoints keep
     * it, and clg_trainer_load refuses one with another text. NULL: none. */
    const char *data_settings;
    /* Equal parts of each batch, which are given one after another in place of it: for steps that
     * need less memory. Checkpoints are of whole batches, and go on with any number of parts. 0: 1.
     * Accumulate times parts is at most UINT32_MAX. See clg_trainer_check_parts. */
    uint32_t parts;
} clg_train_options;
#define CLG_TRAIN_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(clg_train_options), NULL, NULL, NULL, NULL, 0, NULL, 0, 0.0, 0.0, 1, NULL,          \
            CLG_FORM_MODEL, false, CLG_FORM_MODEL, 0, false, CLG_ON_NAN_STOP, NULL, 0              \
    }

typedef struct clg_train_stats {
    size_t struct_size;
    uint64_t step;        /* steps done, this one included */
    double loss;          /* mean of the step's batches */
    double rate;          /* the step's learning rate */
    double gradient_norm; /* before clipping; NaN without clip_norm */
    /* With step_metrics, of the step's batches: see clg_measures. */
    uint64_t n_right, n_counted;
    uint64_t skipped; /* steps so far without an update: CLG_ON_NAN_SKIP */
} clg_train_stats;
#define CLG_TRAIN_STATS_INIT                                                                       \
    {                                                                                              \
        sizeof(clg_train_stats), 0, 0.0, 0.0, 0.0, 0, 0, 0                                         \
    }

/* How well the model predicts a batch. */
typedef struct clg_measures {
    size_t struct_size;
    double loss;
    /* Of losses of classes, else 0: targets whose class has the largest y (the first of equal
     * ones), and targets that count: all but ignore_index. */
    uint64_t n_right, n_counted;
} clg_measures;
#define CLG_MEASURES_INIT                                                                          \
    {                                                                                              \
        sizeof(clg_measures), 0.0, 0, 0                                                            \
    }

/* Creates a trainer. The model is not changed, and may be freed; parameters start as its
 * initializers. Parameters, their gradients and the optimizer's states are on the device, 4 bytes
 * each for float32, and are gone after DEVICE_LOST. Each step of the same inputs gives the same
 * bits. A trainer is for one thread at a time (BUSY).
 *
 * Errors: those of clg_model_add_loss, clg_model_gradient and clg_session_create; INVALID_ARGUMENT
 * (options; no parameters; parameters of several dtypes). */
CLG_API CLG_MUST_USE clg_status clg_trainer_create(clg_context *context, const clg_model *model,
                                                   const clg_train_options *options,
                                                   clg_trainer **out_trainer);
CLG_API void clg_trainer_free(clg_trainer *trainer);

/* Sets an input of the model, or the targets, for the next batches; the trainer keeps a reference.
 * Errors: those of clg_session_set_input. */
CLG_API CLG_MUST_USE clg_status clg_trainer_set_input(clg_trainer *trainer, const char *name,
                                                      clg_value *value);
/* Computes the gradients of a batch, or of one of its `parts`, and after `accumulate` batches
 * updates the parameters: then *out_stats, which may be NULL, has another step. Without clip_norm
 * the device may still update them when this returns; functions that need them wait, and the next
 * call that waits reports a failure of the update. After a failure the parameters are those of
 * before, unless it occurred in the update itself; gradients of earlier batches are dropped, but
 * not after CANCELLED. Errors: those of clg_session_run; DATA: the loss, or with clip_norm the
 * norm of the gradients, is not finite: the message names step, rate and the first such value.
 * Without clip_norm, gradients that are not finite while the loss is are found in the next step. */
CLG_API CLG_MUST_USE clg_status clg_trainer_step(clg_trainer *trainer, clg_train_stats *out_stats);
/* Computes the loss of the inputs that are set in the form of prediction; nothing changes. */
CLG_API CLG_MUST_USE clg_status clg_trainer_evaluate(clg_trainer *trainer, double *out_loss);
/* As clg_trainer_evaluate; counts right predictions too. */
CLG_API CLG_MUST_USE clg_status clg_trainer_measure(clg_trainer *trainer,
                                                    clg_measures *out_measures);

/* Ends the step or evaluation in progress, if any, which returns CANCELLED unless it has begun to
 * update parameters. NULL is allowed. Any thread. */
CLG_API void clg_trainer_cancel(clg_trainer *trainer);

/* Returns the number of steps done; 0 for NULL. Not concurrent with a step. */
CLG_API uint64_t clg_trainer_n_steps(const clg_trainer *trainer);
/* Returns which of n_rows rows is at a position of an epoch: data are shuffled without a list, and
 * a training that goes on finds its place from the number of steps alone. Each row has one position
 * in an epoch. position must be less than n_rows, else the result is 0. Any thread. */
CLG_API uint64_t clg_train_row(uint64_t seed, uint64_t epoch, uint64_t n_rows, uint64_t position);

/* Return the parameters, in the order of the model's initializers; borrowed. NULL when index is out
 * of range. */
CLG_API size_t clg_trainer_n_parameters(const clg_trainer *trainer);
CLG_API const clg_port *clg_trainer_parameter(const clg_trainer *trainer, size_t index);
/* Return a copy, in host memory, of a parameter or running statistic, or of a parameter's gradient
 * in the last step (zeros before it): the sum of those of its batches, before clipping. Errors:
 * NOT_FOUND, BUSY, DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_trainer_get_parameter(clg_trainer *trainer, const char *name,
                                                          clg_value **out_value);
CLG_API CLG_MUST_USE clg_status clg_trainer_get_gradient(clg_trainer *trainer, const char *name,
                                                         clg_value **out_value);
/* Changes a parameter or running statistic. Errors: also SHAPE and INVALID_ARGUMENT (dtype). */
CLG_API CLG_MUST_USE clg_status clg_trainer_set_parameter(clg_trainer *trainer, const char *name,
                                                          const clg_value *value);
/* Saves parameters, running statistics, the optimizer's states and the number of steps as a .npz
 * file, which replaces an earlier one whole, and reads it back into a trainer of the same model
 * with the same options: the steps that follow then have the same bits as without the break, on the
 * same device and driver. Batches of a step in progress are not saved, and loading drops them.
 * Errors: IO, INVALID_ARGUMENT (a checkpoint of another model or with other options, named with the
 * first that differs; a damaged file), BUSY, DEVICE_LOST. After a failure to load, the trainer is
 * unchanged unless the device failed. */
CLG_API CLG_MUST_USE clg_status clg_trainer_save(clg_trainer *trainer, const char *path);
CLG_API CLG_MUST_USE clg_status clg_trainer_load(clg_trainer *trainer, const char *path);
/* Returns the device memory that a step needs at most, for the shapes of the inputs that are set;
 * no step is made. weight_bytes: parameters, gradients, the optimizer's states, and weights that
 * are not trained; slab_bytes: results of nodes; io_bytes: outputs, and inputs unless the device
 * reads them in place. Evaluations need more. Errors: those of clg_session_memory. */
CLG_API CLG_MUST_USE clg_status clg_trainer_memory(clg_trainer *trainer,
                                                   clg_memory_estimate *out_estimate);
/* Checks that the gradient of a batch is, up to rounding, the mean of those of its equal parts: the
 * loss is a mean over rows, and rows do not depend on each other in the form in which steps
 * compute, as clg_model_batch proves. Errors: UNSUPPORTED_OPERATOR (the message names the node, or
 * what it is about the loss), INVALID_ARGUMENT (no input carries a batch), BUSY. */
CLG_API CLG_MUST_USE clg_status clg_trainer_check_parts(clg_trainer *trainer);
/* Creates a session that predicts with parameters and running statistics as they are when it runs,
 * in the trainer's memory, in the form of prediction: it has the model's outputs and inputs, and as
 * further inputs, which are set, what is trained. It may outlive the trainer. A run must not be
 * concurrent with a call that changes parameters; clones of the session have these inputs unset.
 * For many predictions with the same parameters, a session of clg_trainer_model is faster: weights
 * that are inputs are packed in each run. Errors: those of clg_session_create. */
CLG_API CLG_MUST_USE clg_status clg_trainer_session(clg_trainer *trainer,
                                                    clg_session **out_session);
/* Returns the model with parameters and running statistics as they are now as its initializers; its
 * nodes are in the forms that they had. */
CLG_API CLG_MUST_USE clg_status clg_trainer_model(clg_trainer *trainer, clg_model **out_model);

#ifdef __cplusplus
}
#endif

#endif
