/* SPDX-License-Identifier: Apache-2.0
 *
 * A model for tests of streams, rows that go into it, and callbacks that give them and know what must come back: every
 * row once and in order, with the right numbers.
 */
#ifndef CLG_TESTS_STREAM_ROWS_H
#define CLG_TESTS_STREAM_ROWS_H

#include "session/stream.h"

#include <clgraph/stream.h>

#include <stdatomic.h>

enum { STREAM_K = 5, STREAM_N = 3 };

/* y = x W + shift and, as a further output, z = -x; x: [batch, STREAM_K], shift: [STREAM_N]; batch -1: free */
clg_model *stream_rows_model(int64_t batch);

extern const float stream_rows_shift[STREAM_N];

/* A session with its shift, in a context of its own or in that of the group (pocl_context.h). */
clg_session *stream_rows_session_of(clg_context *c, clg_model *m);
clg_session *stream_rows_session(int64_t batch);

/* What a test wants of callbacks, and what they saw. */
typedef struct stream_rows {
    uint64_t n_rows, n_given, n_seen;
    size_t most;          /* rows given at a time; 0: all there is room for */
    uint64_t read_fails;  /* at this row; 0: never */
    uint64_t write_fails; /* the same */
    bool silent;          /* a failing callback sets no sentence */
    bool only_z;
    clg_stream *stream;
    uint64_t cancel_at; /* row at which the writer cancels; 0: never */
    atomic_bool slow;
} stream_rows;

/* For clg_stream_run, with a stream_rows as the user's pointer. */
clg_status stream_rows_give(void *user, clg_stream_batch *batch);
clg_status stream_rows_take(void *user, clg_stream_batch *batch);

clg_stream *stream_rows_make(clg_session *const *sessions, size_t n, size_t batch, size_t depth,
                             stream_memory memory);
/* n_rows through the stream, at most `most` at a time (0: all there is room for); checks them and the figures. */
void stream_rows_run(clg_stream *stream, uint64_t n_rows, size_t most);

#endif
