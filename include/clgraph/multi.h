/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions over several devices. Each run divides the rows of the batch among the devices, in
 * proportion to the speeds that earlier runs measured, and joins the outputs; or each device
 * computes a part of the model's nodes, for models that do not fit one. The rules of clgraph.h
 * apply.
 *
 *     clg_context **contexts;
 *     size_t n;
 *     clg_context_create_list("all", NULL, &contexts, &n);
 *     clg_session_create_multi(contexts, n, model, NULL, NULL, &session);
 *     ... clg_session_run(session) as with one device
 */
#ifndef CLGRAPH_MULTI_H
#define CLGRAPH_MULTI_H

#include <clgraph/clgraph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is divided among the devices. */
typedef enum clg_split {
    CLG_SPLIT_ROWS = 0,  /* the rows of the batch: each device has the whole model */
    CLG_SPLIT_LAYERS = 1 /* the nodes of the model, in contiguous parts */
} clg_split;

typedef struct clg_multi_options {
    size_t struct_size;
    /* Milliseconds after which a device that has not finished its rows counts as lost; 0: never.
     * Planning and compiling do not count, unless a call of the driver does not return there for
     * this time and 5 times compile_limit_s (clg_context_options). With a limit the rows are copied
     * for each run, since a device that hangs may read them later. Only with CLG_SPLIT_ROWS. */
    uint32_t hang_ms;
    clg_split split;
} clg_multi_options;
#define CLG_MULTI_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(clg_multi_options), 0, CLG_SPLIT_ROWS                                               \
    }

/* Creates a session over devices of any vendors, which is used like one on a single device.
 *
 * CLG_SPLIT_ROWS: the batch is the first dimension of the inputs that clg_model_batch finds; rows
 * must be proved independent. A run gives each device consecutive rows; results are those of runs
 * on the single devices with these rows. A device without rows, for small batches, does nothing.
 * The rows of a device that is lost during a run are computed by the others, with a warning in the
 * log; it takes part again after clg_context_recover. Weights are uploaded once for each device,
 * and so are inputs without a batch, when they are set.
 *
 * Not possible are links, kept values, outputs in device memory and events (UNSUPPORTED_DEVICE),
 * and strings, sequences, optionals and maps that carry the batch (UNSUPPORTED_DTYPE,
 * UNSUPPORTED_DEVICE). Plans and estimates of memory are those of the whole batch on the first
 * device: for the devices' own see clg_session_parts.
 *
 * CLG_SPLIT_LAYERS: each device, in the order of `contexts`, computes a contiguous part of the
 * model's nodes. Cuts are chosen by the sizes of constants and values, the memory of the devices
 * (less if max_memory_bytes of the options, which are for each device, says so), estimated time,
 * and what crosses; clg_session_prepare measures the time, and cuts again where that promises a
 * gain. Any model that runs on one device is accepted, with any shapes; sequences, optionals and
 * maps do not cross, nor is a node with a subgraph divided. A run goes through the parts one after
 * the other, on the calling thread, and what crosses goes through host memory. Runs of clones
 * on several threads, and the batches of a stream, overlap: each device serves them in turn.
 * Results differ from those of one device as far as the kernels do: no nodes are fused across a
 * cut. The part of a device that is lost, or that has too little memory for it, is given
 * to the others if they have room, with a warning or a note in the log; after clg_context_recover a
 * device takes part again. Constants are uploaded again then; clones that do not run keep theirs.
 * Not possible are links, kept values, outputs in device memory, events and plans
 * (UNSUPPORTED_DEVICE), and hang_ms.
 *
 * With rows, each device has a thread of the session, which sleeps between runs. Options may be
 * NULL; those of the session are for each device. The session keeps references to the contexts.
 * Errors: those of clg_session_create, with the device; of clg_model_batch (rows that depend on
 * each other, with the node; a fixed batch); OUT_OF_DEVICE_MEMORY (layers that do not fit, with a
 * node that fits no device); INVALID_ARGUMENT (no context, or one twice; hang_ms with layers). */
CLG_API CLG_MUST_USE clg_status clg_session_create_multi(clg_context *const *contexts,
                                                         size_t n_contexts, clg_model *model,
                                                         const clg_session_options *options,
                                                         const clg_multi_options *multi_options,
                                                         clg_session **out_session);

/* A device of a session, in the last run. */
typedef struct clg_session_part {
    const clg_device_info *device; /* lives as long as its context */
    /* Its session, to look at plan, memory and profile between runs; owned by the session over all
     * devices. NULL for a device that has no part of the model. */
    clg_session *session;
    uint64_t rows;     /* 0 with CLG_SPLIT_LAYERS */
    double share;      /* of the rows of a next run like this one, or of the time, from 0 to 1 */
    double rows_per_s; /* measured while all devices worked; 0: not yet, and with layers */
    double busy_s;     /* transfers included */
    double idle_share; /* of the run's time, from 0 to 1 */
    bool is_lost;
    /* With CLG_SPLIT_LAYERS its part of the model; else 0 and "". Names belong to the model. Bytes
     * are of the constants, estimated, and of the values that cross from earlier parts to this and
     * later ones, for the declared shapes, free dimensions 1. */
    size_t n_nodes;
    const char *first_node, *last_node;
    uint64_t weight_bytes, crossing_bytes;
} clg_session_part;

/* Describes the devices of a session; one that is not over several devices has one part, itself.
 * The array has *out_n_parts entries and is freed by clg_session_parts_free. Errors: BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_parts(clg_session *session,
                                                  clg_session_part **out_parts,
                                                  size_t *out_n_parts);
CLG_API void clg_session_parts_free(clg_session_part *parts, size_t n_parts);

#ifdef __cplusplus
}
#endif

#endif
