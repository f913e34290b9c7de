/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the growing string buffer, and matching of wildcard patterns.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"

#include "base/memory.h"
#include "base/strbuf.h"

#include <clgraph/inspect.h>

#include <string.h>

TEST(text__grows)
{
    strbuf t;
    strbuf_init(&t, 0);
    assert_string_equal(strbuf_data(&t), "");
    strbuf_append(&t, "");
    for (int i = 0; i < 1000; i++) {
        strbuf_append(&t, "ab");
        strbuf_append_bytes(&t, "cdx", 2);
        strbuf_printf(&t, "%d", i % 10);
    }
    assert_int_equal(t.size_bytes, 5000);
    assert_memory_equal(strbuf_data(&t), "abcd0abcd1", 10);
    char *taken;
    assert_ok(strbuf_take(&t, &taken));
    assert_int_equal(strlen(taken), 5000);
    assert_string_equal(strbuf_data(&t), "");
    memory_free(taken);
    assert_ok(strbuf_take(&t, &taken));
    assert_string_equal(taken, "");
    memory_free(taken);
    strbuf_deinit(&t);
}

TEST(text__keeps_to_its_maximum_and_remembers)
{
    strbuf t;
    char *taken;
    strbuf_init(&t, 10);
    strbuf_append(&t, "0123456789");
    assert_int_equal(t.status, CLG_OK);
    strbuf_printf(&t, "%c", 'x');
    assert_true(t.status < 0);
    strbuf_append(&t, "");
    assert_string_equal(strbuf_data(&t), "0123456789");
    (void)error_set(CLG_ERROR_IO, "another error between");
    assert_error(strbuf_take(&t, &taken), CLG_ERROR_OUT_OF_HOST_MEMORY, "maximum is 10");
    assert_null(taken);
    strbuf_deinit(&t);
    assert_int_equal(t.status, CLG_OK);
    strbuf_append(&t, "again");
    assert_string_equal(strbuf_data(&t), "again");
    strbuf_deinit(&t);
}

static clg_status build(void *user)
{
    (void)user;
    strbuf t;
    char *taken = NULL;
    strbuf_init(&t, 0);
    for (int i = 0; i < 100; i++) strbuf_printf(&t, "line %d\n", i);
    clg_status status = strbuf_take(&t, &taken);
    strbuf_deinit(&t);
    memory_free(taken);
    return status;
}

TEST(text__survives_every_failing_allocation) { assert_true(fault_loop_alone(build, NULL) > 3); }

TEST(text__matches_patterns)
{
    static const struct {
        const char *pattern, *string;
        bool matches;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "anything", true},
        {"?", "", false},
        {"?", "x", true},
        {"conv", "conv", true},
        {"conv", "Conv", false},
        {"conv", "conv1", false},
        {"conv*", "conv1", true},
        {"*conv", "/a/conv", true},
        {"*conv", "/a/conv1", false},
        {"/*/c?nv*", "/layer1/block/conv2", true},
        {"a*b*c", "a-b-b-c", true},
        {"a*b*c", "a-b-b", false},
        {"*a*a*a", "aa", false},
        {"**a**", "bab", true},
        {"*.*.weight", "a.b.c.weight", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (text_matches(cases[i].pattern, cases[i].string) != cases[i].matches ||
            clg_name_matches(cases[i].pattern, cases[i].string) != cases[i].matches)
            fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].string);
    assert_false(clg_name_matches(NULL, "a"));
    assert_false(clg_name_matches("*", NULL));
}

TEST(text__reads_decimals)
{
    static const struct {
        const char *text;
        double number;
        const char *rest;
    } cases[] = {
        {"0", 0, ""},         {"12 ", 12, " "}, {"-3.5)", -3.5, ")"}, {"0.044715,", 0.044715, ","},
        {"1.5.2", 1.5, ".2"}, {"2*x", 2, "*x"}, {"x", 0, "x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *rest;
        if (text_decimal(cases[i].text, &rest) != cases[i].number ||
            strcmp(rest, cases[i].rest) != 0)
            fail_msg("'%s'", cases[i].text);
    }
    assert_true(text_decimal("-0.25", NULL) == -0.25);
}
