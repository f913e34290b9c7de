/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the limit of a launch's time (max_launch_ms) on PoCL with kernels for GPUs: divided
 * launches give the same bits, are as many as the estimate requires, and sessions learn from
 * launches that took too long, by time stamps and by the host's clock. Rates, clock and time stamps
 * are made up: nothing depends on how fast the machine is.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/literals.h"

#include "session/session.h"

#include "session/context_handle.h"

#include <clgraph/inspect.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ELEMS = 1 << 16 };

static const uint64_t limit_ns = 1000000;
/* Rates by which nothing, or everything, takes too long. */
static const device_rates fast = {1e30, 1e30, 1}, slow = {1e-6, 1e-6, 1};

static clg_context *open_context_and_probe(bool profiling, bool *out_parts_work)
{
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    clg_context *c;
    options.cache_dir = "";
    options.profiling = profiling;
    options.max_launch_ms = 1;
    assert_ok(clg_context_create(ocl_platforms_test_device(), &options, &c));
    assert_int_equal(c->current->budget.limit_ns, limit_ns);
    c->current->budget.rates = fast;
    assert_ok(ocl_parts_work(c->current->ocl, out_parts_work));
    return c;
}

static clg_context *open_context_with(bool profiling)
{
    bool parts_work;
    clg_context *c = open_context_and_probe(profiling, &parts_work);
    assert_true(parts_work);
    return c;
}

/* ---- models ---------------------------------------------------------------------------------- */

static float element(size_t i, unsigned seed)
{
    const uint32_t n = ((uint32_t)i * 2654435761u) ^ (seed * 40503u);
    return (float)((int)(n >> 13 & 255) - 128) / 37.0f;
}

/* A node with inputs of these shapes, all set by the caller. */
typedef struct node_case {
    const char *op_type;
    int64_t opset;
    bool uses_blas;
    const char *prefer; /* NULL, or an implementation */
    size_t n_inputs;
    size_t ranks[3];
    int64_t dims[3][4];
    void (*add_attributes)(clg_builder *g); /* may be NULL */
} node_case;

static void add_groups(clg_builder *g)
{
    assert_ok(clg_builder_attribute_int(g, "group", 2));
    assert_ok(clg_builder_attribute_ints(g, "pads", 4, DIMS(1, 1, 0, 1)));
    assert_ok(clg_builder_attribute_ints(g, "strides", 2, DIMS(2, 1)));
}

static void add_depthwise(clg_builder *g) { assert_ok(clg_builder_attribute_int(g, "group", 12)); }

static void add_window(clg_builder *g)
{
    assert_ok(clg_builder_attribute_ints(g, "kernel_shape", 2, DIMS(5, 4)));
    assert_ok(clg_builder_attribute_ints(g, "pads", 4, DIMS(2, 1, 2, 2)));
}

static void add_cell(clg_builder *g)
{
    assert_ok(clg_builder_attribute_int(g, "hidden_size", 16));
    assert_ok(clg_builder_attribute_string(g, "direction", "bidirectional"));
}

static void add_axes(clg_builder *g) { assert_ok(clg_builder_attribute_int(g, "keepdims", 0)); }

static const node_case cases[] = {
    {"MatMul", 13, false, NULL, 2, {2, 2}, {{201, 45}, {45, 133}}, NULL},
    {"MatMul", 13, true, "blas", 2, {2, 2}, {{201, 45}, {45, 133}}, NULL},
    {"MatMul", 13, false, NULL, 2, {4, 4}, {{3, 2, 37, 29}, {3, 2, 29, 41}}, NULL},
    {"MatMul", 13, true, "blas", 2, {4, 4}, {{3, 2, 37, 29}, {3, 2, 29, 41}}, NULL},
    {"Conv", 13, false, NULL, 2, {4, 4}, {{2, 6, 23, 19}, {10, 3, 3, 3}}, add_groups},
    {"Conv", 13, false, NULL, 2, {4, 4}, {{2, 12, 23, 19}, {12, 1, 3, 3}}, add_depthwise},
    {"Conv", 13, false, NULL, 2, {4, 4}, {{1, 16, 23, 19}, {40, 16, 3, 3}}, NULL},
    {"Attention",
     23,
     false,
     NULL,
     3,
     {4, 4, 4},
     {{2, 3, 37, 16}, {2, 3, 41, 16}, {2, 3, 41, 24}},
     NULL},
    {"AveragePool", 13, false, NULL, 1, {4}, {{2, 5, 33, 29}}, add_window},
    {"MaxPool", 13, false, NULL, 1, {4}, {{2, 5, 33, 29}}, add_window},
    {"ReduceMean", 13, false, NULL, 1, {3}, {{7, 300, 11}}, add_axes},
    {"LSTM", 13, false, NULL, 3, {3, 3, 3}, {{13, 5, 8}, {2, 64, 8}, {2, 64, 16}}, add_cell},
    {"GRU", 13, false, NULL, 3, {3, 3, 3}, {{13, 5, 8}, {2, 48, 8}, {2, 48, 16}}, add_cell},
    {"ConvTranspose", 13, false, NULL, 2, {4, 4}, {{1, 6, 11, 13}, {6, 7, 3, 3}}, NULL},
};

static clg_session *open_case(clg_context *context, const node_case *c)
{
    static const char *const names[] = {"a", "b", "c"};
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    clg_builder *g;
    assert_ok(clg_builder_create(c->opset, &g));
    for (size_t i = 0; i < c->n_inputs; i++)
        assert_ok(clg_builder_input(g, names[i], CLG_FLOAT32, c->ranks[i], c->dims[i], NULL));
    assert_ok(clg_builder_node(g, NULL, c->op_type, "the node", c->n_inputs, names, 1, NAMES("y")));
    if (c->add_attributes) c->add_attributes(g);
    assert_ok(clg_builder_output(g, "y"));
    options.kernels = CLG_KERNELS_SIMT;
    options.no_blas = !c->uses_blas;
    options.preferred_impls = &c->prefer;
    options.n_preferred_impls = c->prefer != NULL;
    clg_session *s = build_session(context, g, &options);
    for (size_t i = 0; i < c->n_inputs; i++) {
        static float x[MAX_ELEMS];
        size_t n = 1;
        for (size_t k = 0; k < c->ranks[i]; k++) n *= (size_t)c->dims[i][k];
        assert_true(n <= MAX_ELEMS);
        for (size_t k = 0; k < n; k++) x[k] = element(k, (unsigned)i + 1);
        assert_ok(sized_input(s, names[i], CLG_FLOAT32, c->ranks[i], c->dims[i], x));
    }
    return s;
}

static uint64_t n_launches(clg_context *context)
{
    clg_counters counters = CLG_COUNTERS_INIT;
    assert_ok(clg_context_counters(context, &counters));
    return counters.kernels_launched + counters.blas_calls;
}

/* Runs the session and returns its number of launches. */
static uint64_t run(clg_context *context, clg_session *s)
{
    const uint64_t before = n_launches(context);
    assert_ok(clg_session_run(s));
    return n_launches(context) - before;
}

/* Has the kernels of a case tested, which launches them, so that later runs launch only steps. */
static void test_kernels(clg_context *context, const node_case *c)
{
    clg_session *s = open_case(context, c);
    assert_ok(clg_session_run(s));
    clg_session_free(s);
}

static clg_value *output_of(clg_session *s)
{
    clg_value *y;
    assert_ok(clg_session_get_output(s, "y", &y));
    return y;
}

/* Checks that the sessions' outputs have the same bits, and frees the sessions. */
static void expect_same_bits(clg_session *whole, clg_session *divided)
{
    clg_value *want = output_of(whole), *got = output_of(divided);
    assert_int_equal(clg_value_size_bytes(want), clg_value_size_bytes(got));
    assert_memory_equal(clg_value_data(want), clg_value_data(got), clg_value_size_bytes(want));
    clg_value_free(want);
    clg_value_free(got);
    clg_session_free(whole);
    clg_session_free(divided);
}

/* ---- divided launches ------------------------------------------------------------------------ */

TEST(launch_limit__parts_give_the_same_bits)
{
    clg_context *context = open_context_with(false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        context->current->budget.rates = fast;
        test_kernels(context, &cases[i]);
        clg_session *whole = open_case(context, &cases[i]);
        context->current->budget.rates = slow;
        clg_session *divided = open_case(context, &cases[i]);
        const uint64_t n_whole = run(context, whole), n_divided = run(context, divided);
        print_message("%s: %d launches, divided %d\n", cases[i].op_type, (int)n_whole,
                      (int)n_divided);
        assert_true(n_divided > n_whole);
        expect_same_bits(whole, divided);
    }
    clg_context_free(context);
}

TEST(launch_limit__drivers_without_global_offsets)
{
    bool parts_work;
    assert_int_equal(setenv("CLG_DEVICE_ORIGIN", "1", 1), 0);
    clg_context *context = open_context_and_probe(false, &parts_work);
    assert_false(parts_work);
    test_kernels(context, &cases[0]);
    clg_session *whole = open_case(context, &cases[0]);
    context->current->budget.rates = slow;
    clg_session *divided = open_case(context, &cases[0]);
    const uint64_t n = run(context, whole);
    assert_int_equal(run(context, divided), n);
    expect_same_bits(whole, divided);
    clg_context_free(context);
    assert_int_equal(unsetenv("CLG_DEVICE_ORIGIN"), 0);
}

/* Sets rates by which the product takes `n_limits` times the limit. */
static void estimate_product(clg_context *context, const node_case *c, double n_limits)
{
    const double flops = 2.0 * (double)(c->dims[0][0] * c->dims[0][1] * c->dims[1][1]);
    context->current->budget.rates = fast;
    context->current->budget.rates.flops_per_ns = flops / (n_limits * (double)limit_ns);
}

TEST(launch_limit__as_many_parts_as_the_estimate_requires)
{
    clg_context *context = open_context_with(false);
    const node_case *product = &cases[0];
    const struct {
        double n_limits;
        uint64_t n_more;
    } wants[] = {{0.99, 0}, {1.01, 1}, {2.5, 2}, {3.5, 3}};
    test_kernels(context, product);
    clg_session *whole = open_case(context, product);
    const uint64_t n = run(context, whole);
    for (size_t i = 0; i < sizeof wants / sizeof *wants; i++) {
        estimate_product(context, product, wants[i].n_limits);
        clg_session *s = open_case(context, product);
        assert_int_equal(run(context, s), n + wants[i].n_more);
        clg_session_free(s);
    }
    clg_session_free(whole);
    clg_context_free(context);
}

TEST(launch_limit__default_and_none)
{
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    clg_context *context;
    device_caps caps = {.kind = CLG_DEVICE_DISCRETE_GPU};
    options.cache_dir = "";
    assert_ok(clg_context_create(ocl_platforms_test_device(), &options, &context));
    assert_int_equal(context->current->budget.limit_ns, 0); /* a CPU */
    clg_context_free(context);
    assert_int_equal(caps_launch_limit_ns(&caps, 0), 500000000);
    assert_int_equal(caps_launch_limit_ns(&caps, 20), 20000000);
    assert_int_equal(caps_launch_limit_ns(&caps, UINT32_MAX), 0);
    caps.kind = CLG_DEVICE_INTEGRATED_GPU;
    assert_int_equal(caps_launch_limit_ns(&caps, 0), 500000000);
    caps.is_software = true;
    assert_int_equal(caps_launch_limit_ns(&caps, 0), 0);
    caps = (device_caps){.kind = CLG_DEVICE_ACCELERATOR};
    assert_int_equal(caps_launch_limit_ns(&caps, 0), 0);
}

/* ---- learning -------------------------------------------------------------------------------- */

static uint64_t clock_ns, clock_step_ns;

/* A clock that advances by the same time whenever it is read. */
static uint64_t made_up_clock(void) { return clock_ns += clock_step_ns; }

TEST(launch_limit__learns_by_the_clock)
{
    clg_context *context = open_context_with(false);
    test_kernels(context, &cases[0]);
    context->current->now_ns = made_up_clock;
    clock_step_ns = limit_ns / 4;
    clg_session *s = open_case(context, &cases[0]);
    const uint64_t n = run(context, s);
    assert_int_equal(run(context, s), n);
    clock_step_ns = limit_ns * 5 / 2;
    assert_int_equal(run(context, s), n); /* a long run: the next one measures its launches */
    assert_int_equal(run(context, s), n);
    clock_step_ns = limit_ns / 4;
    assert_int_equal(run(context, s), n + 2); /* 2.5 limits were measured */
    assert_int_equal(run(context, s), n + 2);
    clg_session_free(s);
    s = open_case(context, &cases[0]); /* another session has measured nothing */
    assert_int_equal(run(context, s), n);
    clg_session_free(s);
    clg_context_free(context);
}

static void set_command_ns(const char *ns) { assert_int_equal(setenv("CLG_DEVICE_NS", ns, 1), 0); }

TEST(launch_limit__learns_by_time_stamps)
{
    clg_context *context = open_context_with(true);
    test_kernels(context, &cases[0]);
    set_command_ns("400000");
    clg_session *s = open_case(context, &cases[0]);
    const uint64_t n = run(context, s);
    assert_int_equal(run(context, s), n);
    set_command_ns("1500000");
    assert_int_equal(run(context, s), n);
    set_command_ns("1200000"); /* each of two parts: 2.4 ms in all */
    assert_int_equal(run(context, s), n + 1);
    set_command_ns("100000");
    assert_int_equal(run(context, s), n + 2);
    assert_int_equal(run(context, s), n + 2); /* the longest times count */
    clg_session_free(s);
    /* An estimate that was far too long. */
    estimate_product(context, &cases[0], 3.5);
    s = open_case(context, &cases[0]);
    assert_int_equal(run(context, s), n + 3);
    assert_int_equal(run(context, s), n);
    clg_session_free(s);
    assert_int_equal(unsetenv("CLG_DEVICE_NS"), 0);
    clg_context_free(context);
}

/* ---- what cannot be divided ------------------------------------------------------------------ */

static int n_warnings;
static char warning[512];

static void listen(void *user, clg_log_level level, const char *message)
{
    (void)user;
    if (level != CLG_LOG_WARNING || !strstr(message, "cannot be divided")) return;
    n_warnings++;
    (void)snprintf(warning, sizeof warning, "%s", message);
}

TEST(launch_limit__reports_what_cannot_be_divided)
{
    static const node_case small = {"MatMul", 13, false, NULL, 2, {2, 2}, {{4, 900}, {900, 4}},
                                    NULL};
    clg_context *context = open_context_with(false);
    estimate_product(context, &small, 7.5); /* it has one group */
    clg_set_log(listen, NULL, CLG_LOG_WARNING);
    clg_session *s = open_case(context, &small);
    for (int i = 0; i < 3; i++) assert_ok(clg_session_run(s));
    clg_set_log(NULL, NULL, CLG_LOG_ERROR);
    assert_int_equal(n_warnings, 1);
    assert_non_null(strstr(warning, "the node"));
    assert_non_null(strstr(warning, "gemm"));
    assert_non_null(strstr(warning, " 8 ms, the limit is 1 ms"));
    clg_session_free(s);
    clg_context_free(context);
}

int main(void)
{
    assert_int_equal(
        setenv("OPENCL_LAYERS", CLG_TEST_BUILD_DIR "/tests/layers/opencl_device.so", 1), 0);
    ocl_platforms_show_pocl();
    return test_run_all();
}
