/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of one run of a session, shared by sync_run.c, bind_inputs.c and bind_outputs.c.
 */
#ifndef CLG_SESSION_RUN_STATE_H
#define CLG_SESSION_RUN_STATE_H

#include "session/session.h"

typedef enum run_mode {
    RUN_FOR_REAL,
    RUN_ON_ZEROS /* preparation: inputs without a value or with a set shape are zeros; no outputs */
} run_mode;

typedef struct run_state {
    clg_session *session;
    run_mode mode;
    value_fact *facts;     /* one per input */
    plan *plan;            /* a reference */
    plan_segment *segment; /* the last one reached; a reference, which keeps its ancestors too */
    int32_t fault[FAULT_WORDS];
    tensor **pending;   /* host tensors being read, one per output; NULL: none */
    clg_value **wholes; /* likewise, host values of sequences, optionals and maps */
    arena memory;       /* items of facts */
} run_state;

/* bind_inputs.c: finds the facts of the inputs and the plan for them; then binds the inputs' memory
 * and enqueues uploads. */
clg_status run_find_plan(run_state *r);
clg_status run_bind_inputs(run_state *r);
/* Releases memory borrowed from host values. Call after the wait, also of a failed run, and before
 * an output can become the input's next memory. */
void run_return_inputs(run_state *r);
/* Maps the memory of mapped inputs again, after the steps. */
clg_status run_remap_inputs(run_state *r);

/* bind_outputs.c: binds memory for the outputs that a segment writes, before it runs; enqueues
 * downloads after the last segment; after the wait, publishes the results in the session: all of
 * them or none. */
clg_status run_bind_outputs(run_state *r, const plan_segment *segment);
clg_status run_fetch_outputs(run_state *r);
clg_status run_publish_outputs(run_state *r);

#endif
