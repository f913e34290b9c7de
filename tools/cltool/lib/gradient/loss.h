/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds a loss to a model: nodes that compare one of its values with targets and give one number,
 * the mean.
 */
#ifndef CLTOOL_LOSS_H
#define CLTOOL_LOSS_H

#include "failure.h"

#include <clgraph/inspect.h>

typedef struct loss_node loss_node;
typedef struct loss_kind {
    const char *name;
    const loss_node *nodes;
    bool takes_classes; /* targets are class numbers: scores [N,C,...], targets [N,...] */
    /* The operator that turns what the loss takes into probabilities. Where an output is one's
     * result, the loss takes the operator's input. NULL: none */
    const char *activation;
    bool refuses_softmax; /* takes logarithms of probabilities */
} loss_kind;

/* Names of what is added: an input for the targets, and the loss, a scalar. */
#define LOSS_TARGET "clgraph/target"
#define LOSS_VALUE "clgraph/loss"

/* Finds the loss of --loss. */
int loss_find(const char *word, const loss_kind **out_kind);
/* Chooses what the loss takes for the value `output` of the model: the value itself, or the input
 * of the activation that computes it. *out_scores is borrowed from nodes, or is `output`. */
int loss_scores(const loss_kind *kind, const char *output, const clg_node_info *nodes,
                size_t n_nodes, const char **out_scores);
/* Copies the model with the loss of the value `scores`, for a target of this dtype and shape. */
int loss_add(const loss_kind *kind, const clg_model *model, const char *scores,
             const clg_value *target, clg_model **out_model);

#endif
