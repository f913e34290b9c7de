/* SPDX-License-Identifier: Apache-2.0
 *
 * The implementation of clg_stream. A worker is a clone of a session with a thread that runs
 * batches and a ring of slots; a slot is the memory of one batch, inputs and outputs. The reader's
 * thread fills free slots, workers run them, the caller's thread writes them in the order in which
 * they were read.
 *
 * A slot belongs to one thread at a time, which its state identifies: changing the state, under the
 * stream's lock, passes it on. Where host and device share memory, slots are mapped buffers that
 * kernels work in, and all OpenCL calls of a worker are made by its thread, in the session's queue.
 * Elsewhere ("staged") a slot has pinned memory beside the device's, and two more queues copy
 * concurrently with runs: the reader's thread enqueues uploads, the worker's thread downloads.
 */
#ifndef CLG_SESSION_STREAM_H
#define CLG_SESSION_STREAM_H

#include "session/session.h"

#include <clgraph/stream.h>

typedef enum slot_state {
    SLOT_FREE,
    SLOT_READING,
    SLOT_WAITING, /* for its worker */
    SLOT_RUNNING,
    SLOT_DONE, /* and waiting to be written */
    SLOT_WRITING
} slot_state;

/* One input or output of one batch. */
typedef struct slot_tensor {
    frame_memory memory; /* the memory that kernels use */
    ocl_buffer *staging; /* pinned, always mapped; NULL: memory itself is mapped between runs */
    void *host;          /* where it is mapped; NULL: not */
    clg_dtype dtype;     /* outputs, of the last run: */
    shape dims;
    size_t row_bytes;
    tensor *known; /* content that never was on the device; a reference */
} slot_tensor;

typedef struct stream_slot {
    struct stream_worker *worker;
    slot_state state;
    uint64_t index; /* of the batch */
    uint64_t first_row;
    size_t n_rows;
    slot_tensor *inputs, *outputs;
    void *uploaded, *downloaded; /* cl_events; staged, while the copies may be in progress */
} stream_slot;

/* A device, to measure the time in which it is idle. */
typedef struct stream_device {
    const clg_context *context;
    size_t n_running;
    uint64_t since_ns, busy_ns;
} stream_device;

typedef struct stream_worker {
    clg_stream *stream;
    clg_session *session;
    stream_device *device;
    bool staged;
    ocl_queue *up, *down; /* staged; of the reader's thread, and of the worker's */
    stream_slot *slots;
    thread id;
    size_t n_pending; /* slots that wait or run */
    size_t n_runs;
    uint64_t mean_ns; /* of a run; excludes the first one, which may compile */
} stream_worker;

/* An input that is streamed, or an output that is written. */
typedef struct stream_port {
    size_t index; /* among the session's */
    const char *name;
    clg_dtype dtype; /* of inputs */
    shape dims;      /* of inputs, a full batch */
    size_t row_bytes;
} stream_port;

struct clg_stream {
    stream_worker *workers;
    size_t n_workers;
    stream_device *devices;
    size_t n_devices;
    stream_port *inputs, *outputs;
    size_t n_inputs, n_outputs;
    size_t batch, depth;
    bool fixed; /* the model fixes the batch */

    atomic_bool running;
    clg_stream_callback read, write;
    void *user;
    clg_stream_tensor *read_tensors,
        *write_tensors; /* of the reader's thread and of the caller's */
    thread reader;

    mutex lock; /* guards the following fields, the states of slots, workers' counts, and devices */
    condition changed;
    atomic_bool stopped; /* set under the lock; looked at by runs without it */
    bool is_active;      /* stream_run works, and can be stopped */
    bool at_end;         /* read has no more rows */
    error_record failure;
    uint64_t n_read, n_written; /* batches */
    uint64_t next_row;          /* of the reader's thread */
    uint64_t n_rows_written;
    uint64_t start_ns, end_ns;
    uint64_t read_ns, write_ns;
};

typedef enum stream_memory {
    STREAM_MEMORY_AUTO,  /* staged where device and host do not share memory */
    STREAM_MEMORY_STAGED /* always */
} stream_memory;

/* Options as given to clg_stream_create, before defaults are resolved. */
typedef struct stream_settings {
    size_t batch, depth;
    const char *const *outputs;
    size_t n_outputs;
    stream_memory memory;
} stream_settings;

clg_status stream_create(clg_session *const *sessions, size_t n_sessions,
                         const stream_settings *settings, clg_stream **out_stream);
void stream_free(clg_stream *stream);
clg_status stream_run(clg_stream *stream, clg_stream_callback read, clg_stream_callback write,
                      void *user);
void stream_cancel(clg_stream *stream);
void stream_get_stats(clg_stream *stream, clg_stream_stats *out_stats);

/* stream_ports.c: determines the streamed inputs and their shapes, the outputs to write, and the
 * batch. The workers have their sessions already, which must agree. */
clg_status stream_find_ports(clg_stream *stream, const stream_settings *settings);

/* stream_worker.c. A worker that is all zeros is valid and closed. adopt: clones the given session,
 * with its values and shapes. create: allocates the memory for batches, once the ports are known.
 */
clg_status worker_adopt(stream_worker *worker, clg_session *given);
clg_status worker_create(stream_worker *worker, stream_memory memory);
void worker_free(stream_worker *worker);
/* Called by the reader's thread when a slot has been filled: starts its upload. */
clg_status worker_upload(stream_slot *slot);
/* Called by the worker's thread: waits until the upload is complete. */
clg_status worker_arrived(stream_slot *slot);
/* Called by the worker's thread: runs a slot and starts the download of its results. */
clg_status worker_run_batch(stream_slot *slot);
/* Called by the caller's thread: waits until the results are in host memory. worker_result_data
 * returns them; NULL for no elements. */
clg_status worker_result(stream_slot *slot);
const void *worker_result_data(const slot_tensor *t);
/* Called before any other thread works: all slots become free, ready to be filled. */
clg_status worker_begin(stream_worker *worker);
/* Called when no other thread works any more: waits for all commands in flight, whatever their
 * status. */
void worker_settle(stream_worker *worker);

#endif
