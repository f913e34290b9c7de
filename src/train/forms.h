/* SPDX-License-Identifier: Apache-2.0
 *
 * The forms of a model's graph: that of training, where BatchNormalization uses the statistics of
 * the batch and gives new running ones and Dropout drops, and that of prediction.
 */
#ifndef CLG_TRAIN_FORMS_H
#define CLG_TRAIN_FORMS_H

#include "train/parameters.h"

#include <clgraph/train.h>

typedef struct train_forms {
    clg_train_form batchnorm, dropout;
    bool population_variance; /* in running statistics; else that of the sample, as PyTorch's */
} train_forms;

/* Gives each BatchNormalization that trains separate initializers, where an exporter has merged
 * those with equal numbers: an Identity of an initializer becomes an initializer, and a mean or
 * variance that other inputs read too is copied. Sets *out_graph to a changed copy of g; NULL if
 * there is nothing to do. */
clg_status forms_separate(const graph *g, clg_train_form batchnorm, graph **out_graph);
/* Finds the running statistics that steps update: mean and variance of each BatchNormalization on
 * which the value `loss` depends, if both are initializers, match the patterns, and the node is in
 * training form. May be empty. */
clg_status forms_find_statistics(const clg_model *model, const char *loss,
                                 const parameter_patterns *patterns, clg_train_form batchnorm,
                                 parameter_list *out);
/* Puts a graph into the form of training. out_running[i]: the new value of statistic i. */
clg_status forms_train(graph *g, const train_forms *forms, const parameter_list *statistics,
                       value_id *out_running);
/* Puts a graph into the form of prediction, but for BatchNormalization whose new statistics are
 * read. */
clg_status forms_predict(graph *g);

#endif
