/* SPDX-License-Identifier: Apache-2.0
 *
 * The implementation of clg_stream: pushes batches of rows through one or several sessions. A
 * worker is a clone of a session, with a thread that runs batches, and a fixed set of slots; a slot
 * is the memory of one batch, for inputs and outputs. The reader's thread fills free slots, workers
 * run them, and the caller's thread passes their results to the write callback in the order in
 * which the batches were read.
 *
 * A slot belongs to one thread at a time, which its state identifies: changing the state, under the
 * stream's lock, hands the slot to the next thread. Where host and device share memory, slots are
 * mapped buffers that kernels work in, and all OpenCL calls of a worker are made by its thread, in
 * the session's queue. Elsewhere ("staged") a slot has pinned host memory in addition to device
 * memory, and two more queues copy concurrently with runs: the reader's thread enqueues uploads,
 * the worker's thread downloads.
 */
#ifndef CLG_SESSION_STREAM_H
#define CLG_SESSION_STREAM_H

#include "session/session.h"

#include <clgraph/stream.h>

typedef enum stream_memory {
    STREAM_MEMORY_AUTO,  /* staged where device and host do not share memory */
    STREAM_MEMORY_STAGED /* staged on all devices */
} stream_memory;

/* The states of a slot, in the order in which it passes through them. */
typedef enum slot_state {
    SLOT_FREE,
    SLOT_READING,
    SLOT_WAITING, /* filled; waits for its worker */
    SLOT_RUNNING,
    SLOT_DONE, /* computed; waits to be written */
    SLOT_WRITING
} slot_state;

/* One input or output of one batch. */
typedef struct slot_tensor {
    frame_memory memory; /* the memory that kernels access */
    /* pinned host memory, always mapped; NULL: `memory` is mapped between runs */
    ocl_buffer *staging;
    void *host;       /* address where it is mapped; NULL: not mapped */
    clg_value *value; /* only of inputs of hosted workers: the memory at `host` */
    clg_dtype dtype;  /* for outputs, dtype, dims and row_bytes are those of the last run */
    shape dims;
    size_t row_bytes;
    /* an output that the host computed and that has no device memory; a reference */
    tensor *known;
} slot_tensor;

/* The memory of one batch, and the batch in it. */
typedef struct stream_slot {
    struct stream_worker *worker;
    slot_state state;
    uint64_t index; /* number of the batch, counted from 0 */
    uint64_t first_row;
    size_t n_rows;
    slot_tensor *inputs, *outputs;
    /* cl_events of the copies, if staged and while they may be in progress */
    void *uploaded, *downloaded;
} stream_slot;

/* A device, and the time during which at least one worker runs on it. */
typedef struct stream_device {
    const clg_context *context; /* borrowed from the worker's session */
    size_t n_running;
    uint64_t since_ns, busy_ns; /* start of the current busy time; sum of the earlier ones */
} stream_device;

typedef struct stream_worker {
    clg_stream *stream;
    clg_session *session;
    stream_device *device;
    bool is_open; /* worker_create succeeded */
    bool staged;
    /* only if staged: queues for uploads, used by the reader's thread, and for downloads, used by
     * the worker's thread */
    ocl_queue *up, *down;
    stream_slot *slots;
    thread id;
    size_t n_pending; /* slots in the states SLOT_WAITING and SLOT_RUNNING */
    size_t n_runs;
    uint64_t mean_ns; /* mean duration of a run without the first, which may compile */
} stream_worker;

/* An input that is streamed, or an output that is passed to the write callback. */
typedef struct stream_port {
    size_t index; /* index among the session's inputs or outputs */
    const char *name;
    clg_dtype dtype; /* of inputs */
    shape dims;      /* of inputs: the shape of a full batch */
    size_t row_bytes;
} stream_port;

struct clg_stream {
    stream_worker *workers;
    size_t n_workers;
    stream_device *devices;
    size_t n_devices;
    arena names; /* of ports: those of sessions go with their execs */
    stream_port *inputs, *outputs;
    size_t n_inputs, n_outputs;
    size_t batch, depth; /* rows in a batch; slots per worker */
    stream_memory memory;
    bool fixed; /* the model fixes the batch size */

    atomic_bool running;
    clg_stream_callback read, write;
    void *user;
    clg_stream_tensor *read_tensors,
        *write_tensors; /* passed to the callbacks by the reader's and the caller's thread */
    thread reader;

    mutex lock; /* guards the fields below, and states of slots, workers and devices */
    condition changed;
    atomic_bool stopped; /* set under the lock; may be tested without it */
    bool is_active;      /* stream_run is executing, and can be stopped */
    bool at_end;         /* the read callback has no more rows */
    error_record failure;
    uint64_t n_read, n_written; /* batches */
    uint64_t next_row;          /* number of the next row; only the reader's thread uses it */
    uint64_t n_rows_written;
    uint64_t start_ns, end_ns;
    uint64_t read_ns, write_ns;
};

/* Options as passed to clg_stream_create, before defaults are applied. */
typedef struct stream_settings {
    /* batch: rows in a batch; 0: the number that the model fixes, else that of a shape that the
     * caller set, else 64. depth: batches in flight per session (being read, queued, computed or
     * written), 1 to 64; 0 means 3; 1 disables overlap. */
    size_t batch, depth;
    /* names of the outputs to write; NULL: the model's own */
    const char *const *outputs;
    size_t n_outputs;
    stream_memory memory;
} stream_settings;

/* Creates a stream over clones of these sessions. INVALID_ARGUMENT for a depth above 64 or sessions
 * that differ. */
clg_status stream_create(clg_session *const *sessions, size_t n_sessions,
                         const stream_settings *settings, clg_stream **out_stream);
void stream_free(clg_stream *stream);
/* Streams all batches that `read` gives, and passes their results to `write`. Returns the first
 * failure; BUSY if the stream is running. */
clg_status stream_run(clg_stream *stream, clg_stream_callback read, clg_stream_callback write,
                      void *user);
/* Makes a running stream_run stop and return CANCELLED. Any thread. */
void stream_cancel(clg_stream *stream);
/* Returns the figures of the current or last run. Any thread. */
void stream_get_stats(clg_stream *stream, clg_stream_stats *out_stats);

/* Determines the streamed inputs and their shapes, the outputs to write, and the batch size
 * (stream_ports.c). The workers' sessions must exist already, and must agree. */
clg_status stream_find_ports(clg_stream *stream, const stream_settings *settings);

/* The functions of a worker are in stream_worker.c. A zero-initialised worker is valid, and closed:
 * worker_free accepts it. */

/* Gives the worker a clone of a session, with its input values and shapes. */
clg_status worker_adopt(stream_worker *worker, clg_session *given);
/* Allocates the worker's slots and queues. Call it after stream_find_ports. */
clg_status worker_create(stream_worker *worker);
void worker_free(stream_worker *worker);
/* The functions of hosted workers are in stream_hosted.c. */

/* Returns whether the worker's session has no device memory: it divides nodes among devices. */
bool worker_is_hosted(const stream_worker *worker);
/* Returns the number of workers that keep the devices of the session busy. */
size_t stream_n_workers(const clg_session *s);
clg_status worker_open_hosted(stream_worker *worker, const stream_port *port, slot_tensor *t);
/* Runs the full batch of a slot, whose session was entered; its results are outputs[].known. */
clg_status worker_run_hosted(stream_slot *slot);

/* Starts the upload of a slot that has been filled. Called by the reader's thread. */
clg_status worker_upload(stream_slot *slot);
/* Waits until the upload is complete. Called by the worker's thread. */
clg_status worker_arrived(stream_slot *slot);
/* Runs the batch of a slot and starts the download of its results. Called by the worker's
 * thread. */
clg_status worker_run_batch(stream_slot *slot);
/* Waits until the results of a slot are in host memory. Called by the caller's thread. */
clg_status worker_result(stream_slot *slot);
/* Returns the results in host memory; NULL if there are no elements. */
const void *worker_result_data(const slot_tensor *t);
/* Makes all slots free and ready to be filled; allocates them and the queues again if the session
 * was rebuilt after a loss of the device. Called before the reader and the workers start. */
clg_status worker_begin(stream_worker *worker);
/* Waits for all commands in flight, and ignores their status. Called after all other threads have
 * ended. */
void worker_settle(stream_worker *worker);

#endif
