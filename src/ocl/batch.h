/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that mostly wait for compile helpers, several at the same time.
 */
#ifndef CLG_OCL_BATCH_H
#define CLG_OCL_BATCH_H

#include "ocl/ocl_context.h"

typedef clg_status (*batch_function)(ocl_context *c, void *jobs, size_t i);

/* Does jobs 0 to n - 1, as many at a time as helpers compile; one by one on this thread where there is none. The first failure
 * ends it and is returned. */
clg_status batch_each(ocl_context *c, batch_function job, void *jobs, size_t n);

#endif
