/* SPDX-License-Identifier: Apache-2.0
 *
 * Controls the OpenCL layer that delays the commands of chosen queues
 * (tests/layers/opencl_delay.c). The OpenCL loader loads the layer.
 */
#ifndef CLG_TESTS_OPENCL_DELAY_H
#define CLG_TESTS_OPENCL_DELAY_H

#include <stdbool.h>

/* Functions of the layer. opencl_delay_n_late returns the number of commands that ran late. */
long opencl_delay_n_late(void);
/* Returns the number of waits for a command of another queue that had not been flushed. */
long opencl_delay_n_unflushed(void);
/* Restarts the numbering of queues: the next one created is number 0. */
void opencl_delay_restart(void);

/* Pointers to the functions of the copy of the layer that the OpenCL loader has loaded. */
typedef struct opencl_delay {
    __typeof__(&opencl_delay_n_late) n_late;
    __typeof__(&opencl_delay_n_unflushed) n_unflushed;
    __typeof__(&opencl_delay_restart) restart;
} opencl_delay;

/* Installs the layer between the library and the drivers. Call before the first OpenCL call of the
 * process. */
void opencl_delay_open(opencl_delay *out_delay);
/* Makes the queues late that `which` selects among those created from now on, by setting CLG_DELAY
 * (see layers/opencl_delay.c); NULL: none. Restarts the numbering of queues. */
void opencl_delay_queues(const opencl_delay *delay, const char *which);

#endif
