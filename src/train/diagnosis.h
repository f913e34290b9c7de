/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds where numbers that are not finite come from.
 */
#ifndef CLG_TRAIN_DIAGNOSIS_H
#define CLG_TRAIN_DIAGNOSIS_H

#include "train/trainer.h"

/* Return DATA with a message that names step, learning rate and the first value that is not finite,
 * and the first output of a node that is NaN.
 * For a loss: an input, a parameter or the output of a node, by another run of the batch that keeps
 * all of them, which takes their memory; if that fails, only what is known. For the norm of the
 * gradients: the first parameter whose gradient it is. */
clg_status diagnosis_of_loss(clg_trainer *t, double loss);
clg_status diagnosis_of_norm(clg_trainer *t, double norm);

#endif
