/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams predict from more rows than fit in memory. One callback reads rows, another one writes
 * results; in between the library transfers and computes, concurrently and in order:
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
 * A row is one step of the first dimension of every input and output; rows must not depend on each
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
    int64_t dims[CLG_MAX_RANK]; /* dims[0]: as n_rows of the batch */
    size_t row_bytes;
    void *data; /* read: to be filled; initially undefined */
} clg_stream_tensor;

/* Adjacent rows that a callback reads or writes. tensors: for read the inputs that are streamed,
 * for write the outputs, both in the model's order. n_rows: for read the capacity, to be set to the
 * number of rows filled in; for write the number of rows. */
typedef struct clg_stream_batch {
    uint64_t first_row; /* the number of rows before these */
    size_t n_rows;
    size_t n_tensors;
    const clg_stream_tensor *tensors;
} clg_stream_batch;

/* Reads or writes a batch, which is valid, with what it points to, during the call. A status other
 * than CLG_OK ends the stream with this status, and with clg_last_error() as the callback left it.
 * Read may give fewer rows than the capacity, at any time; 0 rows end the stream. Callbacks must
 * not run or free their stream. */
typedef clg_status (*clg_stream_callback)(void *user, clg_stream_batch *batch);

/* batch: rows of a full batch; 0: what the model fixes, else the first dimension that
 * clg_session_set_input_shape gave to the first streamed input, else 64. depth: batches in memory
 * for each session - being read, waiting, computed, written -, 1 to 64; 0: 3; with 1 nothing is
 * concurrent. outputs: those to write, by name; NULL: all of the model's. */
typedef struct clg_stream_options {
    size_t struct_size;
    size_t batch;
    size_t depth;
    const char *const *outputs;
    size_t n_outputs;
} clg_stream_options;
#define CLG_STREAM_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(clg_stream_options), 0, 0, NULL, 0                                                  \
    }

/* Creates a stream over sessions of one model: one session, clones of it, or sessions on several
 * devices, where faster ones get more batches. The stream works in its own clones: the sessions
 * stay free for other work and may be freed. Inputs that have a value in a session keep it in every
 * batch; the others are streamed, in rows of the shape that clg_session_set_input_shape gave, else
 * of the declared one. Links and bound outputs of the sessions are ignored. options may be NULL.
 *
 * Errors: INVALID_ARGUMENT (sessions of several models, or with values for different inputs;
 * nothing to stream; depth), NOT_FOUND (an output), SHAPE (a streamed input without rows, with
 * unknown row dimensions, or of which the model fixes another batch), UNSUPPORTED_DTYPE (strings),
 * OUT_OF_DEVICE_MEMORY, DEVICE_LOST, BUSY. */
CLG_API CLG_MUST_USE clg_status clg_stream_create(clg_session *const *sessions, size_t n_sessions,
                                                  const clg_stream_options *options,
                                                  clg_stream **out_stream);
/* Frees a stream; accepts NULL. Not while clg_stream_run works on it. */
CLG_API void clg_stream_free(clg_stream *stream);

/* Runs until read gives no more rows and all results are written; a stream can run again. write is
 * called on the calling thread; read on a thread of the stream, also while write runs; each of them
 * one call at a time, in the order of rows. Partial batches are computed as they are if that needs
 * no kernels other than those of full ones, else padded by repeating their last row; so they
 * compile nothing, and write sees only their own rows. After an error, in a callback or elsewhere,
 * nothing more is read or written; rows before it may not have been written.
 *
 * Errors: what read or write returned, INVALID_ARGUMENT (more rows than the capacity; an invalid
 * status), those of clg_session_run, SHAPE (an output whose first dimension is not the batch),
 * CANCELLED, BUSY (it is running). */
CLG_API CLG_MUST_USE clg_status clg_stream_run(clg_stream *stream, clg_stream_callback read,
                                               clg_stream_callback write, void *user);
/* Ends clg_stream_run with CANCELLED, as soon as the device and callbacks in progress allow. Does
 * nothing when none is running. Any thread; accepts NULL. */
CLG_API void clg_stream_cancel(clg_stream *stream);

/* Progress and times of a stream. rows, batches: written so far. seconds: since clg_stream_run
 * began, or its whole duration. idle_share: share of these seconds in which a device had no run in
 * flight; the mean of the devices. */
typedef struct clg_stream_stats {
    size_t struct_size;
    uint64_t rows, batches;
    double seconds;
    double read_seconds, write_seconds; /* in the callbacks */
    double idle_share;
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
