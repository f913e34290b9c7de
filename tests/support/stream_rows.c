/* SPDX-License-Identifier: Apache-2.0
 *
 * See stream_rows.h.
 */
#include "support/stream_rows.h"

#include "support/build_session.h"
#include "support/literals.h"
#include "support/pocl_context.h"
#include "support/unit.h"

#include <math.h>
#include <string.h>
#include <time.h>

/* ---- the model ------------------------------------------------------------------------------------------- */

static float weight(int i) { return (float)((i * 7) % 11 - 5) * 0.25f; }

clg_model *stream_rows_model(int64_t batch)
{
    float w[STREAM_K * STREAM_N];
    clg_builder *g = start_graph();
    clg_model *m;
    for (int i = 0; i < STREAM_K * STREAM_N; i++) w[i] = weight(i);
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(batch, STREAM_K), NULL));
    assert_ok(clg_builder_input(g, "shift", CLG_FLOAT32, 1, DIMS(STREAM_N), NULL));
    assert_ok(clg_builder_constant(g, "w", CLG_FLOAT32, 2, DIMS(STREAM_K, STREAM_N), w));
    assert_ok(clg_builder_node(g, NULL, "MatMul", "product", 2, NAMES("x", "w"), 1, NAMES("p")));
    assert_ok(clg_builder_node(g, NULL, "Add", "sum", 2, NAMES("p", "shift"), 1, NAMES("y")));
    assert_ok(clg_builder_node(g, NULL, "Neg", "minus", 1, NAMES("x"), 1, NAMES("z")));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_output(g, "z"));
    assert_ok(clg_builder_build(g, &m));
    clg_builder_free(g);
    return m;
}

const float stream_rows_shift[STREAM_N] = {0.5f, -1, 2};

clg_session *stream_rows_session_of(clg_context *c, clg_model *m)
{
    clg_session *s;
    assert_ok(clg_session_create(c, m, NULL, &s));
    assert_ok(
        clg_session_set_input_data(s, "shift", CLG_FLOAT32, 1, DIMS(STREAM_N), stream_rows_shift));
    return s;
}

clg_session *stream_rows_session(int64_t batch)
{
    clg_model *m = stream_rows_model(batch);
    clg_session *s = stream_rows_session_of(context, m);
    clg_model_free(m);
    return s;
}

/* ---- a source and a sink ----------------------------------------------------------------------------------- */

static float element(uint64_t row, int k)
{
    return (float)((row * 13 + (uint64_t)k * 5) % 97) - 40;
}

clg_status stream_rows_give(void *user, clg_stream_batch *batch)
{
    stream_rows *j = user;
    const clg_stream_tensor *x = &batch->tensors[0];
    if (batch->n_tensors != 1 || strcmp(x->name, "x") != 0 || x->dtype != CLG_FLOAT32 ||
        x->rank != 2 || x->dims[1] != STREAM_K || x->row_bytes != STREAM_K * sizeof(float) ||
        x->dims[0] != (int64_t)batch->n_rows || batch->first_row != j->n_given)
        return error_set(CLG_ERROR_INTERNAL, "the batch to fill is described wrongly");
    if (j->read_fails && j->n_given >= j->read_fails)
        return j->silent ? CLG_ERROR_IO
                         : error_set(CLG_ERROR_IO, "row %d is torn", (int)j->n_given);
    size_t n = batch->n_rows;
    if (j->most && n > j->most) n = j->most;
    if (n > j->n_rows - j->n_given) n = (size_t)(j->n_rows - j->n_given);
    float *to = x->data;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < STREAM_K; k++)
            to[i * STREAM_K + (size_t)k] = element(j->n_given + i, k);
    j->n_given += n;
    batch->n_rows = n;
    return CLG_OK;
}

static bool row_is_right(const float *y, uint64_t row)
{
    for (int c = 0; c < STREAM_N; c++) {
        double want = (double)stream_rows_shift[c];
        for (int k = 0; k < STREAM_K; k++)
            want += (double)element(row, k) * (double)weight(k * STREAM_N + c);
        if (!(fabs((double)y[c] - want) <= 1e-4)) return false;
    }
    return true;
}

static clg_status check_rows(const stream_rows *j, const clg_stream_batch *batch)
{
    const clg_stream_tensor *z = &batch->tensors[batch->n_tensors - 1];
    if (batch->n_tensors != (j->only_z ? 1 : 2) || batch->first_row != j->n_seen ||
        strcmp(z->name, "z") != 0 || z->rank != 2 || z->dims[0] != (int64_t)batch->n_rows ||
        z->row_bytes != STREAM_K * sizeof(float) || z->dtype != CLG_FLOAT32)
        return error_set(CLG_ERROR_INTERNAL, "the batch of results is described wrongly");
    for (size_t i = 0; i < batch->n_rows; i++) {
        const float *of_z = (const float *)z->data + i * STREAM_K;
        for (int k = 0; k < STREAM_K; k++)
            if (of_z[k] != -element(j->n_seen + i, k))
                return error_set(CLG_ERROR_INTERNAL, "z of row %d is wrong", (int)(j->n_seen + i));
        const float *of_y = (const float *)batch->tensors[0].data + i * STREAM_N;
        if (!j->only_z && !row_is_right(of_y, j->n_seen + i))
            return error_set(CLG_ERROR_INTERNAL, "y of row %d is wrong", (int)(j->n_seen + i));
    }
    return CLG_OK;
}

clg_status stream_rows_take(void *user, clg_stream_batch *batch)
{
    stream_rows *j = user;
    CLG_TRY(check_rows(j, batch));
    j->n_seen += batch->n_rows;
    if (j->cancel_at && j->n_seen >= j->cancel_at) clg_stream_cancel(j->stream);
    if (j->write_fails && j->n_seen >= j->write_fails)
        return j->silent ? CLG_ERROR_IO
                         : error_set(CLG_ERROR_IO, "the disk is full at %d", (int)j->n_seen);
    const struct timespec pause = {0, 1000000};
    if (atomic_load(&j->slow)) (void)nanosleep(&pause, NULL);
    return CLG_OK;
}

clg_stream *stream_rows_make(clg_session *const *sessions, size_t n, size_t batch, size_t depth,
                             stream_memory memory)
{
    const stream_settings settings = {.batch = batch, .depth = depth, .memory = memory};
    clg_stream *stream;
    assert_ok(stream_create(sessions, n, &settings, &stream));
    return stream;
}

void stream_rows_run(clg_stream *stream, uint64_t n_rows, size_t most)
{
    stream_rows j = {.n_rows = n_rows, .most = most, .stream = stream};
    clg_stream_stats stats = CLG_STREAM_STATS_INIT;
    assert_ok(clg_stream_run(stream, stream_rows_give, stream_rows_take, &j));
    assert_int_equal(j.n_seen, n_rows);
    assert_ok(clg_stream_get_stats(stream, &stats));
    assert_int_equal(stats.rows, n_rows);
    assert_true(stats.seconds > 0 && stats.idle_share >= 0 && stats.idle_share <= 1);
    assert_true(n_rows == 0 || (stats.batches > 0 && stats.read_seconds > 0));
}
