/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions that divide nodes among devices of which one is lost at any call of a run: the others
 * compute its part in the same run if they have room, and it takes part again once it was opened
 * anew. The devices are contexts on one, of which tests/layers/opencl_lost.c loses a single one.
 */
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/layers/layers_model.h"
#include "support/fixtures/multi/lost_devices.h"
#include "support/fixtures/sized_data.h"
#include "support/literals.h"

#include "session/layers/layers.h"

#include <clgraph/multi.h>
#include <clgraph/opencl.h>

#include <stdio.h>
#include <string.h>

enum { N = 5 };

TEST_GROUP(open_lost_devices, close_lost_devices)

static clg_session *open_layers(void)
{
    clg_session *s;
    clg_multi_options options = CLG_MULTI_OPTIONS_INIT;
    clg_model *m = layers_model();
    options.split = CLG_SPLIT_LAYERS;
    assert_ok(clg_session_create_multi(lost_contexts, LOST_DEVICES, m, NULL, &options, &s));
    clg_model_free(m);
    return s;
}

/* Returns the number of devices that are lost, which have no nodes. */
static size_t n_lost_parts(clg_session *s)
{
    clg_session_part *parts;
    size_t n, count = 0, n_nodes = 0;
    assert_ok(clg_session_parts(s, &parts, &n));
    for (size_t i = 0; i < n; i++) {
        count += parts[i].is_lost;
        assert_int_equal(parts[i].n_nodes == 0, parts[i].is_lost);
        n_nodes += parts[i].n_nodes;
    }
    assert_int_equal(n_nodes, 3 + 4 * LAYERS_DEPTH + 7);
    clg_session_parts_free(parts, n);
    return count;
}

static void expect_right(clg_session *s) { layers_expect(s, N, 0); }

static const lost_checks checks = {expect_right, n_lost_parts};

static void lose_at_each(opencl_lost_kind kind, int code, long step)
{
    clg_session *s = open_layers();
    layers_set(s, N, 0);
    for (int run = 0; run < 2; run++) assert_ok(clg_session_run(s));
    lose_at_each_call(s, &checks, kind, code, step);
    clg_session_free(s);
}

TEST(layers_lost__at_each_launch) { lose_at_each(OPENCL_LOST_LAUNCHES, CL_OUT_OF_RESOURCES, 3); }
TEST(layers_lost__at_each_wait) { lose_at_each(OPENCL_LOST_WAITS, OPENCL_LOST_MIXED, 1); }
TEST(layers_lost__at_each_read) { lose_at_each(OPENCL_LOST_READS, OPENCL_LOST_MIXED, 1); }
TEST(layers_lost__at_some_of_all_calls)
{
    lose_at_each(OPENCL_LOST_CALLS, CL_DEVICE_NOT_AVAILABLE, 17);
}

TEST(layers_lost__in_a_preparation_and_in_clones)
{
    clg_session *s = open_layers(), *clone;
    layers_set(s, N, 1);
    for (long n = 0;; n += 7) {
        n_loss_warnings = 0;
        lost.arm(OPENCL_LOST_LAUNCHES, n, CL_OUT_OF_RESOURCES);
        assert_ok(clg_session_prepare(s, NULL, NULL));
        const bool has_fired = lost.has_fired();
        lost.arm(OPENCL_LOST_LAUNCHES, -1, 0);
        assert_int_equal(n_loss_warnings, has_fired);
        assert_ok(clg_session_clone(s, &clone)); /* with the division of the others */
        layers_set(clone, N, 2);
        assert_ok(clg_session_run(clone));
        layers_expect(clone, N, 2);
        assert_int_equal(n_lost_parts(clone), has_fired);
        assert_ok(clg_session_run(s));
        layers_expect(s, N, 1);
        clg_session_free(clone);
        if (!has_fired) break;
        recover_lost_devices();
    }
    clg_session_free(s);
}

TEST(layers_lost__one_after_the_other)
{
    clg_session *s = open_layers();
    layers_set(s, N, 0);
    lose_one_after_the_other(s, &checks);
    clg_session_free(s);
}

/* A device that is lost in a run, and opened again before the run has seen why it failed, computes
 * its part again. */
TEST(layers_lost__and_recovered_before_the_run_notices)
{
    error_record failure;
    clg_session *s = open_layers();
    layers_session *l = s->multi;
    layers_set(s, N, 0);
    assert_ok(clg_session_run(s));
    const size_t device = l->division->parts[1].device;
    lost.arm(OPENCL_LOST_LAUNCHES, 0, CL_OUT_OF_RESOURCES);
    clg_session *part = l->stages[1].session;
    error_save(clg_session_prepare(part, NULL, NULL), &failure);
    assert_int_equal(failure.status, CLG_ERROR_DEVICE_LOST);
    assert_true(context_handle_is_lost(lost_contexts[device]));
    lost.arm(OPENCL_LOST_LAUNCHES, -1, 0);
    recover_lost_devices();
    assert_ok(layers_after_failure(l, 1, &failure));
    assert_ok(clg_session_run(s));
    expect_right(s);
    assert_int_equal(n_lost_parts(s), 0);
    assert_error(layers_after_failure(l, 1, &failure), CLG_ERROR_DEVICE_LOST,
                 "CL_OUT_OF_RESOURCES");
    clg_session_free(s);
}

/* Creates a model of twelve products with weights of 256 KiB each. */
static clg_model *large_model(void)
{
    enum { W = 256, LAYERS = 12 };
    static float numbers[W * W];
    char names[3][16] = {"x"};
    clg_model *m;
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(1, W), NULL));
    for (int i = 0; i < LAYERS; i++) {
        (void)snprintf(names[1], sizeof names[1], "w%d", i);
        (void)snprintf(names[2], sizeof names[2], "h%d", i);
        assert_ok(sized_constant(g, names[1], CLG_FLOAT32, 2, DIMS(W, W), numbers));
        assert_ok(clg_builder_node(g, NULL, "MatMul", "", 2, NAMES(names[0], names[1]), 1,
                                   NAMES(names[2])));
        memcpy(names[0], names[2], sizeof names[0]);
    }
    assert_ok(clg_builder_output(g, names[0]));
    assert_ok(clg_builder_build(g, &m));
    clg_builder_free(g);
    return m;
}

/* The model fits two devices, and not one. */
TEST(layers_lost__without_room_on_the_others)
{
    static const float x[256] = {0};
    clg_session *s;
    clg_limits limits = CLG_LIMITS_INIT;
    clg_multi_options options = CLG_MULTI_OPTIONS_INIT;
    clg_session_options session_options = CLG_SESSION_OPTIONS_INIT;
    clg_model *m = large_model();
    options.split = CLG_SPLIT_LAYERS;
    limits.max_memory_bytes = 2600000;
    session_options.limits = &limits;
    assert_ok(clg_session_create_multi(lost_contexts, 2, m, &session_options, &options, &s));
    clg_model_free(m);
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(1, 256), x));
    assert_ok(clg_session_run(s));
    lost.arm(OPENCL_LOST_LAUNCHES, 0, CL_OUT_OF_RESOURCES);
    char selector[64];
    (void)snprintf(selector, sizeof selector, "device %s is lost",
                   clg_context_device(lost_contexts[0])->selector);
    assert_error(clg_session_run(s), CLG_ERROR_OUT_OF_DEVICE_MEMORY, selector);
    assert_error(clg_session_run(s), CLG_ERROR_OUT_OF_DEVICE_MEMORY, "does not fit the others");
    lost.arm(OPENCL_LOST_LAUNCHES, -1, 0);
    recover_lost_devices();
    assert_ok(clg_session_run(s));
    clg_session_free(s);
}
