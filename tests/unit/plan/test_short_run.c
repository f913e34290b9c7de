/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests that launches of short segments have one work-group where threads sleep between runs.
 */
#include "support/unit.h"

#include "support/cases/plan_case.h"
#include "support/literals.h"

/* Starts a case of a device whose threads sleep: MatMul of n x n matrices, and Softmax. */
static void start(plan_case *k, int64_t n)
{
    value_id operands[2], y;
    plan_case_start(k, CLG_KERNELS_SIMD);
    k->caps.family = PLATFORM_POCL;
    operands[0] = plan_case_input(k, "a", CLG_FLOAT32, 2, DIMS(n, n));
    operands[1] = plan_case_input(k, "b", CLG_FLOAT32, 2, DIMS(n, n));
    y = plan_case_node(k, "MatMul", 2, operands);
    plan_case_output(k, plan_case_node(k, "Softmax", 1, &y));
}

static uint64_t count_groups(const step *s)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < s->n_dims; d++) n *= s->global[d] / s->local[d];
    return n;
}

/* Plans the case and ends it. Returns the work-groups of all launches less one each. */
static uint64_t plan_and_end(plan_case *k)
{
    uint64_t n = 0;
    plan_case_plan(k);
    const plan_segment *s = k->plan->root;
    for (size_t i = 0; i < s->n_steps; i++) n += count_groups(s->steps[i].what) - 1;
    plan_case_check(k, NULL, NULL);
    plan_case_end(k);
    return n;
}

TEST(short_run__has_one_group_in_each_launch)
{
    plan_case k;
    plan_short_runs_use(PLAN_SHORT_RUNS_WHERE_FASTER);
    start(&k, 64);
    assert_int_equal(plan_and_end(&k), 0);
    start(&k, 1024); /* 2 G operations: milliseconds */
    assert_true(plan_and_end(&k) > 2);
}

TEST(short_run__is_as_any_other_where_threads_do_not_sleep)
{
    plan_case k;
    plan_short_runs_use(PLAN_SHORT_RUNS_WHERE_FASTER);
    start(&k, 64);
    k.caps.family = PLATFORM_INTEL_CPU;
    assert_true(plan_and_end(&k) > 0);
    start(&k, 64);
    k.caps.compute_units = 1; /* no other thread to wake */
    assert_true(plan_and_end(&k) > 0);
    plan_short_runs_use(PLAN_SHORT_RUNS_NEVER);
    start(&k, 64);
    assert_true(plan_and_end(&k) > 0);
}

/* Of a step whose operations are not counted, such as sorting, the time is unknown. */
TEST(short_run__has_estimated_steps_only)
{
    plan_case k;
    value_id x, outputs[2];
    plan_short_runs_use(PLAN_SHORT_RUNS_WHERE_FASTER);
    plan_case_start(&k, CLG_KERNELS_SIMD);
    k.caps.family = PLATFORM_POCL;
    x = plan_case_input(&k, "x", CLG_FLOAT32, 2, DIMS(8, 5));
    x = plan_case_node(&k, "Softmax", 1, &x);
    const value_id operands[] = {x, plan_case_ints(&k, 1, DIMS(3))};
    plan_case_node_of(&k, "TopK", 2, operands, 2, outputs);
    plan_case_output(&k, outputs[0]);
    assert_true(plan_and_end(&k) > 0);
}

/* Steps whose groups divide the work among them, as ranges of DynamicQuantizeLinear, keep them. */
TEST(short_run__keeps_groups_that_decide_the_work)
{
    plan_case k;
    value_id x, outputs[3];
    plan_short_runs_use(PLAN_SHORT_RUNS_ALWAYS);
    plan_case_start(&k, CLG_KERNELS_SIMD);
    x = plan_case_input(&k, "x", CLG_FLOAT32, 1, DIMS(1 << 20));
    plan_case_node_of(&k, "DynamicQuantizeLinear", 1, &x, 3, outputs);
    for (size_t i = 0; i < 3; i++) plan_case_output(&k, outputs[i]);
    plan_case_plan(&k);
    const plan_segment *s = k.plan->root;
    bool has_fixed = false;
    for (size_t i = 0; i < s->n_steps; i++) {
        const step *what = s->steps[i].what;
        has_fixed = has_fixed || what->fixed_groups;
        assert_true(what->fixed_groups ? count_groups(what) > 1 : count_groups(what) == 1);
    }
    assert_true(has_fixed);
    plan_case_end(&k);
}
