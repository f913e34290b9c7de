/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the table of self-test results, and its text format.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"

#include "session/selftest/selftest_records.h"

#include <math.h>
#include <string.h>

static selftest_record made(uint64_t n, bool passed, double worst)
{
    return (selftest_record){.key = {.low = n, .high = ~n},
                             .passed = passed,
                             .worst = worst,
                             .bound = 4e-6,
                             .impl = "winograd_2x2",
                             .kernel = "winograd_simd"};
}

TEST(selftest_records__text_and_back)
{
    selftest_records a = {0}, b = {0};
    strbuf t;
    const selftest_record first = made(1, true, 0), second = made(2, false, (double)INFINITY),
                          again = made(1, false, 0.5);
    assert_null(selftest_records_find(&a, first.key));
    assert_ok(selftest_records_set(&a, &first));
    assert_ok(selftest_records_set(&a, &second));
    assert_ok(selftest_records_set(&a, &again));
    assert_int_equal(a.count, 2);
    strbuf_init(&t, 0);
    selftest_records_format(&a, &t);
    assert_string_equal(
        strbuf_data(&t),
        "clgraph selftest 1\n"
        "failed fffffffffffffffe0000000000000001 0.5 4e-06 winograd_2x2 winograd_simd\n"
        "failed fffffffffffffffd0000000000000002 inf 4e-06 winograd_2x2 winograd_simd\n");
    assert_ok(selftest_records_set(&b, &first)); /* parsing keeps existing records */
    assert_true(selftest_records_parse(&b, strbuf_data(&t)));
    assert_int_equal(b.count, 2);
    assert_true(selftest_records_find(&b, first.key)->passed);
    assert_false(selftest_records_find(&b, second.key)->passed);
    assert_true(isinf(selftest_records_find(&b, second.key)->worst));
    assert_string_equal(selftest_records_find(&b, second.key)->impl, "winograd_2x2");
    assert_string_equal(selftest_records_find(&b, second.key)->kernel, "winograd_simd");
    strbuf_deinit(&t);
    selftest_records_deinit(&a);
    selftest_records_deinit(&b);
}

TEST(selftest_records__invalid_text)
{
#define KEY "0123456789abcdef0123456789abcdef"
    static const char *const bad[] = {
        "",
        /* The format of versions before 1.0: ignored, and overwritten. */
        "clgraph verdicts 1\npassed " KEY " 0 1 impl kernel\n",
        "clgraph selftest 2\n",
        "clgraph selftest 1\npassed " KEY " 0 1 impl\n",
        "clgraph selftest 1\npassed 0123456789abcdef 0 1 impl kernel\n",
        "clgraph selftest 1\npassed " KEY "0 0 1 impl kernel\n",
        "clgraph selftest 1\nmaybe " KEY " 0 1 impl kernel\n",
        "clgraph selftest 1\npassed " KEY " 0 1 impl kernel more\n",
        "clgraph selftest 1\n\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        selftest_records t = {0};
        if (selftest_records_parse(&t, bad[i])) fail_msg("text %zu is read", i);
        selftest_records_deinit(&t);
    }
    selftest_records t = {0};
    assert_true(selftest_records_parse(&t, "clgraph selftest 1\npassed " KEY " 0 1 impl kernel"));
    assert_true(selftest_records_parse(&t, "clgraph selftest 1\n"));
    assert_int_equal(t.count, 1);
    selftest_records_deinit(&t);
}

static clg_status add_some(void *user)
{
    selftest_records t = {0};
    clg_status status = CLG_OK;
    (void)user;
    for (uint64_t i = 0; i < 20 && status == CLG_OK; i++) {
        const selftest_record v = made(i, true, 0);
        status = selftest_records_set(&t, &v);
    }
    selftest_records_deinit(&t);
    return status;
}

TEST(selftest_records__survive_every_failing_allocation)
{
    assert_true(fault_loop_alone(add_some, NULL) > 0);
}
