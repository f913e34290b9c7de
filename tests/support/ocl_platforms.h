/* SPDX-License-Identifier: Apache-2.0
 *
 * Every OpenCL implementation of the machine, for tests that run on each of them.
 */
#ifndef CLG_TESTS_OCL_PLATFORMS_H
#define CLG_TESTS_OCL_PLATFORMS_H

#include "ocl/ocl.h"

/* Makes the drivers show what they hide: llvmpipe behind rusticl, and Oclgrind where it is installed. Before the
 * first OpenCL call of the process; OCL_ICD_VENDORS and RUSTICL_ENABLE that are set already stay as they are. */
void ocl_platforms_show_all(void);
/* On Windows both leave things as they are. PoCL alone: for tests in which only the library's own work counts. */
void ocl_platforms_show_pocl(void);

/* Calls body with a context on each device in turn, and fails when there is none, or when no kernel ran on one.
 * Frees the context. Returns the number of devices. */
typedef void (*ocl_platforms_body)(ocl_context *context, void *user);
size_t ocl_platforms_each(const ocl_context_options *options, ocl_platforms_body body, void *user);

/* The teardown of a test: fails where a block of the library's memory lives. */
int ocl_platforms_leaks(void **state);

/* y[i] = a * x[i] + name's length, n floats, by a kernel of generated text: n_items work-items of local size
 * `local`. `name` makes the text differ from others. */
clg_status ocl_platforms_axpy(ocl_context *c, ocl_queue *q, const char *name, float a, size_t n,
                              size_t local, float *out_y);

#endif
