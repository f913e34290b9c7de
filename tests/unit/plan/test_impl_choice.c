/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests which of a node's candidate implementations the planner chooses.
 */
#include "support/unit.h"

#include "plan/plan.h"

static candidate impl(double cost, bool uses_blas, candidate *next)
{
    return (candidate){.variant = "impl", .cost = cost, .uses_blas = uses_blas, .next = next};
}

TEST(choice__the_first_where_no_cost_is_known)
{
    const plan_context c = {.allow_blas = false};
    candidate third = impl(5, false, NULL), second = impl(0, false, &third),
              first = impl(0, true, &second);
    assert_ptr_equal(plan_cheapest(&c, &first), &second);
    assert_null(plan_cheapest(&c, &(candidate){.uses_blas = true}));
    assert_null(plan_cheapest(&c, NULL));
}

TEST(choice__packed_weights_fit_into_a_buffer)
{
    const device_caps caps = {.max_alloc_bytes = 1000};
    const plan_context c = {.caps = &caps};
    candidate second = impl(9, false, NULL), first = impl(5, false, &second);
    first.n_packings = 2;
    first.packings[0].size_bytes = first.packings[1].size_bytes = 1000;
    assert_ptr_equal(plan_cheapest(&c, &first), &first);
    first.packings[1].size_bytes = 1001;
    assert_ptr_equal(plan_cheapest(&c, &first), &second);
    second.n_packings = 1; /* of those that do not fit the cheapest, whose error names the node */
    second.packings[0].size_bytes = 4000;
    assert_ptr_equal(plan_cheapest(&c, &first), &first);
}

TEST(choice__the_cheapest_of_those_with_a_cost)
{
    const plan_context c = {.allow_blas = false};
    candidate fourth = impl(0, false, NULL), third = impl(7, false, &fourth),
              second = impl(5, false, &third), first = impl(9, false, &second);
    assert_ptr_equal(plan_cheapest(&c, &first), &second);
    second.cost = 9; /* of equal costs, the first is chosen */
    third.cost = 9;
    assert_ptr_equal(plan_cheapest(&c, &first), &first);
    second.cost = 1;
    second.uses_blas = true;
    assert_ptr_equal(plan_cheapest(&c, &first), &first);
}
