/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiers: new programs are built without optimisation first (baseline programs), three times as
 * fast, so that the first result comes early. Their launches are queued, and another thread has
 * compile helpers compile the optimised programs for them, and store these in the cache. That
 * thread calls no OpenCL function: it may still be at work when the process exits. When a batch is
 * stored, runs build its programs from the driver's cache, one after each run, and then the epoch
 * counts up: plans made before are to be made again. See decision 94.
 */
#ifndef CLG_OCL_TIERS_H
#define CLG_OCL_TIERS_H

#include "ocl/ocl.h"

/* Compiles what is left, with all helpers, and waits for the thread. If the device is lost, only
 * waits. */
void tiers_finish(ocl_context *ocl);

#endif
