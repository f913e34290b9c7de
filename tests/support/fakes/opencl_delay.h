/* SPDX-License-Identifier: Apache-2.0
 *
 * The OpenCL layer that runs commands late: layers/opencl_delay.c, loaded by the OpenCL loader
 * itself.
 */
#ifndef CLG_TESTS_OPENCL_DELAY_H
#define CLG_TESTS_OPENCL_DELAY_H

#include <stdbool.h>

/* Functions of the layer. Return the number of commands that ran late, and of those for which
 * another queue waited without a flush. */
long opencl_delay_n_late(void);
long opencl_delay_n_unflushed(void);
/* Restarts the numbering: the next queue is number 0. */
void opencl_delay_restart(void);

/* The layer's functions in the loader's copy of it, for tests. */
typedef struct opencl_delay {
    __typeof__(&opencl_delay_n_late) n_late;
    __typeof__(&opencl_delay_n_unflushed) n_unflushed;
    __typeof__(&opencl_delay_restart) restart;
} opencl_delay;

/* Installs the layer between the library and the drivers. Call before the first OpenCL call of the
 * process. */
void opencl_delay_open(opencl_delay *out_delay);
/* Selects which queues created from now on are late, as CLG_DELAY; NULL: none. Numbers queues from
 * 0 again. */
void opencl_delay_queues(const opencl_delay *delay, const char *which);

#endif
