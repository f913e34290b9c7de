/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions over several devices: each run divides the rows of the batch among the devices, in
 * proportion to the speeds that earlier runs measured, and joins the outputs. The rules of
 * clgraph.h apply.
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

typedef struct clg_multi_options {
    size_t struct_size;
    /* Milliseconds after which a device that has not finished its rows counts as lost; 0: never.
     * With a limit the rows are copied for each run, since a device that hangs may read them
     * later. */
    uint32_t hang_ms;
} clg_multi_options;
#define CLG_MULTI_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(clg_multi_options), 0                                                               \
    }

/* Creates a session over devices of any vendors, which is used like one on a single device. The
 * batch is the first dimension of the inputs that clg_model_batch finds; rows must be proved
 * independent. A run gives each device consecutive rows; results are those of runs on the single
 * devices with these rows. A device without rows, for small batches, does nothing. The rows of a
 * device that is lost during a run are computed by the others, with a warning in the log; it takes
 * part again after clg_context_recover. Weights are uploaded once for each device, and so are
 * inputs without a batch, when they are set.
 *
 * Not possible are links, kept values, outputs in device memory and events (UNSUPPORTED_DEVICE),
 * and strings, sequences, optionals and maps that carry the batch (UNSUPPORTED_DTYPE,
 * UNSUPPORTED_DEVICE). Plans and estimates of memory are those of the whole batch on the first
 * device: for the devices' own see clg_session_parts.
 *
 * Each device has a thread of the session, which sleeps between runs. Options may be NULL; those of
 * the session are for each device. The session keeps references to the contexts. Errors: those of
 * clg_session_create, with the device; of clg_model_batch (rows that depend on each other, with the
 * node; a fixed batch); INVALID_ARGUMENT (no context, or one twice). */
CLG_API CLG_MUST_USE clg_status clg_session_create_multi(clg_context *const *contexts,
                                                         size_t n_contexts, clg_model *model,
                                                         const clg_session_options *options,
                                                         const clg_multi_options *multi_options,
                                                         clg_session **out_session);

/* A device of a session, in the last run. */
typedef struct clg_session_part {
    const clg_device_info *device; /* lives as long as its context */
    /* Its session, to look at plan, memory and profile between runs; owned by the session over all
     * devices. */
    clg_session *session;
    uint64_t rows;
    double share;      /* of the rows of a next run like this one, from 0 to 1 */
    double rows_per_s; /* measured while all devices worked; 0: not yet */
    double busy_s;     /* transfers included */
    double idle_share; /* of the run's time, from 0 to 1 */
    bool is_lost;
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
