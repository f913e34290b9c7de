/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds losses to models, as nodes of ONNX operators.
 */
#ifndef CLG_TRAIN_LOSS_H
#define CLG_TRAIN_LOSS_H

#include "session/exec/model.h"

#include <clgraph/train.h>

/* As clg_model_add_loss, which checks its arguments. */
clg_status loss_add(const clg_model *model, const clg_loss_options *options, clg_model **out_model);

#endif
