/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a monotonic clock.
 */
#ifndef CLG_BASE_CLOCK_H
#define CLG_BASE_CLOCK_H

#include <stdint.h>

/* Returns the nanoseconds since a fixed but unspecified time. */
uint64_t time_now_ns(void);

#endif
