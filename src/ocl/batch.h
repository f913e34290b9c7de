/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs independent jobs on several threads; for jobs that mostly wait for compile helpers.
 */
#ifndef CLG_OCL_BATCH_H
#define CLG_OCL_BATCH_H

#include "ocl/ocl_context.h"

/* Executes job i of the array `jobs`. */
typedef clg_status (*batch_function)(ocl_context *c, void *jobs, size_t i);

/* Runs jobs 0 to n - 1, on as many threads as helpers may compile at a time; sequentially on this
 * thread where there is no helper. Stops at the first failure and returns it. */
clg_status batch_each(ocl_context *ocl, batch_function job, void *jobs, size_t n);

#endif
