/* SPDX-License-Identifier: Apache-2.0
 *
 * Models: a checked graph with its ports, shared and immutable. It knows no device.
 */
#ifndef CLG_SESSION_MODEL_H
#define CLG_SESSION_MODEL_H

#include "base/threads.h"
#include "graph/graph.h"

struct clg_model {
    refcount refs;
    graph *graph; /* checked, sorted, resolved (as far as it is supported) */
    error_record
        *refusal; /* why there can be no session, when only a look was requested; NULL: none */
    clg_port *inputs, *outputs; /* one each of the graph's; names live in the graph */
};

/* Checks the graph, resolves its operators and infers what can be known without a run. Takes g
 * over, also when it fails. allow_unsupported: what is not supported makes the model one that
 * can only be looked at. */
clg_status model_create(graph *g, bool allow_unsupported, clg_model **out_model);
clg_model *model_retain(clg_model *m); /* accepts NULL */
void model_free(clg_model *m);         /* accepts NULL */
/* Refuses a model that can only be looked at: data of constants is missing (NOT_FOUND, naming
 * value and file), or something is not supported (the fault that loading found). */
clg_status model_require_data(const clg_model *m);

#endif
