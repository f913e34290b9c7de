/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of a session, while it lasts: what run.c, run_inputs.c and run_outputs.c share.
 */
#ifndef CLG_SESSION_RUN_STATE_H
#define CLG_SESSION_RUN_STATE_H

#include "session/session.h"

typedef enum run_mode {
    RUN_FOR_REAL,
    RUN_ON_ZEROS /* to make ready: inputs that are not set, or only shaped, are zeros; no outputs */
} run_mode;

typedef struct run_state {
    clg_session *session;
    run_mode mode;
    value_fact *facts;     /* one an input */
    plan *plan;            /* a reference */
    plan_segment *segment; /* the last one reached; a reference, which keeps those before it too */
    int32_t fault[FAULT_WORDS];
    tensor **pending;   /* host tensors being read into, one an output; NULL: none */
    clg_value **wholes; /* the same for sequences and optionals */
    arena memory;       /* items of facts */
} run_state;

/* run_inputs.c: the facts of the inputs and the plan for them; then the inputs' memory, uploads
 * enqueued. */
clg_status run_find_plan(run_state *r);
clg_status run_bind_inputs(run_state *r);
/* After the wait, however the run ended: releases memory borrowed from host values, before an
 * output may become the input's next memory. */
void run_return_inputs(run_state *r);
/* After the steps: maps the memory of the inputs that request it. */
clg_status run_remap_inputs(run_state *r);

/* run_outputs.c: memory for the outputs that a segment writes, before it runs; downloads
 * enqueued after the last one; and, after the wait, the results handed to the session: all of
 * them or none. */
clg_status run_bind_outputs(run_state *r, const plan_segment *segment);
clg_status run_fetch_outputs(run_state *r);
clg_status run_publish_outputs(run_state *r);

#endif
