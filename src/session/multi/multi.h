/* SPDX-License-Identifier: Apache-2.0
 *
 * Data parallelism: a session whose runs divide the rows of the batch among sessions on several
 * devices. The application sees one clg_session, the front, which holds what was set and the
 * results; each part has a session on its device, and a thread. A run makes one piece for each
 * part, runs all pieces, runs those of lost devices again on the others, and joins the outputs. See
 * decision 64.
 *
 * Locks: `lock` guards the state of the parts' threads, and is_lost and has_hung. All else belongs
 * to the thread that has entered the front, and to a part's thread while it has a piece.
 */
#ifndef CLG_SESSION_MULTI_H
#define CLG_SESSION_MULTI_H

#include "session/session.h"

/* Consecutive rows, computed by one part. */
typedef struct multi_piece {
    refcount refs; /* the run, and the thread that computes it */
    size_t part;
    int64_t first_row, n_rows;
    size_t n_inputs, n_outputs;
    clg_call_input *inputs;        /* those that are set */
    int64_t (*dims)[CLG_MAX_RANK]; /* of the inputs */
    clg_value **values;            /* references that keep the inputs' memory */
    tensor **copies;               /* of the rows, where a device may hang; else NULL */
    size_t *ports;                 /* which inputs of the model they are */
    uint64_t *residents;           /* n_sets of one that is copied to the device; else 0 */
    clg_call_output *outputs;      /* all of the model's, in its order */
    bool is_trial;                 /* a run on zeros of the shapes that are set, for its time */
    double seconds;                /* of the run */
    error_record result; /* DEVICE_LOST until it is done, and for good if the run gave it up */
} multi_piece;

/* A device of the session. */
typedef struct multi_part {
    struct multi_session *owner;
    clg_session *session;
    thread id;
    bool has_thread, stops;
    multi_piece *piece; /* being computed; NULL: none */
    bool is_lost;       /* until its context was recovered */
    bool has_hung;      /* computes a piece that the run gave up; is_lost too */
    limit_watch watch;  /* of its thread */
    limit_phase phase;  /* at the last look at the thread, as n_checks */
    unsigned n_checks;  /* of cancellation */
    uint64_t waited_ns; /* for the device: since the piece came, or the phase changed */
    uint64_t build_ms;  /* of the longest build; kept, as the thread may change its context */
    double guess;       /* of the speed, before one is measured; comparable with other guesses */
    double rows_per_s;  /* measured; 0: not yet */
    int64_t warm_rows;  /* the last run's; the first run of a size is not measured, as it plans */
    unsigned n_idle;    /* runs without rows since its speed was measured */
    /* Inputs without a batch that were copied to the device, and n_sets of the input then. */
    clg_value **constants;
    uint64_t *constant_sets;
    uint64_t rows; /* of the last run, as the following */
    double busy_s, whole_s;
} multi_part;

/* An output of the last run, from which that of the next one is predicted. */
typedef struct multi_output {
    int axis; /* of the batch; BATCH_NONE: it does not depend on it */
    bool is_known;
    clg_dtype dtype;
    shape dims;
    void *whole;        /* where the pieces of this run write their rows; NULL: nowhere yet */
    tensor *whole_host; /* owner of that memory, if it is the session's */
    bool is_calls;      /* it is that of the clg_session_call in progress */
    shape whole_dims;   /* as predicted */
    size_t row_bytes;
} multi_output;

typedef struct multi_session {
    refcount refs; /* the front, and each thread that hangs */
    size_t n_parts, n_inputs, n_outputs;
    multi_part *parts;
    int *input_axes; /* by input: 0 or BATCH_NONE */
    multi_output *outputs;
    clg_cancel cancel; /* of the run in progress */
    uint32_t hang_ms;  /* after which a device counts as lost; 0: never */
    mutex lock;
    condition changed;
    /* The last run that succeeded, dims of its inputs, and how rows are divided. */
    bool has_run;
    int64_t n_rows;
    shape *input_dims;
    int64_t split_of; /* the number of rows that `split` adds up to; -1: none */
    int64_t *split;
    size_t n_measured; /* runs with this split in which all its parts were measured */
    double *speeds;    /* scratch of multi_split */
    int64_t *next_split;
} multi_session;

static inline multi_session *multi_of(const clg_session *front) { return front->multi; }

/* Creates a session over `parts`, sessions of one model on n_parts > 0 devices, of which it takes
 * ownership, also on failure. axes: by input and output of the model, from batch_find. */
clg_status multi_create(clg_session **parts, size_t n_parts, const int *input_axes,
                        const int *output_axes, uint32_t hang_ms, clg_session **out_session);

/* The following take a front that the caller has entered. */

/* Runs with the inputs that are set; sets the outputs of the front. */
clg_status multi_run(clg_session *s);
/* Prepares each part for its share of the rows, then runs twice to learn the speeds. */
clg_status multi_prepare(clg_session *s, clg_progress_callback progress, void *user);
/* Ends the run in progress, if any. Any thread. */
void multi_cancel(multi_session *m);
/* Returns a guess of the device's speed, comparable with those of others only. */
double multi_guess_speed(const device_context *context);

/* ---- for the files of this folder ------------------------------------------------------------ */

/* Starts the piece on its part's thread, which is idle. Takes a reference to it. */
clg_status multi_start(multi_session *m, multi_piece *piece);
/* Waits until all parts are idle or have hung. */
void multi_wait(multi_session *m);
/* Stops the thread of a part, and waits for it unless it hangs. */
void multi_stop(multi_part *part);
void multi_release(multi_session *m); /* one reference */

multi_piece *multi_piece_retain(multi_piece *piece);
void multi_piece_free(multi_piece *piece); /* accepts NULL */

/* Divides n_rows among the parts that are not lost; the result is in m->split. */
void multi_split(multi_session *m, int64_t n_rows);
/* Divides rows of a device that was lost among the others; the result is in m->next_split. */
void multi_split_again(multi_session *m, int64_t n_rows);
/* Forgets which sizes were planned, since the shapes of rows are others now. */
void multi_forget_sizes(multi_session *m);
/* Learns the speeds from the times of a run, if each part computed just its share of m->split. */
void multi_learn(multi_session *m);

/* Finds the memory into which pieces write an output, where it can be known before the run. */
clg_status multi_place_outputs(clg_session *s, int64_t n_rows, bool is_alike);
/* Joins the outputs of pieces, which are in the order of the rows, into the front's. */
clg_status multi_gather(clg_session *s, multi_piece *const *pieces, size_t n_pieces);
/* Forgets the memory of multi_place_outputs. */
void multi_forget_places(multi_session *m);

#endif
