/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests clg_limits: what exceeds a limit is refused with LIMIT before it is allocated or computed,
 * and the session works on. Times are those of a clock that advances with each reading, so that
 * nothing depends on speed.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/large_models.h"
#include "support/fixtures/pocl_context.h"
#include "support/literals.h"

#include "session/session.h"

#include <clgraph/builder.h>
#include <clgraph/inspect.h>

#include <string.h>

TEST_GROUP(open_context, close_context)

enum { MIB = 1 << 20, N_NODES = 40 };

static clg_limits memory_limit(uint64_t max_bytes)
{
    clg_limits limits = CLG_LIMITS_INIT;
    limits.max_memory_bytes = max_bytes;
    return limits;
}

static clg_counters count(void)
{
    clg_counters counters = CLG_COUNTERS_INIT;
    assert_ok(clg_context_counters(context, &counters));
    return counters;
}

static clg_status open_limited(clg_model *model, const clg_limits *limits,
                               clg_session **out_session)
{
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    options.limits = limits;
    return clg_session_create(context, model, &options, out_session);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Writes y = a constant of n float32, from a few bytes. */
static clg_model *load_constant(int64_t n)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    clg_model *model;
    ow_initializer(&m, ow_tensor_raw("n", CLG_INT64, 1, DIMS(1), &n, sizeof n));
    ow_simple_node(&m, "ConstantOfShape", "fill", "n", "y");
    ow_output(&m, "y", CLG_FLOAT32);
    assert_ok(ow_load(&m, &model));
    return model;
}

TEST(model_limits__constants_that_are_too_large_are_not_computed)
{
    const clg_limits limits = memory_limit((uint64_t)64 * MIB);
    clg_model *model = load_constant(25000000); /* 100 MB, which any OpenCL device allocates */
    clg_session *s;
    const clg_counters before = count();
    assert_error(open_limited(model, &limits, &s), CLG_ERROR_LIMIT,
                 "computing the model's constants needs 100");
    assert_null(s);
    assert_non_null(strstr(clg_last_error(), "more than the 67108864 of max_memory_bytes"));
    const clg_counters after = count();
    assert_int_equal(after.device_bytes, before.device_bytes);
    assert_int_equal(after.device_bytes_peak, before.device_bytes_peak);
    assert_int_equal(after.kernels_launched, before.kernels_launched);
    clg_model_free(model);
    model = load_constant(1000); /* a small one is */
    assert_ok(open_limited(model, &limits, &s));
    assert_ok(clg_session_run(s));
    clg_session_free(s);
    clg_model_free(model);
}

/* Writes y = Softmax(x), x: [1, n] for any n. */
static clg_model *load_softmax(void)
{
    ow_model m = {.ir_version = 8, .opset = 13};
    clg_model *model;
    ow_input(&m, "x", CLG_FLOAT32, 2, DIMS(1, -1), "n");
    ow_simple_node(&m, "Softmax", "soft", "x", "y");
    ow_output(&m, "y", CLG_FLOAT32);
    assert_ok(ow_load(&m, &model));
    return model;
}

static void run_small(clg_session *s)
{
    const float x[] = {1, 1, 1, 1};
    float y[4];
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(1, 4), x));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output_data(s, "y", y, sizeof y));
    for (int i = 0; i < 4; i++) assert_true(y[i] > 0.2499F && y[i] < 0.2501F);
}

TEST(model_limits__a_plan_that_is_too_large_is_not_allocated)
{
    const clg_limits limits = memory_limit(4 * MIB);
    clg_model *model = load_softmax();
    clg_session *s;
    clg_value *big;
    assert_ok(clg_value_create(CLG_FLOAT32, 2, DIMS(1, 3 * MIB / 4), &big)); /* not a copy */
    assert_ok(open_limited(model, &limits, &s));
    run_small(s);
    assert_ok(clg_session_set_input(s, "x", big));
    const clg_counters before = count();
    assert_error(clg_session_run(s), CLG_ERROR_LIMIT,
                 "of max_memory_bytes: model 0, weights 0, inputs 3145728, outputs 3145728");
    assert_int_equal(count().device_bytes_peak, before.device_bytes_peak);
    assert_int_equal(count().kernels_launched, before.kernels_launched);
    clg_memory_estimate estimate = CLG_MEMORY_ESTIMATE_INIT;
    assert_error(clg_session_memory(s, &estimate), CLG_ERROR_LIMIT, "max_memory_bytes");
    assert_error(clg_session_prepare(s, NULL, NULL), CLG_ERROR_LIMIT, "max_memory_bytes");
    assert_error(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(1, 3 * MIB / 2), clg_value_data(big)),
                 CLG_ERROR_LIMIT, "max_memory_bytes");
    clg_value_free(big);
    run_small(s);
    clg_session_free(s);
    clg_model_free(model);
}

TEST(model_limits__weights_are_not_packed_beyond_them)
{
    enum { N = 512 }; /* a weight of 1 MiB */
    static float w[N * N];
    const clg_limits tight = memory_limit(MIB / 2), wide = memory_limit(16 * MIB);
    clg_builder *g = start_graph();
    clg_model *model;
    clg_session *s;
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(4, N), NULL));
    assert_ok(sized_constant(g, "w", CLG_FLOAT32, 2, DIMS(N, N), w));
    assert_ok(clg_builder_node(g, NULL, "MatMul", "mul", 2, NAMES("x", "w"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_build(g, &model));
    clg_builder_free(g);
    assert_ok(open_limited(model, &tight, &s));
    const clg_counters before = count();
    assert_error(clg_session_prepare(s, NULL, NULL), CLG_ERROR_LIMIT, "weights 1048");
    assert_int_equal(count().weights_packed, before.weights_packed);
    assert_int_equal(count().device_bytes, before.device_bytes);
    clg_session_free(s);
    assert_ok(open_limited(model, &wide, &s));
    assert_ok(clg_session_prepare(s, NULL, NULL));
    clg_session_free(s);
    clg_model_free(model);
}

TEST(model_limits__every_allocation_counts)
{
    const clg_limits limits = memory_limit(64 * MIB);
    clg_model *model = load_softmax();
    clg_session *s, *clone;
    assert_ok(open_limited(model, &limits, &s));
    run_small(s);
    memory_budget *b = s->exec->budget;
    const uint64_t rest = memory_budget_max(b) - memory_budget_used(b);
    assert_ok(memory_budget_take(b, rest)); /* nothing is left */
    assert_error(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(1, 4), (float[4]){0}), CLG_ERROR_LIMIT,
                 "67108864 of 67108864 bytes are in use");
    assert_error(clg_session_run(s), CLG_ERROR_LIMIT, "bytes are in use");
    assert_error(clg_session_clone(s, &clone), CLG_ERROR_LIMIT, "bytes are in use");
    memory_budget_give(b, rest);
    run_small(s);
    assert_ok(clg_session_clone(s, &clone)); /* shares the budget */
    assert_ptr_equal(clone->exec->budget, b);
    clg_session_free(s);
    run_small(clone);
    clg_session_free(clone);
    clg_model_free(model);
}

/* Memory that grows has slack only where the budget has room for it. */
TEST(model_limits__slack_is_not_refused)
{
    const clg_limits limits = memory_limit(64 * MIB);
    clg_model *model = load_softmax();
    clg_session *s;
    frame_memory m = {0};
    assert_ok(open_limited(model, &limits, &s));
    run_small(s);
    memory_budget *b = s->exec->budget, *before = memory_budget_set(b);
    assert_ok(frame_reserve(s->frame, &m, MIB, OCL_BUFFER_DEVICE));
    const uint64_t taken = memory_budget_max(b) - memory_budget_used(b) - MIB - MIB / 16;
    assert_ok(memory_budget_take(b, taken));
    assert_ok(frame_reserve(s->frame, &m, 2 * MIB, OCL_BUFFER_DEVICE)); /* after giving 1 back */
    assert_true(ocl_buffer_size(m.buffer) == 2 * MIB);
    memory_budget_give(b, taken);
    frame_drop(s->frame, &m);
    (void)memory_budget_set(before);
    clg_session_free(s);
    clg_model_free(model);
}

/* Loads, prepares and runs a model within a limit; frees everything. */
static clg_status whole_life(const large_model *kind, const clg_limits *limits)
{
    clg_model_options options = CLG_MODEL_OPTIONS_INIT;
    clg_model *model;
    clg_session *s = NULL;
    const float zeros[2] = {0};
    options.limits = limits;
    CLG_TRY(large_model_load(kind, N_NODES, &options, &model));
    clg_status status = open_limited(model, limits, &s);
    if (status == CLG_OK) status = clg_session_prepare(s, NULL, NULL);
    if (status == CLG_OK) status = sized_input(s, "x", kind->dtype, kind->rank, DIMS(2), zeros);
    if (status == CLG_OK) status = clg_session_run(s);
    clg_session_free(s);
    clg_model_free(model);
    return status;
}

/* As the tests that fail every allocation: with each limit up to the first that is enough. */
TEST(model_limits__any_limit_is_enough_or_refused)
{
    static const char *const kinds[] = {"layers", "constants", "loop"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const large_model *kind = large_model_find(kinds[i]);
        clg_status status = CLG_ERROR_LIMIT;
        size_t n_refused = 0;
        assert_ok(whole_life(kind, NULL)); /* kernels are compiled and tested */
        for (uint64_t max = 1; status != CLG_OK; max += max / 8 + 1) {
            const clg_limits limits = memory_limit(max);
            assert_true(max < 64 * MIB);
            status = whole_life(kind, &limits);
            if (status == CLG_OK) break;
            assert_error(status, CLG_ERROR_LIMIT, "max_memory_bytes");
            n_refused++;
        }
        print_message("%s: refused %zu limits\n", kind->name, n_refused);
        assert_true(n_refused > 10);
        assert_ok(whole_life(kind, NULL));
    }
}

TEST(model_limits__the_model_counts_in_its_sessions)
{
    const clg_limits wide = memory_limit(64 * MIB);
    clg_model_options options = CLG_MODEL_OPTIONS_INIT;
    clg_model *model;
    clg_session *s;
    assert_ok(large_model_load(large_model_find("layers"), N_NODES, NULL, &model));
    assert_null(model->budget);
    assert_ok(open_limited(model, &wide, &s));
    const uint64_t own = memory_budget_used(s->exec->budget);
    clg_session_free(s);
    clg_model_free(model);
    options.limits = &wide;
    assert_ok(large_model_load(large_model_find("layers"), N_NODES, &options, &model));
    const uint64_t used = memory_budget_used(model->budget);
    assert_true(used > 1000);
    const clg_limits less = memory_limit(used - 1);
    assert_error(open_limited(model, &less, &s), CLG_ERROR_LIMIT, "max_memory_bytes");
    assert_ok(open_limited(model, &wide, &s));
    assert_true(memory_budget_used(s->exec->budget) >= own / 2 + used);
    clg_session_free(s);
    clg_model_free(model);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static size_t count_steps(clg_session *s)
{
    plan *p;
    assert_ok(session_plan(s, &p));
    assert_true(p->root->last);
    const size_t n = p->root->n_steps;
    plan_free(p);
    return n;
}

TEST(model_limits__steps_are_counted)
{
    static const char *const kinds[] = {"layers", "loop"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        clg_limits limits = CLG_LIMITS_INIT;
        clg_model *model;
        clg_session *s;
        assert_ok(large_model_load(large_model_find(kinds[i]), N_NODES, NULL, &model));
        assert_ok(open_limited(model, NULL, &s));
        const size_t n = count_steps(s);
        clg_session_free(s);
        assert_true(n >= N_NODES);
        limits.max_steps = n;
        assert_ok(open_limited(model, &limits, &s));
        assert_ok(clg_session_prepare(s, NULL, NULL));
        clg_session_free(s);
        limits.max_steps = n - 1;
        assert_ok(open_limited(model, &limits, &s));
        assert_error(clg_session_prepare(s, NULL, NULL), CLG_ERROR_LIMIT,
                     "the plan has more steps than the");
        clg_session_free(s);
        clg_model_free(model);
    }
}

/* An output that is an input is copied by a step that has no node. */
TEST(model_limits__copies_of_outputs_are_steps)
{
    static const float one = 1;
    clg_limits limits = CLG_LIMITS_INIT;
    clg_builder *g = start_graph();
    clg_model *model;
    clg_session *s;
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 1, DIMS(1), NULL));
    assert_ok(clg_builder_node(g, NULL, "Neg", "minus", 1, NAMES("x"), 1, NAMES("y")));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_output(g, "x"));
    assert_ok(clg_builder_build(g, &model));
    clg_builder_free(g);
    for (limits.max_steps = 1; limits.max_steps <= 2; limits.max_steps++) {
        assert_ok(open_limited(model, &limits, &s));
        assert_ok(sized_input(s, "x", CLG_FLOAT32, 1, DIMS(1), &one));
        if (limits.max_steps == 1)
            assert_error(clg_session_run(s), CLG_ERROR_LIMIT,
                         "copying a tensor: the plan has more");
        else
            assert_ok(clg_session_run(s));
        clg_session_free(s);
    }
    clg_model_free(model);
}

/* ---- time ------------------------------------------------------------------------------------ */

#define MS UINT64_C(1000000)

static atomic_uint_least64_t n_readings;

/* A clock that is a millisecond later at each reading. */
static uint64_t tick(void) { return atomic_fetch_add(&n_readings, 1) * MS; }

/* A clock that stands still: the limits of a slow machine are those of a fast one. */
static uint64_t still(void) { return MS; }

typedef struct phases {
    const large_model *kind;
    clg_model *model;
    clg_session *session;
    clg_limits limits;
} phases;

static clg_status load(phases *p)
{
    clg_model_options options = CLG_MODEL_OPTIONS_INIT;
    clg_model *model;
    options.limits = &p->limits;
    const clg_status status = large_model_load(p->kind, N_NODES, &options, &model);
    clg_model_free(model);
    return status;
}

static clg_status create(phases *p)
{
    clg_session *s;
    clg_session_free(p->session); /* else the new one shares what it has made */
    p->session = NULL;
    const clg_status status = open_limited(p->model, &p->limits, &s);
    clg_session_free(s);
    return status;
}

static clg_status prepare(phases *p)
{
    exec_forget_plans(p->session->exec);
    return clg_session_prepare(p->session, NULL, NULL);
}

static clg_status run(phases *p) { return clg_session_run(p->session); }

static clg_status plan_and_run(phases *p)
{
    exec_forget_plans(p->session->exec);
    return clg_session_run(p->session);
}

/* Does the work of a phase with a clock that advances by each check; returns the readings. */
static uint64_t timed(phases *p, clg_status (*phase)(phases *p), clg_status *out_status)
{
    atomic_store(&n_readings, 0);
    limits_set_clock(tick);
    *out_status = phase(p);
    limits_set_clock(still);
    return atomic_load(&n_readings);
}

static void open_phases(phases *p, uint64_t max_compile_ms, uint64_t max_run_ms)
{
    *p = (phases){.kind = large_model_find("layers"), .limits = CLG_LIMITS_INIT};
    p->limits.max_compile_ms = max_compile_ms;
    p->limits.max_run_ms = max_run_ms;
    limits_set_clock(still);
    assert_ok(large_model_load(p->kind, N_NODES, NULL, &p->model));
    assert_ok(open_limited(p->model, &p->limits, &p->session));
    assert_ok(sized_input(p->session, "x", CLG_FLOAT32, 1, DIMS(2), (float[2]){0}));
}

static void close_phases(phases *p)
{
    clg_session_free(p->session);
    clg_model_free(p->model);
    limits_set_clock(NULL);
}

TEST(model_limits__loading_creating_and_preparing_end_in_time)
{
    clg_status (*const each[])(phases * p) = {load, create, prepare, plan_and_run};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        phases p;
        clg_status status;
        open_phases(&p, N_NODES, 0);
        const uint64_t n = timed(&p, each[i], &status);
        assert_error(status, CLG_ERROR_LIMIT, "took longer than the 40 ms of max_compile_ms");
        assert_true(n < (uint64_t)4 * N_NODES); /* it ends soon after */
        assert_ok(each[i](&p));
        close_phases(&p);
    }
}

TEST(model_limits__runs_end_in_time_and_the_next_ones_are_right)
{
    phases p;
    clg_status status;
    float before[2], after[2];
    open_phases(&p, 0, N_NODES / 2);
    assert_ok(run(&p));
    assert_ok(clg_session_get_output_data(p.session, "y", before, sizeof before));
    (void)timed(&p, run, &status);
    assert_error(status, CLG_ERROR_LIMIT, "the run took longer than the 20 ms of max_run_ms");
    assert_error(clg_session_get_output_data(p.session, "y", after, sizeof after),
                 CLG_ERROR_NOT_FOUND, "y");
    assert_ok(run(&p));
    assert_ok(clg_session_get_output_data(p.session, "y", after, sizeof after));
    assert_memory_equal(before, after, sizeof before);
    close_phases(&p);
}

TEST(model_limits__planning_is_not_the_time_of_the_run)
{
    enum { WIDE = 1 << 20 };
    phases p;
    clg_status status;
    open_phases(&p, WIDE, WIDE);
    assert_ok(plan_and_run(&p));
    const uint64_t planned = timed(&p, plan_and_run, &status);
    assert_ok(status);
    const uint64_t alone = timed(&p, run, &status);
    assert_ok(status);
    close_phases(&p);
    assert_true(planned > 2 * alone + 4);
    open_phases(&p, WIDE, planned / 2); /* enough for the run, not for planning */
    assert_ok(plan_and_run(&p));
    (void)timed(&p, plan_and_run, &status);
    assert_ok(status);
    close_phases(&p);
}

/* ---- options --------------------------------------------------------------------------------- */

TEST(model_limits__options_are_checked_and_copied)
{
    clg_limits limits = CLG_LIMITS_UNTRUSTED;
    clg_model_options options = CLG_MODEL_OPTIONS_INIT;
    clg_model *model = load_softmax(), *other;
    clg_session *s, *same, *without;
    assert_int_equal(limits.max_memory_bytes, 1 << 30);
    assert_ok(open_limited(model, &limits, &s));
    assert_ok(open_limited(model, &limits, &same));
    assert_ptr_equal(s->exec, same->exec);
    assert_ok(open_limited(model, NULL, &without));
    assert_ptr_not_equal(s->exec, without->exec);
    assert_null(without->exec->budget);
    limits.struct_size = 0;
    run_small(s);
    clg_session *none;
    assert_error(open_limited(model, &limits, &none), CLG_ERROR_INVALID_ARGUMENT, "struct_size");
    options.limits = &limits;
    assert_error(large_model_load(large_model_find("layers"), 2, &options, &other),
                 CLG_ERROR_INVALID_ARGUMENT, "struct_size");
    clg_session_free(s);
    clg_session_free(same);
    clg_session_free(without);
    clg_model_free(model);
}
