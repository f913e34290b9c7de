/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of a training: which initializers they are, and where each is in the tensors
 * that hold all of them, all their gradients and all states of the optimizer.
 */
#ifndef CLG_TRAIN_PARAMETERS_H
#define CLG_TRAIN_PARAMETERS_H

#include "session/exec/model.h"

/* Elements of a parameter begin at a multiple of this: kernels read whole vectors. */
#define PARAMETER_ALIGN 32

typedef struct parameter {
    const char *name; /* of the model */
    const clg_port *port;
    const tensor *initial;
    int64_t offset; /* elements */
} parameter;

typedef struct parameter_list {
    parameter *items;
    const char **names; /* of the items */
    size_t n;
    clg_dtype dtype;    /* of all */
    int64_t n_elements; /* of all, gaps included */
} parameter_list;

/* Patterns of names; n 0: none. */
typedef struct parameter_patterns {
    const char *const *train, *const *freeze;
    size_t n_train, n_freeze;
} parameter_patterns;

/* Returns whether the patterns choose the initializer of this name. */
bool parameters_match(const parameter_patterns *patterns, const char *name);
/* Marks the values of g on which the value `loss` depends, but for the statistics of
 * BatchNormalization. is_needed: by value, false at first. */
void parameters_mark_needed(const graph *g, const char *loss, bool *is_needed);
/* Lists the initializers that are marked, by value; `what` says in messages what they are. */
clg_status parameters_list(const clg_model *model, const bool *is_marked, const char *what,
                           parameter_list *out);
/* Lists the float initializers of a model on which the value `loss` depends, by the patterns, but
 * for statistics of BatchNormalization. INVALID_ARGUMENT if there are none, of several dtypes, or
 * a pattern of `train` matches none. Names, ports and tensors are the model's. */
clg_status parameters_find(const clg_model *model, const char *loss,
                           const parameter_patterns *patterns, parameter_list *out);
void parameters_deinit(parameter_list *list);
/* Returns the parameter of this name; NULL if there is none. */
const parameter *parameters_get(const parameter_list *list, const char *name);

#endif
