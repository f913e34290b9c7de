/* SPDX-License-Identifier: Apache-2.0
 *
 * The sessions of a program: one for each run at a time, up to a limit.
 */
#ifndef CLG_ONNXRUNTIME_EP_SESSIONS_H
#define CLG_ONNXRUNTIME_EP_SESSIONS_H

#include "ep_program.h"

/* Runs of one program at the same time; more wait. */
#define EP_MAX_SESSIONS 16

typedef struct ep_session {
    struct ep_session *next; /* while it is idle */
    clg_session *session;
    clg_call_input *inputs;        /* of the program's number; names are set */
    int64_t (*dims)[CLG_MAX_RANK]; /* of the inputs */
    clg_call_output *outputs;
    bool *bound; /* outputs that the run writes into ONNX Runtime's memory on the device */
    /* Ranks and dims of the inputs of the last run whose outputs had the expected shapes. */
    bool verified;
    size_t *verified_ranks;
    int64_t (*verified_dims)[CLG_MAX_RANK];
} ep_session;

/* Adds the first session, on which clones are based. Takes over the session, also on failure. */
clg_status ep_sessions_add(ep_program *program, clg_session *session);
/* Returns an idle session: a clone if there is none and the limit allows it, else that of the next
 * run that ends. */
clg_status ep_sessions_acquire(ep_program *program, ep_session **out_session);
void ep_sessions_release(ep_program *program, ep_session *session);
/* Frees the sessions, all of which are idle. */
void ep_sessions_deinit(ep_program *program);

#endif
