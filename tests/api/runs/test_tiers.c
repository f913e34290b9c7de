/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests tiers (decision 94): new kernels run without optimisation first, where that pays; optimised
 * ones replace them in the background, with the same bits, and are what the cache keeps. On other
 * drivers nothing of this may happen. No test depends on how long the compiler takes.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"
#include "support/fakes/opencl_faults.h"
#include "support/fixtures/build_session.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/literals.h"
#include "support/scratch.h"

#include "base/clock.h"
#include "ocl/ocl_context.h"
#include "session/context_handle.h"
#include "session/session.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ROWS = 5, MANY_ROWS = 48, INNER = 19, COLS = 13, N_THREADS = 3 };
/* A run that never gets its optimised kernels ends the test after this. */
#define PATIENCE_NS UINT64_C(240000000000)

static opencl_faults faults;

static clg_context *open_tested(const char *store, clg_compilation compilation, const char *helper,
                                clg_selftest selftest)
{
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    clg_context *context;
    options.cache_dir = scratch_path(store);
    options.compilation = compilation;
    options.compile_helper = helper;
    options.selftest = selftest;
    assert_ok(clg_context_create(ocl_platforms_test_device(), &options, &context));
    return context;
}

static clg_context *open_context(const char *store, clg_compilation compilation, const char *helper)
{
    return open_tested(store, compilation, helper, CLG_SELFTEST_ON);
}

/* y = Softmax(Sigmoid(x w)), x [ROWS,INNER], w [INNER,cols] */
static clg_session *open_session(clg_context *context, int64_t cols)
{
    float w[INNER * (COLS + 1)];
    assert_true(cols <= COLS + 1);
    for (int64_t i = 0; i < INNER * cols; i++) w[i] = (float)(i * 7 % 23 - 11) / 16;
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, INNER), NULL));
    assert_ok(sized_constant(g, "w", CLG_FLOAT32, 2, DIMS(INNER, cols), w));
    assert_ok(clg_builder_node(g, "", "MatMul", "", 2, NAMES("x", "w"), 1, NAMES("xw")));
    assert_ok(clg_builder_node(g, "", "Sigmoid", "", 1, NAMES("xw"), 1, NAMES("s")));
    assert_ok(clg_builder_node(g, "", "Softmax", "", 1, NAMES("s"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    return build_session(context, g, NULL);
}

/* Computes rows <= MANY_ROWS rows of y. MANY_ROWS is a multiple of each register tile's rows. */
static clg_status run_rows(clg_session *s, int rows, float *y)
{
    float x[MANY_ROWS * INNER];
    const size_t n = (size_t)rows;
    for (int i = 0; i < rows * INNER; i++) x[i] = (float)(i * 5 % 17 - 8) / 8;
    CLG_TRY(clg_session_set_input_data(s, "x", CLG_FLOAT32, 2, DIMS(rows, INNER), x,
                                       n * INNER * sizeof *x));
    CLG_TRY(clg_session_run(s));
    return clg_session_get_output_data(s, "y", y, n * COLS * sizeof *y);
}

static clg_status run(clg_session *s, float y[ROWS * COLS]) { return run_rows(s, ROWS, y); }

static bool gains(const clg_context *context)
{
    const ocl_context *ocl = context->current->ocl;
    return (ocl_context_caps(ocl)->quirks & QUIRK_SLOW_OPTIMIZER) != 0;
}

static bool has_baseline(const clg_session *s) { return s->exec->has_baseline; }

static ocl_counters counters_of(const clg_context *context)
{
    ocl_counters counters;
    ocl_context_counters(context->current->ocl, &counters);
    return counters;
}

/* Runs until all kernels are optimised, and checks each run's bits. */
static void run_until_optimized(clg_session *s, const float *expected)
{
    float y[ROWS * COLS];
    const uint64_t start = time_now_ns();
    do {
        assert_ok(run(s, y));
        assert_memory_equal(y, expected, sizeof y);
        assert_true(time_now_ns() - start < PATIENCE_NS);
    } while (has_baseline(s));
}

/* Computes the model in one way, in a context with a new store. */
static void compute(const char *store, clg_compilation compilation, float y[ROWS * COLS])
{
    clg_context *context = open_context(store, compilation, NULL);
    clg_session *s = open_session(context, COLS);
    assert_ok(run(s, y));
    clg_session_free(s);
    clg_context_free(context);
}

/* Checks that a new context of the store has everything, optimised. */
static void expect_warm(const char *store, clg_compilation compilation, const float *expected)
{
    float y[ROWS * COLS];
    clg_context *context = open_context(store, compilation, NULL);
    clg_session *s = open_session(context, COLS);
    assert_ok(run(s, y));
    assert_memory_equal(y, expected, sizeof y);
    assert_false(has_baseline(s));
    assert_int_equal(counters_of(context).programs_compiled, 0);
    assert_true(counters_of(context).programs_loaded > 0);
    clg_session_free(s);
    clg_context_free(context);
}

TEST(tiers__give_the_same_bits)
{
    float expected[ROWS * COLS], y[ROWS * COLS];
    compute("optimized", CLG_COMPILATION_OPTIMIZED, expected);
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int k = 0; k < COLS; k++) sum += (double)expected[i * COLS + k];
        assert_true(sum > 0.999 && sum < 1.001);
    }
    compute("baseline", CLG_COMPILATION_BASELINE, y);
    assert_memory_equal(y, expected, sizeof y);
    expect_warm("baseline", CLG_COMPILATION_BASELINE, expected);
    compute("tiered", CLG_COMPILATION_TIERED, y);
    assert_memory_equal(y, expected, sizeof y);
}

/* Without self-tests, after which an optimised kernel would replace a wrong one: full register
 * tiles, and with fewer rows. */
TEST(tiers__baseline_kernels_are_right_untested)
{
    enum { N_ROWS = 3 };
    static const int rows[N_ROWS] = {1, ROWS, MANY_ROWS};
    static const clg_compilation each[2] = {CLG_COMPILATION_OPTIMIZED, CLG_COMPILATION_BASELINE};
    float y[2][N_ROWS][MANY_ROWS * COLS] = {{{0}}};
    for (int c = 0; c < 2; c++) {
        clg_context *context =
            open_tested(c ? "untested" : "untested optimized", each[c], NULL, CLG_SELFTEST_OFF);
        clg_session *s = open_session(context, COLS);
        for (int i = 0; i < N_ROWS; i++) assert_ok(run_rows(s, rows[i], y[c][i]));
        clg_session_free(s);
        clg_context_free(context);
    }
    for (int i = 0; i < N_ROWS; i++) assert_memory_equal(y[1][i], y[0][i], sizeof y[0][i]);
}

TEST(tiers__are_replaced)
{
    float expected[ROWS * COLS], y[ROWS * COLS];
    compute("for comparison", CLG_COMPILATION_OPTIMIZED, expected);
    clg_context *context = open_context("replaced", CLG_COMPILATION_TIERED, NULL);
    clg_session *s = open_session(context, COLS);
    assert_ok(run(s, y));
    assert_int_equal(has_baseline(s), gains(context));
    run_until_optimized(s, expected);
    /* Another session, whose kernels are there already. */
    clg_session *other = open_session(context, COLS);
    assert_ok(run(other, y));
    assert_false(has_baseline(other));
    clg_session_free(other);
    clg_session_free(s);
    clg_context_free(context);
    expect_warm("replaced", CLG_COMPILATION_TIERED, expected);
    expect_warm("replaced", CLG_COMPILATION_OPTIMIZED, expected);
}

/* A process that ends after one run leaves the optimised kernels, too. */
TEST(tiers__are_finished_at_the_end)
{
    float y[ROWS * COLS];
    compute("at the end", CLG_COMPILATION_TIERED, y);
    expect_warm("at the end", CLG_COMPILATION_OPTIMIZED, y);
}

TEST(tiers__do_not_outlast_a_preparation)
{
    float expected[ROWS * COLS], y[ROWS * COLS];
    clg_context *context = open_context("prepared", CLG_COMPILATION_TIERED, NULL);
    clg_session *s = open_session(context, COLS);
    assert_ok(clg_session_set_input_shape(s, "x", 2, DIMS(ROWS, INNER)));
    assert_ok(clg_session_prepare(s, NULL, NULL));
    assert_false(has_baseline(s));
    assert_ok(run(s, expected));
    assert_false(has_baseline(s));
    clg_session_free(s);
    clg_context_free(context);
    context = open_context("prepared later", CLG_COMPILATION_TIERED, NULL);
    s = open_session(context, COLS);
    assert_ok(run(s, y));
    assert_memory_equal(y, expected, sizeof y);
    assert_ok(clg_session_prepare(s, NULL, NULL));
    assert_false(has_baseline(s));
    assert_ok(run(s, y));
    assert_memory_equal(y, expected, sizeof y);
    clg_session_free(s);
    clg_context_free(context);
}

/* Nothing compiles the optimised kernels without a helper, and large ones would take long. */
TEST(tiers__only_where_they_pay)
{
    float y[ROWS * COLS], x[512 * 1024] = {0};
    clg_context *context = open_context("no helper", CLG_COMPILATION_TIERED, "off");
    clg_session *s = open_session(context, COLS);
    assert_ok(run(s, y));
    assert_false(has_baseline(s));
    clg_session_free(s);
    clg_context_free(context);
    context = open_context("large", CLG_COMPILATION_TIERED, NULL);
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(512, 1024), NULL));
    assert_ok(clg_builder_node(g, "", "Transpose", "", 1, NAMES("x"), 1, NAMES("t")));
    assert_ok(clg_builder_node(g, "", "MatMul", "", 2, NAMES("x", "t"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    s = build_session(context, g, NULL);
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(512, 1024), x));
    assert_ok(clg_session_run(s));
    plan *p;
    assert_ok(session_plan(s, &p));
    for (size_t i = 0; i < p->root->n_steps; i++) {
        const step *what = p->root->steps[i].what;
        if (what->flops > 1e8) assert_false(what->kernel.baseline);
    }
    plan_free(p);
    clg_session_free(s);
    clg_context_free(context);
}

typedef struct threaded {
    clg_context *context;
    const float *expected;
} threaded;

static void *run_in_thread(void *argument)
{
    const threaded *t = argument;
    clg_session *s = open_session(t->context, COLS);
    run_until_optimized(s, t->expected);
    clg_session_free(s);
    return NULL;
}

TEST(tiers__in_several_threads)
{
    pthread_t threads[N_THREADS];
    float expected[ROWS * COLS];
    compute("before the threads", CLG_COMPILATION_OPTIMIZED, expected);
    threaded t = {open_context("threads", CLG_COMPILATION_TIERED, NULL), expected};
    clg_session *other = open_session(t.context, COLS + 1); /* other kernels beside them */
    float x[ROWS * INNER] = {0};
    assert_ok(sized_input(other, "x", CLG_FLOAT32, 2, DIMS(ROWS, INNER), x));
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_in_thread, &t), 0);
    assert_ok(clg_session_run(other));
    for (int i = 0; i < N_THREADS; i++) (void)pthread_join(threads[i], NULL);
    clg_session_free(other);
    clg_context_free(t.context);
    expect_warm("threads", CLG_COMPILATION_TIERED, expected);
}

/* Whichever allocation fails, a run gives the right result or says that memory ran out. */
static void fail_at(const float *expected, size_t at)
{
    float y[ROWS * COLS];
    char store[32];
    (void)snprintf(store, sizeof store, "fails at %zu", at);
    clg_context *context = open_context(store, CLG_COMPILATION_TIERED, NULL);
    clg_session *s = open_session(context, COLS);
    failing_alloc_arm(at);
    for (int i = 0; i < 3; i++) {
        const clg_status status = run(s, y);
        if (status == CLG_OK)
            assert_memory_equal(y, expected, sizeof y);
        else
            assert_int_equal(status, CLG_ERROR_OUT_OF_HOST_MEMORY);
    }
    assert_ok(run(s, y));
    assert_memory_equal(y, expected, sizeof y);
    clg_session_free(s);
    clg_context_free(context); /* which may be where the allocation fails */
    failing_alloc_arm(SIZE_MAX);
}

TEST(tiers__survive_a_lack_of_memory)
{
    float expected[ROWS * COLS];
    failing_alloc_install();
    compute("before the failures", CLG_COMPILATION_OPTIMIZED, expected);
    for (size_t at = 1; at < 3000; at += at / 2 + 1) fail_at(expected, at);
    failing_alloc_remove();
}

/* Whichever OpenCL call fails while optimised kernels take over fails one run at most, and leaks
 * nothing. */
TEST(tiers__survive_calls_that_fail)
{
    float expected[ROWS * COLS], y[ROWS * COLS];
    compute("before the calls", CLG_COMPILATION_OPTIMIZED, expected);
    const long n_live = opencl_faults_total_live(&faults);
    bool has_fired = true;
    for (long n = 0; has_fired; n += n / 3 + 1) {
        size_t n_failed = 0;
        char store[32];
        (void)snprintf(store, sizeof store, "call %ld fails", n);
        clg_context *context = open_context(store, CLG_COMPILATION_TIERED, NULL);
        clg_session *s = open_session(context, COLS);
        assert_ok(run(s, y));
        while (tier_queue_is_pending(&context->current->ocl->tiers))
            (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        faults.arm(n, -6 /* CL_OUT_OF_HOST_MEMORY */);
        for (int i = 0; i < 12; i++) {
            if (run(s, y) == CLG_OK)
                assert_memory_equal(y, expected, sizeof y);
            else
                n_failed++;
        }
        has_fired = faults.has_fired();
        faults.arm(-1, 0);
        assert_true(n_failed <= 1);
        assert_ok(run(s, y));
        assert_memory_equal(y, expected, sizeof y);
        clg_session_free(s);
        clg_context_free(context);
        assert_int_equal(opencl_faults_total_live(&faults), n_live);
    }
}

int main(void)
{
    if (!opencl_faults_open(&faults)) return 1;
    return test_run_all();
}
