/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions that divide the nodes of a model among devices: the results of a reference and of
 * sessions on one device, for any number of parts and for models of all kinds; the caller's memory
 * for results; streams; clones on several threads; what is refused. The devices are contexts on
 * one.
 */
#include "support/fixtures/ocl_platforms.h"
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/layers/layers_model.h"
#include "support/fixtures/multi/bound_outputs.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/random_model.h"
#include "support/fixtures/sized_data.h"
#include "support/literals.h"

#include "base/threads.h"

#include <clgraph/inspect.h>
#include <clgraph/multi.h>
#include <clgraph/stream.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8, W = LAYERS_W };

static clg_context *contexts[MOST];

static int open_group(void **state)
{
    if (open_context(state) != 0) return -1;
    contexts[0] = context;
    for (size_t i = 1; i < MOST; i++)
        if (clg_context_create(ocl_platforms_test_device(), NULL, &contexts[i]) != CLG_OK)
            return -1;
    return 0;
}

static int close_group(void **state)
{
    for (size_t i = 1; i < MOST; i++) clg_context_free(contexts[i]);
    return close_context(state);
}

TEST_GROUP(open_group, close_group)

static clg_status create(size_t n, clg_model *m, clg_session **out_session)
{
    clg_multi_options options = CLG_MULTI_OPTIONS_INIT;
    options.split = CLG_SPLIT_LAYERS;
    return clg_session_create_multi(contexts, n, m, NULL, &options, out_session);
}

static clg_session *open_layers(size_t n)
{
    clg_session *s;
    clg_model *m = layers_model();
    assert_ok(create(n, m, &s));
    clg_model_free(m);
    return s;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Checks that the nodes of the model are in consecutive parts, and that each device has some. */
static void expect_parts(clg_session *s, size_t n_devices)
{
    clg_session_part *parts;
    size_t n, n_nodes = 0;
    assert_ok(clg_session_parts(s, &parts, &n));
    assert_int_equal(n, n_devices);
    for (size_t i = 0; i < n; i++) {
        assert_non_null(parts[i].session);
        assert_true(parts[i].n_nodes > 0 && parts[i].first_node[0] && parts[i].last_node[0]);
        assert_true(i == 0 ? parts[i].crossing_bytes == 0 : parts[i].crossing_bytes > 0);
        assert_false(parts[i].is_lost);
        n_nodes += parts[i].n_nodes;
    }
    assert_int_equal(n_nodes, 3 + 4 * LAYERS_DEPTH + 4 + 4 - 1); /* less `table` */
    assert_string_equal(parts[n - 1].last_node, "last");
    clg_session_parts_free(parts, n);
}

static void try_devices(size_t n)
{
    static const int64_t rows[] = {3, 3, 3, 1, 40, 40, 2};
    clg_session *s = open_layers(n);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int what = 0; what < 2; what++) {
            layers_set(s, rows[i], what);
            assert_ok(clg_session_run(s));
            layers_expect(s, rows[i], what);
        }
    expect_parts(s, n);
    clg_session_free(s);
}

TEST(layers__one_device) { try_devices(1); }
TEST(layers__two_devices) { try_devices(2); }
TEST(layers__three_devices) { try_devices(3); }
TEST(layers__eight_devices) { try_devices(8); }

static bool near(double a, double b)
{
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b)) return a == b;
    return fabs(a - b) <= 1e-3 * (1 + fabs(b));
}

static void set_random(clg_session *s, const clg_model *m, uint64_t seed)
{
    for (size_t i = 0; i < clg_model_n_inputs(m); i++) {
        clg_value *v;
        assert_ok(random_model_input(clg_model_input(m, i), seed + i, &v));
        assert_ok(clg_session_set_input(s, clg_model_input(m, i)->name, v));
        clg_value_free(v);
    }
}

static void compare(clg_session *divided, clg_session *single, const clg_model *m, uint64_t seed)
{
    for (size_t i = 0; i < clg_model_n_outputs(m); i++) {
        const char *name = clg_model_output(m, i)->name;
        clg_value *a, *b;
        assert_ok(clg_session_get_output(divided, name, &a));
        assert_ok(clg_session_get_output(single, name, &b));
        assert_int_equal(clg_value_rank(a), clg_value_rank(b));
        assert_int_equal(clg_value_n_elements(a), clg_value_n_elements(b));
        for (int64_t j = 0; j < clg_value_n_elements(a); j++)
            if (!near(clg_value_get_double(a, j), clg_value_get_double(b, j)))
                fail_msg("seed %llu: %s[%lld] is %g in parts, %g in one", (unsigned long long)seed,
                         name, (long long)j, clg_value_get_double(a, j),
                         clg_value_get_double(b, j));
        clg_value_free(a);
        clg_value_free(b);
    }
}

/* Random graphs, on 2 to 5 devices, against one that keeps every value, so that nothing is
 * fused. */
static void try_random(uint64_t first, uint64_t n, bool data_dependent)
{
    size_t n_runs = 0;
    for (uint64_t seed = first; seed < first + n; seed++) {
        clg_model *m = random_model_create(seed, data_dependent);
        clg_session *divided, *single;
        assert_ok(create(2 + seed % 4, m, &divided));
        assert_ok(clg_session_create(context, m, NULL, &single));
        for (uint64_t round = 0; round < 2; round++) {
            set_random(divided, m, seed + round);
            set_random(single, m, seed + round);
            const clg_status status = clg_session_run(single);
            assert_int_equal(clg_session_run(divided), status);
            if (status != CLG_OK) continue;
            n_runs++;
            compare(divided, single, m, seed);
        }
        clg_session_free(divided);
        clg_session_free(single);
        clg_model_free(m);
    }
    assert_true(n_runs > n);
}

TEST(layers__random_graphs) { try_random(1, 40, false); }
TEST(layers__random_graphs_whose_shapes_depend_on_data) { try_random(1000, 30, true); }

/* ---- strings, sequences ---------------------------------------------------------------------- */

static void expect_text(clg_session *s, const char *name, int64_t i, const char *text)
{
    clg_value *v;
    assert_ok(clg_session_get_output(s, name, &v));
    assert_int_equal(clg_value_dtype(v), CLG_STRING);
    assert_string_equal(((const char *const *)clg_value_data(v))[i], text);
    clg_value_free(v);
}

/* Strings cross as values. */
TEST(layers__strings_cross)
{
    clg_session *s;
    clg_model *m;
    clg_value *v;
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_STRING, 1, DIMS(3), NULL));
    assert_ok(clg_builder_node(g, NULL, "Concat", "", 2, NAMES("x", "x"), 1, NAMES("a")));
    assert_ok(clg_builder_attribute_int(g, "axis", 0));
    assert_ok(clg_builder_node(g, NULL, "Concat", "", 2, NAMES("a", "x"), 1, NAMES("y")));
    assert_ok(clg_builder_attribute_int(g, "axis", 0));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_build(g, &m));
    clg_builder_free(g);
    assert_ok(create(2, m, &s));
    const char *words[] = {"one", "", "three"};
    assert_ok(sized_wrap(CLG_STRING, 1, DIMS(3), words, NULL, NULL, &v));
    assert_ok(clg_session_set_input(s, "x", v));
    for (int run = 0; run < 2; run++) {
        assert_ok(clg_session_run(s));
        expect_text(s, "y", 3, "one");
        expect_text(s, "y", 8, "three");
    }
    clg_value_free(v);
    clg_session_free(s);
    clg_model_free(m);
}

/* No cut divides the nodes between which a sequence lives, or its item, whose dtype is not known
 * before a run: all nodes from SplitToSequence on are in one part. */
TEST(layers__sequences_do_not_cross)
{
    float y[4];
    ow_model model = {.ir_version = 8, .opset = 13};
    const int64_t one = 1;
    clg_session *s;
    clg_model *m;
    clg_session_part *parts;
    size_t n;
    ow_input(&model, "x", CLG_FLOAT32, 2, DIMS(2, 4), NULL);
    ow_initializer(&model, ow_tensor_raw("one", CLG_INT64, 0, NULL, &one, sizeof one));
    ow_simple_node(&model, "Abs", "first", "x", "a");
    ow_simple_node(&model, "SplitToSequence", "take apart", "a,one", "list");
    ow_simple_node(&model, "Neg", "between", "a", "b");
    ow_simple_node(&model, "SequenceAt", "choose", "list,one", "c");
    ow_simple_node(&model, "Add", "last", "b,c", "y");
    ow_output(&model, "y", CLG_FLOAT32);
    assert_ok(ow_load(&model, &m));
    assert_ok(create(5, m, &s));
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(2, 4),
                          ((const float[]){1, -2, 3, -4, -10, 20, -30, 40})));
    assert_ok(clg_session_run(s));
    clg_value *v;
    assert_ok(clg_session_get_output(s, "y", &v));
    memcpy(y, clg_value_data(v), sizeof y);
    clg_value_free(v);
    for (int k = 0; k < 4; k++) assert_true(y[k] == 9.0f * (float)(k + 1));
    assert_ok(clg_session_parts(s, &parts, &n));
    size_t with = 0;
    for (size_t i = 0; i < n; i++) {
        with += parts[i].n_nodes > 0;
        if (parts[i].n_nodes == 4) assert_string_equal(parts[i].first_node, "take apart");
    }
    assert_int_equal(with, 2);
    clg_session_parts_free(parts, n);
    clg_session_free(s);
    clg_model_free(m);
}

/* ---- memory of the caller -------------------------------------------------------------------- */

TEST(layers__calls_write_into_the_callers_memory)
{
    enum { N = 5 };
    float x[N * W] = {0}, bias[W] = {0}, y[N * W], early[N * W];
    clg_session *s = open_layers(3);
    for (int run = 0; run < 4; run++) {
        for (int i = 0; i < N * W; i++) x[i] = (float)(i % 3 + run);
        const clg_call_input in[] = {
            {"x", CLG_FLOAT32, 2, DIMS(N, W), x, sizeof x, NULL},
            {"bias", CLG_FLOAT32, 1, DIMS(W), bias, sizeof bias, NULL},
        };
        clg_call_output out[] = {
            {.name = "early", .data = early, .capacity_bytes = sizeof early},
            {.name = "y", .data = y, .capacity_bytes = run == 2 ? 8 : sizeof y},
        };
        memset(early, 0, sizeof early);
        assert_ok(clg_session_call(s, in, 2, out, 2));
        assert_null(out[0].value);
        assert_int_equal(out[1].value != NULL, run == 2);
        for (int i = 0; i < N * W; i++) assert_true(early[i] == 2 * x[i]);
        const float *got = out[1].value ? (const float *)clg_value_data(out[1].value) : y;
        for (int i = 0; i < N * W; i += 4) assert_true(got[i] == 2 * x[i]); /* scale 0 */
        clg_value_free(out[1].value);
    }
    clg_session_free(s);
}

TEST(layers__outputs_bound_to_values)
{
    enum { N = 4 };
    clg_session *s = open_layers(2);
    clg_value *y, *got;
    assert_ok(clg_value_create(CLG_FLOAT32, 2, DIMS(N, W), &y));
    assert_ok(clg_session_bind_output(s, "y", y));
    for (int what = 0; what < 3; what++) {
        layers_set(s, N, what);
        assert_ok(clg_session_run(s));
        layers_expect(s, N, what);
        assert_ok(clg_session_get_output(s, "y", &got));
        assert_ptr_equal(got, y);
        clg_value_free(got);
    }
    assert_ok(clg_session_bind_output(s, "early", y));
    assert_error(clg_session_run(s), CLG_ERROR_INVALID_ARGUMENT, "is bound to memory that");
    assert_ok(clg_session_bind_output(s, "early", NULL));
    expect_bound_outputs_refused(s, context, N, W);
    clg_value_free(y);
    clg_session_free(s);
}

/* What one run returned does not change when the next one runs. */
TEST(layers__results_belong_to_their_run)
{
    enum { N = 3, BYTES = N * W * sizeof(float) };
    clg_session *s = open_layers(2);
    clg_value *before[3][2];
    float was[3][2][N * W], is[N * W];
    for (int run = 0; run < 3; run++) {
        layers_set(s, N, run);
        assert_ok(clg_session_run(s));
        for (int i = 0; i < 2; i++) {
            assert_ok(clg_session_get_output(s, i ? "y" : "early", &before[run][i]));
            assert_ok(clg_value_read(before[run][i], was[run][i], BYTES));
        }
    }
    for (int run = 0; run < 3; run++)
        for (int i = 0; i < 2; i++) {
            assert_ok(clg_value_read(before[run][i], is, BYTES));
            assert_memory_equal(is, was[run][i], BYTES);
            clg_value_free(before[run][i]);
        }
    clg_session_free(s);
}

/* ---- preparing, threads ---------------------------------------------------------------------- */

/* Returns what n devices did together: which one launches kernels depends on measured speeds. */
static clg_counters sum_counters(size_t n)
{
    clg_counters sum = CLG_COUNTERS_INIT;
    for (size_t i = 0; i < n; i++) {
        clg_counters c = CLG_COUNTERS_INIT;
        assert_ok(clg_context_counters(contexts[i], &c));
        sum.programs_compiled += c.programs_compiled;
        sum.kernels_launched += c.kernels_launched;
    }
    return sum;
}

TEST(layers__prepares)
{
    clg_session *s = open_layers(3);
    clg_memory_estimate memory = CLG_MEMORY_ESTIMATE_INIT;
    clg_value *y;
    assert_ok(clg_session_set_input_shape(s, "x", 2, DIMS(6, W)));
    assert_ok(clg_session_prepare(s, NULL, NULL));
    assert_error(clg_session_get_output(s, "y", &y), CLG_ERROR_NOT_FOUND, "'y'");
    assert_ok(clg_session_memory(s, &memory));
    assert_true(memory.weight_bytes >= W * W * sizeof(float) && memory.io_bytes > 0);
    assert_error(clg_session_run(s), CLG_ERROR_NOT_FOUND, "is not set");
    layers_set(s, 6, 1);
    const clg_counters before = sum_counters(3);
    assert_ok(clg_session_run(s));
    const clg_counters after = sum_counters(3);
    assert_int_equal(before.programs_compiled, after.programs_compiled);
    assert_true(after.kernels_launched > before.kernels_launched);
    layers_expect(s, 6, 1);
    clg_session_free(s);
}

TEST(layers__asynchronous_runs_and_mapped_inputs)
{
    enum { N = 10 };
    clg_session *s = open_layers(2), *other = open_layers(1);
    void *data;
    clg_value *x;
    layers_set(other, N, 2);
    assert_ok(clg_session_run(other));
    assert_ok(clg_session_get_output(other, "early", &x)); /* twice x */
    layers_set(s, N, 2);
    for (int run = 0; run < 2; run++) {
        assert_ok(clg_session_map_input(s, "x", 2, DIMS(N, W), &data));
        for (int i = 0; i < N * W; i++)
            ((float *)data)[i] = ((const float *)clg_value_data(x))[i] / 2;
        assert_ok(clg_session_run_async(s));
        assert_ok(clg_session_wait(s));
        layers_expect(s, N, 2);
    }
    clg_value_free(x);
    clg_session_free(other);
    clg_session_free(s);
}

/* A clone that runs on another thread. */
typedef struct runner {
    clg_session *session;
    int what;
    atomic_bool stops;
    atomic_size_t n_wrong, n_cancelled;
} runner;

static void *run_clone(void *user)
{
    enum { RUNS = 12 };
    runner *r = user;
    for (int i = 0; i < RUNS; i++) {
        const int64_t n = 1 + (r->what + i) % 3;
        layers_set(r->session, n, r->what);
        if (clg_session_run(r->session) != CLG_OK) atomic_fetch_add(&r->n_wrong, 1);
        layers_expect(r->session, n, r->what);
    }
    return NULL;
}

TEST(layers__clones_overlap)
{
    enum { N = 5 };
    clg_session *s = open_layers(3);
    runner runners[N] = {0};
    thread threads[N];
    for (int i = 0; i < N; i++) {
        runners[i].what = i;
        assert_ok(clg_session_clone(s, &runners[i].session));
    }
    clg_session_free(s);
    for (int i = 0; i < N; i++) assert_ok(thread_start(&threads[i], run_clone, &runners[i]));
    for (int i = 0; i < N; i++) thread_join(threads[i]);
    for (int i = 0; i < N; i++) {
        assert_int_equal(atomic_load(&runners[i].n_wrong), 0);
        clg_session_free(runners[i].session);
    }
}

static void *run_on(void *user)
{
    runner *r = user;
    while (!atomic_load(&r->stops)) {
        const clg_status status = clg_session_run(r->session);
        if (status == CLG_ERROR_CANCELLED)
            atomic_fetch_add(&r->n_cancelled, 1);
        else if (status != CLG_OK)
            atomic_fetch_add(&r->n_wrong, 1);
    }
    return NULL;
}

TEST(layers__is_cancelled_by_another_thread)
{
    runner r = {.session = open_layers(3)};
    clg_session *other;
    thread t;
    assert_ok(clg_session_clone(r.session, &other)); /* waits for the same devices */
    layers_set(r.session, 4, 0);
    layers_set(other, 4, 1);
    assert_ok(clg_session_run(r.session));
    assert_ok(thread_start(&t, run_on, &r));
    while (atomic_load(&r.n_cancelled) < 5) {
        clg_session_cancel(r.session);
        assert_ok(clg_session_run(other));
    }
    atomic_store(&r.stops, true);
    thread_join(t);
    assert_int_equal(atomic_load(&r.n_wrong), 0);
    layers_expect(other, 4, 1);
    assert_ok(clg_session_run(r.session));
    layers_expect(r.session, 4, 0);
    clg_session_free(other);
    clg_session_free(r.session);
}

/* ---- streams --------------------------------------------------------------------------------- */

/* Rows 0 to n_rows - 1, of which row r is r % 5 - 2 + k % 3. */
typedef struct row_stream {
    uint64_t n_rows, n_written, n_wrong;
} row_stream;

static clg_status read_rows(void *user, clg_stream_batch *batch)
{
    const row_stream *r = user;
    float *x = batch->tensors[0].data;
    if (batch->first_row + batch->n_rows > r->n_rows)
        batch->n_rows = (size_t)(r->n_rows - batch->first_row);
    for (size_t i = 0; i < batch->n_rows * W; i++)
        x[i] = (float)((int)((batch->first_row + i / W) % 5) - 2 + (int)(i % W % 3));
    return CLG_OK;
}

/* Output `early` is twice the row. */
static clg_status write_rows(void *user, clg_stream_batch *batch)
{
    row_stream *r = user;
    const float *y = batch->tensors[0].data;
    r->n_wrong += batch->first_row != r->n_written;
    for (size_t i = 0; i < batch->n_rows * W; i++)
        r->n_wrong +=
            y[i] != (float)(2 * ((int)((batch->first_row + i / W) % 5) - 2 + (int)(i % W % 3)));
    r->n_written += batch->n_rows;
    return CLG_OK;
}

TEST(layers__streams_overlap_batches)
{
    enum { ROWS = 101 };
    const float bias[W] = {1, 2};
    clg_session *s = open_layers(2);
    clg_stream *stream;
    clg_stream_options options = CLG_STREAM_OPTIONS_INIT;
    row_stream rows = {.n_rows = ROWS};
    options.batch = 4;
    options.outputs = NAMES("early");
    options.n_outputs = 1;
    assert_ok(sized_input(s, "bias", CLG_FLOAT32, 1, DIMS(W), bias));
    assert_ok(clg_stream_create(&s, 1, &options, &stream));
    clg_session_free(s);
    for (int run = 0; run < 3; run++) {
        rows.n_written = 0;
        assert_ok(clg_stream_run(stream, read_rows, write_rows, &rows));
        assert_int_equal(rows.n_written, ROWS);
        assert_int_equal(rows.n_wrong, 0);
    }
    clg_stream_free(stream);
}

/* ---- what is refused ------------------------------------------------------------------------- */

TEST(layers__refuses)
{
    clg_session *s;
    clg_value *v;
    char *text;
    clg_model *m = layers_model();
    clg_multi_options options = CLG_MULTI_OPTIONS_INIT;
    options.split = CLG_SPLIT_LAYERS;
    options.hang_ms = 100;
    assert_error(clg_session_create_multi(contexts, 2, m, NULL, &options, &s),
                 CLG_ERROR_INVALID_ARGUMENT, "hang_ms");
    options.hang_ms = 0;
    options.split = (clg_split)7;
    assert_error(clg_session_create_multi(contexts, 2, m, NULL, &options, &s),
                 CLG_ERROR_INVALID_ARGUMENT, "unknown split 7");
    assert_ok(create(2, m, &s));
    clg_model_free(m);
    layers_set(s, 2, 0);
    assert_ok(clg_session_run(s));
    assert_error(clg_session_link(s, "y", "x"), CLG_ERROR_UNSUPPORTED_DEVICE, "several devices");
    assert_error(clg_session_keep_values(s, NAMES("h1"), 1), CLG_ERROR_UNSUPPORTED_DEVICE,
                 "several devices");
    assert_error(clg_session_get_output_device(s, "y", &v), CLG_ERROR_UNSUPPORTED_DEVICE,
                 "several devices");
    assert_error(clg_session_plan_text(s, &text), CLG_ERROR_UNSUPPORTED_DEVICE, "one plan");
    clg_session_free(s);
}
