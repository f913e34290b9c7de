/* SPDX-License-Identifier: Apache-2.0
 *
 * A session whose model is divided among devices by its nodes: each device computes a contiguous
 * part, a separate model whose inputs and outputs are what crosses between parts. The application
 * sees one clg_session, the front, which has no weights and computes nothing. Runs go through the
 * parts one after the other, on the caller's thread; runs of clones overlap, each on another
 * device. See decision 67.
 *
 * Locks: the `lock` of layers_shared guards what its comment says; a division is immutable. A
 * layers_session belongs to the thread that has entered its front.
 */
#ifndef CLG_SESSION_LAYERS_H
#define CLG_SESSION_LAYERS_H

#include "session/layers/layer_costs.h"
#include "session/session.h"

/* A part of the model. Values that cross between parts, and the model's inputs and outputs, have
 * slots, which are numbered from 0: the first ones are the inputs. */
typedef struct layers_part {
    clg_model *model;
    size_t device;
    size_t n_inputs, n_outputs;
    size_t *inputs, *outputs; /* slots, in the order of the model's */
    size_t first_block, end_block;
    const char *first_node, *last_node; /* labels, of the whole model's graph */
    size_t n_nodes;
    uint64_t weight_bytes, crossing_bytes; /* estimated; of the cut before it */
} layers_part;

/* A way to divide the model. Shared by sessions. */
typedef struct layers_division {
    refcount refs;
    arena memory; /* of all below but the models */
    size_t n_parts, n_slots;
    layers_part *parts; /* each has nodes */
    size_t *outputs;    /* by output of the whole model: its slot */
} layers_division;

/* Sessions that wait for a device, in the order of their arrival. */
typedef struct layers_waiter {
    struct layers_waiter *next;
} layers_waiter;

typedef struct layers_device {
    clg_context *context; /* a reference */
    exec_options options; /* of sessions of parts; strings are in layers_shared.memory */
    size_t n_at_once;     /* runs that may use it at a time */
    /* The following are guarded by layers_shared.lock. */
    double speed;         /* work a second, guessed or measured; comparable with other devices */
    uint64_t limit_bytes; /* of its memory, as the driver or the session's options say, or less
                             after a part did not fit */
    bool is_lost;
    size_t n_inside; /* runs that use it */
    layers_waiter *waiters;
} layers_device;

/* What clones share. */
typedef struct layers_shared {
    refcount refs;
    arena memory;
    clg_model *model; /* a reference */
    clg_cancel *token;
    layer_costs costs;
    size_t n_devices;
    layers_device *devices;
    mutex lock;
    condition changed;
    layers_division *division; /* the current one; NULL: to be made; guarded by `lock` */
} layers_shared;

/* A value in a run. */
typedef struct layers_slot {
    tensor *memory;         /* where its part writes it, if it has the size; kept from run to run */
    clg_value *value;       /* what the part returned instead; a reference */
    clg_call_output result; /* of the part: dtype, dims, size; value and name do not count */
} layers_slot;

/* A part of a session. */
typedef struct layers_stage {
    clg_session *session; /* NULL: not yet made */
    clg_call_input *inputs;
    clg_call_output *outputs;
    double busy_s; /* in the last run, without waiting for the device */
} layers_stage;

typedef struct layers_session {
    layers_shared *shared;
    layers_division *division; /* that of `stages`; a reference; NULL: none */
    layers_stage *stages;      /* by part */
    layers_slot *slots;
    double whole_s; /* of the last run */
    bool has_run;
} layers_session;

/* Creates a session over n > 0 contexts. options: by context, as for a session of the model there.
 * token and progress may be NULL. Errors: those of session_create, and of layer_cut. */
clg_status layers_create(clg_context *const *contexts, size_t n, clg_model *model,
                         const exec_options *options, clg_cancel *token,
                         clg_progress_callback progress, void *user, clg_session **out_session);

/* Implement session_several (layers_run.c). */
clg_status layers_run(clg_session *s);
clg_status layers_prepare(clg_session *s, clg_progress_callback progress, void *user);

/* ---- for the files of this folder ------------------------------------------------------------ */

/* Divides the model as out_first of layer_cut says, among the devices (layers_division.c). */
clg_status layers_divide(const clg_model *model, const layer_costs *costs, const size_t *first,
                         size_t n_devices, layers_division **out_division);
layers_division *layers_division_retain(layers_division *d);
void layers_division_free(layers_division *d); /* accepts NULL */

/* Gives the session the current division, after devices were lost or have come back, and the
 * sessions of its parts (layers_devices.c). */
#define MAX_DIVISIONS 16 /* tried in one call */
clg_status layers_refresh(clg_session *front, clg_progress_callback progress, void *user);
/* Decides whether the run can be tried again after a part failed with `failure`, with another
 * division; if so, returns CLG_OK. */
clg_status layers_after_failure(layers_session *l, size_t part, const error_record *failure);
/* Waits until the device serves the caller. CANCELLED, if its work was cancelled meanwhile. */
clg_status layers_enter_device(layers_shared *shared, size_t device);
void layers_leave_device(layers_shared *shared, size_t device);
/* Learns the devices' speeds from the last run of l; the next layers_refresh makes another division
 * if that promises a gain. Returns whether it does. */
bool layers_learn(layers_session *l);
/* Frees the sessions of the parts. */
void layers_drop_stages(layers_session *l);

#endif
