/* SPDX-License-Identifier: Apache-2.0
 *
 * Fails each allocation and each OpenCL call in turn during the creation and the runs of a session
 * that divides nodes among devices: an error with a message or a right result, no leak, and a right
 * result of the next run.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"
#include "support/fakes/opencl_faults.h"
#include "support/fixtures/layers/layers_model.h"
#include "support/fixtures/ocl_platforms.h"

#include <clgraph/inspect.h>
#include <clgraph/multi.h>
#include <clgraph/opencl.h>

enum { N_DEVICES = 3, ROWS = 3 };

static opencl_faults faults;
static clg_context *contexts[N_DEVICES];
static clg_model *model;

static int open_group(void **state)
{
    (void)state;
    if (!opencl_faults_open(&faults)) return -1;
    ocl_platforms_show_pocl();
    failing_alloc_install();
    failing_alloc_arm(SIZE_MAX);
    for (size_t i = 0; i < N_DEVICES; i++)
        if (clg_context_create("pocl", NULL, &contexts[i]) != CLG_OK) return -1;
    model = layers_model();
    return 0;
}

static int close_group(void **state)
{
    (void)state;
    clg_counters counters = CLG_COUNTERS_INIT;
    const bool ran =
        clg_context_counters(contexts[0], &counters) == CLG_OK && counters.kernels_launched > 0;
    clg_model_free(model);
    for (size_t i = 0; i < N_DEVICES; i++) clg_context_free(contexts[i]);
    failing_alloc_remove();
    return ran && opencl_faults_total_live(&faults) == 0 ? 0 : -1;
}

TEST_GROUP(open_group, close_group)

static clg_status create(clg_session **out_session)
{
    clg_multi_options options = CLG_MULTI_OPTIONS_INIT;
    options.split = CLG_SPLIT_LAYERS;
    return clg_session_create_multi(contexts, N_DEVICES, model, NULL, &options, out_session);
}

static clg_session *open_layers(void)
{
    clg_session *s;
    assert_ok(create(&s));
    return s;
}

static clg_status create_and_free(void *user)
{
    clg_session *s = NULL;
    (void)user;
    const clg_status status = create(&s);
    assert_int_equal(status == CLG_OK, s != NULL);
    clg_session_free(s);
    return status;
}

TEST(layers_faults__each_allocation_of_a_creation_fails)
{
    clg_session_free(open_layers()); /* what the contexts keep is there */
    assert_true(fault_loop(create_and_free, NULL) > 100);
}

static clg_status clone_and_free(void *user)
{
    clg_session *clone = NULL;
    const clg_status status = clg_session_clone(user, &clone);
    assert_int_equal(status == CLG_OK, clone != NULL);
    clg_session_free(clone);
    return status;
}

TEST(layers_faults__each_allocation_of_a_clone_fails)
{
    clg_session *s = open_layers();
    assert_true(fault_loop(clone_and_free, s) > 10);
    layers_set(s, ROWS, 1);
    assert_ok(clg_session_run(s));
    layers_expect(s, ROWS, 1);
    clg_session_free(s);
}

/* Runs s, with a failure armed at n by `arm`, for n from 0 until none happens. Rows alternate, so
 * that what crosses is copied in some runs and written in place in others. */
static void fail_each_of_runs(void (*arm)(size_t n), bool (*has_failed)(void))
{
    clg_session *s = open_layers();
    size_t n_failed = 0;
    for (size_t n = 0;; n++) {
        const int64_t rows = ROWS - (int64_t)(n % 2);
        layers_set(s, rows, 0);
        arm(n);
        const clg_status status = clg_session_run(s);
        const bool failed = has_failed();
        arm(SIZE_MAX);
        if (status == CLG_OK)
            layers_expect(s, rows, 0);
        else
            assert_true(failed && error_text()[0] != '\0');
        if (!failed) break;
        n_failed += status != CLG_OK;
        layers_set(s, ROWS, 1);
        assert_ok(clg_session_run(s));
        layers_expect(s, ROWS, 1);
    }
    assert_true(n_failed > 5);
    clg_session_free(s);
}

TEST(layers_faults__each_allocation_of_a_run_fails)
{
    fail_each_of_runs(failing_alloc_arm, failing_alloc_has_failed);
}

static int code;
static void arm_call(size_t n) { faults.arm(n == SIZE_MAX ? -1 : (long)n, code); }
static bool call_has_failed(void) { return faults.has_fired(); }

TEST(layers_faults__each_opencl_call_of_a_run_fails)
{
    code = CL_OUT_OF_HOST_MEMORY;
    fail_each_of_runs(arm_call, call_has_failed);
}

/* The model is divided again then. */
TEST(layers_faults__each_opencl_call_of_a_run_finds_no_device_memory)
{
    clg_session *s = open_layers();
    size_t n_right = 0;
    code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    for (size_t n = 0;; n += 3) {
        layers_set(s, ROWS, 0);
        arm_call(n);
        const clg_status status = clg_session_run(s);
        const bool failed = call_has_failed();
        arm_call(SIZE_MAX);
        if (!failed) break;
        if (status == CLG_OK) {
            n_right++;
            layers_expect(s, ROWS, 0);
        } else {
            assert_true(error_text()[0] != '\0');
        }
        layers_set(s, ROWS, 1);
        assert_ok(clg_session_run(s));
        layers_expect(s, ROWS, 1);
    }
    assert_true(n_right > 0);
    clg_session_free(s);
}
