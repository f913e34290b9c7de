/* SPDX-License-Identifier: Apache-2.0
 *
 * PoCL under a layer whose compiler dies of chosen programs (layers/opencl_crashing.c), and the
 * compile helpers of a process. Models and expected results are those of wrong_driver.h.
 */
#ifndef CLG_TESTS_CRASHING_DRIVER_H
#define CLG_TESTS_CRASHING_DRIVER_H

#include <clgraph/clgraph.h>

#include <sys/types.h>

/* Opens a group of tests, before the first OpenCL call of the process. */
int cd_begin(void **state);

/* The compiler dies of programs that contain `in` from now on: CLG_CRASH_AT, _BY and _TIMES of the
 * layer. in NULL: of none. Clears what is counted below. */
void cd_dies(const char *in, const char *at, const char *by, const char *times);
/* How often it died, in any process, and the file that counts it. */
long cd_n_crashes(void);
const char *cd_log(void);

/* Warnings about compile helpers, and about crashes, and the last of these. */
extern int cd_helper_lines, cd_crash_lines;
extern char cd_last_line[2048];
/* Messages that kernels are compiled in this process. */
extern int cd_here_lines;

/* The time limit of contexts created from now on, in seconds: 5 at first; 0: the library's. */
extern uint32_t cd_limit_s;
/* With profiling, self-tests, a memory limit of 1 GiB, and a store of that name in the scratch
 * folder. helper NULL: the build's. */
clg_context *cd_context(const char *store, const char *helper);

/* Calls visit (may be NULL) for each compile helper whose parent is `parent`; returns their
 * number. */
int cd_each_helper(pid_t parent, void (*visit)(pid_t pid));

#endif
