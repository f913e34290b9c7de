/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiers: new programs are built without optimisation first (baseline programs), which takes a third
 * of the time, so that the first result comes early. Their launches are noted, and another thread
 * has compile helpers compile the optimised programs for them, and store these in the cache. That
 * thread calls no OpenCL function: it may still be at work when the process exits. Once all are
 * compiled, runs build the optimised programs from the driver's cache, one after each run, and the
 * epoch counts up: plans made before are to be made again. See decision 94.
 */
#ifndef CLG_OCL_TIERS_H
#define CLG_OCL_TIERS_H

#include "base/hash.h"
#include "base/threads.h"
#include "ocl/helper/helper_message.h"

struct ocl_program;

/* A launch of a baseline program, for which the optimised one is compiled. */
typedef struct tier_launch {
    struct ocl_program *optimized;
    uint64_t form; /* launch configuration (program.h) */
    char *message; /* the helper's request; freed after the trial */
    size_t n_bytes;
} tier_launch;

/* A program that helpers have compiled, to be built here. */
typedef struct tier_build {
    struct ocl_program *program;
    char *entry; /* one of its kernels */
} tier_build;

typedef struct tier_queue {
    mutex lock; /* guards the fields below */
    tier_launch *launches;
    size_t n_launches, launches_capacity;
    size_t next; /* the first launch that is not taken */
    tier_build *builds;
    size_t n_builds, builds_capacity;
    size_t n_taken, n_building; /* of builds: the first ones are built or being built */
    bool has_worker;
    bool is_working; /* the worker has not ended */
    bool stops;
    thread worker;
    atomic_uint_fast64_t epoch;
} tier_queue;

clg_status tiers_init(tier_queue *t);
/* Frees the queue; tiers_finish must have been called, if a launch was noted. */
void tiers_deinit(tier_queue *t);
/* Notes that a baseline program has passed the trial of a launch, where optimised programs are to
 * take over. Without memory it is not noted, and the program stays. */
void tiers_note(ocl_context *ocl, const struct ocl_program *p, uint64_t form,
                const helper_request *request);
/* Returns whether optimised programs are still to be compiled or stored. */
bool tiers_are_pending(ocl_context *ocl);
/* Compiles what is left, with all helpers, and waits for the worker. If the device is lost, only
 * waits. */
void tiers_finish(ocl_context *ocl);

#endif
