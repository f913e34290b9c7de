/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of self-tests' verdicts and its text.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"

#include "session/selftest/verdicts.h"

#include <math.h>
#include <string.h>

static verdict made(uint64_t n, bool passed, double worst)
{
    return (verdict){.key = {.low = n, .high = ~n},
                     .passed = passed,
                     .worst = worst,
                     .bound = 4e-6,
                     .impl = "winograd_2x2",
                     .kernel = "winograd_simd"};
}

TEST(verdicts__text_and_back)
{
    verdict_table a = {0}, b = {0};
    text t;
    const verdict first = made(1, true, 0), second = made(2, false, (double)INFINITY),
                  again = made(1, false, 0.5);
    assert_null(verdicts_find(&a, first.key));
    assert_ok(verdicts_set(&a, &first));
    assert_ok(verdicts_set(&a, &second));
    assert_ok(verdicts_set(&a, &again));
    assert_int_equal(a.n, 2);
    text_init(&t, 0);
    verdicts_text(&a, &t);
    assert_string_equal(
        text_data(&t),
        "clgraph verdicts 1\n"
        "failed fffffffffffffffe0000000000000001 0.5 4e-06 winograd_2x2 winograd_simd\n"
        "failed fffffffffffffffd0000000000000002 inf 4e-06 winograd_2x2 winograd_simd\n");
    assert_ok(verdicts_set(&b, &first)); /* what is there stays */
    assert_true(verdicts_read(&b, text_data(&t)));
    assert_int_equal(b.n, 2);
    assert_true(verdicts_find(&b, first.key)->passed);
    assert_false(verdicts_find(&b, second.key)->passed);
    assert_true(isinf(verdicts_find(&b, second.key)->worst));
    assert_string_equal(verdicts_find(&b, second.key)->impl, "winograd_2x2");
    assert_string_equal(verdicts_find(&b, second.key)->kernel, "winograd_simd");
    text_deinit(&t);
    verdicts_deinit(&a);
    verdicts_deinit(&b);
}

TEST(verdicts__what_is_no_text_of_them)
{
#define KEY "0123456789abcdef0123456789abcdef"
    static const char *const bad[] = {
        "",
        "clgraph verdicts 2\n",
        "clgraph verdicts 1\npassed " KEY " 0 1 way\n",
        "clgraph verdicts 1\npassed 0123456789abcdef 0 1 way kernel\n",
        "clgraph verdicts 1\npassed " KEY "0 0 1 way kernel\n",
        "clgraph verdicts 1\nmaybe " KEY " 0 1 way kernel\n",
        "clgraph verdicts 1\npassed " KEY " 0 1 way kernel more\n",
        "clgraph verdicts 1\n\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        verdict_table t = {0};
        if (verdicts_read(&t, bad[i])) fail_msg("text %zu is read", i);
        verdicts_deinit(&t);
    }
    verdict_table t = {0};
    assert_true(verdicts_read(&t, "clgraph verdicts 1\npassed " KEY " 0 1 way kernel"));
    assert_true(verdicts_read(&t, "clgraph verdicts 1\n"));
    assert_int_equal(t.n, 1);
    verdicts_deinit(&t);
}

static clg_status add_some(void *user)
{
    verdict_table t = {0};
    clg_status status = CLG_OK;
    (void)user;
    for (uint64_t i = 0; i < 20 && status == CLG_OK; i++) {
        const verdict v = made(i, true, 0);
        status = verdicts_set(&t, &v);
    }
    verdicts_deinit(&t);
    return status;
}

TEST(verdicts__survive_every_failing_allocation)
{
    assert_true(fault_loop_alone(add_some, NULL) > 0);
}
