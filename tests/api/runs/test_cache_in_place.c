/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests outputs that are computed in the memory of a linked or bound input: the caches of
 * GroupQueryAttention, TensorScatter and ScatterND. Each run is compared, bit by bit, with one of
 * another session in which nothing is linked, so that it copies. Whether a cache is updated in
 * place shows in its OpenCL buffer, which stays the same.
 */
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/sized_data.h"
#include "support/literals.h"

#include <clgraph/inspect.h>
#include <clgraph/opencl.h>

#include <string.h>

TEST_GROUP(open_context, close_context)

enum {
    HEADS = 4,
    KV_HEADS = 2,
    D = 6, /* no multiple of a vector's width */
    ROOM = 19,
    MOST_BATCHES = 2,
    CACHE = MOST_BATCHES * KV_HEADS * ROOM * D,
    PROMPT = 5
};

/* A session whose caches are linked, one that copies, and the caches of the latter on the host. */
typedef struct decoder {
    clg_session *linked, *apart;
    int64_t batch;
    float keys[CACHE], values[CACHE];
} decoder;

static const char *const pasts[] = {"past_key", "past_value"}, *const presents[] = {
                                                                   "present_key", "present_value"};

static size_t cache_bytes(const decoder *d)
{
    return (size_t)(d->batch * KV_HEADS * ROOM * D) * sizeof(float);
}

static clg_session *open_attention(clg_kernel_class kernels)
{
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    options.kernels = kernels;
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "q", CLG_FLOAT32, 3, DIMS(-1, -1, HEADS * D), NULL));
    assert_ok(clg_builder_input(g, "k", CLG_FLOAT32, 3, DIMS(-1, -1, KV_HEADS * D), NULL));
    assert_ok(clg_builder_input(g, "v", CLG_FLOAT32, 3, DIMS(-1, -1, KV_HEADS * D), NULL));
    for (int i = 0; i < 2; i++)
        assert_ok(clg_builder_input(g, pasts[i], CLG_FLOAT32, 4, DIMS(-1, KV_HEADS, -1, D), NULL));
    assert_ok(clg_builder_input(g, "lengths", CLG_INT32, 1, DIMS(-1), NULL));
    assert_ok(clg_builder_input(g, "total", CLG_INT32, 1, DIMS(1), NULL));
    assert_ok(clg_builder_node(g, "com.microsoft", "GroupQueryAttention", "attention", 7,
                               NAMES("q", "k", "v", "past_key", "past_value", "lengths", "total"),
                               3, NAMES("y", "present_key", "present_value")));
    assert_ok(clg_builder_attribute_int(g, "num_heads", HEADS));
    assert_ok(clg_builder_attribute_int(g, "kv_num_heads", KV_HEADS));
    assert_ok(clg_builder_output(g, "y"));
    for (int i = 0; i < 2; i++) assert_ok(clg_builder_output(g, presents[i]));
    return build_session(context, g, &options);
}

static void set_cache(const decoder *d, clg_session *s)
{
    for (int i = 0; i < 2; i++)
        assert_ok(sized_input(s, pasts[i], CLG_FLOAT32, 4, DIMS(d->batch, KV_HEADS, ROOM, D),
                              i ? d->values : d->keys));
}

static void link_caches(clg_session *s)
{
    for (int i = 0; i < 2; i++) assert_ok(clg_session_link(s, presents[i], pasts[i]));
}

/* Fills the caches with numbers that no position would keep by chance. */
static void start(decoder *d, int64_t batch)
{
    d->batch = batch;
    for (int i = 0; i < CACHE; i++) {
        d->keys[i] = (float)(i % 23) * 0.125F;
        d->values[i] = (float)(i % 31) * -0.25F;
    }
    set_cache(d, d->linked);
}

static void open_decoder(decoder *d, clg_kernel_class kernels)
{
    d->linked = open_attention(kernels);
    d->apart = open_attention(kernels);
    link_caches(d->linked);
    start(d, 1);
}

static void close_decoder(decoder *d)
{
    clg_session_free(d->linked);
    clg_session_free(d->apart);
}

/* Sets `count` queries, keys and values, which end at position `total`; the last batch has one
 * position less. */
static void set_queries(const decoder *d, clg_session *s, int64_t count, int64_t total)
{
    enum { MOST = MOST_BATCHES * ROOM * HEADS * D };
    static float rows[3][MOST];
    int32_t lengths[MOST_BATCHES], all = (int32_t)total;
    for (int i = 0; i < MOST; i++)
        for (int w = 0; w < 3; w++)
            rows[w][i] = (float)((i * (5 + w) + (int)total * 3) % 19 - 9) * 0.125F;
    for (int64_t b = 0; b < d->batch; b++)
        lengths[b] = (int32_t)(total - 1 - (b > 0 && count < total));
    for (int w = 0; w < 3; w++)
        assert_ok(sized_input(s, NAMES("q", "k", "v")[w], CLG_FLOAT32, 3,
                              DIMS(d->batch, count, (w ? KV_HEADS : HEADS) * D), rows[w]));
    assert_ok(sized_input(s, "lengths", CLG_INT32, 1, DIMS(d->batch), lengths));
    assert_ok(sized_input(s, "total", CLG_INT32, 1, DIMS(1), &all));
}

/* Runs the session that copies, and keeps its caches; y: [batch, count, HEADS * D]. */
static void run_apart(decoder *d, int64_t count, int64_t total, float *y)
{
    set_cache(d, d->apart);
    set_queries(d, d->apart, count, total);
    assert_ok(clg_session_run(d->apart));
    const size_t y_bytes = (size_t)(d->batch * count * HEADS * D) * sizeof *y;
    assert_ok(clg_session_get_output_data(d->apart, "y", y, y_bytes));
    for (int i = 0; i < 2; i++)
        assert_ok(clg_session_get_output_data(d->apart, presents[i], i ? d->values : d->keys,
                                              cache_bytes(d)));
}

static void expect_cache(const decoder *d, clg_session *s)
{
    float got[CACHE];
    for (int i = 0; i < 2; i++) {
        assert_ok(clg_session_get_output_data(s, presents[i], got, cache_bytes(d)));
        assert_memory_equal(got, i ? d->values : d->keys, cache_bytes(d));
    }
}

/* Runs both sessions and compares them. */
static void step(decoder *d, int64_t count, int64_t total)
{
    float want[MOST_BATCHES * ROOM * HEADS * D], got[MOST_BATCHES * ROOM * HEADS * D];
    const size_t y_bytes = (size_t)(d->batch * count * HEADS * D) * sizeof *got;
    run_apart(d, count, total, want);
    set_queries(d, d->linked, count, total);
    assert_ok(clg_session_run(d->linked));
    assert_ok(clg_session_get_output_data(d->linked, "y", got, y_bytes));
    assert_memory_equal(got, want, y_bytes);
    expect_cache(d, d->linked);
}

/* Returns the OpenCL buffer of a session's output. */
static cl_mem buffer_of(clg_session *s, const char *output)
{
    clg_value *v;
    cl_mem memory;
    size_t offset;
    assert_ok(clg_session_get_output_device(s, output, &v));
    assert_ok(clg_value_opencl(v, &memory, &offset));
    clg_value_free(v);
    return memory;
}

static const clg_kernel_class classes[] = {CLG_KERNELS_SIMD, CLG_KERNELS_SIMT};

TEST(cache_in_place__equals_copying)
{
    for (int c = 0; c < 2; c++) {
        decoder d;
        open_decoder(&d, classes[c]);
        step(&d, PROMPT, PROMPT);
        const cl_mem keys = buffer_of(d.linked, "present_key"),
                     values = buffer_of(d.linked, "present_value");
        for (int64_t total = PROMPT + 1; total < PROMPT + 5; total++) step(&d, 1, total);
        step(&d, 3, PROMPT + 7);
        step(&d, 1, ROOM);
        assert_true(buffer_of(d.linked, "present_key") == keys);
        assert_true(buffer_of(d.linked, "present_value") == values);
        close_decoder(&d);
    }
}

/* Nothing is compiled once a prompt and two tokens ran. */
TEST(cache_in_place__compiles_nothing_later)
{
    decoder d;
    clg_counters before = CLG_COUNTERS_INIT, after = CLG_COUNTERS_INIT;
    open_decoder(&d, CLG_KERNELS_SIMD);
    step(&d, PROMPT, PROMPT);
    step(&d, 1, PROMPT + 1);
    step(&d, 1, PROMPT + 2);
    assert_ok(clg_context_counters(context, &before));
    for (int64_t total = PROMPT + 3; total <= ROOM; total++) step(&d, 1, total);
    assert_ok(clg_context_counters(context, &after));
    assert_int_equal(after.programs_compiled, before.programs_compiled);
    assert_int_equal(after.programs_loaded, before.programs_loaded);
    close_decoder(&d);
}

/* A value of an older cache keeps its elements while it is held. */
TEST(cache_in_place__held_values_stay)
{
    decoder d;
    clg_value *held;
    float before[CACHE], after[CACHE];
    open_decoder(&d, CLG_KERNELS_SIMD);
    step(&d, PROMPT, PROMPT);
    assert_ok(clg_session_get_output_device(d.linked, "present_key", &held));
    memcpy(before, d.keys, sizeof before);
    for (int64_t total = PROMPT + 1; total < PROMPT + 4; total++) {
        step(&d, 1, total);
        assert_ok(clg_value_read(held, after, cache_bytes(&d)));
        assert_memory_equal(after, before, cache_bytes(&d));
    }
    clg_value_free(held);
    step(&d, 1, PROMPT + 4);
    close_decoder(&d);
}

/* A value that the caller set, on the device or large on the host, is not written. */
TEST(cache_in_place__values_that_were_set_stay)
{
    decoder d;
    clg_value *set;
    float got[CACHE];
    open_decoder(&d, CLG_KERNELS_SIMD);
    const int64_t dims[] = {1, KV_HEADS, ROOM, D};
    assert_ok(clg_value_create_device(context, CLG_FLOAT32, 4, dims, &set));
    assert_ok(clg_value_write(set, d.keys, cache_bytes(&d)));
    assert_ok(clg_session_set_input(d.linked, "past_key", set));
    float before[CACHE];
    memcpy(before, d.keys, sizeof before);
    step(&d, PROMPT, PROMPT);
    step(&d, 1, PROMPT + 1);
    assert_ok(clg_value_read(set, got, cache_bytes(&d)));
    assert_memory_equal(got, before, cache_bytes(&d));
    clg_value_free(set);
    close_decoder(&d);
}

TEST(cache_in_place__links_resets_and_batches)
{
    decoder d;
    open_decoder(&d, CLG_KERNELS_SIMD);
    step(&d, PROMPT, PROMPT);
    step(&d, 1, PROMPT + 1);
    start(&d, 2);
    step(&d, 2, 2);
    step(&d, 1, 3);
    for (int i = 0; i < 2; i++) assert_ok(clg_session_link(d.linked, NULL, pasts[i]));
    expect_cache(&d, d.linked);
    set_cache(&d, d.linked);
    step(&d, 1, 4);
    set_cache(&d, d.linked);
    link_caches(d.linked);
    step(&d, 1, 5);
    step(&d, 1, 6);
    start(&d, 1);
    step(&d, 1, 7);
    step(&d, 1, 8);
    close_decoder(&d);
}

/* A preparation between two runs leaves the cache as it is. */
TEST(cache_in_place__preparations_change_nothing)
{
    decoder d;
    open_decoder(&d, CLG_KERNELS_SIMD);
    set_queries(&d, d.linked, PROMPT, PROMPT);
    assert_ok(clg_session_prepare(d.linked, NULL, NULL));
    step(&d, PROMPT, PROMPT);
    assert_ok(clg_session_prepare(d.linked, NULL, NULL));
    step(&d, 1, PROMPT + 1);
    set_queries(&d, d.linked, 2, PROMPT + 3);
    assert_ok(clg_session_prepare(d.linked, NULL, NULL));
    step(&d, 1, PROMPT + 2);
    close_decoder(&d);
}

/* A run that fails on its data leaves the cache as it is. */
TEST(cache_in_place__a_failed_run)
{
    decoder d;
    open_decoder(&d, CLG_KERNELS_SIMD);
    step(&d, PROMPT, PROMPT);
    set_queries(&d, d.linked, 1, PROMPT + 1);
    const int32_t beyond = ROOM + 3;
    assert_ok(sized_input(d.linked, "lengths", CLG_INT32, 1, DIMS(1), &beyond));
    assert_int_equal(clg_session_run(d.linked), CLG_ERROR_DATA);
    step(&d, 1, PROMPT + 1);
    step(&d, 1, PROMPT + 2);
    close_decoder(&d);
}

/* Outputs that are bound to the very values that are the inputs. */
TEST(cache_in_place__bound_to_its_input)
{
    decoder d;
    clg_value *caches[2];
    float got[CACHE], y[ROOM * HEADS * D];
    open_decoder(&d, CLG_KERNELS_SIMD);
    const int64_t dims[] = {1, KV_HEADS, ROOM, D};
    for (int i = 0; i < 2; i++) {
        assert_ok(clg_session_link(d.linked, NULL, pasts[i]));
        assert_ok(clg_value_create_device(context, CLG_FLOAT32, 4, dims, &caches[i]));
        assert_ok(clg_value_write(caches[i], i ? d.values : d.keys, cache_bytes(&d)));
        assert_ok(clg_session_set_input(d.linked, pasts[i], caches[i]));
        assert_ok(clg_session_bind_output(d.linked, presents[i], caches[i]));
    }
    for (int64_t total = PROMPT; total < PROMPT + 4; total++) {
        const int64_t count = total == PROMPT ? PROMPT : 1;
        run_apart(&d, count, total, y);
        set_queries(&d, d.linked, count, total);
        assert_ok(clg_session_run(d.linked));
        for (int i = 0; i < 2; i++) {
            assert_ok(clg_value_read(caches[i], got, cache_bytes(&d)));
            assert_memory_equal(got, i ? d.values : d.keys, cache_bytes(&d));
        }
        assert_ok(clg_session_prepare(d.linked, NULL, NULL));
    }
    assert_ok(clg_session_set_input(d.linked, "past_value", caches[0])); /* both in one memory */
    assert_error(clg_session_run(d.linked), CLG_ERROR_INVALID_ARGUMENT, "is bound to memory that");
    for (int i = 0; i < 2; i++) clg_value_free(caches[i]);
    close_decoder(&d);
}

/* The value is also the state that another input has from the last run. */
TEST(cache_in_place__not_bound_to_linked_state)
{
    const float numbers[4] = {1, 2, 3, 4};
    const int64_t at = 2;
    clg_value *v;
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "past", CLG_FLOAT32, 1, DIMS(4), NULL));
    assert_ok(clg_builder_input(g, "at", CLG_INT64, 2, DIMS(1, 1), NULL));
    assert_ok(clg_builder_input(g, "row", CLG_FLOAT32, 1, DIMS(1), NULL));
    assert_ok(clg_builder_input(g, "state", CLG_FLOAT32, 1, DIMS(4), NULL));
    assert_ok(clg_builder_node(g, "", "ScatterND", NULL, 3, NAMES("past", "at", "row"), 1,
                               NAMES("present")));
    assert_ok(clg_builder_node(g, "", "Neg", NULL, 1, NAMES("state"), 1, NAMES("next")));
    assert_ok(clg_builder_output(g, "present"));
    assert_ok(clg_builder_output(g, "next"));
    clg_session *s = build_session(context, g, NULL);
    assert_ok(clg_session_link(s, "next", "state"));
    assert_ok(sized_input(s, "past", CLG_FLOAT32, 1, DIMS(4), numbers));
    assert_ok(sized_input(s, "state", CLG_FLOAT32, 1, DIMS(4), numbers));
    assert_ok(sized_input(s, "at", CLG_INT64, 2, DIMS(1, 1), &at));
    assert_ok(sized_input(s, "row", CLG_FLOAT32, 1, DIMS(1), numbers));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_device(s, "next", &v));
    assert_ok(clg_session_set_input(s, "past", v));
    assert_ok(clg_session_bind_output(s, "present", v));
    assert_error(clg_session_run(s), CLG_ERROR_INVALID_ARGUMENT, "is bound to memory that");
    clg_value_free(v);
    clg_session_free(s);
}

/* ---- scatters -------------------------------------------------------------------------------- */

enum { ROWS = 7, WIDTH = 5 };

/* A table whose row `at` each run sets, or to which it adds. */
typedef struct table {
    const char *op, *reduction; /* reduction NULL: none */
    bool is_read;               /* another node reads the old table */
} table;

static clg_session *open_table(const table *t)
{
    clg_builder *g;
    assert_ok(clg_builder_create(24, &g));
    const bool is_tensor = strcmp(t->op, "TensorScatter") == 0;
    assert_ok(clg_builder_input(g, "old", CLG_FLOAT32, 3, DIMS(1, ROWS, WIDTH), NULL));
    assert_ok(clg_builder_input(g, "row", CLG_FLOAT32, is_tensor ? 3 : 2,
                                is_tensor ? DIMS(1, 1, WIDTH) : DIMS(1, WIDTH), NULL));
    assert_ok(clg_builder_input(g, "at", CLG_INT64, is_tensor ? 1 : 2,
                                is_tensor ? DIMS(1) : DIMS(1, 2), NULL));
    assert_ok(clg_builder_node(g, NULL, t->op, "write", 3,
                               is_tensor ? NAMES("old", "row", "at") : NAMES("old", "at", "row"), 1,
                               NAMES("new")));
    if (t->reduction) assert_ok(clg_builder_attribute_string(g, "reduction", t->reduction));
    assert_ok(clg_builder_node(g, NULL, "Neg", "after", 1, NAMES(t->is_read ? "old" : "new"), 1,
                               NAMES("y")));
    assert_ok(clg_builder_output(g, "new"));
    assert_ok(clg_builder_output(g, "y"));
    return build_session(context, g, NULL);
}

static void set_row(clg_session *s, bool is_tensor, int64_t at, const float *row)
{
    const int64_t index[] = {0, at};
    assert_ok(sized_input(s, "row", CLG_FLOAT32, is_tensor ? 3 : 2,
                          is_tensor ? DIMS(1, 1, WIDTH) : DIMS(1, WIDTH), row));
    assert_ok(sized_input(s, "at", CLG_INT64, is_tensor ? 1 : 2, is_tensor ? DIMS(1) : DIMS(1, 2),
                          is_tensor ? &index[1] : index));
}

static void check_table(const table *t, bool in_place)
{
    float want[ROWS * WIDTH] = {0}, before[ROWS * WIDTH], got[ROWS * WIDTH], row[WIDTH];
    clg_session *s = open_table(t);
    assert_ok(sized_input(s, "old", CLG_FLOAT32, 3, DIMS(1, ROWS, WIDTH), want));
    assert_ok(clg_session_link(s, "new", "old"));
    cl_mem memory = NULL;
    for (int run = 0; run < 6; run++) {
        const int at = run * 3 % ROWS % 3;
        memcpy(before, want, sizeof before);
        for (int i = 0; i < WIDTH; i++) {
            row[i] = (float)(run * WIDTH + i + 1);
            want[at * WIDTH + i] = row[i] + (t->reduction ? want[at * WIDTH + i] : 0);
        }
        set_row(s, strcmp(t->op, "TensorScatter") == 0, at, row);
        assert_ok(clg_session_run(s));
        assert_ok(clg_session_get_output_data(s, "new", got, sizeof got));
        assert_memory_equal(got, want, sizeof got);
        assert_ok(clg_session_get_output_data(s, "y", got, sizeof got));
        for (int i = 0; i < ROWS * WIDTH; i++)
            assert_true(got[i] == -(t->is_read ? before : want)[i]);
        if (run > 0) assert_true((buffer_of(s, "new") == memory) == in_place);
        memory = buffer_of(s, "new");
    }
    clg_session_free(s);
}

TEST(cache_in_place__rows_of_tables)
{
    check_table(&(table){"ScatterND", NULL, false}, true);
    check_table(&(table){"TensorScatter", NULL, false}, true);
}

/* A table that another node reads, and one to which a repeated run would add twice, is copied. */
TEST(cache_in_place__not_what_is_read_or_summed)
{
    check_table(&(table){"ScatterND", NULL, true}, false);
    check_table(&(table){"TensorScatter", NULL, true}, false);
    check_table(&(table){"ScatterND", "add", false}, false);
}

/* The linked output of a whole run in one call is read from where it was computed. */
TEST(cache_in_place__results_of_calls)
{
    const table t = {"ScatterND", NULL, false};
    float want[ROWS * WIDTH] = {0}, got[ROWS * WIDTH], row[WIDTH];
    clg_session *s = open_table(&t);
    assert_ok(sized_input(s, "old", CLG_FLOAT32, 3, DIMS(1, ROWS, WIDTH), want));
    assert_ok(clg_session_link(s, "new", "old"));
    for (int run = 0; run < 3; run++) {
        const int64_t index[] = {0, run};
        for (int i = 0; i < WIDTH; i++) want[run * WIDTH + i] = row[i] = (float)(run + i + 1);
        const clg_call_input in[] = {{.name = "row",
                                      .dtype = CLG_FLOAT32,
                                      .rank = 2,
                                      .dims = DIMS(1, WIDTH),
                                      .data = row,
                                      .size_bytes = sizeof row},
                                     {.name = "at",
                                      .dtype = CLG_INT64,
                                      .rank = 2,
                                      .dims = DIMS(1, 2),
                                      .data = index,
                                      .size_bytes = sizeof index}};
        clg_call_output out = {.name = "new", .data = got, .capacity_bytes = sizeof got};
        assert_ok(clg_session_call(s, in, 2, &out, 1));
        assert_null(out.value);
        assert_memory_equal(got, want, sizeof got);
    }
    clg_session_free(s);
}

/* ---- intermediate values --------------------------------------------------------------------- */

/* e = x + x; three scatters into copies of e or into e itself, of which some are read later. */
TEST(cache_in_place__intermediate_values)
{
    const float x[4] = {1, 2, 3, 4}, u[2] = {-1, -2};
    const int64_t at[2] = {1, 3};
    for (int c = 0; c < 2; c++) {
        clg_session_options options = CLG_SESSION_OPTIONS_INIT;
        options.kernels = classes[c];
        clg_builder *g;
        float got[4];
        assert_ok(clg_builder_create(18, &g));
        assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 1, DIMS(4), NULL));
        assert_ok(clg_builder_input(g, "u", CLG_FLOAT32, 1, DIMS(2), NULL));
        assert_ok(clg_builder_input(g, "at", CLG_INT64, 2, DIMS(2, 1), NULL));
        assert_ok(clg_builder_node(g, NULL, "Add", "", 2, NAMES("x", "x"), 1, NAMES("e")));
        assert_ok(
            clg_builder_node(g, NULL, "ScatterND", "", 3, NAMES("e", "at", "u"), 1, NAMES("a")));
        assert_ok(clg_builder_attribute_string(g, "reduction", "add"));
        assert_ok(
            clg_builder_node(g, NULL, "ScatterND", "", 3, NAMES("e", "at", "u"), 1, NAMES("b")));
        assert_ok(clg_builder_node(g, NULL, "Reshape", "", 2, NAMES("b", "flat"), 1, NAMES("r")));
        assert_ok(
            clg_builder_node(g, NULL, "ScatterND", "", 3, NAMES("b", "at", "u"), 1, NAMES("d")));
        assert_ok(clg_builder_attribute_string(g, "reduction", "mul"));
        assert_ok(clg_builder_node(g, NULL, "Sub", "", 2, NAMES("a", "r"), 1, NAMES("y")));
        assert_ok(clg_builder_node(g, NULL, "Neg", "", 1, NAMES("d"), 1, NAMES("z")));
        assert_ok(sized_constant(g, "flat", CLG_INT64, 1, DIMS(1), DIMS(-1)));
        assert_ok(clg_builder_output(g, "y"));
        assert_ok(clg_builder_output(g, "z"));
        clg_session *s = build_session(context, g, &options);
        assert_ok(sized_input(s, "x", CLG_FLOAT32, 1, DIMS(4), x));
        assert_ok(sized_input(s, "u", CLG_FLOAT32, 1, DIMS(2), u));
        assert_ok(sized_input(s, "at", CLG_INT64, 2, DIMS(2, 1), at));
        for (int run = 0; run < 2; run++) {
            assert_ok(clg_session_run(s));
            assert_ok(clg_session_get_output_data(s, "y", got, sizeof got));
            assert_memory_equal(got, ((float[]){0, 4, 0, 8}), sizeof got);
            assert_ok(clg_session_get_output_data(s, "z", got, sizeof got));
            assert_memory_equal(got, ((float[]){-2, -1, -6, -4}), sizeof got);
        }
        clg_session_free(s);
    }
}
