/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions that divide nodes among devices of which one is lost at any call of a run: the others
 * compute its part in the same run if they have room, and it takes part again once it was opened
 * anew. The devices are contexts on one, of which tests/layers/opencl_lost.c loses a single one.
 */
#include "support/unit.h"

#include "support/fakes/opencl_lost.h"
#include "support/fixtures/build_session.h"
#include "support/fixtures/layers/layers_model.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/sized_data.h"
#include "support/literals.h"

#include "base/memory.h"

#include <clgraph/inspect.h>
#include <clgraph/multi.h>
#include <clgraph/opencl.h>

#include <stdio.h>
#include <string.h>

enum { N = 5, N_DEVICES = 3 };

static opencl_lost lost;
static clg_context *contexts[N_DEVICES];
static int n_warnings;

static void listen(void *user, clg_log_level level, const char *message)
{
    (void)user;
    n_warnings += level <= CLG_LOG_WARNING && strstr(message, "was lost") != NULL;
}

static int open_group(void **state)
{
    if (!opencl_lost_open(&lost) || open_context(state) != 0) return -1;
    contexts[0] = context;
    for (size_t i = 1; i < N_DEVICES; i++)
        if (clg_context_create("pocl", NULL, &contexts[i]) != CLG_OK) return -1;
    lost.alone(true);
    clg_set_log(listen, NULL, CLG_LOG_WARNING);
    return 0;
}

static int close_group(void **state)
{
    clg_set_log(NULL, NULL, CLG_LOG_WARNING);
    for (size_t i = 1; i < N_DEVICES; i++) clg_context_free(contexts[i]);
    const int code = close_context(state);
    return lost.n_live() == 0 && memory_n_live() == 0 ? code : -1;
}

TEST_GROUP(open_group, close_group)

static clg_session *open_layers(void)
{
    clg_session *s;
    clg_multi_options options = CLG_MULTI_OPTIONS_INIT;
    clg_model *m = layers_model();
    options.split = CLG_SPLIT_LAYERS;
    assert_ok(clg_session_create_multi(contexts, N_DEVICES, m, NULL, &options, &s));
    clg_model_free(m);
    return s;
}

static void recover_all(void)
{
    for (size_t i = 0; i < N_DEVICES; i++) assert_ok(clg_context_recover(contexts[i]));
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

/* Loses one device at the n-th call of a kind, from the first to the last of a run. */
static void lose_at_each(opencl_lost_kind kind, int code, long step)
{
    clg_session *s = open_layers();
    long n_losses = 0;
    layers_set(s, N, 0);
    for (int run = 0; run < 2; run++) assert_ok(clg_session_run(s));
    for (long n = 0;; n += step) {
        n_warnings = 0;
        lost.arm(kind, n, code);
        assert_ok(clg_session_run(s));
        const bool has_fired = lost.has_fired();
        lost.arm(kind, -1, 0);
        layers_expect(s, N, 0);
        if (!has_fired) break;
        n_losses++;
        assert_int_equal(n_lost_parts(s), 1);
        assert_int_equal(n_warnings, 1);
        assert_ok(clg_session_run(s)); /* on those that are left */
        layers_expect(s, N, 0);
        recover_all();
        assert_ok(clg_session_run(s));
        layers_expect(s, N, 0);
        assert_int_equal(n_lost_parts(s), 0);
    }
    assert_true(n_losses >= 2);
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
        n_warnings = 0;
        lost.arm(OPENCL_LOST_LAUNCHES, n, CL_OUT_OF_RESOURCES);
        assert_ok(clg_session_prepare(s, NULL, NULL));
        const bool has_fired = lost.has_fired();
        lost.arm(OPENCL_LOST_LAUNCHES, -1, 0);
        assert_int_equal(n_warnings, has_fired);
        assert_ok(clg_session_clone(s, &clone)); /* with the division of the others */
        layers_set(clone, N, 2);
        assert_ok(clg_session_run(clone));
        layers_expect(clone, N, 2);
        assert_int_equal(n_lost_parts(clone), has_fired);
        assert_ok(clg_session_run(s));
        layers_expect(s, N, 1);
        clg_session_free(clone);
        if (!has_fired) break;
        recover_all();
    }
    clg_session_free(s);
}

TEST(layers_lost__one_after_the_other)
{
    clg_session *s = open_layers();
    clg_value *y;
    layers_set(s, N, 0);
    assert_ok(clg_session_run(s));
    for (size_t n = 1; n < N_DEVICES; n++) {
        lost.arm(OPENCL_LOST_LAUNCHES, 0, CL_OUT_OF_RESOURCES);
        assert_ok(clg_session_run(s));
        layers_expect(s, N, 0);
        assert_int_equal(n_lost_parts(s), n);
    }
    lost.arm(OPENCL_LOST_LAUNCHES, 0, CL_OUT_OF_RESOURCES);
    assert_error(clg_session_run(s), CLG_ERROR_DEVICE_LOST, "all devices of the session");
    assert_non_null(strstr(clg_last_hint(), "clg_context_recover"));
    assert_error(clg_session_prepare(s, NULL, NULL), CLG_ERROR_DEVICE_LOST, "all devices");
    assert_error(clg_session_get_output(s, "y", &y), CLG_ERROR_NOT_FOUND, "'y'");
    lost.arm(OPENCL_LOST_LAUNCHES, -1, 0);
    recover_all();
    assert_ok(clg_session_run(s));
    layers_expect(s, N, 0);
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
    assert_ok(clg_session_create_multi(contexts, 2, m, &session_options, &options, &s));
    clg_model_free(m);
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 2, DIMS(1, 256), x));
    assert_ok(clg_session_run(s));
    lost.arm(OPENCL_LOST_LAUNCHES, 0, CL_OUT_OF_RESOURCES);
    char selector[64];
    (void)snprintf(selector, sizeof selector, "device %s is lost",
                   clg_context_device(contexts[0])->selector);
    assert_error(clg_session_run(s), CLG_ERROR_OUT_OF_DEVICE_MEMORY, selector);
    assert_error(clg_session_run(s), CLG_ERROR_OUT_OF_DEVICE_MEMORY, "does not fit the others");
    lost.arm(OPENCL_LOST_LAUNCHES, -1, 0);
    recover_all();
    assert_ok(clg_session_run(s));
    clg_session_free(s);
}
