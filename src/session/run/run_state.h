/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of one run of a session, and the functions that runs consist of.
 */
#ifndef CLG_SESSION_RUN_STATE_H
#define CLG_SESSION_RUN_STATE_H

#include "session/run/loop_counts.h"
#include "session/session.h"

typedef enum run_mode {
    RUN_FOR_REAL,
    RUN_ON_ZEROS /* preparation: inputs without a value or with a set shape are zeros; no outputs */
} run_mode;

typedef struct run_state {
    clg_session *session;
    run_mode mode;
    bool is_dry;        /* the plan is only looked at (exec_plan_dry) */
    value_fact *facts;  /* one per input */
    uint32_t *in_place; /* by input: the output requested in its memory, as plan.in_place */
    /* By input: memory whose contents a preparation must not change, while a copy is in its place;
     * NULL before there is one. */
    frame_memory *kept;
    plan *plan;              /* a reference */
    plan_segment *segment;   /* the last one reached; a reference, which keeps its ancestors too */
    frame_segment *prepared; /* what the frame has prepared for it */
    loop_counts counts;
    /* The last two segments that ended an iteration without a read, and what followed them:
     * references. */
    struct {
        plan_segment *from, *to;
    } turns[2];
    size_t n_unwaited;   /* steps enqueued since the last wait, of earlier segments */
    bool may_have_fault; /* kernels enqueued since the last wait can report faults */
    plan_segment **ran;  /* with profiling: references to all segments that ran */
    size_t n_ran, ran_capacity;
    int32_t fault[FAULT_WORDS];
    tensor **pending;   /* by output: the host tensor being read into, or NULL */
    clg_value **wholes; /* by output: the new sequence, optional or map, or NULL */
    arena memory;       /* items of facts */
} run_state;

/* Makes a run of a session that the caller has entered; run_end frees what it holds, also after a
 * failure (these five are in sync_run.c). */
clg_status run_begin(clg_session *s, run_mode mode, run_state *out_run);
void run_end(run_state *r);
/* Enqueues the whole run, except for waiting at the end. */
clg_status run_enqueue(run_state *r);
/* Waits for the queue even after an error, since commands in flight read and write host memory.
 * Returns the first error; DEVICE_LOST if the wait shows that this is its cause. */
clg_status run_wait(ocl_queue *q, clg_status status);
/* Gives back inputs, and makes results available, after the wait, whose status is passed on. */
clg_status run_conclude(run_state *r, clg_status status);

/* Determines the facts (dtype, shape, elements if needed) of the inputs, and finds or creates the
 * plan for them (bind_inputs.c). */
clg_status run_find_plan(run_state *r);
/* Places the inputs in device memory; enqueues uploads. */
clg_status run_bind_inputs(run_state *r);
/* Releases host memory that inputs used in place. Call after the wait, also of a failed run, and
 * before an output's memory becomes that of a linked input. */
void run_return_inputs(run_state *r);
/* Enqueues the mapping of inputs that the caller wants to fill again, after the steps. */
clg_status run_remap_inputs(run_state *r);

/* Gives memory to the outputs that a segment writes, before it runs (bind_outputs.c). */
clg_status run_bind_outputs(run_state *r, const plan_segment *segment);
/* Enqueues downloads, after the last segment. */
clg_status run_fetch_outputs(run_state *r);
/* Makes the results available in the session, after the wait: all of them, or none on failure. */
clg_status run_publish_outputs(run_state *r);

/* Returns whether the device is to read the memory of a host value in place, and sets *out_before
 * to the bytes before it with which a buffer must begin, since the device takes only addresses of
 * its alignment (bind_inputs.c). */
bool run_reads_in_place(const session_exec *e, clg_dtype dtype, const void *data, size_t size_bytes,
                        size_t *out_before);

#endif
