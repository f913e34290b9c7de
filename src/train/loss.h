/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds losses to models, as nodes of ONNX operators.
 */
#ifndef CLG_TRAIN_LOSS_H
#define CLG_TRAIN_LOSS_H

#include "session/exec/model.h"

#include <clgraph/train.h>

/* What a loss compares, by value of the model with the loss. */
typedef struct loss_values {
    value_id y, target; /* target: VALUE_NONE if the loss has none */
} loss_values;

/* As clg_model_add_loss, which checks its arguments. out_values may be NULL. */
clg_status loss_add(const clg_model *model, const clg_loss_options *options,
                    loss_values *out_values, clg_model **out_model);
/* Returns whether targets are class numbers. */
bool loss_is_of_classes(clg_loss kind);

#endif
