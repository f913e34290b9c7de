/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps idle processors awake while short work is handed to threads on them.
 *
 * A processor that has nothing to do sleeps, and waking it takes 5 to 100 microseconds, in a virtual machine longer than many
 * kernels run. OpenCL drivers for CPUs let their threads sleep between kernels. So one thread for each processor spins
 * at idle priority (SCHED_IDLE, which any other thread pushes aside at once) while work is under way and AWAKE_LINGER_NS
 * after it. Other CPU runtimes spin in their own threads for the same reason.
 */
#ifndef CLG_BASE_AWAKE_H
#define CLG_BASE_AWAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AWAKE_LINGER_NS 1000000

/* How many processors this process may use; 0 where the system does not tell, or has no idle priority, or a control group
 * limits the time of the process on them, which spinning would use up. */
size_t awake_processors(void);

/* For work on so many processors: starts the threads with the first call; each successful call needs a close. False, without an
 * error set, where that is not awake_processors - some are left to others, and nobody knows which -, for 0, or when no
 * thread could be started. Any thread. */
bool awake_open(size_t n_processors);
void awake_close(void);

/* Work begins, work is over; between an open and its close, nested and from any threads as one likes. A few
 * nanoseconds, the first begin after a pause a few microseconds. */
void awake_begin(void);
void awake_end(void);

/* For tests: threads that sleep now, and all. */
void awake_count(size_t *out_asleep, size_t *out_all);

#endif
