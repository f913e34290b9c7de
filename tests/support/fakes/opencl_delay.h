/* SPDX-License-Identifier: Apache-2.0
 *
 * The OpenCL layer that runs commands late: layers/opencl_delay.c, loaded by the OpenCL loader
 * itself.
 */
#ifndef CLG_TESTS_OPENCL_DELAY_H
#define CLG_TESTS_OPENCL_DELAY_H

#include <stdbool.h>

/* The functions of the layer. Commands that were run late so far; those that another queue
 * waited for without a flush. */
long opencl_delay_n_late(void);
long opencl_delay_n_unflushed(void);
/* The next queue is number 0. */
void opencl_delay_restart(void);

/* The same for tests, which reach them through the loader's copy of the layer. */
typedef struct opencl_delay {
    __typeof__(&opencl_delay_n_late) n_late;
    __typeof__(&opencl_delay_n_unflushed) n_unflushed;
    __typeof__(&opencl_delay_restart) restart;
} opencl_delay;

/* Puts the layer between the library and the drivers. Before the first OpenCL call of the
 * process. */
void opencl_delay_open(opencl_delay *out_delay);
/* Which queues created from now on are late, as CLG_DELAY says it; NULL: none. Counts queues
 * from 0 again. */
void opencl_delay_queues(const opencl_delay *delay, const char *which);

#endif
