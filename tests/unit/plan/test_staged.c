/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests plans of nodes whose output size depends on data: where the segment ends, which memory
 * stays allocated after it, and which steps follow when the size is known.
 */
#include "support/unit.h"

#include "support/cases/plan_case.h"
#include "support/literals.h"

#include <string.h>

#define VALUES(...) ((const value_id[]){__VA_ARGS__})

static tensor *one_number(int64_t n)
{
    tensor *t;
    assert_ok(tensor_create(CLG_INT64, &(shape){.rank = 1, .dims = {1}}, &t));
    tensor_set_int(t, 0, n);
    return t;
}

/* Plans the segment that follows `segment` when the size read from the device is n; returns it. */
static plan_segment *go_on(const plan_case *k, plan_segment *segment, int64_t n)
{
    plan_segment *child;
    tensor *count = one_number(n);
    assert_int_equal(segment->n_reads, 1);
    assert_int_equal(segment->reads[0].dtype, CLG_INT64);
    assert_ok(plan_continue(&k->c, segment, &count, &child));
    tensor_free(count);
    return child;
}

TEST(staged__a_count_ends_the_segment)
{
    plan_case k;
    for (int kernels = CLG_KERNELS_SIMD; kernels <= CLG_KERNELS_SIMT; kernels++) {
        plan_case_start(&k, kernels);
        value_id x = plan_case_input(&k, "x", CLG_FLOAT32, 2, DIMS(30, 400));
        value_id y = plan_case_node(&k, "Neg", 1, &x), found = plan_case_node(&k, "NonZero", 1, &y);
        plan_case_output(&k, found);
        plan_case_output(&k, y);
        plan_case_plan(&k);
        assert_false(k.plan->root->last);
        assert_int_equal(k.plan->root->n_steps, 3); /* Neg, counts, offsets */
        for (int64_t n = 0; n < 5; n += 2) {
            plan_segment *child = go_on(&k, k.plan->root, n);
            assert_true(child->last);
            assert_int_equal(child->n_steps, n ? 1 : 0);
            assert_int_equal(child->outputs[0].dims.dims[0], 2);
            assert_int_equal(child->outputs[0].dims.dims[1], n);
            assert_int_equal(child->output_bytes[0], (size_t)n * 2 * sizeof(int64_t));
            plan_segment_free(child);
        }
        plan_case_end(&k);
    }
}

/* Checks that the second stage reads the offsets where the first stage wrote them. */
TEST(staged__what_was_measured_lives_on)
{
    plan_case k;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    value_id x = plan_case_input(&k, "x", CLG_FLOAT32, 1, DIMS(9000));
    plan_case_output(&k, plan_case_node(&k, "NonZero", 1, &x));
    plan_case_plan(&k);
    const plan_step *counts = &k.plan->root->steps[0];
    plan_segment *child = go_on(&k, k.plan->root, 7);
    assert_int_equal(child->n_steps, 1);
    assert_int_equal(counts->buffers[1].kind, PLACE_SLAB);
    assert_memory_equal(&child->steps[0].buffers[1], &counts->buffers[1], sizeof(plan_placement));
    plan_segment_free(child);
    plan_case_end(&k);
}

TEST(staged__one_after_the_other)
{
    plan_case k;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    value_id x = plan_case_input(&k, "x", CLG_FLOAT32, 1, DIMS(50)), outputs[4];
    value_id positive = plan_case_node(&k, "Sign", 1, &x),
             wanted = plan_case_node(&k, "Cast", 1, &positive);
    assert_ok(node_set_int(k.graph, plan_case_last(&k), "to", CLG_BOOL));
    value_id kept = plan_case_node(&k, "Compress", 2, VALUES(x, wanted));
    plan_case_node_of(&k, "Unique", 1, &kept, 4, outputs);
    for (size_t i = 0; i < 4; i++) plan_case_output(&k, outputs[i]);
    plan_case_plan(&k);
    plan_segment *second = go_on(&k, k.plan->root, 20);
    assert_false(second->last);
    plan_segment *third = go_on(&k, second, 6);
    assert_true(third->last);
    const int64_t lengths[] = {6, 6, 20, 6};
    for (size_t i = 0; i < 4; i++) assert_int_equal(third->outputs[i].dims.dims[0], lengths[i]);
    plan_segment_free(second);
    plan_segment_free(third);
    plan_case_end(&k);
}

TEST(staged__small_known_numbers_need_no_device)
{
    plan_case k;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    value_id x = plan_case_input(&k, "x", CLG_FLOAT32, 3, DIMS(2, 0, 4));
    value_id dims = plan_case_node(&k, "Shape", 1, &x);
    plan_case_output(&k, plan_case_node(&k, "NonZero", 1, &dims));
    plan_case_plan(&k);
    assert_true(k.plan->root->last);
    assert_int_equal(k.plan->root->n_steps, 0);
    const tensor *known = k.plan->root->outputs[0].known;
    assert_int_equal(known->n_elements, 2);
    assert_int_equal(tensor_get_int(known, 0), 0);
    assert_int_equal(tensor_get_int(known, 1), 2);
    plan_case_end(&k);
}
