/* SPDX-License-Identifier: Apache-2.0
 *
 * frame: the device resources of one session: a queue, memory for inputs, outputs and intermediate
 * values, and a kernel object for each step with its arguments set. Between runs, only arguments
 * whose memory changed are set again. Not thread-safe.
 */
#ifndef CLG_SESSION_FRAME_H
#define CLG_SESSION_FRAME_H

#include "session/exec/exec.h"
#include "session/run/kernel_pool.h"
#include "session/run/launch.h"
#include "session/run/launch_limit.h"

/* The current memory of an input, an output or a slab. */
typedef struct frame_memory {
    ocl_buffer *buffer;  /* owned reference; NULL when not allocated */
    size_t offset_bytes; /* where the tensor starts; 0 in the frame's own buffers */
    bool foreign;        /* the caller's memory: a bound output, or a device value */
    bool is_zero_copy;   /* host memory used in place; released after the run */
    uint64_t stamp;      /* changes whenever buffer or offset do */
} frame_memory;

/* How the launch of a step is enqueued, where the context has a limit for launches. */
typedef struct frame_parts {
    uint32_t count; /* number of parts into which it is divided, at least 1 */
    bool flushes;   /* the queue is flushed after it */
} frame_parts;

/* A segment of a plan with its kernels and their arguments. */
typedef struct frame_segment {
    plan_segment *segment; /* a reference */
    ocl_kernel **kernels;  /* one per step, NULL for copies and BLAS */
    bound_buffer *bound;   /* of all steps, in order, and then of the segment's appends */
    size_t n_bound;        /* of steps */
    uint64_t bound_stamp;  /* frame->stamp when last bound; 0: never */
    /* frame->stamp when all kernels were built and the calls of CLBlast were tried; 0: never */
    uint64_t built_stamp;
    bool has_gemms;       /* has calls of CLBlast, whose kernel depends on operand offsets */
    frame_parts *parts;   /* by step; NULL: the whole segment takes less time than a launch may */
    bool is_split;        /* a step has several parts */
    uint64_t limit_epoch; /* frame->limit.epoch when `parts` was computed; 0: never */
    bool is_watched;      /* the next run waits for each launch, and measures it */
    /* Time of the run after which nothing more was found to divide; 0: there was none. */
    uint64_t settled_ns;
    struct frame_segment *next;
} frame_segment;

/* The prepared segments of a plan. */
typedef struct frame_plan {
    plan *plan; /* a reference */
    frame_segment *segments;
    struct frame_plan *next;
} frame_plan;

/* What differs between the frames of sessions and of the init plan (constants). */
typedef struct frame_owner {
    bool is_session; /* uses the application's queue if the context has one */
    /* Finds the buffer of a weight. */
    clg_status (*weight_buffer)(session_exec *e, value_id v, ocl_buffer **out_buffer);
} frame_owner;

typedef struct frame {
    session_exec *exec; /* borrowed */
    const frame_owner *owner;
    ocl_queue *queue;
    frame_memory *inputs, *outputs;
    size_t n_inputs, n_outputs;
    frame_memory *slabs;
    size_t n_slabs, slabs_capacity;
    frame_memory *states; /* of loops (PLACE_STATE) */
    size_t *state_bytes;  /* of those that grow: the bytes in use */
    size_t n_states, states_capacity, state_bytes_capacity;
    ocl_buffer *fault; /* FAULT_WORDS ints that kernels report faults in; 0 at start */
    bool fault_dirty;  /* fault may be nonzero: clear it before the next run */
    /* launch_reports.begun; NULL where nothing reads it (ocl_context_threads_sleep) */
    ocl_buffer *begun;
    frame_plan *plans; /* most recently used first */
    kernel_pool spare; /* kernels of plans and segments that were released */
    launch_limit limit;
    uint64_t enqueued_ns; /* when frame_enqueue began; only where launches have a limit */
    /* The application has a token for cancelling: little work is queued at a time. */
    bool is_cancellable;
    double queued_ns, longest_ns; /* estimates: of the work in the queue, of its longest step */
    uint64_t queued_since_ns;     /* when the first of that work was enqueued */
    double estimated_ns;          /* as queued_ns, without pace */
    double pace;                  /* time by estimate of the last work that was waited for */
    node_id longest_node;         /* of that step; NODE_NONE: no step */
    uint64_t stamp;               /* the last stamp given to a memory */
    /* for steps that draw random numbers: the frame's seed, and the number of their launches so
     * far */
    uint64_t seed, n_draws;
    struct frame_ran *ran; /* steps of the run in progress, by tag; with profiling only */
    size_t n_ran, ran_capacity;
    clg_progress_callback progress; /* of compiling kernels; may be NULL */
    void *progress_user;
} frame;

/* A step of the current run, for the profile. */
typedef struct frame_ran {
    const plan_step *what;
    uint32_t n_parts;
    uint64_t longest_ns; /* of its commands */
} frame_ran;

/* Creates a frame. owner is borrowed and must be static. */
clg_status frame_create(session_exec *e, size_t n_inputs, size_t n_outputs,
                        const frame_owner *owner, frame **out_frame);
void frame_free(frame *f);
/* Moves queue and input memory from `old`, which is no longer used, to f, a new frame. */
clg_status frame_take_over(frame *f, frame *old);

/* Reserves the frame's own memory of at least size_bytes for an input, output or slab; keeps the
 * current memory when it suffices. */
clg_status frame_reserve(frame *f, frame_memory *m, size_t size_bytes, ocl_buffer_flags flags);
/* Releases the memory. */
void frame_drop(frame *f, frame_memory *m);
/* Sets memory of the caller; retains b. */
void frame_set_foreign(frame *f, frame_memory *m, ocl_buffer *b, size_t offset_bytes);
/* Swaps the memory of an output and an input, so that this run's output is the next run's input. */
void frame_swap(frame *f, frame_memory *a, frame_memory *b);

/* Prepares a segment of plan p to run: reserves slabs, creates and compiles kernels, and sets their
 * arguments, as far as not done or changed. *out_prepared is borrowed. */
clg_status frame_prepare(frame *f, plan *p, plan_segment *segment, frame_segment **out_prepared);
/* Returns whether frame_prepare has nothing to do for a segment, and takes no lock. */
bool frame_is_ready(const frame *f, const plan *p, const plan_segment *segment);
/* Returns whether frame_prepare has built the kernels of p's first segment before, so that a run of
 * it compiles and packs nothing. */
bool frame_has_built(const frame *f, const plan *p);
/* Enqueues all steps of a prepared segment (frame_enqueue.c). Stops with CANCELLED, before the next
 * launch, when the thread's work is cancelled. */
clg_status frame_enqueue(frame *f, frame_segment *prepared);
/* Learns how long the work in the queue took by its estimate; to be called once the queue has
 * finished. */
void frame_note_pace(frame *f);
/* Learns from the time since frame_enqueue whether the next run of this segment should measure its
 * launches. Call it when the queue has finished. */
void frame_finished(frame *f, frame_segment *prepared);
/* Records the time of a command of the run: of the step with this tag. */
void frame_note_time(frame *f, uint32_t tag, uint64_t time_ns);
/* Divides the steps that took too long by these times further, from the next run on. */
clg_status frame_learn_times(frame *f);
/* Sets *out to the current buffer and offset of a placement in this frame. */
clg_status frame_resolve(frame *f, const plan_segment *segment, const plan_placement *place,
                         bound_buffer *out);
/* Returns an error that names the node if a kernel reported a fault, else OK. Call it after the
 * queue has finished. words: FAULT_WORDS ints read from f->fault, which keeps them until
 * frame_clear_fault. */
clg_status frame_check_fault(const frame *f, const int32_t *words);
clg_status frame_clear_fault(frame *f);

/* The following functions are shared by frame.c, frame_enqueue.c, frame_split.c and
 * frame_memory.c. */

/* Marks memory as changed, so that kernel arguments are set again. */
void frame_touch(frame *f, frame_memory *m);
/* Returns the size to allocate for memory m: with slack of 1/4, at most 1 MiB, for memory that
 * grows now, since it is likely to grow again. */
size_t frame_with_room(const frame *f, const frame_memory *m, size_t size_bytes);
/* Creates a buffer of wanted_bytes; of least_bytes where that is too much memory. */
clg_status frame_create_buffer(frame *f, size_t wanted_bytes, size_t least_bytes,
                               ocl_buffer_flags flags, ocl_buffer **out_buffer);
/* Reserves the memories of loops that a segment writes. */
clg_status frame_reserve_states(frame *f, const plan_segment *segment);
/* Enqueues the copies of a prepared segment's slices of stacked outputs to the memories that
 * collect them, which grow as needed. */
clg_status frame_append(frame *f, const frame_segment *prepared);

/* Computes into how many parts each step of a segment is divided, as far as that changed. Returns
 * kernels that do not fit any more to the pool, and leaves NULL in their places. */
clg_status frame_split(frame *f, frame_segment *prepared);
/* Returns the number of parts of a step. */
static inline uint32_t frame_count_parts(const frame_segment *prepared, size_t i)
{
    return prepared->parts ? prepared->parts[i].count : 1;
}
/* Returns the number that the kernel of step i reports (launch_reports.step). */
static inline int32_t frame_step_number(size_t i) { return (int32_t)(i % INT32_MAX) + 1; }
/* Returns the kernel of a step, for launches of the whole or of parts. */
kernel_ref frame_kernel_ref(const frame_segment *prepared, size_t i);
/* Returns the kernel of a step, if there is one, to the pool. */
void frame_drop_kernel(frame *f, frame_segment *prepared, size_t i);
/* Prefixes the error message with the name of the step's node, if it has one; returns status. */
clg_status frame_prefix_node(const frame *f, const plan_step *s, clg_status status);

#endif
