/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests decoding with a key/value cache that grows by one position with each run, over a hundred
 * runs. Once warm, nothing may be compiled, loaded or packed: each step only plans, and the memory
 * of the device and of the host depends only on the step. The state stays on the device.
 * tests/bench/growing.c measures the time of planning.
 */
#include "support/unit.h"

#include "support/fakes/counting_alloc.h"
#include "support/fixtures/growing_model.h"
#include "support/fixtures/pocl_context.h"

#include "ocl/ocl_context.h"
#include "session/session.h"

#include <clgraph/inspect.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Kernels and work-groups have sizes that are powers of two, up to 256. During the warm-up, a
 * length may be the first to need such a size; in the hundred steps after it, none is. */
enum { WARM_UP = 136, STEPS = WARM_UP + 100, SHORT = 40, MAX_PLANS = 64 };

static int open_counted(void **state)
{
    return counting_alloc_install() == CLG_OK ? open_context(state) : -1;
}

static int close_counted(void **state)
{
    const int result = close_context(state);
    return counting_alloc_remove() == CLG_OK ? result : -1;
}

/* ---- the models ------------------------------------------------------------------------------ */

static clg_model *small_decoder(void)
{
    clg_model *model;
    assert_ok(growing_model_make(STEPS, &model));
    return model;
}

/* Loads GPT-2, exported with basic operators, from the folder of models, and extends its 8
 * positions. */
static clg_model *toy_gpt2(void)
{
    char path[4096];
    clg_model *model;
    const char *folder = getenv("CLG_TEST_MODELS");
    (void)snprintf(path, sizeof path, "%s/gpt2_past_toy/model.onnx",
                   folder ? folder : CLG_TEST_MODELS);
    if (access(path, R_OK) != 0) {
        print_message("skipped: there is no %s\n", path);
        skip();
    }
    assert_ok(growing_model_load(path, 8, STEPS, &model));
    return model;
}

static clg_session *open_session(clg_model *model, clg_kernel_class kernels)
{
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    clg_session *session;
    options.kernels = kernels;
    assert_ok(clg_session_create(context, model, &options, &session));
    return session;
}

/* ---- what a step keeps ----------------------------------------------------------------------- */

typedef struct footprint {
    clg_counters counters;
    size_t host_bytes;
    size_t n_forms; /* distinct launch configurations; some drivers compile for each */
} footprint;

static footprint measure(void)
{
    footprint f = {.counters = CLG_COUNTERS_INIT};
    assert_ok(clg_context_counters(context, &f.counters));
    f.host_bytes = counting_alloc_live_bytes();
    f.n_forms = atomic_load(&context->current->ocl->programs.n_new_forms);
    return f;
}

static void take_round(clg_session *session, const clg_model *model, footprint *steps)
{
    assert_ok(growing_model_start(session, model));
    for (int i = 0; i < STEPS; i++) {
        assert_ok(clg_session_run(session));
        steps[i] = measure();
    }
}

static void expect_nothing_made(const footprint *before, const footprint *after)
{
    const clg_counters *a = &before->counters, *b = &after->counters;
    assert_int_equal(a->programs_compiled, b->programs_compiled);
    assert_int_equal(a->programs_loaded, b->programs_loaded);
    assert_int_equal(a->weights_packed, b->weights_packed);
    assert_int_equal(before->n_forms, after->n_forms);
}

/* Returns the bytes by which the state itself grows in one step. */
static size_t state_step_bytes(const clg_model *model)
{
    size_t bytes = 0;
    for (size_t i = 0; i < clg_model_n_inputs(model); i++) {
        const clg_port *port = clg_model_input(model, i);
        size_t elements = 1;
        if (!growing_model_present(port->name)) continue;
        for (int d = 0; d < port->rank; d++)
            elements *= port->dims[d] > 0 ? (size_t)port->dims[d] : 1;
        bytes += elements * sizeof(float);
    }
    return bytes;
}

static void expect_steady(clg_model *model, clg_kernel_class kernels)
{
    static footprint first[STEPS], second[STEPS], third[STEPS];
    clg_session *session = open_session(model, kernels);
    assert_ok(growing_model_link(session, model));
    take_round(session, model, first);
    take_round(session, model, second);
    take_round(session, model, third);
    assert_int_equal(first[0].counters.weights_packed, first[STEPS - 1].counters.weights_packed);
    expect_nothing_made(&first[WARM_UP], &first[STEPS - 1]);
    expect_nothing_made(&first[WARM_UP], &third[STEPS - 1]);
    /* The plan for each step's shape was evicted, so each step plans; nothing else may happen. */
    assert_int_equal(third[STEPS - 1].counters.plans_made - second[STEPS - 1].counters.plans_made,
                     STEPS);
    assert_true(session->exec->n_plans <= MAX_PLANS);
    for (int i = 0; i < STEPS; i++) {
        assert_int_equal(second[i].counters.device_bytes, third[i].counters.device_bytes);
        assert_int_equal(second[i].host_bytes, third[i].host_bytes);
    }
    /* Limits the growth: input and output state, each with a quarter of spare capacity,
     * intermediate results of attention, and constants in plans. */
    const size_t grown =
        first[STEPS - 1].counters.device_bytes - first[WARM_UP].counters.device_bytes;
    assert_true(grown <= 4 * (STEPS - WARM_UP) * state_step_bytes(model) + 65536);
    clg_session_free(session);
    clg_model_free(model);
}

TEST(growing__a_small_decoder_is_steady)
{
    expect_steady(small_decoder(), CLG_KERNELS_SIMD);
    expect_steady(small_decoder(), CLG_KERNELS_SIMT);
}

TEST(growing__toy_gpt2_is_steady)
{
    expect_steady(toy_gpt2(), CLG_KERNELS_SIMD);
    expect_steady(toy_gpt2(), CLG_KERNELS_SIMT);
}

/* ---- where the state goes -------------------------------------------------------------------- */

typedef clg_status (*get_output)(clg_session *session, const char *name, clg_value **out_value);

/* Makes the key/value caches computed by the last run the inputs of the next run of `to`. */
static void hand_over(clg_session *from, const clg_model *model, get_output get, bool on_device,
                      clg_session *to)
{
    for (size_t i = 0; i < clg_model_n_inputs(model); i++) {
        const char *input = clg_model_input(model, i)->name, *output = growing_model_present(input);
        clg_value *cache;
        if (!output) continue;
        assert_ok(get(from, output, &cache));
        assert_int_equal(clg_value_data(cache) == NULL, on_device);
        assert_ok(clg_session_set_input(to, input, cache));
        clg_value_free(cache);
    }
}

static void expect_same_result(clg_session *a, clg_session *b, const clg_model *model)
{
    clg_value *x, *y;
    const char *name = clg_model_output(model, 0)->name;
    assert_ok(clg_session_get_output(a, name, &x));
    assert_ok(clg_session_get_output(b, name, &y));
    assert_int_equal(clg_value_size_bytes(x), clg_value_size_bytes(y));
    assert_memory_equal(clg_value_data(x), clg_value_data(y), clg_value_size_bytes(x));
    clg_value_free(x);
    clg_value_free(y);
}

/* A new session must give the same results: kernels that it reuses must not keep old arguments. */
static void expect_as_fresh(clg_session *through_host, const clg_model *model)
{
    clg_session *fresh;
    assert_ok(clg_session_clone(through_host, &fresh));
    assert_ok(growing_model_start(fresh, model));
    hand_over(through_host, model, clg_session_get_output, false, fresh);
    hand_over(through_host, model, clg_session_get_output, false, through_host);
    assert_ok(clg_session_run(fresh));
    assert_ok(clg_session_run(through_host));
    expect_same_result(fresh, through_host, model);
    clg_session_free(fresh);
}

static void expect_same_any_impl(clg_model *model, clg_kernel_class kernels)
{
    clg_session *linked = open_session(model, kernels), *on_device, *through_host;
    size_t device_bytes[2] = {0};
    assert_ok(clg_session_clone(linked, &on_device));
    assert_ok(clg_session_clone(linked, &through_host));
    assert_ok(growing_model_link(linked, model));
    for (int round = 0; round < 3; round++) {
        assert_ok(growing_model_start(linked, model));
        assert_ok(growing_model_start(on_device, model));
        assert_ok(growing_model_start(through_host, model));
        for (int i = 0; i < SHORT; i++) {
            assert_ok(clg_session_run(linked));
            assert_ok(clg_session_run(on_device));
            assert_ok(clg_session_run(through_host));
            expect_same_result(linked, on_device, model);
            expect_same_result(linked, through_host, model);
            hand_over(on_device, model, clg_session_get_output_device, true, on_device);
            hand_over(through_host, model, clg_session_get_output, false, through_host);
        }
        expect_as_fresh(through_host, model);
        if (round > 0) device_bytes[round - 1] = measure().counters.device_bytes;
    }
    assert_int_equal(device_bytes[0], device_bytes[1]);
    clg_session_free(linked);
    clg_session_free(on_device);
    clg_session_free(through_host);
    clg_model_free(model);
}

TEST(growing__state_stays_on_the_device)
{
    expect_same_any_impl(small_decoder(), CLG_KERNELS_SIMD);
    expect_same_any_impl(small_decoder(), CLG_KERNELS_SIMT);
}

TEST(growing__state_of_toy_gpt2_stays_on_the_device)
{
    expect_same_any_impl(toy_gpt2(), CLG_KERNELS_SIMD);
}

TEST_GROUP(open_counted, close_counted)
