/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves what a training has become, and goes on from there. A checkpoint is a .npz file:
 *
 *     parameter/NAME, state1/NAME, ...   of each parameter, in its dtype and shape
 *     statistic/NAME                     of each running statistic
 *     step, skipped                      steps done, and those without an update, int64
 *     settings                           text, uint8: what decides on the steps that follow
 */
#ifndef CLG_TRAIN_CHECKPOINT_H
#define CLG_TRAIN_CHECKPOINT_H

#include "train/trainer.h"

/* As clg_trainer_save and clg_trainer_load, for a trainer that was entered. */
clg_status checkpoint_save(const clg_trainer *t, const char *path);
clg_status checkpoint_load(clg_trainer *t, const char *path);

#endif
