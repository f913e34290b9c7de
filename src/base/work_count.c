/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements work_count.h.
 */
#include "base/work_count.h"

static _Thread_local size_t n_steps;

void work_count_add(size_t n) { n_steps += n; }

size_t work_count(void) { return n_steps; }
