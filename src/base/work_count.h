/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the steps of algorithms whose time must grow little faster than their input, so that tests
 * of that need no clock. Nothing else depends on the counts.
 */
#ifndef CLG_BASE_WORK_COUNT_H
#define CLG_BASE_WORK_COUNT_H

#include <stddef.h>

/* Adds n steps to the count of the calling thread. */
void work_count_add(size_t n);
/* Returns the count of the calling thread since it began. */
size_t work_count(void);

#endif
