/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests, without a device, that NDRanges stay within the limits of devices for large amounts of
 * work.
 */
#include "support/unit.h"

#include "support/cases/plan_case.h"

/* The maximum number of work-groups along the second and third dimension on NVIDIA's GPUs. */
#define MAX_GROUPS 65535

/* Plans a 3 x 3 MaxPool with more planes, each a row of the NDRange, than a dimension may have. */
static void check_pool(clg_kernel_class kernels)
{
    plan_case k;
    size_t n_kernels = 0;
    plan_case_start(&k, kernels);
    const value_id x = plan_case_input(&k, "x", CLG_FLOAT32, 4, (int64_t[]){1100, 1001, 5, 4});
    const value_id y = plan_case_node(&k, "MaxPool", 1, &x);
    assert_ok(node_set_ints(k.graph, plan_case_last(&k), "kernel_shape", 2, (int64_t[]){3, 3}));
    plan_case_output(&k, y);
    plan_case_plan(&k);
    const plan_segment *segment = k.plan->root;
    for (size_t i = 0; i < segment->n_steps; i++) {
        const step *s = segment->steps[i].what;
        if (s->kind != STEP_KERNEL) continue;
        n_kernels++;
        for (uint32_t d = 0; d < s->n_dims; d++) {
            assert_int_equal(s->global[d] % s->local[d], 0);
            if (d > 0) assert_in_range(s->global[d] / s->local[d], 1, MAX_GROUPS);
        }
    }
    assert_true(n_kernels > 0);
    plan_case_end(&k);
}

TEST(range__many_rows_on_a_gpu) { check_pool(CLG_KERNELS_SIMT); }
TEST(range__many_rows_on_a_cpu) { check_pool(CLG_KERNELS_SIMD); }
