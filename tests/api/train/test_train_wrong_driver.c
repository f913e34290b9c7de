/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests that a driver which miscompiles a kernel of the backward pass (layers/opencl_wrong.c) does
 * not change a weight: the self-test warns, and the step is right by another implementation or
 * fails and leaves the parameters as they were. Without self-tests the same fault gives other
 * weights, else it would test nothing.
 */
#include "support/fakes/wrong_driver.h"
#include "support/fixtures/graph_text.h"
#include "support/fixtures/train/trainer_setup.h"
#include "support/unit.h"

#include <clgraph/train.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MODEL                                                                                      \
    "x: f32[3,2,12,10]; w = f32[5,2,3,3]; v = f32[150,7]; c = Conv(x, w) pads=[1,1,1,1]; "         \
    "p = MaxPool(c) kernel_shape=[2,2] strides=[2,2]; f = Flatten(p); y = MatMul(f, v); out y"

static const char *const parameters[] = {"w", "v"};
enum { N_W = 5 * 2 * 3 * 3, N_V = 150 * 7, N_X = 3 * 2 * 12 * 10, N_TARGETS = 3 * 7 };

typedef struct fault_case {
    clg_kernel_class kernels;
    wd_fault fault;
} fault_case;

static const fault_case cases[] = {
    /* twice the gradient of an element */
    {CLG_KERNELS_SIMD,
     {"pool_grad_planes", "to[at] += LOAD1(g + g_off + o)", "to[at] += 2 * LOAD1(g + g_off + o)"}},
    {CLG_KERNELS_SIMT, {"POOL_GRAD_PARAMS", "sum += part;", "sum += 2 * part;"}},
    /* 1.0 in place of 0 in a part of the padding */
    {CLG_KERNELS_SIMD,
     {"__kernel void im2col", "i < begin; ++i) to[i] = 0;", "i < begin; ++i) to[i] = 0x3f800000;"}},
    {CLG_KERNELS_SIMT, {"__kernel void im2col", "to[o] = 0;", "to[o] = 0x3f800000;"}},
};

static void set_input(clg_trainer *t, const char *name, size_t rank, const int64_t *dims, int n)
{
    clg_value *v;
    assert_ok(clg_value_create(CLG_FLOAT32, rank, dims, &v));
    float *numbers = clg_value_data(v);
    for (int i = 0; i < n; i++) numbers[i] = (float)(i * 7 % 29 - 14) / 8;
    assert_ok(clg_trainer_set_input(t, name, v));
    clg_value_free(v);
}

static clg_trainer *open_trainer(clg_context *context, clg_kernel_class kernels)
{
    trainer_setup s = trainer_setup_of(CLG_LOSS_MSE);
    s.session.kernels = kernels;
    clg_trainer *t = trainer_setup_open(&s, context, graph_text_model(15, MODEL));
    set_input(t, "x", 4, (const int64_t[]){3, 2, 12, 10}, N_X);
    set_input(t, "target", 2, (const int64_t[]){3, 7}, N_TARGETS);
    return t;
}

/* Writes the elements of all parameters to p. */
static void read_parameters(clg_trainer *t, float p[N_W + N_V])
{
    clg_value *v;
    for (int i = 0; i < 2; i++) {
        assert_ok(clg_trainer_get_parameter(t, parameters[i], &v));
        memcpy(p + (i == 0 ? 0 : N_W), clg_value_data(v), (i == 0 ? N_W : N_V) * sizeof *p);
        clg_value_free(v);
    }
}

/* Makes a step under a driver with this fault, and writes the parameters before and after it. */
static clg_status step_with(const fault_case *c, const wd_fault *fault, const char *store,
                            clg_selftest selftest, float before[N_W + N_V], float after[N_W + N_V])
{
    wd_driver_is(fault, NULL);
    clg_context *context = wd_context(store, selftest);
    clg_trainer *t = open_trainer(context, c->kernels);
    read_parameters(t, before);
    const clg_status status = clg_trainer_step(t, NULL);
    read_parameters(t, after);
    clg_trainer_free(t);
    clg_context_free(context);
    return status;
}

static double distance(const float a[N_W + N_V], const float b[N_W + N_V])
{
    double largest = 0;
    for (int i = 0; i < N_W + N_V; i++) largest = fmax(largest, fabs((double)a[i] - (double)b[i]));
    return largest;
}

TEST(train__a_wrong_backward_kernel_changes_no_weight)
{
    static float start[N_W + N_V], right[N_W + N_V], now[N_W + N_V];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char store[32];
        const fault_case *c = &cases[i];
        (void)snprintf(store, sizeof store, "right%zu", i);
        assert_ok(step_with(c, &wd_no_fault, store, CLG_SELFTEST_ON, start, right));
        (void)snprintf(store, sizeof store, "untested%zu", i);
        assert_ok(step_with(c, &c->fault, store, CLG_SELFTEST_OFF, start, now));
        const double wrong = distance(right, now);
        if (!(wrong > 0)) fail_msg("fault %zu has no effect", i);

        const int n_warnings = wd_warnings;
        (void)snprintf(store, sizeof store, "tested%zu", i);
        const clg_status status = step_with(c, &c->fault, store, CLG_SELFTEST_ON, start, now);
        assert_true(wd_warnings > n_warnings);
        if (status == CLG_OK)
            assert_true(distance(right, now) < wrong / 1000);
        else
            assert_int_equal(status, CLG_ERROR_UNSUPPORTED_DEVICE);
        if (status != CLG_OK) assert_memory_equal(start, now, sizeof start);
    }
    wd_driver_is(&wd_no_fault, NULL);
}

TEST_GROUP(wd_begin, NULL)
