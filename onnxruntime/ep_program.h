/* SPDX-License-Identifier: Apache-2.0
 *
 * A compiled group: a model, and sessions that run it for the threads of ONNX Runtime.
 */
#ifndef CLG_ONNXRUNTIME_EP_PROGRAM_H
#define CLG_ONNXRUNTIME_EP_PROGRAM_H

#include "base/threads.h"
#include "ep_graph.h"
#include "ep_provider.h"
#include "ep_weights.h"

typedef struct ep_output {
    const char *name;
    clg_dtype dtype; /* NONE: not known before a run */
    bool known;      /* rank and all dims are known before a run; rank > 0 */
    size_t rank;
    int64_t dims[CLG_MAX_RANK];
} ep_output;

typedef struct ep_input {
    const char *name;
    size_t index; /* among the inputs of the fused node */
} ep_input;

struct ep_session;
typedef struct ep_program {
    OrtNodeComputeInfo info; /* first: ONNX Runtime gives back its address */
    ep_provider *provider;   /* outlives the program */
    char *name;
    clg_model *model;
    ep_weights *weights; /* of the model */
    arena names;         /* what inputs and outputs refer to */
    ep_input *inputs;
    size_t n_inputs;
    ep_output *outputs; /* in the order of the fused node's */
    size_t n_outputs;
    atomic_bool lost; /* a run failed with DEVICE_LOST: the next one recovers the context */
    mutex lock;       /* of what follows */
    condition returned;
    clg_session *origin; /* one of the sessions: clones are made of it */
    struct ep_session *idle;
    size_t n_sessions;
} ep_program;

/* Compiles a group, which ONNX Runtime replaces by `fused`. */
clg_status ep_program_create(ep_provider *provider, const OrtGraph *graph, const OrtNode *fused,
                             ep_program **out_program);
void ep_program_free(ep_program *program); /* accepts NULL */
/* Runs it on the inputs of a context and sets its outputs; any thread. */
clg_status ep_program_compute(ep_program *program, OrtKernelContext *context);

#endif
