/* SPDX-License-Identifier: Apache-2.0
 *
 * The implementation of clg_session: a shared exec, a frame, and the inputs and outputs that the
 * caller set. One request at a time: `busy` is taken by a run, a preparation, or any change of
 * inputs and outputs.
 */
#ifndef CLG_SESSION_SESSION_H
#define CLG_SESSION_SESSION_H

#include "session/run/frame.h"

typedef struct session_input {
    clg_value *value; /* as set; a reference */
    shape hint;       /* from clg_session_set_input_shape; RANK_UNKNOWN: none */
    void *mapped;     /* the frame's memory mapped for the caller; NULL when not */
    shape mapped_dims;
    bool filled;  /* the frame's memory, mapped before, holds the input, of mapped_dims */
    bool remaps;  /* runs map the memory again after their steps, for the caller to fill */
    size_t link;  /* output that feeds this input; SIZE_MAX: none */
    bool carried; /* the last run's output is in the frame's memory of this input */
    shape carried_dims;
    tensor *content; /* known content for planning, of the run in progress; a reference */
} session_input;

/* The destination of an output that is neither bound nor linked. */
typedef enum output_impl {
    OUTPUT_FETCHED, /* in host memory */
    OUTPUT_MAPPED,  /* in the frame's memory, mapped */
    OUTPUT_LEFT     /* in the frame's memory */
} output_impl;

typedef struct session_output {
    clg_value *bound; /* a reference */
    output_impl impl;
    void *mapped; /* by the last run, with OUTPUT_MAPPED; its user unmaps it */
    size_t link;  /* input that it feeds; SIZE_MAX: none */
    bool valid;   /* the last run succeeded and set the fields below */
    clg_dtype dtype;
    shape dims;
    clg_value *host; /* its content on the host; NULL while it is on the device only */
    tensor *known;   /* content computed on the host; a reference */
} session_output;

typedef struct session_worker {
    thread id;
    mutex lock;
    condition changed;
    bool started, stop, has_work, done;
    void *event; /* of the run in progress, for the application; NULL if nobody requested it */
    error_record result;
} session_worker;

struct clg_session {
    session_exec *exec;
    frame *frame;
    session_input *inputs;
    session_output *outputs;
    size_t n_inputs, n_outputs; /* n_outputs: of the exec's graph, values kept included */
    atomic_bool busy, cancel;
    session_worker worker;
    clg_step_profile *profile; /* of the last run */
    size_t n_profile;
};

/* Creates a session. Options must be resolved (kernel class, defaults). */
clg_status session_create(clg_context *context, clg_model *model, const exec_options *options,
                          clg_progress_callback progress, void *user, clg_session **out_session);
clg_status session_clone(clg_session *s, clg_session **out_session);
void session_free(clg_session *s);
/* Switches to a new exec with these values as outputs; inputs stay set. */
clg_status session_keep_values(clg_session *s, const char *const *names, size_t n_names);

/* Enters the session for one request; returns BUSY if another request has entered it. */
clg_status session_enter(clg_session *s);
void session_leave(clg_session *s);

/* session_io.c. The session is entered by the caller. */
/* Returns SHAPE when input `index` cannot have these dims. */
clg_status session_check_shape(const clg_session *s, size_t index, const shape *dims);
clg_status session_find_input(const clg_session *s, const char *name, size_t *out_index);
clg_status session_find_output(const clg_session *s, const char *name, size_t *out_index);
clg_status session_set_input(clg_session *s, size_t index, clg_value *v);
clg_status session_set_shape(clg_session *s, size_t index, const shape *dims);
clg_status session_map_input(clg_session *s, size_t index, const shape *dims, void **out_data);
clg_status session_unmap(clg_session *s, size_t index); /* does nothing when it is not mapped */
clg_status session_link(clg_session *s, size_t output, size_t input);
clg_status session_unlink(clg_session *s, size_t input);
clg_status session_bind_output(clg_session *s, size_t index, clg_value *v);
clg_status session_output_host(clg_session *s, size_t index, clg_value **out_value);
clg_status session_output_device(clg_session *s, size_t index, clg_value **out_value);
/* Returns the name, dtype and declared shape of input i in the exec's graph. */
const value *session_input_port(const clg_session *s, size_t index);

/* sync_run.c. Runs with the inputs that are set; the caller has entered the session. */
clg_status session_run(clg_session *s);
/* Plans and compiles for the shapes that are set and runs once on zeros. */
clg_status session_prepare(clg_session *s, clg_progress_callback progress, void *user);
/* Returns the plan for the shapes that are set (declared ones for other inputs); a reference. */
clg_status session_plan(clg_session *s, plan **out_plan);

/* async_run.c: starts an asynchronous run, and waits for it and returns its status. */
clg_status session_run_async(clg_session *s);
clg_status session_wait(clg_session *s);
/* Returns a cl_event, owned by the caller, that completes with the asynchronous run in progress,
 * else with the last commands enqueued. */
clg_status session_event(clg_session *s, void **out_cl_event);
void session_stop_worker(clg_session *s);

#endif
