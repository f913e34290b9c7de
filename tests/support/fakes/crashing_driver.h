/* SPDX-License-Identifier: Apache-2.0
 *
 * Simulates a PoCL whose compiler crashes on chosen programs (layers/opencl_crashing.c), and finds
 * the compile helpers of a process. Models and expected results are those of wrong_driver.h.
 */
#ifndef CLG_TESTS_CRASHING_DRIVER_H
#define CLG_TESTS_CRASHING_DRIVER_H

#include <clgraph/clgraph.h>

#include <sys/types.h>

/* Sets up a group of tests, before the first OpenCL call of the process; returns 0 or -1. */
int cd_begin(void **state);

/* Makes the compiler crash on programs that contain `in` from now on (NULL: on none); at, by,
 * times: CLG_CRASH_AT, _BY and _TIMES of the layer. Clears the log and the counts below. */
void cd_dies(const char *in, const char *at, const char *by, const char *times);
/* Return the number of crashes, in any process, and the path of the file that counts them. */
long cd_n_crashes(void);
const char *cd_log(void);

/* Counts of warnings about compile helpers and about crashes; the last warning about a crash. */
extern int cd_helper_lines, cd_crash_lines;
extern char cd_last_line[2048];
/* Count of messages that kernels are compiled in this process. */
extern int cd_here_lines;

/* The time limit of contexts created from now on, in seconds: 5 at first; 0: the library's. */
extern uint32_t cd_limit_s;
/* Creates a context with profiling, self-tests, a memory limit of 1 GiB for compiling, and the
 * cache folder `store` in the scratch folder. helper NULL: the build's. */
clg_context *cd_context(const char *store, const char *helper);

/* Calls visit (may be NULL) for each compile helper whose parent is `parent`; returns their
 * number. */
int cd_each_helper(pid_t parent, void (*visit)(pid_t pid));

#endif
