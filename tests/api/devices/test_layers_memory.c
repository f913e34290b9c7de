/* SPDX-License-Identifier: Apache-2.0
 *
 * Models that are larger than a device: under a layer that gives each OpenCL context 2 MiB
 * (layers/opencl_device.c), a model of one and a half times that is refused on one device and runs
 * right on two; a part that does not fit although it should is divided again; what cannot fit is
 * refused with the node's name.
 */
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/fixtures/sized_data.h"
#include "support/literals.h"
#include "support/platform.h"

#include <clgraph/inspect.h>
#include <clgraph/multi.h>

#include <stdio.h>
#include <string.h>

enum { W = 256, ROWS = 3, LAYERS = 12, TABLE = 1600, MEMORY = 2 << 20 };

static clg_context **contexts;
static size_t n_contexts;
static float numbers[W * W];
static int n_divided_again;

static void listen(void *user, clg_log_level level, const char *message)
{
    (void)user;
    n_divided_again += level <= CLG_LOG_INFO && strstr(message, "divided again") != NULL;
}

/* Opens two halves of the CPU, or, where it has one unit, the device twice. */
static int open_group(void **state)
{
    (void)state;
    if (!platform_set_env("OPENCL_LAYERS", CLG_TEST_BUILD_DIR "/tests/layers/opencl_device.so") ||
        !platform_set_env("CLG_CONTEXT_MEMORY", "2M"))
        return -1;
    ocl_platforms_show_pocl();
    clg_set_log(listen, NULL, CLG_LOG_INFO);
    if (clg_context_create_list("pocl/0,pocl/1", NULL, &contexts, &n_contexts) == CLG_OK) return 0;
    static clg_context *two[2];
    contexts = two;
    for (; n_contexts < 2; n_contexts++)
        if (clg_context_create(ocl_platforms_test_device(), NULL, &contexts[n_contexts]) != CLG_OK)
            return -1;
    return 0;
}

static int close_group(void **state)
{
    (void)state;
    clg_counters counters = CLG_COUNTERS_INIT;
    const bool ran =
        clg_context_counters(contexts[1], &counters) == CLG_OK && counters.kernels_launched > 0;
    clg_set_log(NULL, NULL, CLG_LOG_INFO);
    for (size_t i = 0; i < n_contexts; i++) clg_context_free(contexts[i]);
    return ran ? 0 : -1;
}

TEST_GROUP(open_group, close_group)

/* ---- models ---------------------------------------------------------------------------------- */

/* Weights with two ones in each row, so that sums of small integers are exact. */
static void set_numbers(int layer)
{
    memset(numbers, 0, sizeof numbers);
    for (int i = 0; i < W; i++) {
        numbers[i * W + (i + layer + 1) % W] = 1;
        numbers[i * W + (i * 3 + layer) % W] -= 1;
    }
}

/* Adds layers h' = min(|h w|, 4) from value `from` to "y". */
static void add_layers(clg_builder *g, const char *from, int n)
{
    char in[16], w[16], p[16], a[16], out[16];
    static const float four = 4;
    assert_ok(sized_constant(g, "four", CLG_FLOAT32, 0, NULL, &four));
    (void)snprintf(in, sizeof in, "%s", from);
    for (int i = 0; i < n; i++) {
        (void)snprintf(w, sizeof w, "w%d", i);
        (void)snprintf(p, sizeof p, "p%d", i);
        (void)snprintf(a, sizeof a, "a%d", i);
        (void)snprintf(out, sizeof out, i + 1 < n ? "h%d" : "y", i);
        set_numbers(i);
        assert_ok(sized_constant(g, w, CLG_FLOAT32, 2, DIMS(W, W), numbers));
        assert_ok(clg_builder_node(g, NULL, "MatMul", w, 2, NAMES(in, w), 1, NAMES(p)));
        assert_ok(clg_builder_node(g, NULL, "Abs", a, 1, NAMES(p), 1, NAMES(a)));
        assert_ok(clg_builder_node(g, NULL, "Min", out, 2, NAMES(a, "four"), 1, NAMES(out)));
        (void)snprintf(in, sizeof in, "%s", out);
    }
    assert_ok(clg_builder_output(g, "y"));
}

static clg_model *finish(clg_builder *g)
{
    clg_model *m;
    assert_ok(clg_builder_build(g, &m));
    clg_builder_free(g);
    return m;
}

static clg_model *chain(void)
{
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, W), NULL));
    add_layers(g, "x", LAYERS);
    return finish(g);
}

/* A table that is large and takes little time, then layers. */
static clg_model *with_table(int n_layers)
{
    static float table[TABLE * W];
    clg_builder *g = start_graph();
    for (int i = 0; i < TABLE * W; i++) table[i] = (float)(i % 5 - 2);
    assert_ok(clg_builder_input(g, "i", CLG_INT64, 1, DIMS(-1), NULL));
    assert_ok(sized_constant(g, "table", CLG_FLOAT32, 2, DIMS(TABLE, W), table));
    assert_ok(
        clg_builder_node(g, NULL, "Gather", "look up", 2, NAMES("table", "i"), 1, NAMES("e")));
    add_layers(g, "e", n_layers);
    return finish(g);
}

/* ---- results --------------------------------------------------------------------------------- */

static double h_of[ROWS][W];

static void apply_layers(int n)
{
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < n; i++) {
            double sums[W] = {0};
            for (int k = 0; k < W; k++) {
                sums[(k + i + 1) % W] += h_of[r][k];
                sums[(k * 3 + i) % W] -= h_of[r][k];
            }
            for (int k = 0; k < W; k++) {
                const double size = sums[k] < 0 ? -sums[k] : sums[k];
                h_of[r][k] = size > 4 ? 4 : size;
            }
        }
}

/* Runs, and checks y against h_of before `n` layers. */
static void expect_right(clg_session *s, int n)
{
    float y[ROWS * W];
    apply_layers(n);
    for (int run = 0; run < 2; run++) {
        assert_ok(clg_session_run(s));
        assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
        for (int i = 0; i < ROWS * W; i++) assert_true((double)y[i] == h_of[i / W][i % W]);
    }
}

static void set_x(clg_session *s)
{
    float x[ROWS * W];
    for (int i = 0; i < ROWS * W; i++) {
        x[i] = (float)(i % 7 - 3);
        h_of[i / W][i % W] = (double)x[i];
    }
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(ROWS, W), x));
}

static void set_i(clg_session *s)
{
    const int64_t rows[ROWS] = {0, TABLE - 1, 7};
    for (int r = 0; r < ROWS; r++)
        for (int k = 0; k < W; k++) h_of[r][k] = (double)((rows[r] * W + k) % 5 - 2);
    assert_ok(sized_input(s, "i", CLG_INT64, 1, DIMS(ROWS), rows));
}

static clg_status create(clg_model *m, const clg_limits *limits, clg_session **out_session)
{
    clg_multi_options options = CLG_MULTI_OPTIONS_INIT;
    clg_session_options session_options = CLG_SESSION_OPTIONS_INIT;
    options.split = CLG_SPLIT_LAYERS;
    session_options.limits = limits;
    return clg_session_create_multi(contexts, 2, m, &session_options, &options, out_session);
}

static uint64_t peak_of(size_t i)
{
    clg_counters counters = CLG_COUNTERS_INIT;
    assert_ok(clg_context_counters(contexts[i], &counters));
    return counters.device_bytes_peak;
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(layers_memory__a_model_of_one_and_a_half_devices)
{
    clg_session *s;
    clg_model *m = chain();
    clg_memory_estimate memory = CLG_MEMORY_ESTIMATE_INIT;
    assert_ok(clg_model_memory(m, NULL, 0, &memory));
    assert_true(2 * memory.weight_bytes >= 3 * (uint64_t)MEMORY);
    clg_status status = clg_session_create(contexts[0], m, NULL, &s);
    if (status == CLG_OK) {
        set_x(s);
        status = clg_session_run(s);
    }
    assert_int_equal(status, CLG_ERROR_OUT_OF_DEVICE_MEMORY);
    clg_session_free(s);
    assert_ok(create(m, NULL, &s));
    clg_model_free(m);
    set_x(s);
    expect_right(s, LAYERS);
    for (size_t i = 0; i < 2; i++) assert_in_range(peak_of(i), 1, MEMORY);
    clg_session_free(s);
}

/* Weights decide where the time would decide otherwise. */
TEST(layers_memory__parts_fit_their_devices)
{
    clg_session *s;
    clg_session_part *parts;
    size_t n;
    clg_model *m = with_table(7);
    assert_ok(create(m, NULL, &s));
    clg_model_free(m);
    set_i(s);
    n_divided_again = 0;
    expect_right(s, 7);
    assert_int_equal(n_divided_again, 0);
    assert_ok(clg_session_parts(s, &parts, &n));
    for (size_t i = 0; i < n; i++) assert_in_range(parts[i].weight_bytes, 1, MEMORY);
    assert_string_equal(parts[0].first_node, "look up");
    clg_session_parts_free(parts, n);
    clg_session_free(s);
}

/* The device has less than it says: the model is divided again when a part does not fit. */
TEST(layers_memory__a_part_that_does_not_fit_is_divided_again)
{
    clg_session *s;
    clg_context *before[2] = {contexts[0], contexts[1]}, *silent[2];
    assert_true(platform_set_env("CLG_DEVICE_SILENT", "1"));
    for (size_t i = 0; i < 2; i++)
        assert_ok(clg_context_create(ocl_platforms_test_device(), NULL, &silent[i]));
    memcpy(contexts, silent, sizeof silent);
    clg_model *m = with_table(6);
    assert_ok(create(m, NULL, &s));
    clg_model_free(m);
    set_i(s);
    n_divided_again = 0;
    expect_right(s, 6);
    assert_true(n_divided_again > 0);
    clg_session_free(s);
    memcpy(contexts, before, sizeof before);
    for (size_t i = 0; i < 2; i++) clg_context_free(silent[i]);
    assert_true(platform_set_env("CLG_DEVICE_SILENT", NULL));
}

TEST(layers_memory__max_memory_bytes_is_for_each_device)
{
    clg_session *s;
    clg_limits limits = CLG_LIMITS_INIT;
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    clg_model *m = chain();
    limits.max_memory_bytes = MEMORY / 4 * 5; /* it counts memory of the host, too */
    options.limits = &limits;
    assert_ok(clg_session_create(contexts[0], m, &options, &s));
    set_x(s);
    assert_error(clg_session_run(s), CLG_ERROR_LIMIT, "max_memory_bytes");
    clg_session_free(s);
    assert_ok(create(m, &limits, &s));
    set_x(s);
    expect_right(s, LAYERS);
    clg_session_free(s);
    clg_model_free(m);
}

/* Other limits than those of memory end the run: another division would not help. */
TEST(layers_memory__other_limits_do_not_divide_again)
{
    clg_session *s;
    clg_limits limits = CLG_LIMITS_INIT;
    clg_model *m = chain();
    limits.max_memory_bytes = MEMORY / 4 * 5;
    limits.max_steps = 1;
    assert_ok(create(m, &limits, &s));
    clg_model_free(m);
    set_x(s);
    n_divided_again = 0;
    assert_error(clg_session_run(s), CLG_ERROR_LIMIT, "max_steps");
    assert_int_equal(n_divided_again, 0);
    clg_session_free(s);
}

TEST(layers_memory__refuses_what_cannot_fit)
{
    clg_session *s;
    static float large[W * 4096];
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, W), NULL));
    assert_ok(sized_constant(g, "w", CLG_FLOAT32, 2, DIMS(W, 4096), large));
    assert_ok(clg_builder_node(g, NULL, "Abs", "small", 1, NAMES("x"), 1, NAMES("a")));
    assert_ok(clg_builder_node(g, NULL, "MatMul", "large", 2, NAMES("a", "w"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    clg_model *m = finish(g);
    assert_error(create(m, NULL, &s), CLG_ERROR_OUT_OF_DEVICE_MEMORY, "'large' (MatMul");
    clg_model_free(m);
    m = with_table(12);
    assert_error(create(m, NULL, &s), CLG_ERROR_OUT_OF_DEVICE_MEMORY, "cannot be divided among");
    clg_model_free(m);
}
