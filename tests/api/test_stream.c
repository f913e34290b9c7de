/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams: every row once and in order, whatever the number of rows, batches, sessions and the way of memory; short
 * batches without compiling; callbacks that fail; cancelling; figures; what is refused.
 */
#include "support/unit.h"

#include "support/build_session.h"
#include "support/literals.h"
#include "support/onnx_writer.h"
#include "support/pocl_context.h"
#include "support/scratch.h"

#include "session/stream.h"

#include <clgraph/inspect.h>
#include <clgraph/stream.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { K = 5, N = 3 };

/* ---- models ---------------------------------------------------------------------------------------------- */

static float weight(int i) { return (float)((i * 7) % 11 - 5) * 0.25f; }

/* y = x W + shift and, as a further output, z = -x; x: [batch, K], shift: [N]; batch -1: free */
static clg_model *affine_model(int64_t batch)
{
    float w[K * N];
    clg_builder *g = start_graph();
    clg_model *m;
    for (int i = 0; i < K * N; i++) w[i] = weight(i);
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(batch, K), NULL));
    assert_ok(clg_builder_input(g, "shift", CLG_FLOAT32, 1, DIMS(N), NULL));
    assert_ok(clg_builder_constant(g, "w", CLG_FLOAT32, 2, DIMS(K, N), w));
    assert_ok(clg_builder_node(g, NULL, "MatMul", "product", 2, NAMES("x", "w"), 1, NAMES("p")));
    assert_ok(clg_builder_node(g, NULL, "Add", "sum", 2, NAMES("p", "shift"), 1, NAMES("y")));
    assert_ok(clg_builder_node(g, NULL, "Neg", "minus", 1, NAMES("x"), 1, NAMES("z")));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_output(g, "z"));
    assert_ok(clg_builder_build(g, &m));
    clg_builder_free(g);
    return m;
}

static const float shift[N] = {0.5f, -1, 2};

static clg_session *session_of(clg_context *c, clg_model *m)
{
    clg_session *s;
    assert_ok(clg_session_create(c, m, NULL, &s));
    assert_ok(clg_session_set_input_data(s, "shift", CLG_FLOAT32, 1, DIMS(N), shift));
    return s;
}

static clg_session *affine_session(int64_t batch)
{
    clg_model *m = affine_model(batch);
    clg_session *s = session_of(context, m);
    clg_model_free(m);
    return s;
}

/* ---- a source and a sink ----------------------------------------------------------------------------------- */

static float element(uint64_t row, int k)
{
    return (float)((row * 13 + (uint64_t)k * 5) % 97) - 40;
}

/* What a test wants of callbacks, and what they saw. */
typedef struct job {
    uint64_t n_rows, n_given, n_seen;
    size_t most;          /* rows given at a time; 0: all there is room for */
    uint64_t read_fails;  /* at this row; 0: never */
    uint64_t write_fails; /* the same */
    bool silent;          /* a failing callback sets no sentence */
    bool only_z;
    clg_stream *stream;
    uint64_t cancel_at; /* row at which the writer cancels; 0: never */
    atomic_bool slow;
} job;

static clg_status give_rows(void *user, clg_stream_batch *batch)
{
    job *j = user;
    const clg_stream_tensor *x = &batch->tensors[0];
    if (batch->n_tensors != 1 || strcmp(x->name, "x") != 0 || x->dtype != CLG_FLOAT32 ||
        x->rank != 2 || x->dims[1] != K || x->row_bytes != K * sizeof(float) ||
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
        for (int k = 0; k < K; k++) to[i * K + (size_t)k] = element(j->n_given + i, k);
    j->n_given += n;
    batch->n_rows = n;
    return CLG_OK;
}

static bool row_is_right(const float *y, uint64_t row)
{
    for (int c = 0; c < N; c++) {
        double want = (double)shift[c];
        for (int k = 0; k < K; k++) want += (double)element(row, k) * (double)weight(k * N + c);
        if (!(fabs((double)y[c] - want) <= 1e-4)) return false;
    }
    return true;
}

static clg_status check_rows(const job *j, const clg_stream_batch *batch)
{
    const clg_stream_tensor *z = &batch->tensors[batch->n_tensors - 1];
    if (batch->n_tensors != (j->only_z ? 1 : 2) || batch->first_row != j->n_seen ||
        strcmp(z->name, "z") != 0 || z->rank != 2 || z->dims[0] != (int64_t)batch->n_rows ||
        z->row_bytes != K * sizeof(float) || z->dtype != CLG_FLOAT32)
        return error_set(CLG_ERROR_INTERNAL, "the batch of results is described wrongly");
    for (size_t i = 0; i < batch->n_rows; i++) {
        const float *of_z = (const float *)z->data + i * K;
        for (int k = 0; k < K; k++)
            if (of_z[k] != -element(j->n_seen + i, k))
                return error_set(CLG_ERROR_INTERNAL, "z of row %d is wrong", (int)(j->n_seen + i));
        const float *of_y = (const float *)batch->tensors[0].data + i * N;
        if (!j->only_z && !row_is_right(of_y, j->n_seen + i))
            return error_set(CLG_ERROR_INTERNAL, "y of row %d is wrong", (int)(j->n_seen + i));
    }
    return CLG_OK;
}

static clg_status take_rows(void *user, clg_stream_batch *batch)
{
    job *j = user;
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

static clg_stream *make_stream(clg_session *const *sessions, size_t n, size_t batch, size_t depth,
                               stream_memory memory)
{
    const stream_settings settings = {.batch = batch, .depth = depth, .memory = memory};
    clg_stream *stream;
    assert_ok(stream_create(sessions, n, &settings, &stream));
    return stream;
}

static void run_rows(clg_stream *stream, uint64_t n_rows, size_t most)
{
    job j = {.n_rows = n_rows, .most = most, .stream = stream};
    clg_stream_stats stats = CLG_STREAM_STATS_INIT;
    assert_ok(clg_stream_run(stream, give_rows, take_rows, &j));
    assert_int_equal(j.n_seen, n_rows);
    assert_ok(clg_stream_get_stats(stream, &stats));
    assert_int_equal(stats.rows, n_rows);
    assert_true(stats.seconds > 0 && stats.idle_share >= 0 && stats.idle_share <= 1);
    assert_true(n_rows == 0 || (stats.batches > 0 && stats.read_seconds > 0));
}

/* ---- rows and batches ---------------------------------------------------------------------------------------- */

static void each_number_of_rows(int64_t model_batch, stream_memory memory)
{
    static const size_t depths[] = {1, 2, 3, 7};
    clg_session *s = affine_session(model_batch);
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++) {
        clg_stream *stream = make_stream(&s, 1, model_batch > 0 ? 0 : 8, depths[d], memory);
        static const uint64_t rows[] = {0, 1, 7, 8, 9, 16, 64, 1000, 0, 1003};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) run_rows(stream, rows[i], 0);
        run_rows(stream, 100, 3);
        clg_stream_free(stream);
    }
    clg_session_free(s);
}

static void stream__every_row_in_order(void **state)
{
    (void)state;
    each_number_of_rows(-1, STREAM_MEMORY_AUTO);
    each_number_of_rows(-1, STREAM_MEMORY_STAGED);
}

static void stream__a_fixed_batch_is_filled_up(void **state)
{
    (void)state;
    each_number_of_rows(8, STREAM_MEMORY_AUTO);
    each_number_of_rows(8, STREAM_MEMORY_STAGED);
}

static void stream__several_sessions_share_the_rows(void **state)
{
    (void)state;
    clg_context *other;
    clg_model *m = affine_model(-1);
    assert_ok(clg_context_create("pocl", NULL, &other));
    clg_session *s[4] = {session_of(context, m), NULL, NULL, session_of(other, m)};
    clg_context_free(other);
    clg_model_free(m);
    assert_ok(clg_session_clone(s[0], &s[1]));
    assert_ok(clg_session_set_input_data(s[1], "shift", CLG_FLOAT32, 1, DIMS(N), shift));
    s[2] = s[0]; /* one session may stand for several */
    for (int staged = 0; staged < 2; staged++) {
        clg_stream *stream =
            make_stream(s, 4, 16, 2, staged ? STREAM_MEMORY_STAGED : STREAM_MEMORY_AUTO);
        run_rows(stream, 5000, 0);
        run_rows(stream, 17, 0);
        clg_stream_free(stream);
    }
    clg_stream *stream = make_stream(s, 4, 16, 2, STREAM_MEMORY_AUTO);
    for (int i = 0; i < 4; i++)
        if (i != 2) clg_session_free(s[i]); /* the stream has its own */
    run_rows(stream, 1000, 0);
    clg_stream_free(stream);
}

static void stream__short_batches_compile_nothing(void **state)
{
    (void)state;
    clg_counters before = CLG_COUNTERS_INIT, after = CLG_COUNTERS_INIT;
    clg_model *m = affine_model(-1);
    for (int kernels = CLG_KERNELS_WIDE; kernels <= CLG_KERNELS_SIMT; kernels++) {
        clg_session_options options = CLG_SESSION_OPTIONS_INIT;
        clg_session *s;
        options.kernels = (clg_kernel_class)kernels;
        assert_ok(clg_session_create(context, m, &options, &s));
        assert_ok(clg_session_set_input_data(s, "shift", CLG_FLOAT32, 1, DIMS(N), shift));
        clg_stream *stream = make_stream(&s, 1, 64, 3, STREAM_MEMORY_AUTO);
        run_rows(stream, 64, 0);
        assert_ok(clg_context_counters(context, &before));
        for (uint64_t rows = 1; rows < 64; rows += 9) run_rows(stream, 128 + rows, 0);
        assert_ok(clg_context_counters(context, &after));
        assert_int_equal(after.programs_compiled, before.programs_compiled);
        assert_int_equal(after.programs_loaded, before.programs_loaded);
        assert_int_equal(after.weights_packed, before.weights_packed);
        clg_stream_free(stream);
        clg_session_free(s);
    }
    clg_model_free(m);
}

static void stream__memory_does_not_grow_with_rows(void **state)
{
    (void)state;
    clg_counters few = CLG_COUNTERS_INIT, many = CLG_COUNTERS_INIT;
    clg_session *s = affine_session(-1);
    clg_stream *stream = make_stream(&s, 1, 32, 0, STREAM_MEMORY_AUTO);
    run_rows(stream, 500, 0);
    assert_ok(clg_context_counters(context, &few));
    run_rows(stream, 50000, 0);
    assert_ok(clg_context_counters(context, &many));
    assert_int_equal(many.device_bytes, few.device_bytes);
    clg_stream_free(stream);
    clg_session_free(s);
}

/* ---- what stays, what is written ------------------------------------------------------------------------------- */

static void stream__outputs_by_name(void **state)
{
    (void)state;
    clg_session *s = affine_session(-1);
    clg_stream_options options = CLG_STREAM_OPTIONS_INIT;
    clg_stream *stream;
    job j = {.n_rows = 100, .only_z = true};
    options.outputs = NAMES("z");
    options.n_outputs = 1;
    options.batch = 30;
    assert_ok(clg_stream_create(&s, 1, &options, &stream));
    assert_ok(clg_stream_run(stream, give_rows, take_rows, &j));
    assert_int_equal(j.n_seen, 100);
    clg_stream_free(stream);
    options.outputs = NAMES("q");
    assert_error(clg_stream_create(&s, 1, &options, &stream), CLG_ERROR_NOT_FOUND, "'q'");
    assert_null(stream);
    clg_session_free(s);
}

enum { TEN = 10 };

typedef struct ten_rows {
    size_t n_given, n_seen;
} ten_rows;

static clg_status give_ten(void *user, clg_stream_batch *batch)
{
    ten_rows *r = user;
    if (batch->n_rows > TEN - r->n_given) batch->n_rows = TEN - r->n_given;
    memset(batch->tensors[0].data, 0, batch->n_rows * batch->tensors[0].row_bytes);
    r->n_given += batch->n_rows;
    return CLG_OK;
}

static clg_status expect_numbers(void *user, clg_stream_batch *batch)
{
    ten_rows *r = user;
    const clg_stream_tensor *y = &batch->tensors[0];
    if (y->dtype != CLG_INT64 || y->row_bytes != 8) return CLG_ERROR_INTERNAL;
    for (size_t i = 0; i < batch->n_rows; i++)
        if (((const int64_t *)y->data)[i] != (int64_t)i) return CLG_ERROR_INTERNAL;
    r->n_seen += batch->n_rows;
    return CLG_OK;
}

/* y = 0, 1, ... as many as x has rows: a content that needs no device */
static void stream__results_that_never_were_on_the_device(void **state)
{
    (void)state;
    static const int64_t zero = 0, one = 1;
    clg_builder *g = start_graph();
    clg_session *s;
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 1, DIMS(-1), NULL));
    assert_ok(clg_builder_constant(g, "first", CLG_INT64, 1, DIMS(1), &zero));
    assert_ok(clg_builder_constant(g, "zero", CLG_INT64, 0, NULL, &zero));
    assert_ok(clg_builder_constant(g, "one", CLG_INT64, 0, NULL, &one));
    assert_ok(clg_builder_node(g, NULL, "Size", "size", 1, NAMES("x"), 1, NAMES("n")));
    assert_ok(
        clg_builder_node(g, NULL, "Range", "range", 3, NAMES("zero", "n", "one"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    s = build_session(context, g, NULL);
    for (int staged = 0; staged < 2; staged++) {
        clg_stream *stream =
            make_stream(&s, 1, 4, 2, staged ? STREAM_MEMORY_STAGED : STREAM_MEMORY_AUTO);
        ten_rows r = {0};
        assert_ok(clg_stream_run(stream, give_ten, expect_numbers, &r));
        assert_int_equal(r.n_seen, TEN);
        clg_stream_free(stream);
    }
    clg_session_free(s);
}

enum { N_CONSTANTS = 3 };

static const float constant_rows[2 * N] = {1, 2, 3, 4, 5, 6};

/* Outputs that are constants of a file. Their names differ in length, so that one of them at least lies there at an
 * address that is none of a float. */
static clg_session *constants_session(void)
{
    clg_model *m;
    clg_session *s;
    ow_model file_model = {.ir_version = 8, .opset = 13};
    ow_input(&file_model, "x", CLG_FLOAT32, 2, DIMS(2, K), "N");
    ow_simple_node(&file_model, "Neg", "minus", "x", "z");
    ow_output(&file_model, "z", CLG_FLOAT32);
    for (size_t i = 0; i < N_CONSTANTS; i++) {
        const char *name = NAMES("c", "c2", "c33")[i];
        ow_initializer(&file_model, ow_tensor_raw(name, CLG_FLOAT32, 2, DIMS(2, N), constant_rows,
                                                  sizeof constant_rows));
        ow_output(&file_model, name, CLG_FLOAT32);
    }
    ow_bytes file = ow_finish(&file_model);
    assert_ok(clg_model_load_file(scratch_file("constants.onnx", file.data, file.n), NULL, &m));
    ow_free(&file);
    assert_ok(clg_session_create(context, m, NULL, &s));
    clg_model_free(m);
    return s;
}

static clg_status expect_constants(void *user, clg_stream_batch *batch)
{
    ten_rows *r = user;
    if (batch->n_tensors != N_CONSTANTS + 1) return CLG_ERROR_INTERNAL;
    for (size_t i = 1; i < batch->n_tensors; i++) {
        const void *data = batch->tensors[i].data;
        if ((uintptr_t)data % sizeof(float) != 0)
            return error_set(CLG_ERROR_INTERNAL, "%s is misaligned", batch->tensors[i].name);
        if (memcmp(data, constant_rows, sizeof constant_rows) != 0) return CLG_ERROR_INTERNAL;
    }
    r->n_seen += batch->n_rows;
    return CLG_OK;
}

static void stream__constants_of_a_file_are_aligned(void **state)
{
    (void)state;
    clg_session *s = constants_session();
    clg_stream *stream = make_stream(&s, 1, 2, 2, STREAM_MEMORY_AUTO);
    ten_rows r = {0};
    assert_ok(clg_stream_run(stream, give_ten, expect_constants, &r));
    assert_int_equal(r.n_seen, TEN);
    clg_stream_free(stream);
    clg_session_free(s);
}

/* ---- failing ------------------------------------------------------------------------------------------------------ */

static void each_failure(stream_memory memory)
{
    clg_session *s = affine_session(-1);
    clg_stream *stream = make_stream(&s, 1, 8, 3, memory);
    job read = {.n_rows = 1000, .read_fails = 80};
    assert_error(clg_stream_run(stream, give_rows, take_rows, &read), CLG_ERROR_IO,
                 "row 80 is torn");
    assert_true(read.n_seen <= 80);
    job write = {.n_rows = 1000, .write_fails = 80};
    assert_error(clg_stream_run(stream, give_rows, take_rows, &write), CLG_ERROR_IO,
                 "the disk is full at 80");
    assert_true(write.n_given < 1000);
    job mute = {.n_rows = 1000, .read_fails = 8, .silent = true};
    assert_error(clg_stream_run(stream, give_rows, take_rows, &mute), CLG_ERROR_IO,
                 "the callback that reads gave CLG_ERROR_IO");
    job mute_too = {.n_rows = 1000, .write_fails = 8, .silent = true};
    assert_error(clg_stream_run(stream, give_rows, take_rows, &mute_too), CLG_ERROR_IO,
                 "the callback that writes gave CLG_ERROR_IO");
    run_rows(stream, 1000, 0); /* it runs again */
    clg_stream_free(stream);
    clg_session_free(s);
}

static void stream__failing_callbacks(void **state)
{
    (void)state;
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

static void stream__callbacks_that_break_the_rules(void **state)
{
    (void)state;
    clg_session *s = affine_session(-1);
    clg_stream *stream = make_stream(&s, 1, 8, 3, STREAM_MEMORY_AUTO);
    job j = {.n_rows = 10};
    assert_error(clg_stream_run(stream, give_too_many, take_rows, &j), CLG_ERROR_INVALID_ARGUMENT,
                 "9 rows where there is room for 8");
    assert_error(clg_stream_run(stream, give_nonsense, take_rows, &j), CLG_ERROR_INVALID_ARGUMENT,
                 "gave 7, which is no status");
    assert_error(clg_stream_run(stream, NULL, take_rows, &j), CLG_ERROR_INVALID_ARGUMENT, "read");
    run_rows(stream, 10, 0);
    clg_stream_free(stream);
    clg_session_free(s);
}

/* Rows of an index, of which one is out of range. */
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
    assert_ok(clg_builder_constant(g, "table", CLG_FLOAT32, 1, DIMS(3), table));
    assert_ok(clg_builder_node(g, NULL, "Gather", "look", 2, NAMES("table", "i"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    return build_session(context, g, NULL);
}

static void stream__a_run_that_fails(void **state)
{
    (void)state;
    clg_session *s = gather_session(-1);
    clg_stream *stream = make_stream(&s, 1, 8, 3, STREAM_MEMORY_AUTO);
    for (int i = 0; i < 2; i++) {
        indices r = {.n_rows = 1000, .bad = 37};
        assert_error(clg_stream_run(stream, give_indices, ignore, &r), CLG_ERROR_DATA, "look");
    }
    clg_stream_free(stream);
    clg_session_free(s);
}

/* What fills a short batch up is not what the memory held before. */
static void stream__a_short_batch_holds_nothing_stale(void **state)
{
    (void)state;
    clg_session *s = gather_session(8);
    for (int staged = 0; staged < 2; staged++) {
        clg_stream *stream =
            make_stream(&s, 1, 0, 1, staged ? STREAM_MEMORY_STAGED : STREAM_MEMORY_AUTO);
        indices bad = {.n_rows = 8, .bad = 7}, good = {.n_rows = 3, .bad = 7};
        assert_error(clg_stream_run(stream, give_indices, ignore, &bad), CLG_ERROR_DATA, "look");
        assert_ok(clg_stream_run(stream, give_indices, ignore, &good));
        clg_stream_free(stream);
    }
    clg_session_free(s);
}

/* ---- cancelling ---------------------------------------------------------------------------------------------------- */

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

static void stream__cancelling(void **state)
{
    (void)state;
    clg_session *s[2] = {affine_session(-1)};
    s[1] = s[0];
    clg_stream *stream = make_stream(s, 2, 8, 3, STREAM_MEMORY_AUTO);
    pthread_t other;
    void *result;
    clg_stream_cancel(NULL);
    clg_stream_cancel(stream); /* nothing is under way */
    run_rows(stream, 100, 0);
    for (int round = 0; round < 20; round++) {
        job j = {.n_rows = UINT64_MAX, .stream = stream, .slow = true};
        assert_int_equal(pthread_create(&other, NULL, cancel_soon, stream), 0);
        assert_error(clg_stream_run(stream, give_rows, take_rows, &j), CLG_ERROR_CANCELLED,
                     "cancelled");
        assert_int_equal(pthread_join(other, &result), 0);
        assert_null(result);
        assert_true(j.n_seen >= 40);
    }
    job own = {.n_rows = UINT64_MAX, .stream = stream, .cancel_at = 80};
    assert_error(clg_stream_run(stream, give_rows, take_rows, &own), CLG_ERROR_CANCELLED,
                 "cancelled");
    assert_int_equal(own.n_seen, 80);
    run_rows(stream, 100, 0);
    clg_stream_free(stream);
    clg_session_free(s[0]);
}

static void *run_long(void *argument)
{
    job *j = argument;
    clg_status status = clg_stream_run(j->stream, give_rows, take_rows, j);
    return status == CLG_ERROR_CANCELLED ? NULL : j;
}

static void stream__one_run_at_a_time(void **state)
{
    (void)state;
    clg_session *s = affine_session(-1);
    clg_stream *stream = make_stream(&s, 1, 8, 3, STREAM_MEMORY_AUTO);
    clg_stream_stats stats = CLG_STREAM_STATS_INIT;
    job j = {.n_rows = UINT64_MAX, .stream = stream, .slow = true}, second = {.n_rows = 1};
    pthread_t other;
    void *result;
    assert_int_equal(pthread_create(&other, NULL, run_long, &j), 0);
    while (stats.rows == 0) assert_ok(clg_stream_get_stats(stream, &stats));
    assert_error(clg_stream_run(stream, give_rows, take_rows, &second), CLG_ERROR_BUSY, "running");
    clg_stream_cancel(stream);
    assert_int_equal(pthread_join(other, &result), 0);
    assert_null(result);
    clg_stream_free(stream);
    clg_session_free(s);
}

/* ---- what is refused ------------------------------------------------------------------------------------------------- */

static void refuse(clg_session *const *s, size_t n, size_t batch, size_t depth, clg_status status,
                   const char *words)
{
    clg_stream *stream;
    clg_stream_options options = CLG_STREAM_OPTIONS_INIT;
    options.batch = batch;
    options.depth = depth;
    assert_error(clg_stream_create(s, n, &options, &stream), status, words);
    assert_null(stream);
}

static void stream__what_is_refused(void **state)
{
    (void)state;
    clg_session *s[3] = {affine_session(-1), affine_session(4), NULL};
    refuse(s, 0, 0, 0, CLG_ERROR_INVALID_ARGUMENT, "no session");
    refuse(NULL, 1, 0, 0, CLG_ERROR_INVALID_ARGUMENT, "NULL");
    refuse(s, 3, 0, 0, CLG_ERROR_INVALID_ARGUMENT, "NULL");
    refuse(s, 2, 0, 0, CLG_ERROR_INVALID_ARGUMENT, "several models");
    refuse(s, 1, 0, 65, CLG_ERROR_INVALID_ARGUMENT, "depth");
    refuse(&s[1], 1, 8, 0, CLG_ERROR_SHAPE, "fixes the batch at 4");
    refuse(s, 1, SIZE_MAX / 2, 0, CLG_ERROR_SHAPE, "more elements than");
    refuse(s, 1, SIZE_MAX / 64, 0, CLG_ERROR_OUT_OF_DEVICE_MEMORY, "no room for a buffer");
    assert_ok(clg_session_clone(s[0], &s[2]));
    refuse((clg_session *[]){s[0], s[2]}, 2, 0, 0, CLG_ERROR_INVALID_ARGUMENT, "'shift'");
    refuse(&s[2], 1, 8, 0, CLG_ERROR_SHAPE, "'shift'"); /* would be streamed */
    assert_ok(clg_session_set_input_data(s[0], "x", CLG_FLOAT32, 2, DIMS(1, K), (float[K]){0}));
    refuse(s, 1, 0, 0, CLG_ERROR_INVALID_ARGUMENT, "all of them have a value");
    for (int i = 0; i < 3; i++) clg_session_free(s[i]);
    clg_stream_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stream__every_row_in_order),
        cmocka_unit_test(stream__a_fixed_batch_is_filled_up),
        cmocka_unit_test(stream__several_sessions_share_the_rows),
        cmocka_unit_test(stream__short_batches_compile_nothing),
        cmocka_unit_test(stream__memory_does_not_grow_with_rows),
        cmocka_unit_test(stream__outputs_by_name),
        cmocka_unit_test(stream__results_that_never_were_on_the_device),
        cmocka_unit_test(stream__constants_of_a_file_are_aligned),
        cmocka_unit_test(stream__failing_callbacks),
        cmocka_unit_test(stream__callbacks_that_break_the_rules),
        cmocka_unit_test(stream__a_run_that_fails),
        cmocka_unit_test(stream__a_short_batch_holds_nothing_stale),
        cmocka_unit_test(stream__cancelling),
        cmocka_unit_test(stream__one_run_at_a_time),
        cmocka_unit_test(stream__what_is_refused),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
