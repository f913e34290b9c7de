/* SPDX-License-Identifier: Apache-2.0
 *
 * The OpenCL layer that runs commands late: layers/opencl_delay.c, loaded by the OpenCL loader
 * itself.
 */
#ifndef CLG_TESTS_OPENCL_DELAY_H
#define CLG_TESTS_OPENCL_DELAY_H

#include <stdbool.h>

/* Functions of the layer. Return the number of commands that ran late, and the number of commands
 * that another queue waited for without a flush. */
long opencl_delay_n_late(void);
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
/* Sets CLG_DELAY to `which` (see layers/opencl_delay.c): the queues created from now on that are
 * late; NULL: none. Restarts the numbering of queues. */
void opencl_delay_queues(const opencl_delay *delay, const char *which);

#endif
