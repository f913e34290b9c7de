/* SPDX-License-Identifier: Apache-2.0
 *
 * The implementation of clg_model: a checked graph and the description of its inputs and outputs.
 * Shared, immutable, and independent of devices.
 */
#ifndef CLG_SESSION_MODEL_H
#define CLG_SESSION_MODEL_H

#include "base/memory.h"
#include "base/threads.h"
#include "graph/graph.h"

struct clg_model {
    refcount refs;
    memory_budget *budget; /* of loading; NULL: without a limit */
    graph *graph;          /* checked, in topological order; operators resolved if supported */
    error_record
        *refusal; /* why the model can only be inspected, if loaded for that; NULL: it can run */
    clg_port *inputs, *outputs; /* by graph input and output; names belong to the graph */
    clg_port *initializers;     /* in the order of the graph's values */
    value_id *initializer_ids;
    size_t n_initializers;
};

/* Creates a model: checks the graph, resolves its operators and infers the outputs' dtypes and
 * shapes. Takes ownership of g, also when it fails. allow_unsupported: a graph with missing support
 * becomes a model that can only be inspected. */
clg_status model_create(graph *g, bool allow_unsupported, clg_model **out_model);
clg_model *model_retain(clg_model *m); /* accepts NULL */
void model_free(clg_model *m);         /* accepts NULL */
/* Rejects a model that can only be inspected: constants have no data (NOT_FOUND, naming value and
 * file), or something is unsupported (the error that loading recorded). */
clg_status model_require_data(const clg_model *m);

/* As clg_model_gradient, clg_model_extract and clg_model_replace_initializers, which check their
 * arguments. keeps_outputs: the model's outputs other than y stay, after it. */
clg_status model_gradient(const clg_model *m, const char *y, const char *const *xs, size_t n_xs,
                          bool keeps_outputs, clg_model **out_model);
clg_status model_extract(const clg_model *m, const char *const *inputs, size_t n_inputs,
                         const char *const *outputs, size_t n_outputs, clg_model **out_model);
clg_status model_replace_initializers(const clg_model *m, const char *const *names,
                                      clg_value *const *values, size_t n, clg_model **out_model);

#endif
