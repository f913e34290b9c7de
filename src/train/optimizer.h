/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizers, as formulas of which a graph is made. It updates all parameters at once, which lie
 * one after another in one tensor, in place.
 */
#ifndef CLG_TRAIN_OPTIMIZER_H
#define CLG_TRAIN_OPTIMIZER_H

#include "graph/graph.h"

#include <clgraph/train.h>

#define OPTIMIZER_MAX_STATES 3

/* Numbers that differ from step to step: the elements of the input "numbers". */
typedef enum optimizer_number {
    NUMBER_RATE, /* the learning rate */
    NUMBER_STEP, /* the factor of the optimizer's step: the rate, corrected for the step's number */
    NUMBER_SCALE,  /* of Adam: 1 / the square root of the correction of squared gradients */
    NUMBER_FRESH,  /* of SGD with momentum: the share of the gradient that is added to it */
    NUMBER_FACTOR, /* of the gradients: 1 / number of batches */
    OPTIMIZER_N_NUMBERS
} optimizer_number;

typedef struct optimizer_update {
    clg_optimizer_options options;
    double clip_value, clip_norm; /* 0: not */
    bool scales;                  /* NUMBER_FACTOR is not 1 */
} optimizer_update;

/* Refuses numbers outside of their range. */
clg_status optimizer_check(const clg_optimizer_options *o);
/* Returns the number of states: tensors of the parameters' size, which begin with zeros. */
size_t optimizer_n_states(const clg_optimizer_options *o);
/* Sets the numbers of step n, from 0 on. */
void optimizer_numbers(const clg_optimizer_options *o, double rate, uint64_t n, size_t n_batches,
                       double out[OPTIMIZER_N_NUMBERS]);
/* What an update changes: n parameters of a dtype, and n_statistics numbers, which may be 0, of
 * another one. loss_dtype: of the loss on which it depends. */
typedef struct optimizer_size {
    clg_dtype dtype, statistics_dtype, loss_dtype;
    int64_t n, n_statistics;
} optimizer_size;

/* Makes the graph of an update. Inputs: "numbers", "g" [n], the gradients, "x" [n], the states "s1"
 * [n] and so on, "new" and "statistics" [n_statistics], what they become and what they are, and
 * without clip_norm "loss" [1] and "fault" [1], int32, of the run that computed the gradients, and
 * the same as "statistics_loss" and "statistics_fault".
 * Outputs: the new x and states, in this order, with clip_norm the norm of the gradients, a scalar,
 * and the new statistics. Where the norm or the loss is not finite, or "fault" not 0, they are x,
 * the states and "statistics" as they were. */
clg_status optimizer_graph(const optimizer_update *update, const optimizer_size *size,
                           graph **out_graph);
/* Makes the graph of the output "sum" + "g", both [n]. */
clg_status optimizer_sum_graph(clg_dtype dtype, int64_t n, graph **out_graph);

#endif
