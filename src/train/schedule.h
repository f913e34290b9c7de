/* SPDX-License-Identifier: Apache-2.0
 *
 * The learning rate as a function of the step's number, so that a run that goes on needs no more
 * than that number.
 */
#ifndef CLG_TRAIN_SCHEDULE_H
#define CLG_TRAIN_SCHEDULE_H

#include "base/error.h"

#include <clgraph/train.h>

/* Refuses numbers outside of their range. */
clg_status schedule_check(const clg_schedule_options *s);
/* Returns the learning rate of step n, from 0 on. */
double schedule_rate(const clg_schedule_options *s, uint64_t n);

#endif
