/* SPDX-License-Identifier: Apache-2.0
 *
 * What this process holds of the system, from Linux's /proc; 0 where there is none.
 */
#ifndef CLG_TESTS_PROCESS_USE_H
#define CLG_TESTS_PROCESS_USE_H

#include <stddef.h>

size_t process_use_bytes(void);       /* resident memory */
size_t process_use_peak_bytes(void);  /* the most that was resident so far */
size_t process_use_descriptors(void); /* open files, pipes and the like */
/* Threads. A thread that was joined may be counted for some microseconds more. */
size_t process_use_threads(void);
size_t process_use_children(void); /* child processes, ended ones too until they are waited for */

#endif
