/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams: prediction for more rows than fit in memory. One callback supplies rows, another one
 * receives the results in the same order; reading, transfers, computing and writing overlap:
 *
 *     clg_status read(void *user, clg_stream_batch *batch)
 *     {
 *         const clg_stream_tensor *x = &batch->tensors[0];
 *         batch->n_rows = fread(x->data, x->row_bytes, batch->n_rows, user);
 *         return CLG_OK; // no rows: the end
 *     }
 *     clg_status write(void *user, clg_stream_batch *batch)
 *     {
 *         return use_scores(user, batch->tensors[0].data, batch->n_rows);
 *     }
 *     ...
 *     clg_stream_create(&session, 1, NULL, &stream);
 *     clg_stream_run(stream, read, write, file);
 *
 * Row i is index i of the first dimension of every input and output; rows must not depend on each
 * other. Memory use is that of a few batches, for any number of rows. The rules of clgraph.h apply.
 */
#ifndef CLGRAPH_STREAM_H
#define CLGRAPH_STREAM_H

#include <clgraph/clgraph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clg_stream clg_stream;

/* Rows of one input or output, in memory of the stream, row-major. */
typedef struct clg_stream_tensor {
    const char *name;
    clg_dtype dtype;
    size_t rank;                /* 1 and more */
    int64_t dims[CLG_MAX_RANK]; /* dims[0] is n_rows of the batch */
    size_t row_bytes;
    void *data; /* for the read callback: undefined, to be filled in */
} clg_stream_tensor;

/* Consecutive rows that a callback reads or writes. */
typedef struct clg_stream_batch {
    uint64_t first_row; /* index of the first row in the stream */
    /* For the read callback the capacity, which it replaces by the number of rows filled in; for
     * the write callback the number of rows. */
    size_t n_rows;
    size_t n_tensors;
    /* For the read callback the streamed inputs, for the write callback the outputs; in the model's
     * order. */
    const clg_stream_tensor *tensors;
} clg_stream_batch;

/* Reads or writes a batch. The batch and all that it points to are valid during the call only. If
 * the callback does not return CLG_OK, clg_stream_run fails with that status and with the message
 * of clg_last_error() that the callback left. A read callback may supply any number of rows up to
 * the capacity; 0 ends the stream. Callbacks must not call clg_stream_run or clg_stream_free on
 * their stream. */
typedef clg_status (*clg_stream_callback)(void *user, clg_stream_batch *batch);

typedef struct clg_stream_options {
    size_t struct_size;
    /* Rows of a full batch. 0 means the batch size that the model fixes, else the first dimension
     * that clg_session_set_input_shape gave to the first streamed input, else 64. */
    size_t batch;
    /* Batches in flight per session (being read, queued, computed or written), 1 to 64; 0 means 3;
     * 1 disables overlap. */
    size_t depth;
    /* Names of the outputs that the write callback gets; NULL means all outputs of the model. */
    const char *const *outputs;
    size_t n_outputs;
} clg_stream_options;
#define CLG_STREAM_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(clg_stream_options), 0, 0, NULL, 0                                                  \
    }

/* Creates a stream over sessions of one model: one session, clones of it, or sessions on several
 * devices, of which faster ones get more batches. The stream clones the sessions, which may then be
 * used otherwise or freed. An input that has a value in a session keeps it for every batch; all
 * other inputs are streamed. The shape of a row is that set by clg_session_set_input_shape, else
 * the declared one, without the first dimension. Links and bound outputs of the sessions are
 * ignored. options may be NULL.
 *
 * Errors: INVALID_ARGUMENT (sessions of several models, or with values for different inputs;
 * nothing to stream; depth), NOT_FOUND (an output), SHAPE (a streamed input without rows, with
 * unknown row dimensions, or of which the model fixes another batch), UNSUPPORTED_DTYPE (strings),
 * OUT_OF_DEVICE_MEMORY, DEVICE_LOST, BUSY. */
CLG_API CLG_MUST_USE clg_status clg_stream_create(clg_session *const *sessions, size_t n_sessions,
                                                  const clg_stream_options *options,
                                                  clg_stream **out_stream);
/* Frees a stream; accepts NULL. Must not be called while clg_stream_run is running. */
CLG_API void clg_stream_free(clg_stream *stream);

/* Runs until `read` returns 0 rows and all results are written. A stream can run again. `write` is
 * called on the calling thread, `read` on a thread of the stream, possibly at the same time; each
 * is called for one batch at a time, in the order of rows. A partial batch runs at its own size if
 * the kernels of full batches suffice; otherwise it is padded with copies of its last row, so that
 * no kernel is compiled. `write` gets only the rows that were read. After an error, neither
 * callback is called again, and results of rows that were read before may be lost.
 *
 * Errors: what read or write returned, INVALID_ARGUMENT (more rows than the capacity; an invalid
 * status), those of clg_session_run, SHAPE (an output whose first dimension is not the batch),
 * CANCELLED, BUSY (it is running). */
CLG_API CLG_MUST_USE clg_status clg_stream_run(clg_stream *stream, clg_stream_callback read,
                                               clg_stream_callback write, void *user);
/* Makes a running clg_stream_run return CANCELLED as soon as the device and the callbacks in
 * progress allow; otherwise does nothing. Any thread; accepts NULL. */
CLG_API void clg_stream_cancel(clg_stream *stream);

/* Progress and times of a run of a stream. */
typedef struct clg_stream_stats {
    size_t struct_size;
    uint64_t rows, batches;             /* written so far */
    double seconds;                     /* since clg_stream_run began; if it ended, its duration */
    double read_seconds, write_seconds; /* time spent in the callbacks */
    double idle_share; /* fraction of `seconds` without a run in flight; mean over the devices */
} clg_stream_stats;
#define CLG_STREAM_STATS_INIT                                                                      \
    {                                                                                              \
        sizeof(clg_stream_stats), 0, 0, 0, 0, 0, 0                                                 \
    }
/* Returns the statistics of the current clg_stream_run, else of the last one. Any thread, callbacks
 * too. out_stats starts with its INIT. */
CLG_API CLG_MUST_USE clg_status clg_stream_get_stats(clg_stream *stream,
                                                     clg_stream_stats *out_stats);

#ifdef __cplusplus
}
#endif
#endif
