/* SPDX-License-Identifier: Apache-2.0
 *
 * Small whole lives of a session - model, session, runs with changing shapes, results, free - for tests in which
 * something fails on the way. A life that succeeds has seen right numbers, or it has failed the test.
 */
#ifndef CLG_TESTS_SESSION_LIFE_H
#define CLG_TESTS_SESSION_LIFE_H

#include <clgraph/clgraph.h>

typedef struct session_life {
    const char *name;
    clg_kernel_class kernels;
    bool no_blas;
    uint64_t n_packed; /* forms of weights that a life makes, at least */
    /* One of them: what a builder of opset 13 is given, or a model from elsewhere. */
    clg_status (*add_nodes)(clg_builder *g);
    clg_status (*make_model)(clg_model **out_model);
    /* Runs and checks; the session may have been used before, and may have failed. */
    clg_status (*use)(clg_context *context, clg_session *session);
} session_life;

extern const session_life session_lives[];
extern const size_t n_session_lives;

clg_status session_life_open(const session_life *life, clg_context *context,
                             clg_session **out_session);
/* All of it, from the model to freeing. */
clg_status session_life_lead(const session_life *life, clg_context *context);

#endif
