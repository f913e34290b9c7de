/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests streams: every row is processed once and in order, for any number of rows, batches and
 * sessions and all kinds of memory; short last batches compile nothing; outputs are selected by
 * name; invalid arguments are rejected.
 */
/* ctest: label quick */
#include "support/fixtures/ocl_platforms.h"
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/onnx_writer.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/stream_rows.h"
#include "support/literals.h"
#include "support/scratch.h"

#include <clgraph/inspect.h>

#include <string.h>

/* ---- rows and batches ------------------------------------------------------------------------ */

static void each_number_of_rows(int64_t model_batch, stream_memory memory)
{
    static const size_t depths[] = {1, 2, 3, 7};
    clg_session *s = stream_rows_session(model_batch);
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++) {
        clg_stream *stream = stream_rows_make(&s, 1, model_batch > 0 ? 0 : 8, depths[d], memory);
        static const uint64_t rows[] = {0, 1, 7, 8, 9, 16, 64, 1000, 0, 1003};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) stream_rows_run(stream, rows[i], 0);
        stream_rows_run(stream, 100, 3);
        clg_stream_free(stream);
    }
    clg_session_free(s);
}

TEST(stream__every_row_in_order)
{
    each_number_of_rows(-1, STREAM_MEMORY_AUTO);
    each_number_of_rows(-1, STREAM_MEMORY_STAGED);
}

TEST(stream__a_fixed_batch_is_filled_up)
{
    each_number_of_rows(8, STREAM_MEMORY_AUTO);
    each_number_of_rows(8, STREAM_MEMORY_STAGED);
}

TEST(stream__several_sessions_share_the_rows)
{
    clg_context *other;
    clg_model *m = stream_rows_model(-1);
    assert_ok(clg_context_create(ocl_platforms_test_device(), NULL, &other));
    clg_session *s[4] = {stream_rows_session_of(context, m), NULL, NULL,
                         stream_rows_session_of(other, m)};
    clg_context_free(other);
    clg_model_free(m);
    assert_ok(clg_session_clone(s[0], &s[1]));
    assert_ok(sized_input(s[1], "shift", CLG_FLOAT32, 1, DIMS(STREAM_N), stream_rows_shift));
    s[2] = s[0]; /* a session may be listed more than once */
    for (int staged = 0; staged < 2; staged++) {
        clg_stream *stream =
            stream_rows_make(s, 4, 16, 2, staged ? STREAM_MEMORY_STAGED : STREAM_MEMORY_AUTO);
        stream_rows_run(stream, 5000, 0);
        stream_rows_run(stream, 17, 0);
        clg_stream_free(stream);
    }
    clg_stream *stream = stream_rows_make(s, 4, 16, 2, STREAM_MEMORY_AUTO);
    for (int i = 0; i < 4; i++)
        if (i != 2) clg_session_free(s[i]); /* the stream retains them */
    stream_rows_run(stream, 1000, 0);
    clg_stream_free(stream);
}

TEST(stream__short_batches_compile_nothing)
{
    clg_counters before = CLG_COUNTERS_INIT, after = CLG_COUNTERS_INIT;
    clg_model *m = stream_rows_model(-1);
    for (int kernels = CLG_KERNELS_SIMD; kernels <= CLG_KERNELS_SIMT; kernels++) {
        clg_session_options options = CLG_SESSION_OPTIONS_INIT;
        clg_session *s;
        options.kernels = (clg_kernel_class)kernels;
        assert_ok(clg_session_create(context, m, &options, &s));
        assert_ok(sized_input(s, "shift", CLG_FLOAT32, 1, DIMS(STREAM_N), stream_rows_shift));
        clg_stream *stream = stream_rows_make(&s, 1, 64, 3, STREAM_MEMORY_AUTO);
        stream_rows_run(stream, 64, 0);
        assert_ok(clg_context_counters(context, &before));
        for (uint64_t rows = 1; rows < 64; rows += 9) stream_rows_run(stream, 128 + rows, 0);
        assert_ok(clg_context_counters(context, &after));
        assert_int_equal(after.programs_compiled, before.programs_compiled);
        assert_int_equal(after.programs_loaded, before.programs_loaded);
        assert_int_equal(after.weights_packed, before.weights_packed);
        clg_stream_free(stream);
        clg_session_free(s);
    }
    clg_model_free(m);
}

TEST(stream__memory_does_not_grow_with_rows)
{
    clg_counters few = CLG_COUNTERS_INIT, many = CLG_COUNTERS_INIT;
    clg_session *s = stream_rows_session(-1);
    clg_stream *stream = stream_rows_make(&s, 1, 32, 0, STREAM_MEMORY_AUTO);
    stream_rows_run(stream, 500, 0);
    assert_ok(clg_context_counters(context, &few));
    stream_rows_run(stream, 50000, 0);
    assert_ok(clg_context_counters(context, &many));
    assert_int_equal(many.device_bytes, few.device_bytes);
    clg_stream_free(stream);
    clg_session_free(s);
}

/* ---- outputs --------------------------------------------------------------------------------- */

TEST(stream__outputs_by_name)
{
    clg_session *s = stream_rows_session(-1);
    clg_stream_options options = CLG_STREAM_OPTIONS_INIT;
    clg_stream *stream;
    stream_rows j = {.n_rows = 100, .only_z = true};
    options.outputs = NAMES("z");
    options.n_outputs = 1;
    options.batch = 30;
    assert_ok(clg_stream_create(&s, 1, &options, &stream));
    assert_ok(clg_stream_run(stream, stream_rows_give, stream_rows_take, &j));
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

/* y = 0, 1, ... with as many elements as x has rows: the host computes it without the device. */
TEST(stream__results_that_never_were_on_the_device)
{
    static const int64_t zero = 0, one = 1;
    clg_builder *g = start_graph();
    clg_session *s;
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 1, DIMS(-1), NULL));
    assert_ok(sized_constant(g, "first", CLG_INT64, 1, DIMS(1), &zero));
    assert_ok(sized_constant(g, "zero", CLG_INT64, 0, NULL, &zero));
    assert_ok(sized_constant(g, "one", CLG_INT64, 0, NULL, &one));
    assert_ok(clg_builder_node(g, NULL, "Size", "size", 1, NAMES("x"), 1, NAMES("n")));
    assert_ok(
        clg_builder_node(g, NULL, "Range", "range", 3, NAMES("zero", "n", "one"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    s = build_session(context, g, NULL);
    for (int staged = 0; staged < 2; staged++) {
        clg_stream *stream =
            stream_rows_make(&s, 1, 4, 2, staged ? STREAM_MEMORY_STAGED : STREAM_MEMORY_AUTO);
        ten_rows r = {0};
        assert_ok(clg_stream_run(stream, give_ten, expect_numbers, &r));
        assert_int_equal(r.n_seen, TEN);
        clg_stream_free(stream);
    }
    clg_session_free(s);
}

enum { N_CONSTANTS = 3 };

static const float constant_rows[2 * STREAM_N] = {1, 2, 3, 4, 5, 6};

/* Creates outputs that are constants of a file. Their names differ in length, so that at least one
 * constant's data are not aligned for floats. */
static clg_session *constants_session(void)
{
    clg_model *m;
    clg_session *s;
    ow_model file_model = {.ir_version = 8, .opset = 13};
    ow_input(&file_model, "x", CLG_FLOAT32, 2, DIMS(2, STREAM_K), "N");
    ow_simple_node(&file_model, "Neg", "minus", "x", "z");
    ow_output(&file_model, "z", CLG_FLOAT32);
    for (size_t i = 0; i < N_CONSTANTS; i++) {
        const char *name = NAMES("c", "c2", "c33")[i];
        ow_initializer(&file_model, ow_tensor_raw(name, CLG_FLOAT32, 2, DIMS(2, STREAM_N),
                                                  constant_rows, sizeof constant_rows));
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

TEST(stream__constants_of_a_file_are_aligned)
{
    clg_session *s = constants_session();
    clg_stream *stream = stream_rows_make(&s, 1, 2, 2, STREAM_MEMORY_AUTO);
    ten_rows r = {0};
    assert_ok(clg_stream_run(stream, give_ten, expect_constants, &r));
    assert_int_equal(r.n_seen, TEN);
    clg_stream_free(stream);
    clg_session_free(s);
}

/* ---- rejected arguments ---------------------------------------------------------------------- */

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

TEST(stream__what_is_refused)
{
    clg_session *s[3] = {stream_rows_session(-1), stream_rows_session(4), NULL};
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
    refuse(&s[2], 1, 8, 0, CLG_ERROR_SHAPE, "'shift'"); /* would be an input to stream */
    assert_ok(sized_input(s[0], "x", CLG_FLOAT32, 2, DIMS(1, STREAM_K), (float[STREAM_K]){0}));
    refuse(s, 1, 0, 0, CLG_ERROR_INVALID_ARGUMENT, "all of them have a value");
    for (int i = 0; i < 3; i++) clg_session_free(s[i]);
    clg_stream_free(NULL);
}

TEST_GROUP(open_context, close_context)
