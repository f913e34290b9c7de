/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests streams that end early: callbacks that fail or give invalid results, runs that fail, and
 * cancelling. The stream must run correctly afterwards.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/stream_rows.h"
#include "support/literals.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

/* ---- failing --------------------------------------------------------------------------------- */

static void each_failure(stream_memory memory)
{
    clg_session *s = stream_rows_session(-1);
    clg_stream *stream = stream_rows_make(&s, 1, 8, 3, memory);
    stream_rows read = {.n_rows = 1000, .read_fails = 80};
    assert_error(clg_stream_run(stream, stream_rows_give, stream_rows_take, &read), CLG_ERROR_IO,
                 "row 80 is torn");
    assert_true(read.n_seen <= 80);
    stream_rows write = {.n_rows = 1000, .write_fails = 80};
    assert_error(clg_stream_run(stream, stream_rows_give, stream_rows_take, &write), CLG_ERROR_IO,
                 "the disk is full at 80");
    assert_true(write.n_given < 1000);
    stream_rows mute = {.n_rows = 1000, .read_fails = 8, .silent = true};
    assert_error(clg_stream_run(stream, stream_rows_give, stream_rows_take, &mute), CLG_ERROR_IO,
                 "the callback that reads gave CLG_ERROR_IO");
    stream_rows mute_too = {.n_rows = 1000, .write_fails = 8, .silent = true};
    assert_error(clg_stream_run(stream, stream_rows_give, stream_rows_take, &mute_too),
                 CLG_ERROR_IO, "the callback that writes gave CLG_ERROR_IO");
    stream_rows_run(stream, 1000, 0); /* it runs again */
    clg_stream_free(stream);
    clg_session_free(s);
}

TEST(stream__failing_callbacks)
{
    each_failure(STREAM_MEMORY_AUTO);
    each_failure(STREAM_MEMORY_STAGED);
}

static clg_status give_too_many(void *user, clg_stream_batch *batch)
{
    (void)user;
    batch->n_rows++;
    return CLG_OK;
}

static clg_status give_nonsense(void *user, clg_stream_batch *batch)
{
    (void)user;
    (void)batch;
    return (clg_status)7;
}

TEST(stream__callbacks_that_break_the_rules)
{
    clg_session *s = stream_rows_session(-1);
    clg_stream *stream = stream_rows_make(&s, 1, 8, 3, STREAM_MEMORY_AUTO);
    stream_rows j = {.n_rows = 10};
    assert_error(clg_stream_run(stream, give_too_many, stream_rows_take, &j),
                 CLG_ERROR_INVALID_ARGUMENT, "9 rows where there is room for 8");
    assert_error(clg_stream_run(stream, give_nonsense, stream_rows_take, &j),
                 CLG_ERROR_INVALID_ARGUMENT, "gave 7, which is not a status");
    assert_error(clg_stream_run(stream, NULL, stream_rows_take, &j), CLG_ERROR_INVALID_ARGUMENT,
                 "read");
    stream_rows_run(stream, 10, 0);
    clg_stream_free(stream);
    clg_session_free(s);
}

/* Describes n_rows rows of one index each; the index of row `bad` is out of range. */
typedef struct indices {
    uint64_t n_rows, bad, n_given;
} indices;

static clg_status give_indices(void *user, clg_stream_batch *batch)
{
    indices *r = user;
    int64_t *to = batch->tensors[0].data;
    if (batch->n_rows > r->n_rows - r->n_given) batch->n_rows = (size_t)(r->n_rows - r->n_given);
    for (size_t i = 0; i < batch->n_rows; i++) to[i] = r->n_given + i == r->bad ? 99 : 1;
    r->n_given += batch->n_rows;
    return CLG_OK;
}

static clg_status ignore(void *user, clg_stream_batch *batch)
{
    (void)user;
    (void)batch;
    return CLG_OK;
}

static clg_session *gather_session(int64_t batch)
{
    static const float table[] = {1, 2, 3};
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "i", CLG_INT64, 1, DIMS(batch), NULL));
    assert_ok(sized_constant(g, "table", CLG_FLOAT32, 1, DIMS(3), table));
    assert_ok(clg_builder_node(g, NULL, "Gather", "look", 2, NAMES("table", "i"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    return build_session(context, g, NULL);
}

TEST(stream__a_run_that_fails)
{
    clg_session *s = gather_session(-1);
    clg_stream *stream = stream_rows_make(&s, 1, 8, 3, STREAM_MEMORY_AUTO);
    for (int i = 0; i < 2; i++) {
        indices r = {.n_rows = 1000, .bad = 37};
        assert_error(clg_stream_run(stream, give_indices, ignore, &r), CLG_ERROR_DATA, "look");
    }
    clg_stream_free(stream);
    clg_session_free(s);
}

/* The padding of a short batch must not be left-over data. */
TEST(stream__a_short_batch_holds_nothing_stale)
{
    clg_session *s = gather_session(8);
    for (int staged = 0; staged < 2; staged++) {
        clg_stream *stream =
            stream_rows_make(&s, 1, 0, 1, staged ? STREAM_MEMORY_STAGED : STREAM_MEMORY_AUTO);
        indices bad = {.n_rows = 8, .bad = 7}, good = {.n_rows = 3, .bad = 7};
        assert_error(clg_stream_run(stream, give_indices, ignore, &bad), CLG_ERROR_DATA, "look");
        assert_ok(clg_stream_run(stream, give_indices, ignore, &good));
        clg_stream_free(stream);
    }
    clg_session_free(s);
}

/* ---- cancelling ------------------------------------------------------------------------------ */

static void *cancel_soon(void *stream)
{
    clg_stream_stats stats = CLG_STREAM_STATS_INIT;
    const struct timespec pause = {0, 1000000};
    do {
        (void)nanosleep(&pause, NULL);
        if (clg_stream_get_stats(stream, &stats) != CLG_OK) return stream;
    } while (stats.rows < 40);
    clg_stream_cancel(stream);
    return NULL;
}

TEST(stream__cancelling)
{
    clg_session *s[2] = {stream_rows_session(-1)};
    s[1] = s[0];
    clg_stream *stream = stream_rows_make(s, 2, 8, 3, STREAM_MEMORY_AUTO);
    pthread_t other;
    void *result;
    clg_stream_cancel(NULL);
    clg_stream_cancel(stream); /* nothing is in progress */
    stream_rows_run(stream, 100, 0);
    for (int round = 0; round < 20; round++) {
        stream_rows j = {.n_rows = UINT64_MAX, .stream = stream, .slow = true};
        stream_rows_run(stream, 1, 0); /* else the thread may see the rows of the run before */
        assert_int_equal(pthread_create(&other, NULL, cancel_soon, stream), 0);
        assert_error(clg_stream_run(stream, stream_rows_give, stream_rows_take, &j),
                     CLG_ERROR_CANCELLED, "cancelled");
        assert_int_equal(pthread_join(other, &result), 0);
        assert_null(result);
        assert_true(j.n_seen >= 40);
    }
    stream_rows own = {.n_rows = UINT64_MAX, .stream = stream, .cancel_at = 80};
    assert_error(clg_stream_run(stream, stream_rows_give, stream_rows_take, &own),
                 CLG_ERROR_CANCELLED, "cancelled");
    assert_int_equal(own.n_seen, 80);
    stream_rows_run(stream, 100, 0);
    clg_stream_free(stream);
    clg_session_free(s[0]);
}

static void *run_long(void *argument)
{
    stream_rows *j = argument;
    clg_status status = clg_stream_run(j->stream, stream_rows_give, stream_rows_take, j);
    return status == CLG_ERROR_CANCELLED ? NULL : j;
}

TEST(stream__one_run_at_a_time)
{
    clg_session *s = stream_rows_session(-1);
    clg_stream *stream = stream_rows_make(&s, 1, 8, 3, STREAM_MEMORY_AUTO);
    clg_stream_stats stats = CLG_STREAM_STATS_INIT;
    stream_rows j = {.n_rows = UINT64_MAX, .stream = stream, .slow = true}, second = {.n_rows = 1};
    pthread_t other;
    void *result;
    assert_int_equal(pthread_create(&other, NULL, run_long, &j), 0);
    while (stats.rows == 0) assert_ok(clg_stream_get_stats(stream, &stats));
    assert_error(clg_stream_run(stream, stream_rows_give, stream_rows_take, &second),
                 CLG_ERROR_BUSY, "running");
    clg_stream_cancel(stream);
    assert_int_equal(pthread_join(other, &result), 0);
    assert_null(result);
    clg_stream_free(stream);
    clg_session_free(s);
}

TEST_GROUP(open_context, close_context)
