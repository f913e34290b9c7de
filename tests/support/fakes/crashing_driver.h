/* SPDX-License-Identifier: Apache-2.0
 *
 * Simulates a PoCL whose compiler crashes on chosen programs, by an OpenCL layer
 * (tests/layers/opencl_crashing.c), and finds the compile helpers of a process. Models and expected
 * results are those of wrong_driver.h.
 */
#ifndef CLG_TESTS_CRASHING_DRIVER_H
#define CLG_TESTS_CRASHING_DRIVER_H

#include <clgraph/clgraph.h>

#include <sys/types.h>

/* Sets up a group of tests, before the first OpenCL call of the process; returns 0 or -1. */
int cd_begin(void **state);

/* Makes the compiler crash, from now on, on programs whose text contains `in`; NULL: on none. at
 * ("build" or "launch"), by (the kind of crash) and times (the number of crashes after which it
 * works again) are values of the layer's variables CLG_CRASH_AT, CLG_CRASH_BY and CLG_CRASH_TIMES;
 * NULL removes the variable. Clears the log and the counts below. */
void cd_dies(const char *in, const char *at, const char *by, const char *times);
/* Returns the number of crashes in all processes since the last call of cd_dies. */
long cd_n_crashes(void);
/* Returns the path of the file to which the layer appends one byte for each crash. */
const char *cd_log(void);

/* Numbers of warnings about compile helpers and about crashes of the compiler, and the text of the
 * last warning about a crash. */
extern int cd_helper_lines, cd_crash_lines;
extern char cd_last_line[2048];
/* Number of messages that kernels are about to be compiled in this process. */
extern int cd_here_lines;

/* The time limit for compiling, in seconds, of contexts created from now on; 5 at first; 0: the
 * library's default. */
extern uint32_t cd_limit_s;
/* Creates a context on PoCL with profiling, self-tests, a memory limit of 1 GiB for compiling, and
 * the cache folder `store` in the scratch folder. helper: path of the compile helper; NULL: that of
 * the build. */
clg_context *cd_context(const char *store, const char *helper);

/* Calls visit (may be NULL) for each compile helper whose parent is `parent`; returns their
 * number. */
int cd_each_helper(pid_t parent, void (*visit)(pid_t pid));

#endif
