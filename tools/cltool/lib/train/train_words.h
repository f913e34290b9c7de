/* SPDX-License-Identifier: Apache-2.0
 *
 * Losses, optimizers and schedules as words of the command line: "adam:beta1=0.8,weight_decay=0.1".
 */
#ifndef CLTOOL_TRAIN_WORDS_H
#define CLTOOL_TRAIN_WORDS_H

#include "failure.h"
#include "options.h"

#include <clgraph/train.h>

/* Read the words of --loss, --optimizer and --schedule into options that hold the defaults. */
int train_words_loss(const char *word, clg_loss_options *out);
int train_words_optimizer(const char *word, clg_optimizer_options *out);
int train_words_schedule(const char *word, clg_schedule_options *out);
/* Reads --batchnorm, --dropout and --on-nan, where they are given, and --seed. */
int train_words_modes(const options *o, clg_train_options *out);

#endif
