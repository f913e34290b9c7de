/* SPDX-License-Identifier: Apache-2.0
 *
 * The implementation of clg_session: a shared exec (graph, weights, plans), a frame (device
 * resources), and the inputs and outputs that the caller set. A session serves one request at a
 * time: `busy` is set during a run, a preparation, or any change of inputs and outputs. After a
 * loss of the device, exec and frame are made again (session_rebuild.c).
 */
#ifndef CLG_SESSION_SESSION_H
#define CLG_SESSION_SESSION_H

#include "base/cancel.h"
#include "session/context_handle.h"
#include "session/run/frame.h"

#include <clgraph/call.h>

/* An input as the caller set it. */
typedef struct session_input {
    clg_value *value;  /* set by the caller; a reference; NULL: none */
    uint64_t n_sets;   /* how often it was set: tells one setting from the next */
    shape hint;        /* from clg_session_set_input_shape; RANK_UNKNOWN: none */
    void *mapped;      /* host address of the frame's memory, mapped for the caller; NULL: not */
    shape mapped_dims; /* the shape to be filled in */
    bool filled;       /* the mapped memory is the input, with shape mapped_dims */
    bool remaps;       /* each run maps the memory again at its end, for the caller to fill */
    size_t link;       /* index of the output that feeds this input; SIZE_MAX: none */
    bool carried;      /* the last run's output is in the frame's memory of this input */
    shape carried_dims;
    tensor *content; /* the elements, if planning needs them in the current run; a reference */
    const clg_call_input *call; /* of the clg_session_call in progress; NULL: not listed */
    value_loan loan;            /* the caller's data during such a call: value points to it */
} session_input;

/* The destination of an output that is neither bound nor linked. */
typedef enum output_impl {
    OUTPUT_FETCHED, /* in host memory */
    OUTPUT_MAPPED,  /* in the frame's memory, mapped */
    OUTPUT_LEFT     /* in the frame's memory */
} output_impl;

/* An output: where its results go, and the result of the last run. */
typedef struct session_output {
    clg_value *bound; /* the caller's memory for the result; a reference */
    output_impl impl;
    void *mapped; /* if OUTPUT_MAPPED: host address of the last result; its user unmaps it */
    size_t link;  /* input that it feeds; SIZE_MAX: none */
    bool valid;   /* the last run succeeded and set the fields below */
    clg_dtype dtype;
    shape dims;
    clg_value *host; /* the result on the host; NULL while it is on the device only */
    tensor *known;   /* the result if the host computed it; a reference */
    /* Of the clg_session_call in progress: where it wants the result; NULL: not listed. */
    clg_call_output *call;
    bool in_call_data; /* the result was written into call->data */
} session_output;

/* The thread for asynchronous runs, and the run that it executes. */
typedef struct session_worker {
    thread id;
    mutex lock;
    condition changed;
    bool started, stop, has_work, done;
    void *event; /* cl_event of the current run, for the application; NULL: not requested */
    error_record result;
} session_worker;

/* What a session over several devices does in its own way: one that divides rows (multi/) or nodes
 * (layers/). Pointers, so that the files of one device do not depend on those of several. `multi`
 * is clg_session.multi. */
struct clg_session_part;
typedef struct session_several {
    clg_status (*run)(clg_session *s);
    clg_status (*prepare)(clg_session *s, clg_progress_callback progress, void *user);
    clg_status (*clone)(clg_session *s, clg_session **out_session);
    void (*begin)(void *multi);  /* the session was entered */
    void (*cancel)(void *multi); /* any thread */
    void (*release)(void *multi);
    size_t (*n_parts)(const void *multi);
    void (*describe)(const void *multi, size_t part, struct clg_session_part *out);
    /* Returns the session of a part that took part in the last run; else NULL. */
    clg_session *(*ran)(const void *multi, size_t part);
    bool has_plans; /* session_has_plans */
} session_several;

struct clg_session {
    clg_context *owner; /* a reference; NULL for sessions of self-tests */
    session_exec *exec; /* a reference; other threads use session_hold_exec */
    frame *frame;       /* owned; NULL after a rebuild that failed */
    session_input *inputs;
    session_output *outputs;
    size_t n_inputs, n_outputs; /* n_outputs: kept values included */
    atomic_bool busy;
    clg_cancel cancel; /* of the request in progress: clg_session_cancel */
    clg_cancel *token; /* the application's for all requests; a reference; NULL: none */
    session_worker worker;
    clg_step_profile *profile; /* of the last run */
    size_t n_profile;
    void *multi;                    /* over several devices, owned; NULL: the one of exec */
    const session_several *several; /* what such a session does in its own way; NULL if multi is */
};

/* Returns whether the session has plans; over several devices they stand for those of its parts. */
static inline bool session_has_plans(const clg_session *s)
{
    return !s->multi || s->several->has_plans;
}

/* Creates a session in `context`, the current one of owner. Options must be resolved (kernel class,
 * defaults). progress, owner and token, of which the session keeps a reference, may be NULL. */
clg_status session_create(clg_context *owner, device_context *context, clg_model *model,
                          const exec_options *options, clg_cancel *token,
                          clg_progress_callback progress, void *user, clg_session **out_session);
/* Creates a session with the exec of s, without its inputs, links and bound outputs. */
clg_status session_clone(clg_session *s, clg_session **out_session);
void session_free(clg_session *s);
/* Makes these values outputs too, by switching to another exec; NULL names: all named values.
 * Inputs stay set. */
clg_status session_keep_values(clg_session *s, const char *const *names, size_t n_names);

/* Returns DEVICE_LOST if the session's device is lost, and builds exec and frame again if
 * clg_context_recover was called since (session_rebuild.c). Inputs in host memory, links and bound
 * outputs stay; what was in the device's memory is gone. The caller must have entered the
 * session. */
clg_status session_renew(clg_session *s);
/* As session_renew, before work with the inputs and outputs that are set. NOT_FOUND or
 * INVALID_ARGUMENT if one of them is a value in the memory of a lost device. */
clg_status session_refresh(clg_session *s);
/* Returns whether session_renew would build exec and frame again. */
bool session_is_stale(const clg_session *s);
/* As session_renew, for a session over several devices, which computes nothing but has the exec of
 * a device: so that it keeps no memory of a lost one. Does nothing while its device is lost. */
clg_status session_renew_front(clg_session *s);
/* Sets *out_exec to a reference to e, or to its counterpart in owner's current context. */
clg_status session_exec_now(clg_context *owner, session_exec *e, session_exec **out_exec);
/* Returns a reference to the session's exec. Any thread, also during a run. */
session_exec *session_hold_exec(clg_session *s);
/* Replaces the session's exec, and takes ownership of the reference. */
void session_set_exec(clg_session *s, session_exec *e);
/* The outputs and inputs of sessions; for another frame. */
extern const frame_owner session_frame_owner;

/* Enters the session for one request; returns BUSY if another request has entered it, and FORKED in
 * the child of a fork. */
clg_status session_enter(clg_session *s);
void session_leave(clg_session *s);
/* Ends the request in progress, if any. Any thread. */
void session_cancel(clg_session *s);
/* Returns UNSUPPORTED_DEVICE: a session over several devices does not do `what`. */
clg_status session_refuse_several(const char *what);
/* Returns DEVICE_LOST: a session over several devices has none left. */
clg_status session_refuse_lost(void);

/* The following functions are in session_io.c. The caller must have entered the session. */

/* Returns SHAPE if input `index` cannot have these dims. */
clg_status session_check_shape(const clg_session *s, size_t index, const shape *dims);
/* Find an input or output by name; NOT_FOUND, listing the names, if there is none. */
clg_status session_find_input(const clg_session *s, const char *name, size_t *out_index);
clg_status session_find_output(const clg_session *s, const char *name, size_t *out_index);
/* Returns whether two pieces of host memory overlap. */
bool session_memory_overlaps(const void *a, size_t a_bytes, const void *b, size_t b_bytes);
/* Returns INVALID_ARGUMENT if a value in host memory that is bound to an output overlaps an input
 * or another output: for sessions whose parts write there while others read. */
clg_status session_check_bound(const clg_session *s);
/* Checks that input `index` takes tensors of this dtype and shape, which need not exist yet. */
clg_status session_check_tensor(clg_session *s, size_t index, clg_dtype dtype, const shape *dims);
/* Checks that input `index` takes this value: its kind, dtypes and shape. */
clg_status session_check_value(clg_session *s, size_t index, const clg_value *v);
/* Sets input `index` to v, which is retained; NULL: unsets it. */
clg_status session_set_input(clg_session *s, size_t index, clg_value *v);
/* Sets an input to a tensor at the start of b. Takes b's reference when it succeeds: where that is
 * the only one, a linked output may be computed in b, which a run would copy first if a value had
 * it. Ends the content of such an output. Not for several devices. */
clg_status session_give_input(clg_session *s, size_t index, const shape *dims, ocl_buffer *b);
/* Returns what an input has, a reference: the value that was set, or what a run, session_give_input
 * or a mapping that ended left in the device's memory. NOT_FOUND without. Not for several devices.
 */
clg_status session_input_value(clg_session *s, size_t index, clg_value **out_value);
/* Sets the shape that a preparation assumes for an input. */
clg_status session_set_shape(clg_session *s, size_t index, const shape *dims);
/* Maps the frame's memory of an input for the caller to fill. */
clg_status session_map_input(clg_session *s, size_t index, const shape *dims, void **out_data);
clg_status session_unmap(clg_session *s, size_t index); /* does nothing when it is not mapped */
/* Makes an output of each run the input of the next one, without a copy. */
clg_status session_link(clg_session *s, size_t output, size_t input);
clg_status session_unlink(clg_session *s, size_t input);
/* Makes runs write output `index` into v, which is retained; NULL: ends that. */
clg_status session_bind_output(clg_session *s, size_t index, clg_value *v);
/* Returns the result of the last run as a value in host memory; a reference. */
clg_status session_output_host(clg_session *s, size_t index, clg_value **out_value);
/* Returns the result of the last run as a value in device memory; a reference. */
clg_status session_output_device(clg_session *s, size_t index, clg_value **out_value);
/* Returns input `index` of the exec's graph: its name, dtype and declared shape. */
const value *session_input_port(const clg_session *s, size_t index);

/* Makes the keys of random numbers in the next runs follow from the seed; without it they differ
 * between sessions. The caller must have entered the session. */
void session_set_seed(clg_session *s, uint64_t seed);

/* Runs with the inputs that are set (sync_run.c), refreshed if necessary. The caller must have
 * entered the session. */
clg_status session_run(clg_session *s);
/* As session_run, for a caller that has called session_refresh and uses the session's frame. */
clg_status session_run_refreshed(clg_session *s);
/* Plans a run with the inputs that are set, if there is no plan for them; *out_is_built: the
 * session has run it before, and compiles and packs nothing (enqueued_run.c). */
clg_status session_plan_run(clg_session *s, bool *out_is_built);
/* Enqueues a run of s in the queue of `in`: its own, or that of a session whose run was enqueued
 * before, for which session_plan_run must have said that s is built. Both are entered and
 * refreshed. Where that is not possible, s runs here and now: *out_run is NULL, as after a
 * failure. */
typedef struct enqueued_run enqueued_run;
clg_status session_enqueue(clg_session *s, clg_session *in, enqueued_run **out_run);
/* Makes a device value of these dims of an output's memory, or of the first words in which kernels
 * report faults, for a run after this one. *out_value: NULL if the host computed the output. */
clg_status session_wrap_output(const enqueued_run *run, size_t output, const shape *dims,
                               clg_value **out_value);
clg_status session_wrap_fault(const enqueued_run *run, const shape *dims, clg_value **out_value);
/* Waits for a run in its own queue, and makes its results available; leaves_rest: not for what was
 * enqueued after it. */
clg_status session_conclude(enqueued_run *run, bool leaves_rest);
/* Ends a run after another one without waiting for it: its inputs in host memory must be kept
 * until a later wait, which also reports what fails. Its outputs are bound to device values. */
clg_status session_let_run(enqueued_run *run);
/* Waits for what is in flight in the session's queue. */
clg_status session_finish(clg_session *s);
/* Plans and compiles for the shapes that are set, and runs once with zeros. progress may be
 * NULL. */
clg_status session_prepare(clg_session *s, clg_progress_callback progress, void *user);
/* Sets *out_plan to a reference to the plan for the shapes that are set, or declared for other
 * inputs. */
clg_status session_plan(clg_session *s, plan **out_plan);
/* As session_plan, for a plan that is only looked at: nothing is compiled, tested or packed. */
clg_status session_plan_dry(clg_session *s, plan **out_plan);

/* Runs with these inputs, and sets the outputs, whose members for results are zero
 * (session_call.c). The caller must have entered the session. */
clg_status session_call(clg_session *s, const clg_call_input *inputs, size_t n_inputs,
                        clg_call_output *outputs, size_t n_outputs);

/* Starts an asynchronous run (async_run.c). */
clg_status session_run_async(clg_session *s);
/* Waits for the asynchronous run, leaves the session, and returns the run's status. */
clg_status session_wait(clg_session *s);
/* Sets *out_cl_event to a cl_event, owned by the caller, that completes with the asynchronous run
 * in progress or, without one, with the last commands enqueued. */
clg_status session_event(clg_session *s, void **out_cl_event);
/* Cancels an asynchronous run and ends the worker's thread. */
void session_stop_worker(clg_session *s);

#endif
