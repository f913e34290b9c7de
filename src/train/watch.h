/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks for parameters that do not learn.
 */
#ifndef CLG_TRAIN_WATCH_H
#define CLG_TRAIN_WATCH_H

#include "train/parameters.h"

/* Steps after which parameters without a gradient are reported. */
#define WATCH_STEPS 10

typedef struct gradient_watch {
    bool *has_gradient; /* by parameter: in some step, an element was not 0 */
    uint64_t n_steps;
    bool is_done;
} gradient_watch;

clg_status watch_init(gradient_watch *w, const parameter_list *parameters);
void watch_deinit(gradient_watch *w);
/* Reads the gradients, by parameter, of those that had none so far: in an ordinary training all of
 * them, after the first step. After WATCH_STEPS steps, logs a warning that names those without. */
clg_status watch_step(gradient_watch *w, const parameter_list *parameters,
                      clg_value *const *gradients);

#endif
