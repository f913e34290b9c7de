/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights that exceed the device's largest buffer, under a layer that allows buffers of 256 KiB
 * (layers/opencl_device.c): operators that can be computed in parts give the results that they give
 * without the limit; others, and all of them without the pass `split`, are refused with a message
 * that names the limit.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/literals.h"
#include "support/platform.h"
#include "support/scratch.h"

#include "session/session.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <string.h>

#define LIMIT "256K"
enum { MAX_WEIGHTS = 400 << 10, MAX_RESULTS = 64 << 10, ROWS = 5, WIDTH = 40 };

static float numbers[MAX_WEIGHTS], *const x = numbers;
static uint8_t bytes[MAX_WEIGHTS];
static const int64_t indices[] = {0, -1, 2999, 1500, -3000, 2047, 1, 100, -1600, 2499, 42, 1024};
static int32_t narrow[sizeof indices / sizeof *indices];
enum { N_INDICES = sizeof indices / sizeof *indices };

/* ---- graphs ---------------------------------------------------------------------------------- */

static void weights(clg_builder *g, const char *name, size_t rank, const int64_t *dims)
{
    assert_ok(sized_constant(g, name, CLG_FLOAT32, rank, dims, numbers + 7));
}

static void apply(clg_builder *g, const char *op, size_t n, const char *const *inputs,
                  const char *output)
{
    assert_ok(clg_builder_node(g, NULL, op, NULL, n, inputs, 1, &output));
}

static void finish(clg_builder *g, const char *op, size_t n, const char *const *inputs)
{
    apply(g, op, n, inputs, "y");
    assert_ok(clg_builder_output(g, "y"));
}

static void input_matrix(clg_builder *g)
{
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(ROWS, WIDTH), NULL));
}

static void lookup(clg_builder *g)
{
    weights(g, "w", 2, DIMS(3000, 33));
    assert_ok(clg_builder_input(g, "i", CLG_INT64, 2, DIMS(3, N_INDICES / 3), NULL));
    finish(g, "Gather", 2, NAMES("w", "i"));
}

static void lookup_of_scalars(clg_builder *g)
{
    weights(g, "w", 1, DIMS(100000));
    assert_ok(clg_builder_input(g, "n", CLG_INT32, 1, DIMS(N_INDICES), NULL));
    finish(g, "Gather", 2, NAMES("w", "n"));
}

static void product(clg_builder *g)
{
    input_matrix(g);
    weights(g, "w", 2, DIMS(WIDTH, 2001));
    finish(g, "MatMul", 2, NAMES("x", "w"));
}

/* One table is the embedding of indices and, transposed, the classifier. */
static void tied(clg_builder *g)
{
    weights(g, "w", 2, DIMS(3000, 33));
    assert_ok(clg_builder_input(g, "i", CLG_INT64, 2, DIMS(3, N_INDICES / 3), NULL));
    apply(g, "Gather", 2, NAMES("w", "i"), "e");
    apply(g, "Transpose", 1, NAMES("w"), "t");
    apply(g, "ReduceMean", 1, NAMES("e"), "m");
    apply(g, "Sub", 2, NAMES("e", "m"), "d");
    weights(g, "r", 2, DIMS(1, N_INDICES));
    const int64_t flat[] = {N_INDICES, 33};
    assert_ok(sized_constant(g, "f", CLG_INT64, 1, DIMS(2), flat));
    apply(g, "Reshape", 2, NAMES("d", "f"), "rows");
    apply(g, "MatMul", 2, NAMES("r", "rows"), "h");
    finish(g, "MatMul", 2, NAMES("h", "t"));
}

static void transposed_gemm(clg_builder *g)
{
    input_matrix(g);
    weights(g, "w", 2, DIMS(2001, WIDTH));
    weights(g, "c", 1, DIMS(2001));
    finish(g, "Gemm", 3, NAMES("x", "w", "c"));
    assert_ok(clg_builder_attribute_int(g, "transB", 1));
}

static void scaled_gemm(clg_builder *g)
{
    input_matrix(g);
    weights(g, "w", 2, DIMS(WIDTH, 2001));
    weights(g, "c", 2, DIMS(ROWS, 1));
    finish(g, "Gemm", 3, NAMES("x", "w", "c"));
    assert_ok(clg_builder_attribute_float(g, "alpha", 0.5f));
    assert_ok(clg_builder_attribute_float(g, "beta", 2));
}

static void convolution(clg_builder *g)
{
    assert_ok(clg_builder_input(g, "image", CLG_FLOAT32, 4, DIMS(1, 8, 9, 9), NULL));
    weights(g, "w", 4, DIMS(1001, 8, 3, 3));
    weights(g, "b", 1, DIMS(1001));
    finish(g, "Conv", 3, NAMES("image", "w", "b"));
}

static void quantised_product(clg_builder *g)
{
    const char *const inputs[] = {"q", "w", "s", "z"}, *const output = "y";
    assert_ok(clg_builder_input(g, "q", CLG_FLOAT32, 2, DIMS(ROWS, 64), NULL));
    assert_ok(sized_constant(g, "w", CLG_UINT8, 3, DIMS(10001, 4, 8), bytes));
    weights(g, "s", 1, DIMS(40004));
    assert_ok(sized_constant(g, "z", CLG_UINT8, 1, DIMS(20002), bytes));
    assert_ok(clg_builder_node(g, "com.microsoft", "MatMulNBits", NULL, 4, inputs, 1, &output));
    assert_ok(clg_builder_attribute_int(g, "K", 64));
    assert_ok(clg_builder_attribute_int(g, "N", 10001));
    assert_ok(clg_builder_attribute_int(g, "bits", 4));
    assert_ok(clg_builder_attribute_int(g, "block_size", 16));
    assert_ok(clg_builder_output(g, "y"));
}

static void grouped_convolution(clg_builder *g)
{
    assert_ok(clg_builder_input(g, "image", CLG_FLOAT32, 4, DIMS(1, 8, 9, 9), NULL));
    weights(g, "w", 4, DIMS(2002, 4, 3, 3));
    finish(g, "Conv", 2, NAMES("image", "w"));
    assert_ok(clg_builder_attribute_int(g, "group", 2));
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct small_case {
    const char *name;
    void (*build)(clg_builder *g);
    size_t n; /* elements of the result */
    /* In the plan: the operator in parts, and what joins them; NULL: in place. */
    const char *op, *joined_by;
} small_case;

static const small_case cases[] = {
    {"lookup", lookup, N_INDICES * 33, "Gather", "Where"},
    {"lookup of scalars", lookup_of_scalars, N_INDICES, "Gather", "Where"},
    {"product", product, ROWS * 2001, "MatMul", "Concat"},
    {"tied", tied, 3000, "MatMul", "Where"},
    {"transposed Gemm", transposed_gemm, ROWS * 2001, "Gemm", "Concat"},
    {"scaled Gemm", scaled_gemm, ROWS * 2001, "Gemm", "Concat"},
    {"convolution", convolution, 1001 * 7 * 7, "Conv", NULL},
    {"quantised product", quantised_product, ROWS * 10001, "MatMulNBits", "Concat"},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static clg_context *open_context(const char *limit)
{
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    clg_context *context;
    assert_true(platform_set_env("CLG_DEVICE_ALLOC", limit));
    options.cache_dir = scratch_path(limit ? "small" : "whole");
    assert_ok(clg_context_create(ocl_platforms_test_device(), &options, &context));
    return context;
}

static clg_status set_inputs(clg_session *s, void (*build)(clg_builder *))
{
    if (build == lookup || build == tied)
        return sized_input(s, "i", CLG_INT64, 2, DIMS(3, N_INDICES / 3), indices);
    if (build == lookup_of_scalars)
        return sized_input(s, "n", CLG_INT32, 1, DIMS(N_INDICES), narrow);
    if (build == convolution || build == grouped_convolution)
        return sized_input(s, "image", CLG_FLOAT32, 4, DIMS(1, 8, 9, 9), x);
    if (build == quantised_product) return sized_input(s, "q", CLG_FLOAT32, 2, DIMS(ROWS, 64), x);
    return sized_input(s, "x", CLG_FLOAT32, 2, DIMS(ROWS, WIDTH), x);
}

/* Creates a session and runs it. y may be NULL. *out_plan is freed by the caller. */
static clg_status run(clg_context *context, const small_case *c, clg_kernel_class kernels,
                      const char *without, float *y, char **out_plan)
{
    clg_session_options o = CLG_SESSION_OPTIONS_INIT;
    clg_builder *g = start_graph();
    clg_model *model;
    clg_session *s = NULL;
    o.kernels = kernels;
    o.disabled_passes = &without;
    o.n_disabled_passes = without != NULL;
    c->build(g);
    assert_ok(clg_builder_build(g, &model));
    clg_builder_free(g);
    clg_status status = clg_session_create(context, model, &o, &s);
    if (status == CLG_OK) status = set_inputs(s, c->build);
    if (status == CLG_OK) status = clg_session_run(s);
    if (status == CLG_OK) status = clg_session_get_output_data(s, "y", y, c->n * sizeof *y);
    if (status == CLG_OK && out_plan) status = clg_session_plan_text(s, out_plan);
    clg_session_free(s);
    clg_model_free(model);
    return status;
}

static void expect_close(const small_case *c, const float *got, const float *want)
{
    for (size_t i = 0; i < c->n; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-4f * (1 + fabsf(want[i]))))
            fail_msg("%s: element %zu is %g, not %g", c->name, i, (double)got[i], (double)want[i]);
}

static bool has(const char *plan, const char *op) { return !op || strstr(plan, op); }

static const clg_kernel_class classes[] = {CLG_KERNELS_SIMD, CLG_KERNELS_SIMT};

TEST(small_buffers__weights_are_split)
{
    static float want[N_CASES][MAX_RESULTS], got[MAX_RESULTS];
    for (size_t k = 0; k < 2; k++) {
        clg_context *context = open_context(NULL);
        for (size_t i = 0; i < N_CASES; i++)
            assert_ok(run(context, &cases[i], classes[k], NULL, want[i], NULL));
        clg_context_free(context);
        context = open_context(LIMIT);
        for (size_t i = 0; i < N_CASES; i++) {
            char *plan;
            assert_ok(run(context, &cases[i], classes[k], NULL, got, &plan));
            expect_close(&cases[i], got, want[i]);
            const char *first = strstr(plan, cases[i].op);
            if (!first || !strstr(first + 1, cases[i].op) || !has(plan, cases[i].joined_by))
                fail_msg("%s: not split:\n%s", cases[i].name, plan);
            clg_text_free(plan);
        }
        clg_context_free(context);
    }
}

TEST(small_buffers__without_the_pass_weights_are_refused)
{
    static float y[MAX_RESULTS];
    clg_context *context = open_context(LIMIT);
    for (size_t i = 0; i < N_CASES; i++)
        assert_error(run(context, &cases[i], CLG_KERNELS_SIMT, "split", y, NULL),
                     CLG_ERROR_OUT_OF_DEVICE_MEMORY, "largest");
    clg_context_free(context);
}

TEST(small_buffers__what_is_not_split_is_refused)
{
    static float y[MAX_RESULTS];
    static const small_case grouped = {"grouped", grouped_convolution, 2002 * 7 * 7, "", NULL};
    clg_context *context = open_context(LIMIT);
    assert_error(run(context, &grouped, CLG_KERNELS_SIMT, NULL, y, NULL),
                 CLG_ERROR_OUT_OF_DEVICE_MEMORY, "largest");
    clg_context_free(context);
}

/* ---- stacked outputs of loops ---------------------------------------------------------------- */

/* 154,800 bytes of stacked output, little more than 128 KiB, to which its memory doubles. */
enum { SLICE = 9, TRIP = 4300 };

/* v = v + 1, TRIP times; each v is stacked. */
static clg_session *open_loop(clg_context *context, const clg_session_options *options)
{
    ow_model m = {.ir_version = 8, .opset = 13}, body = {0};
    ow_bytes loop = ow_node("Loop", "", "trip,,x", "last,all");
    const int64_t trip = TRIP;
    const float one = 1;
    clg_model *model;
    clg_session *s;
    ow_loop_inputs(&body);
    ow_input(&body, "v", CLG_FLOAT32, 1, DIMS(SLICE), NULL);
    ow_initializer(&body, ow_tensor_raw("one", CLG_FLOAT32, 0, NULL, &one, sizeof one));
    ow_simple_node(&body, "Add", "", "v,one", "next");
    ow_simple_node(&body, "Identity", "", "on", "goes");
    ow_output(&body, "goes", CLG_BOOL);
    ow_output(&body, "next", CLG_FLOAT32);
    ow_output(&body, "next", CLG_FLOAT32);
    ow_attribute_graph(&loop, "body", body.graph);
    ow_input(&m, "x", CLG_FLOAT32, 1, DIMS(SLICE), NULL);
    ow_initializer(&m, ow_tensor_raw("trip", CLG_INT64, 0, NULL, &trip, sizeof trip));
    ow_add_node(&m, loop);
    ow_output(&m, "last", CLG_FLOAT32);
    ow_output(&m, "all", CLG_FLOAT32);
    assert_ok(ow_load(&m, &model));
    assert_ok(clg_session_create(context, model, options, &s));
    clg_model_free(model);
    return s;
}

/* Runs the loop; returns how often its frame's memories changed. */
static uint64_t run_loop(clg_session *s)
{
    const float zeros[SLICE] = {0};
    clg_value *all;
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 1, DIMS(SLICE), zeros));
    const uint64_t before = s->frame->stamp;
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output(s, "all", &all));
    assert_int_equal(clg_value_dims(all)[0], TRIP);
    for (int i = 0; i < TRIP; i++)
        assert_true(((const float *)clg_value_data(all))[i * SLICE + i % SLICE] == (float)(i + 1));
    clg_value_free(all);
    return s->frame->stamp - before;
}

/* The memory of a stacked output does not move at each slice where twice its size is more than a
 * buffer may have. */
TEST(small_buffers__stacked_outputs_grow_seldom_up_to_the_limit)
{
    clg_context *context = open_context("200K");
    clg_session *s = open_loop(context, NULL);
    assert_true(run_loop(s) < 100);
    clg_session_free(s);
    clg_context_free(context);
}

/* Nor is it refused where twice its size would exceed the session's memory. */
TEST(small_buffers__stacked_outputs_need_no_more_than_they_have)
{
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    clg_limits limits = CLG_LIMITS_INIT;
    clg_context *context = open_context("256M");
    limits.max_memory_bytes = (uint64_t)64 << 20;
    options.limits = &limits;
    clg_session *s = open_loop(context, &options);
    (void)run_loop(s);
    /* one more buffer of a size to which it doubled cannot be had */
    memory_budget *b = s->exec->budget;
    frame_drop(s->frame, &s->frame->states[s->frame->n_states - 1]);
    const uint64_t size = (uint64_t)TRIP * SLICE * sizeof(float);
    const uint64_t rest = memory_budget_max(b) - memory_budget_used(b);
    const uint64_t taken = rest - 2 * size - ((uint64_t)60 << 10);
    assert_ok(memory_budget_take(b, taken));
    (void)run_loop(s);
    memory_budget_give(b, taken);
    clg_session_free(s);
    clg_context_free(context);
}

/* Values of a body have no name in the graph. */
TEST(small_buffers__values_of_bodies_are_said_by_their_node)
{
    enum { HALF = 40000 };
    ow_model m = {.ir_version = 8, .opset = 13}, body = {0};
    ow_bytes loop = ow_node("Loop", "grow", "trip,,x", "last"), both, largest;
    const int64_t trip = 2;
    static const float x[HALF];
    clg_model *model;
    clg_session *s;
    ow_loop_inputs(&body);
    ow_input(&body, "v", CLG_FLOAT32, 1, DIMS(HALF), NULL);
    both = ow_node("Concat", "", "v,v", "both");
    ow_attribute_int(&both, "axis", 0);
    ow_add_node(&body, both);
    largest = ow_node("ReduceMax", "", "both", "largest");
    ow_attribute_int(&largest, "keepdims", 0);
    ow_add_node(&body, largest);
    ow_simple_node(&body, "Add", "", "v,largest", "next");
    ow_simple_node(&body, "Identity", "", "on", "goes");
    ow_output(&body, "goes", CLG_BOOL);
    ow_output(&body, "next", CLG_FLOAT32);
    ow_attribute_graph(&loop, "body", body.graph);
    ow_input(&m, "x", CLG_FLOAT32, 1, DIMS(HALF), NULL);
    ow_initializer(&m, ow_tensor_raw("trip", CLG_INT64, 0, NULL, &trip, sizeof trip));
    ow_add_node(&m, loop);
    ow_output(&m, "last", CLG_FLOAT32);
    clg_context *context = open_context(LIMIT);
    assert_ok(ow_load(&m, &model));
    assert_ok(clg_session_create(context, model, NULL, &s));
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 1, DIMS(HALF), x));
    assert_error(
        clg_session_run(s), CLG_ERROR_OUT_OF_DEVICE_MEMORY,
        "a tensor of 320000 bytes does not fit the device's largest buffer of 262144 bytes: "
        "a value of node 'grow' (Loop, opset 13)");
    clg_session_free(s);
    clg_model_free(model);
    clg_context_free(context);
}

/* With the limit enforced and not reported, the driver's own error comes back: the layer works. */
TEST(small_buffers__an_unknown_limit_is_met)
{
    static float y[MAX_RESULTS];
    assert_true(platform_set_env("CLG_DEVICE_SILENT", "1"));
    clg_context *context = open_context(LIMIT);
    assert_error(run(context, &cases[2], CLG_KERNELS_SIMT, NULL, y, NULL),
                 CLG_ERROR_OUT_OF_DEVICE_MEMORY, "CL_INVALID_BUFFER_SIZE");
    clg_context_free(context);
    assert_true(platform_set_env("CLG_DEVICE_SILENT", NULL));
}

static int begin(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAX_WEIGHTS; i++) {
        numbers[i] = sinf((float)i * 0.7f);
        bytes[i] = (uint8_t)(i * 37);
    }
    for (size_t i = 0; i < N_INDICES; i++) narrow[i] = (int32_t)indices[i] * 33;
    assert_true(
        platform_set_env("OPENCL_LAYERS", CLG_TEST_BUILD_DIR "/tests/layers/opencl_device.so"));
    ocl_platforms_show_pocl();
    return 0;
}

TEST_GROUP(begin, NULL)
