/* SPDX-License-Identifier: Apache-2.0
 *
 * What is counted of predictions besides the loss.
 */
#ifndef CLG_TRAIN_METRICS_H
#define CLG_TRAIN_METRICS_H

#include "train/loss.h"

/* Outputs that metrics_add appends. */
enum { METRIC_RIGHT, METRIC_COUNTED, N_METRICS };

/* Appends to a graph with the loss of `options`, of classes, the outputs "right" and "counted":
 * int64 scalars, the number of targets that are the index of the largest y along axis 1, the first
 * of equal ones, and the number of targets but for ignore_index. */
clg_status metrics_add(graph *g, const clg_loss_options *options, const loss_values *values);

#endif
